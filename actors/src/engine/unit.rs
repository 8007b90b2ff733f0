//! What a hardware unit is to the engine: private state, an inbox of stamped messages, one behaviour.

use super::state::{CodeSource, StateError};
use super::{Inbox, Outbox};
use balar_protocol::by_launch::LaunchTotals;
use balar_protocol::launches::LaunchSink;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{PortId, SimTime, UnitId};

/// The span of simulated time a unit may work in: `start <= t < until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First picosecond.
    pub start: SimTime,
    /// First picosecond after it.
    pub until: SimTime,
}

/// When a unit wants to run again if no message arrives before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextWake {
    /// At this time, not before the end of the window just run.
    At(SimTime),
    /// Only when a message arrives.
    OnMessage,
}

/// A hardware unit: a virtual-time actor.
///
/// Pure and synchronous: it never waits, logs, or reads the wall clock, and what it does depends on its state and inbox alone.
pub trait Unit: Send {
    /// Handles everything stamped before `window.until`, sends through `out`, and says when it next wants to run.
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake;

    /// Writes its counters as they are at [`StatisticSink::now`], zeros included: the same ones in the same order whenever it is asked.
    fn statistics(&self, sink: &mut StatisticSink);

    /// Writes what it has recorded beside its counters, when the run is over: launches, tables, how a program ended, and rows of what
    /// came up in the run.
    fn records(&self, sink: &mut StatisticSink) {
        let _ = sink;
    }

    /// Do its counters move by the mere passing of time, even though it neither wakes nor receives anything? Such a unit is asked in
    /// every sample, others where they have run since the last one.
    fn counts_by_time(&self) -> bool {
        false
    }

    /// Tells what has become of launches since it was last asked, in a run that is watched by launch. Most units know nothing of them.
    fn launches(&mut self, sink: &mut LaunchSink) {
        let _ = sink;
    }

    /// Gives what it has counted by launch since it was last asked, beside what CTAs tell when they end. Most units count nothing so.
    fn shares(&mut self, totals: &mut LaunchTotals) {
        let _ = totals;
    }

    /// What it still waits for, in words; `None` where nothing is outstanding. When every unit sleeps and no message is on its way,
    /// a unit with outstanding work means a deadlock.
    fn outstanding(&self) -> Option<String>;

    /// Does it owe answers, and wait for none itself? The report of a deadlock names such a unit first: it is not the others that it
    /// waits for. A unit that does not come with the simulator is asked through its guest, which knows both.
    fn holds_others_up(&self) -> bool {
        false
    }

    /// Its state as bytes: everything that what it does from here on depends on, apart from its parameters and wires.
    ///
    /// # Errors
    ///
    /// [`StateError::Unsupported`] for a unit that cannot.
    fn save(&self) -> Result<Vec<u8>, StateError> {
        Err(StateError::Unsupported)
    }

    /// Replaces its state by a saved one, whole. The unit is built from the same parameters, and has not run.
    ///
    /// # Errors
    ///
    /// [`StateError::Unsupported`] for a unit that cannot; another [`StateError`] where the bytes are of another unit's state, or
    /// where `codes` lacks a code that they name. The unit is not to be used after an error.
    fn restore(&mut self, state: &[u8], codes: &dyn CodeSource) -> Result<(), StateError> {
        let _ = (state, codes);
        Err(StateError::Unsupported)
    }
}

/// Where one port leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The unit at the other end.
    pub unit: UnitId,
    /// Its port.
    pub port: PortId,
    /// Time a message takes.
    pub latency: SimTime,
}
