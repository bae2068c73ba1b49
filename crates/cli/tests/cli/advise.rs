//! `narrows advise`: the answer for a link on which the queue matters, its forms, and what is refused.
use crate::bad_input::refused;
use crate::support::Place;
use serde_json::Value;

const LINK: [&str; 9] =
    ["advise", "--down", "20mbit", "--up", "4mbit", "--buffer", "1MB", "--uses", "call,game,2xdownload,upload"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&LINK[..], more].concat()
}

/// Half a second of buffer down and two seconds up: a call is impossible behind the FIFO, and fine behind a fair queue.
#[test]
fn a_fair_queue_rescues_the_call() {
    let place = Place::new("advise");
    let fast = ["--runs", "2", "-t", "20s", "--queues", "fifo,fq_codel,cake,cocoa"];
    let json = place.ok(&with(&[&fast[..], &["--json"]].concat()));
    let answer: Value = serde_json::from_str(&json).expect("JSON");
    let ranking = answer["ranking"].as_array().expect("a list");
    assert_eq!(ranking.len(), 4);
    assert_eq!(ranking[3]["queue"], "fifo", "{json}");
    let score = |outcome: &Value| outcome["score"].as_f64().expect("a number");
    assert!(ranking.windows(2).all(|pair| score(&pair[0]) >= score(&pair[1]) - 1.0), "{json}");
    assert!(score(&ranking[0]) > 70.0, "{json}");
    let now = &answer["as_it_is"];
    assert_eq!((score(now), now["uses"]["call"]["score"].as_f64()), (0.0, Some(0.0)), "{json}");
    let mos = |outcome: &Value| outcome["uses"]["call"]["figure"].as_f64().expect("a number");
    assert!(mos(now) < 2.5 && mos(&ranking[0]) > 4.2, "{json}");
    // The same bytes on any number of threads.
    let again = place.ok(&with(&[&fast[..], &["--json", "--jobs", "1"]].concat()));
    assert_eq!(again, json);
}

/// On a fast link the runs are short. A call that is still raising its rate says nothing about the queue.
#[test]
fn a_video_call_alone_has_all_points_on_a_fast_link() {
    let place = Place::new("advise-video-call");
    let json = place.ok(&[
        "advise",
        "--down",
        "250mbit",
        "--up",
        "25mbit",
        "--uses",
        "video-call",
        "--queues",
        "cake,fifo",
        "--runs",
        "2",
        "--json",
    ]);
    let answer: Value = serde_json::from_str(&json).expect("JSON");
    let ranking = answer["ranking"].as_array().expect("a list");
    for outcome in ranking.iter().chain([&answer["as_it_is"]]) {
        assert_eq!(outcome["score"].as_f64(), Some(100.0), "{json}");
        // The encoder makes 2.5 Mbit/s at most.
        assert!(outcome["uses"]["video-call"]["figure"].as_f64().is_some_and(|mbit| mbit > 2.0), "{json}");
    }
}

#[test]
fn the_answer_has_the_commands_and_a_folder() {
    let place = Place::new("advise-folder");
    let text =
        place.ok(&with(&["--runs", "1", "-t", "10s", "--queues", "cake", "--interface", "eth1", "--out", "answer"]));
    for part in [
        "tc qdisc replace dev eth1 root cake bandwidth 3800kbit nat",
        "tc qdisc replace dev ifb4eth1 root cake bandwidth 19000kbit nat",
        "uci set sqm.advised.script='piece_of_cake.qos'",
        "as the link is, call has 0 (MOS",
        "as it is",
        "answer/report.html",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let files: Vec<String> = place.files("answer").iter().map(|file| file.to_string_lossy().into_owned()).collect();
    for name in ["advice.json", "report.html", "scenarios/as-it-is.toml", "scenarios/cake.toml"] {
        assert!(files.iter().any(|file| file == name), "no {name} in {files:?}");
    }
    let page = std::fs::read_to_string(place.path("answer/report.html")).expect("the page");
    // The commands are lines that can be copied, without anything between them.
    assert!(page.contains("<pre>tc qdisc replace dev eth1 root cake bandwidth 3800kbit nat\nip link add "), "{page}");
    assert!(page.contains("class=\"heat\""));
    // A scenario that was written is one that runs.
    place.ok(&["run", "answer/scenarios/cake.toml", "--out", "run"]);
    refused(&place, &with(&["--out", "answer"]), &["answer"]);
}

/// Cells and headers make an upload on ADSL slower than on a link that counts IP packets, and the commands know it.
#[test]
fn the_link_layer_is_in_the_simulation_and_in_the_commands() {
    let place = Place::new("advise-link");
    let goodput = |link: &str| {
        let set_up =
            ["advise", "--down", "20mbit", "--up", "4mbit", "--uses", "upload", "--queues", "cake", "--runs", "1"];
        let text = place.ok(&[&set_up[..], &["-t", "10s", "--link", link, "--json"]].concat());
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert!(link == "any" || text.contains("bandwidth 3800kbit pppoe-llcsnap nat"), "{text}");
        answer["as_it_is"]["uses"]["upload"]["figure"].as_f64().expect("a number")
    };
    let ratio = goodput("adsl") / goodput("any");
    assert!((ratio - 1500.0 / 1749.0).abs() < 0.01, "1500 bytes in 33 cells are 1749: {ratio}");
}

/// Two users upload with four connections each, beside ten calls.
#[test]
fn users_are_hosts() {
    let place = Place::new("advise-users");
    let set_up = ["advise", "--down", "50mbit", "--up", "20mbit", "--users", "12", "--uses", "10xcall,2xupload"];
    let text = place.ok(&[&set_up[..], &["--queues", "cake,fifo", "--runs", "1", "-t", "20s", "--json"]].concat());
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["uses"].as_array().map(Vec::len), Some(2));
    assert_eq!((&answer["uses"][0]["count"], &answer["uses"][1]["count"]), (&10.into(), &2.into()), "{text}");
    let ranking = answer["ranking"].as_array().expect("a list");
    assert_eq!((&ranking[0]["queue"], &ranking[0]["uses"]["call"]["score"]), (&"cake".into(), &100.0.into()), "{text}");
    assert!(ranking[1]["score"].as_f64().is_some_and(|score| score < 50.0), "{text}");
}

/// A satellite link with a megabyte of buffer that is not ours: a shaper at 95 % of the mean lets it fill, one that follows the link does not.
#[test]
fn a_shaper_follows_a_link_whose_rate_varies() {
    let place = Place::new("advise-leo");
    let link = ["advise", "--link", "leo", "--down", "100mbit", "--up", "40mbit", "--uses", "call,upload"];
    let more = ["--queues", "cake,cocoa+autorate", "--runs", "2", "-t", "60s"];
    let answer: Value = serde_json::from_str(&place.ok(&[&link[..], &more, &["--json"]].concat())).expect("JSON");
    let ranking = answer["ranking"].as_array().expect("a list");
    assert_eq!((&ranking[0]["queue"], &ranking[1]["queue"]), (&"cocoa+autorate".into(), &"cake".into()), "{answer}");
    let (mean, shaped) = (answer["link"]["mean_up_mbit"].as_f64(), &answer["link"]["shaped_up_mbit"]);
    assert!(mean.is_some_and(|mean| (27.0..28.5).contains(&mean)) && shaped.is_null(), "{answer}");
    let text = place.ok(&[&link[..], &more].concat());
    for part in [
        "at most 100mbit down and 40mbit up (leo), on average 69.767 Mbit/s and 27.907 Mbit/s",
        "narrows qdisc attach wan cocoa --autorate --min 2790kbit --max 40000kbit\n",
        "The shaper of what is sent follows the link.",
        "needs Linux 6.16 with CONFIG_NET_SCH_BPF, and narrows",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    // A scenario that was written is one that runs.
    place.ok(&[&link[..], &["--queues", "cocoa+autorate", "--runs", "1", "-t", "10s", "--out", "answer"]].concat());
    place.ok(&["run", "answer/scenarios/cocoa-autorate.toml", "--out", "run"]);
}

#[test]
fn an_attached_queue_comes_with_a_stock_one() {
    let place = Place::new("advise-ours");
    let text = place.ok(&with(&["--runs", "1", "-t", "10s", "--queues", "cocoa,fifo"]));
    for part in [
        "narrows qdisc attach wan cocoa --rate 3800kbit\n",
        "narrows qdisc attach wan cocoa --rate 19000kbit --ifb\n",
        "pfifo limit 1000",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn bad_flags() {
    let place = Place::new("advise-flags");
    let table: &[(&[&str], &[&str])] = &[
        (&["advise", "--up", "1mbit"], &["--down"]),
        (&["advise", "--down", "20", "--up", "1mbit"], &["--down", "20mbit"]),
        (&["advise", "--down", "20mbit", "--up", "99kbit"], &["--up", "100kbit and more"]),
        (&["advise", "--down", "20mbit", "--up", "0mbit"], &["--up"]),
        (&with(&["--rtt", "3mbit"]), &["--rtt"]),
        (&with(&["--link", "dsl"]), &["--link", "docsis (cable", "vdsl", "adsl", "ethernet", "lte"]),
        (&["advise", "--down", "20mbit", "--up", "2mbit", "--buffer", "2KB"], &["--buffer", "3000B and more"]),
        (&with(&["--duration", "1s"]), &["--duration", "5s and more"]),
        (&with(&["--queues", "fifo,gsp"]), &["--queues", "gsp", "cannot be deployed", "cake, fq_codel"]),
        (&with(&["--queues", "cake,cake"]), &["twice"]),
        (&with(&["--queues", "cake,cake@95", "--link", "wifi"]), &["twice"]),
        (&with(&["--queues", "cake@0"]), &["--queues", "\"@0\" is no share of a rate", "@1 to @100"]),
        (&with(&["--queues", "cake@50"]), &["cake@50", "constant", "cellular, wifi, leo"]),
        (&with(&["--queues", "cake+autorate"]), &["cake+autorate", "docsis, cellular, wifi, leo"]),
        (&with(&["--queues", "pie+autorate", "--link", "leo"]), &["pie+autorate", "serve flows in turn"]),
        (
            &["advise", "--down", "trace:lte", "--up", "2mbit", "--link", "cellular"],
            &["--down", "trace", "--link cellular", "the highest rate"],
        ),
        (&with(&["--interface", "a b"]), &["--interface", "1 to 15 letters"]),
        (&with(&["--interface", "$(reboot)"]), &["--interface"]),
        (&with(&["--interface", "-x"]), &["--interface"]),
        (&with(&["--users", "1001"]), &["--users", "1 to 1000"]),
        (&with(&["--users", "3"]), &["--users", "4 and more"]),
        (&with(&["--runs", "0"]), &["--runs", "1 to 1000"]),
        (&["advise", "--down", "20mbit", "--up", "2mbit", "--uses", "calls"], &["--uses", "calls", "call, game, web"]),
        (&["advise", "--down", "20mbit", "--up", "2mbit", "--uses", ""], &["--uses"]),
    ];
    for (args, expected) in table {
        refused(&place, args, expected);
    }
    assert!(place.files("").is_empty(), "nothing is written");
}
