// @ts-check
/** Links that carry a whole scenario in the fragment: `#s=` and the text, deflated, in base64url. Or `#scene=` and a name. */
import { Complaint } from "./engine.js";

/** @typedef {{ scene?: string, text?: string, versus?: string, at?: number, embed: boolean }} Linked */

/** The longest text that a link may carry, bytes. */
const LONGEST = 64 * 1024;

/** @param {string} text @returns {Promise<string>} */
async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** @param {string} text @returns {Promise<string>} */
async function unpacked(text) {
  try {
    if (text.length > LONGEST) throw new Error("too long");
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const decoder = new TextDecoder("utf-8", { fatal: true });
    let [out, length] = ["", 0];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return out + decoder.decode();
      length += value.length;
      if (length > LONGEST) {
        await reader.cancel();
        throw new Error("too long");
      }
      out += decoder.decode(value, { stream: true });
    }
  } catch {
    throw new Complaint("this link is damaged: its scenario cannot be read");
  }
}

/**
 * What a fragment says.
 * @param {string} hash
 * @returns {Promise<Linked>}
 */
export async function readLink(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const at = Number(said.get("t"));
  const text = said.get("s");
  return {
    scene: said.get("scene") ?? undefined,
    text: text === null ? undefined : await unpacked(text),
    versus: said.get("vs") ?? undefined,
    at: Number.isFinite(at) && at > 0 ? at : undefined,
    embed: said.has("embed"),
  };
}

/**
 * The fragment that carries this.
 * @param {string} text
 * @param {string} [versus]
 * @param {number} [at] s
 * @returns {Promise<string>}
 */
export async function writeLink(text, versus, at) {
  const said = new URLSearchParams({ s: await packed(text) });
  if (versus) said.set("vs", versus);
  if (at) said.set("t", at.toFixed(3));
  return `#${said}`;
}
