
// What both kinds of pages share: light and dark, paper, the state in the address, tables that sort and copy, charts drawn in turn.
const root = document.documentElement;
const dimmed = matchMedia("(prefers-color-scheme: dark)");
let paper = false;
const isDark = () => !paper && (root.dataset.theme ? root.dataset.theme === "dark" : dimmed.matches);
// The width of a sheet of paper on its side, whose charts have less room for each panel.
const isOnPaper = () => paper;

// Whatever has to be drawn again when the theme changes, or for paper.
const redraws = [];
const redraw = () => redraws.forEach((draw) => draw());

element("theme-choice").hidden = false;
element("theme").value = root.dataset.theme ?? "";
element("theme").addEventListener("change", (event) => {
  root.dataset.theme = event.target.value;
  try { localStorage.setItem("narrows-theme", event.target.value); } catch { /* A browser may refuse to remember. */ }
  redraw();
});
dimmed.addEventListener("change", redraw);

// --- charts are drawn in turn: the first at once, then those near the screen, the others while nothing else happens --------

const waiting = new Set();
const near = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
  if (isIntersecting) drawWaiting(target);
}), { rootMargin: "500px" });

function drawWaiting(place) {
  near.unobserve(place);
  if (waiting.delete(place)) place.draw();
}

function whenItsTurnComes(place, draw) {
  place.draw = draw;
  if (!waiting.size) setTimeout(drawNext);
  waiting.add(place);
  near.observe(place);
}

function drawNext() {
  const [place] = waiting;
  if (!place) return;
  drawWaiting(place);
  setTimeout(drawNext);
}

// As many as a second or two allow are drawn before the page counts as loaded.
function drawAtOnce() {
  const start = performance.now();
  for (const place of [...waiting]) if (performance.now() - start < 1500) drawWaiting(place);
}

// Paper shows everything but the fine print: all charts in the width of a sheet, and tables that are folded.
const unfolded = new Set();
addEventListener("beforeprint", () => {
  paper = true;
  root.classList.add("paper");
  for (const part of document.querySelectorAll("section:not(.fine) details:not([open])")) { part.open = true; unfolded.add(part); }
  // A table wider than the sheet would make everything smaller.
  for (const scroll of document.querySelectorAll(".scroll")) scroll.firstElementChild.style.zoom = Math.min(1, scroll.clientWidth / scroll.scrollWidth);
  [...waiting].forEach(drawWaiting);
  redraw();
});
addEventListener("afterprint", () => {
  paper = false;
  root.classList.remove("paper");
  unfolded.forEach((part) => { part.open = false; });
  unfolded.clear();
  for (const scroll of document.querySelectorAll(".scroll")) scroll.firstElementChild.style.zoom = "";
  redraw();
});

// --- the state in the address: `#hop=up&zoom=2,5`; what is not in it has its default --------------------------------------

const inAddress = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

function toAddress(state) {
  const text = new URLSearchParams(Object.entries(state).filter(([, value]) => value)).toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
  if (text === location.hash.slice(1) || (!text && !location.hash.includes("="))) return;
  try { history.replaceState(null, "", "#" + text); } catch { /* A browser may refuse on a file. */ }
}

const numbers = (text) => (text ?? "").split(",").map(Number).filter(Number.isFinite);
// Few digits, so that an address stays short.
const short = (value) => String(+value.toPrecision(6));

async function copy(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1500);
}

function smallButton(label, press) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small";
  button.textContent = label;
  button.addEventListener("click", () => press(button));
  return button;
}

// --- tables: sorted by a click on a column's head, copied, and wider than a small screen ---------------------------------

const UNITS = { us: 1e-6, ms: 1e-3, s: 1, min: 60, bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9, B: 1, KB: 1e3, MB: 1e6, p: 1, bdp: 1, "%": 1, x: 1 };

// Digits in groups of three have narrow spaces between them; a dash stands for no figure.
const plainCell = (cell) => cell.textContent.replaceAll("\u202f", "").replace(/\s+/g, " ").trim().replace(/^–$/, "");

function amountOf(text) {
  const [, number, unit] = /^[<≤]?\s*([-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*([a-zA-Z%]*)/.exec(text) ?? [];
  return number === undefined || (unit && !(unit in UNITS)) ? undefined : Number(number.replace("−", "-")) * (UNITS[unit] ?? 1);
}

function sort(table, column, direction) {
  const body = table.tBodies[0], rows = [...body.rows];
  rows.forEach((row, i) => { row.dataset.place ??= i; });
  const texts = new Map(rows.map((row) => [row, plainCell(row.cells[column])]));
  const known = rows.filter((row) => texts.get(row));
  const isNumeric = known.every((row) => amountOf(texts.get(row)) !== undefined);
  const compare = (a, b) => (isNumeric ? amountOf(texts.get(a)) - amountOf(texts.get(b)) : texts.get(a).localeCompare(texts.get(b), "en", { numeric: true }));
  const places = (a, b) => a.dataset.place - b.dataset.place;
  // What has no figure stays at the end.
  const lacks = (row) => (texts.get(row) ? 0 : 1);
  rows.sort((a, b) => (direction ? lacks(a) - lacks(b) || direction * (lacks(a) ? 0 : compare(a, b)) : 0) || places(a, b));
  body.append(...rows);
  table.classList.toggle("sorted", direction !== 0);
  [...table.tHead.rows[0].cells].forEach((head, i) => head.setAttribute("aria-sort", i !== column || !direction ? "none" : direction > 0 ? "ascending" : "descending"));
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sorter";
    button.title = "Sort";
    button.append(...head.childNodes);
    if (!button.textContent.trim()) button.setAttribute("aria-label", "Column " + (column + 1));
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      sort(table, column, now === "none" ? 1 : now === "ascending" ? -1 : 0);
    });
  });
}

// The table in rows of texts; an interval has a column of its own.
function cellsOf(table) {
  const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows];
  const columns = heads.map((head, i) => {
    const small = head.querySelector("small"), which = small?.textContent.trim() ?? "";
    const name = head.textContent.trim().slice(0, which ? -which.length : undefined).trim();
    const cells = rows.map((row) => plainCell(row.cells[i]));
    const isPair = cells.some((cell) => /^[-\d.]+ ?± ?[\d.]+$/.test(cell));
    const title = name + (which ? " (" + which + ")" : "");
    const parts = cells.map((cell) => (isPair ? cell.split("±").map((part) => part.trim()) : [cell]));
    return isPair ? [[title, ...parts.map((p) => p[0])], [title + " ±", ...parts.map((p) => p[1] ?? "")]] : [[title, ...parts.map((p) => p[0])]];
  }).flat();
  return columns[0].map((_, row) => columns.map((column) => column[row]));
}

const asTsv = (rows) => rows.map((row) => row.map((cell) => cell.replace(/[\t\n]/g, " ")).join("\t")).join("\n") + "\n";
const asCsv = (rows) => rows.map((row) => row.map((cell) => (/[",\n]/.test(cell) ? '"' + cell.replaceAll('"', '""') + '"' : cell)).join(",")).join("\r\n") + "\r\n";

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length > 1) makeSortable(table);
  const tools = document.createElement("div"), hint = document.createElement("span"), scroll = table.closest(".scroll");
  tools.className = "tools";
  hint.className = "hint";
  hint.textContent = "More columns: scroll the table sideways →";
  tools.append(hint, "Copy as", smallButton("TSV", (button) => copy(asTsv(cellsOf(table)), button)), smallButton("CSV", (button) => copy(asCsv(cellsOf(table)), button)));
  scroll.before(tools);
}

// What is wider than its place can be scrolled with the keyboard, too, and says so.
const fits = new ResizeObserver((entries) => entries.forEach(({ target }) => showWhetherCut(target.closest(".scroll"))));
function showWhetherCut(scroll) {
  const isCut = scroll.scrollWidth > scroll.clientWidth + 1, hint = scroll.previousElementSibling?.querySelector?.(".hint");
  scroll.classList.toggle("cut", isCut && scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1);
  if (hint) hint.hidden = !isCut;
  if (isCut) {
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Wide table, scrolls sideways");
  } else ["tabindex", "role", "aria-label"].forEach((name) => scroll.removeAttribute(name));
}
for (const scroll of document.querySelectorAll(".scroll")) {
  fits.observe(scroll);
  scroll.addEventListener("scroll", () => showWhetherCut(scroll), { passive: true });
}

// --- words ---------------------------------------------------------------------------------------------------------------

// The chart library reads a little markup in its texts.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
// A title within a sentence: `Throughput` becomes `throughput`, `RTT` stays.
const within = (title) => (/^[A-Z][a-z]/.test(title) ? title[0].toLowerCase() + title.slice(1) : title);
