//! Ends a run whose unit does not return: limits hold whatever a unit does.
//!
//! A run ends between two windows. A unit that computes without an end never lets a window end, so the thread that waits for the engine
//! looks on: once a run is to end, a unit that stays in one call for [`GRACE`] costs the run its statistics, and the run ends without it.
#![expect(clippy::disallowed_types, reason = "limits of the simulator itself, not of what it simulates")]

use crate::engine::report::{EngineError, Outcome, RunReport};
use crate::engine::wall_clock::Deadline;
use balar_protocol::SimTime;
use balar_protocol::statistics::StatisticSink;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a unit may stay in one call when the run is to end.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two looks.
const PERIOD: Duration = Duration::from_millis(50);
/// The bits of a call's number that name its unit.
const UNIT_BITS: u32 = 24;

/// The call that each shard is in: written by shards, read by the watchdog.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Calls(Arc<[CachePadded<Call>]>);

#[derive(Debug, Default)]
struct Call {
    /// The number of the call above the unit that was called, plus one; zero where none is under way.
    now: AtomicU64,
    /// When the window began, in picoseconds.
    window: AtomicU64,
}

impl Calls {
    /// The calls of so many shards.
    pub fn new(shards: usize) -> Calls {
        Calls((0..shards).map(|_| CachePadded::default()).collect())
    }

    /// A shard's window begins.
    pub fn window_begins(&self, shard: usize, start: SimTime) {
        self.0[shard].window.store(start.0, Ordering::Relaxed);
    }

    /// A shard calls a unit for the `number`th time.
    #[inline]
    pub fn begin(&self, shard: usize, number: u64, unit: u32) {
        self.0[shard].now.store(number << UNIT_BITS | u64::from(unit + 1), Ordering::Relaxed);
    }

    /// A shard is in no unit's call.
    pub fn end(&self, shard: usize) {
        self.0[shard].now.store(0, Ordering::Relaxed);
    }

    fn read(&self) -> Vec<u64> {
        self.0.iter().map(|call| call.now.load(Ordering::Relaxed)).collect()
    }

    /// The last window that any shard has begun.
    fn last_window(&self) -> SimTime {
        SimTime(self.0.iter().map(|call| call.window.load(Ordering::Relaxed)).max().unwrap_or(0))
    }
}

/// The calls that are watched.
pub(in crate::engine) struct Watchdog {
    pub calls: Calls,
    pub interrupt: Arc<AtomicBool>,
    pub deadline: Deadline,
    /// Paths, by unit.
    pub paths: Arc<[String]>,
}

impl Watchdog {
    /// Waits for the report that the engine sends when it has ended, and for no longer than a run may take to end. `None` where the engine
    /// ended without a word.
    pub fn wait(&self, report: &Receiver<Result<RunReport, EngineError>>) -> Option<Result<RunReport, EngineError>> {
        let mut since = Instant::now();
        let mut seen = Vec::new();
        loop {
            match report.recv_timeout(PERIOD) {
                Ok(report) => return Some(report),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if !self.is_to_end() => {}
                Err(RecvTimeoutError::Timeout) => {
                    let now = self.calls.read();
                    let stays = |(&now, &before): (&u64, &u64)| (now == before && now != 0).then_some(now);
                    match now.iter().zip(&seen).find_map(stays) {
                        Some(call) if since.elapsed() >= GRACE => return Some(Ok(self.report_without(call))),
                        Some(_) => {}
                        None => {
                            since = Instant::now();
                            seen = now;
                        }
                    }
                }
            }
        }
    }

    fn is_to_end(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.deadline.is_over()
    }

    /// The report of a run that is given up in this call.
    fn report_without(&self, call: u64) -> RunReport {
        let unit = (call & ((1 << UNIT_BITS) - 1)) as usize - 1;
        let is_interrupted = self.interrupt.load(Ordering::Relaxed);
        RunReport {
            end: self.calls.last_window(),
            outcome: if is_interrupted { Outcome::Interrupted } else { Outcome::WallLimit },
            statistics: StatisticSink::default(),
            lost_statistics: Vec::new(),
            given_up: self.paths.get(unit).cloned(),
            windows: 0,
            messages: 0,
            shard_busy: Vec::new(),
        }
    }
}
