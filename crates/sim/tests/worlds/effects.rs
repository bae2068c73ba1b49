//! What a hop does to packets besides queuing and delaying them.
use crate::harness::{flow, hop, parse, recorded, run, run_text};
use narrows_core::DropReason;
use narrows_results::packets::{Capture, What};
use narrows_scenario::{Scenario, Traces};

/// 10 000 datagrams a second for 10 s, each 100 bytes, over a hop with these keys.
fn datagrams(keys: &str) -> String {
    format!(
        "duration = \"10s\"\n[[hop]]\nname = \"link\"\nrate = \"1gbit\"\nqueue = \"fifo\"\ndelay = \"10ms\"\n{keys}\n\
         [[flow]]\nname = \"f\"\ntransport = \"udp\"\ntraffic = {{ kind = \"cbr\", rate = \"8mbit\", packet = \"100B\" }}\n\
         rtt = \"20ms\"\nroute = [\"link\"]\n"
    )
}

const SENT: f64 = 100_000.0;

#[test]
fn a_tenth_arrives_twice() {
    let result = run_text(&datagrams("duplicate = \"10%\""));
    // 110 000 packets of 72 bytes of payload in 10 s, but those of the last 10 ms.
    let expected = 1.1 * SENT * 72.0 * 8.0 / 10.0 / 1e6;
    let got = flow(&result, "f").goodput_mbit;
    assert!((got - expected).abs() < 0.01 * expected, "{got} Mbit/s, not {expected}");
    assert_eq!(
        (hop(&result, "link").drops.total, hop(&result, "link").packets),
        (0, 100_000),
        "the link sends each once"
    );
}

#[test]
fn a_changed_bit_is_a_lost_packet() {
    let result = run_text(&datagrams("corrupt = \"1%\""));
    let (flow, hop) = (flow(&result, "f"), hop(&result, "link"));
    let corrupted = hop.drops.by_reason["corrupted"];
    assert!((900..1100).contains(&corrupted), "{corrupted}");
    // Those of the last 10 ms have not arrived.
    let lost = flow.lost_packets.expect("it is counted");
    assert!(lost <= corrupted && lost + 5 >= corrupted, "{lost} of {corrupted}");
    assert!((hop.loss_rate - corrupted as f64 / SENT).abs() < 1e-9);
}

/// 10 ms at 10 000 packets a second are 100 packets, of which 60 have room: whenever ten have arrived, ten enter.
#[test]
fn a_delay_line_holds_its_limit() {
    let result = run_text(&datagrams("delay_limit = 60"));
    let dropped = hop(&result, "link").drops.by_reason["delay_line"];
    assert!((39_900..=40_100).contains(&dropped), "{dropped} of 100 000");
    let unlimited = run_text(&datagrams("delay_limit = 101"));
    assert_eq!(hop(&unlimited, "link").drops.total, 0);
}

/// A bucket that fills with half of the rate lets half through.
#[test]
fn a_policer_drops_or_marks_what_exceeds_its_rate() {
    let result = run_text(&datagrams("police = \"rate 4mbit burst 1000b\""));
    let link = hop(&result, "link");
    // The bucket holds ten packets at first.
    let policed = link.drops.by_reason["policed"];
    assert!((49_989..=49_991).contains(&policed), "{policed}");
    assert_eq!((link.packets + policed, link.offered_packets), (100_000, 100_000));
    let marking = datagrams("police = \"rate 4mbit burst 1000b conform-exceed mark\"");
    let marked = run_text(&marking.replace("\"udp\"", "{ kind = \"udp\", ecn = \"ect0\" }"));
    assert_eq!((hop(&marked, "link").drops.total, hop(&marked, "link").marks), (0, policed));
    assert_eq!(hop(&run_text(&marking), "link").drops.by_reason["policed"], policed, "they cannot be marked");
}

/// Packets are 0.1 ms apart, and a quarter of them has no delay of 10 ms: each of these overtakes three quarters of the 100 before it.
#[test]
fn reordered_packets_are_ahead_of_those_in_the_line() {
    let scenario = parse(&datagrams("reorder = \"25%\"").replace("10s", "100ms"));
    let (_, log) = recorded(&scenario, Capture::default());
    let arrived = log.events.iter().filter(|event| event.what == What::Arrived);
    let order: Vec<u32> = arrived.map(|event| event.packet).collect();
    let mut place = vec![usize::MAX; 1000];
    order.iter().enumerate().for_each(|(n, &packet)| place[packet as usize] = n);
    let overtaken = |packet: usize| (0..packet).filter(|&other| place[other] > place[packet]).count();
    let overtaken: Vec<usize> = (100..900).map(overtaken).collect();
    let (skipping, most) = (overtaken.iter().filter(|&&n| n > 50).count(), overtaken.iter().max());
    assert!((150..250).contains(&skipping), "{skipping} of 800");
    assert!(most.is_some_and(|&most| most <= 100) && overtaken.iter().all(|&n| n == 0 || n > 50), "{most:?}");
}

#[test]
fn effects_have_streams_of_their_own() {
    let loss = "loss = \"1%\"";
    let lost = |keys: &str| hop(&run_text(&datagrams(keys)), "link").drops.by_reason["link_loss"];
    let alone = lost(loss);
    for other in ["corrupt = 0.01", "reorder = 0.1", "jitter = \"1ms\"\novertake = true", "delay_limit = 1000"] {
        assert_eq!(lost(&format!("{loss}\n{other}")), alone, "{other}");
    }
}

/// A file beside the scenario.
struct File(&'static str);

impl Traces for File {
    fn text(&self, _: &str) -> Result<String, String> {
        Ok(self.0.to_owned())
    }
}

fn over(file: &'static str, keys: &str) -> Scenario {
    Scenario::parse(&datagrams(keys), "test.toml", &File(file)).expect("it is legal")
}

#[test]
fn packets_are_lost_as_they_were_recorded() {
    let scenario = over("0010", "loss = { trace = \"outcomes.txt\" }");
    let result = run(&scenario);
    assert_eq!(hop(&result, "link").drops.by_reason["link_loss"], 25_000, "the third of each four");
    let (_, log) = recorded(&scenario, Capture::default());
    let is_lost = |what: &What| matches!(what, What::Dropped(_, DropReason::LinkLoss));
    let lost = log.events.iter().filter(|event| is_lost(&event.what)).map(|event| event.packet % 4);
    assert!(lost.clone().count() == 25_000 && lost.clone().all(|packet| packet == 2));
    // From 1 s on all are lost for half a second, and a tenth for another half; then nothing for a second.
    let scenario = over("time_s,loss_percent\n0,0\n1,100\n1.5,10\n2,0\n", "loss = \"trace:outage.csv\"");
    let lost = hop(&run(&scenario), "link").drops.by_reason["link_loss"];
    // A period is 2.5 s: four in 10 s, of which each loses 5000 packets, and a tenth of 5000 (± 21).
    assert!((20_000 + 1_790..=20_000 + 2_210).contains(&lost), "{lost}");
}

#[test]
fn delays_are_drawn_from_a_files_table() {
    // A packet in four is late by twice the jitter, and the others are on time.
    let scenario = over("0 0 0 16384\n", "jitter = \"2ms\"\novertake = true\ndistribution = { file = \"own.dist\" }");
    let felt = flow(&run(&scenario), "f").application.expect("datagrams").one_way_ms.expect("they arrive");
    assert!((felt.mean - 11.0).abs() < 0.05, "{felt:?}");
    assert!((felt.p50 - 10.0).abs() < 0.02 && (felt.p95 - 14.0).abs() < 0.02, "{felt:?}");
}

/// A transfer over everything at once ends, and every byte arrives.
#[test]
fn a_transfer_survives_all_of_them() {
    for transport in ["tcp", "quic"] {
        let text = format!(
            "duration = \"120s\"\n[[hop]]\nname = \"link\"\nrate = \"20mbit\"\nqueue = \"fq_codel\"\ndelay = \"10ms\"\njitter = \"5ms\"\n\
             distribution = \"normal\"\novertake = true\nloss = \"gemodel 0.2% 50%\"\nduplicate = \"2%\"\ncorrupt = \"1%\"\nreorder = \"5%\"\n\
             delay_limit = 100\npolice = \"rate 15mbit burst 50kb\"\n[[hop]]\nname = \"back\"\nrate = \"20mbit\"\nqueue = \"fifo\"\n\
             delay = \"10ms\"\njitter = \"5ms\"\novertake = true\nduplicate = 0.1\ncorrupt = 0.01\n[[flow]]\nname = \"f\"\nrtt = \"40ms\"\n\
             traffic = {{ kind = \"finite\", size = \"2MB\" }}\ntransport = \"{transport}\"\nroute = [\"link\"]\nback = [\"back\"]\n"
        );
        let result = run(&parse(&text));
        assert_eq!(flow(&result, "f").completion_s.map(|c| c.count), Some(1), "{transport}");
    }
}

#[test]
fn what_a_mechanism_loses_had_been_sent() {
    let text = r#"
        duration = "10s"
        [[hop]]
        name = "link"
        rate = "10mbit"
        mechanism = { kind = "leo", period = "500ms", stall = "99ms", loses = true }
        queue = "fifo"
        [[flow]]
        name = "cbr"
        traffic = { kind = "cbr", rate = "2mbit", packet = "1000B" }
        rtt = "20ms"
        route = ["link"]"#;
    let result = run_text(text);
    let hop = hop(&result, "link");
    let lost = hop.drops.by_reason["link_loss"];
    // A fifth of 2500 packets, of which the last may still be on the link.
    assert!((400..=600).contains(&lost) && lost == hop.drops.total, "{:?}", hop.drops);
    assert!(hop.offered_packets - hop.packets <= 10, "{} offered, {} sent", hop.offered_packets, hop.packets);
}
