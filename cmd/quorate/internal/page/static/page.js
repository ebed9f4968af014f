// Asks for the page again when the server says that something on it has changed, and puts
// the new parts in place of the old ones. Without it, the page is what it was when loaded.
"use strict";
(() => {
  const watch = document.body.dataset.watch;
  const connection = document.getElementById("connection");
  const pause = 1000; // between two requests, whatever changes, in milliseconds
  const slow = 30000; // between two requests for what the server tells no change of
  let source, timer, busy = false;

  const say = (text) => {
    if (connection.textContent !== text) connection.textContent = text;
  };

  // put replaces a part, and keeps the focus on the link that had it.
  const put = (old, next) => {
    if (old.innerHTML === next.innerHTML) return;
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceChildren(...next.childNodes);
    if (focused === null) return;
    for (const link of old.querySelectorAll("a[href]")) {
      if (link.getAttribute("href") === focused) {
        link.focus({preventScroll: true});
        return;
      }
    }
  };

  const refresh = async () => {
    timer = undefined;
    if (busy) return soon();
    busy = true;
    try {
      const answer = await fetch(location.href, {cache: "no-store"});
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      const parts = document.querySelectorAll("[data-live]");
      const same = [...parts].every((part) => next.querySelector(`[data-live="${part.dataset.live}"]`));
      if (!same || next.title !== document.title) return location.reload(); // it is another page now
      parts.forEach((part) => put(part, next.querySelector(`[data-live="${part.dataset.live}"]`)));
    } catch {
      say("Not connected: what is shown may be old.");
    } finally {
      busy = false;
    }
  };

  const soon = () => {
    if (timer === undefined) timer = setTimeout(refresh, pause);
  };

  const connect = () => {
    source = new EventSource("/api/v1/events");
    let lost = false;
    source.addEventListener("open", () => {
      say("Live");
      if (lost) soon();
      lost = false;
    });
    source.addEventListener("error", () => {
      lost = true;
      say("Not connected: what is shown may be old.");
    });
    source.addEventListener("status", (event) => {
      const change = JSON.parse(event.data);
      if (watch === "all" || watch === change.namespace + "/") soon();
    });
    source.addEventListener("git", soon);
    source.addEventListener("reset", soon);
  };

  // A browser has few connections to one server: tabs that nobody sees have none.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      source?.close();
      source = undefined;
    } else if (source === undefined) {
      connect();
      soon();
    }
  });
  if (watch.endsWith("/")) setInterval(() => { // one object: sizes, and Events of Kubernetes
    if (!document.hidden) soon();
  }, slow);
  window.addEventListener("pagehide", () => source?.close());
  if (!document.hidden) connect();
})();
