//! Tables as a person reads them.
use crate::sample::{QUEUES, comparison};
use narrows_report::page;
use narrows_report::terminal::{self, Style};
use narrows_results::summary::{Application, Quantiles, Timing, Voice};

fn plain(queues: &[crate::sample::Queue], flows: &[&str], seeds: u64, width: Option<usize>) -> String {
    terminal::comparison(&comparison(queues, flows, seeds), &Style { width, ..Style::default() })
}

#[test]
fn one_run_each() {
    let expected = "\
queue     utilisation         queue  sojourn  sojourn      RTT     RTT  goodput  drops  retransmits
                    %  mean packets   p50 ms   p99 ms  mean ms  p99 ms   Mbit/s
-----------------------------------------------------------------------------------------------------
fifo            99.91         694.4     99.8    110.9    133.4   161.0     96.4     44           44
codel           99.51          62.2      9.1      9.9     57.6    60.0     96.0     74           74
sfq             99.64          88.2     12.7     14.0     60.7    64.1     96.1     64           64
fq              99.55          69.3     10.0     11.1     58.4    61.2     96.1     71           71
fq_codel        99.28          41.8      6.0      6.6     55.1    56.7     95.8     91           91

one run each
";
    assert_eq!(plain(&QUEUES, &["cubic"], 1, None), expected);
}

#[test]
fn intervals_go_below_where_they_would_not_fit() {
    let wide = plain(&QUEUES[..2], &["cubic"], 5, None);
    assert!(wide.contains("fifo   99.89 ±0.02    691.5 ±3.2"), "{wide}");
    assert!(wide.contains("means of 5 runs ± 95 % confidence"), "{wide}");
    let narrow = plain(&QUEUES[..2], &["cubic"], 5, Some(100));
    assert!(narrow.lines().all(|line| line.chars().count() <= 100), "{narrow}");
    assert!(!narrow.contains("99.89 ±0.02") && narrow.contains("±0.02"), "{narrow}");
}

/// The columns that matter least give way, and a line says so.
#[test]
fn a_table_fits_eighty_columns() {
    let expected = "\
queue  utilisation  sojourn  sojourn      RTT     RTT  goodput  drops
                 %   p50 ms   p99 ms  mean ms  p99 ms   Mbit/s
-----------------------------------------------------------------------
fifo         99.91     99.8    110.9    133.4   161.0     96.4     44
codel        99.51      9.1      9.9     57.6    60.0     96.0     74

one run each
--wide also shows: retransmits, queue mean
";
    assert_eq!(plain(&QUEUES[..2], &["cubic"], 1, Some(80)), expected);
    for width in [50, 60, 80] {
        let text = plain(&QUEUES, &["cubic", "call"], 5, Some(width));
        let tables = text.lines().filter(|line| !line.starts_with("--wide") && !line.starts_with("means of"));
        tables.for_each(|line| assert!(line.chars().count() <= width, "{width}: {line}"));
        assert!(text.contains("utilisation") && text.contains("goodput"), "{text}");
    }
}

/// A comparison of an application beside a transfer: one row per queue, and a sentence at the end.
#[test]
fn each_kind_of_traffic_has_its_columns() {
    let mut together = comparison(&QUEUES[..2], &["download", "call"], 1);
    for (group, p99) in together.groups.iter_mut().zip([612.3, 15.9]) {
        let call = group.runs[0].result.summary.flows.iter_mut().find(|flow| flow.name == "call").expect("a call");
        let delay = Quantiles { p50: p99 / 2.0, p99, ..Quantiles::default() };
        call.application = Some(Application { one_way_ms: Some(delay), ..Application::default() });
    }
    let narrow = terminal::comparison(&together, &Style { width: Some(80), ..Style::default() });
    let expected = "\
queue               download  download    call    call
       utilisation       RTT   goodput   delay   delay
                 %    p99 ms    Mbit/s  p50 ms  p99 ms
--------------------------------------------------------
fifo         99.91     161.0      48.2   306.1   612.3
codel        99.51      60.0      48.0     8.0    15.9

one run each

call: 612 ms (p99) behind fifo, 16 behind codel; download: 48.2 and 48.0 Mbit/s
";
    assert_eq!(narrow, expected);
    let wide = terminal::comparison(&together, &Style { width: None, ..Style::default() });
    assert!(wide.contains("queue  flows"), "all tables without a limit of width: {wide}");
}

/// Runs of a scenario without random elements are copies of each other: three of them are one observation.
#[test]
fn identical_runs_have_no_interval() {
    let mut copies = comparison(&QUEUES[..1], &["cubic"], 3);
    let first = copies.groups[0].runs[0].clone();
    for run in &mut copies.groups[0].runs[1..] {
        let seed = run.result.summary.seed;
        *run = first.clone();
        (run.result.summary.seed, run.result.summary.cost.wall_s) = (seed, 7.0);
    }
    let text = terminal::comparison(&copies, &Style::default());
    assert!(text.contains("\n3 identical runs\n") && !text.contains('±'), "{text}");
    assert_eq!(copies.groups[0].draws().len(), 1);
    // Beside a group that varies it is still without one.
    let mut both = comparison(&QUEUES[..2], &["cubic"], 3);
    both.groups[0] = copies.groups.remove(0);
    let text = terminal::comparison(&both, &Style::default());
    assert!(text.contains("means of 3 runs ± 95 % confidence; identical runs: fifo\n"), "{text}");
    let row = |queue: &str| text.lines().find(|line| line.starts_with(queue)).unwrap_or_default().to_owned();
    assert!(!row("fifo").contains('±') && row("codel").contains('±'), "{text}");
}

#[test]
fn kinds_of_flows_have_a_table_of_their_own() {
    let text = plain(&QUEUES[..2], &["cubic.0", "cubic.1", "web"], 1, None);
    let expected = "
queue  flows         RTT     RTT  goodput  retransmits  completed  completion  completion
                 mean ms  p99 ms   Mbit/s                              mean s       p99 s
-------------------------------------------------------------------------------------------
fifo   cubic ×2    133.4   161.0     64.3           28          –           –           –
       web         133.4   161.0     32.1           14        210        0.41        2.25
codel  cubic ×2     57.6    60.0     64.0           48          –           –           –
       web          57.6    60.0     32.0           24        210        0.41        2.25

one run each
";
    assert!(text.ends_with(expected), "{text}");
    assert!(text.contains("Jain"), "several flows have a fairness:\n{text}");
    assert!(!plain(&QUEUES[..2], &["cubic"], 1, None).contains("Jain"));
}

#[test]
fn of_very_many_kinds_those_that_carry_most_are_shown() {
    let names: Vec<String> = (0..20).map(|n| format!("tcp 192.0.2.1:{} > 192.0.2.2:80", 1000 + n)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut comparison = comparison(&QUEUES[..1], &names, 1);
    for (n, flow) in comparison.groups[0].runs[0].result.summary.flows.iter_mut().enumerate() {
        // The ninth to the twelfth carry least.
        flow.goodput_mbit = if (8..12).contains(&n) { 0.5 } else { 1.0 + n as f64 };
    }
    let text = terminal::comparison(&comparison, &Style { width: None, ..Style::default() });
    assert!(text.contains("flows with most goodput"), "{text}");
    let shown: Vec<bool> = names.iter().map(|name| text.contains(name)).collect();
    let expected: Vec<bool> = (0..20).map(|n| !(8..12).contains(&n)).collect();
    assert_eq!(shown, expected, "{text}");
    // The most first.
    let ports: Vec<u32> =
        text.lines().filter_map(|line| line.split_once("192.0.2.1:")?.1.get(..4)?.parse().ok()).collect();
    assert!(ports.len() == 16 && ports.windows(2).all(|pair| pair[0] > pair[1]), "{text}");
}

#[test]
fn hops_have_rows_of_their_own() {
    let mut result = comparison(&QUEUES[..1], &["cubic"], 1);
    let hops = &mut result.groups[0].runs[0].result.summary.hops;
    let mut uplink = hops[0].clone();
    uplink.name = "uplink".into();
    uplink.queue = "codel".into();
    uplink.marks = 3;
    hops.push(uplink);
    let text = terminal::comparison(&result, &Style::default());
    let rows: Vec<Vec<&str>> = text.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        (&rows[0][..3], &rows[1][..3]),
        (&["bottleneck", "fifo", "99.91"][..], &["uplink", "codel", "99.91"][..])
    );
    assert_eq!(rows[1].iter().filter(|cell| **cell == "–").count(), 0, "flows of unknown routes cross all:\n{text}");
    assert!(text.contains("marks"), "{text}");
}

#[test]
fn a_terminal_sees_colours_and_no_one_else_sees_escapes() {
    let mut result = comparison(&QUEUES[..2], &["cubic"], 1);
    result.groups[0].label = "ev\x1b[2Jil".into();
    let colour = terminal::comparison(&result, &Style { width: Some(120), colour: true, ..Style::default() });
    assert!(colour.contains("\x1b[38;2;") && !colour.contains("\x1b[2J"), "{colour:?}");
    assert!(!terminal::comparison(&result, &Style::default()).contains('\x1b'));
}

#[test]
fn figures_that_are_missing_leave_a_dash() {
    let mut result = comparison(&QUEUES[..1], &["voice"], 1);
    let summary = &mut result.groups[0].runs[0].result.summary;
    summary.flows[0].rtt_ms = None;
    summary.hops[0].queue_packets = None;
    let text = terminal::comparison(&result, &Style::default());
    assert_eq!(text.matches('–').count(), 3, "{text}");
    result.groups.clear();
    assert!(terminal::comparison(&result, &Style::default()).contains("utilisation"), "no runs, no panic");
}

#[test]
fn verdicts_are_columns_where_somebody_gives_them() {
    let text = plain(&QUEUES[..1], &["cubic", "tonopah"], 1, None);
    let row = |flow: &str| text.lines().rfind(|line| line.contains(flow)).unwrap_or_default().to_owned();
    assert!(row("tonopah").ends_with("97.00     1.00         2.00"), "{text}");
    assert!(row("cubic").ends_with("–        –            –"), "{text}");
    assert!(!plain(&QUEUES[..1], &["cubic"], 1, None).contains("verdict"));
}

#[test]
fn how_times_were_kept_is_below_the_table_and_falling_behind_is_a_warning() {
    let mut result = comparison(&QUEUES[..1], &["cubic"], 3);
    let plain = Style::default();
    assert!(!terminal::comparison(&result, &plain).contains("times"), "virtual time has nothing to say");
    let mut kept = crate::sample::timing(0.0);
    kept.late_ms.max = 0.9;
    for run in &mut result.groups[0].runs {
        run.result.summary.timing = Some(kept);
    }
    let text = terminal::comparison(&result, &plain);
    assert!(text.ends_with("confidence\n\nkept its times: 99 % within 0.08 ms, at worst 0.9 ms\n"), "{text}");
    // The worst run counts.
    result.groups[0].runs[1].result.summary.timing = Some(crate::sample::timing(0.003));
    let text = terminal::comparison(&result, &plain);
    assert!(text.ends_with("at worst 4 ms\nfell behind by 4 ms, 0.3 % of packets by more than 1 ms\n"), "{text}");
    let colour = terminal::comparison(&result, &Style { colour: true, ..plain });
    assert!(colour.ends_with("\x1b[33mfell behind by 4 ms, 0.3 % of packets by more than 1 ms\x1b[0m\n"), "{colour:?}");
    result.groups[0].runs[2].result.summary.timing = Some(Timing { stamped_late_share: 0.02, ..kept });
    let text = terminal::comparison(&result, &plain);
    let last = "read 2 % of packets after more than 1 ms of oversleeping: their delays seem too short\n";
    assert!(text.ends_with(last), "{text}");
    // A packet that no queue saw is worth a warning.
    result.groups[0].runs[2].result.summary.timing = Some(Timing { overrun_packets: 7, ..kept });
    let text = terminal::comparison(&result, &plain);
    assert!(text.ends_with("lost 7 packets at the devices: not read in time, or not taken\n"), "{text}");
    result.groups[0].runs[2].result.summary.timing = Some(Timing { unsent_packets: 1, broken_connections: 2, ..kept });
    let text = terminal::comparison(&result, &plain);
    assert!(text.contains("did not send 1 datagram:"), "{text}");
    assert!(text.ends_with("lost 2 connections before they had finished\n"), "{text}");
    // One in a thousand is not yet worth a warning; beside other groups each says whose the times are.
    let mut two = comparison(&QUEUES[..2], &["cubic"], 1);
    two.groups[1].runs[0].result.summary.timing = Some(crate::sample::timing(0.001));
    let text = terminal::comparison(&two, &plain);
    assert!(text.ends_with("\n\ncodel kept its times: 99 % within 0.08 ms, at worst 4 ms\n"), "{text}");
}

/// A call beside a bulk flow: the table of applications has the columns that one of them has, and fits into 80 columns.
#[test]
fn applications_have_a_table_of_their_own() {
    let mut both = comparison(&QUEUES[..2], &["cubic", "call"], 1);
    assert!(!terminal::comparison(&both, &Style::default()).contains("MOS"), "nothing was measured");
    for run in both.groups.iter_mut().flat_map(|group| &mut group.runs) {
        let flows = &mut run.result.summary.flows;
        flows[0].application = Some(Application { rpm: Some(412.0), ..Application::default() });
    }
    assert!(!terminal::comparison(&both, &Style::default()).contains("RPM"), "responsiveness alone is no application");
    for (run, p99) in both.groups.iter_mut().flat_map(|group| &mut group.runs).zip([1164.8, 18.2]) {
        run.result.summary.flows[1].application = Some(Application {
            one_way_ms: Some(Quantiles { mean: 15.9, p50: 15.9, p95: 17.0, p99, max: p99 }),
            jitter_ms: Some(0.82),
            loss: Some(0.0058),
            voice: Some(Voice { r: 92.0, mos: 4.39, playout_ms: 19.0, loss: 0.0 }),
            qoo: Some(100.0),
            ..Application::default()
        });
    }
    let text = terminal::comparison(&both, &Style::default());
    let expected = "\
queue  flows   delay   delay  jitter  lost  voice  QoO  RPM
              p50 ms  p99 ms      ms     %    MOS
-------------------------------------------------------------
fifo   cubic       –       –       –     –      –    –  412
       call     15.9  1164.8    0.82  0.58   4.39  100    –
codel  cubic       –       –       –     –      –    –  412
       call     15.9    18.2    0.82  0.58   4.39  100    –
QoO 100: 99 % in 100 ms, 99.9 % in 200 ms, 0.1 % lost; 0: 200 ms, 300 ms, 2 %
";
    assert!(text.contains(expected), "{text}");
    let page = page::render(&both).expect("a page");
    for told in ["Voice MOS: a G.711 call", "QoO 100: 99 % in 100 ms", "RPM: round trips"] {
        assert!(page.contains(told), "the page says {told}");
    }
    assert!(!page.contains("Video MOS"), "there is no video call");
    // A video call has a score of its own, and an explanation.
    let video = narrows_results::summary::Video { mos: Some(2.5), picture_mos: Some(4.1), ..Default::default() };
    for run in both.groups.iter_mut().flat_map(|group| &mut group.runs) {
        run.result.summary.flows[1].application = Some(Application { video: Some(video), ..Application::default() });
    }
    let page = page::render(&both).expect("a page");
    assert!(page.contains("Video MOS: a video call as a conversation") && !page.contains("G.711"), "other words");
    assert!(terminal::comparison(&both, &Style::default()).contains("video"), "a column of its own");
}
