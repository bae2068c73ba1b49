// Charts of a study: each is plain data in a deflated block of its own; plotly.js is in another. Heat maps are SVG already.
(() => {
  let library;
  function load() {
    if (library) return;
    library = document.createElement("script");
    library.textContent = inflate("library");
    document.head.append(library);
  }

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const places = [...document.querySelectorAll("[data-chart]")];

  // A label's words and its unit: `bulk goodput, Mbit/s`.
  const parted = (label) => {
    const at = label.lastIndexOf(", ");
    return at < 0 ? [plain(label), ""] : [plain(label.slice(0, at)), " " + plain(label.slice(at + 2))];
  };

  // What a pointer on a line says: `fq_codel, hop.rate 10 Mbit/s: bulk goodput 8.4 Mbit/s`.
  function sentence(chart, line) {
    const [x, ofX] = parted(chart.x), [y, ofY] = parted(chart.y), name = line.name ? "<b>" + plain(line.name) + "</b>, " : "";
    // A label may be no more than a unit; then the title says what it is.
    const is = (words, unit, value) => (unit ? words + " " + value + unit : value + " " + words);
    const what = ofY ? is(y, ofY, "%{y:.4~g}") : within(plain(chart.title)) + " %{y:.4~g} " + y;
    return (chart.kind === "cdf" ? name + is(x, ofX, "at most %{x:.4~g}") + " for %{y:.1%}" : name + is(x, ofX, "%{x:.4~g}") + ": " + what) + "<extra></extra>";
  }

  function trace(chart, line, apart) {
    const number = line.colour % 28, color = style("--q" + number);
    const marks = line.published || chart.kind === "lines" || line.x.length < 2, dash = style("--d" + number);
    return {
      type: "scatter", name: plain(line.name), x: line.x, y: line.y, showlegend: !apart,
      mode: line.published ? "markers" : marks ? "lines+markers" : "lines",
      line: { color, width: 1.8, dash: apart ? "solid" : dash, shape: chart.kind === "cdf" ? "hv" : "linear" },
      marker: { color, size: line.published ? 11 : 5, symbol: line.published ? "x-thin-open" : SYMBOLS[dash] ?? "circle", line: { width: 2, color } },
      hovertemplate: sentence(chart, line),
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
    const traces = chart.lines.map((line) => trace(chart, line, false)), values = chart.lines.flatMap((line) => line.y);
    reveal(traces.filter((line) => line.mode !== "markers"), values.reduce((a, b) => Math.max(a, b), 0) - values.reduce((a, b) => Math.min(a, b), 0));
    const [x0, x1, y0, y1] = numbers(inAddress().get("chart" + place.dataset.chart));
    const zoom = y0 < y1 ? [{ range: [x0, x1] }, { range: [y0, y1], autorangeoptions: undefined }] : [{}, {}];
    Plotly.react(place, traces, {
      ...all, height: isOnPaper() ? 290 : 380, margin: { l: 60, r: 12, t: 40, b: 50 }, title: head,
      legend: { orientation: "h", y: -0.2, yanchor: "top", font: { size: 12 } },
      xaxis: axis({ title: titled(chart.x), automargin: true, ...zoom[0] }),
      yaxis: axis({ title: titled(chart.y), automargin: true, rangemode, ...limits(chart.lines), ...zoom[1] }),
    }, config);
    if (place.remembers) return;
    place.remembers = true;
    place.on("plotly_relayout", (event) => {
      const axes = Object.keys(event).filter((key) => /^[xy]axis\.(range|autorange)/.test(key));
      if (!axes.length) return;
      const { xaxis, yaxis } = place.layout, isWhole = axes.some((key) => key.endsWith("autorange"));
      toAddress({ ...Object.fromEntries(inAddress()), ["chart" + place.dataset.chart]: isWhole ? "" : [...xaxis.range, ...yaxis.range].map(short).join() });
    });
  }

  function show(place) {
    try {
      load();
      // Not `data`: the chart library keeps its own under that name.
      place.drawn = JSON.parse(inflate("data" + place.dataset.chart));
      draw(place.drawn, place);
    } catch (error) {
      element("failure").textContent = "The charts cannot be drawn in this browser (" + error.message + ").";
      element("failure").hidden = false;
    }
  }

  places.forEach((place) => whenItsTurnComes(place, () => show(place)));
  drawAtOnce();
  const drawn = () => places.filter((place) => place.drawn);
  redraws.push(() => drawn().forEach((place) => draw(place.drawn, place)));
  // An address leads to the first chart that it zooms.
  const zoomed = [...inAddress().keys()].map((key) => document.querySelector('[data-chart="' + CSS.escape(key.replace("chart", "")) + '"]')).find((place) => place);
  zoomed?.scrollIntoView();
  addEventListener("hashchange", redraw);
  // Panels in rows depend on the width.
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width && !isOnPaper()) drawn().filter((place) => place.classList.contains("wide")).forEach((place) => draw(place.drawn, place));
    width = innerWidth;
  });
})();
