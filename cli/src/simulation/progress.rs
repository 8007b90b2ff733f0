//! The progress line: on a terminal only, from the engine's live board.

use balar_actors::engine::LiveBoard;
use balar_actors::gpu::gauges::CTAS_DONE;
use balar_live::estimate::{Work, estimate, in_words};
use balar_protocol::SimTime;
use balar_record::kernel_name::short_name;
use indicatif::{ProgressBar, ProgressStyle};
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
            // When the simulation was first seen to go on: loading code says nothing of what is left.
            let mut began = None;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
                let state = BoardContents::of(&board);
                if let Some(planned) = state.work.planned.filter(|planned| bar.length() != Some(*planned)) {
                    bar.set_style(style(true));
                    bar.set_length(planned);
                }
                let elapsed = bar.elapsed();
                if began.is_none() && state.messages > 0 {
                    began = Some(elapsed);
                }
                bar.set_position(state.work.ended);
                bar.set_message(state.text(elapsed, elapsed.saturating_sub(began.unwrap_or(elapsed))));
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
    /// What CTAs have done, and what is known of those to come: built-in workloads know them in advance, programs do not.
    work: Work,
}

impl BoardContents {
    /// Reads the text `<scheduler>.kernel` of every scheduler that shows its CTAs, and the work that all units show.
    fn of(board: &LiveBoard) -> BoardContents {
        let gauges = board.values();
        let schedulers = gauges.iter().filter_map(|(name, _)| name.strip_suffix(CTAS_DONE));
        let kernels = schedulers.filter_map(|path| board.text(&format!("{path}.kernel")));
        let kernels: Vec<String> = kernels.map(|name| short_name(&name)).collect();
        BoardContents {
            time: board.time(),
            messages: board.messages(),
            kernel: (!kernels.is_empty()).then(|| kernels.join(", ")),
            work: Work::of(board),
        }
    }

    /// The line after `elapsed` of real time, for `simulating` of which the simulation has gone on.
    fn text(&self, elapsed: Duration, simulating: Duration) -> String {
        let simulated = self.time.picoseconds() as f64 / 1e6;
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let rates = format!(
            "{simulated:.1} us, {:.1} us/s, {:.0} messages/s",
            simulated / seconds,
            self.messages as f64 / seconds
        );
        let left = estimate(&self.work, simulating, false).seconds_left.map(in_words);
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
        assert_eq!(BoardContents::of(&board).work.ended, 0);
        board.gauge("gpu.scheduler.ctas_done").set(3);
        board.gauge("gpu2.scheduler.ctas_done").set(1);
        board.set_text("gpu.scheduler.kernel", "_Z5scaleIfEvPT_i");
        let state = BoardContents::of(&board);
        assert_eq!((state.work.ended, state.work.planned), (4, None));
        let two = Duration::from_secs(2);
        assert_eq!(state.text(two, two), "scale<float>, 0.0 us, 0.0 us/s, 0 messages/s");
    }

    #[test]
    fn what_is_left_is_estimated_where_the_total_is_known() {
        let board = LiveBoard::default();
        let text = |elapsed, simulating| {
            BoardContents::of(&board).text(Duration::from_secs(elapsed), Duration::from_secs(simulating))
        };
        for planned in ["workload.planned_ctas", "workload.planned_ctas.scale"] {
            board.gauge(planned).set(10);
        }
        board.gauge("kernel_ctas_begun.scale").set(5);
        board.gauge("gpu.sm[0].warp_instructions").set(30);
        assert!(text(8, 8).starts_with("0.0 us,"), "nothing is known of a CTA yet: {}", text(8, 8));
        board.gauge("gpu.scheduler.ctas_done").set(4);
        board.gauge("kernel_ctas_ended.scale").set(4);
        board.gauge("kernel_instructions.scale").set(400);
        board.gauge("gpu.sm[0].warp_instructions").set(450);
        // Ten CTAs will execute 1000. 450 took 9 s of the 20, so the other 550 take 11 s.
        assert!(text(20, 9).starts_with("about 11 seconds left, "), "{}", text(20, 9));
    }

    #[test]
    fn nothing_is_shown_without_a_terminal() {
        assert!(Progress::show(&LiveBoard::default(), true).display.is_none());
    }
}
