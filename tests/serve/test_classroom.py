"""The teacher's page: who is there, a freeze and a scene for all, and nobody else's key."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import websocket

from explorer import Run, TrainConfig, link_of, preset
from explorer.page.apps.scene import check_scene
from explorer.serve import server as serve
from tests.serve.visits import (
    CLOSE,
    PATIENCE_S,
    ask,
    connected,
    kernel_of,
    read_page,
    settings_module,
)

TOLD = f"b'{serve.TEACHER}' in open('/proc/self/environ', 'rb').read()"
# A page prints the key of scores, and whether its kernel knows the teacher's.
CELLS = (
    "from explorer.page.session import CLASS_KEY; print(f'sign: {CLASS_KEY} :')",
    f"import os, sys; print('key: ' + os.environ.get('{serve.TEACHER}', 'none'))",
    f"print('told: ' + str(sys.platform == 'linux' and {TOLD}))",
    "import ipywidgets; ipywidgets.Button()",
)
SCENE = link_of(Run(preset("moons", n=10), TrainConfig()))
WIDE = link_of(Run(preset("moons", n=10), TrainConfig(widths=(10**6,))))
UNREADABLE, LATER = 1007, 1013  # close codes of RFC 6455
GAMES = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[serve.Server]:
    with serve.start(port=0, cells=CELLS, class_size=4) as running:
        yield running


@pytest.fixture(scope="module")
def kernels(server: serve.Server) -> Iterator[list[str]]:
    """Three pages."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(3):  # each is connected at once: a page that stays away loses its kernel
            found.append(kernel_of(read_page(server)))
            stack.enter_context(connected(server, found[-1]))
        yield found


Join = Callable[..., Any]


def classroom() -> Any:
    return settings_module("classroom")


@pytest.fixture
def join(server: serve.Server, kernels: list[str]) -> Iterator[Join]:
    """Open sockets of the class, the first for the first page; all are closed at the end."""
    opened: list[Any] = []
    free = iter(kernels * 2)

    def joined(path: str = "", **options: str) -> Any:
        path = path or f"class/student?kernel={next(free)}"
        address = server.url.replace("http", "ws", 1) + path
        opened.append(websocket.create_connection(address, timeout=PATIENCE_S, **options))
        return opened[-1]

    yield joined
    for socket in opened:
        socket.shutdown()  # also where the server had closed already


@pytest.fixture
def teacher(server: serve.Server, join: Join) -> Any:
    return join("class/teacher?" + server.teacher.partition("?")[2])


def hear(socket: Any) -> dict[str, Any]:
    found = json.loads(socket.recv())
    assert isinstance(found, dict)
    return found


def say(socket: Any, **what: Any) -> None:
    socket.send(json.dumps(what))


def refusal(socket: Any) -> int:
    """Read on until the server closes, and return its code."""
    while True:
        kind, data = socket.recv_data()
        if kind == CLOSE:
            return int.from_bytes(data[:2], "big")


def until(socket: Any, **what: Any) -> None:
    """Read what a socket is told until it says so."""
    while not what.items() <= hear(socket).items():
        pass


def test_the_teacher_sees_how_many_are_where_and_nothing_else(join: Join, teacher: Any) -> None:
    until(teacher, there=0)
    students = [join() for _ in range(3)]
    until(teacher, there=3)  # also who has not said where
    for socket, stage in zip(students, ("train", "attack", "attack"), strict=True):
        say(socket, stage=stage)
    nowhere = dict.fromkeys(("draw", "explain", "landscape", "arena"), 0)
    until(teacher, there=3, stages={"train": 1, "attack": 2, **nowhere})
    for socket in students:
        socket.shutdown()  # also where the server had closed already
    until(teacher, there=0)


def test_a_page_is_counted_once_and_only_with_a_kernel(
    server: serve.Server, kernels: list[str], join: Join, teacher: Any
) -> None:
    for wrong in ("", "?kernel=", f"?kernel={'0' * 36}"):
        assert refusal(join(f"class/student{wrong}")) == LATER
    mine = [join(f"class/student?kernel={kernels[0]}") for _ in range(20)]
    hear(mine[-1])
    other = join(f"class/student?kernel={kernels[1]}")
    until(teacher, there=2)
    assert refusal(mine[0]) == LATER, "the last one of a page stays"
    say(teacher, freeze=True)
    until(other, frozen=True)
    until(mine[-1], frozen=True)
    say(teacher, freeze=False)
    until(other, frozen=False)


def test_who_left_is_counted_no_more(server: serve.Server, join: Join, teacher: Any) -> None:
    kernel = kernel_of(read_page(server))
    left = join(f"class/student?kernel={kernel}")
    until(teacher, there=1)
    assert ask(f"{server.url}voila/api/shutdown/{kernel}", "POST")[0] == 204
    join()  # its socket is closed when the next one comes
    assert refusal(left) == LATER
    until(teacher, there=1)


def test_a_teachers_page_that_sleeps_is_told_the_last_state_alone() -> None:
    """Its socket takes nothing for a while; meanwhile a hundred things happen."""
    module, sent = classroom(), []

    async def run() -> None:
        awake = asyncio.Event()

        async def write(words: str) -> None:
            sent.append(words)
            await awake.wait()

        teacher = module.TeacherSocket.__new__(module.TeacherSocket)
        teacher.initialize(module.Classroom(SIGN))
        teacher.write_message = write
        teacher.open()
        for frozen in [True, False] * 50:
            await asyncio.sleep(0)
            teacher.room.frozen = frozen
            teacher.room.tell_teachers()
        awake.set()
        await teacher.task

    asyncio.run(run())
    assert [json.loads(words)["frozen"] for words in sent] == [False, False] and len(sent) == 2


def test_a_freeze_reaches_all_and_who_comes_later(join: Join, teacher: Any) -> None:
    student = join()
    assert hear(student)["frozen"] is False
    say(teacher, freeze=True)
    until(student, frozen=True)
    late = join()
    assert hear(late)["frozen"] is True
    say(teacher, freeze=False)
    until(student, frozen=False)
    until(late, frozen=False)


def test_a_page_that_never_closes_keeps_no_word_from_the_others(join: Join, teacher: Any) -> None:
    closing = join()
    closing.send("")  # refused: the server closes, and waits for an answer that never comes
    received = b""
    while UNREADABLE.to_bytes(2, "big") not in received:
        received += closing.sock.recv(100)
    student = join()  # told after the one that is closing
    say(teacher, freeze=True)
    until(student, frozen=True)
    say(teacher, freeze=False)
    until(student, frozen=False)


def test_a_scene_is_given_once_to_who_is_there(join: Join, teacher: Any) -> None:
    student = join()
    before = hear(student)["number"]
    say(teacher, scene=SCENE)
    until(student, scene=SCENE, number=before + 1)
    until(teacher, said="Given to all.")
    late = join()
    assert hear(late) == {"frozen": False, "number": before + 1}, "who comes later has their own"


def test_what_pages_would_refuse_is_given_to_none(join: Join, teacher: Any) -> None:
    student = join()
    before = hear(student)["number"]
    say(teacher, scene=WIDE)
    while not (said := hear(teacher).get("said")):
        pass
    assert len(said) > 40  # the reason
    say(teacher, freeze=False)
    assert hear(student)["number"] == before


@pytest.mark.parametrize("scene", [SCENE[:-9], WIDE, "mx1.AAAA", "mxl1.AAAA", "mxc1.AAAA", "v1"])
def test_a_link_that_pages_would_refuse_has_a_reason(scene: str) -> None:
    check_scene(SCENE)
    with pytest.raises(ValueError, match=r".{20}"):
        check_scene(scene)


@pytest.mark.parametrize("message", [
    "", "[]", "{}", '{"stage": "nowhere"}', '{"stage": ["draw"]}', '{"freeze": true}',
    json.dumps({"scene": SCENE}), "[" * 5000, json.dumps({"stage": "draw" * 5000}),
])  # fmt: skip
def test_a_student_can_say_a_stage_alone(join: Join, teacher: Any, message: str) -> None:
    student = join()
    student.send(message)
    assert refusal(student) == UNREADABLE
    assert hear(teacher)["frozen"] is False


@pytest.mark.parametrize("scene", ["", "javascript:alert(1)", "a b", "x" * 6001, 7, None])
def test_a_scene_is_of_the_letters_of_a_link(teacher: Any, scene: object) -> None:
    say(teacher, scene=scene)
    assert refusal(teacher) == UNREADABLE


@pytest.mark.parametrize("key", ["", "?key=", "?key=wrong", "?key=%ff"])
def test_without_the_key_there_is_no_teacher(server: serve.Server, join: Join, key: str) -> None:
    assert ask(server.url + "teacher" + key)[0] in (400, 403)
    with pytest.raises(websocket.WebSocketBadStatusException):
        join("class/teacher" + key)


def test_a_foreign_page_cannot_join(join: Join) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException):
        join(origin="http://example.org")


def test_the_teachers_page_names_no_foreign_host_and_keeps_its_key(server: serve.Server) -> None:
    status, headers, page = ask(server.teacher)
    assert status == 200 and "https://" not in page and "/* page.css */" not in page
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"


# --- the board ----------------------------------------------------------------------------------
SIGN = "a secret of server and kernels"
ANN, BOB = "a" * 32, "b" * 32


def signed(points: int, found: int = 3, sign: str = SIGN) -> tuple[str, str]:
    """A score as a kernel signs it."""
    score = json.dumps([points, found, 8, f"game {next(GAMES)}"])
    return score, hmac.new(sign.encode(), score.encode(), "sha256").hexdigest()


def rows(room: Any) -> list[list[Any]]:
    found = json.loads(room.summary())["board"]
    assert isinstance(found, list)
    return found


def test_the_board_holds_the_best_of_each_and_the_best_on_top() -> None:
    room = classroom().Classroom(SIGN)
    for who, name, points in [(ANN, "Ann", 40), (BOB, "Bob", 60), (ANN, "Ann B.", 70),
                              (ANN, "A", 10), (BOB, "Bob", 60)]:  # fmt: skip
        assert room.put(who, name, *signed(points))
    assert rows(room) == [["A", 70, 3, 8], ["Bob", 60, 3, 8]]
    assert room.put(BOB, "Bob", *signed(70, 4))
    assert rows(room)[0] == ["Bob", 70, 4, 8], "the newest of equal ones"


def test_a_score_is_of_who_got_it() -> None:
    room = classroom().Classroom(SIGN)
    score = signed(90)
    assert room.put(ANN, "Ann", *score) and room.put(ANN, "Ann B.", *score)
    assert not room.put(BOB, "Bob", *score)
    assert rows(room) == [["Ann B.", 90, 3, 8]]
    assert room.put(BOB, "Bob", *signed(90)), "another game with as many points"


@pytest.mark.parametrize("name", ["", "  ", "x" * 21, "a\x00b", "a\u202eb"])
def test_a_name_on_the_board_is_short_and_of_letters(name: str) -> None:
    room = classroom().Classroom(SIGN)
    assert not room.put(ANN, name, *signed(50)) and rows(room) == []


@pytest.mark.parametrize("sign", ["", "another"])
def test_no_page_makes_a_score_up(sign: str) -> None:
    room = classroom().Classroom(SIGN)
    assert not room.put(ANN, "Ann", *signed(100, sign=sign))
    assert not room.put(ANN, "Ann", "[100, 8, 8]", signed(50)[1])
    assert not room.put("../etc", "Ann", *signed(50))
    assert not classroom().Classroom().put(ANN, "Ann", *signed(100, sign=""))
    assert rows(room) == []


def test_the_board_is_seen_and_cleared_by_the_teacher_alone(join: Join, teacher: Any) -> None:
    until(teacher, board=[])
    for message in ({"clear": True}, {"who": ANN, "name": "Ann", "score": "[1, 1, 1]", "mark": ""}):
        student = join()
        say(student, **message)
        assert refusal(student) == UNREADABLE
    say(teacher, clear=True)
    until(teacher, board=[])


def test_a_kernel_signs_what_the_server_believes_and_never_knows_the_teachers_key(
    server: serve.Server, join: Join, teacher: Any
) -> None:
    page = read_page(server)
    assert "key: none" in page
    assert "told: False" in page
    found = re.search(r"sign: ([\w-]+) :", page)
    assert found is not None
    student = join(f"class/student?kernel={kernel_of(page)}")
    score, mark = signed(63, sign=found[1])
    say(student, who=ANN, name="<b>Ann</b>", score=score, mark=mark)
    until(teacher, board=[["<b>Ann</b>", 63, 3, 8]])
    say(teacher, clear=True)
    until(teacher, board=[])
    assert ask(f"{server.url}voila/api/shutdown/{kernel_of(page)}", "POST")[0] == 204


def test_without_a_class_there_is_no_teacher(plain_server: serve.Server) -> None:
    assert not plain_server.teacher
    assert ask(plain_server.url + "teacher?key=")[0] == 403
