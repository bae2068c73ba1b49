//! The mistakes that are tried in a scenario, one at a time.
/// What is replaced, by what, and the message.
pub(crate) const CASES: &[(&str, &str, &str)] = &[
    (
        "seed = 1",
        "sede = 1",
        r#"S.toml:4: unknown key "sede" in the scenario; allowed: KEYS(scenario) (did you mean "seed"?)"#,
    ),
    ("seed = 1", r#"colour = "red""#, r#"S.toml:4: unknown key "colour" in the scenario; allowed: KEYS(scenario)"#),
    (
        r#"queue = "fifo""#,
        r#"qeue = "fifo""#,
        r#"S.toml:23: unknown key "qeue" in [[hop]]; allowed: KEYS(hop) (did you mean "queue"?)"#,
    ),
    (
        "flows = 8",
        "flow = 8",
        r#"S.toml:8: unknown key "flow" in [record]; allowed: KEYS(record) (did you mean "flows"?)"#,
    ),
    (
        r#"limit = "100p""#,
        r#"limt = "100p""#,
        r#"S.toml:14: unknown key "limt" in queue "fifo"; allowed: kind, limit (did you mean "limit"?)"#,
    ),
    (
        "initial_window = 3",
        "initial_windw = 3",
        r#"S.toml:35: unknown key "initial_windw" in transport "tcp"; allowed: kind, initial_window, packet, header, ecn, pacing, min_rto, ack_every, delayed_ack, quick_acks, receive_buffer, receive_buffer_max, receive_limit, ticks, sack, recovery, sack_compression, gso_max_segs (did you mean "initial_window"?)"#,
    ),
    ("[[hop]]\nname = \"acks\"", "[hop]\nname = \"acks\"", "S.toml:20: not TOML: duplicate key (column 2)"),
    (
        "rate = \"10mbit\"\n",
        "",
        r#"S.toml:20: no rate in [[hop]]; allowed: "20mbit", [{ at = "0s", rate = "20mbit" }, { at = "30s", rate = "10mbit" }], { trace = "FILE" }, "trace:FILE" or { mean = "20mbit", aggregate = 16 }"#,
    ),
    ("queue = \"fifo\"\n", "", "S.toml:20: no queue in [[hop]]; allowed: QUEUES"),
    ("rtt = \"100ms\"\n", "", r#"S.toml:25: no rtt in [[flow]]; allowed: "50ms" or { uniform = ["10ms", "100ms"] }"#),
    ("route = [\"bottleneck\"]\n", "", r#"S.toml:25: no route in [[flow]]; allowed: "bottleneck", "acks""#),
    (r#"kind = "fifo", "#, "", "S.toml:14: no kind in this queue; allowed: QUEUES"),
    (
        r#"rate = "10mbit""#,
        "rate = 10mbit",
        "S.toml:22: not TOML: string values must be quoted, expected literal string (column 8)",
    ),
    ("seed = 1", "seed = 1\nseed = 2", "S.toml:5: not TOML: duplicate key (column 1)"),
    (
        r#"rate = "10mbit""#,
        r#"rate = "10""#,
        r#"S.toml:22: rate in [[hop]] cannot be "10"; allowed: a rate such as "20mbit", "1gbit", "256kbit" (to tc and iperf3 10 is 10 bits per second: "10bit")"#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = "10Mbps""#,
        r#"S.toml:22: rate in [[hop]] cannot be "10Mbps"; allowed: a rate such as "20mbit", "1gbit", "256kbit" ("10mbps" is 10 MB/s to tc and 10 mbit/s to others; did you mean "10mbit"?)"#,
    ),
    (
        r#"rate = "10mbit""#,
        "rate = 10",
        r#"S.toml:22: rate in [[hop]] cannot be 10; allowed: "20mbit", [{ at = "0s", rate = "20mbit" }, { at = "30s", rate = "10mbit" }], { trace = "FILE" }, "trace:FILE" or { mean = "20mbit", aggregate = 16 }"#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = "-10mbit""#,
        r#"S.toml:22: rate in [[hop]] cannot be "-10mbit"; allowed: a rate such as "20mbit", "1gbit", "256kbit""#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = "0mbit""#,
        r#"S.toml:22: rate cannot be "0bit" at the start; allowed: 1bit to 1000gbit (a later step may be 0: an outage)"#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = "nanmbit""#,
        r#"S.toml:22: rate in [[hop]] cannot be "nanmbit"; allowed: a rate such as "20mbit", "1gbit", "256kbit""#,
    ),
    (r#"rate = "10mbit""#, r#"rate = "2tbit""#, r#"S.toml:22: rate cannot be "2000gbit"; allowed: 1bit to 1000gbit"#),
    (
        r#"delay = "1ms""#,
        "delay = 1",
        r#"S.toml:13: delay in [[hop]] cannot be 1; allowed: "10ms" or [{ at = "0s", delay = "10ms" }, { at = "30s", delay = "5ms" }]"#,
    ),
    (
        r#"delay = "1ms""#,
        r#"delay = "1 msex""#,
        r#"S.toml:13: delay in [[hop]] cannot be "1 msex"; allowed: a time such as "5ms", "1.5s", "200us" (did you mean "1msec"?)"#,
    ),
    (r#"delay = "1ms""#, r#"delay = "2h""#, r#"S.toml:13: delay cannot be "7200s"; allowed: 0ms to 3600s"#),
    (
        r#"delay = "1ms""#,
        "delay = [\n  { at = \"0s\", delay = \"1ms\" },\n  { at = \"5s\", delay = \"61min\" },\n]",
        r#"S.toml:15: delay cannot be "3660s"; allowed: 0ms to 3600s"#,
    ),
    (
        "delay = \"1ms\"\nqueue",
        "delay = [{ at = \"0s\", delay = \"5ms\" }, { at = \"1s\", delay = \"1ms\" }]\njitter = \"2ms\"\nqueue",
        r#"S.toml:14: jitter cannot be "2ms" with a delay of 1ms; allowed: at most the delay"#,
    ),
    (
        "overhead = \"7B\"\n",
        "jitter = \"2ms\"\n",
        r#"S.toml:15: jitter cannot be "2ms" with a delay of 1ms; allowed: at most the delay"#,
    ),
    (
        r#"overhead = "7B""#,
        r#"jitter = "2p""#,
        r#"S.toml:15: jitter in [[hop]] cannot be "2p"; allowed: a time such as "5ms", "1.5s", "200us", 0ms to 3600s"#,
    ),
    (
        r#"overhead = "7B""#,
        r#"overhead = "7p""#,
        r#"S.toml:15: overhead in [[hop]] cannot be "7p"; allowed: a size such as "1500B", "64KB", "32MiB", 0B to 1000B"#,
    ),
    (
        "loss = 0.01",
        "loss = 1.0",
        r#"S.toml:16: loss in [[hop]] cannot be 1.0; allowed: a share of at least 0 and less than 1, such as 0.01 or "1%"; with a correlation, "1% 25%"; or "gemodel P R 1-H 1-K", such as "gemodel 1% 10%""#,
    ),
    (
        "loss = 0.01",
        "loss = -0.1",
        r#"S.toml:16: loss in [[hop]] cannot be -0.1; allowed: a share of at least 0 and less than 1, such as 0.01 or "1%"; with a correlation, "1% 25%"; or "gemodel P R 1-H 1-K", such as "gemodel 1% 10%""#,
    ),
    (
        "loss = 0.01",
        "loss = nan",
        r#"S.toml:16: loss in [[hop]] cannot be nan; allowed: a share of at least 0 and less than 1, such as 0.01 or "1%"; with a correlation, "1% 25%"; or "gemodel P R 1-H 1-K", such as "gemodel 1% 10%""#,
    ),
    (
        "loss = 0.01",
        r#"loss = "100%""#,
        r#"S.toml:16: loss in [[hop]] cannot be "100%"; allowed: a share of at least 0 and less than 1, such as 0.01 or "1%"; with a correlation, "1% 25%"; or "gemodel P R 1-H 1-K", such as "gemodel 1% 10%""#,
    ),
    (
        "loss = 0.01",
        r#"loss = "gemodel 1% 10% 50% 0% 0%""#,
        r#"S.toml:16: loss in [[hop]] cannot be "gemodel 1% 10% 50% 0% 0%"; allowed: a share of at least 0 and less than 1, such as 0.01 or "1%"; with a correlation, "1% 25%"; or "gemodel P R 1-H 1-K", such as "gemodel 1% 10%""#,
    ),
    (
        "loss = 0.01",
        r#"duplicate = "1% 200%""#,
        r#"S.toml:16: duplicate in [[hop]] cannot be "1% 200%"; allowed: a share from 0 to 1, such as 0.01 or "1%"; with a correlation, "1% 25%""#,
    ),
    (
        "loss = 0.01",
        r#"reorder = "25% gap 0""#,
        r#"S.toml:16: reorder in [[hop]] cannot be "25% gap 0"; allowed: a share from 0 to 1, such as 0.25 or "25%"; with a correlation and a gap, "25% 50% gap 5""#,
    ),
    (
        "loss = 0.01",
        r#"police = "rate 10mbit""#,
        r#"S.toml:16: police in [[hop]] cannot be "rate 10mbit"; allowed: "rate 10mbit burst 100kb", a rate above 0 and a bucket of at least 1 byte; then perhaps "conform-exceed mark" in place of drop"#,
    ),
    (
        "loss = 0.01",
        r#"mechanism = "leo""#,
        r#"S.toml:17: a mechanism is no shaper; allowed with mechanism: release = "end""#,
    ),
    (
        "loss = 0.01",
        r#"autorate = "drain""#,
        r#"S.toml:16: autorate follows a link that changes; allowed with a mechanism"#,
    ),
    (
        "loss = 0.01",
        r#"mechanism = "wify""#,
        r#"S.toml:16: unknown mechanism "wify"; allowed: leo, docsis, wifi, cellular (did you mean "wifi"?)"#,
    ),
    ("loss = 0.01", "delay_limit = 0", r#"S.toml:16: delay_limit in [[hop]] cannot be 0; allowed: 1p to 1000000000p"#),
    (
        r#"release = "start""#,
        r#"release = "strat""#,
        r#"S.toml:17: release in [[hop]] cannot be "strat"; allowed: end | start (did you mean "start"?)"#,
    ),
    (
        r#"release = "start""#,
        r#"release = "end""#,
        r#"S.toml:18: burst needs release = "start": a wire hands a packet over with its last bit and has no bursts"#,
    ),
    (
        "seed = 1",
        "seed = -1",
        "S.toml:4: seed in the scenario cannot be -1; allowed: a whole number, 0 to 9223372036854775807",
    ),
    (
        "seed = 1",
        "seed = 1.5",
        "S.toml:4: seed in the scenario cannot be 1.5; allowed: a whole number, 0 to 9223372036854775807",
    ),
    (
        "count = 2",
        r#"dscp = "af44""#,
        r#"S.toml:27: dscp in [[flow]] cannot be "af44"; allowed: 0 to 63 or a name: cs0 to cs7, af11 to af43, ef, va, le (did you mean "af41"?)"#,
    ),
    (
        "count = 2",
        "dscp = 64",
        "S.toml:27: dscp in [[flow]] cannot be 64; allowed: 0 to 63 or a name: cs0 to cs7, af11 to af43, ef, va, le",
    ),
    (
        "count = 2",
        r#"to = " phone""#,
        r#"S.toml:27: to cannot be " phone"; allowed: 1 to 64 letters, digits, spaces (inside) and "_", "-", ".", "+""#,
    ),
    ("count = 2", "count = 0", "S.toml:27: count in [[flow]] cannot be 0; allowed: 1 to 10000000"),
    (
        "count = 2",
        r#"count = "2""#,
        r#"S.toml:27: count in [[flow]] cannot be "2"; allowed: a whole number, 1 to 10000000"#,
    ),
    ("flows = 8", "flows = true", "S.toml:8: flows in [record] cannot be true; allowed: a whole number, 0 to 1000000"),
    (
        r#"limit = "100p""#,
        r#"limit = "0p""#,
        r#"S.toml:14: limit in queue "fifo" cannot be "0p"; allowed: at least one packet, byte or fraction of a BDP: "100p", "45KB", "1.5bdp""#,
    ),
    (
        r#"limit = "100p""#,
        "limit = 0",
        r#"S.toml:14: limit in queue "fifo" cannot be 0; allowed: at least one packet, byte or fraction of a BDP: "100p", "45KB", "1.5bdp""#,
    ),
    (
        r#"limit = "100p""#,
        r#"limit = "100ms""#,
        r#"S.toml:14: limit in queue "fifo" cannot be "100ms"; allowed: at least one packet, byte or fraction of a BDP: "100p", "45KB", "1.5bdp""#,
    ),
    (
        "initial_window = 3",
        "initial_window = 0",
        r#"S.toml:35: initial_window in transport "tcp" cannot be 0; allowed: 1p to 10000p"#,
    ),
    (r#"name = "base""#, "name = 3", "S.toml:1: name in the scenario cannot be 3; allowed: a text"),
    (
        r#"name = "acks""#,
        r#"name = """#,
        r#"S.toml:21: name cannot be ""; allowed: 1 to 64 letters, digits, spaces (inside) and "_", "-", ".", "+""#,
    ),
    (
        r#"name = "acks""#,
        r#"name = "a/b""#,
        r#"S.toml:21: name cannot be "a/b"; allowed: 1 to 64 letters, digits, spaces (inside) and "_", "-", ".", "+""#,
    ),
    (
        r#"queue = "fifo""#,
        r#"queue = "FIFI""#,
        r#"S.toml:23: unknown queue "FIFI"; allowed: QUEUES (did you mean "fifo"?)"#,
    ),
    (
        r#"queue = "fifo""#,
        "queue = 7",
        r#"S.toml:23: queue in [[hop]] cannot be 7; allowed: QUEUES, or { kind = "..." } with parameters"#,
    ),
    (
        r#"controller = "new_reno""#,
        r#"controller = "new_rino""#,
        r#"S.toml:28: unknown controller "new_rino"; allowed: CONTROLLERS (did you mean "new_reno"?)"#,
    ),
    (
        r#"controller = "new_reno""#,
        r#"controller = "warp""#,
        r#"S.toml:28: unknown controller "warp"; allowed: CONTROLLERS"#,
    ),
    (
        r#"traffic = "bulk""#,
        r#"traffic = "blk""#,
        r#"S.toml:29: unknown traffic "blk"; allowed: bulk, finite, cbr, poisson, thin, onoff, web, video (did you mean "bulk"?)"#,
    ),
    (r#"kind = "tcp""#, r#"kind = "sctp""#, r#"S.toml:35: unknown transport "sctp"; allowed: tcp, quic, udp"#),
    (
        r#"rate = "10mbit""#,
        "rate = [\n  { at = \"0s\", rate = \"0bit\" },\n  { at = \"5s\", rate = \"2mbit\" },\n]",
        r#"S.toml:23: rate cannot be "0bit" at the start; allowed: 1bit to 1000gbit (a later step may be 0: an outage)"#,
    ),
    (
        r#"rate = "10mbit""#,
        "rate = [\n  { at = \"0s\", rate = \"1mbit\" },\n  { at = \"5s\", rate = \"0mbit\" },\n]",
        r#"S.toml:24: rate cannot stay "0bit" for ever; allowed: an outage that a later step ends"#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = { trace = "no.mahi" }"#,
        r#"S.toml:22: cannot read trace "/nowhere/no.mahi": no such file (built-in traces: lte, 5g, wifi, starlink)"#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = "trace:no.csv""#,
        r#"S.toml:22: cannot read trace "/nowhere/no.csv": no such file (built-in traces: lte, 5g, wifi, starlink)"#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = { file = "no.mahi" }"#,
        r#"S.toml:22: unknown key "file" in this rate; allowed: trace, mean, aggregate"#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = { mean = "10mbit", aggregate = 0 }"#,
        "S.toml:22: aggregate cannot be 0; allowed: 1 to 1024 packets of 1500 bytes",
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = { mean = "0mbit", aggregate = 16 }"#,
        r#"S.toml:22: mean cannot be "0bit"; allowed: 1bit to 1000gbit"#,
    ),
    (
        r#"rate = "10mbit""#,
        r#"rate = { mean = "10mbit" }"#,
        "S.toml:22: no aggregate in this rate; allowed: 1 to 1024 packets of 1500 bytes",
    ),
    (
        r#"duration = "60s""#,
        r#"duration = "0s""#,
        r#"S.toml:2: duration in the scenario cannot be "0s"; allowed: 1us to 31536000s"#,
    ),
    (
        r#"duration = "60s""#,
        r#"duration = "inf""#,
        r#"S.toml:2: duration in the scenario cannot be "inf"; allowed: a time such as "5ms", "1.5s", "200us", 1us to 31536000s"#,
    ),
    (
        r#"warmup = "5s""#,
        r#"warmup = "60s""#,
        "S.toml:3: a warmup of 60s leaves nothing of a duration of 60s; allowed: less than the duration",
    ),
    (
        r#"interval = "10ms""#,
        r#"interval = "0ms""#,
        r#"S.toml:7: interval in [record] cannot be "0ms"; allowed: 1us to 86400s"#,
    ),
    (
        r#"interval = "10ms""#,
        r#"interval = "1us""#,
        "S.toml:7: an interval of 1us gives more than 10000000 points in 60s; allowed: at least 6us",
    ),
    (r#"stop = "50s""#, r#"stop = "0s""#, r#"S.toml:34: stop cannot be "0ms"; allowed: later than the start, 0ms"#),
    (
        r#"start = "0s""#,
        r#"start = "60s""#,
        r#"S.toml:33: start cannot be "60s"; allowed: before the end of the run, 60s"#,
    ),
    (
        r#"start = "0s""#,
        r#"start = { uniform = ["0s", "55s"] }"#,
        r#"S.toml:34: stop cannot be "50s"; allowed: later than the start, 55s"#,
    ),
    (
        r#"start = "0s""#,
        r#"start = { uniform = ["5s", "1s"] }"#,
        r#"S.toml:33: start cannot be uniform from "5s" to "1s"; allowed: earlier first"#,
    ),
    (
        r#"start = "0s""#,
        r#"start = { uniform = ["5s"] }"#,
        r#"S.toml:33: uniform in this range cannot be ["5s"]; allowed: two values, as in "0s" or { uniform = ["0s", "5s"] }"#,
    ),
    (
        r#"rtt = "100ms""#,
        r#"rtt = "0.5ms""#,
        "S.toml:30: an rtt of 500us is less than the delays of the hops on its way; allowed: at least 1ms",
    ),
    (r#"rtt = "100ms""#, r#"rtt = "0ms""#, r#"S.toml:30: rtt cannot be "0ms"; allowed: 1us to 3600s"#),
    (
        r#"rtt = "100ms""#,
        r#"rtt = { uniform = ["30ms", "10ms"] }"#,
        r#"S.toml:30: rtt cannot be uniform from "30ms" to "10ms"; allowed: smaller first"#,
    ),
    (
        r#"rtt = "100ms""#,
        r#"rtt = { unifrom = ["30ms", "10ms"] }"#,
        r#"S.toml:30: unknown key "unifrom" in this range; allowed: uniform (did you mean "uniform"?)"#,
    ),
    (
        r#"rtt = "100ms""#,
        r#"rtt = ["10ms", "30ms"]"#,
        r#"S.toml:30: rtt in [[flow]] cannot be ["10ms", "30ms"]; allowed: "50ms" or { uniform = ["10ms", "100ms"] }"#,
    ),
    (r#"name = "acks""#, r#"name = "bottleneck""#, r#"S.toml:21: name "bottleneck" is taken; names are unique"#),
    (r#"route = ["bottleneck"]"#, "route = []", "S.toml:31: route is empty; allowed: at least one hop"),
    (
        r#"route = ["bottleneck"]"#,
        r#"route = ["botleneck"]"#,
        r#"S.toml:31: route in [[flow]] cannot be "botleneck"; allowed: a hop: "bottleneck", "acks" (did you mean "bottleneck"?)"#,
    ),
    (
        r#"route = ["bottleneck"]"#,
        r#"route = "bottleneck""#,
        r#"S.toml:31: route in [[flow]] cannot be "bottleneck"; allowed: a list of hops: ["bottleneck", "acks"]"#,
    ),
    (
        r#"route = ["bottleneck"]"#,
        r#"route = ["bottleneck", "bottleneck"]"#,
        r#"S.toml:31: route crosses "bottleneck" twice; allowed: each hop once"#,
    ),
    (
        r#"back = ["acks"]"#,
        r#"back = ["nowhere"]"#,
        r#"S.toml:32: back in [[flow]] cannot be "nowhere"; allowed: a hop: "bottleneck", "acks""#,
    ),
    (
        "transport = { kind = \"tcp\", initial_window = 3 }\n",
        "transport = \"tcp\"\n[[flow]]\nname = \"bulk.1\"\nrtt = \"9ms\"\nroute = [\"acks\"]\n",
        r#"S.toml:37: name "bulk.1" is taken by one of the flows of "bulk"; names are unique"#,
    ),
    (
        "traffic = \"bulk\"\n",
        "traffic = \"bulk\"\n# a comment\n\nburst = 3\n",
        r#"S.toml:32: unknown key "burst" in [[flow]]; allowed: KEYS(flow)"#,
    ),
    (
        "traffic = \"bulk\"\nrtt = \"100ms\"\nroute = [\"bottleneck\"]\nback = [\"acks\"]\nstart = \"0s\"\nstop = \"50s\"\ntransport = { kind = \"tcp\", initial_window = 3 }",
        "traffic = \"poisson\"\nrtt = \"9ms\"\nroute = [\"acks\"]",
        r#"S.toml:28: transport "udp" has no congestion control; allowed: no controller, tcp or quic"#,
    ),
    (
        "traffic = \"bulk\"\n",
        "traffic = { kind = \"cbr\", rate = \"5mbit\" }\n",
        r#"S.toml:29: traffic "cbr" needs transport "udp"; allowed with "tcp": bulk, finite, thin, onoff, web"#,
    ),
    (
        "traffic = \"bulk\"\n",
        "traffic = { kind = \"video\", start_rate = \"10mbit\" }\n",
        r#"S.toml:29: start_rate in traffic "video" cannot be "10mbit"; allowed: min_rate to max_rate, 150kbit to 2500kbit"#,
    ),
    (
        "traffic = \"bulk\"\n",
        "traffic = { kind = \"video\", control = \"nada:priority=0\" }\n",
        r#"S.toml:29: control in traffic "video" cannot be "nada:priority=0"; allowed: priority of nada: 0.01 to 100"#,
    ),
    (
        r#"transport = { kind = "tcp", initial_window = 3 }"#,
        r#"transport = "udp""#,
        r#"S.toml:29: traffic "bulk" needs transport "tcp" or "quic"; allowed with "udp": cbr, poisson, thin, onoff, video"#,
    ),
    (
        "controller = \"new_reno\"\ntraffic = \"bulk\"\nrtt = \"100ms\"\nroute = [\"bottleneck\"]\nback = [\"acks\"]\nstart = \"0s\"\nstop = \"50s\"\ntransport = { kind = \"tcp\", initial_window = 3 }",
        "rtt = \"9ms\"\nroute = [\"acks\"]\ntraffic = { kind = \"cbr\", packet = \"100B\" }\ntransport = { kind = \"udp\", header = \"200B\" }",
        "S.toml:30: a packet of 100B leaves no room for data after 200B of headers; allowed: more than 200B",
    ),
    (
        "traffic = \"bulk\"\n",
        "traffic = { kind = \"web\", shape = inf }\n",
        r#"S.toml:29: shape in traffic "web" cannot be inf; allowed: a number, 1.05 to 10"#,
    ),
    (
        "traffic = \"bulk\"\n",
        "traffic = { kind = \"thin\", interval = \"0ms\" }\n",
        r#"S.toml:29: interval in traffic "thin" cannot be "0ms"; allowed: 1us to 3600s"#,
    ),
    (
        "traffic = \"bulk\"\n",
        "traffic = \"bulk\"\ncommand = \"iperf3 -c {peer}\"\n",
        "S.toml:29: traffic beside command: a program decides what it sends; allowed: one of the two",
    ),
    (
        r#"traffic = "bulk""#,
        r#"command = 3"#,
        r#"S.toml:29: command in [[flow]] cannot be 3; allowed: a program and its arguments: "iperf3 -c {peer} -t {duration}""#,
    ),
    (
        r#"traffic = "bulk""#,
        r##"command = " # nothing""##,
        r#"S.toml:29: command names no program; allowed: a program and its arguments: "iperf3 -c {peer} -t {duration}""#,
    ),
    (
        r#"traffic = "bulk""#,
        r#"command = "sh -c 'sleep 1""#,
        "S.toml:29: command ends inside quotes or after a backslash; allowed: quotes in pairs, as for a shell",
    ),
    (
        r#"traffic = "bulk""#,
        r#"command = "iperf3 -c {pear}""#,
        r#"S.toml:29: command cannot fill in "{pear}"; allowed: {peer}, {duration}, {n}; a brace itself is written twice, {{ or }} (did you mean "{peer}"?)"#,
    ),
    (
        r#"traffic = "bulk""#,
        "command = \"iperf3 -c {peer}\"\nserver = \"iperf3 -s {\"",
        r#"S.toml:30: server cannot fill in "{"; allowed: {peer}, {duration}, {n}; a brace itself is written twice, {{ or }}"#,
    ),
    (
        r#"traffic = "bulk""#,
        r#"server = "iperf3 -s""#,
        "S.toml:29: server without command; allowed: a command, for which the server is the other end",
    ),
    (
        "traffic = \"bulk\"\nrtt = \"100ms\"\nroute = [\"bottleneck\"]\nback = [\"acks\"]\nstart = \"0s\"\nstop = \"50s\"",
        "command = \"iperf3 -c {peer} -t {duration}\"\nrtt = \"9ms\"\nroute = [\"acks\"]\nstart = \"59001ms\"",
        "S.toml:29: a flow of 999ms has no whole second for {duration}; allowed: at least 1s",
    ),
];
