//! `narrows reproduce PAPER`: its output and files, and that a stopped command can be continued.
use crate::support::{Place, json, text};
use narrows_runner::index;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const SMALL: [&str; 5] = ["reproduce", "cocoa", "--figure", "text: 1 ms", "--quick"];

#[test]
fn alone_it_lists_the_papers_and_their_figures() {
    let listed = Place::new("reproduce_list").ok(&["reproduce"]);
    for expected in ["narrows reproduce cocoa", "narrows reproduce cp-aqm", "figure 6", "--full"] {
        assert!(listed.contains(expected), "{expected} is not in\n{listed}");
    }
}

#[test]
fn a_figure_has_published_beside_measured_and_leaves_a_page() {
    let place = Place::new("reproduce_figure");
    let printed = place.ok(&[&SMALL[..], &["--out", "out"]].concat());
    for expected in ["published", "measured", "cocoa", "7.31", "out/report.html"] {
        assert!(printed.contains(expected), "{expected} is not in\n{printed}");
    }
    let page = fs::read_to_string(place.path("out/report.html")).expect("the page");
    assert!(
        page.contains("7.31")
            && page.contains("data-chart=\"0\"")
            && page.contains("id=\"data0\"")
            && !page.contains("http://"),
        "{}",
        page.len()
    );
    let json: Value =
        serde_json::from_str(&place.ok(&[&SMALL[..], &["--json"]].concat())).expect("JSON and nothing else");
    let cells = json["figures"][0]["cells"].as_array().expect("cells");
    assert_eq!((json["paper"].as_str(), cells.len()), (Some("cocoa"), 6));
    assert!(cells.iter().all(|cell| cell["entries"][1]["measured"].as_f64().is_some_and(|rtt| rtt > 1.0)), "{cells:?}");
}

#[test]
fn finished_runs_are_not_made_again_and_jobs_change_nothing() {
    let place = Place::new("reproduce_resume");
    let args = |jobs| [&SMALL[..4], &["--runs", "3", "--jobs", jobs, "--json", "--out", "out", "--force"]].concat();
    let first = place.ok(&args("1"));
    let kept = place.path("out/runs.jsonl");
    let lines = fs::read_to_string(&kept).expect("the finished runs");
    assert_eq!(lines.lines().count(), 18);
    // The last line is truncated.
    let mut all: Vec<String> = lines.lines().map(str::to_owned).collect();
    let last = all.pop().expect("eighteen lines");
    fs::write(&kept, format!("{}\n{}", all.join("\n"), &last[..last.len() / 2])).expect("a shortened file");
    assert_eq!(place.ok(&args("4")), first);
    // The first seed of each cell runs again for its picture; one of the twelve others was missing.
    let again =
        fs::read_to_string(&kept).expect("the finished runs").lines().filter(|line| line.ends_with('}')).count();
    assert!((18..=24).contains(&again), "{again}");
}

#[test]
fn a_limit_of_time_leaves_every_cell_with_the_same_seeds() {
    let place = Place::new("reproduce-within");
    // At least one round, however short the time is, and all rounds if it suffices.
    let figure = ["reproduce", "cocoa", "--figure", "text: 1 ms", "--runs", "3"];
    let set = |within, out| place.ok(&[&figure[..], &["--within", within, "--out", out]].concat());
    assert!(set("1ms", "one").contains("here one run"));
    assert!(set("10h", "all").contains("here 3 runs"));
    let runs = |out: &str| {
        let text = fs::read_to_string(place.path(out).join("runs.jsonl")).expect("runs");
        text.lines().map(str::to_owned).collect::<BTreeSet<String>>()
    };
    assert_eq!((runs("one").len(), runs("all").len()), (6, 18));
    // A reproduction that the limit stopped continues with the same runs.
    place.ok(&[&figure[..], &["--out", "one", "--force"]].concat());
    assert_eq!(runs("one"), runs("all"));
    let refused = place.run(&["reproduce", "cocoa", "--within", "0s"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("above zero, such as 2h"), "{}", text(&refused.stderr));
}

#[test]
fn a_program_that_was_built_again_makes_all_runs_anew() {
    let place = Place::new("reproduce_rebuilt");
    let args = [&SMALL[..4], &["--runs", "2", "--json", "--out", "out", "--force"]].concat();
    let first = place.ok(&args);
    let kept = place.path("out/runs.jsonl");
    // Figures that no run gives show which ones are used.
    let mut runs = index::parse(&fs::read(&kept).expect("the finished runs"));
    for run in runs.values_mut() {
        run.as_array_mut().expect("figures").iter_mut().for_each(|value| *value = 1e6.into());
    }
    let doctored = index::text(&runs).expect("lines with checksums");
    fs::write(&kept, &doctored).expect("the finished runs");
    let rebuilt = place.path("narrows");
    fs::copy(env!("CARGO_BIN_EXE_narrows"), &rebuilt).expect("a copy of the program");
    // With the build id of another program.
    let mut program = fs::read(&rebuilt).expect("the copy");
    let note = program.windows(NOTE.len()).position(|bytes| bytes == NOTE).expect("the linker gives it a build id");
    program[note + NOTE.len()] ^= 1;
    fs::write(&rebuilt, program).expect("another program");
    let output = Command::new(&rebuilt).args(&args).current_dir(place.path("")).output().expect("it starts");
    assert_eq!(text(&output.stdout), first, "{}", text(&output.stderr));
    fs::write(&kept, &doctored).expect("the finished runs");
    assert_ne!(place.ok(&args), first, "the same program takes them");
}

/// What comes before a build id: the type of the note, and its name.
const NOTE: &[u8] = b"\x03\0\0\0GNU\0";

#[test]
fn the_simulator_is_held_to_the_cells_of_the_lab() {
    let json: Value =
        serde_json::from_str(&Place::new("linux_lab").ok(&["reproduce", "linux-lab", "--json"])).expect("JSON");
    // A change of the model changes these numbers: say in the book by how much.
    assert_eq!((&json["score"]["met"], &json["score"]["published"]), (&Value::from(1741), &Value::from(2009)));
}

#[test]
fn the_simulator_is_held_to_the_recorded_cells_and_traces_of_linux() {
    let place = Place::new("reproduce_linux");
    let printed = place.ok(&["reproduce", "linux", "--quick", "--out", "out"]);
    // One run of each cell; a change of the model changes these numbers.
    for group in [
        "fitted: 24 of 26 cells met in every figure, 102 of 104 figures",
        "unseen: 26 of 36 cells met in every figure, 166 of 180 figures",
    ] {
        assert!(printed.contains(group), "{group} is not in\n{printed}");
    }
    let report = json(&fs::read_to_string(place.path("out/figures.json")).expect("the figures"));
    assert_eq!((&report["score"]["published"], &report["score"]["groups"][1]["cells"]), (&284.into(), &36.into()));
    let traces = &report["figures"].as_array().expect("figures")[1];
    let cells = traces["cells"].as_array().expect("cells");
    assert_eq!((traces["figure"].as_str(), cells.len()), (Some("start-up traces"), 8));
    for (cell, entry) in
        cells.iter().flat_map(|cell| cell["entries"].as_array().into_iter().flatten().map(move |entry| (cell, entry)))
    {
        let limit = if cell["labels"][0].as_str().is_some_and(|label| label.contains("new_reno fifo 1000")) {
            130.0
        } else {
            2.0
        };
        assert!(entry["measured"].as_f64().is_some_and(|rms| rms > 0.0 && rms < limit), "{cell}");
    }
    let page = fs::read_to_string(place.path("out/report.html")).expect("the page");
    assert!(page.contains("data-chart=\"3\""), "the windows of four traces are drawn");
    let svg = fs::read_to_string(place.path("out/predicted.svg")).expect("the picture");
    assert!(svg.contains("T4 bbr x1 25mbit 10ms fq: 13.") && svg.contains("rtt, ms"), "{svg}");
    // A former flag chooses the same cells.
    let of = |flag| place.ok(&["reproduce", "linux", "--quick", flag, "T6"]);
    assert!(of("--set") == of("--cells") && of("--cells").contains("fitted: 3 of 4 cells met in every figure"));
}

#[test]
fn pooled_configurations_are_one_row() {
    let place = Place::new("reproduce_startup");
    let args = ["reproduce", "startup", "--figure", "jitter", "--figure", "figure 4-7", "--quick", "--json"];
    let json: Value = serde_json::from_str(&place.ok(&args)).expect("JSON");
    let figures = json["figures"].as_array().expect("figures");
    assert_eq!(figures.iter().map(|f| f["figure"].as_str()).collect::<Vec<_>>(), [Some("figure 4-7"), Some("jitter")]);
    assert!(figures.iter().all(|figure| figure["broken"].as_array().is_some_and(Vec::is_empty)), "{json}");
    let quartiles = &figures[1]["cells"][0]["entries"][0];
    let of = |key: &str| quartiles[key].as_f64().expect(key);
    assert!(of("q1") <= of("median") && of("median") <= of("q3") && of("median") == of("measured"), "{quartiles}");
    let listed = place.ok(&["reproduce"]);
    assert!(
        listed.contains("narrows reproduce startup") && listed.contains("narrows reproduce both-sides"),
        "{listed}"
    );
}

#[test]
fn heat_maps_are_on_the_page_and_beside_it() {
    let place = Place::new("reproduce_both_sides");
    place.ok(&["reproduce", "both-sides", "--figure", "alone", "--quick", "--out", "out"]);
    let page = fs::read_to_string(place.path("out/report.html")).expect("the page");
    let svg = fs::read_to_string(place.path("out/svg/alone_goodput.svg")).expect("a heat map");
    assert!(page.contains(svg.trim()), "the page has the same drawing");
    for part in [">fq_codel</text>", ">bbr3</text>", "controller cubic, queue fifo: "] {
        assert!(svg.contains(part), "{part} is not in {svg}");
    }
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let place = Place::new("reproduce_bad");
    let output = place.run(&["reproduce", "cocoa", "--figure", "99"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("99") && said.contains("table 1") && said.contains("figure 7-8"), "{said}");
    for bad in [
        &["reproduce", "nosuch"][..],
        &["reproduce", "cocoa", "--runs", "0"],
        &["reproduce", "cocoa", "--quick", "--full"],
    ] {
        assert_eq!(place.run(bad).status.code(), Some(2), "{bad:?}");
    }
}

#[test]
fn live_cells_have_both_worlds_beside_each_other() {
    let place = Place::new("reproduce_live");
    let small = ["reproduce", "live", "--cells", "cubic fq_codel", "--quick", "--jobs", "2"];
    let output = place.run(&[&small[..], &["--out", "out", "--results"]].concat());
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    // When the system forbids something, the message says what would allow it.
    if output.status.code() == Some(2) && ["root", "--device", "modprobe"].iter().any(|help| said.contains(help)) {
        return println!("skipped: {said}");
    }
    assert!(output.status.success(), "{said}");
    assert!(said.contains("2 runs in real time, 2 at a time"), "{said}");
    for expected in ["20 Mbit/s 40 ms  fq_codel", "50 Mbit/s 20 ms  fq_codel", "of 2 cells met in every figure"] {
        assert!(printed.contains(expected), "{expected} is not in\n{printed}");
    }
    let report = json(&fs::read_to_string(place.path("out/figures.json")).expect("the figures"));
    // Utilisation and RTT of two cells have an aim, the other figures none.
    assert_eq!((&report["score"]["published"], &report["score"]["worlds"][0]), (&4.into(), &"live".into()), "{report}");
    for world in ["cells", "simulator"] {
        let cells = report["figures"][0][world].as_array().expect("cells");
        for (cell, base_rtt) in cells.iter().zip([40.0, 20.0]) {
            // More than the base RTT and less than a full queue; and the flow delivers something.
            let figure = |n: usize| cell["entries"][n]["measured"].as_f64().expect("a figure");
            assert!((1.0..10.0).contains(&(figure(1) / base_rtt)) && figure(0) > 30.0, "{cell}");
            assert_eq!(cell["entries"][5]["measured"].is_null(), world == "simulator", "how late it was: {cell}");
        }
    }
    // Each run of both worlds is a result, and the two can be compared.
    let seed = |world: &str| format!("out/runs/cells--20-Mbit-s-40-ms--fq_codel--cubic/seed-1/{world}");
    let diff = place.ok(&["diff", &seed("simulator"), &seed("live")]);
    assert!(diff.contains("utilisation"), "{diff}");
}

#[test]
fn live_refuses_what_it_cannot_do_before_it_asks_for_rights() {
    let place = Place::new("reproduce_live_bad");
    for (bad, expected) in [
        (&["live", "--runs", "0"][..], "1 to 100000"),
        (&["live", "--jobs", "0"], "1 to 4096"),
        (&["live", "--duration", "10s"], "allowed: --quick, --full"),
        (&["linux", "--trace"], "the page of --out draws the traces"),
        (&["live", "--results"], "--out"),
        (&["cocoa", "--no-offload"], "--no-offload is for --on live"),
    ] {
        let output = place.run(&[&["reproduce"], bad].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {said}");
        assert!(said.contains(expected), "{bad:?}: {expected} is not in\n{said}");
    }
}

#[test]
fn a_reproduction_ends_with_its_score() {
    let place = Place::new("reproduce_score");
    let args = ["reproduce", "cocoa", "--figure", "8", "--quick"];
    let json: Value = serde_json::from_str(&place.ok(&[&args[..], &["--json"]].concat())).expect("JSON");
    let figure = |key: &str| json["score"][key].as_u64().expect("a number");
    assert_eq!(figure("published"), 8, "bytes and RTT of two queues, the gain, and three claims");
    let printed = place.ok(&args);
    let last = format!("{} of 8 published figures and claims met, within 5 %", figure("met"));
    assert!(printed.contains(&last), "{last} is not in\n{printed}");
    assert_eq!(printed.matches("\nnot met: figure 7-8").count() as u64, 8 - figure("met"), "{printed}");
    // What is not met has its reason, and the command that shows it.
    let missed = json["score"]["missed"].as_array().expect("a list");
    let gain =
        missed.iter().find(|missed| missed["what"].as_str().is_some_and(|what| what.contains("more than fq_codel")));
    let command = gain.and_then(|gain| gain["command"].as_str()).expect("the gain is not met");
    assert_eq!(command, "narrows reproduce cocoa --figure \"dip\"");
    assert!(printed.contains(&format!("\n  {command}\n")), "{printed}");
    assert!(printed.contains("not met: figure 7-8, cocoa: more than fq_codel > 10, measured "), "{printed}");
    // Figures that were never published are shown and not counted; the claims about them are.
    let unpublished = place.ok(&SMALL);
    assert!(
        unpublished.contains("7.31") && unpublished.contains(" of 3 published figures and claims met"),
        "{unpublished}"
    );
}

/// Figures of Linux that nobody measured: 1 everywhere, in three runs.
fn made_up(place: &Place) {
    let flows = ["cubic", "new_reno", "bbr", "vegas"];
    let of_flows = flows.iter().flat_map(|flow| [format!("rtt of {flow}"), format!("goodput of {flow}")]);
    let metrics = ["utilisation", "queue", "loss"].map(str::to_owned).into_iter().chain(of_flows);
    let line = |metric: String| format!("01 plain,,{metric},1 0.5 1.5\n");
    let text: String = std::iter::once("figure,cell,metric,value\n".to_owned()).chain(metrics.map(line)).collect();
    fs::write(place.path("recorded.csv"), text).expect("a file");
}

const DRAWN: [&str; 7] = ["reproduce", "linux-lab", "--random", "1", "--seed", "6", "--recorded"];

#[test]
fn drawn_cells_are_judged_beside_recorded_runs_of_linux() {
    let place = Place::new("reproduce_drawn");
    made_up(&place);
    let args = |more: &[&'static str]| [&DRAWN[..], &["recorded.csv"], more].concat();
    let printed = place.ok(&args(&["--out", "out"]));
    for expected in ["Linux, drawn anew", "plain", "outside both", "within the aims", "3 in Linux, 8 in the simulator"]
    {
        assert!(printed.contains(expected), "{expected} is not in\n{printed}");
    }
    let recorded = fs::read_to_string(place.path("out/recorded.csv")).expect("the kernel's runs");
    assert!(recorded.contains("01 plain,,utilisation,1.00 0.50 1.50\n"), "{recorded}");
    // The scenario by itself, and the same figures whatever the number of threads.
    place.ok(&["sweep", "out/scenarios/01-plain.toml", "--dry-run"]);
    let report = json(&place.ok(&args(&["--json"])));
    assert_eq!(report, json(&place.ok(&args(&["--json", "--jobs", "1"]))));
    assert_eq!(report["cells"][0]["figures"][0]["simulator"]["runs"], 8);
    assert_eq!(report["counts"]["all"]["cells"], 1);
}

#[test]
fn a_draw_names_what_does_not_belong_to_it() {
    let place = Place::new("reproduce_drawn_wrong");
    made_up(&place);
    let told = |args: &[&str]| {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        text(&output.stderr)
    };
    let other = told(&["reproduce", "linux-lab", "--random", "2", "--seed", "6", "--recorded", "recorded.csv"]);
    assert!(
        other.contains("cell \"02 ACK path\" has no \"utilisation\"") && other.contains("the same --random and --seed"),
        "{other}"
    );
    assert!(told(&[&DRAWN[..], &["no.csv"]].concat()).contains("no.csv"));
    for wrong in
        [&["--random", "0"][..], &["--seed", "1"], &["--random", "1", "--quick"], &["--random", "1", "--measure"]]
    {
        let told = told(&[&["reproduce", "linux-lab"], wrong].concat());
        assert!(told.contains(wrong[wrong.len() - 2]) || told.contains(wrong[wrong.len() - 1]), "{wrong:?}: {told}");
    }
}

#[test]
fn an_unknown_experiment_is_answered_with_those_that_there_are() {
    let place = Place::new("reproduce-unknown");
    let output = place.run(&["reproduce", "coco"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("allowed: linux, kernel, live, cocoa") && said.contains("did you mean \"cocoa\"?"), "{said}");
}
