// @ts-check
/** Colours of the theme, for canvases. The style sheet has them. */

/** @typedef {import("./protocol").Outline} Outline */
/** @typedef {{ flows: string[], ink: string, muted: string, line: string, lane: string, ground: string, bad: string }} Paints */

const FLOWS = 7;

const scheme = matchMedia("(prefers-color-scheme: dark)");
/** @type {{ theme: string, paints: Paints } | null} */
let last = null;

/** The colours of the present theme. They are asked for with every picture, and read when the theme changes. @returns {Paints} */
export function paints() {
  const theme = document.documentElement.dataset.theme ?? String(scheme.matches);
  if (last?.theme !== theme) last = { theme, paints: read() };
  return last.paints;
}

/** @returns {Paints} */
function read() {
  // A canvas takes no light-dark(), so an element says which of the two it is.
  const sample = document.body.appendChild(document.createElement("i"));
  const of = (/** @type {string} */ name) => {
    sample.style.color = `var(--${name})`;
    return getComputedStyle(sample).color;
  };
  const flows = Array.from({ length: FLOWS }, (_, i) => of(`flow-${i}`));
  const all = {
    flows,
    ink: of("ink"),
    muted: of("muted"),
    line: of("line"),
    lane: of("lane"),
    ground: of("ground"),
    bad: of("bad"),
  };
  sample.remove();
  return all;
}

/**
 * The colour of a flow: its own among a few flows, its group's among many.
 * @param {Outline} outline
 * @param {Paints} colours
 * @param {number} flow
 * @returns {string}
 */
export function colourOf(outline, colours, flow) {
  const own = outline.count <= FLOWS ? flow : (outline.flows[flow]?.[1] ?? 0);
  return colours.flows[own % FLOWS];
}
