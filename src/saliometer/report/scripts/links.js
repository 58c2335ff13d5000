// Links within the page: pictures and charts fill in late, so a target is held in place until the page has settled.
const SETTLE = 1500; // milliseconds

function goTo(hash) {
  const target = hash.length > 1 && byId(decodeURIComponent(hash.slice(1)));
  if (!target) return;
  target.closest("details")?.setAttribute("open", "");
  const stop = new AbortController();
  for (const kind of ["wheel", "touchstart", "keydown", "pointerdown"]) {
    addEventListener(kind, () => stop.abort(), { signal: stop.signal, passive: true });
  }
  const until = performance.now() + SETTLE;
  const hold = () => {
    if (stop.signal.aborted) return;
    target.scrollIntoView();
    if (performance.now() < until) setTimeout(hold, 60);
    else stop.abort();
  };
  hold();
}

addEventListener("hashchange", () => goTo(location.hash));
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && !event.defaultPrevented && link.hash === location.hash) goTo(link.hash);
});
ready.then(() => goTo(location.hash));
