// Charts of a study: each is plain data in a deflated block of its own; plotly.js is in another. A block is inflated, and its chart
// drawn, when it comes near the screen. Heat maps are SVG already.
(() => {
  let library;
  const loaded = () => (library ??= inflate("library").then((text) => {
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  }));

  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const places = [...document.querySelectorAll("[data-chart]")];

  function trace(chart, line, apart) {
    const number = line.colour % 28, color = style("--q" + number);
    const marks = line.published || chart.kind === "lines";
    return {
      type: "scatter", name: plain(line.name), x: line.x, y: line.y, showlegend: !apart,
      mode: line.published ? "markers" : marks ? "lines+markers" : "lines",
      line: { color, width: 1.8, dash: apart ? "solid" : style("--d" + number), shape: chart.kind === "cdf" ? "hv" : "linear" },
      marker: { color, size: line.published ? 11 : 5, symbol: line.published ? "x-thin-open" : "circle", line: { width: 2, color } },
      error_y: line.spans ? {
        type: "data", symmetric: false, arrayminus: line.spans.map((span) => span?.[0]), array: line.spans.map((span) => span?.[1]),
        thickness: 1, width: 3, color } : undefined,
    };
  }

  // An interval from two or three runs can be many times as long as what it belongs to. An axis shows one more of what the points span,
  // and nothing below zero where no point is: a longer interval is cut off.
  function limits(lines) {
    if (!lines.some((line) => line.spans)) return {};
    const points = lines.flatMap((line) => line.y).filter(Number.isFinite);
    const low = points.reduce((a, b) => Math.min(a, b), 0), high = points.reduce((a, b) => Math.max(a, b), 0);
    return { autorangeoptions: { clipmin: low < 0 ? low - (high - low) : 0, clipmax: high + (high - low) } };
  }

  function draw(chart, place) {
    const [ink, soft, rule, ground, card, other] = ["--ink", "--soft", "--line", "--ground", "--card", "--other"].map(style);
    const axis = (extra) => ({
      gridcolor: rule, linecolor: soft, zeroline: false, ticks: "outside", tickcolor: rule, ticklen: 4, ...extra,
    });
    const titled = (text) => ({ text: plain(text), font: { size: 13 }, standoff: 8 });
    const rangemode = chart.kind === "cdf" ? "normal" : "tozero";
    const all = {
      autosize: true, paper_bgcolor: ground, plot_bgcolor: ground,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft },
      hoverlabel: { bgcolor: card, bordercolor: rule, font: { color: ink } },
    };
    const head = { text: "<b>" + plain(chart.title) + "</b>", font: { size: 14, color: ink }, x: 0, xanchor: "left", xref: "paper" };
    const config = {
      displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
      toImageButtonOptions: { format: "svg", filename: "narrows" } };
    // A line and its published marks share a colour, and a panel where there are many.
    const colours = [...new Set(chart.lines.map((line) => line.colour))];
    if (colours.length > MOST_OVERLAID) {
      const panels = colours.map((colour) => {
        const lines = chart.lines.filter((line) => line.colour === colour);
        return { name: plain(lines[0].name), traces: lines.map((line) => trace(chart, line, true)) };
      });
      place.classList.add("wide");
      const grid = multiples(panels, {
        width: place.clientWidth, axis, x: { title: titled(chart.x) }, y: { rangemode, nticks: 4, ...limits(chart.lines) }, grey: other, ink,
      });
      const margin = { ...grid.layout.margin, t: 56 }, below = { text: plain(chart.y), font: { size: 12, color: soft } };
      Plotly.react(place, grid.data, { ...all, ...grid.layout, margin, height: grid.layout.height + 56, title: { ...head, subtitle: below, y: 0.99, yanchor: "top" } },
        place.clientWidth < 500 ? { ...config, displayModeBar: false } : config);
      return;
    }
    Plotly.react(place, chart.lines.map((line) => trace(chart, line, false)), {
      ...all, height: 380, margin: { l: 60, r: 12, t: 40, b: 50 }, title: head,
      legend: { orientation: "h", y: -0.2, yanchor: "top", font: { size: 12 } },
      xaxis: axis({ title: titled(chart.x), automargin: true }), yaxis: axis({ title: titled(chart.y), automargin: true, rangemode, ...limits(chart.lines) }),
    }, config);
  }

  async function show(place) {
    try {
      // Not `data`: the chart library keeps its own under that name.
      place.drawn ??= JSON.parse(await inflate("data" + place.dataset.chart));
      await loaded();
      draw(place.drawn, place);
    } catch (error) {
      element("failure").textContent = "The charts need a browser from 2023 or later (" + error.message + ").";
      element("failure").hidden = false;
    }
  }

  const seen = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
    if (!isIntersecting) return;
    seen.unobserve(target);
    show(target);
  }), { rootMargin: "600px" });
  places.forEach((place) => seen.observe(place));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => places.filter((place) => place.drawn).forEach(show));
  // Panels in rows depend on the width.
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) places.filter((place) => place.drawn && place.classList.contains("wide")).forEach(show);
    width = innerWidth;
  });
  // Paper shows everything.
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));
})();
