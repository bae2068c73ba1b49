//! `--on kernel`: the same scenario in a Linux kernel and in the simulator, and what is refused. Without a virtual machine or a fetched
//! kernel the tests that need one are skipped, with the reason.
use crate::support::{Place, json, text};
use narrows_results::folder;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

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
fn lab(test: &str) -> Option<Place> {
    let place = Place::new(test);
    let doctor = place.run(&["lab", "doctor"]);
    let said = text(&doctor.stdout);
    if doctor.status.success() && said.contains("with cocoa, cp, fq_cp, fq_codel_fair") {
        return Some(place);
    }
    println!("skipped: {said}{}", text(&doctor.stderr));
    None
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
        assert!(figure(&kernel, "/flows/0/goodput_mbit") > 8.0, "{kernel}");
    }
    let page = fs::read_to_string(place.path("kernel/report.html")).expect("a page");
    assert!(page.contains("cocoa"));
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
         [[flow]]\nname = \"web\"\nrtt = \"30ms\"\nroute = [\"down\"]\nback = [\"up\"]\ntraffic = \"web\"\n",
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
    place.write("x.toml", &scenario("\"cocoa\"", &flow("bulk", "cubic")));
    let said = command(&["--on", "kernel"]);
    assert!(said.contains("the kernel 6.1 has no module sch_htb"), "{said}");
    let said = command(&["--on", "kernel", "--kernel", "7.2"]);
    assert!(said.contains("there is no kernel 7.2; allowed: 6.1"), "{said}");
    let said = command(&["--on", "kernel", "--ipv6"]);
    assert!(said.contains("--ipv6 and --mtu are for --on live"), "{said}");
    let said = command(&["--kernel", "7.2"]);
    assert!(said.contains("--kernel is for --on kernel"), "{said}");
    let lonely = flow("bulk", "cubic").replace("controller = \"cubic\"", "command = \"true\"");
    place.write("x.toml", &scenario("\"fifo\"", &lonely));
    assert!(command(&["--on", "kernel"]).contains("flow \"bulk\" runs a command"), "a command");
    assert!(!place.path("out").exists());
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
