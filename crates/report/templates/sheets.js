// Charts of a study: each is plain data in the deflated block above; plotly.js is in the other one. Heat maps are SVG already.
(async () => {
  let charts;
  try {
    charts = JSON.parse(await inflate("data"));
    if (charts.every((chart) => chart.kind === "heat")) return;
    const library = document.createElement("script");
    library.textContent = await inflate("library");
    document.head.append(library);
  } catch (error) {
    element("failure").textContent = "The charts need a browser from 2023 or later (" + error.message + ").";
    element("failure").hidden = false;
    return;
  }

  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function trace(chart, line) {
    const color = style("--q" + (line.colour % 28));
    const marks = line.published || chart.kind === "lines";
    return {
      type: "scatter", name: plain(line.name), x: line.x, y: line.y,
      mode: line.published ? "markers" : marks ? "lines+markers" : "lines",
      line: { color, width: 1.8, shape: chart.kind === "cdf" ? "hv" : "linear" },
      marker: { color, size: line.published ? 11 : 5, symbol: line.published ? "x-thin-open" : "circle", line: { width: 2, color } },
      error_y: line.spans ? {
        type: "data", symmetric: false, arrayminus: line.spans.map((span) => span[0]), array: line.spans.map((span) => span[1]),
        thickness: 1, width: 3, color } : undefined,
    };
  }

  function draw() {
    const [ink, soft, rule, ground, card] = ["--ink", "--soft", "--line", "--ground", "--card"].map(style);
    const axis = (text, extra) => ({
      title: { text: plain(text), font: { size: 13 }, standoff: 8 }, gridcolor: rule, linecolor: soft, zeroline: false,
      ticks: "outside", tickcolor: rule, ticklen: 4, automargin: true, ...extra,
    });
    charts.forEach((chart, n) => {
      if (chart.kind === "heat") return;
      Plotly.react("chart" + n, chart.lines.map((line) => trace(chart, line)), {
        height: 380, autosize: true, margin: { l: 60, r: 12, t: 40, b: 50 }, paper_bgcolor: ground, plot_bgcolor: ground,
        title: { text: "<b>" + plain(chart.title) + "</b>", font: { size: 14, color: ink }, x: 0, xanchor: "left", xref: "paper" },
        font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft },
        hoverlabel: { bgcolor: card, bordercolor: rule, font: { color: ink } },
        legend: { orientation: "h", y: -0.2, yanchor: "top", font: { size: 12 } },
        xaxis: axis(chart.x), yaxis: axis(chart.y, { rangemode: chart.kind === "cdf" ? "normal" : "tozero" }),
      }, {
        displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
        toImageButtonOptions: { format: "svg", filename: "narrows" } });
    });
  }

  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
