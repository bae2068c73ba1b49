//! Progress on stderr: a bar on a terminal, otherwise a line per finished run and every half minute, or nothing if the command is
//! quiet.
use crate::{interrupt, memory, term};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_core::Span;
use narrows_runner::{Fit, Monitor};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The progress of a set of runs, shared by the threads that make them.
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: bool,
    quiet: bool,
    runs: usize,
    finished: AtomicUsize,
    /// When the next line is due, in seconds since the start.
    due: AtomicU64,
}

/// Below this speed none is shown: a run in real time is as fast as its link.
const SLOW: f64 = 5e4;
/// Seconds between the lines of runs that have not finished.
const EVERY_S: u64 = 30;

impl Progress {
    /// For `runs` runs with `total` simulated time in all. With `quiet` no lines are printed. A bar is drawn nevertheless,
    /// because it appears only on a terminal and is removed at the end.
    pub(crate) fn new(runs: usize, total: Span, quiet: bool) -> Progress {
        let (terminal, silent) = (term::stderr_is_terminal(), term::is_quiet());
        let target = if terminal && !silent { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total.as_ns().max(1)), target);
        // The template is a constant. If it were invalid, the bar would have the default style.
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}  {eta} left") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let progress = Progress {
            bar,
            lines: !terminal && !quiet,
            quiet,
            runs,
            finished: AtomicUsize::new(0),
            due: AtomicU64::new(EVERY_S),
        };
        progress.bar.set_message(progress.count(0));
        progress
    }

    fn count(&self, finished: usize) -> String {
        format!("{finished}/{}", self.runs)
    }

    /// A line for logs, if one is due.
    fn line(&self) {
        let elapsed = self.bar.elapsed().as_secs();
        let due = self.due.load(Ordering::Relaxed);
        // One of the threads prints it.
        let ours =
            |due| self.due.compare_exchange(due, elapsed + EVERY_S, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if elapsed < due || !ours(due) {
            return;
        }
        let done = self.bar.position() as f64 / self.bar.length().unwrap_or(1).max(1) as f64;
        term::note(&line(&self.count(self.finished.load(Ordering::Relaxed)), done, elapsed));
    }
}

/// A line of progress: the finished runs, the part of the work that is done, the seconds passed, and an estimate of those left.
fn line(finished: &str, done: f64, elapsed: u64) -> String {
    let left = if done > 0.0 {
        format!(", about {:.0} s left", elapsed as f64 * (1.0 - done).max(0.0) / done)
    } else {
        String::new()
    };
    format!("{finished} finished, {:.0} % after {elapsed} s{left}", 100.0 * done)
}

impl Monitor for Progress {
    fn begin(&self, fit: Fit) {
        memory::note(fit).filter(|_| !self.quiet).iter().for_each(|line| term::note(line));
    }

    fn advance(&self, span: Span) {
        self.bar.inc(span.as_ns());
        if self.lines {
            self.line();
        }
    }

    fn finish(&self, label: &str, wall: Duration, packets_per_s: f64) {
        let finished = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        self.bar.set_message(self.count(finished));
        if self.lines {
            let speed =
                if packets_per_s < SLOW { String::new() } else { format!(", {:.1} M packets/s", packets_per_s / 1e6) };
            term::note(&format!("{} {label}: {:.2} s{speed}", self.count(finished), wall.as_secs_f64()));
        }
    }

    fn is_cancelled(&self) -> bool {
        interrupt::requested()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_the_runs_are() {
        assert_eq!(line("1/4", 0.4, 30), "1/4 finished, 40 % after 30 s, about 45 s left");
        assert_eq!(line("0/4", 0.0, 30), "0/4 finished, 0 % after 30 s");
    }
}
