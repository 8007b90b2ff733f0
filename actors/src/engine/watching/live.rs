//! The live side of a run: values that a progress display reads from another thread while units work.

use balar_protocol::SimTime;
use dashmap::DashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A board of counters that units write and a display reads. A handle: clones show the same board.
///
/// It never influences the simulation: units write to it and do not read it. Threads meet here: those of shards write, and at the same time
/// those of a progress display or of `--live` read.
#[derive(Clone, Debug, Default)]
pub struct LiveBoard {
    state: Arc<BoardState>,
}

#[derive(Debug, Default)]
struct BoardState {
    simulated_ps: AtomicU64,
    windows: AtomicU64,
    messages: AtomicU64,
    gauges: DashMap<String, Gauge>,
    texts: DashMap<String, String>,
}

impl LiveBoard {
    /// Simulated time reached.
    pub fn time(&self) -> SimTime {
        SimTime(self.state.simulated_ps.load(Ordering::Relaxed))
    }

    /// Windows run so far.
    pub fn windows(&self) -> u64 {
        self.state.windows.load(Ordering::Relaxed)
    }

    /// Messages delivered so far.
    pub fn messages(&self) -> u64 {
        self.state.messages.load(Ordering::Relaxed)
    }

    /// The gauge `name`, made with value 0 where it does not exist. Units take it once, when they are built or at the first use.
    pub fn gauge(&self, name: &str) -> Gauge {
        if let Some(gauge) = self.state.gauges.get(name) {
            return gauge.clone();
        }
        self.state.gauges.entry(name.to_owned()).or_default().clone()
    }

    /// The value of gauge `name`; `None` where no unit made it.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.state.gauges.get(name).map(|entry| Gauge::value(&entry))
    }

    /// All gauges, sorted by name.
    pub fn values(&self) -> Vec<(String, u64)> {
        let mut values: Vec<_> =
            self.state.gauges.iter().map(|entry| (entry.key().clone(), Gauge::value(entry.value()))).collect();
        values.sort();
        values
    }

    /// Shows `text` under `name`: the kernel that runs now, say. It allocates: for rare events.
    pub fn set_text(&self, name: &str, text: &str) {
        self.state.texts.insert(name.to_owned(), text.to_owned());
    }

    /// The text shown under `name`.
    pub fn text(&self, name: &str) -> Option<String> {
        self.state.texts.get(name).map(|text| text.clone())
    }

    /// Called by the engine.
    pub(in crate::engine) fn reached(&self, time: SimTime, windows: u64, messages: u64) {
        self.state.simulated_ps.store(time.0, Ordering::Relaxed);
        self.state.windows.store(windows, Ordering::Relaxed);
        self.state.messages.store(messages, Ordering::Relaxed);
    }
}

/// A number on the board, written by one unit or by several. Cheap to write: one relaxed atomic operation.
#[derive(Clone, Debug, Default)]
pub struct Gauge {
    value: Arc<AtomicU64>,
}

impl Gauge {
    /// Shows `value`.
    #[inline]
    pub fn set(&self, value: u64) {
        self.value.store(value, Ordering::Relaxed);
    }

    /// Adds `amount`.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.value.fetch_add(amount, Ordering::Relaxed);
    }

    /// Its present value.
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_show_the_same_board() {
        let board = LiveBoard::default();
        let unit = board.clone();
        let gauge = unit.gauge("gpu.scheduler.ctas_done");
        gauge.set(3);
        unit.gauge("gpu.scheduler.ctas_done").add(2);
        unit.set_text("gpu.scheduler.kernel", "vectorAdd");
        unit.reached(SimTime(5), 1, 2);
        assert_eq!(board.values(), [("gpu.scheduler.ctas_done".to_owned(), 5)]);
        assert_eq!(board.value("gpu.scheduler.ctas_done"), Some(5));
        assert_eq!(board.value("absent"), None);
        assert_eq!(board.text("gpu.scheduler.kernel").as_deref(), Some("vectorAdd"));
        assert_eq!((board.time(), board.windows(), board.messages()), (SimTime(5), 1, 2));
    }
}
