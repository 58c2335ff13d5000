// Paper: everything is opened and drawn, and a board too wide for it is cut into several, each with the methods' names.
const FIT = 7; // columns of metrics on a page
let opened = [];

function printedBoards() {
  const heads = [...board.tHead.rows[0].cells].map((head, place) => ({ head, place })).filter(({ head }) => "kind" in head.dataset && !head.hidden);
  const made = [];
  for (let first = 0; first < heads.length; first += FIT) {
    const some = heads.slice(first, first + FIT).map(({ place }) => place);
    const table = el("table", { class: "board printed" });
    for (const part of [board.tHead, board.tBodies[0]]) {
      const copy = part.cloneNode(false);
      for (const row of part.rows) {
        if (row.hidden || row.classList.contains("lost")) continue;
        const line = row.cloneNode(false);
        line.append(...[0, 1, ...some].map((place) => row.cells[place]).filter(Boolean).map((cell) => cell.cloneNode(true)));
        copy.append(line);
      }
      table.append(copy);
    }
    made.push(table);
  }
  return made;
}

addEventListener("beforeprint", () => {
  document.documentElement.dataset.print = "";
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const one of opened) one.open = true;
  for (const node of [...waiting.keys()]) arrive(node);
  for (const act of redraws) act();
  const section = byId("scoreboard");
  section.classList.add("split");
  board.parentElement.after(...printedBoards());
});
addEventListener("afterprint", () => {
  delete document.documentElement.dataset.print;
  for (const one of opened) one.open = false;
  byId("scoreboard").classList.remove("split");
  for (const one of document.querySelectorAll(".printed")) one.remove();
  for (const act of redraws) act();
});
