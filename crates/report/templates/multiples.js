
// Small multiples: a panel for each line, or group of lines, on shared axes; in each panel the others are grey.
const MOST_OVERLAID = 5;

// What marks have instead of dashes.
const SYMBOLS = { solid: "circle", "7px,4px": "square", "2px,3px": "diamond", "12px,5px": "triangle-up" };

// At most n points of a line; the extremes of each stretch stay.
function thinned(x, y, n) {
  if (x.length <= n) return [x, y];
  const xs = [], ys = [], step = (2 * x.length) / n;
  for (let from = 0; from < x.length; from += step) {
    let low = Math.floor(from), high = low;
    for (let i = low; i < Math.min(x.length, from + step); i++) {
      if (y[i] < y[low]) low = i;
      if (y[i] > y[high]) high = i;
    }
    for (const i of low <= high ? [low, high] : [high, low]) { xs.push(x[i]); ys.push(y[i]); }
  }
  return [xs, ys];
}

// Traces and layout for panels: [{ name, traces }]. `axis` makes an axis from its properties; `x` and `y` are those of all panels.
function multiples(panels, { width, axis, x, y, grey, ink }) {
  const left = 50, right = 14, gap = 24, above = 4, name = 22, between = 10, below = 44;
  const longest = Math.max(...panels.map((panel) => panel.name.length));
  const inner = Math.max(120, width - left - right);
  const columns = Math.max(1, Math.min(isOnPaper() ? 6 : 4, panels.length, Math.floor((inner + gap) / (Math.max(isOnPaper() ? 120 : 140, longest * 7.2) + gap))));
  const rows = Math.ceil(panels.length / columns);
  // On paper two charts fit on a sheet, unless they have more than three rows.
  const high = isOnPaper() ? Math.max(50, Math.min(104, (252 - between * (rows - 1)) / rows - name)) : 104;
  const wide = (inner - gap * (columns - 1)) / columns, tall = rows * (name + high) + between * (rows - 1);
  const number = (i) => (i === 0 ? "" : String(i + 1));
  const data = [], layout = { annotations: [], margin: { l: left, r: right, t: above, b: below }, height: tall + above + below };
  const grown = panels.map((panel) => panel.traces.filter((trace) => !trace.band).map((trace) => thinned(trace.x, trace.y, 240)));
  panels.forEach((panel, i) => {
    const row = Math.floor(i / columns), column = i % columns, isLowest = i + columns >= panels.length;
    const [xaxis, yaxis] = ["x" + number(i), "y" + number(i)];
    const top = row * (name + high + between) + name, x0 = column * (wide + gap);
    layout["xaxis" + number(i)] = axis({
      ...x, domain: [x0 / inner, (x0 + wide) / inner], anchor: yaxis, matches: i ? "x" : undefined, showticklabels: isLowest, nticks: 5,
      title: isLowest && column === 0 ? x.title : undefined,
    });
    layout["yaxis" + number(i)] = axis({
      ...y, domain: [1 - (top + high) / tall, 1 - top / tall], anchor: xaxis, matches: i ? "y" : undefined, showticklabels: column === 0, nticks: 4,
    });
    layout.annotations.push({
      text: panel.name, x: x0 / inner, y: 1 - top / tall, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false,
      font: { size: 12.5, color: ink },
    });
    const xs = [], ys = [];
    grown.forEach((lines, j) => {
      if (j !== i) lines.forEach(([lx, ly]) => { xs.push(...lx, null); ys.push(...ly, null); });
    });
    const shape = panel.traces[0]?.line.shape;
    data.push({ type: "scatter", mode: "lines", x: xs, y: ys, xaxis, yaxis, hoverinfo: "skip", showlegend: false, line: { color: grey, width: 0.8, shape } });
    data.push(...panel.traces.map((trace) => ({ ...trace, xaxis, yaxis })));
  });
  return { data, layout };
}

// The parts of a chart, each a block of the page; a part is drawn when its turn comes, and again when `draw` changes.
function parts(container, keys, draw) {
  const have = [...container.children];
  if (have.map((part) => part.dataset.key).join("\n") !== keys.join("\n")) {
    have.forEach((part) => { near.unobserve(part); waiting.delete(part); });
    container.replaceChildren(...keys.map((key) => {
      const part = document.createElement("div");
      part.dataset.key = key;
      part.className = "part";
      return part;
    }));
  }
  for (const part of container.children) {
    const now = () => { part.isDrawn = true; draw(part.dataset.key, part); };
    if (part.isDrawn) now();
    else whenItsTurnComes(part, now);
  }
}

// Lines on top of each other would hide all but the last. Of n of them the k-th is dashed so that each colour shows in turn, and has
// smaller marks. `reach` and `width`: the lengths of the y axis and, where the lines do not share their x, of the x axis.
function reveal(traces, reach, width = 0) {
  const together = [];
  for (const trace of traces) {
    if (trace.band || !trace.y.length) continue;
    const first = together.find(([other]) => coincide(other, trace, CLOSE * reach, CLOSE * width));
    if (first) first.push(trace);
    else together.push([trace]);
  }
  for (const same of together.filter((same) => same.length > 1)) {
    same.forEach((trace, k) => {
      trace.line = { ...trace.line, dash: k ? 9 * (same.length - k) + "px," + 9 * k + "px" : "solid" };
      if (trace.marker) trace.marker = { ...trace.marker, size: trace.marker.size + 4 * (same.length - 1 - k) };
    });
  }
}

// Lines at most this far apart, as a share of an axis, cannot be told apart.
const CLOSE = 0.004;
const coincide = (a, b, room, aside) => a.y.length === b.y.length
  && a.y.every((y, i) => Math.abs(y - b.y[i]) <= room && (a.x === b.x || Math.abs(a.x[i] - b.x[i]) <= aside));

// A hexadecimal colour with an opacity.
const translucent = (colour, share) => colour + Math.round(255 * share).toString(16).padStart(2, "0");
