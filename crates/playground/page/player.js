// @ts-check
/** Time: how fast the run is played, and where it is. One seat, or two side by side, that show the same moment. */
import { ask } from "./engine.js";

/** @typedef {import("./protocol").Frame} Frame */

/** Slowest and fastest, as multiples of life's speed. */
export const SPEEDS = [0.001, 20];
/** No step of the picture covers more than this much time, so that a slow frame does not jump; s. */
const LONGEST_STEP = 0.1;
const SECOND = 1e9;

export class Player {
  /** @type {string[]} the scenarios that are played, by seat */
  #texts = [];
  #now = 0;
  #busy = false;
  #last = 0;
  /** Counts the scenarios: an answer for an older one is not shown. */
  #turn = 0;
  playing = false;
  speed = 1;
  end = 0;
  /** Pictures per second at most. */
  most = 60;
  /** Durations between pictures, ms, the latest last. */
  spacing = /** @type {number[]} */ ([]);

  /**
   * @param {(frames: Frame[], elapsed: number) => void} show
   * @param {(error: Error) => void} fail
   * @param {() => void} changed playing or paused
   */
  constructor(show, fail, changed) {
    this.show = show;
    this.fail = fail;
    this.changed = changed;
    requestAnimationFrame((time) => this.#tick(time));
  }

  /** ns */
  get now() {
    return this.#now;
  }

  /**
   * Plays these scenarios from a time on; fails as the engine does.
   * @param {string[]} texts
   * @param {number} at ns
   */
  async open(texts, at) {
    const turn = ++this.#turn;
    this.#texts = texts;
    this.#busy = true;
    try {
      const frames = await Promise.all(texts.map((text, seat) => ask({ ask: "open", seat, text, at: Math.round(at) })));
      if (turn === this.#turn) this.#took(frames, 0);
    } catch (error) {
      // An engine that refused has nothing to play.
      this.#texts = [];
      this.playing = false;
      this.changed();
      throw error;
    } finally {
      if (turn === this.#turn) this.#busy = false;
    }
  }

  /** Goes to a time; back means from the start, since a run is only played forwards. @param {number} to ns */
  async seek(to) {
    to = Math.max(0, Math.min(to, this.end || to));
    if (!this.#texts.length) return;
    if (to >= this.#now && !this.#busy) await this.#advance(to, 0);
    else await this.open(this.#texts, to).catch((error) => this.#failed(error));
  }

  /** @param {boolean} playing */
  play(playing) {
    if (playing && this.#now >= this.end) void this.seek(0);
    this.playing = playing;
    this.#last = 0;
    this.changed();
  }

  /** @param {number} by ns */
  step(by) {
    this.play(false);
    if (!this.#busy) void this.seek(this.#now + by);
  }

  /** @param {number} to @param {number} elapsed s of the viewer's time */
  async #advance(to, elapsed) {
    const turn = this.#turn;
    this.#busy = true;
    try {
      const seats = this.#texts.map((_, seat) => ask({ ask: "frame", seat, to: Math.round(to) }));
      const frames = await Promise.all(seats);
      if (turn === this.#turn) this.#took(frames, elapsed);
    } catch (error) {
      if (turn === this.#turn) this.#failed(error);
    } finally {
      if (turn === this.#turn) this.#busy = false;
    }
  }

  /** @param {Frame[]} frames @param {number} elapsed */
  #took(frames, elapsed) {
    [this.#now, this.end] = [frames[0].now, frames[0].end];
    this.show(frames, elapsed);
    if (this.playing && this.#now >= this.end) this.play(false);
  }

  /** @param {unknown} error */
  #failed(error) {
    this.playing = false;
    this.changed();
    this.fail(error instanceof Error ? error : new Error(String(error)));
  }

  /** @param {number} time ms */
  #tick(time) {
    requestAnimationFrame((next) => this.#tick(next));
    if (!this.playing || this.#busy || !this.#texts.length || document.hidden) {
      if (!this.#busy) this.#last = 0;
      return;
    }
    const passed = this.#last ? time - this.#last : 1000 / 60;
    if (this.#last && passed < 1000 / this.most - 4) return;
    if (this.#last) {
      this.spacing.push(passed);
      if (this.spacing.length > 600) this.spacing.shift();
    }
    this.#last = time;
    const elapsed = Math.min(passed / 1000, Math.max(LONGEST_STEP, 1.5 / this.most));
    void this.#advance(this.#now + elapsed * this.speed * SECOND, elapsed);
  }
}
