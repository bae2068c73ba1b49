//! The plug-ins for `tc`, without `tc`: what they make of words, and how they show what the kernel reports.
//!
//! They need a C compiler as the plug-ins do.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A plug-in for each module, and one of Linux's own.
fn plugins() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/module");
    let files = std::fs::read_dir(folder).expect("the modules' sources").flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let ours = names.filter_map(|name| Some(name.strip_prefix("sch_narrows_")?.strip_suffix(".c")?.to_owned()));
    let mut plugins: Vec<String> = ours.chain(["dualpi2".to_owned()]).collect();
    plugins.sort_unstable();
    plugins
}

/// Compiles a plug-in together with what stands in for `tc`.
fn program(plugin: &str, test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("c");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("plugin-{plugin}-{test}"));
    let mut command = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]);
    command.args(["-fsanitize=undefined", "-fno-sanitize-recover"]).arg(format!("-DNW_PLUGIN_{plugin}"));
    command.arg("-I").arg(folder.join("include")).arg(folder.join("test/plugin.c")).arg("-o").arg(&made).arg("-lm");
    let output = command.output().expect("a C compiler, `cc`, compiles the plug-ins");
    assert!(output.status.success(), "{plugin}: {}", String::from_utf8_lossy(&output.stderr));
    made
}

fn run(program: &Path, words: &str) -> Output {
    Command::new(program).args(words.split_whitespace()).output().expect("it was compiled for this machine")
}

fn shown(program: &Path, words: &str) -> String {
    let output = run(program, words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("ASCII")
}

fn refusal(program: &Path, words: &str) -> String {
    let output = run(program, &format!("options {words}"));
    assert!(!output.status.success(), "{words} is accepted: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned()
}

/// Attributes as `number:bytes=value`. Numbers, lengths and units are those of the kernel's `dualpi2_policy`.
#[test]
fn every_option_of_dualpi2_is_an_attribute() {
    let program = program("dualpi2", "options");
    let words = "limit 100 memlimit 1MB coupling_factor 3 step_thresh 500us min_qlen_step 4 overflow drop_enqueue any_ect \
                 classic_protection 25% target 5ms tupdate 20ms alpha 0.16 beta 3.2 no_split_gso";
    assert_eq!(
        shown(&program, &format!("options {words}")),
        "1:4=100 2:4=1000000 10:1=3 8:4=500 9:4=4 11:1=0 12:1=1 14:1=3 13:1=25 3:4=5000 4:4=20000 5:4=41 6:4=819 15:1=0 \n\
         limit 100p memlimit 1000000B coupling_factor 3 step_thresh 500us min_qlen_step 4p overflow drop_enqueue any_ect \
         classic_protection 25% target 5ms tupdate 20ms alpha 0.160156 beta 3.19922 no_split_gso \n"
    );
    assert_eq!(shown(&program, "options step_thresh 5p"), "7:4=5 \nstep_thresh 5p \n");
    assert_eq!(
        shown(&program, "options drop_on_overload drop_dequeue l4s_ect split_gso"),
        "11:1=1 12:1=0 14:1=1 15:1=1 \ndrop_on_overload drop_dequeue l4s_ect split_gso \n"
    );
}

#[test]
fn dualpi2_shows_its_numbers_of_32_bits() {
    let program = program("dualpi2", "statistics");
    // The first number is a probability, and 1 is a very small one: not the mark of a flow's statistics.
    for (probability, part) in [("0x80000000", "0.5"), ("1", "2.32831e-10")] {
        let numbers = format!("statistics {probability} 12000 1500 7 8 9 10 4 -3000 2304 4608 9216");
        assert_eq!(
            shown(&program, &numbers),
            format!(
                "  prob {part} delay_c 12.000ms delay_l 1.500ms \n  pkts_in_c 7 pkts_in_l 8 maxq 9 \n  \
                 ecn_mark 10 step_mark 4 credit -3000 \n  memory_used 2304 max_memory_used 4608 memory_limit 9216 \n"
            )
        );
    }
}

#[test]
fn bad_values_are_refused_by_name() {
    let program = program("dualpi2", "refusals");
    for (words, message) in [
        ("step_thresh 5x", "dualpi2: step_thresh takes a time or packets, such as 1ms or 5p, not \"5x\""),
        ("step_thresh 5", "dualpi2: step_thresh takes a time or packets, such as 1ms or 5p, not \"5\""),
        ("classic_protection 101", "dualpi2: classic_protection takes a number of percent, up to 100, not \"101\""),
        ("coupling_factor 256", "dualpi2: coupling_factor takes a whole number up to 255, not \"256\""),
        ("coupling_factor -1", "dualpi2: coupling_factor takes a whole number up to 255, not \"-1\""),
        ("target", "dualpi2: target takes a time in whole microseconds such as 5ms, 1.5s, 200us, not \"\""),
        ("target 5000s", "dualpi2: target takes a time in whole microseconds such as 5ms, 1.5s, 200us, not \"5000s\""),
        ("step_thresh 500ns", "dualpi2: step_thresh takes a time or packets, such as 1ms or 5p, not \"500ns\""),
        (
            "tupdate 1500ns",
            "dualpi2: tupdate takes a time in whole microseconds such as 5ms, 1.5s, 200us, not \"1500ns\"",
        ),
        ("alpha 1e9", "dualpi2: alpha takes a number such as 1.25, not \"1e9\""),
        ("alpha nan", "dualpi2: alpha takes a number such as 1.25, not \"nan\""),
        ("overflow 1", "dualpi2: there is no option \"1\""),
        ("memlimit 8GB", "dualpi2: memlimit takes a size below 4GiB such as 1500B, 64KB, 32MiB, not \"8GB\""),
        ("limit 4294967296", "dualpi2: limit takes a number of packets such as 100p, not \"4294967296\""),
    ] {
        assert_eq!(refusal(&program, words), message, "{words}");
    }
    assert!(refusal(&program, "help").starts_with("Usage: ... dualpi2 [ limit VALUE ]"));
    for (plugin, words, message) in [
        ("lfq", "policy tre", "lfq: policy takes tree or rule, not \"tre\""),
        ("cocoa", "growth whole,exact", "cocoa: growth takes exact or whole, not \"whole,exact\""),
        ("cp", "rate fast", "cp: rate takes auto or a rate such as 20mbit, 1gbit, 256kbit, not \"fast\""),
    ] {
        assert_eq!(refusal(&self::program(plugin, "words"), words), message);
    }
}

#[test]
fn words_stand_for_their_places() {
    let program = program("lfq", "places");
    assert_eq!(shown(&program, "options policy rule every 5"), "7:4=1 8:4=5 \npolicy rule every 5p \n");
    assert_eq!(shown(&program, "options policy tree"), "7:4=0 \npolicy tree \n");
}

#[test]
fn dkms_installs_every_module() {
    let conf = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/dkms.conf");
    let script = format!(". {}; echo ${{BUILT_MODULE_NAME[@]}}", conf.display());
    let Ok(output) = Command::new("bash").args(["-c", &script]).output() else { return println!("skipped: no bash") };
    let names = String::from_utf8(output.stdout).expect("ASCII");
    let mut names: Vec<&str> = names.split_whitespace().filter_map(|name| name.strip_prefix("sch_narrows_")).collect();
    names.push("dualpi2");
    names.sort_unstable();
    assert_eq!(names, plugins());
}

/// The lab's words for each queue's defaults are in a table of its tests.
#[test]
fn plugins_understand_what_the_lab_says() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/tests/expected/queue.txt");
    let table = std::fs::read_to_string(table).expect("the table is there");
    for plugin in &plugins() {
        let words = table.lines().find_map(|line| line.strip_prefix(&format!("{plugin}: {plugin} ")));
        let words = words.unwrap_or_else(|| panic!("the table has no {plugin}"));
        let program = program(plugin, "lab");
        let told = |words: &str| {
            let shown = shown(&program, &format!("options {words}"));
            let (attributes, words) = shown.split_once('\n').expect("attributes, then words");
            let mut attributes: Vec<String> = attributes.split_whitespace().map(str::to_owned).collect();
            attributes.sort_unstable();
            (attributes, words.to_owned())
        };
        let first = told(words);
        assert!(!first.0.is_empty());
        assert_eq!(told(&first.1), first, "{plugin}: what it shows is not what it takes");
    }
}
