//! Progress on stderr: a bar on a terminal, otherwise a line per finished run, or nothing if the command is quiet.
use crate::{interrupt, memory, term};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_core::Span;
use narrows_runner::{Fit, Monitor};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The progress of a set of runs, shared by the threads that make them.
pub(crate) struct Progress {
    bar: ProgressBar,
    lines: bool,
    quiet: bool,
    runs: usize,
    finished: AtomicUsize,
}

/// Below this speed none is shown: a run in real time is as fast as its link.
const SLOW: f64 = 5e4;

impl Progress {
    /// For `runs` runs with `total` simulated time in all. With `quiet` no lines are printed. A bar is drawn nevertheless,
    /// because it appears only on a terminal and is removed at the end.
    pub(crate) fn new(runs: usize, total: Span, quiet: bool) -> Progress {
        let terminal = term::stderr_is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total.as_ns().max(1)), target);
        // The template is a constant. If it were invalid, the bar would have the default style.
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}  {eta} left") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let progress = Progress { bar, lines: !terminal && !quiet, quiet, runs, finished: AtomicUsize::new(0) };
        progress.bar.set_message(progress.count(0));
        progress
    }

    fn count(&self, finished: usize) -> String {
        format!("{finished}/{}", self.runs)
    }
}

impl Monitor for Progress {
    fn begin(&self, fit: Fit) {
        memory::note(fit).filter(|_| !self.quiet).iter().for_each(|line| term::note(line));
    }

    fn advance(&self, span: Span) {
        self.bar.inc(span.as_ns());
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
