//! The activity of units over time, where a run asks for it (`--timeline`).
//!
//! A unit with activity to record asks for a [`TimelineLog`] while it is built, and has none in a run that does not ask. It records slices
//! of time on tracks of its own: a kernel on a stream, a CTA in a slot, a transfer on a copy engine. Events are packed at once, as
//! differences from earlier ones: a CTA takes about 15 bytes.
//!
//! Each unit has its own log, with its events in the order of its own simulation, so that logs are the same for any number of threads. A
//! unit that takes over from another one at the same place ([`HandOver`](crate::engine::HandOver)) goes on with its log.

mod log;

pub use log::{Event, EventKind, EventNumber, Label, TimelineLog, Track, UnitTimeline};

use crate::engine::TimelineDetail;
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The processes of a timeline, each with tracks of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackGroup {
    /// A process of the program, by its number.
    Host(u32),
    /// A GPU, by its number and its path.
    Gpu(usize, String),
    /// The links between host and GPUs.
    Links,
    /// The driver of unified memory.
    UnifiedMemory,
}

/// A part of a path of tracks: its rank among its siblings, and its name.
pub type TrackName = (u32, Cow<'static, str>);

/// The sections of a GPU's tracks, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Kernels by stream.
    Kernels,
    /// The GPU goes from the kernels of a process to those of another.
    ContextSwitches,
    /// Transfers by copy engine.
    CopyEngines,
    /// Transfers of managed pages.
    PageMigrations,
    /// CTAs by SM.
    Sms,
    /// Counters over time.
    Counters,
    /// What units of the user's own note.
    Units,
}

impl Section {
    /// Its rank and its name.
    pub const fn name(self) -> TrackName {
        let name = match self {
            Section::Kernels => "Kernels by stream",
            Section::ContextSwitches => "context switches",
            Section::CopyEngines => "copy engines",
            Section::PageMigrations => "page migrations",
            Section::Sms => "SMs",
            Section::Counters => "counters",
            Section::Units => "units of your own",
        };
        (self as u32, Cow::Borrowed(name))
    }
}

/// The subject of a track.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackKind {
    /// Slices that nest.
    Slices,
    /// The slices of a thread of a host process, by its number.
    Thread(u32),
    /// A value over time, in this unit.
    Counter(Cow<'static, str>),
}

/// Where a track is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackPlace {
    /// Whose it is.
    pub group: TrackGroup,
    /// From the outermost track to this one.
    pub path: Vec<TrackName>,
    /// Tracks of the same path lie side by side and are shown together: slices that overlap take one each.
    pub lane: u32,
    /// Its subject.
    pub kind: TrackKind,
}

impl TrackPlace {
    /// A track of slices.
    pub fn slices(group: TrackGroup, path: impl Into<Vec<TrackName>>) -> TrackPlace {
        TrackPlace { group, path: path.into(), lane: 0, kind: TrackKind::Slices }
    }

    /// A counter of a GPU, in this unit.
    pub fn counter(gpu: TrackGroup, rank: u32, name: &'static str, unit: &'static str) -> TrackPlace {
        let path = vec![Section::Counters.name(), (rank, Cow::Borrowed(name))];
        TrackPlace { group: gpu, path, lane: 0, kind: TrackKind::Counter(Cow::Borrowed(unit)) }
    }
}

/// The categories of slices, by which a query chooses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// A kernel, by the name that its program gives it.
    Kernel,
    /// A CTA, by the name of its kernel.
    Cta,
    /// A call of the program.
    Call,
    /// The wait of a call.
    Wait,
    /// A copy or fill.
    Copy,
    /// A link carries messages.
    Link,
    /// Pages of managed memory move.
    Migration,
    /// Faults of managed memory are served.
    Fault,
    /// A GPU goes from one process to another.
    ContextSwitch,
    /// A named range of the program (NVTX).
    Range,
    /// A unit of the user's own notes what it does.
    Unit,
}

impl Category {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Category::Kernel => "kernel",
            Category::Cta => "cta",
            Category::Call => "call",
            Category::Wait => "wait",
            Category::Copy => "copy",
            Category::Link => "link",
            Category::Migration => "migration",
            Category::Fault => "fault",
            Category::ContextSwitch => "context_switch",
            Category::Range => "range",
            Category::Unit => "unit",
        }
    }

    /// Is a slice of it named after a kernel?
    pub const fn is_of_kernel(self) -> bool {
        matches!(self, Category::Kernel | Category::Cta)
    }
}

/// The kind of a value that comes with a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A number.
    Number,
    /// An address.
    Address,
    /// A text, by its number in the log ([`TimelineLog::text`]).
    Text,
    /// The name of a kernel, likewise.
    Kernel,
}

/// A value that comes with a slice: its name, with its unit as an ending (`bytes`, `_ps`), and its kind.
pub type Argument = (&'static str, ValueKind);

/// The flow that leads from the call that launched a kernel to the kernel.
pub const fn launch_flow(launch: u32) -> u64 {
    launch as u64
}

/// The flow that leads from a call to a transfer of a copy engine.
pub const fn copy_flow(copy: u32) -> u64 {
    1 << 32 | copy as u64
}

/// A unit's notes beside its log: the unit that takes over from it goes on with the same notes.
pub struct Kept<T>(Arc<Mutex<T>>);

impl<T> Kept<T> {
    /// The notes.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

/// The timeline of a run: logs by the units' numbers, and the units' notes beside them.
#[derive(Debug)]
pub struct Timeline {
    detail: TimelineDetail,
    logs: Mutex<BTreeMap<u32, TimelineLog>>,
    kept: Mutex<BTreeMap<u32, Arc<dyn Any + Send + Sync>>>,
}

impl Timeline {
    /// An empty room.
    pub fn new(detail: TimelineDetail) -> Timeline {
        Timeline { detail, logs: Mutex::default(), kept: Mutex::default() }
    }

    /// Do SMs tell of their CTAs?
    pub fn shows_ctas(&self) -> bool {
        self.detail == TimelineDetail::Ctas
    }

    /// The log of a unit.
    pub fn log(&self, unit: u32) -> TimelineLog {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner).entry(unit).or_default().clone()
    }

    /// A unit's notes beside its log, which are made where no unit was before it.
    pub fn keep<T: Send + 'static>(&self, unit: u32, make: impl FnOnce(TimelineLog) -> T) -> Kept<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.get(&unit).and_then(|known| Arc::clone(known).downcast().ok());
        Kept(known.unwrap_or_else(|| {
            let new = Arc::new(Mutex::new(make(self.log(unit))));
            kept.insert(unit, Arc::clone(&new) as Arc<dyn Any + Send + Sync>);
            new
        }))
    }

    /// All that units have told, by their numbers. The room is empty then.
    pub fn take(&self) -> Vec<UnitTimeline> {
        let logs = std::mem::take(&mut *self.logs.lock().unwrap_or_else(PoisonError::into_inner));
        logs.into_values().map(|log| log.take()).filter(|unit| !unit.is_empty()).collect()
    }
}
