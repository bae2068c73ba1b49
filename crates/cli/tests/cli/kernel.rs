//! `--on kernel`: the same scenario in a Linux kernel and in the simulator, and what is refused. Without a virtual machine or a fetched
//! kernel the tests that need one are skipped, with the reason.
use crate::support::{Place, json, text};
use narrows_results::folder;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A bottleneck below `htb`, which hands a packet over when its first bit is due.
fn scenario(queue: &str, flows: &str) -> String {
    format!(
        "name = \"both\"\nduration = \"10s\"\nwarmup = \"3s\"\n\n[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = {queue}\n\
         release = \"start\"\nburst = \"1600B\"\n\n{flows}"
    )
}

fn flow(name: &str, controller: &str) -> String {
    format!("[[flow]]\nname = \"{name}\"\ncontroller = \"{controller}\"\nrtt = \"30ms\"\nroute = [\"link\"]\n\n")
}

/// A folder, on a machine that has what the lab needs: our modules too.
pub(crate) fn lab(test: &str) -> Option<Place> {
    let place = Place::new(test);
    let doctor = place.run(&["lab", "doctor"]);
    let said = text(&doctor.stdout);
    if doctor.status.success() && said.contains("with cocoa, cp, fq_cp, fq_codel_fair, lfq") {
        return Some(place);
    }
    println!("skipped: {said}{}", text(&doctor.stderr));
    None
}

#[test]
fn what_the_lab_lacks_is_json_too() {
    let place = Place::new("doctor-json");
    let output = place.run(&["lab", "doctor", "--json"]);
    let findings = json(&text(&output.stdout));
    let findings = findings.as_array().expect("a list");
    assert!(findings.iter().any(|finding| finding["name"] == "qemu-system-x86_64"), "{findings:?}");
    let lacks = findings.iter().any(|finding| finding["needed"] == true && finding["there"] == false);
    assert_eq!(output.status.success(), !lacks, "{findings:?}");
}

fn run(place: &Place, out: &str, more: &[&str]) -> Value {
    json(&place.ok(&[&["run", "x.toml", "--json", "--out", out, "--force"], more].concat()))
}

/// A figure of a summary by its path.
fn figure(summary: &Value, path: &str) -> f64 {
    summary.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {summary}"))
}

/// The aims for disciplines of ours: utilisation within one point, queue within 10 % or one packet, RTT within 3 %.
fn hold(queue: &str, place: &Place, sim: &Value, kernel: &Value) {
    let of = |path: &str| (figure(sim, path), figure(kernel, path));
    let check = |path: &str, allowed: &dyn Fn(f64) -> f64| {
        let (sim, kernel) = of(path);
        assert!(
            (sim - kernel).abs() <= allowed(sim),
            "{queue}: {path} is {sim} in the simulator and {kernel} in Linux"
        );
    };
    check("/hops/0/utilisation", &|_| 0.01);
    check("/hops/0/queue_packets/mean", &|sim| (0.1 * sim).max(1.0));
    // Means over time: the simulator's summary has means over acknowledgments.
    let (sim, kernel) = (mean_srtt(place, "sim"), mean_srtt(place, "kernel"));
    assert!(
        (sim - kernel).abs() <= 0.03 * sim,
        "{queue}: the RTT is {sim} ms in the simulator and {kernel} ms in Linux"
    );
}

/// The mean of the smoothed RTT after the warm-up, ms.
fn mean_srtt(place: &Place, folder: &str) -> f64 {
    let result = folder::read(&place.path(folder)).expect("a result");
    let series = result.series.iter().find(|series| series.metric == "srtt_ms").expect("it is recorded");
    let values: Vec<f64> =
        series.points.iter().filter(|point| point.0 >= result.summary.warmup_s).map(|point| point.1).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn queues_of_ours_do_in_linux_what_they_do_in_the_simulator() {
    let Some(place) = lab("kernel_ours") else { return };
    for queue in ["\"cp\"", "\"cocoa\""] {
        place.write("x.toml", &scenario(queue, &flow("bulk", "cubic")));
        let (sim, kernel) = (run(&place, "sim", &[]), run(&place, "kernel", &["--on", "kernel"]));
        hold(queue, &place, &sim, &kernel);
        assert_eq!(kernel["hops"][0]["sojourn_ms"], Value::Null, "nobody sees single packets");
        assert_eq!((&kernel["world"]["name"], &kernel["world"]["time"]), (&"kernel".into(), &"virtual".into()));
        assert!(kernel["world"]["linux"].as_str().is_some_and(|linux| linux.ends_with("-cloud-amd64")), "{kernel}");
        assert_eq!(sim["world"], Value::Null, "the simulator has no kernel");
        assert!(figure(&kernel, "/flows/0/goodput_mbit") > 8.0, "{kernel}");
    }
    let page = fs::read_to_string(place.path("kernel/report.html")).expect("a page");
    assert!(page.contains("cocoa"));
}

/// A packet in four is late by almost four times the jitter, which no distribution with a name does.
#[test]
fn netem_has_the_table_of_a_file() {
    let Some(place) = lab("kernel_table") else { return };
    place.write("own.dist", "# a quarter is late\n0 0 0 32760\n");
    let keys = "delay = \"10ms\"\njitter = \"4ms\"\ndistribution = { file = \"own.dist\" }\n";
    let thin = "[[flow]]\nname = \"thin\"\nrtt = \"30ms\"\ntraffic = { kind = \"thin\", interval = \"50ms\" }\ntransport = \"tcp\"\n";
    place.write("x.toml", &scenario("\"fifo\"", &format!("{keys}{thin}")));
    run(&place, "kernel", &["--on", "kernel"]);
    // A quarter of the packets take 16 ms longer: 34 ms on average, and 30 with any other distribution.
    let mean = mean_srtt(&place, "kernel");
    assert!((33.0..36.0).contains(&mean), "{mean} ms");
}

#[test]
fn hops_both_ways_delays_rates_and_kinds_of_traffic() {
    let Some(place) = lab("kernel_kinds") else { return };
    place.write(
        "x.toml",
        "name = \"kinds\"\nduration = \"6s\"\nwarmup = \"1s\"\n\
         [[hop]]\nname = \"down\"\nrate = [{ at = \"0s\", rate = \"8mbit\" }, { at = \"3s\", rate = \"4mbit\" }]\ndelay = \"5ms\"\nqueue = \"fq_codel\"\n\
         [[hop]]\nname = \"up\"\nrate = \"2mbit\"\nqueue = \"cake\"\n\
         [[flow]]\nname = \"bulk\"\ncount = 2\nrtt = \"40ms\"\nroute = [\"down\"]\nback = [\"up\"]\ncontroller = \"bbr\"\n\
         [[flow]]\nname = \"call\"\nrtt = \"20ms\"\nroute = [\"up\"]\nback = [\"down\"]\ntraffic = { kind = \"cbr\", rate = \"200kbit\", packet = \"250B\" }\ntransport = \"udp\"\n\
         [[flow]]\nname = \"web\"\nrtt = \"30ms\"\nroute = [\"down\"]\nback = [\"up\"]\ntraffic = \"web\"\n\
         [[flow]]\nname = \"camera\"\nrtt = \"20ms\"\nroute = [\"up\"]\nback = [\"down\"]\ntraffic = { kind = \"video\", max_rate = \"1mbit\" }\n\
         [[flow]]\nname = \"game\"\nrtt = \"40ms\"\nroute = [\"up\"]\nback = [\"down\"]\ncontroller = \"cubic\"\ntraffic = { kind = \"thin\", interval = \"25ms\" }\n",
    );
    let kernel = run(&place, "kernel", &["--on", "kernel"]);
    // 8 Mbit/s for two of the five measured seconds, 4 Mbit/s for three: 5.6 Mbit/s on average.
    let carried = figure(&kernel, "/hops/0/packets") * 1500.0 * 8.0 / 5.0 / 1e6;
    assert!(figure(&kernel, "/hops/0/utilisation") > 0.9 && (4.9..=6.5).contains(&carried), "{kernel}");
    // A datagram of 250 B carries 222 B.
    let call = figure(&kernel, "/flows/2/goodput_mbit");
    assert!((0.17..=0.18).contains(&call), "{kernel}");
    assert!(figure(&kernel, "/flows/3/completion_s/count") >= 1.0, "{kernel}");
    assert!(figure(&kernel, "/flows/0/rtt_ms/min") >= 40.0, "{kernel}");
    // 30 frames a second for five seconds, between two fair queues: all but the last ones are shown, soon.
    let camera = |key: &str| figure(&kernel, &format!("/flows/4/application/video/{key}"));
    assert!((149.0..=151.0).contains(&camera("frames")) && camera("shown") >= 145.0, "{kernel}");
    assert!(camera("frame_delay_ms/p95") < 200.0 && camera("freezes") == 0.0, "{kernel}");
    assert_eq!(kernel["flows"][4]["controller"], "gcc");
    // One each 25 ms. What is left of the RTT without the delays of the hops, 35 ms, is on the way back.
    let game = |key: &str| figure(&kernel, &format!("/flows/5/application/messages/{key}"));
    assert!((198.0..=202.0).contains(&game("count")) && game("unread") <= 3.0, "{kernel}");
    assert!(game("delay_ms/p50") < 17.5 && game("delay_ms/p95") < 43.0, "{kernel}");
}

/// A flow of each IP version behind one queue. IPv6 has 20 bytes more of headers: a full-sized packet carries 1428 bytes and not 1448. With
/// 1024 queues two of the three flows share one in 3 of 1024 runs, whatever the seed is, because the kernel draws the key of its hash itself. The
/// goodputs are then some 10 % off.
#[test]
fn flows_of_both_ip_versions() {
    let Some(place) = lab("kernel_versions") else { return };
    let text = "name = \"versions\"\nduration = \"14s\"\nwarmup = \"4s\"\n\
                [[hop]]\nname = \"link\"\nrate = \"8mbit\"\nqueue = { kind = \"fq_codel\", flows = 65536 }\nrelease = \"start\"\nburst = \"1600B\"\n\
                [[flow]]\nname = \"four\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
                [[flow]]\nname = \"six\"\nfamily = \"ipv6\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
                [[flow]]\nname = \"call\"\nfamily = \"ipv6\"\nrtt = \"20ms\"\nroute = [\"link\"]\n\
                traffic = { kind = \"cbr\", rate = \"400kbit\", packet = \"500B\" }\n";
    place.write("x.toml", text);
    for (out, more) in [("sim", &[][..]), ("kernel", &["--on", "kernel"])] {
        let summary = run(&place, out, more);
        let goodput = |flow: usize| figure(&summary, &format!("/flows/{flow}/goodput_mbit"));
        // Half of what the call leaves. At either end of the ten seconds up to a window of packets is on its way, or has arrived behind a
        // lost one and does not count yet: 2 % are 63 packets, and a window has 6 on the path and what CoDel leaves in the queue.
        for (flow, payload) in [(0, 1448.0), (1, 1428.0)] {
            let expected = (8.0 - 0.4) / 2.0 * payload / 1500.0;
            assert!((goodput(flow) / expected - 1.0).abs() < 0.02, "{out}: {flow} {expected} {summary}");
        }
        assert!((goodput(2) / (0.4 * 452.0 / 500.0) - 1.0).abs() < 0.01, "{out}: {summary}");
    }
}

/// Programs in Perl without modules, each with a port: a server that reads connections one after the other to their end, and one that reads datagrams; a program that makes
/// this many connections and sends this many bytes over each, and one that sends datagrams of 472 bytes.
const PROGRAMS: [(&str, &str); 4] = [
    (
        "reads",
        r#"socket(S,2,1,0); bind(S,pack("Sna4x8",2,$ARGV[0],"\0"x4)) or die "cannot bind: $!"; listen(S,9); while(accept(C,S)) { while(sysread(C,$b,65536)) {} close(C) }"#,
    ),
    (
        "takes",
        r#"socket(S,2,2,0); bind(S,pack("Sna4x8",2,$ARGV[0],"\0"x4)) or die "cannot bind: $!"; while(defined(recv(S,$b,65536,0))) {}"#,
    ),
    (
        "sends",
        r#"($peer,$port,$times,$len)=@ARGV; $a=pack("SnC4x8",2,$port,split(/\./,$peer));
           for(1..$times) {
             socket(S,2,1,0); connect(S,$a) or die "cannot connect: $!";
             for($n=0;$n<$len;) { $n+=syswrite(S,"x"x($len-$n>65536?65536:$len-$n)) }
             shutdown(S,1); sysread(S,$b,1); close(S)
           }
           print "sent $times\n""#,
    ),
    (
        "calls",
        r#"socket(S,2,2,0); $a=pack("SnC4x8",2,$ARGV[1],split(/\./,$ARGV[0])); while(1) { send(S,"x"x472,0,$a); select(undef,undef,undef,0.02) }"#,
    ),
];

/// Writes a file that may be executed.
fn script(place: &Place, name: &str, text: &str) {
    place.write(name, text);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(place.path(name), mode).expect("a mode");
}

#[test]
fn programs_run_in_the_guest_and_are_counted() {
    let Some(place) = lab("kernel_programs") else { return };
    if Command::new("perl").arg("-v").stdout(Stdio::null()).status().is_err() {
        return println!("skipped: there is no perl");
    }
    PROGRAMS.iter().for_each(|(name, text)| script(&place, name, &format!("#!/usr/bin/env perl\n{text}\n")));
    // Short connections of two flows, a long one, and datagrams the other way: at the router they part by their addresses.
    place.write(
        "x.toml",
        "name = \"programs\"\nduration = \"6s\"\nwarmup = \"1s\"\n\
         [[hop]]\nname = \"down\"\nrate = \"10mbit\"\nqueue = \"fq_codel\"\n\
         [[hop]]\nname = \"up\"\nrate = \"2mbit\"\nqueue = \"fifo\"\n\
         [[flow]]\nname = \"short\"\ncount = 2\nrtt = \"20ms\"\nroute = [\"down\"]\nback = [\"up\"]\nstart = \"1s\"\n\
         command = \"./sends {peer} 500{n} 2{n} 10000\"\nserver = \"./reads 500{n}\"\n\
         [[flow]]\nname = \"long\"\nrtt = \"30ms\"\nroute = [\"down\"]\nstart = \"1s\"\n\
         command = \"./sends {peer} 5002 1 100000000\"\nserver = \"./reads 5002\"\n\
         [[flow]]\nname = \"call\"\nrtt = \"40ms\"\nroute = [\"up\"]\nback = [\"down\"]\n\
         command = \"./calls {peer} 5003\"\nserver = \"./takes 5003\"\n",
    );
    let output = place.run(&["run", "x.toml", "--json", "--on", "kernel", "--out", "kernel"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("sent 20\n") && said.contains("sent 21\n") && !said.contains("sent 1\n"), "{said}");
    let kernel = json(&text(&output.stdout));
    let goodput = |flow: usize| figure(&kernel, &format!("/flows/{flow}/goodput_mbit"));
    // 20 and 21 transfers of 10 kB in the five seconds from the start of the flows.
    for (flow, transfers) in [(0, 20.0), (1, 21.0)] {
        assert!((goodput(flow) - transfers * 10_000.0 * 8.0 / 5e6).abs() < 1e-9, "{kernel}");
    }
    // 472 bytes in every 20 ms, and what the program takes to send.
    assert!((0.17..=0.1888).contains(&goodput(3)), "{kernel}");
    let (used, sum) = (figure(&kernel, "/hops/0/utilisation"), goodput(0) + goodput(1) + goodput(2));
    assert!(used > 0.9 && sum < 10.0 * used, "{kernel}");
    assert!(sum > 10.0 * used * 1448.0 / 1500.0 - 0.5, "{kernel}");
    assert!(
        figure(&kernel, "/flows/0/rtt_ms/min") >= 20.0 && figure(&kernel, "/flows/2/rtt_ms/min") >= 30.0,
        "{kernel}"
    );
    let rates = folder::read(&place.path("kernel")).expect("a result").series;
    assert!(
        rates.iter().any(|series| series.source == "hop:down" && series.metric == "flows"),
        "the discipline's state"
    );
}

#[test]
fn a_program_that_fails_in_the_guest_fails_the_run() {
    let Some(place) = lab("kernel_program_fails") else { return };
    script(&place, "fails.sh", "#!/bin/sh\necho it is $1 in $PWD\nexit 3\n");
    let lonely = flow("bulk", "cubic").replace("controller = \"cubic\"", "command = \"./fails.sh {peer}\"");
    place.write("x.toml", &scenario("\"fifo\"", &lonely));
    let output = place.run(&["run", "x.toml", "--on", "kernel", "--out", "out"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("flow \"bulk\": `./fails.sh {peer}` ended with 3"), "{said}");
    assert!(said.contains(&format!("it is 10.2.0.1 in {}\n", place.path("").display()).replace("/\n", "\n")), "{said}");
}

#[test]
fn quic_finds_in_linux_how_the_queue_schedules() {
    let Some(place) = lab("kernel_quic") else { return };
    let flow = "[[flow]]\nname = \"bulk\"\ntransport = \"quic\"\nrtt = \"30ms\"\nroute = [\"link\"]\n\
        controller = { kind = \"tonopah\", on = \"cubic\", detector = \"sequential\" }\n";
    for queue in ["\"fifo\"", "\"fq_codel\""] {
        place.write("x.toml", &scenario(queue, flow));
        let kernel = run(&place, "kernel", &["--on", "kernel"]);
        assert_eq!(figure(&kernel, "/flows/0/verdicts/wrong"), 0.0, "{queue}: {kernel}");
        assert!(figure(&kernel, "/flows/0/verdicts/right") > 0.5, "{queue}: {kernel}");
        assert!(figure(&kernel, "/flows/0/goodput_mbit") > 8.0, "{queue}: {kernel}");
        assert_eq!(kernel["flows"][0]["verdicts"]["queued_s"], Value::Null, "nobody sees single packets");
        let result = folder::read(&place.path("kernel")).expect("a result");
        let series = |metric: &str| result.series.iter().filter(|one| one.metric == metric).count();
        assert_eq!((series("verdict"), series("sent_mbit")), (1, 0));
    }
}

#[test]
fn what_linux_lacks_is_refused_before_anything_starts() {
    let place = Place::new("kernel_refused");
    place.write("lab/kernels/6.1/vmlinuz", "");
    let command = |on: &[&str]| {
        let output =
            place.command(&[&["run", "x.toml", "--out", "out"], on].concat()).env("NARROWS_LAB_DIR", "lab").output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    place.write("x.toml", &scenario("\"gsp\"", &flow("bulk", "cubic")));
    let said = command(&["--on", "kernel"]);
    assert!(
        said.contains("x.toml: hop \"link\": Linux has no queue \"gsp\"; allowed in the kernel's world: fifo, codel"),
        "{said}"
    );
    let large = flow("bulk", "cubic") + "transport = { kind = \"tcp\", gso_max_segs = 4 }\n";
    place.write("x.toml", &scenario("\"fifo\"\noverhead = \"14B\"", &large));
    let said = command(&["--on", "kernel", "--pcap", "a.pcapng"]);
    assert!(said.contains("allowed for a capture in the kernel's world: 1"), "{said}");
    place.write("x.toml", &scenario("\"cocoa\"", &flow("bulk", "cubic")));
    let said = command(&["--on", "kernel"]);
    assert!(said.contains("the kernel 6.1 has no module sch_htb"), "{said}");
    let said = command(&["--on", "kernel", "--kernel", "7.2"]);
    assert!(said.contains("there is no kernel 7.2; allowed: 6.1"), "{said}");
    let said = command(&["--on", "kernel", "--mtu", "9000"]);
    assert!(said.contains("--mtu is for --on live"), "{said}");
    let said = command(&["--kernel", "7.2"]);
    assert!(said.contains("--kernel is for --on kernel"), "{said}");
    let said = command(&["--real-time"]);
    assert!(said.contains("--real-time is for --on kernel"), "{said}");
    assert!(!place.path("out").exists());
}

/// The host's load has an effect there, so nothing is said of the figures but that packets came through.
#[test]
#[expect(clippy::disallowed_methods, reason = "the host's time is what is tested")]
fn real_time_passes_in_a_guest_that_is_asked_for_it() {
    let Some(place) = lab("kernel_real_time") else { return };
    place.write("x.toml", &scenario("\"fifo\"", &flow("bulk", "cubic")).replace("10mbit", "1mbit"));
    let before = Instant::now();
    let summary = run(&place, "out", &["--on", "kernel", "--real-time=emulated"]);
    assert!(before.elapsed() >= Duration::from_secs(10), "{:?}", before.elapsed());
    assert!(figure(&summary, "/flows/0/goodput_mbit") > 0.1, "{summary}");
}

#[test]
fn a_program_that_is_missing_is_named_before_anything_starts() {
    let Some(place) = lab("kernel_no_program") else { return };
    script(&place, "script", "#!/no/such/interpreter\n");
    for (client, server, what) in [
        ("no-such-program", "true", "there is no program `no-such-program`"),
        ("true", "no-such-program", "there is no program `no-such-program`"),
        ("./script", "true", "needs `/no/such/interpreter`: there is no program `/no/such/interpreter`"),
    ] {
        let programs = format!("command = \"{client}\"\nserver = \"{server}\"");
        place.write(
            "x.toml",
            &scenario("\"fifo\"", &flow("bulk", "cubic").replace("controller = \"cubic\"", &programs)),
        );
        let output = place.run(&["run", "x.toml", "--on", "kernel", "--out", "out"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("flow \"bulk\": ") && said.contains(what), "{said}");
        assert!(!place.path("out").exists());
    }
}

/// The virtual machine that this process has started, as soon as there is one.
fn machine_of(process: u32) -> Option<u32> {
    let children = fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let children = children.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let name = |child: u32| fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
    let ids: Vec<u32> =
        children.flat_map(|list| list.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect();
    ids.into_iter().find(|&child| name(child).starts_with("qemu"))
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what}: not within 30 s")
}

#[test]
fn a_machine_ends_with_the_run_that_started_it() {
    let Some(place) = lab("kernel_ended") else { return };
    place.write("x.toml", &scenario("\"fifo\"", &flow("bulk", "cubic")).replace("\"10s\"", "\"1h\""));
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let mut command = place.command(&["run", "x.toml", "--on", "kernel", "--out", "out"]);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let machine = wait_for("a virtual machine", || machine_of(run.id()));
        let sent = Command::new("kill").args([signal, &run.id().to_string()]).status();
        assert!(sent.expect("kill starts").success());
        assert_eq!(run.wait().expect("it ends").code(), code, "{signal}");
        // Another process may get its number.
        let is_gone = || {
            let command = fs::read_to_string(format!("/proc/{machine}/cmdline")).unwrap_or_default();
            let state = fs::read_to_string(format!("/proc/{machine}/stat")).unwrap_or_default();
            (!command.contains("qemu") || state.contains(") Z ")).then_some(())
        };
        wait_for("the end of the machine", is_gone);
        assert!(!place.path("out").exists(), "{signal}");
        if signal == "-INT" {
            assert!(!place.path("out.unfinished").exists(), "{:?}", place.files(""));
        }
    }
}
