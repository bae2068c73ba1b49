//! Flows that programs make: their arguments, how they end, and that nothing is left when a run fails.
use super::Test;
use super::harness::{fails, flow, hop, run, scenario};
use super::roles::{ANSWER, SEND, SERVE};
use narrows_core::Time;
use narrows_host::{HostError, Status};
use narrows_live::{LiveError, Options};
use narrows_world::{Unwatched, Wanted, Watch};
use std::fs;

pub(super) const TESTS: &[Test] = &[
    ("programs_at_both_ends", programs_at_both_ends),
    ("iperf3_has_what_the_link_carries", iperf3_has_what_the_link_carries),
    ("places_are_filled_in", places_are_filled_in),
    ("a_program_has_time_to_end_after_its_duration", a_program_has_time_to_end_after_its_duration),
    ("a_program_that_fails_fails_the_run", a_program_that_fails_fails_the_run),
    ("a_server_that_fails_fails_the_run", a_server_that_fails_fails_the_run),
    ("a_program_that_is_not_there_is_named", a_program_that_is_not_there_is_named),
    ("regression_a_stopped_program_has_not_failed", a_stopped_program_has_not_failed),
    ("a_program_that_will_not_stop_is_ended", a_program_that_will_not_stop_is_ended),
    ("a_run_that_is_ended_leaves_nothing", a_run_that_is_ended_leaves_nothing),
    ("what_the_kernel_lacks_is_listed", what_the_kernel_lacks_is_listed),
];

const LINK: &str = "[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = \"fifo\"\n";

fn command(client: &str, rest: &str) -> String {
    format!(
        "{LINK}[[flow]]\nname = \"program\"\nrtt = \"10ms\"\nroute = [\"link\"]\ncommand = '''{client}'''\n{rest}\n"
    )
}

/// Checks that no process with this word in its command line is left.
fn none_is_left(word: &str) {
    let of = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).ok();
    let lines: Vec<Vec<u8>> = fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect();
    let left: Vec<_> =
        lines.iter().map(|line| String::from_utf8_lossy(line)).filter(|line| line.contains(word)).collect();
    assert_eq!(left, Vec::<String>::new());
}

fn programs_at_both_ends() {
    let me = std::env::current_exe().unwrap().display().to_string();
    for family in ["ipv4", "ipv6"] {
        let text = command(
            &format!("{me} {SEND} {{peer}} 500{{n}} 4"),
            &format!("server = '''{me} {SERVE} 500{{n}}'''\ncount = 2\nfamily = \"{family}\""),
        );
        let result = run("2s", &text);
        for name in ["program.0", "program.1"] {
            let flow = flow(&result, name);
            // Four connections of 100 kB.
            assert!((flow.goodput_mbit - 3.2 / 2.0).abs() < 1e-9, "{family:?}: {flow:?}");
            assert!(flow.rtt_ms.is_none_or(|rtt| rtt.min >= 10.0), "{flow:?}");
        }
        assert!(hop(&result, "link").packets > 4 * 2 * 70, "{result:?}");
        none_is_left(SERVE);
    }
}

/// Four connections at the same time, one of which carries only iperf3's control messages.
fn iperf3_has_what_the_link_carries() {
    if std::process::Command::new("iperf3").arg("--version").output().is_err() {
        return println!("skipped: there is no iperf3");
    }
    let text = "warmup = \"1s\"\n".to_owned()
        + &command("iperf3 -c {peer} -t 10 -P 3", "server = \"iperf3 -s -1\"").replace("fifo", "fq_codel");
    let result = run("2500ms", &text);
    let (link, flow) = (hop(&result, "link"), flow(&result, "program"));
    assert!(link.utilisation > 0.8, "{link:?}");
    // 1448 of 1500 B are payload. Data that fill a hole after the end of the warm-up may count after it.
    assert!(flow.goodput_mbit <= 20.0 * 1448.0 / 1500.0 + 0.5, "{flow:?}");
    assert!(flow.goodput_mbit > 20.0 * link.utilisation * 1448.0 / 1500.0 - 2.0, "{flow:?} {link:?}");
}

fn places_are_filled_in() {
    let into = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("places");
    let _ = fs::remove_file(&into);
    let line = format!("sh -c 'echo {{peer}} {{duration}} {{n}} {{{{}}}} > {}'", into.display());
    run("1200ms", &command(&line, "start = \"100ms\""));
    assert_eq!(fs::read_to_string(&into).unwrap(), "10.2.0.1 1 0 {}\n");
}

/// A program with a known duration still has something to send at its end, as iperf3 has its results. It used to be interrupted
/// at that moment, and its packets were lost. Packets after the end are not counted.
fn a_program_has_time_to_end_after_its_duration() {
    let me = std::env::current_exe().unwrap().display().to_string();
    let into = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("afterwards");
    let _ = fs::remove_file(&into);
    let line =
        format!("sh -c 'sleep {{duration}}; sleep 0.3; {me} {SEND} {{peer}} 5000 2 && echo sent > {}'", into.display());
    let result = run("1s", &command(&line, &format!("server = '''{me} {ANSWER} 5000'''")));
    assert_eq!(fs::read_to_string(&into).unwrap_or_default(), "sent\n");
    assert_eq!((hop(&result, "link").packets, flow(&result, "program").goodput_mbit), (0, 0.0), "{result:?}");
    none_is_left(ANSWER);
    // A program without a known duration is interrupted at its stop time.
    let _ = fs::remove_file(&into);
    run("300ms", &command(&format!("sh -c 'sleep 0.8; echo sent > {}'", into.display()), ""));
    assert!(!into.exists());
}

fn program_error(error: LiveError) -> (String, String, Status) {
    match error {
        LiveError::Host(HostError::Program { flow, command, status }) => (flow, command, status),
        other => panic!("{other}"),
    }
}

fn a_program_that_fails_fails_the_run() {
    let line = "sh -c 'sleep 91.75 & exit 3'";
    let error = fails("20s", &command(line, ""));
    assert_eq!(error.to_string(), format!("flow \"program\": `{line}` ended with 3"));
    assert_eq!(program_error(error).2, Status::Exited(3));
    none_is_left("91.75");
    let (.., status) = program_error(fails("20s", &command("sh -c 'kill -TERM $$'", "")));
    assert_eq!(status, Status::Signaled(15));
}

fn a_server_that_fails_fails_the_run() {
    let error = fails("20s", &command("sleep 92.75", "server = \"sh -c 'sleep 93.75 & exit 4'\""));
    let (flow, command, status) = program_error(error);
    assert_eq!((flow.as_str(), status), ("program", Status::Exited(4)));
    assert!(command.contains("exit 4"), "{command}");
    none_is_left("92.75");
    none_is_left("93.75");
}

fn a_program_that_is_not_there_is_named() {
    for (client, rest) in
        [("/no/such/program {peer}", ""), ("sleep 94.75", "server = \"/no/such/program\""), ("sleep 94.75", SECOND)]
    {
        let error = fails("20s", &command(client, rest));
        assert_eq!(error.to_string(), "there is no program `/no/such/program`");
        assert!(matches!(error, LiveError::Host(HostError::NotAllowed(_))));
        none_is_left("94.75");
    }
}

/// A flow that would start while the first one runs.
const SECOND: &str = "[[flow]]\nname = \"second\"\nrtt = \"10ms\"\nroute = [\"link\"]\nstart = \"200ms\"\ncommand = \"/no/such/program\"";

/// At its stop time a program is interrupted once. Ending by a signal or with any status is then not a failure.
fn a_stopped_program_has_not_failed() {
    run("700ms", &command("sleep 95.75", "stop = \"200ms\""));
    run("300ms", &command("sleep 95.75", ""));
    let into = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupts");
    let _ = fs::remove_file(&into);
    let counts = format!("sh -c 'trap \"echo int >> {0}\" INT; sleep 95.75; sleep 0.2; exit 7'", into.display());
    let me = std::env::current_exe().unwrap().display().to_string();
    let fails_later = format!("stop = \"200ms\"\nserver = '''sh -c \"{me} {SERVE} 5000 & sleep 1.5; exit 8\"'''");
    run("2s", &command(&counts, &fails_later));
    assert_eq!(fs::read_to_string(&into).unwrap(), "int\n");
    none_is_left("95.75");
}

fn a_program_that_will_not_stop_is_ended() {
    let deaf = "sh -c 'trap \"\" INT TERM HUP; sleep 96.75; sleep 96.75'";
    run("1s", &command(deaf, "stop = \"100ms\""));
    run("200ms", &command(deaf, "server = \"sleep 96.75\""));
    none_is_left("96.75");
}

fn a_run_that_is_ended_leaves_nothing() {
    struct Until(u64);
    impl Watch for Until {
        fn tick(&mut self, now: Time) -> bool {
            now.as_ns() < self.0 * 1_000_000
        }
    }
    let both = command("sleep 97.75", "server = \"sleep 97.75\"")
        + "[[flow]]\nname = \"bulk\"\nrtt = \"10ms\"\nroute = [\"link\"]\n";
    let ended = narrows_live::run(&scenario("1000s", &both), &Options::default(), &Wanted::RESULT, &mut Until(300));
    assert!(matches!(ended, Err(LiveError::Cancelled)), "{:?}", ended.err());
    none_is_left("97.75");
}

fn what_the_kernel_lacks_is_listed() {
    let text = format!("{LINK}[[flow]]\nname = \"f\"\nrtt = \"10ms\"\nroute = [\"link\"]\ncontroller = \"copa\"\n");
    let ended = narrows_live::run(&scenario("1s", &text), &Options::default(), &Wanted::RESULT, &mut Unwatched);
    let said = ended.expect_err("no kernel has it").to_string();
    assert!(said.starts_with("flow `f`: this kernel has no copa; it has: ") && said.contains("reno"), "{said}");
}
