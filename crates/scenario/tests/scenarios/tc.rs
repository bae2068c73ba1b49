//! Queues in `tc`'s words: each line means what it means to `tc`, or is refused with what to write instead.
use narrows_core::netem::Loss;
use narrows_scenario::{NoTraces, Scenario, Setting, shorthand, tc};

const LINES: &str = include_str!("tc_lines.txt");

#[test]
fn every_line_is_read_as_tc_reads_it_or_refused_with_a_reason() {
    let mut wrong = Vec::new();
    for line in LINES.lines().filter(|line| !line.starts_with('#')) {
        // Both as the only queue of a list, and by itself.
        let (line, queue, part) = match (line.split_once(" => "), line.split_once(" !! ")) {
            (Some((line, queue)), _) => (line, Some(queue), ""),
            (None, Some((line, part))) => (line, None, part),
            (None, None) => panic!("{line}: neither => nor !!"),
        };
        let listed = shorthand::queues("--queues", line)
            .map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        let readings = [tc::read(line).map(|queue| queue.to_string()), listed.map_err(|error| error.to_string())];
        for got in readings {
            let is_right = match (&got, queue) {
                (Ok(got), Some(queue)) => got == queue,
                (Err(message), None) => message.contains(part),
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{line}\n  got    {got:?}\n  wanted {}", queue.unwrap_or(part)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_list_may_mix_both_spellings() {
    let queues = |text: &str| {
        let queues = shorthand::queues("--queues", text).map_err(|error| error.to_string());
        queues.map(|queues| queues.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let both = queues("fq_codel limit 1000p,target=10ms, fifo:limit=30p,cake bandwidth 20mbit docsis");
    let wanted = ["fq_codel:limit=1000p,target=10ms", "fifo:limit=30p", "cake:bandwidth=20mbit,overhead=18B,mpu=64B"];
    assert_eq!(both, Ok(wanted.map(str::to_owned).to_vec()));
    assert_eq!(queues("cake fq_codel"), Ok(vec!["cake".to_owned(), "fq_codel".to_owned()]));
}

#[test]
fn a_scenario_and_a_setting_take_a_line_of_tc() {
    let file = |queue: &str| {
        format!("[[hop]]\nname = \"a\"\nrate = \"10mbit\"\nqueue = {queue}\n[[flow]]\nname = \"f\"\nrtt = \"20ms\"\n")
    };
    let line = "tc qdisc add dev eth0 root handle 10: cake bandwidth 18mbit docsis";
    let wanted = "cake:bandwidth=18mbit,overhead=18B,mpu=64B";
    let read = Scenario::parse(&file(&format!("{line:?}")), "S.toml", &NoTraces).expect("a scenario");
    assert_eq!(read.hops[0].queue.to_string(), wanted);
    let again = Scenario::parse(&read.to_toml(), "S.toml", &NoTraces).expect("as it is written");
    assert_eq!(again, read);
    let setting = Setting::new("--set", "hop.queue", line).expect("a setting");
    let set = Scenario::parse_with(&file("\"fifo\""), "S.toml", &[setting], &NoTraces).expect("a scenario");
    assert_eq!(set.hops[0].queue.to_string(), wanted);
    let error = Scenario::parse(&file("\"fq nopacing maxrate 50mbit\""), "S.toml", &NoTraces).expect_err("no maxrate");
    let wanted = "S.toml:4: `maxrate` of tc's fq: no cap";
    assert!(error.to_string().starts_with(wanted), "{error}");
}

#[test]
fn flows_need_no_commas_and_know_what_people_do() {
    let flows = |text: &str| {
        let groups = shorthand::flows("--flows", text).map_err(|error| error.to_string())?;
        let shown = groups.iter().map(|g| format!("{} {} {} {}", g.count, g.name, g.traffic, g.transport));
        Ok::<_, String>(shown.collect::<Vec<_>>().join("; "))
    };
    let ok = |text: &str| flows(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(ok("2cubic"), "2 cubic bulk tcp");
    assert_eq!(ok("2 cubic"), ok("2cubic"));
    assert_eq!(ok("2 x cubic"), ok("2cubic"));
    assert_eq!(ok("cubic call"), "1 cubic bulk tcp; 1 call thin:size=172B udp");
    assert_eq!(
        ok("2xcubic 3 voip, game"),
        "2 cubic bulk tcp; 3 call thin:size=172B udp; 1 game thin:interval=16667us udp"
    );
    assert_eq!(ok("call:interval=30ms,transport=tcp"), "1 call thin:size=172B,interval=30ms tcp");
    assert_eq!(ok("video-call download upload"), "1 video-call video udp; 1 download bulk tcp; 1 upload bulk tcp");
    assert_eq!(ok("cubic:traffic=download"), "1 cubic bulk tcp");
    let groups =
        shorthand::flows("--flows", "2 cubic beta 0.8 fast_convergence false call").expect("three words of tc");
    assert_eq!(
        groups[0].controller.as_ref().map(ToString::to_string).as_deref(),
        Some("cubic:beta=0.8,fast_convergence=false")
    );
    assert_eq!(groups.len(), 2);
    let error = flows("cubic cal").expect_err("no such thing");
    assert!(error.contains("\"cal\"") && error.contains("did you mean \"call\"?"), "{error}");
    assert_eq!(flows("0cubic").expect_err("none"), "--flows: a number of flows cannot be 0; allowed: 1 to 10000000");
}

#[test]
fn a_preset_is_a_flows_traffic_with_its_transport() {
    let file = |traffic: &str| {
        format!(
            "[[hop]]\nname = \"a\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n[[flow]]\nname = \"f\"\nrtt = \"20ms\"\ntraffic = {traffic}\n"
        )
    };
    let flow = |traffic: &str| {
        let scenario = Scenario::parse(&file(traffic), "S.toml", &NoTraces).unwrap_or_else(|error| panic!("{error}"));
        format!("{} {}", scenario.flows[0].traffic, scenario.flows[0].transport)
    };
    assert_eq!(flow("\"voip\""), "thin:size=172B udp");
    assert_eq!(flow("{ kind = \"call\", interval = \"30ms\" }"), "thin:size=172B,interval=30ms udp");
    assert_eq!(flow("\"video-call\""), "video udp");
    assert_eq!(flow("\"thin\""), "thin tcp", "the kind keeps its own");
}

#[test]
fn a_loss_may_be_in_percent() {
    let file = |loss: &str| {
        let hop = format!("[[hop]]\nname = \"a\"\nrate = \"10mbit\"\nqueue = \"fifo\"\nloss = {loss}\n");
        hop + "[[flow]]\nname = \"f\"\nrtt = \"20ms\"\n"
    };
    let read =
        |loss: &str| Scenario::parse(&file(loss), "S.toml", &NoTraces).map(|scenario| scenario.hops[0].loss.clone());
    assert_eq!([read("\"1%\""), read("\" 0.5 % \"")], [Ok(Loss::random(0.01)), Ok(Loss::random(0.005))]);
    let setting = Setting::new("--set", "hop.loss", "2%").expect("a setting");
    let set = Scenario::parse_with(&file("0"), "S.toml", &[setting], &NoTraces).expect("a scenario");
    assert_eq!(set.hops[0].loss, Loss::random(0.02));
    assert_eq!(
        (shorthand::loss("--loss", "1%", &NoTraces), shorthand::loss("--loss", "0.01", &NoTraces)),
        (Ok(Loss::random(0.01)), Ok(Loss::random(0.01)))
    );
    let refused = shorthand::loss("--loss", "100%", &NoTraces).expect_err("everything").to_string();
    let allowed =
        "--loss: cannot be \"100%\"; allowed: a share of at least 0 and less than 1, such as 0.01 or \"1%\"; ";
    assert!(refused.starts_with(allowed), "{refused}");
}
