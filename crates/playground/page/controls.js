// @ts-check
/** Controls, made from the program's declarations: what they change is a key of the scenario. */
import { el } from "./dom.js";

/** @typedef {import("./protocol").Catalogue} Catalogue */
/** @typedef {import("./protocol").Choice} Choice */
/** @typedef {import("./protocol").Chosen} Chosen */
/** @typedef {import("./protocol").Outline} Outline */
/** @typedef {import("./protocol").Edit} Edit */
/** @typedef {{ hop: number, catalogue: Catalogue, outline: Outline, change: (edits: Edit[], mayStep?: boolean) => void }} Context */

/** Steps of a slider. */
const STEPS = 200;

/**
 * A slider over a logarithmic scale, with its value beside it as text that can be edited.
 * @param {string} label
 * @param {{ value: number, from: number, to: number, text: string, write: (value: number) => string, change: (text: string) => void }} scale
 */
function slider(label, { value, from, to, text, write, change }) {
  const id = `control-${label.replaceAll(" ", "-")}`;
  const share = Math.log(Math.max(from, Math.min(to, value)) / from) / Math.log(to / from);
  const range = el("input", {
    type: "range",
    min: "0",
    max: String(STEPS),
    value: String(Math.round(share * STEPS)),
    "aria-label": label,
    "aria-valuetext": text,
  });
  const input = el("input", { type: "text", id, value: text, class: "value", onchange: () => change(input.value) });
  range.addEventListener("input", () => {
    const exact = from * (to / from) ** (Number(range.value) / STEPS);
    input.value = write(Number(exact.toPrecision(2)));
    range.setAttribute("aria-valuetext", input.value);
    change(input.value);
  });
  return el("div", { class: "control" }, el("label", { for: id }, label), range, input);
}

/**
 * A choice of names.
 * @param {string} label
 * @param {{ name: string, summary?: string }[]} choices
 * @param {string} value
 * @param {(name: string) => void} change
 */
export function choose(label, choices, value, change) {
  const options = choices.map(({ name, summary }) =>
    el("option", { value: name, title: summary ?? "", selected: name === value }, name || "—"),
  );
  if (!choices.some(({ name }) => name === value)) options.unshift(el("option", { value, selected: true }, value));
  const select = el("select", { "aria-label": label, onchange: () => change(select.value) }, ...options);
  select.title = choices.find(({ name }) => name === value)?.summary ?? "";
  return select;
}

/** A row with a label. @param {string} label @param {...Node} inputs */
function row(label, ...inputs) {
  return el("div", { class: "control" }, el("span", { class: "label" }, label), ...inputs);
}

/**
 * A parameter, as text; or as a choice where only words are allowed.
 * @param {import("./protocol").Param} param
 * @param {string | undefined} value
 * @param {(value: string) => void} change
 */
function parameter(param, value, change) {
  const words = param.allowed.includes(" | ") ? param.allowed.split(" | ") : [];
  const isFlag = param.default === "true" || param.default === "false";
  const names = isFlag ? ["true", "false"] : words;
  const input = names.length
    ? choose(
        param.name,
        names.map((name) => ({ name })),
        value ?? param.default,
        change,
      )
    : el("input", {
        type: "text",
        class: "value",
        value: value ?? param.default,
        "aria-label": param.name,
        onchange: (/** @type {Event} */ event) => change(/** @type {HTMLInputElement} */ (event.target).value),
      });
  const changed = value !== undefined && value !== param.default;
  const made = row(param.name, input);
  made.title = `${param.doc} Default: ${param.default}. Allowed: ${param.allowed}.`;
  if (changed) made.classList.add("changed");
  return made;
}

/** Parameters of a choice, folded. @param {string} what @param {Choice | undefined} choice @param {Chosen} chosen @param {(name: string, value: string) => void} change */
function parameters(what, choice, chosen, change) {
  if (!choice?.params.length) return el("div");
  const rows = choice.params.map((param) =>
    parameter(param, chosen.params[param.name], (value) => change(param.name, value)),
  );
  return el("details", { class: "parameters" }, el("summary", {}, `${chosen.kind}'s ${what}`), ...rows);
}

/** The link. @param {Context} context */
function link({ hop, catalogue, outline, change }) {
  const at = { hop };
  const spec = outline.hops[hop];
  const choice = catalogue.queues.find(({ name }) => name === spec.queue.kind);
  const limit = spec.queue.params.limit;
  const isTrace = spec.steps.length === 0;
  const rtt = outline.groups[0]?.rtt_ms[0] ?? 1;
  const everyRtt = (/** @type {string} */ value) =>
    change(outline.groups.map((_, flow) => ({ table: { flow }, key: ["rtt"], value })));
  const packets =
    limit?.endsWith("p") && !limit.endsWith("bdp")
      ? parseFloat(limit)
      : limit?.endsWith("B")
        ? bytesOf(limit) / 1500
        : 100;
  /** @type {HTMLElement[]} */
  const rows = [
    slider("rate", {
      value: spec.rate_mbit,
      from: 0.1,
      to: 1000,
      text: isTrace ? "a trace" : spec.rate,
      write: (mbit) => (mbit < 1 ? `${Math.round(mbit * 1000)}kbit` : `${mbit}mbit`),
      change: (value) => change([{ table: at, key: ["rate"], value }], true),
    }),
    slider("round trip", {
      value: rtt,
      from: 1,
      to: 1000,
      text: `${rtt}ms`,
      write: (ms) => `${ms}ms`,
      change: everyRtt,
    }),
    row(
      "queue",
      choose("queue", catalogue.queues, spec.queue.kind, (value) => change([{ table: at, key: ["queue"], value }])),
    ),
  ];
  if (limit !== undefined) {
    rows.push(
      slider("buffer", {
        value: packets,
        from: 1,
        to: 10_000,
        text: limit,
        write: (n) => `${Math.max(1, Math.round(n))}p`,
        change: (value) => change([{ table: at, key: ["queue", "limit"], value }]),
      }),
    );
  }
  const loss = el("input", {
    type: "range",
    min: "0",
    max: "5",
    step: "0.1",
    value: String(spec.loss * 100),
    "aria-label": "loss",
    oninput: () => change([{ table: at, key: ["loss"], value: (Number(loss.value) / 100).toFixed(4) }]),
  });
  // A mechanism changes the rate itself: what it has is the highest one.
  const constant = spec.steps.length === 1 ? [] : [{ table: at, key: ["rate"], value: spec.rate }];
  const wire = { name: "", summary: "A wire: it sends at its rate." };
  rows.push(
    row(
      "link",
      choose("link", [wire, ...catalogue.mechanisms], spec.mechanism?.kind ?? "", (value) =>
        change([...constant, { table: at, key: ["mechanism"], value: value || undefined }]),
      ),
    ),
  );
  rows.push(row("loss", loss, el("span", { class: "value" }, `${+(spec.loss * 100).toFixed(2)} %`)));
  const { mechanism } = spec;
  if (mechanism) {
    const kind = catalogue.mechanisms.find(({ name }) => name === mechanism.kind);
    rows.push(
      parameters("parameters", kind, mechanism, (name, value) =>
        change([{ table: at, key: ["mechanism", name], value }]),
      ),
    );
  }
  rows.push(
    parameters("parameters", choice, spec.queue, (name, value) => change([{ table: at, key: ["queue", name], value }])),
  );
  return rows;
}

/** Bytes of `256KB`. @param {string} text */
function bytesOf(text) {
  const scale = { KB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2 }[text.replace(/^[\d.]+/, "")] ?? 1;
  return parseFloat(text) * scale;
}

/** The flows. @param {Context} context */
function flows({ catalogue, outline, change }) {
  const rows = outline.groups.map((group, flow) => {
    const at = { flow };
    const count = el("input", {
      type: "number",
      min: "1",
      max: "500",
      value: String(group.count),
      "aria-label": `number of ${group.name}`,
      onchange: () => change([{ table: at, key: ["count"], value: count.value || "1" }]),
    });
    const controller = group.controller
      ? choose(`controller of ${group.name}`, catalogue.controllers, group.controller.kind, (value) =>
          change([{ table: at, key: ["controller"], value }]),
        )
      : el("span", { class: "value" }, group.traffic.kind);
    const remove = el(
      "button",
      {
        type: "button",
        "aria-label": `remove ${group.name}`,
        title: `remove ${group.name}`,
        disabled: outline.groups.length < 2,
        onclick: () => change([{ table: at }]),
      },
      "×",
    );
    return el("div", { class: "flow" }, count, el("b", {}, group.name), controller, remove);
  });
  const kinds = [
    ...catalogue.presets,
    { name: "web", summary: "Web pages." },
    { name: "cbr:rate=20mbit", summary: "A flood of datagrams at 20 Mbit/s." },
  ];
  const kind = el(
    "select",
    { "aria-label": "traffic of a new flow" },
    ...kinds.map(({ name, summary }) => el("option", { value: name, title: summary }, name)),
  );
  const add = el(
    "button",
    { type: "button", onclick: () => change([{ table: "new_flow", value: kind.value }]) },
    "Add",
  );
  const able = outline.groups.flatMap((group, flow) => (group.transport === "udp" ? [] : [{ group, flow }]));
  const ecn = el("input", {
    type: "checkbox",
    checked: able.length > 0 && able.every(({ group }) => group.ecn),
    onchange: () =>
      change(able.map(({ flow }) => ({ table: { flow }, key: ["transport", "ecn"], value: String(ecn.checked) }))),
  });
  return [
    ...rows,
    el("div", { class: "flow" }, el("span"), kind, el("span"), add),
    el("label", { class: "control" }, el("span", { class: "label" }, "ECN"), ecn),
  ];
}

/**
 * All controls of a scenario. A control that has the focus keeps it.
 * @param {HTMLElement} place
 * @param {Context} context
 * @param {(hop: number) => void} turnTo another hop
 */
export function controls(place, context, turnTo) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  // A slider that is being moved is not taken away from under the pointer.
  if (focused instanceof HTMLInputElement && focused.type === "range") {
    refresh(place, context);
    return;
  }
  const label = focused?.getAttribute("aria-label") ?? focused?.id;
  const open = [...place.querySelectorAll("details")].some((details) => details.open);
  const { outline, hop } = context;
  const names = outline.hops.map(({ name }) => ({ name }));
  const which =
    names.length > 1
      ? [
          row(
            "hop",
            choose("hop", names, names[hop].name, (name) => turnTo(names.findIndex((one) => one.name === name))),
          ),
        ]
      : [];
  place.replaceChildren(
    el("fieldset", {}, el("legend", {}, "Link"), ...which, ...link(context)),
    el("fieldset", {}, el("legend", {}, "Flows"), ...flows(context)),
  );
  for (const details of place.querySelectorAll("details")) details.open = open;
  if (label) {
    const again = [...place.querySelectorAll("input, select, button")].find(
      (one) => one.getAttribute("aria-label") === label || one.id === label,
    );
    if (again instanceof HTMLElement) again.focus();
  }
}

/** Only what other controls say beside a slider that moves. @param {HTMLElement} place @param {Context} context */
function refresh(place, { outline, hop }) {
  const loss = place.querySelector("span.value");
  if (loss) loss.textContent = `${+(outline.hops[hop].loss * 100).toFixed(2)} %`;
}
