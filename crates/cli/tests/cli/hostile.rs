//! Text from outside never controls the terminal, and an error shows nothing of a file that is not a scenario or a result.
use crate::support::Place;
use std::ffi::OsStr;
use std::fs;
use std::process::Output;

/// Names with CSI, OSC and C1 sequences, a bell, carriage returns and line breaks that forge messages, overrides that reverse
/// text, and invisible tags and zero-width characters.
const HOSTILE: [&str; 9] = [
    "a\x1b[2J\x1b[31mb",
    "a\x1b]0;title\x07b",
    "a\u{9b}31mb",
    "a\rnarrows: all is well\nb",
    "a\x08\x08\x7fb",
    "a\u{202e}gnp.b\u{2066}",
    "a\u{e0041}\u{200b}\u{feff}b",
    "a\t\x0b\x0c\x0eb",
    "a\u{2028}\u{2029}\u{85}b",
];

/// Checks that the output has no control character except line breaks.
fn shows(args: &[&str], output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(all).unwrap_or_else(|error| panic!("{args:?}: {error}"));
    let hidden = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    if let Some(c) = text.chars().find(|&c| hidden(c)) {
        panic!("{args:?} prints {c:?} as it is:\n{text:?}");
    }
    assert!(!text.lines().any(|line| line == "narrows: all is well"), "{args:?} prints a forged message:\n{text}");
    assert!(!text.contains("panicked"), "{args:?}\n{text}");
    text
}

/// A TOML basic string.
fn toml(text: &str) -> String {
    let escaped =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\U{:08X}", c as u32) });
    format!("\"{}\"", escaped.collect::<String>())
}

const SCENARIO: &str = "name = \"n\"\nduration = \"0.2s\"\n[[hop]]\nname = \"h\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n\
                        [[flow]]\nname = \"f\"\nrtt = \"20ms\"\nroute = [\"h\"]\n";

#[test]
fn regression_names_in_scenarios_do_not_reach_the_terminal_as_they_are() {
    let place = Place::new("hostile_scenarios");
    for hostile in HOSTILE {
        let quoted = toml(hostile);
        // The first scenario runs; all others are refused with a message that repeats the name.
        let cases = [
            ("name = \"n\"", format!("name = {quoted}"), true),
            ("name = \"n\"", format!("{quoted} = 1"), false),
            ("name = \"h\"", format!("name = {quoted}"), false),
            ("\"10mbit\"", quoted.clone(), false),
            ("\"10mbit\"", format!("{{ trace = {quoted} }}"), false),
            ("\"fifo\"", quoted.clone(), false),
            ("\"fifo\"", format!("{{ kind = \"fifo\", {quoted} = 1 }}"), false),
            ("\"fifo\"", format!("{{ kind = \"fifo\", limit = {quoted} }}"), false),
            ("[\"h\"]", format!("[{quoted}]"), false),
            ("rtt = \"20ms\"", format!("rtt = \"20ms\"\nfrom = {quoted}"), false),
            ("rtt = \"20ms\"", format!("rtt = \"20ms\"\ncommand = \"'a {{\" # {quoted}"), false),
            ("rtt = \"20ms\"", format!("rtt = \"20ms\"\ncommand = {}", toml(&format!("{{{hostile}}}"))), false),
        ];
        for (from, to, runs) in cases {
            place.write("s.toml", &SCENARIO.replacen(from, &to, 1));
            let args = ["run", "s.toml", "--out", "out", "--json"];
            let args = if runs { &args[..4] } else { &args[..] };
            let output = place.run(args);
            let text = shows(&[&to], &output);
            assert_eq!(output.status.code(), Some(if runs { 0 } else { 2 }), "{to}\n{text}");
            let _ = fs::remove_dir_all(place.path("out"));
        }
    }
}

#[test]
fn regression_arguments_do_not_reach_the_terminal_as_they_are() {
    let place = Place::new("hostile_arguments");
    place.write("s.toml", SCENARIO);
    for hostile in HOSTILE {
        let flag = format!("--{hostile}");
        let tables: [&[&str]; 14] = [
            &[hostile],
            &[&flag],
            &["run", hostile],
            &["run", "s.toml", hostile],
            &["run", "s.toml", "--on", hostile],
            &["run", "s.toml", "--seed", hostile],
            &["compare", "--rate", hostile],
            &["compare", "--rtt", hostile],
            &["compare", "--flows", hostile],
            &["compare", "--queues", hostile],
            &["compare", "--queues", &format!("fifo:{hostile}=1")],
            &["compare", "-C", hostile],
            &["diff", hostile, hostile],
            &["reproduce", hostile],
        ];
        for args in tables {
            let output = place.run(args);
            let text = shows(args, &output);
            assert_eq!(output.status.code(), Some(2), "{args:?}\n{text}");
        }
    }
}

#[test]
fn regression_paths_do_not_reach_the_terminal_as_they_are() {
    let place = Place::new("hostile_paths");
    for (n, hostile) in HOSTILE.into_iter().enumerate() {
        let file = format!("{hostile}.toml");
        place.write(&file, SCENARIO);
        let out = format!("{n}{hostile}");
        let args = ["run", &file, "--out", &out];
        let output = place.run(&args);
        let text = shows(&args, &output);
        assert!(output.status.success(), "{args:?}\n{text}");
        // The same with an error in the file.
        place.write(&file, "duration = 5");
        shows(&["run", &file], &place.run(&["run", &file]));
        place.write("t.toml", &SCENARIO.replacen("\"10mbit\"", &format!("{{ trace = {} }}", toml(hostile)), 1));
        place.write(hostile, "x");
        shows(&["a trace called", hostile], &place.run(&["run", "t.toml"]));
    }
}

#[test]
fn regression_results_of_others_do_not_reach_the_terminal_as_they_are() {
    let place = Place::new("hostile_results");
    place.write("s.toml", SCENARIO);
    place.ok(&["run", "s.toml", "--out", "a"]);
    place.ok(&["run", "s.toml", "--out", "b"]);
    let summary = fs::read_to_string(place.path("b/summary.json")).expect("a summary");
    for hostile in HOSTILE {
        let quoted = serde_json_string(hostile);
        for (from, to, is_result) in [
            ("\"name\": \"h\"".to_owned(), format!("\"name\": {quoted}"), true),
            ("\"name\": \"f\"".to_owned(), format!("\"name\": {quoted}"), true),
            ("\"queue\": \"fifo\"".to_owned(), format!("\"queue\": {quoted}"), true),
            ("\"controller\": \"cubic\"".to_owned(), format!("\"controller\": {quoted}"), true),
            ("\"seed\": 1".to_owned(), format!("\"seed\": {quoted}"), false),
            ("\"hops\": [".to_owned(), format!("\"hops\": {{ {quoted}: 1 }}, \"more\": ["), false),
        ] {
            assert!(summary.contains(&from), "{from} is in\n{summary}");
            fs::write(place.path("b/summary.json"), summary.replacen(&from, &to, 1)).expect("it can be written");
            for order in [["diff", "a", "b"], ["diff", "b", "a"]] {
                let output = place.run(&order);
                let text = shows(&[&to], &output);
                assert!(!text.is_empty(), "{to}");
                assert!(is_result || output.status.code() == Some(2), "{to}\n{text}");
            }
        }
    }
}

/// The text in quotes, with escapes for characters that are not printable ASCII.
fn serde_json_string(text: &str) -> String {
    let mut units = [0; 2];
    let escaped = text.chars().map(|c| {
        if c.is_ascii_alphanumeric() {
            return c.to_string();
        }
        c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[test]
fn regression_an_error_in_a_trace_shows_the_line_and_nothing_of_the_file() {
    let place = Place::new("hostile_traces");
    let secrets = [
        "root:$6$salt$hash:19000:0:99999:7:::",
        "-5",
        "1 2",
        "0x10",
        "5;6",
        "١٢",
        "1234567890123456789012345678901234567890",
    ];
    place.write("s.toml", &SCENARIO.replacen("\"10mbit\"", "{ trace = \"secret\" }", 1));
    for secret in secrets {
        place.write("secret", &format!("1\n{secret}\n"));
        let output = place.run(&["run", "s.toml"]);
        let text = shows(&["a trace with", secret], &output);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(
            text,
            "narrows: secret:2: not a delivery opportunity; allowed: a whole number of milliseconds on each line, of at most \
             a year\n"
        );
        // Nor do the other formats show anything.
        for start in ["0,1mbit\n", "time,rate\n0,1mbit\n", "1 # 1504\n"] {
            place.write("secret", &format!("{start}{secret},{secret}\n"));
            let output = place.run(&["run", "s.toml"]);
            let text = shows(&["a trace with", secret], &output);
            assert_eq!(output.status.code(), Some(2), "{start}{secret}");
            assert!(text.starts_with("narrows: secret:") && !text.contains(secret), "{start}{secret}: {text}");
        }
    }
    // The message may show a number.
    place.write("secret", "7\n99999999999\n");
    let text = shows(&["a trace"], &place.run(&["run", "s.toml"]));
    assert!(text.starts_with("narrows: secret:2: not a delivery opportunity: 99999999999; allowed: "), "{text}");
}

#[test]
fn regression_a_file_that_is_no_scenario_is_not_shown() {
    let place = Place::new("hostile_files");
    for secret in
        ["root:$6$salt$hash:19000:0:99999:7:::\n", "key = hunter2\n", "[client]\npassword=hunter2\n", "\"hunter2\n"]
    {
        place.write("secret", secret);
        let output = place.run(&["run", "secret"]);
        let text = shows(&["run secret"], &output);
        assert_eq!(output.status.code(), Some(2));
        assert!(text.starts_with("narrows: secret:") && text.contains("not TOML"), "{text}");
        for part in ["root", "salt", "hash", "hunter2", "password", "client"] {
            assert!(!text.contains(part), "{part} is in {text}");
        }
    }
}

/// Random bytes in all places at once, from a fixed stream, so that a failure can be repeated.
#[test]
fn random_bytes_never_reach_the_terminal_as_they_are() {
    let place = Place::new("hostile_bytes");
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..60 {
        let bytes: Vec<u8> =
            (0..1 + next() % 40).map(|_| (next() >> 24) as u8).filter(|&b| b != 0 && b != b'/').collect();
        fs::write(place.path("s.toml"), &bytes).expect("a file for the test");
        shows(&["a file of bytes"], &place.run(&["run", "s.toml"]));
        fs::write(place.path("trace"), &bytes).expect("a file for the test");
        place.write("t.toml", &SCENARIO.replacen("\"10mbit\"", "{ trace = \"trace\" }", 1));
        shows(&["a trace of bytes"], &place.run(&["run", "t.toml"]));
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let word = OsStr::from_bytes(&bytes);
            for before in [&["compare", "--queues"][..], &["run"], &["diff", "trace"], &[]] {
                let output = place.command(before).arg(word).output().expect("the program starts");
                shows(before, &output);
            }
        }
    }
}
