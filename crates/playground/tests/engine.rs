//! The engine as a page uses it: requests in, answers out.
use narrows_playground::{Engine, Limits, SCENES};
use narrows_scenario::{NoTraces, Scenario};
use narrows_world::{Unwatched, Wanted};
use proptest::prelude::*;
use serde_json::{Value, json};

fn ask(engine: &mut Engine, request: &Value) -> Value {
    serde_json::from_str(&engine.answer(&request.to_string())).expect("an answer is JSON")
}

fn asked(request: &Value) -> Value {
    ask(&mut Engine::new(Limits::TAB), request)
}

const SMALL: &str = r#"
name = "small" # a comment
duration = "2s"

[[hop]]
name = "link"
rate = "10mbit" # how fast
queue = { kind = "fifo", limit = "50p" }

[[flow]]
name = "bulk"
rtt = "40ms"
"#;

#[test]
fn a_scene_runs_in_a_tab_and_says_what_there_is_to_see() {
    for scene in SCENES {
        let run = asked(&json!({"ask": "run", "text": scene.text, "points": 300}));
        assert_eq!(run["error"], Value::Null, "{}", scene.name);
        assert!(run["series"].as_array().is_some_and(|series| !series.is_empty()), "{}", scene.name);
        let sentences = scene.text.lines().take_while(|line| line.starts_with("# ")).count();
        assert!(sentences >= 2, "{}: its first comment says what there is to see", scene.name);
    }
    assert!(SCENES.len() >= 12);
}

#[test]
fn a_run_has_the_figures_of_the_simulator() {
    for scene in SCENES {
        let scenario = Scenario::parse(scene.text, "scene", &NoTraces).expect("a scenario");
        let native = narrows_sim::run(&scenario, &Wanted::RESULT, &mut Unwatched).expect("a run").result.summary;
        let native = serde_json::to_value(native.without_cost()).expect("JSON");
        let run = asked(&json!({"ask": "run", "text": scene.text, "points": 300}));
        assert_eq!(run["summary"], native, "{}", scene.name);
    }
}

/// Classes with their queues, and the class of each group of flows; a mechanism with its parameters.
#[test]
fn classes_and_mechanisms_are_outlined() {
    let scene = |name: &str| SCENES.iter().find(|scene| scene.name == name).expect("a scene").text;
    let hop = |text: &str| asked(&json!({"ask": "read", "text": text}))["outline"]["hops"][0].clone();
    let classes = hop(scene("classes"));
    let of =
        |n: usize| (&classes["classes"][n]["name"], &classes["classes"][n]["parent"], &classes["classes"][n]["leaf"]);
    assert_eq!(of(0), (&json!("calls"), &Value::Null, &json!(["fifo", "one"])));
    assert_eq!(of(1), (&json!("people"), &Value::Null, &Value::Null));
    assert_eq!(of(3), (&json!("guests"), &json!(1), &json!(["fq_codel", "flows"])), "the hop's own queue");
    assert_eq!((&classes["class_of"], &classes["mechanism"]), (&json!([0, 2, 3]), &Value::Null));
    let wifi = hop(scene("wifi"));
    assert_eq!((&wifi["mechanism"]["kind"], &wifi["class_of"]), (&json!("wifi"), &json!([])));
    assert_eq!(wifi["mechanism"]["params"]["others"], "0.3");
    let edits = json!([{"table": {"hop": 0}, "key": ["mechanism"], "value": "leo"}, {"table": {"hop": 0}, "key": ["mechanism", "stall"], "value": "80ms"}]);
    let edited = asked(&json!({"ask": "edit", "text": SMALL, "edits": edits}));
    let text = edited["text"].as_str().expect("a text");
    assert!(text.contains("mechanism = { kind = \"leo\", stall = \"80ms\" }"), "{edited}");
    // What a frame says of the rate is its mean.
    let opened = asked(&json!({"ask": "open", "seat": 0, "text": text, "at": 0}));
    let mean = opened["hops"][0]["rate_mbit"].as_f64().expect("a rate");
    assert!((6.9..7.0).contains(&mean), "10 Mbit/s × 0.7 × (1 − 0.08 ÷ 15): {mean}");
}

#[test]
fn a_run_is_played_frame_by_frame() {
    let mut engine = Engine::new(Limits::TAB);
    let opened = ask(&mut engine, &json!({"ask": "open", "seat": 0, "text": SMALL, "at": 0}));
    assert_eq!((&opened["now"], &opened["end"]), (&json!(0), &json!(2_000_000_000_u64)));
    let (mut most, mut dropped) = (0, 0);
    for ms in (20..=3000).step_by(20) {
        let frame = ask(&mut engine, &json!({"ask": "frame", "seat": 0, "to": ms * 1_000_000}));
        assert_eq!(frame["now"], json!(2_000_000_000_u64.min(ms * 1_000_000)));
        let packets = frame["packets"].as_array().expect("packets");
        assert_eq!(packets.len() % 5, 0);
        let queued = packets
            .chunks(5)
            .filter(|packet| packet[3] == 0 && packet[1].as_u64().is_some_and(|flags| flags & 1 == 1))
            .count() as u64;
        assert_eq!(frame["hops"][0]["packets"], queued, "packets in the queue at {ms} ms");
        most = most.max(queued);
        dropped += frame["dropped"].as_u64().expect("a number");
    }
    assert_eq!(most, 50, "the buffer fills");
    let run = asked(&json!({"ask": "run", "text": SMALL, "points": 10}));
    assert_eq!(run["summary"]["hops"][0]["drops"]["total"], dropped, "every drop is shown once");
    assert!(dropped > 0);
    let elsewhere = ask(&mut engine, &json!({"ask": "frame", "seat": 1, "to": 0}));
    assert_eq!(elsewhere["error"]["message"], "nothing is being played there");
}

#[test]
fn a_place_can_be_opened_in_the_middle() {
    let mut engine = Engine::new(Limits::TAB);
    let frame = |engine: &mut Engine, ask_: Value| {
        let mut frame = ask(engine, &ask_);
        // How many were dropped since the frame before depends on when that was.
        ["drops", "dropped"].iter().for_each(|&key| drop(frame.as_object_mut().expect("a frame").remove(key)));
        frame
    };
    let at = 1_500_000_000_u64;
    let opened = frame(&mut engine, json!({"ask": "open", "seat": 0, "text": SMALL, "at": at}));
    ask(&mut engine, &json!({"ask": "open", "seat": 1, "text": SMALL, "at": 0}));
    for ms in (1..1500).step_by(7) {
        ask(&mut engine, &json!({"ask": "frame", "seat": 1, "to": ms * 1_000_000}));
    }
    let played = frame(&mut engine, json!({"ask": "frame", "seat": 1, "to": at}));
    let but_ways_back = |frame: &Value| {
        let mut frame = frame.clone();
        for packet in frame["packets"].as_array_mut().expect("packets").chunks_mut(5) {
            // How long a way back is, is learned from the packets on it.
            if packet[3] == 3 {
                packet[4] = Value::Null;
            }
        }
        frame
    };
    assert_eq!(but_ways_back(&opened), but_ways_back(&played));
}

/// A minute of 60 Mbit/s: what has been read of the log is forgotten, so that it fits into a tab.
#[test]
fn a_long_run_is_played_within_the_memory_of_a_tab() {
    let long = SMALL.replace("10mbit", "60mbit").replace("2s", "60s");
    let mut engine = Engine::new(Limits::TAB);
    let opened = ask(&mut engine, &json!({"ask": "open", "seat": 0, "text": long, "at": 59_000_000_000_u64}));
    assert_eq!(opened["error"], Value::Null);
    let frame = ask(&mut engine, &json!({"ask": "frame", "seat": 0, "to": 60_000_000_000_u64}));
    assert!(frame["hops"][0]["packets"].as_u64() > Some(0), "{frame}");
}

#[test]
fn edits_leave_the_rest_as_it_was_written() {
    let edit = |edits: Value| asked(&json!({"ask": "edit", "text": SMALL, "edits": edits}));
    let text = |edits: Value| edit(edits)["text"].as_str().map(str::to_owned).unwrap_or_default();
    let hop = json!({"hop": 0});
    for (edits, line) in [
        (json!([{"table": hop, "key": ["rate"], "value": "20mbit"}]), "rate = \"20mbit\" # how fast"),
        (json!([{"key": ["duration"], "value": "3s"}]), "duration = \"3s\""),
        (json!([{"table": hop, "key": ["queue"], "value": "fq_codel"}]), "queue = \"fq_codel\""),
        (
            json!([{"table": hop, "key": ["queue", "limit"], "value": "9p"}]),
            "queue = { kind = \"fifo\", limit = \"9p\" }",
        ),
        (json!([{"table": hop, "key": ["queue", "limit"]}]), "queue = \"fifo\""),
        (json!([{"table": hop, "key": ["loss"], "value": "0.01"}]), "loss = 0.01"),
        (
            json!([{"table": hop, "key": ["rate"], "value": "5mbit", "at": 1.5}]),
            "rate = [{ at = \"0s\", rate = \"10mbit\" }, { at = \"1.5s\", rate = \"5mbit\" }]",
        ),
        (
            json!([{"table": {"flow": 0}, "key": ["transport", "ecn"], "value": "true"}]),
            "transport = { kind = \"tcp\", ecn = true }",
        ),
        (json!([{"table": "new_flow", "value": "call"}]), "traffic = \"call\""),
    ] {
        let text = text(edits);
        assert!(text.contains(line), "{line:?} is not in\n{text}");
        assert!(text.contains("name = \"small\" # a comment"), "{text}");
    }
    let twice = json!([
        {"table": hop, "key": ["delay"], "value": "5ms", "at": 0.5},
        {"table": hop, "key": ["delay"], "value": "9ms", "at": 1.0},
        {"table": hop, "key": ["delay"], "value": "2ms", "at": 0.7},
    ]);
    let steps = "delay = [{ at = \"0s\", delay = \"0ms\" }, { at = \"0.5s\", delay = \"5ms\" }, { at = \"0.7s\", delay = \"2ms\" }]";
    assert!(text(twice.clone()).contains(steps), "{}", text(twice));
    let last = edit(json!([{"table": {"flow": 0}}]));
    assert!(last["error"]["message"].as_str().is_some_and(|said| said.contains("flow")), "{last}");
}

#[test]
fn faults_are_answers_with_their_line() {
    let unknown = SMALL.replace("rtt", "rrt");
    let answer = asked(&json!({"ask": "read", "text": unknown}));
    assert_eq!(answer["error"]["line"], 12);
    let long = SMALL.replace("10mbit", "40gbit").replace("2s", "3600s");
    for request in
        [json!({"ask": "run", "text": long, "points": 100}), json!({"ask": "open", "text": long, "seat": 0, "at": 0})]
    {
        let said = asked(&request);
        let message = said["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("would send about"), "{message}");
    }
    for bad in [json!({}), json!({"ask": "frame"}), json!({"ask": "open", "seat": 7, "text": SMALL, "at": 0}), json!(3)]
    {
        assert!(asked(&bad)["error"]["message"].is_string(), "{bad}");
    }
    let mut engine = Engine::new(Limits::TAB);
    assert!(engine.answer("{").contains("error"));
}

proptest! {
    /// A stranger's link: every text is a scenario or has a message.
    #[test]
    fn any_text_has_an_answer(text in "\\PC{0,400}", at in 0..10_000_000_000_u64) {
        let mut engine = Engine::new(Limits::TAB);
        for request in [json!({"ask": "run", "text": text, "points": 50}), json!({"ask": "open", "seat": 0, "text": text, "at": at})] {
            prop_assert!(ask(&mut engine, &request)["error"]["message"].is_string());
        }
    }

    /// A scenario with a piece replaced: it runs within its budget, or has a message.
    #[test]
    fn a_damaged_scene_has_an_answer(scene in 0..SCENES.len(), from in 0..1000_usize, len in 0..40_usize, with in "[a-z0-9\"=.\\[\\]{} ]{0,20}") {
        let mut text: Vec<char> = SCENES[scene].text.chars().collect();
        let from = from.min(text.len());
        text.splice(from..(from + len).min(text.len()), with.chars());
        let text: String = text.into_iter().collect();
        let answer = asked(&json!({"ask": "read", "text": text}));
        prop_assert!(answer["error"]["message"].is_string() || answer["outline"].is_object());
    }
}
