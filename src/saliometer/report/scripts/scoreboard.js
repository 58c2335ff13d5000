// The scoreboard: sort by any column, find methods, choose metrics.
const board = byId("board");
const boardRows = [...board.tBodies[0].rows];

/** The row's value for a column's button; undefined ones come last whatever the order. */
function sortValue(row, button, place) {
  if (button.dataset.sort === "rank") return boardRows.indexOf(row);
  if (button.dataset.sort === "name") return row.dataset.method;
  const text = row.cells[place]?.dataset.value;
  return text ? Number(text) : null;
}

function sortBoard(button) {
  const head = button.closest("th");
  const place = head.cellIndex;
  const was = head.getAttribute("aria-sort");
  const first = button.dataset.better === "higher" ? "descending" : "ascending";
  const second = first === "ascending" ? "descending" : "ascending";
  const now = was === first ? second : first;
  for (const other of board.tHead.rows[0].cells) if (other.ariaSort) other.ariaSort = "none";
  head.ariaSort = now;
  const sign = now === "ascending" ? 1 : -1;
  const keyed = boardRows.map((row) => [sortValue(row, button, place), row]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
  });
  board.tBodies[0].append(...keyed.map(([, row]) => row));
}

function filterBoard() {
  const wanted = byId("find").value.trim().toLowerCase();
  const controls = byId("controls").checked;
  for (const row of boardRows) {
    const control = row.classList.contains("control") || row.classList.contains("ceiling");
    row.hidden = (control && !controls) || !row.dataset.method.toLowerCase().includes(wanted);
  }
  const kind = byId("kind")?.value ?? "";
  const stage = byId("stage")?.value ?? "";
  [...board.tHead.rows[0].cells].forEach((head, place) => {
    if (!("kind" in head.dataset)) return;
    const other = (kind && head.dataset.kind && head.dataset.kind !== kind)
      || (stage && head.dataset.stage && head.dataset.stage !== stage);
    for (const row of board.rows) if (row.cells[place] && !row.classList.contains("lost")) row.cells[place].hidden = other;
  });
}

/** What is seen of the board, as rows. */
function boardData() {
  const heads = [...board.tHead.rows[0].cells];
  const found = [];
  for (const row of board.tBodies[0].rows) {
    if (row.hidden || row.classList.contains("lost")) continue;
    heads.forEach((head, place) => {
      if (!("kind" in head.dataset) || head.hidden || !row.cells[place].dataset.value) return;
      const { value, low, high } = row.cells[place].dataset;
      found.push({
        method: row.dataset.method, rank: row.cells[0].textContent, metric: head.querySelector("button").textContent,
        definition: head.dataset.definition, value: Number(value), low: Number(low), high: Number(high),
      });
    });
  }
  return found;
}

for (const button of board.tHead.querySelectorAll("button")) button.addEventListener("click", () => sortBoard(button));
for (const id of ["find", "kind", "stage", "controls"]) byId(id)?.addEventListener("input", filterBoard);
byId("board-data").addEventListener("click", () => downloadText(`${DATA.name}-scoreboard.csv`, csv(boardData()), "text/csv"));
board.addEventListener("click", (event) => {
  const cell = event.target.closest("td[data-head], a[data-look]");
  if (!cell || !DATA.pictures) return;
  const method = cell.closest("tr").dataset.method;
  const button = cell.dataset.head === undefined ? null : board.tHead.rows[0].cells[cell.cellIndex];
  const definition = button?.dataset.definition;
  const name = button?.querySelector("button").textContent;
  const head = DATA.heads.findIndex((one) => one.name === name && one.definition === definition);
  event.preventDefault();
  lookAt(method, head);
});
filterBoard();
