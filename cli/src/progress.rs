//! The progress line: on a terminal only, from the engine's live board.

use balar_actors::engine::LiveBoard;
use balar_protocol::SimTime;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at the board.
const PERIOD: Duration = Duration::from_millis(100);

/// A line on stderr that shows how far a run is. It goes when it is dropped.
#[derive(Debug)]
pub struct Progress {
    display: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows `board` until the end of its life, where stderr is a terminal and the user has not asked for quiet.
    pub fn show(board: &LiveBoard, quiet: bool) -> Progress {
        if quiet || !io::stderr().is_terminal() {
            return Progress { display: None };
        }
        let board = board.clone();
        let (end, ended) = mpsc::channel();
        let display = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            let bar = ProgressBar::new(0).with_style(style(false));
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
                let state = State::of(&board);
                if bar.length() != state.ctas.map(|(_, total)| total) {
                    bar.set_style(style(state.ctas.is_some()));
                    bar.set_length(state.ctas.map_or(0, |(_, total)| total));
                }
                bar.set_position(state.ctas.map_or(0, |(done, _)| done));
                bar.set_message(state.text(bar.elapsed()));
            }
            bar.finish_and_clear();
        });
        // A run without progress is better than none.
        Progress { display: display.ok().map(|thread| (end, thread)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.display.take() {
            drop(end);
            // It has nothing to give back; where it panicked, its hook has said so.
            let _ = thread.join();
        }
    }
}

fn style(with_bar: bool) -> ProgressStyle {
    let template = if with_bar { "{spinner} [{bar:24}] {pos}/{len} CTAs, {wide_msg}" } else { "{spinner} {wide_msg}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

/// What the board says at one moment.
#[derive(Debug, PartialEq, Eq)]
struct State {
    time: SimTime,
    messages: u64,
    kernel: Option<String>,
    ctas: Option<(u64, u64)>,
}

impl State {
    /// Reads the gauges `<scheduler>.ctas_done` and `<scheduler>.ctas_total` and the text `<scheduler>.kernel` of every
    /// scheduler that shows them.
    fn of(board: &LiveBoard) -> State {
        let gauges = board.values();
        let sum = |suffix: &str| {
            gauges.iter().filter(|(name, _)| name.ends_with(suffix)).map(|(_, value)| *value).reduce(|a, b| a + b)
        };
        let schedulers = gauges.iter().filter_map(|(name, _)| name.strip_suffix(".ctas_total"));
        let kernels: Vec<String> = schedulers.filter_map(|path| board.text(&format!("{path}.kernel"))).collect();
        State {
            time: board.time(),
            messages: board.messages(),
            kernel: (!kernels.is_empty()).then(|| kernels.join(", ")),
            ctas: sum(".ctas_done").zip(sum(".ctas_total")).filter(|(_, total)| *total > 0),
        }
    }

    fn text(&self, elapsed: Duration) -> String {
        let simulated = self.time.picoseconds() as f64 / 1e6;
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let rates = format!(
            "{simulated:.1} us, {:.1} us/s, {:.0} messages/s",
            simulated / seconds,
            self.messages as f64 / seconds
        );
        match &self.kernel {
            Some(kernel) => format!("{kernel}, {rates}"),
            None => rates,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_is_put_in_words() {
        let board = LiveBoard::default();
        assert_eq!(State::of(&board).ctas, None);
        board.gauge("gpu.scheduler.ctas_done").set(3);
        board.gauge("gpu.scheduler.ctas_total").set(8);
        board.gauge("gpu2.scheduler.ctas_done").set(1);
        board.gauge("gpu2.scheduler.ctas_total").set(2);
        board.set_text("gpu.scheduler.kernel", "lud_internal");
        let state = State::of(&board);
        assert_eq!(state.ctas, Some((4, 10)));
        assert_eq!(state.text(Duration::from_secs(2)), "lud_internal, 0.0 us, 0.0 us/s, 0 messages/s");
    }

    #[test]
    fn nothing_is_shown_without_a_terminal() {
        assert!(Progress::show(&LiveBoard::default(), true).display.is_none());
    }
}
