// A student's page in a class: says which stage is open, and does what the teacher asks of all.
(() => {
  const config = JSON.parse(document.getElementById("jupyter-config-data").textContent);
  const address = new URL(`${config.baseUrl}class/student`, location.href);
  address.searchParams.set("kernel", config.kernelId);
  address.protocol = address.protocol.replace("http", "ws");
  const cover = document.createElement("div");
  cover.id = "frozen";
  cover.setAttribute("role", "alert");
  cover.textContent = "Look up: your teacher has the floor.\nNothing of yours is lost.";
  cover.hidden = true;
  document.body.append(cover);
  // For the page of the game: puts a score that the kernel signed on the teacher's board.
  const whoAmI = () => {
    try {
      const old = sessionStorage.getItem("mx-who") || crypto.getRandomValues(new Uint8Array(16)).reduce((text, byte) => text + byte.toString(16).padStart(2, "0"), "");
      sessionStorage.setItem("mx-who", old);
      return old;
    } catch { return "0".repeat(32); }
  };
  window.mxBoard = ({ score, mark }, name) => {
    if (socket.readyState !== WebSocket.OPEN) return false;
    socket.send(JSON.stringify({ who: whoAmI(), name, score, mark }));
    return true;
  };
  let socket, said = "", given = null, wait = 1000;
  const stage = () => {
    const tabs = [...document.querySelectorAll(".mx-tabs [role=tab]")];
    return tabs.length ? ["draw", "train", "attack", "explain", "landscape", "arena"][tabs.findIndex((t) => t.getAttribute("aria-selected") === "true")] : "";
  };
  const tell = () => {
    const now = stage();
    if (!now || now === said || socket.readyState !== WebSocket.OPEN) return;
    said = now;
    socket.send(JSON.stringify({ stage: now }));
  };
  const freeze = (frozen) => {
    cover.hidden = !frozen;
    for (const e of document.body.children) if (e !== cover) e.inert = frozen;
  };
  // As a link pasted into the address: the page opens it, and keeps what was drawn.
  const open = (scene) => {
    if (location.hash === `#${scene}`) window.dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = scene;
  };
  const connect = () => {
    socket = new WebSocket(address);
    socket.onopen = () => { wait = 1000; said = ""; tell(); };
    socket.onmessage = (e) => {
      const { frozen, scene, number } = JSON.parse(e.data);
      freeze(frozen);
      if (given !== null && number > given && scene) open(scene);
      given = number;
    };
    // The students of a server that starts anew do not all come in the same second.
    socket.onclose = () => { freeze(false); setTimeout(connect, wait * (1 + Math.random())); wait = Math.min(2 * wait, 30000); };
  };
  connect();
  setInterval(tell, 1000);
})();
