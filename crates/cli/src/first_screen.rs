//! What `narrows` and `narrows --help` print: what the program is for, where to start, and the commands in groups.
//!
//! A command's line is its own description; only its group is declared here.
use clap::Command;
use clap::builder::StyledStr;
use std::fmt::Write as _;

/// The commands by what they are for, in the order in which a newcomer meets them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Run", &["compare", "run", "play", "sweep"]),
    ("Compare and judge", &["diff", "check", "plot", "advise", "testbed", "reproduce"]),
    ("Real traffic", &["shell", "probe", "qdisc"]),
    ("Tools", &["list", "trace", "schema", "lab", "new", "completions", "man", "help"]),
];

/// The commands to try first.
const START: &str = "  narrows compare              a download beside a call, behind six queues
  narrows run SCENARIO.toml    a network that you describe in a file
  narrows shell -- PROGRAM     your program behind a bottleneck
";

/// The program with this screen as its help.
pub(crate) fn with_groups(mut command: Command) -> Command {
    // Adds the command `help`, which clap makes itself.
    command.build();
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> StyledStr {
    let header = command.get_styles().get_header();
    let mut text = StyledStr::new();
    let mut line = |title: &str, body: &str| {
        let _ = write!(text, "{header}{title}:{header:#}\n{body}\n");
    };
    line("Start here", START);
    for (title, names) in GROUPS {
        line(title, &names.iter().map(|name| described(command, name)).collect::<String>());
    }
    let rest = text.ansi().to_string();
    StyledStr::from(format!(
        "{{about-with-newline}}\n{{usage-heading}} narrows COMMAND [OPTIONS]\n\n{rest}{header}Options:{header:#}\n{{options}}\n\n\
         `narrows COMMAND --help` has a command's options and examples.\n"
    ))
}

/// `  compare      Compare queues on a bottleneck: …`.
fn described(command: &Command, name: &str) -> String {
    let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string).unwrap_or_default();
    format!("  {name:<11}  {about}\n")
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, with_groups};
    use crate::Cli;
    use clap::{CommandFactory as _, Parser as _};
    use std::collections::BTreeSet;

    fn help(columns: usize) -> String {
        with_groups(Cli::command()).term_width(columns).render_help().to_string()
    }

    #[test]
    fn each_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = with_groups(Cli::command());
        let known: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(grouped.len(), known.len());
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), known);
    }

    #[test]
    fn the_first_screen_fits_a_terminal() {
        let help = help(80);
        assert!(help.lines().count() <= 50, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }

    /// The lines of a help that are commands to type.
    fn examples(help: &str) -> impl Iterator<Item = &str> {
        help.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| line.starts_with("narrows ")))
    }

    #[test]
    fn each_command_has_an_example_that_it_takes() {
        for command in Cli::command().get_subcommands_mut() {
            let name = command.get_name().to_owned();
            let help = command.clone().term_width(200).render_help().to_string();
            let mut found = examples(&help).peekable();
            assert!(found.peek().is_some(), "{name} has no example:\n{help}");
            for example in found {
                let words = shlex::split(example).expect("words of a shell");
                let typed = words.iter().take_while(|word| !["|", ">"].contains(&word.as_str()));
                let parsed = Cli::try_parse_from(typed);
                assert!(parsed.is_ok(), "{example}: {}", parsed.err().map_or_else(String::new, |e| e.to_string()));
            }
        }
    }
}
