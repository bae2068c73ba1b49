//! Shows a bottleneck while a program runs behind it. On a terminal it shows a line per direction and one of limits at the
//! bottom, with the program's own output above them; otherwise it prints a line per direction and second.
use crate::failure::Failure;
use crate::interrupt;
use crate::term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_core::{Span, Time};
use narrows_host::{Launch, Stream};
use narrows_live::packet_thread::view::{HopView, View};
use narrows_live::shell::Monitor;
use narrows_live::shell::Wish;
use narrows_scenario::printable::{printable, printable_lines};
use std::io::{BufRead, BufReader, IsTerminal, PipeReader};
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

/// The lines at the bottom of the terminal.
pub(crate) struct Screen {
    bars: MultiProgress,
    lines: Option<[ProgressBar; 3]>,
    readers: Mutex<Vec<JoinHandle<()>>>,
}

/// Shows the program's bottleneck, and handles Ctrl-C.
pub(crate) struct Watching<'a> {
    screen: Option<&'a Screen>,
    shown: Option<Time>,
}

/// Intervals at which lines are redrawn on a terminal, and printed otherwise.
const REDRAW: Span = Span::ms(200);
const PRINT: Span = Span::s(1);
/// Number of flows whose limits are shown.
const FLOWS: usize = 3;

impl Screen {
    pub(crate) fn new() -> Screen {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let line = || {
            let bar = bars.add(ProgressBar::new_spinner());
            // Not wider than the terminal, because a wrapped line would push the program's output away. The template is a
            // constant. If it were invalid, a spinner would precede the line.
            if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
                bar.set_style(style);
            }
            bar
        };
        let lines = term::stderr_is_terminal().then(|| [line(), line(), line()]);
        Screen { bars, lines, readers: Mutex::default() }
    }

    /// Routes the program's output to the terminal through here, line by line, so that it stays above the drawn lines.
    pub(crate) fn take_over(&self, launch: &mut Launch) -> Result<(), Failure> {
        if self.lines.is_none() {
            return Ok(());
        }
        if std::io::stdout().is_terminal() && matches!(launch.stdout, Stream::Inherit) {
            launch.stdout = self.reader()?;
        }
        launch.stderr = self.reader()?;
        Ok(())
    }

    fn reader(&self) -> Result<Stream, Failure> {
        let (reader, writer) = std::io::pipe().map_err(Failure::other)?;
        let bars = self.bars.clone();
        let thread = thread::spawn(move || copy_lines(reader, &bars));
        if let Ok(mut readers) = self.readers.lock() {
            readers.push(thread);
        }
        Ok(Stream::Pipe(writer))
    }

    fn show(&self, views: &[View; 2]) {
        let (rates, limits) = ([line("up", &views[0]), line("down", &views[1])], limits(views));
        match &self.lines {
            Some(lines) => {
                // A line at the bottom ends with the terminal's width.
                let texts = rates.into_iter().chain(broken(&limits, usize::MAX)).chain([String::new()]);
                lines.iter().zip(texts).for_each(|(line, text)| line.set_message(printable(&text).into_owned()));
            }
            None => rates.iter().chain(&broken(&limits, COLUMNS)).for_each(|text| term::note(text)),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The program has ended, so its ends of the pipes are closed.
        let readers = self.readers.get_mut().map(std::mem::take).unwrap_or_default();
        readers.into_iter().for_each(|reader| drop(reader.join()));
        if let Some(lines) = &self.lines {
            lines.iter().for_each(ProgressBar::finish_and_clear);
        }
    }
}

impl<'a> Watching<'a> {
    pub(crate) fn new(screen: Option<&'a Screen>) -> Watching<'a> {
        // On a terminal the lines appear at once; otherwise the first ones follow after a second.
        let shown = screen.filter(|screen| screen.lines.is_none()).map(|_| Time::ZERO);
        Watching { screen, shown }
    }
}

impl Monitor for Watching<'_> {
    fn look(&mut self, now: Time, views: [View; 2]) -> Wish {
        if let Some(screen) = self.screen {
            let every = if screen.lines.is_some() { REDRAW } else { PRINT };
            if self.shown.is_none_or(|shown| now.since(shown) >= every) {
                self.shown = Some(now);
                screen.show(&views);
            }
        }
        if !interrupt::requested() {
            Wish::GoOn
        } else if std::io::stdin().is_terminal() {
            // On a terminal Ctrl-C is for the program, which may not end: an interpreter returns to its prompt.
            interrupt::answered();
            Wish::Interrupt
        } else {
            Wish::End
        }
    }
}

fn copy_lines(reader: PipeReader, bars: &MultiProgress) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let text = String::from_utf8_lossy(&line);
        // If a line was overwritten, its last version.
        let text = text.trim_end().rsplit('\r').next().unwrap_or_default();
        // The program's colours stay. Control sequences that move the cursor would damage the lines below.
        let _ = bars.println(printable_lines(&text.replace('\t', "        "), true));
        line.clear();
    }
}

/// `down   18.40 Mbit/s  queue   34 packets     21.3 ms  drops    2 /s  late 0.07 ms`, at most 80 columns.
fn line(name: &str, view: &View) -> String {
    let Some(HopView { latest, .. }) = view.hops.first() else { return format!("{name:<5}–") };
    let sojourn = latest.sojourn_ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.1}"));
    format!(
        "{name:<5}{:>7.2} Mbit/s  queue {:>4} packets {sojourn:>7} ms  drops {:>4.0} /s  late {:.2} ms",
        latest.throughput_mbit,
        latest.queue_packets,
        latest.drops_per_s,
        view.late.as_ms_f64()
    )
}

/// The limits of flows' buffers, for disciplines that have one per flow.
fn limits(views: &[View; 2]) -> Vec<String> {
    let of = |view: &View| -> Vec<String> {
        let gauges = view.hops.first().map(|hop| hop.gauges.as_slice()).unwrap_or_default();
        let mut limits: Vec<_> = gauges.iter().filter(|gauge| gauge.1 == "limit_packets").collect();
        limits.sort_by(|a, b| b.2.total_cmp(&a.2));
        let shown = limits.into_iter().take(FLOWS).filter_map(|&(flow, _, limit)| {
            let key = flow.and_then(|flow| view.flows.get(flow.0 as usize))?;
            Some(format!("{key}: {limit:.0} packets"))
        });
        shown.collect()
    };
    views.iter().flat_map(of).collect()
}

/// `limits  A   B`, in lines of at most `width` columns; a longer limit has a line of its own.
fn broken(limits: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for limit in limits {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + limit.chars().count() <= width => {
                line.push_str("   ");
                line.push_str(limit);
            }
            _ => lines.push(format!("limits  {limit}")),
        }
    }
    lines
}

/// Columns of a line.
const COLUMNS: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_fit_their_lines() {
        let limit = |n: usize| "x".repeat(n);
        let lengths = |limits: &[String]| broken(limits, COLUMNS).iter().map(String::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[limit(30), limit(39)]), [80]);
        assert_eq!(lengths(&[limit(30), limit(40), limit(9)]), [38, 60]);
        assert_eq!(lengths(&[limit(90), limit(1)]), [98, 9], "none is left out");
        assert_eq!(broken(&[limit(90), limit(90)], usize::MAX).len(), 1);
        assert!(broken(&[], COLUMNS).is_empty());
    }
}
