// @ts-check
/** The simulator in its own thread: takes [number, request], answers [number, reply]. */

/** @typedef {{ memory: WebAssembly.Memory, room: (n: number) => number, answer: () => number, reply: () => number }} Exports */

/** @type {Promise<Exports>} */
const engine = (async () => {
  const response = await fetch(new URL("engine.wasm", import.meta.url));
  if (!response.ok) throw new Error(`engine.wasm: ${response.status}`);
  const { instance } = await WebAssembly.instantiate(await response.arrayBuffer(), {});
  return /** @type {Exports} */ (/** @type {unknown} */ (instance.exports));
})();

self.onmessage = async ({ data: [number, request] }) => {
  try {
    const { memory, room, answer, reply } = await engine;
    const bytes = new TextEncoder().encode(request);
    // First, since memory that grows has another buffer.
    const place = room(bytes.length);
    new Uint8Array(memory.buffer, place, bytes.length).set(bytes);
    const length = answer();
    const from = reply();
    self.postMessage([number, new TextDecoder().decode(new Uint8Array(memory.buffer, from, length))]);
  } catch (error) {
    self.postMessage([number, "", `the simulator failed: ${error instanceof Error ? error.message : error}`]);
  }
};
