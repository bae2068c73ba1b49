// @ts-check
/** Elements of the page, made and found. */

/**
 * Makes an element. Properties that begin with "on" are listeners, "class" and those with a dash are attributes.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "class" || name.includes("-") || name === "for") element.setAttribute(name, String(value));
    else Object.assign(element, { [name]: value });
  }
  element.append(...children);
  return element;
}

/**
 * The element with this id.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function byId(id, type) {
  const element = document.getElementById(id);
  if (!(element instanceof type)) throw new Error(`the page has no ${id}`);
  return element;
}

/**
 * A canvas as sharp as the screen, and its size in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @returns {{ pen: CanvasRenderingContext2D, width: number, height: number }}
 */
export function sharp(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("this browser draws no canvas");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return { pen, width, height };
}

/**
 * A button that says for a moment that it has done its work.
 * @param {HTMLElement} button
 * @param {string} said
 */
export function acknowledge(button, said) {
  const before = button.textContent;
  button.textContent = said;
  setTimeout(() => (button.textContent = before), 1200);
}

/**
 * Offers a file for download.
 * @param {string} name
 * @param {Blob} blob
 */
export function download(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
