//! How far a sweep is, on a terminal.

use balar_sweeps::worker::Progress;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A bar for all points.
pub struct SweepBar {
    bar: ProgressBar,
    /// Has a point been run? Those that were finished before say nothing of how long points take.
    has_run: Arc<AtomicBool>,
}

impl SweepBar {
    /// A bar on stderr, if that is a terminal and the user has not asked for quiet.
    pub fn show(points: usize, quiet: bool) -> SweepBar {
        let has_run = Arc::new(AtomicBool::new(false));
        if quiet || !io::stderr().is_terminal() {
            return SweepBar { bar: ProgressBar::hidden(), has_run };
        }
        let known = Arc::clone(&has_run);
        let left = move |state: &ProgressState, text: &mut dyn Write| {
            if known.load(Ordering::Relaxed) {
                // A text in memory takes every letter.
                let _ = write!(text, ", about {} left", HumanDuration(state.eta()));
            }
        };
        let style = ProgressStyle::with_template("{spinner} [{bar:24}] {pos}/{len} points, {msg}{elapsed}{left}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
        let bar = ProgressBar::new(points as u64).with_style(style.with_key("left", left));
        // Points take up to hours: the time goes on between them.
        bar.enable_steady_tick(Duration::from_millis(250));
        SweepBar { bar, has_run }
    }

    /// Shows how far the sweep is.
    pub fn update(&self, progress: Progress) {
        let Progress { finished, found, failed, running } = progress;
        self.bar.set_position(finished as u64);
        if finished > found {
            self.has_run.store(true, Ordering::Relaxed);
        } else {
            self.bar.reset_eta();
        }
        let failed = if failed > 0 { format!("{failed} failed, ") } else { String::new() };
        self.bar.set_message(format!("{running} running, {failed}"));
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
