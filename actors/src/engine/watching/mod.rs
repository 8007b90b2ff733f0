//! Watching a run while it goes on: samples and how they are taken, runs that are held and stepped, the end of a run whose unit does not
//! return.

pub(super) mod control;
pub mod live;
pub(super) mod sampler;
pub mod sampling;
pub(super) mod watchdog;

pub use control::RunControl;
pub use live::{Gauge, LiveBoard};
pub use sampling::{Observer, Sample, SampleKind, SampleLayout, Watch};
