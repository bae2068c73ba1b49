// @ts-check
/**
 * The bottleneck in motion: senders at the left, a row for each hop with its queue, its link and the way behind it, receivers at the
 * right, and the way back at the bottom.
 */
import { sharp } from "./dom.js";
import { drawTree, lanesOf, treeWidth } from "./lanes.js";
import { colourOf, paints } from "./paint.js";
import { rate, span } from "./units.js";

/** @typedef {import("./protocol").Frame} Frame */
/** @typedef {import("./protocol").Outline} Outline */
/** @typedef {{ rows: number[], left: number, right: number, gate: number, tall: number, bottom: number }} Plan */
/** @typedef {{ x: number, y: number, vx: number, colour: string, reason: string, age: number }} Falling */

const FORWARD = 1;
const MARKED = 4;
const RESENT = 8;
const L4S = 16;
const [QUEUE, LINK, PROPAGATION] = [0, 1, 2];
const WHOLE = 10_000;
/** Packets that a link with a mechanism has at once are a block of columns, this many of them drawn. */
const [COLUMNS, BLOCK] = [6, 30];
/** Between the lanes of two classes, px. */
const BETWEEN = 6;
/** How long a dropped packet falls, s of the viewer's time. */
const FALL = 0.9;
/** Tallest lane, and largest packet, px. */
const [TALLEST, LARGEST] = [40, 14];
/** Labels of senders at most. */
const LABELS = 12;

/** Words for the reasons of drops. */
const REASONS = /** @type {Record<string, string>} */ ({
  queue_full: "full",
  flow_limit: "flow's limit",
  memory_limit: "memory full",
  evicted: "evicted",
  aqm: "dropped early",
  policed: "policed",
  unclassified: "refused",
  link_loss: "lost",
  corrupted: "corrupted",
  delay_line: "no room behind",
  superseded: "replaced",
});

export class Stage {
  /** @type {Outline | null} */
  outline = null;
  /** @type {Frame | null} */
  frame = null;
  /** @type {Falling[]} */
  #falling = [];
  still = false;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
  }

  /** @param {Outline} outline */
  set(outline) {
    this.outline = outline;
    this.frame = null;
    this.#falling = [];
    const rows = this.#rows();
    const most = Math.max(...rows.map((hop) => lanesOf(outline, hop).count), Math.min(outline.flows.length, LABELS));
    const height = 54 + rows.length * Math.max(rows.length > 1 ? 110 : 130, Math.min(270, 40 + most * 34));
    this.canvas.style.setProperty("--height", `${height}px`);
  }

  /**
   * @param {Frame} frame
   * @param {number} elapsed s since the last picture
   */
  show(frame, elapsed) {
    this.frame = frame;
    if (!this.still) this.#drop(frame);
    for (const one of this.#falling) one.age += elapsed;
    this.#falling = this.#falling.filter((one) => one.age < FALL);
    this.draw();
  }

  /** Hops that data crosses, in a row each. */
  #rows() {
    const routes = this.outline?.groups.flatMap((group) => group.route) ?? [];
    return [...new Set(routes)].sort((a, b) => a - b).slice(0, 4);
  }

  /** @param {number} width @param {number} height @returns {Plan} */
  #plan(width, height) {
    const rows = this.#rows();
    const left = Math.min(150, width * 0.2);
    const right = width - Math.min(110, width * 0.16);
    const gate = left + (right - left) * 0.52;
    const foot = 34;
    const tall = (height - foot) / Math.max(1, rows.length);
    return { rows, left, right, gate, tall, bottom: height - foot / 2 };
  }

  draw() {
    const { outline, frame } = this;
    const { pen, width, height } = sharp(this.canvas);
    pen.clearRect(0, 0, width, height);
    if (!outline || !frame) return;
    const colours = paints();
    const plan = this.#plan(width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.#ways(pen, plan, colours, width);
    plan.rows.forEach((hop, row) => this.#row(pen, plan, colours, hop, row, frame));
    this.#returning(pen, plan, colours, frame);
    this.#senders(pen, plan, colours, frame);
    this.#receivers(pen, plan, colours);
    this.#drops(pen, colours);
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Plan} plan
   * @param {import("./paint.js").Paints} colours
   * @param {number} width
   */
  #ways(pen, plan, colours, width) {
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(plan.right, plan.bottom);
    pen.lineTo(plan.left * 0.5, plan.bottom);
    pen.stroke();
    pen.fillStyle = colours.muted;
    pen.textAlign = "right";
    pen.fillText("acknowledgments", Math.min(width - 6, plan.right + 100), plan.bottom + 1);
  }

  /** Where the lanes of a row are: their heights, and the height of each one's middle. @param {Plan} plan @param {number} hop @param {number} row */
  #lanes(plan, hop, row) {
    const outline = /** @type {Outline} */ (this.outline);
    const lanes = lanesOf(outline, hop);
    const [top, titled] = [row * plan.tall, 22];
    const tail = plan.left + 10;
    const tree = treeWidth(outline, hop, plan.gate - 6 - tail);
    const head = plan.gate - 6 - tree;
    const zone = plan.tall - titled - 16;
    const between = BETWEEN * (lanes.beds.length - 1);
    const lane = Math.min(TALLEST, (zone - between) / lanes.count);
    const first = top + titled + (zone - between - lane * lanes.count) / 2;
    const bedOf = (/** @type {number} */ n) => lanes.beds.findLastIndex((bed) => bed.first <= n);
    const y = (/** @type {number} */ n) => first + (n + 0.5) * lane + BETWEEN * bedOf(n);
    return { lanes, lane, first, middle: top + titled + zone / 2, head, tail, tree, y };
  }

  /**
   * One hop: lanes, gate, way.
   * @param {CanvasRenderingContext2D} pen
   * @param {Plan} plan
   * @param {import("./paint.js").Paints} colours
   * @param {number} hop
   * @param {number} row
   * @param {Frame} frame
   */
  #row(pen, plan, colours, hop, row, frame) {
    const outline = /** @type {Outline} */ (this.outline);
    const { lanes, lane, first, middle, head, tail, tree, y } = this.#lanes(plan, hop, row);
    const { beds, count } = lanes;
    const top = row * plan.tall;
    const spec = outline.hops[hop];
    const state = frame.hops[hop];

    pen.fillStyle = colours.muted;
    pen.textAlign = "left";
    const delay = state.rate_mbit > 0 ? ` · ${span((state.bytes * 8) / state.rate_mbit / 1e6)}` : "";
    const queue = spec.classes.length ? `${spec.classes.length} classes` : spec.queue.kind;
    const title = `${spec.name}: ${queue}, ${state.packets} waiting${delay}`;
    pen.fillText(cut(pen, title, plan.right - tail), tail, top + 12);
    pen.textAlign = "right";
    const mean = spec.steps.length && !spec.mechanism ? "" : " on average";
    const fits = pen.measureText(rate(state.rate_mbit) + mean).width < plan.right - plan.gate - 16;
    pen.fillText(rate(state.rate_mbit) + (fits ? mean : ""), plan.right - 4, middle + 20);
    pen.textAlign = "left";
    pen.fillStyle = colours.lane;
    for (let i = 0; i < count; i++) {
      const gap = lane > 6 ? 1.5 : 0.5;
      round(pen, tail, y(i) - lane / 2 + gap, head - tail, Math.max(1, lane - 2 * gap), Math.min(4, lane / 4));
    }
    pen.fillStyle = colours.muted;
    for (const bed of beds) {
      const labels = bed.kind === "ecn" ? ["low latency", "classic"] : [];
      if (bed.label) labels[0] = bed.kind === "ecn" ? `${bed.label}, ${labels[0]}` : bed.label;
      labels.forEach((label, n) => pen.fillText(cut(pen, label, head - tail - 12), tail + 6, y(bed.first + n)));
    }
    if (tree) drawTree(pen, outline, hop, { lanes, head, width: tree, middle, y }, colours);
    // The link: narrow where it is slow.
    pen.strokeStyle = colours.muted;
    pen.lineWidth = 1.5;
    const mouth = 9;
    const funnel = tree ? [middle - mouth, middle + mouth] : [first, first + lane * count];
    pen.beginPath();
    pen.moveTo(plan.gate - 4, funnel[0]);
    pen.lineTo(plan.gate + 8, middle - mouth);
    pen.lineTo(plan.right, middle - mouth);
    pen.moveTo(plan.gate - 4, funnel[1]);
    pen.lineTo(plan.gate + 8, middle + mouth);
    pen.lineTo(plan.right, middle + mouth);
    pen.stroke();

    /** @type {{ flow: number, flags: number, since: number }[][]} */
    const queued = Array.from({ length: count }, () => []);
    const { packets } = frame;
    const size = Math.min(LARGEST, Math.max(3, lane - 4));
    // On the way they are as far apart as full-sized packets are, at this rate.
    const apart =
      ((plan.right - plan.gate - 10) * 12e-3) / Math.max(1e-6, state.rate_mbit * Math.max(state.delay_ms, 0.001));
    const under = Math.max(1.5, Math.min(size, 12, apart - 1));
    let block = 0;
    for (let i = 0; i < packets.length; i += 5) {
      const flow = packets[i];
      const flags = packets[i + 1];
      const at = packets[i + 2];
      const place = packets[i + 3];
      const far = packets[i + 4];
      if (at !== hop || !(flags & FORWARD)) continue;
      if (place === QUEUE) {
        queued[lanes.of(flow, (flags & L4S) > 0)].push({ flow, flags, since: far });
      } else if (place === LINK && spec.mechanism) {
        const [column, line] = [block % COLUMNS, Math.floor(block / COLUMNS)];
        if (block++ < BLOCK) {
          this.#packet(pen, plan.gate + 8 - column * 3.5, middle + (line - 2) * 3.5, 3, flow, flags, colours);
        }
      } else if (place === LINK || place === PROPAGATION) {
        const [from, to] = place === LINK ? [plan.gate - 8, plan.gate + 10] : [plan.gate + 10, plan.right];
        this.#packet(pen, from + ((to - from) * far) / WHOLE, middle, Math.min(size, 12), flow, flags, colours, under);
      }
    }
    queued.forEach((waiting, n) => {
      waiting.sort((a, b) => b.since - a.since);
      // A limit that the queue has set itself is a line in the lane.
      const bed = beds.find(({ first: from, count: many }) => n >= from && n < from + many);
      const owner = bed && [...bed.flows].find(([, at]) => at === n)?.[0];
      const own = state.flow_gauges.find(([of, name]) => of === owner && name === "limit_packets")?.[2];
      const limit =
        own ?? (bed?.kind === "one" ? (state.gauges.find(([name]) => name === "limit_packets")?.[1] ?? 0) : 0);
      const step = Math.min(size + 1.5, (head - tail - size) / Math.max(1, waiting.length, limit));
      if (limit && lane > 12) {
        pen.fillStyle = colours.ink;
        pen.fillRect(head - limit * step - 2, y(n) - lane / 2 + 2, 2, lane - 4);
      }
      // From the tail on, so that the head is on top.
      for (let i = waiting.length - 1; i >= 0; i--) {
        const { flow, flags } = waiting[i];
        this.#packet(pen, head - size / 2 - i * step, y(n), size, flow, flags, colours, Math.max(step - 0.5, 1));
      }
    });
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {number} x @param {number} y @param {number} size @param {number} flow @param {number} flags
   * @param {import("./paint.js").Paints} colours
   * @param {number} [wide]
   */
  #packet(pen, x, y, size, flow, flags, colours, wide = size) {
    const width = Math.min(size, wide);
    pen.fillStyle = colourOf(/** @type {Outline} */ (this.outline), colours, flow);
    if (size < 5 || width < 3) pen.fillRect(x - width / 2, y - size / 2, width, size);
    else round(pen, x - width / 2, y - size / 2, width, size, 2);
    if (flags & RESENT && size > 5) {
      pen.fillStyle = colours.ground;
      pen.fillRect(x - 1.2, y - 1.2, 2.4, 2.4);
    }
    if (flags & MARKED) {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 1;
      pen.strokeRect(x - width / 2 - 1, y - size / 2 - 1, width + 2, size + 2);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Plan} plan
   * @param {import("./paint.js").Paints} colours
   * @param {Frame} frame
   */
  #returning(pen, plan, colours, frame) {
    const { packets } = frame;
    const [from, to] = [plan.right, plan.left * 0.5];
    for (let i = 0; i < packets.length; i += 5) {
      const flow = packets[i];
      const flags = packets[i + 1];
      const place = packets[i + 3];
      const far = packets[i + 4];
      if (flags & FORWARD && place <= PROPAGATION) continue;
      // An acknowledgment in a queue of its own way is drawn where that way begins.
      const share = place > PROPAGATION ? far / WHOLE : 0.02;
      pen.fillStyle = colourOf(/** @type {Outline} */ (this.outline), colours, flow);
      pen.beginPath();
      pen.arc(from + (to - from) * share, plan.bottom, 2.2, 0, 7);
      pen.fill();
    }
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Plan} plan
   * @param {import("./paint.js").Paints} colours
   * @param {Frame} frame
   */
  #senders(pen, plan, colours, frame) {
    const outline = /** @type {Outline} */ (this.outline);
    const many = outline.flows.length > LABELS;
    /** @type {[string, number][]} a name and the flow whose colour and window it has */
    const labels = many
      ? outline.groups
          .slice(0, LABELS)
          .map((group, n) => [
            group.count > 1 ? `${group.count} × ${group.name}` : group.name,
            outline.flows.findIndex((flow) => flow[1] === n),
          ])
      : outline.flows.map(([name], flow) => [name, flow]);
    const gap = Math.min(40, (plan.rows.length * plan.tall - 24) / Math.max(1, labels.length));
    const top = 22 + (plan.rows.length * plan.tall - 24 - gap * labels.length) / 2;
    labels.forEach(([name, flow], n) => {
      const y = top + gap * (n + 0.5);
      pen.fillStyle = colourOf(outline, colours, Math.max(0, flow));
      round(pen, 6, y - 5, 10, 10, 2);
      pen.fillStyle = colours.ink;
      pen.textAlign = "left";
      pen.fillText(cut(pen, name, plan.left - 30), 22, gap > 26 ? y - 6 : y);
      const sender = frame.senders[flow];
      if (gap > 26 && sender?.[0] != null) {
        pen.fillStyle = colours.muted;
        pen.fillText(cut(pen, `window ${Math.round(sender[0])}`, plan.left - 30), 22, y + 9);
      }
    });
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Plan} plan
   * @param {import("./paint.js").Paints} colours
   */
  #receivers(pen, plan, colours) {
    pen.strokeStyle = colours.muted;
    pen.beginPath();
    pen.moveTo(plan.right + 4, 24);
    pen.lineTo(plan.right + 4, plan.rows.length * plan.tall - 8);
    pen.stroke();
    pen.fillStyle = colours.muted;
    pen.textAlign = "left";
    if (plan.left > 100) pen.fillText("receivers", plan.right + 10, (plan.rows.length * plan.tall) / 2 + 8);
  }

  /** Packets that were dropped begin to fall. @param {Frame} frame */
  #drop(frame) {
    const { width, height } = sharp(this.canvas);
    const plan = this.#plan(width, height);
    const colours = paints();
    for (const [flow, hop, reason] of frame.drops.slice(-40)) {
      const row = plan.rows.indexOf(hop);
      if (row < 0 || !this.outline) continue;
      const { lanes, y: middleOf } = this.#lanes(plan, hop, row);
      const early = reason === "aqm" || reason === "evicted";
      const x = ["link_loss", "corrupted", "delay_line"].includes(reason)
        ? plan.gate + 30
        : early
          ? plan.gate - 20
          : plan.left + 14;
      const y = middleOf(lanes.of(flow, true));
      const jitter = ((frame.now / 1e3 + flow * 7 + this.#falling.length * 13) % 10) - 5;
      this.#falling.push({
        x: x + jitter,
        y,
        vx: jitter * 3,
        colour: colourOf(this.outline, colours, flow),
        reason,
        age: 0,
      });
    }
    if (this.#falling.length > 120) this.#falling.splice(0, this.#falling.length - 120);
  }

  /** @param {CanvasRenderingContext2D} pen @param {import("./paint.js").Paints} colours */
  #drops(pen, colours) {
    let labelled = "";
    for (const one of [...this.#falling].reverse()) {
      const share = one.age / FALL;
      pen.globalAlpha = 1 - share;
      const [x, y] = [one.x + one.vx * share, one.y + 70 * share * share + 14 * share];
      pen.fillStyle = one.colour;
      pen.fillRect(x - 4, y - 4, 8, 8);
      pen.strokeStyle = colours.bad;
      pen.lineWidth = 1.5;
      pen.strokeRect(x - 5, y - 5, 10, 10);
      if (labelled !== one.reason && share < 0.8) {
        labelled = one.reason;
        pen.fillStyle = colours.bad;
        pen.textAlign = "left";
        pen.fillText(REASONS[one.reason] ?? one.reason, x + 10, y + 2);
      }
    }
    pen.globalAlpha = 1;
  }
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x @param {number} y @param {number} width @param {number} height @param {number} radius
 */
function round(pen, x, y, width, height, radius) {
  pen.beginPath();
  pen.roundRect(x, y, width, height, radius);
  pen.fill();
}

/** @param {CanvasRenderingContext2D} pen @param {string} text @param {number} width */
function cut(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  while (text.length > 1 && pen.measureText(`${text}…`).width > width) text = text.slice(0, -1);
  return `${text}…`;
}
