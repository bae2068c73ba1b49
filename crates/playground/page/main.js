// @ts-check
/** The page: one scenario, perhaps a second queue beside it, and everything that is shown of them. */
import { choose, controls } from "./controls.js";
import { acknowledge, byId, download, el } from "./dom.js";
import { Complaint, ask, isNative } from "./engine.js";
import { readLink, writeLink } from "./link.js";
import { Player, SPEEDS } from "./player.js";
import { Stage } from "./stage.js";
import { Strips, gaugesOf, stripsOf } from "./strips.js";
import { span } from "./units.js";
import { inWords, moment } from "./words.js";

/** @typedef {import("./protocol").Catalogue} Catalogue */
/** @typedef {import("./protocol").Edit} Edit */
/** @typedef {import("./protocol").Played} Played */
/** @typedef {import("./protocol").ScenarioText} ScenarioText */

const SECOND = 1e9;
const POINTS = 250;
/** Pictures per second of a screen. */
const PICTURES = 60;
/** How often the moment is said in words, ms. */
const SAID = 2000;

const places = {
  scene: byId("scene", HTMLSelectElement),
  title: byId("title", HTMLElement),
  notes: byId("notes", HTMLElement),
  seats: byId("seats", HTMLElement),
  play: byId("play", HTMLButtonElement),
  speed: byId("speed", HTMLInputElement),
  speedSaid: byId("speed-said", HTMLElement),
  time: byId("time", HTMLElement),
  moment: byId("moment", HTMLElement),
  controls: byId("controls", HTMLElement),
  text: byId("text", HTMLTextAreaElement),
  fault: byId("fault", HTMLElement),
  versus: byId("versus", HTMLElement),
  step: byId("step", HTMLInputElement),
  gauge: byId("gauge", HTMLElement),
};

/** @type {Catalogue} */
let catalogue;
/** @type {ScenarioText[]} what is shown: the scenario, and perhaps the same with another queue */
let shown = [];
/** @type {Played[]} */
let played = [];
let versus = "";
let hop = 0;
let gauge = "";
/** @type {{ stage: Stage, strips: Strips, words: HTMLElement, name: HTMLElement, root: HTMLElement }[]} */
const seats = [];
let said = -Infinity;

const player = new Player(show, fail, () => {
  places.play.textContent = player.playing ? "Pause" : "Play";
  // While it plays, a reader of the screen is left in peace.
  places.moment.setAttribute("aria-live", player.playing ? "off" : "polite");
  if (!player.playing) say(true);
});

/** @type {import("./protocol").Frame[]} */
let frames = [];

/** @param {import("./protocol").Frame[]} now @param {number} elapsed */
function show(now, elapsed) {
  frames = now;
  now.forEach((frame, n) => {
    seats[n]?.stage.show(frame, elapsed);
    seats[n]?.strips.at(frame.now / SECOND);
  });
  places.time.textContent = `${clock(now[0].now)} of ${span(now[0].end / SECOND)}`;
  say(false);
}

/** A moment as a clock shows it, as fine as the speed asks for. @param {number} ns */
function clock(ns) {
  const digits = player.speed < 0.05 ? 6 : player.end < 2 * SECOND ? 4 : 2;
  return `${(ns / SECOND).toFixed(digits)} s`;
}

/** Says the moment in words, not too often. @param {boolean} now */
function say(now) {
  if (!frames.length || !shown.length || (!now && performance.now() - said < SAID)) return;
  said = performance.now();
  places.moment.textContent = moment(shown[0].outline, frames[0]);
}

/** @param {unknown} error */
function fail(error) {
  const line = error instanceof Complaint && error.line ? `line ${error.line}: ` : "";
  places.fault.textContent = line + (error instanceof Error ? error.message : String(error));
  places.fault.hidden = false;
  document.documentElement.dataset.state = "fault";
}

/** A place for one queue: its picture, its strips, its words. @param {number} n */
function seat(n) {
  const canvas = el("canvas", {
    class: "stage",
    role: "img",
    "aria-label": "the bottleneck in motion; it is described below in words",
  });
  const [name, words, strips] = [el("h2"), el("div", { "aria-live": "off" }), el("div", { class: "strips" })];
  const root = el("section", { class: "seat", "aria-label": `queue ${n + 1}` }, name, canvas, words, strips);
  const made = {
    stage: new Stage(canvas),
    strips: new Strips(strips, (s) => void player.seek(s * SECOND)),
    words,
    name,
    root,
  };
  made.stage.still = isStill();
  return made;
}

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Work that has come while other work is done: only the latest is done then. @type {(() => Promise<void>) | null} */
let next = null;
let working = false;

/** @param {() => Promise<void>} work */
async function latest(work) {
  next = work;
  if (working) return;
  working = true;
  while (next) {
    const now = next;
    next = null;
    try {
      await now();
      if (!next) document.documentElement.dataset.state = "ready";
    } catch (error) {
      fail(error);
    }
  }
  working = false;
}

/**
 * Shows a scenario, from a time on.
 * @param {ScenarioText} scenario
 * @param {number} at ns
 */
async function present(scenario, at) {
  const before = performance.now();
  const both = [scenario];
  if (versus)
    both.push(
      await ask({
        ask: "edit",
        text: scenario.text,
        edits: [{ table: { hop }, key: ["queue"], value: rival(scenario) }],
      }),
    );
  const results = await Promise.all(both.map(({ text }) => ask({ ask: "run", text, points: POINTS })));
  [shown, played] = [both, results];
  places.fault.hidden = true;
  while (seats.length > shown.length) seats.pop()?.root.remove();
  while (seats.length < shown.length) {
    seats.push(seat(seats.length));
    places.seats.append(seats[seats.length - 1].root);
  }
  places.seats.classList.toggle("two", shown.length > 1);
  shown.forEach(({ outline }, n) => {
    seats[n].stage.set(outline);
    seats[n].name.textContent = shown.length > 1 ? outline.hops[hop].queue.text : "";
    seats[n].words.replaceChildren(inWords(outline, played[n].summary));
  });
  drawStrips();
  furnish();
  await player.open(
    shown.map(({ text }) => text),
    Math.min(at, scenario.outline.duration),
  );
  performance.measure("change to picture", { start: before });
}

/** The other queue, with the same buffer if that is counted in packets. @param {ScenarioText} scenario */
function rival({ outline }) {
  const {
    kind,
    params: { limit },
  } = outline.hops[hop].queue;
  const param = (/** @type {string} */ name) =>
    catalogue.queues.find((one) => one.name === name)?.params.find((one) => one.name === "limit");
  const isSet = /^[\d.]+p$/.test(limit ?? "") && limit !== param(kind)?.default;
  return isSet && param(versus) ? `${versus}:limit=${limit}` : versus;
}

function drawStrips() {
  const strips = shown.map(({ outline }, n) => stripsOf(outline, played[n].series, gauge));
  /** @type {Record<string, number>} */
  const most = {};
  for (const strip of strips.flat()) most[strip.title] = Math.max(strip.most, most[strip.title] ?? 0);
  strips.forEach((strip, n) => seats[n].strips.set(strip, shown[n].outline.duration / SECOND, most));
}

/** Everything beside the pictures. */
function furnish() {
  const { text, outline } = shown[0];
  hop = Math.min(hop, outline.hops.length - 1);
  places.title.textContent = outline.name;
  document.title = `${outline.name} · Narrows`;
  places.notes.textContent = text
    .split("\n")
    .filter((line, n, all) => all.slice(0, n + 1).every((one) => one.startsWith("#")))
    .map((line) => line.slice(1).trim())
    .join(" ");
  if (document.activeElement !== places.text) places.text.value = text;
  controls(places.controls, { hop, catalogue, outline, change }, (other) => {
    hop = other;
    furnish();
  });
  const queues = [{ name: "", summary: "one queue only" }, ...catalogue.queues];
  places.versus.replaceChildren(
    choose("compare with", queues, versus, (name) => {
      versus = name;
      void latest(() => present(shown[0], player.now));
    }),
  );
  const gauges = gaugesOf(played.flatMap(({ series }) => series)).map((name) => ({ name }));
  places.gauge.replaceChildren(
    choose("what the queue thinks", [{ name: "" }, ...gauges], gauge, (name) => {
      gauge = name;
      drawStrips();
    }),
  );
}

/** @param {Edit[]} edits @param {boolean} [mayStep] whether they may hold from the present moment on */
function change(edits, mayStep = false) {
  const at = Number((player.now / SECOND).toFixed(3));
  const stepped = mayStep && places.step.checked && at > 0 ? edits.map((edit) => ({ ...edit, at })) : edits;
  void latest(async () => present(await ask({ ask: "edit", text: shown[0].text, edits: stepped }), player.now));
}

/** @param {string} text @param {number} [at] ns */
async function use(text, at = 0) {
  hop = 0;
  await latest(async () => {
    await present(await ask({ ask: "read", text }), at);
    // A full-sized packet for each picture: as fast as an eye can follow.
    setSpeed(Math.min(1, (packetTime() / SECOND) * PICTURES));
  });
}

/** Follows the address. */
async function follow() {
  try {
    const link = await readLink(location.hash);
    document.documentElement.classList.toggle("embed", link.embed);
    byId("whole", HTMLAnchorElement).href = location.href.replace(/[#&]embed\b/, "");
    versus = link.versus ?? "";
    const scene = catalogue.scenes.find(({ name }) => name === link.scene);
    if (link.scene && !scene)
      throw new Complaint(
        `there is no scene "${link.scene}"; there are: ${catalogue.scenes.map(({ name }) => name).join(", ")}`,
      );
    const own =
      isNative && !link.text && !scene
        ? await fetch("scenario.toml").then(
            (answer) => (answer.ok ? answer.text() : null),
            () => null,
          )
        : null;
    places.scene.value = scene?.name ?? (link.text || own ? "" : catalogue.scenes[0].name);
    await use(link.text ?? scene?.text ?? own ?? catalogue.scenes[0].text, (link.at ?? 0) * SECOND);
    if (!isStill() && !player.playing && document.documentElement.dataset.state === "ready") player.play(true);
  } catch (error) {
    fail(error);
    if (!shown.length) await use(catalogue.scenes[0].text);
  }
}

/** @param {number} speed */
function setSpeed(speed) {
  player.speed = Math.min(SPEEDS[1], Math.max(SPEEDS[0], speed));
  const share = Math.log(player.speed / SPEEDS[0]) / Math.log(SPEEDS[1] / SPEEDS[0]);
  places.speed.value = String(Math.round(share * 100));
  const words =
    player.speed >= 0.95 ? `${+player.speed.toPrecision(2)} × life` : `1/${Math.round(1 / player.speed)} of life`;
  places.speed.setAttribute("aria-valuetext", words);
  places.speedSaid.textContent = words;
}

/** The time of a full-sized packet on the link. */
const packetTime = () => 12e6 / Math.max(0.001, shown[0]?.outline.hops[hop].rate_mbit ?? 1);
const roundTrip = () => (shown[0]?.outline.groups[0]?.rtt_ms[0] ?? 10) * 1e6;

/** The pictures as they are, in one image. */
async function image() {
  const canvases = seats.flatMap(({ root }) => [...root.querySelectorAll("canvas")]);
  const width = Math.max(...canvases.map((canvas) => canvas.width));
  const sheet = el("canvas", { width, height: canvases.reduce((sum, canvas) => sum + canvas.height + 8, 0) });
  const pen = sheet.getContext("2d");
  if (!pen) return;
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, sheet.width, sheet.height);
  let y = 0;
  for (const canvas of canvases) {
    pen.drawImage(canvas, 0, y);
    y += canvas.height + 8;
  }
  sheet.toBlob((blob) => blob && download("narrows.png", blob));
}

function csv() {
  const lines = played.flatMap(({ series }, n) =>
    series.flatMap(({ source, metric, at, values }) =>
      at.map(
        (second, i) =>
          `${quoted(shown[n].outline.hops[hop].queue.text)},${quoted(source)},${metric},${second},${values[i]}`,
      ),
    ),
  );
  return `queue,source,metric,time_s,value\n${lines.join("\n")}\n`;
}

const quoted = (/** @type {string} */ text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** @param {HTMLButtonElement} button @param {string} text */
async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    acknowledge(button, "Copied");
  } catch {
    window.prompt("Copy this:", text);
  }
}

function listen() {
  const button = (/** @type {string} */ id, /** @type {(button: HTMLButtonElement) => void} */ act) => {
    const found = byId(id, HTMLButtonElement);
    found.addEventListener("click", () => act(found));
  };
  button("play", () => player.play(!player.playing));
  button("restart", () => void player.seek(0));
  button("packet", () => player.step(packetTime()));
  button("rtt", () => player.step(roundTrip()));
  button("link", async (self) => {
    const hash = await writeLink(shown[0].text, versus, player.now / SECOND);
    if (!isNative) history.replaceState(null, "", hash);
    // The native page's address is a secret of this machine.
    await copy(self, isNative ? hash : location.href);
  });
  button("command", (self) => void copy(self, `narrows run - --open <<'END'\n${shown[0].text.trimEnd()}\nEND\n`));
  button("summary", () =>
    download("summary.json", new Blob([JSON.stringify(played[0].summary, null, 2)], { type: "application/json" })),
  );
  button("csv", () => download("series.csv", new Blob([csv()], { type: "text/csv" })));
  button("png", () => void image());
  button("theme", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  places.speed.addEventListener("input", () =>
    setSpeed(SPEEDS[0] * (SPEEDS[1] / SPEEDS[0]) ** (Number(places.speed.value) / 100)),
  );
  places.scene.addEventListener("change", () => (location.hash = `scene=${places.scene.value}`));
  let typed = 0;
  places.text.addEventListener("input", () => {
    clearTimeout(typed);
    typed = window.setTimeout(
      () => void latest(async () => present(await ask({ ask: "read", text: places.text.value }), player.now)),
      400,
    );
  });
  window.addEventListener("hashchange", () => void follow());
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (target instanceof HTMLElement && target.closest("input, select, textarea, summary, button")) return;
    const keys = /** @type {Record<string, () => void>} */ ({
      " ": () => player.play(!player.playing),
      ArrowRight: () => player.step(event.shiftKey ? roundTrip() : packetTime()),
      Home: () => void player.seek(0),
      "+": () => setSpeed(player.speed * 2),
      "-": () => setSpeed(player.speed / 2),
    });
    if (keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });
}

function redraw() {
  if (!shown.length || !played.length) return;
  drawStrips();
  for (const { stage } of seats) stage.draw();
}

async function begin() {
  if (isStill()) player.most = 5;
  setSpeed(1);
  listen();
  catalogue = await ask({ ask: "catalogue" });
  const scenes = catalogue.scenes.map(({ name, text }) =>
    el("option", { value: name }, /^name = "(.*)"$/m.exec(text)?.[1] ?? name),
  );
  places.scene.replaceChildren(el("option", { value: "", disabled: true }, "your own"), ...scenes);
  await follow();
}

begin().catch(fail);
