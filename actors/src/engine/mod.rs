//! The virtual-time engine: units, their inboxes, and the actors that move them on.
//!
//! ```text
//!              RunWindows                       RunWindows
//!          +--------------->  shard 0  (units)
//! coordinator                                   one actix arbiter, one thread each
//!          +--------------->  shard 1  (units)
//!              <--- Report: messages for other shards, next stamp
//! ```
//!
//! The coordinator owns simulated time. It moves it in conservative windows: a window begins with the earliest stamp or wake of all units,
//! and ends where the first message could arrive that is yet to be sent. So units of one window are independent, and shards run them at the
//! same time. Idle stretches cost nothing. Work that must happen later than that is tied to messages or to the ends of value epochs
//! ([`Epochs`]), which no window crosses.
//!
//! **Invariant:** a result depends on units and wires alone, never on the number of shards, on placement, on where windows end, or on the
//! wall clock. An inbox is ordered by (time, source unit), and messages of one source and time come in the order of sending.
//!
//! A message is written once, where its receiver will find it: each unit has a calendar of spans as long as a window mostly is. A window takes a whole
//! span without moving its messages, and sorts them only where several senders have mixed them. An empty span has no memory: the units of a shard
//! share their buffers, and the one that was read last is written next, while the processor's cache has it. When a single shard has work, it is granted
//! many windows with one command.
//!
//! A run can be watched (`Watch`): at multiples of an interval, or when a watcher asks, the coordinator reads the counts of all units, as
//! numbers whose names were asked for once. No window crosses such a time, so that a sample holds exactly the events before it, on any
//! number of threads. A unit that has not run since is not asked again, unless its counters move by time alone (`Unit::counts_by_time`).
//!
//! | file or room | what it holds |
//! |---|---|
//! | `unit` | the trait of units |
//! | `shard`, `coordinator`, `handoff` | the actix actors, and how they wait for each other |
//! | `outbox`, `pending`, `inbox`, `buffers` | the way of a message |
//! | `agenda` | which unit is due when, and how far the engine may run ahead |
//! | `epoch` | work at the ends of value epochs |
//! | `state`, `hand_over` | states saved and restored |
//! | `watching` | samples and how they are taken, runs that are held and stepped, the end of a run whose unit does not return |
//! | `conduct` | a unit of the user's own, held to the rules of time, of its protocols and of memory |
//! | `bench` | one unit driven alone, for its tests |

mod agenda;
pub(crate) mod bench;
mod buffers;
pub(crate) mod conduct;
pub(crate) mod containment;
mod coordinator;
mod epoch;
mod hand_over;
mod handoff;
mod inbox;
mod options;
mod outbox;
mod pending;
mod placement;
mod report;
mod run;
mod shard;
pub mod state;
pub mod unit;
mod wall_clock;
mod watching;

pub use bench::Bench;
pub use conduct::{BrokenRule, Conversation, Guest, GuestPort};
pub use epoch::{EpochHook, Epochs, epoch_end};
pub use hand_over::HandOver;
pub use inbox::Inbox;
pub use options::{RunOptions, TimelineDetail, WindowCut};
pub use outbox::Outbox;
pub use placement::Placement;
pub use report::{DeadlockReport, EngineError, LostStatistics, Outcome, RunReport, WaitingUnit};
pub use run::{Simulation, UnitEntry, run};
pub use state::{
    CodeSource, StateError, complete_code, complete_device_work, complete_launch, complete_payload, restore_state,
    save_state,
};
pub use unit::{NextWake, Unit, Window, Wire};
pub use watching::{Gauge, LiveBoard, Observer, RunControl, Sample, SampleKind, SampleLayout, Watch, live, sampling};
