// Charts of the report. Everything that is drawn comes from the two deflated blocks above: the series and plotly.js.
(() => {
  const coarse = matchMedia("(pointer: coarse)");

  let data;
  try {
    data = JSON.parse(inflate("data"));
    if (!data.lines.length && !data.curves.length) return;
    const library = document.createElement("script");
    library.textContent = inflate("library");
    document.head.append(library);
  } catch (error) {
    element("failure").textContent = "The charts cannot be drawn in this browser (" + error.message + ").";
    element("failure").hidden = false;
    return;
  }

  // Several runs are shown as their mean, with the range around it.
  const mean = [...data.lines, ...data.curves].find((line) => line.band)?.r;
  const usual = { hop: data.hops[data.focus], flow: "all", run: mean ?? 0, view: "apart", log: wide() };
  const state = { ...usual, hidden: new Set(), alone: null };
  let zoom = null;

  const titled = (panel) => "<b>" + plain(panel.title) + "</b>" + (panel.unit ? "  " + plain(panel.unit) : "");
  const theme = () => {
    const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    return { ink: of("--ink"), soft: of("--soft"), line: of("--line"), other: of("--other"), ground: of("--ground"), card: of("--card") };
  };

  // Of several hops each has queues of its own, and the flows that cross it.
  const several = data.hops.length > 1;
  const here = () => data.hops.indexOf(state.hop);
  const isHere = (thing) => !several || !thing.at || thing.at.includes(here());
  const labelOf = (group) => (several ? group.at[here()] : group.label);

  // What has a colour of its own: groups, or the flows of a single group laid over each other.
  function entities() {
    const each = state.flow === "each" && data.groups.length === 1;
    return each
      ? shownFlows().map((f, i) => ({ key: f.id, label: f.label, paint: data.paints[i % data.paints.length] }))
      : data.groups.map((g, i) => ({ key: "group-" + i, label: labelOf(g), paint: g.paint }));
  }

  const shownFlows = () => data.flows.filter((f) => f.id.startsWith("flow:") && isHere(f));
  const memberDash = (index) => data.paints[(7 * Math.max(0, index)) % data.paints.length].dash;

  // What belongs to no single flow while flows have the colours: grey.
  const whole = (g) => ({ key: "whole", label: labelOf(data.groups[g]), paint: data.paints[6] });

  // More lines than colours tell apart have a panel each.
  const apart = () => state.view === "apart" && entities().length > MOST_OVERLAID;

  // Whose lines a chart shows. Single flows have no mean over runs: the first run stands for them.
  function isShown(line, panel) {
    const run = state.run === mean && (state.flow === "each" || state.flow.startsWith("flow:")) && line.s.startsWith("flow:") ? 0 : state.run;
    if (line.r !== run || line.m !== panel.metric) return false;
    const together = state.flow === "all";
    if (panel.hop && (together || !panel.flow)) return line.s === "hop:" + state.hop;
    return isHere(line) && (state.flow === "each" ? line.s.startsWith("flow:") : line.s === state.flow);
  }

  // Whose a line is, in the user's own words.
  function subject(line) {
    if (line.s.startsWith("hop:")) return several || data.groups.length === 1 ? line.s.slice(4) : "";
    if (line.s !== "all") return line.s.slice(line.s.indexOf(":") + 1);
    return data.groups.length > 1 ? "" : data.only ?? "all flows";
  }

  // What a pointer on a line over time says: `bulk: throughput 8.4 Mbit/s`, with the time before it where no axis shows it.
  const sentence = (panel, time) => "<b>%{fullData.name}</b>" + time + ": " + plain(within(panel.title)) + " %{y:.4~g} " + plain(panel.unit);
  // The same of a distribution.
  const sentenceOfShare = (panel) => "<b>%{fullData.name}</b>: " + plain(within(panel.title)) + " at most %{x:.4~g} " + plain(panel.unit) + " for %{y:.1%}";

  function traces(lines, panel, axes, shape) {
    const found = lines.filter((line) => isShown(line, panel));
    const byKey = new Map(entities().map((e) => [e.key, e]));
    const many = found.length > data.groups.length;
    const members = state.flow === "each" && data.groups.length > 1 ? shownFlows() : [];
    return found.flatMap((line) => {
      const entity = byKey.get(line.s) ?? byKey.get("group-" + line.g) ?? whole(line.g);
      if (!entity || state.hidden.has(entity.key)) return [];
      const flow = line.s.startsWith("flow:") ? line.s.slice(5) : "";
      // A group has one colour; its flows differ by their dashes, if there are several groups. A panel of one line needs none.
      const dash = members.length && flow ? memberDash(members.findIndex((f) => f.id === line.s)) : apart() ? "solid" : entity.paint.dash;
      const of = subject(line), name = data.groups.length === 1 ? of || entity.label : entity.label + (of ? " · " + of : "");
      const color = isDark() ? entity.paint.dark : entity.paint.light, x = data.xs[line.x];
      const edge = { type: "scatter", mode: "lines", band: true, hoverinfo: "skip", showlegend: false, ...axes, x, line: { width: 0, shape } };
      const band = line.band ? [{ ...edge, y: line.band[0] }, { ...edge, y: line.band[1], fill: "tonexty", fillcolor: translucent(color, 0.22) }] : [];
      return [...band, {
        type: "scatter", mode: "lines", name: plain(name), key: entity.key, showlegend: false, ...axes,
        x, y: line.y, opacity: many ? 0.75 : 1, line: { color, dash, width: many ? 1.1 : 1.6, shape },
      }].map((trace) => ({ ...trace, key: entity.key }));
    });
  }

  const config = {
    displaylogo: false, responsive: true, doubleClick: "reset",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    toImageButtonOptions: { format: "svg", filename: "narrows" },
  };

  function layout(height, extra) {
    const t = theme();
    return {
      height, autosize: true, margin: { l: 56, r: 20, t: 30, b: 44 },
      paper_bgcolor: t.ground, plot_bgcolor: t.ground,
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: t.soft },
      hoverlabel: { bgcolor: t.card, bordercolor: t.line, font: { color: t.ink, size: 12.5 } },
      hovermode: "x unified", dragmode: coarse.matches ? false : "zoom", showlegend: false, uirevision: "keep",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: t.soft, activecolor: t.ink },
      ...extra,
    };
  }

  function axis(extra) {
    const t = theme();
    return {
      gridcolor: t.line, linecolor: t.soft, zeroline: false, ticks: "outside", tickcolor: t.line, ticklen: 4,
      tickfont: { size: 12 }, automargin: false, ...extra,
    };
  }

  const title = (text, standoff) => ({ text, standoff, font: { size: 13 } });

  function heading(text, x, y, xref = "paper") {
    return {
      text, x, y, xref, yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, yshift: 3,
      font: { size: 13, color: theme().ink },
    };
  }

  // --- over time: charts below each other on one time axis -----------------------------------------------------------

  const known = data.series.filter((panel) => data.lines.some((line) => line.m === panel.metric));
  state.panels = new Set(known.filter((panel) => panel.first).map((panel) => panel.metric));
  if (!state.panels.size) known.forEach((panel) => state.panels.add(panel.metric));
  const suffix = (i) => (i === 0 ? "" : String(i + 1));
  const zero = (metric) => !metric.endsWith("rtt_ms");

  function domains(panels) {
    const gap = 0.26 / panels.length, height = (1 - gap * (panels.length - 1)) / panels.length;
    return panels.map((_, i) => [1 - i * (height + gap) - height, 1 - i * (height + gap)].map((v) => Math.max(0, Math.min(1, v))));
  }

  // The largest and smallest value between two times; drawing wants some room around them.
  function fit(lines, panel, from, to) {
    let low = Infinity, high = -Infinity;
    for (const line of lines) {
      line.y.forEach((y, i) => {
        if (line.x[i] >= from && line.x[i] <= to) { low = Math.min(low, y); high = Math.max(high, y); }
      });
    }
    if (low > high) return undefined;
    if (zero(panel.metric)) low = Math.min(0, low);
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    return [zero(panel.metric) && low === 0 ? 0 : low - room, high + room];
  }

  // A chart without a line at this hop, or of these flows, is left out.
  const hasLines = (lines, panel) => lines.some((line) => isShown(line, panel));

  function drawSeries() {
    if (!known.length) { element("series").closest("section").hidden = true; return; }
    const chosen = known.filter((panel) => state.panels.has(panel.metric)), there = chosen.filter((panel) => hasLines(data.lines, panel));
    const panels = there.length ? there : chosen;
    if (apart()) parts(element("series"), panels.map((panel) => panel.metric), (metric, part) => drawApart(panels.find((p) => p.metric === metric), part));
    else parts(element("series"), ["together"], (_, part) => drawTogether(panels, part));
  }

  // A quantity over time, each line in a panel of its own.
  function drawApart(panel, part) {
    const [from, to] = zoom ?? [0, data.duration];
    const mine = traces(data.lines, panel, {}, "linear"), range = fit(mine, panel, from, to);
    for (const line of mine) if (!line.band) line.hovertemplate = sentence(panel, ", %{x:.4~g} s") + "<extra></extra>";
    const x = { range: [from, to], title: title("time (s)", 4), hoverformat: ".4~g" };
    drawPanels(part, panel, mine, x, { range, autorange: !range, fixedrange: true, hoverformat: ".4~g" }, { uirevision: "apart" });
    followZoom(part.lastElementChild);
  }

  // A titled block with a panel for each shown entity.
  function drawPanels(part, panel, mine, x, y, extra) {
    if (!part.firstChild) {
      const head = document.createElement("h3"), about = document.createElement("p");
      head.textContent = panel.title + (panel.unit ? " (" + panel.unit + ")" : "");
      about.className = "note";
      about.textContent = panel.about;
      part.append(head, about, document.createElement("div"));
    }
    const shown = entities().filter((entity) => !state.hidden.has(entity.key));
    const panels = shown.map((entity) => ({ name: plain(entity.label), traces: mine.filter((trace) => trace.key === entity.key) }));
    const t = theme(), chart = part.lastElementChild;
    const grid = multiples(panels.filter((p) => p.traces.length), { width: part.clientWidth, axis, x, y, grey: t.other, ink: t.ink });
    Plotly.react(chart, grid.data, { ...layout(grid.layout.height, { hovermode: "closest", hoverdistance: -1, ...extra }), ...grid.layout }, part.clientWidth < 500 ? { ...config, displayModeBar: false } : config);
  }

  // All quantities over time below each other, with all lines in each.
  function drawTogether(panels, part) {
    const t = theme(), where = domains(panels), all = [], tall = isOnPaper() ? Math.max(110, Math.min(178, 560 / panels.length)) : 178;
    const [from, to] = zoom ?? [0, data.duration];
    const extra = { annotations: [], shapes: [] };
    panels.forEach((panel, i) => {
      const mine = traces(data.lines, panel, { xaxis: "x", yaxis: "y" + suffix(i) }, "linear");
      all.push(...mine);
      const range = fit(mine, panel, from, to);
      for (const line of mine) if (!line.band) line.hovertemplate = sentence(panel, "") + "<extra></extra>";
      if (range) reveal(mine, range[1] - range[0]);
      extra["yaxis" + suffix(i)] = axis({ domain: where[i], fixedrange: true, nticks: 5, range, autorange: !range, hoverformat: ".4~g" });
      extra.annotations.push({ ...heading(titled(panel), 0, where[i][1]), hovertext: panel.about, captureevents: true });
      if (data.warmup > 0) {
        const at = { xref: "x", yref: "paper", x0: data.warmup, x1: data.warmup, y0: where[i][0], y1: where[i][1] };
        extra.shapes.push({ type: "line", ...at, line: { color: t.soft, width: 1, dash: "dash" }, layer: "below" });
      }
      const hop = data.hops.indexOf(state.hop);
      if (panel.metric === "throughput_mbit" && data.capacity[hop]?.length && mine.length) {
        const steps = data.capacity[hop];
        all.push({
          type: "scatter", mode: "lines", name: "link rate", showlegend: false, hoverinfo: "skip", xaxis: "x", yaxis: "y" + suffix(i),
          x: [...steps.map((s) => s[0]), data.duration], y: [...steps.map((s) => s[1]), steps.at(-1)[1]],
          line: { color: t.soft, width: 1, dash: "dot", shape: "hv" },
        });
      }
    });
    extra.xaxis = axis({
      range: [from, to], anchor: "y" + suffix(panels.length - 1), title: title("time (s)", 8), hoverformat: ".4~g", ticksuffix: " s", showticksuffix: "last",
      showspikes: true, spikemode: "across", spikesnap: "cursor", spikethickness: 1, spikecolor: t.soft, spikedash: "solid",
    });
    if (!part.firstChild) part.append(document.createElement("div"));
    Plotly.react(part.firstChild, all, layout(74 + tall * panels.length, extra), config);
    followZoom(part.firstChild);
  }

  function followZoom(chart) {
    if (chart.follows) return;
    chart.follows = true;
    chart.on("plotly_relayout", (event) => {
      // Of axes that match each other, any may be named.
      const axis = Object.keys(event).map((key) => /^xaxis\d*/.exec(key)?.[0]).find((name) => name);
      if (!axis) return;
      if (axis + ".range[0]" in event) zoom = [event[axis + ".range[0]"], event[axis + ".range[1]"]];
      else if (axis + ".range" in event) zoom = event[axis + ".range"];
      else if (event[axis + ".autorange"]) zoom = null;
      else return;
      zoom &&= [Math.max(0, zoom[0]), Math.min(data.duration, zoom[1])];
      drawSeries();
      remember();
    });
    chart.on("plotly_doubleclick", () => { zoom = null; drawSeries(); remember(); });
  }

  // --- distributions: side by side where there is room ---------------------------------------------------------------

  // Do the medians differ so much that a linear axis would hide some?
  function wide() {
    const medians = data.curves.filter((c) => c.s === "hop:" + data.hops[data.focus]).map((c) => data.xs[c.x][c.y.findIndex((y) => y >= 0.5)]).filter((v) => v > 0);
    return medians.length > 1 && Math.max(...medians) > 6 * Math.min(...medians);
  }

  function drawCdfs() {
    const names = data.cdfs.filter((panel) => hasLines(data.curves, panel)).map((panel) => panel.metric);
    if (apart()) parts(element("cdfs"), names, (metric, part) => drawCdfsApart(data.cdfs.find((p) => p.metric === metric), part));
    else parts(element("cdfs"), ["together"], (_, part) => drawCdfsTogether(part));
    element("cdfs").closest("section").hidden = !names.length;
  }

  // The range of a logarithmic axis: below a twentieth of all observations it shows little but its own length.
  function logRange(lines) {
    const first = Math.min(...lines.map((l) => l.x.find((x, j) => x > 0 && l.y[j] >= 0.05) ?? Infinity));
    const last = Math.max(...lines.map((l) => l.x.at(-1)));
    return first < last ? [Math.log10(Math.max(first / 2, last / 2000)), Math.log10(last * 1.05)] : undefined;
  }

  function drawCdfsApart(panel, part) {
    const mine = traces(data.curves, panel, {}, "vh");
    for (const line of mine) if (!line.band) line.hovertemplate = sentenceOfShare(panel) + "<extra></extra>";
    const log = state.log && panel.metric !== "rtt_ms", range = log ? logRange(mine) : undefined;
    const x = { type: log ? "log" : "linear", range, autorange: !range, dtick: log ? 1 : undefined, title: title(plain(panel.title + " (" + panel.unit + ")"), 4) };
    drawPanels(part, panel, mine, x, { range: [0, 1.02], fixedrange: true, tickformat: ".0%" }, { uirevision: "cdfs" + state.log });
  }

  function drawCdfsTogether(part) {
    if (!part.firstChild) part.append(document.createElement("div"));
    const found = data.cdfs.map((panel) => [panel, data.curves.filter((line) => line.m === panel.metric)]).filter(([panel, lines]) => hasLines(lines, panel));
    const beside = part.clientWidth > 700, n = found.length, extra = { annotations: [] }, all = [];
    const gap = beside ? 0.09 : 0.28 / n, size = (1 - gap * (n - 1)) / n;
    found.forEach(([panel, lines], i) => {
      const at = beside ? i * (size + gap) : 1 - i * (size + gap) - size;
      const span = [Math.max(0, at), Math.min(1, at + size)];
      const log = state.log && panel.metric !== "rtt_ms";
      const mine = traces(lines, panel, { xaxis: "x" + suffix(i), yaxis: "y" + suffix(i) }, "vh");
      for (const line of mine) if (!line.band) line.hovertemplate = sentenceOfShare(panel) + "<extra></extra>";
      reveal(mine, 1, Math.max(0, ...mine.map((line) => line.x.at(-1) ?? 0)));
      all.push(...mine);
      const range = log ? logRange(mine) : undefined;
      extra["xaxis" + suffix(i)] = axis({
        domain: beside ? span : [0, 1], anchor: "y" + suffix(i), type: log ? "log" : "linear", range, autorange: !range, dtick: log ? 1 : undefined,
        title: title(plain(panel.title + " (" + panel.unit + ")"), 6), hoverformat: ".4~g",
      });
      extra["yaxis" + suffix(i)] = axis({ domain: beside ? [0, 1] : span, anchor: "x" + suffix(i), range: [0, 1.01], fixedrange: true, tickformat: ".0%", title: i ? undefined : title("share", 4) });
      extra.annotations.push(heading("<b>" + plain(panel.title) + "</b>", beside ? span[0] : 0, beside ? 1 : span[1]));
    });
    Plotly.react(part.firstChild, all, layout(beside ? 360 : 40 + 290 * n, { hovermode: "closest", ...extra, uirevision: "cdfs" + state.log }), config);
  }

  // --- delay against utilisation -------------------------------------------------------------------------------------

  function drawBalance() {
    const shown = data.balance.filter((b) => b.delay[0] > 0 && !state.hidden.has("group-" + b.g));
    const worth = data.groups.length > 2 && shown.length > 0;
    element("balance-section").hidden = !worth;
    if (!worth) return;
    const t = theme(), delays = shown.map((b) => b.delay[0]);
    const log = Math.max(...delays) > 8 * Math.min(...delays);
    const low = Math.min(...delays), high = Math.max(...delays);
    const range = log ? [Math.log10(low / 1.6), Math.log10(high * 2.4)] : [0, high * 1.25];
    const names = placedNames(shown, range, log);
    const dots = shown.map((b, i) => {
      const group = data.groups[b.g], color = isDark() ? group.paint.dark : group.paint.light;
      return {
        type: "scatter", mode: "markers+text", name: plain(group.label), text: [names[i].text], textposition: names[i].place, textfont: { color: t.ink, size: 13 },
        x: [b.delay[0]], y: [b.utilisation[0]], marker: { size: 11, color, symbol: SYMBOLS[group.paint.dash] }, cliponaxis: false, showlegend: false,
        error_x: { type: "data", array: [b.delay[1]], visible: b.delay[1] > 0, color, thickness: 1.2, width: 4 },
        error_y: { type: "data", array: [b.utilisation[1]], visible: b.utilisation[1] > 0, color, thickness: 1.2, width: 4 },
        hovertemplate: "<b>%{fullData.name}</b>: utilisation %{y:.2f} %, sojourn time below %{x:.4~g} ms for 99 % of packets<extra></extra>",
      };
    });
    Plotly.react("balance", dots, layout(360, {
      hovermode: "closest", margin: { l: 64, r: 24, t: 12, b: 48 },
      xaxis: axis({ type: log ? "log" : "linear", range, title: title("sojourn p99 (ms)", 8), ...(log ? { tickmode: "array", ...decades(low / 1.6, high * 2.4) } : {}) }),
      yaxis: axis({ title: title("utilisation (%)", 8), nticks: 7 }),
    }), config);
  }

  // The names of dots: dots on top of each other have one between them, and each name has a place where it covers no other name and
  // no dot. A name without such a place is left out; pointing at the dot shows it.
  function placedNames(shown, range, log) {
    const width = Math.max(100, element("balance").clientWidth - 88), height = 300;
    const shares = shown.map((b) => b.utilisation[0]), lowest = Math.min(...shares), rise = Math.max(...shares) - lowest || 1;
    const at = shown.map((b) => ({
      x: (((log ? Math.log10(b.delay[0]) : b.delay[0]) - range[0]) / (range[1] - range[0])) * width,
      y: (0.95 - (0.9 * (b.utilisation[0] - lowest)) / rise) * height,
    }));
    const isNear = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) < 9;
    const taken = at.map((dot) => [dot.x - 6, dot.y - 6, dot.x + 6, dot.y + 6]);
    const isFree = (box, own) => box[0] > -20 && box[2] < width + 20 && !taken.some((t, i) => i !== own && t[0] < box[2] && box[0] < t[2] && t[1] < box[3] && box[1] < t[3]);
    return shown.map((b, i) => {
      if (at.slice(0, i).some((other) => isNear(other, at[i]))) return { text: "", place: "top right" };
      const same = shown.filter((_, j) => isNear(at[i], at[j])).map((c) => data.groups[c.g].label);
      const text = same.length > 3 ? same.slice(0, 2).join(", ") + " and " + (same.length - 2) + " more" : same.join(", ");
      const long = 7 * text.length, { x, y } = at[i];
      const places = {
        "top right": [x + 2, y - 22, x + 8 + long, y - 6], "bottom right": [x + 2, y + 6, x + 8 + long, y + 22],
        "middle right": [x + 9, y - 8, x + 12 + long, y + 8], "top left": [x - 8 - long, y - 22, x - 2, y - 6],
        "bottom left": [x - 8 - long, y + 6, x - 2, y + 22], "middle left": [x - 12 - long, y - 8, x - 9, y + 8],
        "top center": [x - long / 2, y - 24, x + long / 2, y - 8], "bottom center": [x - long / 2, y + 8, x + long / 2, y + 24],
      };
      const place = Object.keys(places).find((name) => isFree(places[name], i));
      if (!place) return { text: "", place: "top right" };
      taken.push(places[place]);
      return { text: plain(text), place };
    });
  }

  // 1, 2, 5, 10 …
  function decades(from, to) {
    const values = [];
    for (let e = Math.floor(Math.log10(from)); e <= Math.ceil(Math.log10(to)); e++) {
      for (const m of [1, 2, 5]) if (m * 10 ** e >= from && m * 10 ** e <= to) values.push(m * 10 ** e);
    }
    return { tickvals: values, ticktext: values.map((v) => String(+v.toPrecision(2))) };
  }

  // --- controls ------------------------------------------------------------------------------------------------------

  function drawLegend() {
    const legend = element("legend"), all = entities();
    legend.hidden = all.length < 2;
    // Buttons stay in place while the names do: the second click of a double click must meet the same one.
    const named = (of) => of.join("\n");
    if (named([...legend.children].map((b) => b.dataset.key + b.textContent)) !== named(all.map((e) => e.key + e.label))) {
      legend.replaceChildren(...all.map((entity) => legendButton(entity, all)));
    }
    all.forEach((entity, i) => {
      const button = legend.children[i];
      button.setAttribute("aria-pressed", String(!state.hidden.has(entity.key)));
      button.querySelector("line").setAttribute("stroke", isDark() ? entity.paint.dark : entity.paint.light);
    });
  }

  const STROKES = { solid: "solid", "7px,4px": "dashed", "2px,3px": "dotted", "12px,5px": "long dashes" };

  // Which dashes are whose, where a group's flows share its colour.
  function drawMembers() {
    const members = state.flow === "each" && data.groups.length > 1 ? shownFlows() : [];
    const kinds = Object.entries(STROKES).map(([dash, name]) => [name, members.filter((_, i) => memberDash(i) === dash).map((f) => f.label)]);
    const text = kinds.filter(([, flows]) => flows.length).map(([name, flows]) => name + ": " + flows.join(", ")).join("; ");
    element("members").textContent = text && text[0].toUpperCase() + text.slice(1) + ".";
  }

  function legendButton(entity, all) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.key = entity.key;
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    swatch.setAttribute("viewBox", "0 0 26 11");
    swatch.setAttribute("aria-hidden", "true");
    const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const dash = entity.paint.dash === "solid" ? "" : entity.paint.dash.replaceAll("px", "");
    for (const [k, v] of Object.entries({ x1: 1, x2: 25, y1: 5.5, y2: 5.5, "stroke-width": 3, "stroke-dasharray": dash })) stroke.setAttribute(k, v);
    swatch.append(stroke);
    button.append(swatch, entity.label);
    button.addEventListener("click", (event) => {
      if (event.detail === 2) {
        // This one alone; all again when it was alone already.
        const again = state.alone === entity.key;
        state.hidden = new Set(again ? [] : all.filter((e) => e.key !== entity.key).map((e) => e.key));
        state.alone = again ? null : entity.key;
      } else {
        if (!state.hidden.delete(entity.key)) state.hidden.add(entity.key);
        if (state.alone !== entity.key) state.alone = null;
      }
      draw();
      remember();
    });
    return button;
  }

  // Which charts there are, by what they are about; the last one stays.
  function drawChoices() {
    if (known.length < 2) return;
    element("panels").replaceChildren(...["flows", "queue", "inner state"].map((about) => {
      const kind = document.createElement("div");
      kind.className = "kind";
      kind.setAttribute("role", "group");
      kind.setAttribute("aria-label", about);
      kind.append(about[0].toUpperCase() + about.slice(1), ...known.filter((panel) => panel.kind === about).map(choiceOf));
      return kind;
    }).filter((kind) => kind.childElementCount));
  }

  function choiceOf(panel) {
    const button = document.createElement("button");
    const on = state.panels.has(panel.metric);
    button.type = "button";
    button.textContent = panel.title;
    button.title = panel.about;
    button.dataset.metric = panel.metric;
    button.setAttribute("aria-pressed", String(on));
    button.addEventListener("click", () => {
      if (!on) state.panels.add(panel.metric);
      else if (state.panels.size > 1) state.panels.delete(panel.metric);
      drawChoices();
      document.querySelector("[data-metric=" + CSS.escape(panel.metric) + "]").focus();
      drawSeries();
      remember();
    });
    return button;
  }

  function choice(id, options, chosen, set) {
    const select = element(id);
    select.replaceChildren(...options.map(([value, label]) => new Option(label, value, false, value === chosen)));
    element(id + "-choice").hidden = options.length < 2;
    select.onchange = () => { set(select.value); draw(); remember(); };
  }

  // The flows that cross the chosen hop.
  function chooseFlows() {
    const found = data.flows.filter(isHere);
    if (!found.some((f) => f.id === state.flow)) state.flow = "all";
    choice("flow", found.map((f) => [f.id, f.label]), state.flow, (v) => { state.flow = v; state.hidden.clear(); state.alone = null; });
  }

  function draw() {
    drawLegend();
    drawMembers();
    drawChoices();
    element("view-choice").hidden = entities().length <= MOST_OVERLAID;
    drawSeries();
    drawCdfs();
    drawBalance();
  }

  // The selection and the zoom in the address, and back.
  const first = known.filter((panel) => state.panels.has(panel.metric)).map((panel) => panel.metric).join();
  const chosen = (name) => (state[name] === usual[name] ? "" : String(state[name]));
  function remember() {
    const charts = known.filter((panel) => state.panels.has(panel.metric)).map((panel) => panel.metric).join();
    toAddress({
      hop: chosen("hop"), flow: chosen("flow"), run: chosen("run"), view: chosen("view"), log: state.log === usual.log ? "" : state.log ? "yes" : "no",
      charts: charts === first ? "" : charts, zoom: zoom ? zoom.map(short).join() : "", hide: [...state.hidden].join(),
    });
  }

  function recall() {
    const said = inAddress();
    const among = (name, values) => (values.includes(said.get(name)) ? said.get(name) : usual[name]);
    Object.assign(state, { hop: among("hop", data.hops), view: among("view", ["apart", "together"]), alone: null });
    state.flow = among("flow", data.flows.map((flow) => flow.id));
    state.run = Number(among("run", data.runs.map((_, run) => String(run))));
    state.log = said.has("log") ? said.get("log") === "yes" : usual.log;
    const charts = (said.get("charts") ?? first).split(",").filter((metric) => known.some((panel) => panel.metric === metric));
    state.panels = new Set(charts.length ? charts : first.split(","));
    state.hidden = new Set((said.get("hide") ?? "").split(",").filter((key) => key));
    const [from, to] = numbers(said.get("zoom"));
    zoom = from < to ? [Math.max(0, from), Math.min(data.duration, to)] : null;
    choice("hop", data.hops.map((h) => [h, h]), state.hop, (v) => { state.hop = v; chooseFlows(); });
    chooseFlows();
    choice("run", data.runs.map((r, i) => [String(i), r]), String(state.run), (v) => { state.run = Number(v); });
    choice("view", [["apart", "each in a panel"], ["together", "together"]], state.view, (v) => { state.view = v; });
    element("log").checked = state.log;
  }

  recall();
  element("log").addEventListener("change", (event) => { state.log = event.target.checked; drawCdfs(); remember(); });
  element("link").append(smallButton("Copy link to this view", (button) => copy(location.href, button)));
  addEventListener("hashchange", () => { if (location.hash.includes("=")) { recall(); draw(); } });
  element("charts").hidden = false;
  draw();
  redraws.push(draw);
  drawAtOnce();
  if (element("events")) drawEvents({ theme, layout, axis, title, config, paints: data.paints });
  let width = element("cdfs").clientWidth;
  addEventListener("resize", () => {
    const now = element("cdfs").clientWidth;
    if (now !== width && apart()) { drawSeries(); drawCdfs(); } else if ((now > 700) !== (width > 700)) drawCdfs();
    width = now;
  });
})();
