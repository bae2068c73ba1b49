
// Sequence numbers over time, as tcptrace draws them.
function drawEvents(tools) {
  const { theme, layout, axis, title, config, paints } = tools;
  const events = JSON.parse(inflate("events"));
  const choice = element("events-flow"), chart = element("events-chart");
  choice.replaceChildren(...events.flows.map((flow, i) => new Option(flow.name, i)));
  element("events-choice").hidden = events.flows.length < 2;
  // An option is not broken at its hyphens.
  const words = (events.left_out ? events.left_out + "." : "").split(/(--[a-z-]+)/);
  element("events-note").replaceChildren(...words.map((part) => {
    if (!part.startsWith("--")) return part;
    const option = document.createElement("span");
    option.className = "whole";
    option.textContent = part;
    return option;
  }));
  const colour = (i) => (isDark() ? paints[i].dark : paints[i].light);

  // Each segment is an upright bar from its first byte to its last.
  const bars = (name, what, segments, color, width) => ({
    type: "scatter", mode: "lines", name, line: { color, width }, connectgaps: false,
    x: segments.at.flatMap((t) => [t, t, null]), y: segments.from.flatMap((from, i) => [from, from + segments.length[i], null]),
    hovertemplate: name + " at %{x:.6f} s: " + what + " %{y:,}<extra></extra>",
  });

  function draw() {
    const flow = events.flows[choice.value || 0], t = theme(), what = flow.is_stream ? "byte" : "datagram";
    // Seen from afar a bar is less than a pixel: a line through the first bytes stays visible.
    const line = {
      type: "scatter", mode: "lines", showlegend: false, hoverinfo: "skip", x: flow.sent.at, y: flow.sent.from, line: { color: colour(0), width: 1 }, opacity: 0.7,
    };
    const again = {
      type: "scatter", mode: "markers", showlegend: false, hoverinfo: "skip", x: flow.resent.at, y: flow.resent.from,
      marker: { symbol: "triangle-up", size: 8, color: colour(3) },
    };
    const data = [line, bars("sent", what, flow.sent, colour(0), 2), again, bars("sent again", what, flow.resent, colour(3), 3)];
    if (flow.acknowledged.at.length) data.push({
      type: "scatter", mode: "lines", name: "acknowledged", x: flow.acknowledged.at, y: flow.acknowledged.next,
      line: { color: colour(2), width: 1.2, shape: "hv" }, hovertemplate: "acknowledged at %{x:.6f} s: up to " + what + " %{y:,}<extra></extra>",
    });
    data.push({
      type: "scatter", mode: "markers", name: "dropped", x: flow.dropped.at, y: flow.dropped.from, text: flow.dropped.why.map(plain),
      marker: { symbol: "x", size: 8, color: colour(1) }, hovertemplate: "sent at %{x:.6f} s, dropped (%{text}): " + what + " %{y:,}<extra></extra>",
    });
    Plotly.react(chart, data.filter((trace) => trace.x.length), layout(460, {
      hovermode: "closest", showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", font: { size: 12.5, color: t.ink } },
      margin: { l: 70, r: 12, t: 34, b: 48 }, uirevision: "events" + choice.value,
      xaxis: axis({ title: title("time (s)", 8) }),
      yaxis: axis({ title: title(flow.is_stream ? "sequence number (bytes)" : "datagram (number)", 8), rangemode: "tozero", tickformat: "~s" }),
    }), chart.clientWidth < 500 ? { ...config, displayModeBar: false } : config);
  }

  choice.onchange = draw;
  redraws.push(draw);
  element("events-section").hidden = false;
  draw();
}
