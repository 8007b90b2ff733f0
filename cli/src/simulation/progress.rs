//! The progress line: on a terminal only, from the engine's live board.

use balar_actors::engine::LiveBoard;
use balar_experiments::PLANNED_CTAS;
use balar_protocol::SimTime;
use balar_record::kernel_name::short_name;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks at the board.
const PERIOD: Duration = Duration::from_millis(100);

/// A line on stderr that shows the progress of a run. It disappears when this is dropped.
#[derive(Debug)]
pub struct Progress {
    display: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows `board` until this is dropped, if stderr is a terminal and the user has not asked for quiet.
    pub fn show(board: &LiveBoard, quiet: bool) -> Progress {
        if quiet || !io::stderr().is_terminal() {
            return Progress { display: None };
        }
        let board = board.clone();
        let (end, ended) = mpsc::channel();
        let display = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            let bar = ProgressBar::new(0).with_style(style(false));
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
                let state = BoardContents::of(&board);
                if let Some(planned) = state.planned.filter(|planned| bar.length() != Some(*planned)) {
                    bar.set_style(style(true));
                    bar.set_length(planned);
                }
                bar.set_position(state.done);
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
            // The thread returns nothing, and the panic hook reports a panic.
            let _ = thread.join();
        }
    }
}

fn style(with_bar: bool) -> ProgressStyle {
    let template =
        if with_bar { "{spinner} [{bar:24}] {pos}/{len} CTAs, {wide_msg}" } else { "{spinner} {pos} CTAs, {wide_msg}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

/// The contents of the board at one moment.
#[derive(Debug, PartialEq, Eq)]
struct BoardContents {
    time: SimTime,
    messages: u64,
    kernel: Option<String>,
    /// CTAs that have ended.
    done: u64,
    /// CTAs of all launches, if known: built-in workloads know them in advance, programs do not.
    planned: Option<u64>,
}

impl BoardContents {
    /// Reads the gauge `<scheduler>.ctas_done` and the text `<scheduler>.kernel` of every scheduler that shows them, and the plan of a
    /// built-in workload.
    fn of(board: &LiveBoard) -> BoardContents {
        let gauges = board.values();
        let schedulers = || gauges.iter().filter_map(|(name, value)| Some((name.strip_suffix(".ctas_done")?, *value)));
        let kernels = schedulers().filter_map(|(path, _)| board.text(&format!("{path}.kernel")));
        let kernels: Vec<String> = kernels.map(|name| short_name(&name)).collect();
        BoardContents {
            time: board.time(),
            messages: board.messages(),
            kernel: (!kernels.is_empty()).then(|| kernels.join(", ")),
            done: schedulers().map(|(_, done)| done).sum(),
            planned: board.value(PLANNED_CTAS).filter(|planned| *planned > 0),
        }
    }

    /// An estimate of the remaining real time: the remaining CTAs take as long as those that have ended.
    fn left(&self, elapsed: Duration) -> Option<Duration> {
        let to_come = self.planned?.checked_sub(self.done)?;
        (self.done > 0).then(|| elapsed.mul_f64(to_come as f64 / self.done as f64))
    }

    fn text(&self, elapsed: Duration) -> String {
        let simulated = self.time.picoseconds() as f64 / 1e6;
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let rates = format!(
            "{simulated:.1} us, {:.1} us/s, {:.0} messages/s",
            simulated / seconds,
            self.messages as f64 / seconds
        );
        let left = self.left(elapsed).map(|left| format!("about {} left", HumanDuration(left)));
        let parts = left.into_iter().chain(self.kernel.clone()).chain([rates]);
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_is_put_in_words() {
        let board = LiveBoard::default();
        assert_eq!(BoardContents::of(&board).done, 0);
        board.gauge("gpu.scheduler.ctas_done").set(3);
        board.gauge("gpu2.scheduler.ctas_done").set(1);
        board.set_text("gpu.scheduler.kernel", "_Z5scaleIfEvPT_i");
        let state = BoardContents::of(&board);
        assert_eq!((state.done, state.planned), (4, None));
        assert_eq!(state.text(Duration::from_secs(2)), "scale<float>, 0.0 us, 0.0 us/s, 0 messages/s");
    }

    #[test]
    fn what_is_left_is_estimated_where_the_total_is_known() {
        let board = LiveBoard::default();
        board.gauge(PLANNED_CTAS).set(10);
        assert_eq!(BoardContents::of(&board).left(Duration::from_secs(8)), None, "nothing is known of a CTA yet");
        board.gauge("gpu.scheduler.ctas_done").set(4);
        // Four took 8 s, so the other six take 12 s.
        assert_eq!(BoardContents::of(&board).left(Duration::from_secs(8)), Some(Duration::from_secs(12)));
        let text = BoardContents::of(&board).text(Duration::from_secs(8));
        assert!(text.starts_with("about 12 seconds left, "), "{text}");
    }

    #[test]
    fn nothing_is_shown_without_a_terminal() {
        assert!(Progress::show(&LiveBoard::default(), true).display.is_none());
    }
}
