//! Help, manual pages, completions, `--quiet`, and scenarios from standard input.
use crate::support::{Place, json, text};
use std::io::Write as _;
use std::process::{Output, Stdio};

const SCENARIO: &str = "name = \"piped\"\nduration = \"1s\"\n[[hop]]\nname = \"link\"\nrate = \"10mbit\"\nqueue = \"fifo\"\n\
                        [[flow]]\nname = \"bulk\"\nrtt = \"20ms\"\nroute = [\"link\"]\n";

/// Runs a command with this text as its standard input.
fn piped(place: &Place, args: &[&str], input: &str) -> Output {
    let mut command = place.command(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

/// The commands, from the program's own help.
fn commands(place: &Place) -> Vec<String> {
    let help = place.ok(&["help"]);
    // Between the commands to start with and the options are the groups: a title, then a line for each command.
    let listed = help.split("\nRun:\n").nth(1).and_then(|rest| rest.split("\nOptions:\n").next()).expect("commands");
    let names = listed.lines().filter_map(|line| line.strip_prefix("  "));
    names.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

#[test]
fn every_command_has_help_a_page_and_completions() {
    let place = Place::new("manual");
    let names = commands(&place);
    assert!(names.len() > 12 && names.contains(&"trace".to_owned()), "{names:?}");
    place.ok(&["man", "--out", "man"]);
    let bash = place.ok(&["completions", "bash"]);
    for name in names.iter().filter(|name| *name != "help") {
        assert_eq!(place.ok(&["help", name]), place.ok(&[name, "--help"]), "{name}");
        let page = std::fs::read_to_string(place.path(&format!("man/narrows-{name}.1"))).expect("a page");
        assert!(page.contains(".SH NAME") && page.contains(&format!("narrows\\-{name}")), "{name}: {page}");
        assert!(
            bash.contains(&format!("narrows__subcmd__{name}")) || bash.contains(&format!("narrows__{name}")),
            "{name}"
        );
    }
    assert_eq!(
        place.ok(&["man", "trace", "make"]),
        std::fs::read_to_string(place.path("man/narrows-trace-make.1")).expect("a page")
    );
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(place.ok(&["completions", shell]).contains("keep-series"), "{shell}");
    }
    // A folder that has something is left alone.
    let again = place.run(&["man", "--out", "man"]);
    assert_eq!((again.status.code(), text(&again.stderr).contains("is not empty")), (Some(2), true));
    let unknown = place.run(&["man", "rum"]);
    assert!(text(&unknown.stderr).contains("narrows has no command \"rum\"; allowed: compare, run, "), "{unknown:?}");
}

#[cfg(unix)]
#[test]
fn bash_reads_its_completions() {
    let place = Place::new("completions");
    place.write("c.bash", &place.ok(&["completions", "bash"]));
    let bash = std::process::Command::new("bash").arg("-n").arg(place.path("c.bash")).output();
    // Without bash there is nothing to check.
    let Ok(output) = bash else { return eprintln!("skipped: this machine has no bash") };
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_scenario_may_come_from_standard_input() {
    let place = Place::new("stdin");
    place.write("piped.toml", SCENARIO);
    let of_file = json(&place.ok(&["run", "piped.toml", "--json"]));
    let output = piped(&place, &["run", "-", "--json"], SCENARIO);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut of_pipe = json(&text(&output.stdout));
    of_pipe["cost"] = of_file["cost"].clone();
    assert_eq!(of_pipe, of_file);
    let output = piped(&place, &["check", "-", "--expect", "bulk.goodput >= 1mbit"], SCENARIO);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = piped(&place, &["sweep", "-", "--set", "hop.rate=5mbit,10mbit", "--dry-run"], SCENARIO);
    assert_eq!(text(&output.stdout), "2 runs: 2 combinations × 1\n", "{}", text(&output.stderr));
    let output = piped(&place, &["run", "-"], &SCENARIO.replace("queue", "qeue"));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("narrows: stdin:6: unknown key \"qeue\""), "{}", text(&output.stderr));
}

#[test]
fn quiet_leaves_errors_only() {
    let place = Place::new("quiet");
    place.write("s.toml", SCENARIO);
    let stderr = |args: &[&str]| text(&place.run(args).stderr);
    assert!(stderr(&["run", "s.toml"]).contains("1/1 piped seed 1"));
    assert_eq!(stderr(&["run", "s.toml", "--quiet"]), "");
    assert_eq!(stderr(&["-q", "run", "s.toml"]), "");
    assert!(stderr(&["-q", "run", "none.toml"]).starts_with("narrows: none.toml: cannot read the scenario"));
    // The answer stays.
    assert_eq!(
        place.ok(&["run", "s.toml", "-q", "--out", "a"]).lines().next(),
        place.ok(&["run", "s.toml", "--out", "b"]).lines().next()
    );
}
