"""The hall: who taps is known by a token, nobody reads what is not shown, limits hold."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import websocket

from explorer.serve import hall
from explorer.serve import server as serve
from explorer.serve.network import address_on_network
from explorer.serve.sockets import checked_name
from tests.serve.visits import PATIENCE_S, ask, connected, kernel_of, read_page

ANN, BOB = "a" * 32, "b" * 32
SEAL = "5" * 64
BOARD = {"seal": SEAL, "size": 2, "map": "AAAA", "lines": [[0, 0, 1, 1, 0.5]], "needles": []}
TRUTH = {"truth": [[0.125, 0.25, 1]], "scores": {"1": [1, 1, 1], "2": [0, 1, 0]}}
CLAIMS = {"claims": [[0.5, 0.5, -1]]}
ASKED = {"question": "More?", "answers": {"more": "More", "fewer": "Fewer"}}


def a_round(**more: Any) -> hall.Rounds:
    made = hall.Rounds("BCDF", "kernel")
    made.show({**BOARD, **more})
    return made


def joined(made: hall.Rounds, token: str, most_each: int = 0) -> hall.Phone:
    phone = made.phone(token, "192.0.2.7", most_each)
    assert isinstance(phone, hall.Phone)
    return phone


# --- laws of a round ----------------------------------------------------------------------------
def test_taps_count_until_the_claims_are_shown_and_are_of_their_token() -> None:
    made = a_round(**ASKED)
    ann, bob = joined(made, ANN), joined(made, BOB)
    made.take(bob, "", [[0.3, 0.4]], "same", 1)
    assert bob.guess == "", "no answer of this question"
    made.take(ann, "Ann", [[0.1, 0.2]], "more", 1)
    made.take(bob, "", [[0.3, 0.4]], "", 1)
    assert joined(made, ANN) is ann and ann.taps == [[0.1, 0.2]]
    made.show({**BOARD, **ASKED, **CLAIMS})
    made.take(ann, "Anne", [[0.5, 0.5]], "fewer", 2)
    assert (ann.name, ann.taps, ann.guess) == ("Anne", [[0.1, 0.2]], "more")
    told = json.loads(made.report([1, 2]))["phones"]
    assert told == {"1": [[[0.1, 0.2]], "more", "Anne"], "2": [[[0.3, 0.4]], "", ""]}
    for token in (ANN, BOB):
        assert token not in made.report([1, 2]) + made.answer(ann, -1) + made.answer(bob, -1)


def test_a_phone_is_told_what_was_shown_once_and_no_score_but_its_own() -> None:
    made = a_round()
    ann, bob = joined(made, ANN), joined(made, BOB)
    first = json.loads(made.answer(ann, -1))
    assert first["round"] == BOARD and "round" not in json.loads(made.answer(ann, first["version"]))
    made.show({**BOARD, **CLAIMS, **TRUTH})
    last = [json.loads(made.answer(phone, first["version"])) for phone in (ann, bob)]
    assert [told["score"] for told in last] == [[1, 1, 1], [0, 1, 0]]
    assert [told["number"] for told in last] == [1, 2], "as the board calls them"
    assert all(told["round"]["truth"] == TRUTH["truth"] for told in last)
    assert all("scores" not in told["round"] for told in last)


def test_a_round_has_so_many_phones_and_an_address_so_many_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, now = a_round(), [0.0]
    monkeypatch.setattr(hall.time, "monotonic", lambda: now[0])

    def came(address: str) -> hall.Phone | str:
        return made.phone(f"{len(made.phones):032x}", address, 0)

    for k in range(hall.MOST_EACH):  # made up by one client, as fast as it may
        assert isinstance(came("192.0.2.7"), hall.Phone)
        if (k + 1) % hall.MOST_NEW == 0 and k + 1 < hall.MOST_EACH:
            assert came("192.0.2.7") == hall.FAST
            now[0] += 1
    assert came("192.0.2.7") == hall.FULL
    for k in range(hall.MOST_PHONES - hall.MOST_EACH):  # others still find their places
        assert isinstance(came(f"192.0.3.{k}"), hall.Phone)
    assert came("192.0.2.8") == hall.FULL
    few = a_round()
    joined(few, ANN, most_each=1)
    assert few.phone(BOB, "192.0.2.7", 1) == hall.FULL
    assert isinstance(few.phone(BOB, "192.0.2.8", 1), hall.Phone)


def test_phones_stay_in_for_the_next_round_with_no_tap_of_the_one_before() -> None:
    made = a_round(**ASKED)
    ann = joined(made, ANN)
    made.take(ann, "Ann", [[0.1, 0.2]], "more", made.version)
    made.show({**BOARD, **ASKED, **CLAIMS, **TRUTH})
    old = made.version
    made.show({**BOARD, **ASKED, "seal": "6" * 64})
    assert joined(made, ANN) is ann and made.open and made.news == {1}
    made.take(ann, "Ann", [[0.1, 0.2]], "more", old)  # it has not heard of the new round
    assert (ann.name, ann.taps, ann.guess) == ("Ann", [], "")
    told = json.loads(made.answer(ann, old))
    assert "score" not in told and not told["round"].keys() & {"truth", "claims"}
    made.take(ann, "Ann", [[0.3, 0.4]], "fewer", told["version"])
    assert (ann.taps, ann.guess) == ([[0.3, 0.4]], "fewer")


def test_a_page_has_one_code_and_ends_a_round_with_all_its_phones() -> None:
    rooms = {"kernel", "other"}
    halls = hall.Hall(rooms)
    first, other = halls.of("kernel"), halls.of("other")
    assert halls.of("kernel") is first and other.code != first.code
    first.show(dict(BOARD))
    joined(first, ANN)
    before = first.version
    halls.end("kernel")
    assert halls.find(first.code) is first and not first.shown and not first.phones
    first.show(dict(BOARD))
    assert first.version > before, "who has seen the last round is told of this one"
    rooms.remove("kernel")
    assert halls.find(first.code) is None and halls.find(other.code) is other
    halls.of("other")
    assert first.code not in halls.held


def test_phones_of_rounds_that_go_on_are_counted() -> None:
    rooms = {"kernel", "other"}
    halls, told = hall.Hall(rooms), []
    halls.changed = lambda: told.append(halls.phones())
    joined(halls.of("kernel"), ANN)
    joined(halls.of("other"), BOB)
    assert halls.phones() == 2
    halls.end("kernel")
    assert told[-1] == halls.phones() == 1
    rooms.remove("other")  # its page was closed
    assert halls.phones() == 0


@pytest.mark.parametrize("wrong", [
    [], {}, {"seal": SEAL}, {**BOARD, "more": 1}, {**BOARD, "size": 2.5}, {**BOARD, "size": 10**6},
    {**BOARD, "map": "A" * 20_001}, {**BOARD, "truth": [[0, float("nan"), 1]]},
    {**BOARD, "truth": [[0, "<b>", 1]]}, {**BOARD, "truth": [[0, 1]]},
    {**BOARD, "truth": [[0, 9, 1]]}, {**BOARD, "claims": [[0, 0, 1]] * 1001},
    {**BOARD, "scores": {"1": [1]}}, {**BOARD, "seal": 7}, {**BOARD, "answers": {"a": "A" * 21}},
    {**BOARD, "answers": {"<b>": "A"}}, {**BOARD, "answers": {"a": 1}},
])  # fmt: skip
def test_what_is_no_round_is_shown_to_nobody(wrong: object) -> None:
    assert hall.checked_round(BOARD) == BOARD
    assert hall.checked_round(wrong) is None


@pytest.mark.parametrize(("name", "shown"), [
    ("", ""), ("  Ann  B. ", "Ann B."), ("<b>Ann</b>", "<b>Ann</b>"), ("x" * 21, None),
    ("a\x00b", None), ("a\u202eb", None),
])  # fmt: skip
def test_a_name_is_short_and_printable_text(name: str, shown: str | None) -> None:
    assert checked_name(name) == shown


@pytest.mark.parametrize(("origin", "network", "address"), [
    ("http://192.0.2.5:8866", "", "http://192.0.2.5:8866/m/hall"),
    ("https://class.example.org", "192.0.2.1", "https://class.example.org/m/hall"),
    ("http://127.0.0.1:8866", "192.0.2.1", "http://192.0.2.1:8866/m/hall"),
    ("http://localhost:8866", "", ""), ("http://[::1]:8866", "192.0.2.1", "http://192.0.2.1:8866/m/hall"),
    ("javascript:alert(1)", "192.0.2.1", ""), ("", "192.0.2.1", ""),
])  # fmt: skip
def test_phones_come_to_an_address_that_they_reach(origin: str, network: str, address: str) -> None:
    assert hall.Hall(set(), "/m/", network).join_address(origin) == address


# --- over the wire ------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def kernel(plain_server: serve.Server) -> Iterator[str]:
    found = kernel_of(read_page(plain_server))
    with connected(plain_server, found):
        yield found


@pytest.fixture
def projector(plain_server: serve.Server, kernel: str) -> Iterator[Any]:
    """The page that began a round: its socket, `say`, and the round's code."""
    address = f"{plain_server.url.replace('http', 'ws', 1)}hall/projector?kernel={kernel}"
    socket = websocket.create_connection(f"{address}&origin=http://192.0.2.5", timeout=PATIENCE_S)

    def say(**what: Any) -> None:
        socket.send(json.dumps(what))

    say(round=BOARD)
    told = json.loads(socket.recv())
    yield SimpleNamespace(socket=socket, say=say, **told)
    say(end=True)
    socket.close()


Post = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def post(plain_server: serve.Server) -> Post:
    import urllib.error
    import urllib.request

    def posted(body: bytes = b"", **sent: Any) -> tuple[int, dict[str, Any]]:
        body = (
            body
            or json.dumps(
                {"token": ANN, "name": "", "taps": [], "guess": "", "seen": -1, **sent}
            ).encode()
        )
        request = urllib.request.Request(f"{plain_server.url}hall/taps", body, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    return posted


def test_a_tap_comes_to_the_projector_and_nothing_that_was_not_shown_to_the_phone(
    projector: Any, post: Post
) -> None:
    assert re.fullmatch(f"[{hall.LETTERS}]{{4}}", projector.code)
    assert projector.address == "http://192.0.2.5/hall" and len(projector.qr) >= 21
    code, told = post(code=projector.code.lower())
    assert code == 200 and told["round"] == BOARD and told["open"]
    assert json.loads(projector.socket.recv()) == {"count": 1, "phones": {"1": [[], "", ""]}}
    while post(code=projector.code, taps=[[0.5, -0.5]], seen=told["version"])[0] == 429:
        pass
    assert json.loads(projector.socket.recv())["phones"] == {"1": [[[0.5, -0.5]], "", ""]}
    assert any(post(code=projector.code, taps=[[0.5, -0.5]])[0] == 429 for _ in range(50))
    projector.say(round={**BOARD, **CLAIMS, **TRUTH})
    status, told = 429, {}
    while status == 429 or "score" not in told:
        status, told = post(code=projector.code, taps=[[0.9, 0.9]], seen=told.get("version", 1))
    assert told["score"] == [1, 1, 1] and told["counted"] == 1 and not told["open"]


@pytest.mark.parametrize("sent", [
    {"token": "short"}, {"token": ANN.upper()}, {"taps": [[0, 1.5]]},
    {"taps": [[0, 0]] * (hall.MOST_TAPS + 1)},
    {"taps": [[0, True]]}, {"taps": [[0, float("nan")]]}, {"taps": [[0, -float("inf")]]},
    {"taps": [[10**400, 0]]}, {"taps": [[[0], 0]]}, {"taps": [["0", 0]]}, {"taps": "<b>"},
    {"guess": "<b>"}, {"name": "x" * 21}, {"seen": "1"},
    {"body": b"no json"}, {"body": b"[" * 1500}, {"body": b"\xff"}, {"body": b" " * 2001},
])  # fmt: skip
def test_what_no_phone_sends_is_refused(projector: Any, post: Post, sent: dict[str, Any]) -> None:
    assert post(**{"code": projector.code, **sent}) == (400, {"said": hall.WRONG})


def test_without_a_round_there_is_nothing_to_tap_at(post: Post) -> None:
    assert post(code="BBBB") == (404, {"said": hall.NONE})


def test_a_phone_is_told_of_the_next_round_under_the_same_code(projector: Any, post: Post) -> None:
    projector.say(end=True)
    waiting = (200, {"said": hall.OVER, "over": True})
    while (told := post(code=projector.code)) != waiting:  # until the server has heard it
        assert told[0] in (200, 429)  # it is still open, or asked too soon
    following = {**BOARD, "seal": "6" * 64}
    projector.say(round=following)
    while "round" not in (told := post(code=projector.code))[1]:
        assert told == waiting or told[0] == 429
    assert told[1]["round"] == following
    while "code" not in (heard := json.loads(projector.socket.recv())):
        pass  # of phones
    assert heard["code"] == projector.code


def test_only_a_page_of_this_server_begins_a_round(plain_server: serve.Server) -> None:
    address = f"{plain_server.url.replace('http', 'ws', 1)}hall/projector?kernel={'0' * 36}"
    socket = websocket.create_connection(address, timeout=PATIENCE_S)
    assert int.from_bytes(socket.recv_data()[1][:2], "big") == 1013
    socket.shutdown()
    with pytest.raises(websocket.WebSocketBadStatusException):
        websocket.create_connection(address, timeout=PATIENCE_S, origin="http://example.org")


def test_phones_of_the_network_come_when_a_page_lets_them_and_reach_nothing_else(
    plain_server: serve.Server, kernel: str
) -> None:
    address = f"{plain_server.url.replace('http', 'ws', 1)}hall/projector?kernel={kernel}"
    socket = websocket.create_connection(f"{address}&origin=http://127.0.0.1:1", timeout=PATIENCE_S)
    with contextlib.ExitStack() as left:
        left.callback(socket.shutdown)
        socket.send(json.dumps({"round": BOARD}))
        shut = json.loads(socket.recv())
        network = address_on_network()
        assert (shut["address"], shut["qr"], shut["can_open"]) == ("", [], bool(network))
        if not network:
            return
        for _ in range(2):  # a door that is open is not opened again: that closes the socket
            socket.send(json.dumps({"open": True}))
        opened = json.loads(socket.recv())
        assert int.from_bytes(socket.recv_data()[1][:2], "big") == 1007
    door = opened["address"].removesuffix("hall")
    assert door.startswith(f"http://{network}:") and opened["qr"] and not opened["can_open"]
    status, headers, page = ask(f"{door}hall")
    assert status == 200 and page == ask(f"{plain_server.url}hall")[2]
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    sent = {"code": opened["code"], "token": ANN, "name": "", "taps": [], "guess": "", "seen": -1}
    with urllib.request.urlopen(f"{door}hall/taps", json.dumps(sent).encode(), 60) as answer:
        assert json.loads(answer.read())["round"] == BOARD
    for path in ("", "api/kernels", "voila/kernels/x", "hall/projector", "story/", "static/x.js"):
        assert ask(door + path)[0] == 404, path
    assert ask(f"{door}hall", Host="example.org")[0] == 403


def test_the_phones_page_is_small_and_names_no_host(plain_server: serve.Server) -> None:
    status, headers, page = ask(f"{plain_server.url}hall")
    assert status == 200 and "kernels" not in page
    packed = urllib.request.Request(f"{plain_server.url}hall", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(packed, timeout=60) as answer:  # as every browser asks
        sent = answer.read()
    assert len(sent) < 30_000 and gzip.decompress(sent).decode() == page
    assert f"MOST = {hall.MOST_TAPS}," in page and "--mx-pos" in page and "const paintHall" in page
    assert (
        not re.search(r"https?://", page)
        and "default-src 'none'" in headers["Content-Security-Policy"]
    )
