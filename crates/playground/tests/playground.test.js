// @ts-check
/**
 * The playground in Chromium, beside the native program: `npm ci && npm test`.
 * NARROWS_SITE is a folder with the page and its engine.wasm, NARROWS the program; both have their usual places in the target folder.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** @typedef {import("../page/protocol").Catalogue} Catalogue */

const root = fileURLToPath(new URL("../../..", import.meta.url));
const site = process.env.NARROWS_SITE ?? join(root, "target/site/play");
const program = process.env.NARROWS ?? join(root, "target/debug/narrows");
const browserPath =
  process.env.CHROMIUM ??
  ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path));
const TYPES = /** @type {Record<string, string>} */ ({
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
});
/** Scenarios whose figures are compared, and damaged links that are opened. */
const [SCENARIOS, LINKS] = [200, 200];

/** @type {import("playwright-core").Browser} */
let browser;
/** @type {import("node:http").Server} */
let server;
/** @type {import("node:child_process").ChildProcess} */
let native;
let [address, nativeAddress] = ["", ""];
/** @type {Catalogue} */
let catalogue;
/** What the consoles of all pages said. @type {string[]} */
const complaints = [];

/** A static server, as any. */
function serve() {
  return createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://localhost").pathname).replace(/^(\.\.[/\\])+/, "");
    const file = join(site, path === "/" ? "index.html" : path);
    if (!existsSync(file)) return void response.writeHead(404).end();
    response
      .writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" })
      .end(readFileSync(file));
  });
}

/** The native program, and where its page is. */
async function play() {
  native = spawn(program, ["play", "--no-open"], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [native.stdout, native.stderr]) stream?.on("data", (part) => (said += part));
  for (let i = 0; i < 200; i++) {
    const found = /http:\/\/127\.0\.0\.1:\d+\/[^/\s]+\//.exec(said);
    if (found) return found[0];
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`narrows play says no address: ${said}`);
}

before(async () => {
  assert.ok(browserPath, "there is no Chromium");
  server = serve().listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  address = `http://127.0.0.1:${typeof bound === "object" && bound ? bound.port : 0}/`;
  nativeAddress = await play();
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  catalogue = await askNative({ ask: "catalogue" });
});

after(async () => {
  await browser?.close();
  server?.close();
  if (native && native.exitCode === null) {
    native.kill("SIGINT");
    await once(native, "exit");
  }
});

/** Asks the native program. @param {unknown} request @returns {Promise<any>} */
async function askNative(request) {
  const headers = { "x-page": "tests", origin: new URL(nativeAddress).origin };
  const response = await fetch(`${nativeAddress}ask`, { method: "POST", headers, body: JSON.stringify(request) });
  assert.equal(response.status, 200, "the native program answers");
  return response.json();
}

/** A page at this fragment, once it shows something. @param {string} hash @param {string} [at] */
async function open(hash, at = address) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(`${at}index.html${hash}`);
  await page.waitForFunction(() => document.documentElement.dataset.state !== undefined);
  return page;
}

/** The engine in a page. @param {import("playwright-core").Page} page @param {unknown} request @returns {Promise<any>} */
function askPage(page, request) {
  return page.evaluate(async (asked) => {
    const engine = new URL("engine.js", location.href).href;
    const { ask } = await import(engine);
    try {
      return await ask(asked);
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  }, request);
}

/** Numbers between 0 and 1, the same every time (mulberry32). @param {number} seed */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A scenario that nobody chose. @param {() => number} draw */
function scenario(draw) {
  /** @template T @param {T[]} all */
  const one = (all) => all[Math.floor(draw() * all.length)];
  const mbit = 0.5 * 60 ** draw();
  const rtt = Math.round(5 * 40 ** draw());
  const flows = Array.from({ length: 1 + Math.floor(draw() * 4) }, (_, n) => {
    const controller = one(catalogue.controllers).name;
    const transport = ["tonopah", "startup"].includes(controller)
      ? 'transport = "quic"'
      : one(["", 'transport = { kind = "tcp", ecn = true }', 'transport = "quic"']);
    return draw() < 0.7
      ? `[[flow]]\nname = "f${n}"\ncontroller = "${controller}"\n${transport}\nrtt = "${rtt}ms"\nstart = "${(draw() * 2).toFixed(2)}s"\n`
      : `[[flow]]\nname = "f${n}"\ntraffic = "${one(catalogue.presets).name}"\nrtt = "${rtt}ms"\n`;
  });
  const loss = draw() < 0.3 ? `loss = ${(draw() * 0.03).toFixed(4)}\n` : "";
  const rate =
    draw() < 0.7
      ? `"${mbit.toFixed(2)}mbit"`
      : `[{ at = "0s", rate = "${mbit.toFixed(2)}mbit" }, { at = "2s", rate = "${(mbit / 2).toFixed(2)}mbit" }]`;
  return `name = "drawn"\nduration = "4s"\nseed = ${Math.floor(draw() * 1e6)}\n\n[[hop]]\nname = "link"\nrate = ${rate}\n${loss}queue = "${one(catalogue.queues).name}"\n\n${flows.join("\n")}`;
}

test("every scene loads, moves, and has the native figures", async () => {
  for (const { name, text } of catalogue.scenes) {
    const page = await open(`#scene=${name}`);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.state), "ready", name);
    const time = () => page.textContent("#time");
    const first = await time();
    await page.waitForFunction((was) => document.getElementById("time")?.textContent !== was, first);
    const request = { ask: "run", text, points: 100 };
    assert.deepEqual(await askPage(page, request), await askNative(request), name);
    await page.close();
  }
});

test(`${SCENARIOS} drawn scenarios have the native figures`, async () => {
  const page = await open("");
  const draw = random(2026);
  let ran = 0;
  for (let n = 0; n < SCENARIOS; n++) {
    const text = scenario(draw);
    const request = { ask: "run", text, points: 50 };
    const [there, here] = await Promise.all([askNative(request), askPage(page, request)]);
    if (there.error) assert.equal(here.error, there.error.message, text);
    else assert.deepEqual(here, there, text);
    ran += there.error ? 0 : 1;
  }
  assert.ok(ran > SCENARIOS * 0.8, `${ran} of ${SCENARIOS} were scenarios that run`);
  await page.close();
});

test("a played run shows the native packets", async () => {
  const page = await open("");
  const { text } = catalogue.scenes[0];
  for (const at of [0, 3_500_000_000, 12_000_000_000]) {
    const request = { ask: "open", seat: 1, text, at };
    assert.deepEqual(await askPage(page, request), await askNative(request));
  }
  await page.close();
});

test("controls work from the keyboard, and change the scenario's text", async () => {
  const page = await open("#scene=bufferbloat");
  await page.evaluate(() => document.body.focus());
  const playing = () => page.textContent("#play");
  assert.equal(await playing(), "Pause");
  await page.keyboard.press("Space");
  assert.equal(await playing(), "Play");
  const before_ = await page.textContent("#time");
  await page.keyboard.press("Shift+ArrowRight");
  await page.waitForFunction((was) => document.getElementById("time")?.textContent !== was, before_);
  await page.focus('[aria-label="buffer"]');
  await page.keyboard.press("Home");
  await page.waitForFunction(() =>
    /limit = "1p"/.test(/** @type {HTMLTextAreaElement} */ (document.getElementById("text")).value),
  );
  await page.selectOption('[aria-label="queue"]', "fq_codel");
  await page.waitForFunction(() =>
    /queue = "fq_codel"/.test(/** @type {HTMLTextAreaElement} */ (document.getElementById("text")).value),
  );
  await page.waitForFunction(() => document.querySelector(".felt")?.textContent?.includes("satisfied with the sound"));
  await page.fill("#text", (await page.inputValue("#text")).replace("rtt", "rrt"));
  await page.waitForFunction(() =>
    /^line \d+: unknown key "rrt"/.test(document.getElementById("fault")?.textContent ?? ""),
  );
  const unnamed = await page.evaluate(() =>
    [...document.querySelectorAll("input, select, button, textarea")]
      .filter((one) => {
        const labelled = one.getAttribute("aria-label") ?? one.textContent ?? "";
        return !labelled.trim() && !(/** @type {HTMLInputElement} */ (one).labels?.length);
      })
      .map((one) => one.outerHTML),
  );
  assert.deepEqual(unnamed, [], "every control has a name");
  await page.close();
});

test("two queues are shown side by side", async () => {
  const page = await open("#scene=call-beside-download&vs=fq_codel");
  await page.waitForFunction(() => document.querySelectorAll(".seat").length === 2);
  assert.deepEqual(await page.$$eval("h2", (all) => all.map((one) => one.textContent)), [
    "fifo:limit=300p",
    "fq_codel:limit=300p",
  ]);
  await page.close();
});

test("a link with a mechanism is chosen, and its rate is made constant", async () => {
  const page = await open("#scene=cocoa");
  for (const kind of ["wifi", "cellular", "leo", "docsis"]) {
    await page.selectOption('[aria-label="link"]', kind);
    await page.waitForFunction(
      (wanted) =>
        document.documentElement.dataset.state === "ready" &&
        /** @type {HTMLTextAreaElement} */ (document.getElementById("text")).value.includes(`mechanism = "${wanted}"`),
      kind,
    );
  }
  assert.doesNotMatch(await page.inputValue("#text"), /rate = \[/, "the schedule has gone");
  await page.selectOption('[aria-label="link"]', "");
  await page.waitForFunction(
    () => !(/** @type {HTMLTextAreaElement} */ (document.getElementById("text")).value.includes("mechanism")),
  );
  await page.close();
});

test("a link carries the scenario there and back", async () => {
  const page = await open("#scene=cocoa&vs=fq");
  await page.selectOption('[aria-label="queue"]', "fq_pie");
  await page.waitForFunction(() =>
    /fq_pie/.test(/** @type {HTMLTextAreaElement} */ (document.getElementById("text")).value),
  );
  await page.click("#link");
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  const [text, url] = [await page.inputValue("#text"), page.url()];
  const other = await open(new URL(url).hash);
  assert.equal(await other.inputValue("#text"), text);
  assert.equal(await other.$$eval(".seat", (all) => all.length), 2);
  await Promise.all([page.close(), other.close()]);
});

test(`${LINKS} damaged links give a message and no hang`, async () => {
  const draw = random(53);
  const page = await open("#scene=bufferbloat");
  await page.click("#link");
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  const whole = await page.evaluate(() => location.hash);
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_%&=<>\"'";
  for (let n = 0; n < LINKS; n++) {
    const at = 3 + Math.floor(draw() * (whole.length - 3));
    const noise = Array.from(
      { length: Math.floor(draw() * 30) },
      () => letters[Math.floor(draw() * letters.length)],
    ).join("");
    const hash = n % 2 ? whole.slice(0, at) + noise + whole.slice(at + noise.length) : `#s=${noise}`;
    await page.evaluate((to) => {
      delete document.documentElement.dataset.state;
      const was = location.hash;
      location.hash = to;
      if (location.hash === was) dispatchEvent(new HashChangeEvent("hashchange"));
    }, hash);
    await page.waitForFunction(() => document.documentElement.dataset.state !== undefined, undefined, {
      timeout: 15_000,
    });
  }
  const bomb = await page.evaluate(async () => {
    const zeros = new Blob([new Uint8Array(50_000_000)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(zeros).arrayBuffer());
    return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
      .replaceAll("+", "-")
      .replaceAll("/", "_");
  });
  await page.evaluate((to) => (location.hash = `s=${to}`), bomb);
  await page.waitForFunction(() => /damaged/.test(document.getElementById("fault")?.textContent ?? ""));
  await page.close();
});

test("the native program serves the same page, and nobody else's", async () => {
  const page = await open("#scene=policing", nativeAddress);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.engine), "native");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.state), "ready");
  const { origin } = new URL(nativeAddress);
  const body = JSON.stringify({ ask: "catalogue" });
  const foreign = await fetch(`${nativeAddress}ask`, {
    method: "POST",
    headers: { origin: "http://example.org", "x-page": "x" },
    body,
  });
  assert.equal(foreign.status, 403);
  const wrong = await fetch(`${origin}/0123456789abcdef/ask`, {
    method: "POST",
    headers: { origin, "x-page": "x" },
    body,
  });
  assert.equal(wrong.status, 404);
  await page.close();
  assert.ok((await askNative({ ask: "catalogue" })).queues.length > 10, "a closed tab does not end the program");
});

test("how fast it is", async (context) => {
  const text = catalogue.scenes[0].text
    .replace("2mbit", "100mbit")
    .replace('name = "photos"', 'name = "photos"\ncount = 20')
    .replace("20s", "60s");
  const page = await open("#scene=bufferbloat");
  const here = await page.evaluate(
    async (asked) => {
      const { ask } = await import(new URL("engine.js", location.href).href);
      const times = [];
      for (let n = 0; n < 5; n++) {
        const from = performance.now();
        await ask(asked);
        times.push(performance.now() - from);
      }
      return Math.min(...times);
    },
    { ask: "run", text, points: 100 },
  );
  context.diagnostic(`60 s of 100 Mbit/s, 20 flows, in this browser: ${here.toFixed(0)} ms`);
  await page.fill("#text", text);
  await page.waitForFunction(() => document.querySelector(".felt")?.textContent?.includes("20 × photos"));
  const spacing = await page.evaluate(async () => {
    /** @type {number[]} */
    const all = [];
    let last = performance.now();
    await new Promise((done) => {
      const tick = () => {
        const now = performance.now();
        all.push(now - last);
        last = now;
        if (all.length < 240) requestAnimationFrame(tick);
        else done(undefined);
      };
      requestAnimationFrame(tick);
    });
    return all.sort((a, b) => a - b)[Math.floor(all.length * 0.95)];
  });
  context.diagnostic(`95 % of pictures come within ${spacing.toFixed(1)} ms of the one before`);
  const changes = await page.evaluate(() =>
    performance.getEntriesByName("change to picture").map(({ duration }) => duration),
  );
  context.diagnostic(`a change was seen after ${changes.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  await page.close();
});

test("no page complained on its console", () => {
  assert.deepEqual(complaints, []);
});

test("Ctrl-C ends the native program", async () => {
  native.kill("SIGINT");
  const [code] = native.exitCode === null ? await once(native, "exit") : [native.exitCode];
  assert.ok(code === 0 || code === 130, `it ended with ${code}`);
});
