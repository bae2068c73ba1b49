// @ts-check
/** The whole run below the picture: a strip for each quantity, with the moment that is shown. What is yet to come is pale. */
import { el, sharp } from "./dom.js";
import { colourOf, paints } from "./paint.js";

/** @typedef {import("./protocol").Outline} Outline */
/** @typedef {import("./protocol").Line} Line */
/** @typedef {{ name: string, colour: string, line: Line, dash: number[] }} Drawn */
/** @typedef {{ title: string, unit: string, lines: Drawn[], most: number }} Strip */

/** Gauges that say most about what a queue thinks; of a queue that has none of them, the first one is shown. */
const TELLING = ["limit_packets", "tokens_bytes", "base_probability", "drop_probability", "probability", "count"];
/** Gauges that only repeat what the picture shows. */
const PLAIN = ["throughput_mbit", "sojourn_ms", "drops_per_s", "flows"];
/** Shares of the canvas. */
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 8, 22, 16];

/**
 * The strips of a run.
 * @param {Outline} outline
 * @param {Line[]} series
 * @param {string} gauge of the queue that is shown, if it has it
 * @returns {Strip[]}
 */
export function stripsOf(outline, series, gauge) {
  const colours = paints();
  const flowOf = new Map(outline.flows.map(([name], flow) => [name, flow]));
  /** @param {string} metric @param {(line: Line, flow: number) => Line} [made] */
  const perFlow = (metric, made = (line) => line) =>
    series.flatMap((line) => {
      const flow =
        line.metric === metric && line.source.startsWith("flow:") ? flowOf.get(line.source.slice(5)) : undefined;
      if (flow === undefined) return [];
      return [
        { name: outline.flows[flow][0], colour: colourOf(outline, colours, flow), line: made(line, flow), dash: [] },
      ];
    });
  const base = (/** @type {number} */ flow) => outline.groups[outline.flows[flow][1]].rtt_ms[0];
  const above = (/** @type {number} */ share) => (/** @type {Line} */ line, /** @type {number} */ flow) => ({
    ...line,
    values: line.values.map((value) => Math.max(0, value - share * base(flow))),
  });
  const hops = new Set(outline.groups.flatMap((group) => group.route));
  const queues = series.filter(
    (line) => line.metric === "sojourn_ms" && [...hops].some((hop) => line.source === `hop:${outline.hops[hop].name}`),
  );
  const delay = queues.map((line, n) => ({
    name: `in ${line.source.slice(4)}`,
    colour: colours.muted,
    line,
    dash: n ? [3, 3] : [],
  }));
  const gauges = gaugesOf(series);
  const chosen = gauges.includes(gauge) ? gauge : (TELLING.find((name) => gauges.includes(name)) ?? gauges[0]);
  const think = series
    .filter((line) => line.source.startsWith("hop:") && line.metric === chosen)
    .slice(0, 16)
    .map((line) => {
      const name = line.source.split("/flow:")[1];
      const flow = name === undefined ? undefined : flowOf.get(name);
      const colour = flow === undefined ? colours.ink : colourOf(outline, colours, flow);
      return { name: name ?? line.source.slice(4), colour, line, dash: /** @type {number[]} */ ([]) };
    });
  const subflows = series.flatMap((line) => {
    const [name, subflow] = line.source.replace("flow:", "").split("/");
    const dash = line.metric === "sent_mbit" ? [4, 3] : line.metric === "throughput_mbit" ? [] : null;
    if (!subflow || dash === null || !flowOf.has(name)) return [];
    const colour = colours.flows[(Number(subflow) + 1) % colours.flows.length];
    return [{ name: `${name}, subflow ${subflow}`, colour, line, dash }];
  });
  const verdict = perFlow("verdict");
  return [
    {
      title: "Delay that queues add",
      unit: "ms",
      lines: [...delay, ...perFlow("rtt_ms", above(1)), ...perFlow("one_way_ms", above(0.5))],
    },
    { title: "Throughput", unit: "Mbit/s", lines: perFlow("throughput_mbit") },
    { title: "Window", unit: "packets", lines: perFlow("cwnd_packets") },
    { title: `State of the queue: ${chosen?.replaceAll("_", " ")}`, unit: "", lines: think },
    { title: "Subflows: sent (dashed) and delivered", unit: "Mbit/s", lines: subflows },
    { title: "What the sender believes (1: a queue of its own, −1: a shared one)", unit: "", lines: verdict },
  ].flatMap((strip) => {
    const most = strip.lines.reduce((so, { line }) => line.values.reduce((a, b) => Math.max(a, b), so), 0);
    return strip.lines.length ? [{ ...strip, most }] : [];
  });
}

/** The gauges of the queues. @param {Line[]} series */
export function gaugesOf(series) {
  const all = series.filter((line) => line.source.startsWith("hop:") && !PLAIN.includes(line.metric));
  return [...new Set(all.map((line) => line.metric))];
}

export class Strips {
  /** @type {Strip[]} */
  #strips = [];
  #duration = 1;

  /**
   * @param {HTMLElement} place
   * @param {(seconds: number) => void} seek
   */
  constructor(place, seek) {
    this.place = place;
    this.seek = seek;
  }

  /**
   * @param {Strip[]} strips
   * @param {number} duration s
   * @param {Record<string, number>} most the largest value of each strip, if another run has the same scale
   */
  set(strips, duration, most) {
    this.#strips = strips.map((strip) => ({ ...strip, most: Math.max(strip.most, most[strip.title] ?? 0) }));
    this.#duration = duration;
    while (this.place.children.length > strips.length) this.place.lastChild?.remove();
    while (this.place.children.length < strips.length) this.place.append(this.#canvas());
    strips.forEach((strip, n) => this.place.children[n].setAttribute("aria-label", described(strip)));
    this.draw();
  }

  #canvas() {
    const canvas = el("canvas");
    const seek = (/** @type {PointerEvent} */ event) => {
      const width = canvas.clientWidth - LEFT - RIGHT;
      this.seek(Math.max(0, Math.min(1, (event.offsetX - LEFT) / width)) * this.#duration);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      seek(event);
    });
    canvas.addEventListener("pointermove", (event) => event.buttons && seek(event));
    // The veil lies over what is yet to come: it moves, and the strip is not drawn again.
    return el("div", { class: "strip", role: "img" }, canvas, el("i", { class: "veil" }));
  }

  /** @param {number} seconds */
  at(seconds) {
    this.place.style.setProperty("--now", (seconds / this.#duration).toFixed(5));
  }

  draw() {
    const colours = paints();
    this.#strips.forEach((strip, n) => {
      const canvas = this.place.children[n].firstChild;
      if (canvas instanceof HTMLCanvasElement) this.#strip(canvas, strip, colours);
    });
  }

  /** @param {HTMLCanvasElement} canvas @param {Strip} strip @param {import("./paint.js").Paints} colours */
  #strip(canvas, strip, colours) {
    const { pen, width, height } = sharp(canvas);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const most = round(strip.most || 1);
    const least = strip.lines.some(({ line }) => line.values.some((value) => value < 0)) ? -most : 0;
    const x = (/** @type {number} */ s) => LEFT + (s / this.#duration) * (width - LEFT - RIGHT);
    const y = (/** @type {number} */ v) =>
      height - BOTTOM - ((Math.min(v, most) - least) / (most - least)) * (height - TOP - BOTTOM);
    pen.fillStyle = colours.ink;
    pen.textAlign = "left";
    pen.fillText(strip.unit ? `${strip.title}, ${strip.unit}` : strip.title, 2, 9);
    pen.fillStyle = colours.muted;
    pen.textAlign = "right";
    pen.fillText(short(most), LEFT - 6, y(most) + 4);
    pen.fillText(short(least), LEFT - 6, y(least));
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.strokeRect(LEFT + 0.5, y(most) + 0.5, width - LEFT - RIGHT - 1, y(least) - y(most) - 1);
    pen.textAlign = "center";
    for (const second of ticks(this.#duration))
      pen.fillText(`${+second.toPrecision(6)} s`, Math.min(width - 14, x(second)), height - 6);
    for (const { line, colour, dash } of strip.lines) {
      pen.strokeStyle = colour;
      pen.lineWidth = 1.5;
      pen.setLineDash(dash);
      pen.beginPath();
      line.at.forEach((second, n) => pen.lineTo(x(second), y(line.values[n])));
      pen.stroke();
    }
    pen.setLineDash([]);
  }
}

/** For a reader of the screen. @param {Strip} strip */
function described(strip) {
  const each = strip.lines.slice(0, 8).map(({ name, line }) => {
    const mean = line.values.reduce((a, b) => a + b, 0) / Math.max(1, line.values.length);
    return `${name}: mean ${short(mean)}, highest ${short(line.values.reduce((a, b) => Math.max(a, b), 0))}`;
  });
  return `${strip.title}${strip.unit && ` in ${strip.unit}`}. ${each.join("; ")}`;
}

/** @param {number} value */
function short(value) {
  return Math.abs(value) >= 10_000 ? `${+(value / 1000).toPrecision(3)}k` : `${+value.toPrecision(3)}`;
}

/** The next round number. @param {number} value */
function round(value) {
  const scale = 10 ** Math.floor(Math.log10(value));
  return ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((n) => n * scale >= value) ?? 10) * scale;
}

/** @param {number} duration */
function ticks(duration) {
  const step = round(duration / 6);
  return Array.from({ length: Math.floor(duration / step) }, (_, n) => (n + 1) * step);
}
