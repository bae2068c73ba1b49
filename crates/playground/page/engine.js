// @ts-check
/** The two engines: WebAssembly in a worker, or the native program behind HTTP. A page cannot tell them apart. */

/** @typedef {import("./protocol").Ask} Ask */

/** The engine could not answer. */
export class Complaint extends Error {
  /** @param {string} message @param {number | null} line of the scenario, from 1 */
  constructor(message, line = null) {
    super(message);
    this.line = line;
  }
}

/** A run that takes longer is ended, in a tab; ms. */
const PATIENCE = 20_000;

/** @param {string} reply @returns {any} */
function read(reply) {
  const answer = JSON.parse(reply);
  if (answer.error) throw new Complaint(answer.error.message, answer.error.line ?? null);
  return answer;
}

/** @returns {(request: Ask) => Promise<any>} */
function native() {
  const page = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16)).join("");
  return async (request) => {
    const options = { method: "POST", headers: { "x-page": page }, body: JSON.stringify(request) };
    let response;
    try {
      response = await fetch("ask", options);
    } catch {
      throw new Complaint("the program that serves this page has ended: start `narrows play` again");
    }
    if (!response.ok) throw new Complaint(`the program refused: ${await response.text()}`);
    return read(await response.text());
  };
}

/** @returns {(request: Ask) => Promise<any>} */
function wasm() {
  /** @type {Worker | null} */
  let worker = null;
  /** @type {Map<number, { resolve: (reply: string) => void, reject: (error: Error) => void }>} */
  const waiting = new Map();
  let last = 0;
  /** @param {string} why */
  const end = (why) => {
    worker?.terminate();
    worker = null;
    for (const one of waiting.values()) one.reject(new Complaint(why));
    waiting.clear();
  };
  const start = () => {
    const made = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    made.onmessage = ({ data: [number, reply, error] }) => {
      const one = waiting.get(number);
      waiting.delete(number);
      if (error) one?.reject(new Complaint(error));
      else one?.resolve(reply);
    };
    made.onerror = (event) => end(`the simulator ended: ${event.message || "it could not be loaded"}`);
    return made;
  };
  return async (request) => {
    worker ??= start();
    const number = ++last;
    const reply = new Promise((/** @type {(reply: string) => void} */ resolve, reject) =>
      waiting.set(number, { resolve, reject }),
    );
    worker.postMessage([number, JSON.stringify(request)]);
    const clock = setTimeout(() => end("the run took longer than 20 seconds and was ended"), PATIENCE);
    try {
      return read(await reply);
    } finally {
      clearTimeout(clock);
    }
  };
}

/** Whether the native program is behind the page. */
export const isNative = document.documentElement.dataset.engine === "native";

/** Asks the engine; fails with a [Complaint]. */
export const ask = isNative ? native() : wasm();
