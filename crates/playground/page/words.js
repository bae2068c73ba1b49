// @ts-check
/** What the users feel, in words. */
import { el } from "./dom.js";
import { rate, span } from "./units.js";

/** @typedef {import("./protocol").Outline} Outline */
/** @typedef {import("./protocol").Summary} Summary */
/** @typedef {import("./protocol").FlowSummary} FlowSummary */
/** @typedef {{ grade: "good" | "fair" | "bad" | "", text: string }} Felt */

/** Categories of speech quality (ITU-T G.109), by the mean opinion score that their limits have under the E-model. */
const SPEECH = /** @type {[number, Felt["grade"], string][]} */ ([
  [4.34, "good", "everybody is very satisfied with the sound"],
  [4.03, "good", "people are satisfied with the sound"],
  [3.6, "fair", "some people are dissatisfied with the sound"],
  [3.1, "bad", "many people are dissatisfied with the sound"],
  [2.58, "bad", "nearly everybody is dissatisfied with the sound"],
  [0, "bad", "nobody would go on with this call"],
]);

/** @param {number[]} values */
const mean = (values) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);

/**
 * What the users of a group of flows feel.
 * @param {FlowSummary[]} flows
 * @param {number} baseMs
 * @returns {Felt}
 */
function felt(flows, baseMs) {
  const [one] = flows;
  const app = one.application;
  const late = app?.one_way_ms?.p99 ?? null;
  if (app?.voice) {
    const mos = mean(flows.map((flow) => flow.application?.voice?.mos ?? 1));
    const found = SPEECH.find(([least]) => mos >= least) ?? SPEECH[SPEECH.length - 1];
    const delay = late === null ? "" : `; what is said arrives after ${span(late / 1000)} (99 %)`;
    return { grade: found[1], text: `${found[2]} (score ${mos.toFixed(2)} of 4.5)${delay}` };
  }
  if (app?.video) {
    const { mos, freezes, frozen_s, rate_mbit } = app.video;
    const grade = mos === null ? "" : mos >= 3.6 ? "good" : mos >= 2.6 ? "fair" : "bad";
    const frozen = freezes ? `the picture froze ${freezes} times, ${span(frozen_s)} in all` : "the picture never froze";
    return { grade, text: `${frozen}, at ${rate(rate_mbit)}${mos === null ? "" : ` (score ${mos.toFixed(1)} of 5)`}` };
  }
  if (one.completion_s && one.completion_s.count > 0) {
    const all = flows.flatMap((flow) => (flow.completion_s ? [flow.completion_s] : []));
    const p95 = Math.max(...all.map((times) => times.p95));
    const p50 = mean(all.map((times) => times.p50));
    return {
      grade: p50 < 1 ? "good" : p50 < 3 ? "fair" : "bad",
      text: `loads in ${span(p50)}, in the worst cases ${span(p95)}`,
    };
  }
  if (app?.messages && app.messages.count > 0) {
    const delay = app.messages.delay_ms.p99;
    return {
      grade: delay < 100 ? "good" : delay < 300 ? "fair" : "bad",
      text: `messages are read after ${span(delay / 1000)} (99 %)`,
    };
  }
  if (late !== null) {
    const worst = Math.max(...flows.map((flow) => flow.application?.one_way_ms?.p99 ?? 0));
    const added = worst - baseMs / 2;
    const lost = mean(flows.map((flow) => flow.application?.loss ?? 0));
    const loss = lost > 0.0005 ? `, and ${(lost * 100).toFixed(1)} % never arrive` : "";
    return {
      grade: added < 30 ? "good" : added < 150 ? "fair" : "bad",
      text: `packets arrive after ${span(worst / 1000)} (99 %)${loss}`,
    };
  }
  const total = flows.reduce((sum, flow) => sum + flow.goodput_mbit, 0);
  const each = flows.length > 1 ? ` together, ${rate(total / flows.length)} each` : "";
  const rtt = one.rtt_ms
    ? `; an answer takes ${span(mean(flows.map((flow) => flow.rtt_ms?.p50 ?? 0)) / 1000)} instead of ${span(baseMs / 1000)}`
    : "";
  const believes = one.verdicts
    ? `; right about the queue for ${Math.round(one.verdicts.right * 100)} % of the time, wrong for ${Math.round(one.verdicts.wrong * 100)} %`
    : "";
  return { grade: "", text: `${rate(total)}${each}${rtt}${believes}` };
}

/**
 * A list of what each group feels, and how full the link is.
 * @param {Outline} outline
 * @param {Summary} summary
 * @returns {HTMLElement}
 */
export function inWords(outline, summary) {
  const items = outline.groups.flatMap((group, n) => {
    const first = outline.groups.slice(0, n).reduce((sum, earlier) => sum + earlier.count, 0);
    const flows = summary.flows.slice(first, first + group.count);
    if (!flows.length) return [];
    const { grade, text } = felt(flows, group.rtt_ms[0]);
    const name = group.count > 1 ? `${group.count} × ${group.name}` : group.name;
    return [el("li", { class: grade }, el("b", {}, name), `: ${text}.`)];
  });
  const hops = [...new Set(outline.groups.flatMap((group) => group.route))].map((hop) => {
    const { name, utilisation, drops, marks } = summary.hops[hop];
    const lost = drops.total ? `, ${drops.total.toLocaleString("en")} packets dropped` : ", nothing dropped";
    const marked = marks ? `, ${marks.toLocaleString("en")} marked` : "";
    return el("li", {}, el("b", {}, name), `: ${Math.round(utilisation * 100)} % full${lost}${marked}.`);
  });
  return el("ul", { class: "felt" }, ...items, ...hops);
}

/**
 * A moment in a sentence or two.
 * @param {Outline} outline
 * @param {import("./protocol").Frame} frame
 * @returns {string}
 */
export function moment(outline, frame) {
  const hops = [...new Set(outline.groups.flatMap((group) => group.route))].map((hop) => {
    const { packets, bytes, rate_mbit } = frame.hops[hop];
    const wait = rate_mbit > 0 && packets ? `, ${span((bytes * 8) / rate_mbit / 1e6)} of the link` : "";
    return `${packets} packets wait at ${outline.hops[hop].name}${wait}`;
  });
  const senders = frame.senders.slice(0, 4).flatMap((sender, flow) => {
    if (sender?.[0] == null) return [];
    return [
      `${outline.flows[flow][0]} has ${Math.round(sender[1] ?? 0)} of ${Math.round(sender[0])} packets under way`,
    ];
  });
  return `At ${span(frame.now / 1e9)}: ${[...hops, ...senders].join("; ")}.`;
}
