//! Terminal output: plain text on stdout, notes on stderr, colour only on a terminal.
//!
//! All output goes through these functions. They remove control characters, whatever the source of the text: names in a scenario,
//! a path, a result to compare. Only line breaks and colours of this program remain.
use crate::failure::Failure;
use narrows_report::markup::Markup;
use narrows_report::terminal::Style;
use narrows_scenario::printable::{printable, printable_json, printable_lines};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(&printable_lines(text, Paint::stdout().on))
}

/// Prints a value as indented JSON and a newline to stdout.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::other)?;
    print_json_text(&format!("{text}\n"))
}

/// Prints a JSON text to stdout.
pub(crate) fn print_json_text(text: &str) -> Result<(), Failure> {
    write(&printable_json(text))
}

fn write(text: &str) -> Result<(), Failure> {
    print_verbatim(text.as_bytes())
}

/// Prints bytes that this program has made without any text from outside.
pub(crate) fn print_verbatim(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| Failure::print(&error))
}

/// Whether remarks and progress are left out, as `--quiet` says.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From this call on stderr has errors only.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether remarks and progress are left out.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a remark to stderr, unless the command is quiet.
pub(crate) fn note(line: &str) {
    if !is_quiet() {
        complain(line);
    }
}

/// Prints a line to stderr. A closed stderr is not an error.
fn complain(line: &str) {
    let line = printable(line);
    // The test harness captures only the output of its own macros.
    #[cfg(test)]
    eprintln!("{line}");
    #[cfg(not(test))]
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints a text of several lines to stderr, in the colours that [`style`] gives.
pub(crate) fn note_lines(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable_lines(text, Paint::stdout().on));
}

/// Prints the failure on stderr and returns the exit code.
pub(crate) fn report(failure: &Failure) -> ExitCode {
    let message = failure.message();
    if !message.is_empty() {
        let text = format!("narrows: {message}");
        match failure {
            Failure::Incomparable(_) | Failure::NotMet(_) | Failure::Program { .. } | Failure::Unfinished { .. } => {
                note_lines(&text)
            }
            _ => complain(&text),
        }
    }
    ExitCode::from(failure.code())
}

/// The command line of this process, quoted for a shell.
pub(crate) fn command_line() -> String {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    // Only a NUL cannot be quoted, and no argument contains one.
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// Prints to stdout in place of what was printed there before; below it where stdout is no terminal.
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub(crate) fn redraw(text: &str) -> Result<(), Failure> {
    let shown = printable_lines(text, Paint::stdout().on);
    // To the upper left corner, and everything wiped.
    if std::io::stdout().is_terminal() && !dumb() { write(&format!("\x1b[H\x1b[2J{shown}")) } else { write(&shown) }
}

/// Erases the line of a progress bar.
pub(crate) fn clear_line() {
    if stderr_is_terminal() {
        let _ = write!(std::io::stderr().lock(), "\r\x1b[2K");
    }
}

/// Whether stderr shows a progress bar.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal() && !dumb()
}

fn dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// The style of the report's tables on stdout.
pub(crate) fn style() -> Style {
    match *MARKUP.get_or_init(Markup::default) {
        Markup::Text => Style { width: width(), colour: Paint::stdout().on, markup: Markup::Text },
        markup => Style { markup, ..Style::default() },
    }
}

/// Sets for the rest of the process whether lines may have any length.
pub(crate) fn set_wide(wide: bool) {
    WIDE.store(wide, Ordering::Relaxed);
}

/// Maximum width of a line on stdout, columns: that of the terminal, or 80 elsewhere; `None` if lines may have any length.
pub(crate) fn width() -> Option<usize> {
    let size = terminal_size::terminal_size_of(std::io::stdout());
    let columns = size.map_or(COLUMNS, |(terminal_size::Width(columns), _)| usize::from(columns));
    (!WIDE.load(Ordering::Relaxed)).then_some(columns)
}

/// Whether the flag `--wide` was given.
/// Prints tables in this form.
pub(crate) fn set_markup(markup: Markup) {
    // Only the program's start sets it.
    let _ = MARKUP.set(markup);
}

static MARKUP: OnceLock<Markup> = OnceLock::new();
static WIDE: AtomicBool = AtomicBool::new(false);
/// Columns of a page or file: those of a terminal since the VT05.
const COLUMNS: usize = 80;

/// Adds colours to text, or none.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For stdout: on for a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
    pub(crate) fn stdout() -> Paint {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Paint { on: std::io::stdout().is_terminal() && !refused && !dumb() }
    }

    /// Without colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Paint {
        Paint { on: false }
    }

    /// A heading.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(anstyle::Style::new().bold(), text)
    }

    /// Something secondary.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint(anstyle::Style::new().dimmed(), text)
    }

    /// A value as it should be.
    pub(crate) fn good(self, text: &str) -> String {
        self.paint(anstyle::AnsiColor::Green.on_default(), text)
    }

    /// A value that is not as it should be.
    pub(crate) fn bad(self, text: &str) -> String {
        self.paint(anstyle::AnsiColor::Red.on_default().bold(), text)
    }

    fn paint(self, style: anstyle::Style, text: &str) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}
