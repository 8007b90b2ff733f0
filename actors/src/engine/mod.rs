//! The virtual-time engine: units, their inboxes, and what moves them on.
//!
//! ```text
//!              RunWindows                       RunWindows
//!          +--------------->  shard 0  (units)
//! coordinator                                   one actix arbiter, one thread each
//!          +--------------->  shard 1  (units)
//!              <--- Report: messages for other shards, write logs, next stamp
//! ```
//!
//! The coordinator owns simulated time. It moves it in conservative windows `[T, T + L)`, where `L` is the smallest latency of a
//! wire and `T` the smallest pending stamp or wake of all units: what is sent in a window arrives after it, so units of one window
//! are independent and shards run them at the same time. Idle stretches cost nothing.
//!
//! **Invariant:** a result depends on units and wires alone, never on the number of shards, on placement or on the wall clock.
//! An inbox is ordered by (time, source unit, source sequence), and the bounds of windows follow from stamps alone.

mod agenda;
mod containment;
mod coordinator;
mod epoch;
mod handoff;
pub mod live;
mod pending;
mod placement;
mod run;
mod shard;
pub mod state;
pub mod unit;
mod wall_clock;

pub use epoch::{EpochHook, Epochs, epoch_end};
pub use live::{Gauge, LiveBoard};
pub use placement::Placement;
pub use run::{
    DeadlockReport, EngineError, LostStatistics, Outcome, RunOptions, RunReport, Simulation, UnitEntry, WaitingUnit,
    WindowCut, run,
};
pub use state::{CodeSource, StateError, complete_code, complete_launch, complete_payload, restore_state, save_state};
pub use unit::{Inbox, NextWake, Outbox, Unit, Window, Wire};
