// What the engine answers; `src/protocol.rs` is the same in Rust. Types only: no page loads this file.

export interface Param {
  name: string;
  default: string;
  allowed: string;
  doc: string;
}
export interface Choice {
  name: string;
  summary: string;
  params: Param[];
}
export interface Scene {
  name: string;
  text: string;
}
export interface Catalogue {
  queues: Choice[];
  mechanisms: Choice[];
  controllers: Choice[];
  traffic: Choice[];
  presets: Choice[];
  scenes: Scene[];
  version: string;
}

export interface Chosen {
  kind: string;
  text: string;
  params: Record<string, string>;
}
export interface Hop {
  name: string;
  rate: string;
  rate_mbit: number;
  steps: [number, number][];
  mechanism: Chosen | null;
  delay_ms: number;
  queue: Chosen;
  lanes: Lanes;
  classes: Class[];
  /** By group of flows, the class whose queue its packets enter. */
  class_of: number[];
  loss: number;
}
export type Lanes = "one" | "flows" | "ecn";
export interface Class {
  name: string;
  parent: number | null;
  rate: string;
  ceil: string;
  /** The queue of a class that is nobody's parent, and how it is drawn. */
  leaf: [string, Lanes] | null;
}
export interface Group {
  name: string;
  count: number;
  controller: Chosen | null;
  traffic: Chosen;
  transport: string;
  ecn: boolean;
  rtt_ms: [number, number];
  route: number[];
  back: number[];
  start: number;
  stop: number;
}
export interface Outline {
  name: string;
  duration: number;
  warmup: number;
  hops: Hop[];
  groups: Group[];
  flows: [string, number][];
  count: number;
}
export interface ScenarioText {
  text: string;
  outline: Outline;
}

export interface Quantiles {
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  max?: number;
  min?: number;
}
export interface FlowSummary {
  name: string;
  controller: string;
  goodput_mbit: number;
  throughput_mbit: number;
  rtt_ms: Quantiles | null;
  retransmits: number;
  timeouts: number;
  lost_packets: number | null;
  completion_s: (Quantiles & { count: number }) | null;
  verdicts: { right: number; wrong: number; undecided: number; found_s: number | null } | null;
  application?: {
    one_way_ms: Quantiles | null;
    loss: number | null;
    voice: { mos: number; loss: number } | null;
    video?: { mos: number | null; freezes: number; frozen_s: number; rate_mbit: number } | null;
    messages: { count: number; delay_ms: Quantiles } | null;
  } | null;
}
export interface HopSummary {
  name: string;
  queue: string;
  utilisation: number;
  packets: number;
  queue_packets: Quantiles | null;
  sojourn_ms: Quantiles | null;
  drops: { total: number; by_reason: Record<string, number> };
  marks: number;
}
export interface Summary {
  name: string;
  seed: number;
  duration_s: number;
  warmup_s: number;
  hops: HopSummary[];
  flows: FlowSummary[];
  fairness: { jain: number };
}
export interface Line {
  source: string;
  metric: string;
  at: number[];
  values: number[];
}
export interface Played {
  summary: Summary;
  series: Line[];
}

export interface HopState {
  packets: number;
  bytes: number;
  rate_mbit: number;
  delay_ms: number;
  gauges: [string, number][];
  flow_gauges: [number, string, number][];
}
export interface Frame {
  now: number;
  end: number;
  hops: HopState[];
  /** Window, packets in flight, smoothed RTT in ms, pacing rate in Mbit/s. */
  senders: ([number | null, number | null, number | null, number | null] | null)[];
  /** Five numbers a packet: flow, flags, hop, place, how far. */
  packets: number[];
  left_out: number;
  /** Flow, hop, reason, ns ago. */
  drops: [number, number, string, number][];
  dropped: number;
}

export type Where = "top" | { hop: number } | { flow: number } | "new_flow";
export interface Edit {
  table?: Where;
  key?: string[];
  value?: string;
  at?: number;
}
export type Ask =
  | { ask: "catalogue" }
  | { ask: "read"; text: string }
  | { ask: "edit"; text: string; edits: Edit[] }
  | { ask: "run"; text: string; points: number }
  | { ask: "open"; seat: number; text: string; at: number }
  | { ask: "frame"; seat: number; to: number };
