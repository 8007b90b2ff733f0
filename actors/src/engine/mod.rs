//! The virtual-time engine: units, their inboxes, and what moves them on.
//!
//! ```text
//!              RunWindows                       RunWindows
//!          +--------------->  shard 0  (units)
//! coordinator                                   one actix arbiter, one thread each
//!          +--------------->  shard 1  (units)
//!              <--- Report: messages for other shards, next stamp
//! ```
//!
//! The coordinator owns simulated time. It moves it in conservative windows: a window begins with the earliest stamp or wake of all
//! units, and ends where the first message could arrive that is yet to be sent. So units of one window are independent, and shards
//! run them at the same time. Idle stretches cost nothing. What must happen later than that is tied to messages or to the ends of
//! value epochs ([`Epochs`]), which no window crosses.
//!
//! **Invariant:** a result depends on units and wires alone, never on the number of shards, on placement, on where windows end, or on
//! the wall clock. An inbox is ordered by (time, source unit), and what one source sends for one time comes in the order of sending.

mod agenda;
pub(crate) mod bench;
mod buffers;
pub(crate) mod containment;
mod control;
mod conversation;
mod coordinator;
mod epoch;
mod guest;
mod hand_over;
mod handoff;
mod inbox;
pub mod live;
pub(crate) mod memory_order;
mod options;
mod outbox;
mod pending;
mod placement;
mod report;
pub(crate) mod rules;
mod run;
mod sampler;
pub mod sampling;
mod shard;
pub mod state;
pub mod unit;
mod wall_clock;
mod watchdog;

pub use bench::Bench;
pub use control::RunControl;
pub use conversation::Conversation;
pub use epoch::{EpochHook, Epochs, epoch_end};
pub use guest::{Guest, GuestPort};
pub use hand_over::HandOver;
pub use inbox::Inbox;
pub use live::{Gauge, LiveBoard};
pub use options::{RunOptions, TimelineDetail, WindowCut};
pub use outbox::Outbox;
pub use placement::Placement;
pub use report::{DeadlockReport, EngineError, LostStatistics, Outcome, RunReport, WaitingUnit};
pub use rules::BrokenRule;
pub use run::{Simulation, UnitEntry, run};
pub use sampling::{Observer, Sample, SampleKind, SampleLayout, Watch};
pub use state::{
    CodeSource, StateError, complete_code, complete_device_work, complete_launch, complete_payload, restore_state,
    save_state,
};
pub use unit::{NextWake, Unit, Window, Wire};
