// @ts-check
/** The lanes of a hop: one, one for each flow, or two; of classes those of each leaf's queue, and the tree that joins them. */

/** @typedef {import("./protocol").Outline} Outline */
/** @typedef {import("./protocol").Lanes} Kind */
/** @typedef {{ kind: Kind, first: number, count: number, flows: Map<number, number>, label: string, leaf: number }} Bed the lanes of one queue */
/** @typedef {{ beds: Bed[], count: number, of: (flow: number, lowLatency: boolean) => number }} Lanes */

/** Lanes of a queue at most; further flows share the last one. */
const MOST = 40;
/** Width of a level of the tree, and most of it as a share of the queue's, px. */
const [LEVEL, SHARE] = [22, 0.35];

/**
 * The lanes of a hop.
 * @param {Outline} outline
 * @param {number} hop
 * @returns {Lanes}
 */
export function lanesOf(outline, hop) {
  const spec = outline.hops[hop];
  const crossing = outline.flows.flatMap(([, group], flow) =>
    outline.groups[group].route.includes(hop) ? [{ flow, leaf: spec.class_of[group] ?? 0 }] : [],
  );
  const leaves = spec.classes.flatMap(({ name, rate, ceil, leaf }, n) =>
    leaf
      ? [{ kind: leaf[1], label: `${name}: ${leaf[0]}, ${rate === ceil ? rate : `${rate} to ${ceil}`}`, leaf: n }]
      : [],
  );
  const queues = leaves.length ? leaves : [{ kind: spec.lanes, label: "", leaf: 0 }];
  const most = Math.max(1, Math.floor(MOST / queues.length));
  let first = 0;
  const beds = queues.map(({ kind, label, leaf }) => {
    const own = crossing.filter((one) => leaves.length === 0 || one.leaf === leaf);
    const lanes = kind === "flows" ? Math.min(own.length, most) : kind === "ecn" ? 2 : 1;
    const bed = { kind, label, leaf, first, count: Math.max(1, lanes), flows: new Map() };
    if (kind === "flows") own.forEach(({ flow }, n) => bed.flows.set(flow, first + Math.min(n, bed.count - 1)));
    first += bed.count;
    return bed;
  });
  const bedOf = new Map(crossing.map(({ flow, leaf }) => [flow, beds.find((bed) => bed.leaf === leaf) ?? beds[0]]));
  /** @param {number} flow @param {boolean} lowLatency */
  const of = (flow, lowLatency) => {
    const bed = bedOf.get(flow) ?? beds[0];
    if (bed.kind === "flows") return bed.flows.get(flow) ?? bed.first + bed.count - 1;
    return bed.kind === "ecn" && !lowLatency ? bed.first + 1 : bed.first;
  };
  return { beds, count: first, of };
}

/** How far each class is from the link. @param {import("./protocol").Class[]} classes */
function depths(classes) {
  /** @type {number[]} */
  const all = [];
  for (const { parent } of classes) all.push(parent === null ? 1 : all[parent] + 1);
  return all;
}

/** The width of a hop's tree. @param {Outline} outline @param {number} hop @param {number} room */
export function treeWidth(outline, hop, room) {
  const { classes } = outline.hops[hop];
  return classes.length ? Math.min(LEVEL * Math.max(...depths(classes)), room * SHARE) : 0;
}

/**
 * Draws the tree from the leaves' lanes to the link: a line from each class to its parent.
 * @param {CanvasRenderingContext2D} pen
 * @param {Outline} outline
 * @param {number} hop
 * @param {{ lanes: Lanes, head: number, width: number, middle: number, y: (lane: number) => number }} place
 * @param {import("./paint.js").Paints} colours
 */
export function drawTree(pen, outline, hop, { lanes, head, width, middle, y }, colours) {
  const { classes } = outline.hops[hop];
  const depth = depths(classes);
  const deepest = Math.max(...depth);
  /** @type {number[][]} the heights of the leaves below each class */
  const below = classes.map(() => []);
  for (const { leaf, first, count } of lanes.beds) {
    const height = (y(first) + y(first + count - 1)) / 2;
    for (let at = /** @type {number | null} */ (leaf); at !== null; at = classes[at].parent) below[at].push(height);
  }
  const x = (/** @type {number} */ n) =>
    classes[n].leaf ? head : head + (width * (deepest - depth[n] + 0.5)) / deepest;
  const height = (/** @type {number} */ n) => (Math.min(...below[n]) + Math.max(...below[n])) / 2;
  pen.strokeStyle = colours.muted;
  pen.lineWidth = 1.5;
  classes.forEach(({ parent }, n) => {
    const [fromX, fromY] = [x(n), height(n)];
    const [toX, toY] = parent === null ? [head + width, middle] : [x(parent), height(parent)];
    pen.beginPath();
    pen.moveTo(fromX, fromY);
    pen.bezierCurveTo((fromX + toX) / 2, fromY, (fromX + toX) / 2, toY, toX, toY);
    pen.stroke();
  });
  pen.textAlign = "center";
  classes.forEach(({ leaf, name }, n) => {
    if (leaf) return;
    pen.fillStyle = colours.muted;
    pen.beginPath();
    pen.arc(x(n), height(n), 3, 0, 7);
    pen.fill();
    // A name that is wider than its level stays away.
    if (pen.measureText(name).width > 2.2 * (width / deepest)) return;
    pen.lineWidth = 3;
    pen.strokeStyle = colours.ground;
    pen.strokeText(name, x(n), height(n) + 13);
    pen.fillText(name, x(n), height(n) + 13);
  });
  pen.textAlign = "left";
}
