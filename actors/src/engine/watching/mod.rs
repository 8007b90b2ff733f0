//! Who looks on while a run goes on: what a watcher is given, how it comes together, runs that are held and stepped, the end of a run
//! whose unit does not return.

pub(super) mod control;
pub mod live;
pub(super) mod sampler;
pub mod sampling;
pub(super) mod watchdog;

pub use control::RunControl;
pub use live::{Gauge, LiveBoard};
pub use sampling::{Observer, Sample, SampleKind, SampleLayout, Watch};
