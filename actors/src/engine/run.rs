//! A simulation, its options, what comes of it, and the call that runs it.

use super::coordinator::{Coordinator, CoordinatorSetup};
use super::epoch::Epochs;
use super::hand_over::{HandOver, Schedule};
use super::pending::CalendarShape;
use super::shard::{Surroundings, Tenant};
use super::unit::{Unit, Wire};
use super::wall_clock::Deadline;
use super::{LiveBoard, Placement, containment};
use actix::{Actor, Arbiter, System};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{SimTime, UnitId};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The window where no unit has a wire.
const WINDOW_WITHOUT_WIRES: SimTime = SimTime::from_nanoseconds(1000);

/// One unit of a simulation. Its [`UnitId`] is its index.
pub struct UnitEntry {
    /// Its full path: "gpu.sm\[3\]".
    pub path: String,
    /// The unit.
    pub unit: Box<dyn Unit>,
    /// Where its ports lead, by [`PortId`](balar_protocol::PortId).
    pub wires: Vec<Wire>,
    /// How much work it is to simulate, relative to the others: a hint for placement.
    pub weight: u32,
}

/// All units of a node, wired, with what they share.
#[derive(Default)]
pub struct Simulation {
    /// The units.
    pub units: Vec<UnitEntry>,
    /// What happens at fixed multiples of a length of time: the writes of units become visible.
    pub epochs: Epochs,
    /// Units that take over from others in the middle of the run, if any do.
    pub hand_over: HandOver,
}

/// How to run a simulation. None of it changes what is simulated, `stop_at` apart.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Shards, each a thread; at least one is used, and no more than there are units.
    pub threads: usize,
    /// Nothing stamped at or after this time is simulated.
    pub stop_at: Option<SimTime>,
    /// End the run after this much time on the wall clock.
    pub max_wall: Option<Duration>,
    /// End the run between windows once this is set.
    pub interrupt: Arc<AtomicBool>,
    /// Where to show how far the run is.
    pub progress: Option<LiveBoard>,
    /// How units are spread over shards.
    pub placement: Placement,
    /// Where windows end before wires make them.
    pub cut: WindowCut,
    /// Times, in order, at which whoever builds the simulation has units handed over ([`HandOver`]).
    pub hand_over_at: Arc<[SimTime]>,
}

/// Where windows end before wires and epochs make them end. It changes no result: tests show so by it.
#[derive(Clone, Debug, Default)]
pub struct WindowCut {
    /// Each window is as long as a window can be over this; 0 and 1 change nothing.
    pub divisor: u64,
    /// Ends of windows, in order.
    pub at: Arc<[SimTime]>,
}

impl WindowCut {
    /// The end of a window from `start` on that could last until `until`.
    #[inline]
    pub(super) fn shorten(&self, start: SimTime, mut until: SimTime) -> SimTime {
        if self.divisor > 1 {
            until = SimTime(start.0 + (until.0 - start.0).div_ceil(self.divisor));
        }
        if !self.at.is_empty()
            && let Some(&cut) = self.at.get(self.at.partition_point(|&cut| cut <= start))
        {
            until = until.min(cut);
        }
        until
    }
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            threads: 1,
            stop_at: None,
            max_wall: None,
            interrupt: Arc::new(AtomicBool::new(false)),
            progress: None,
            placement: Placement::Balanced,
            cut: WindowCut::default(),
            hand_over_at: Arc::default(),
        }
    }
}

/// A unit that waits for something that never comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingUnit {
    /// Its path.
    pub path: String,
    /// What it waits for, in its own words.
    pub waits_for: String,
}

/// No message is on its way, no unit wants to wake, and yet work is outstanding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockReport {
    /// When the last thing happened.
    pub time: SimTime,
    /// Who waits, in the order of units.
    pub waiting: Vec<WaitingUnit>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to happen, and no unit has outstanding work.
    Finished,
    /// Everything before [`RunOptions::stop_at`] is simulated.
    StoppedAt,
    /// [`RunOptions::max_wall`] is over.
    WallLimit,
    /// [`RunOptions::interrupt`] was set.
    Interrupted,
    /// Units wait for each other.
    Deadlock(DeadlockReport),
    /// A unit panicked or broke the rules of time; a bug in that unit.
    UnitPanic {
        /// Its path.
        path: String,
        /// Start of the window it was in.
        time: SimTime,
        /// What it said, or which rule it broke.
        message: String,
    },
}

/// A unit that panicked while it wrote its statistics: its rows are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostStatistics {
    /// Its path.
    pub path: String,
    /// What it said.
    pub message: String,
}

/// What came of a run.
#[derive(Debug)]
pub struct RunReport {
    /// When the last thing happened; [`RunOptions::stop_at`] where the run was stopped there.
    pub end: SimTime,
    /// How it ended.
    pub outcome: Outcome,
    /// The statistics of all units, in the order of units; those of a unit that panicked are missing.
    pub statistics: StatisticSink,
    /// Units other than the one in [`Outcome::UnitPanic`] whose statistics are missing.
    pub lost_statistics: Vec<LostStatistics>,
    /// Windows run.
    pub windows: u64,
    /// Messages delivered.
    pub messages: u64,
    /// Wall-clock time each shard spent in windows. Differs from run to run.
    pub shard_busy: Vec<Duration>,
}

/// Why a simulation cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Simulated time could not move: a message would arrive in the window it is sent in.
    #[error("the wire from port {port} of {from} to {to} has zero latency")]
    ZeroLatencyWire {
        /// Path of the sender.
        from: String,
        /// The sender's port.
        port: u16,
        /// Path of the receiver.
        to: String,
    },
    /// A wire leads nowhere.
    #[error("port {port} of {from} leads to unit {to}, and there are {units}")]
    UnknownUnit {
        /// Path of the sender.
        from: String,
        /// The sender's port.
        port: u16,
        /// The number of no unit.
        to: u32,
        /// Units in the simulation.
        units: usize,
    },
    /// A thread could not be started.
    #[error("cannot start the simulation's threads")]
    Threads(#[source] std::io::Error),
    /// The engine itself failed.
    #[error("the engine failed: {0}")]
    Internal(String),
}

/// Runs a simulation to its end and collects statistics, whatever the end is. Blocks; may be called from any thread.
///
/// # Errors
///
/// Where the simulation cannot run at all: see [`EngineError`].
pub fn run(simulation: Simulation, options: RunOptions) -> Result<RunReport, EngineError> {
    let latencies = latencies(&simulation)?;
    containment::install();
    // A thread of its own: the caller's may belong to a runtime already.
    let engine = std::thread::Builder::new().name("engine".to_owned());
    let span = tracing::Span::current();
    let engine = engine
        .spawn(move || span.in_scope(|| run_system(simulation, options, latencies)))
        .map_err(EngineError::Threads)?;
    engine.join().unwrap_or_else(|_| Err(EngineError::Internal("its thread panicked".to_owned())))
}

/// The smallest latency of each unit's wires.
fn latencies(simulation: &Simulation) -> Result<Vec<SimTime>, EngineError> {
    let units = &simulation.units;
    let mut latencies = Vec::with_capacity(units.len());
    for entry in units {
        let mut smallest = WINDOW_WITHOUT_WIRES;
        for (port, wire) in entry.wires.iter().enumerate() {
            let (from, port) = (entry.path.clone(), port as u16);
            let Some(to) = units.get(wire.unit.0 as usize) else {
                return Err(EngineError::UnknownUnit { from, port, to: wire.unit.0, units: units.len() });
            };
            if wire.latency == SimTime::ZERO {
                return Err(EngineError::ZeroLatencyWire { from, port, to: to.path.clone() });
            }
            smallest = smallest.min(wire.latency);
        }
        latencies.push(smallest);
    }
    Ok(latencies)
}

fn run_system(simulation: Simulation, options: RunOptions, latencies: Vec<SimTime>) -> Result<RunReport, EngineError> {
    let units = simulation.units;
    let shards = options.threads.clamp(1, units.len().max(1));
    let weights: Vec<u32> = units.iter().map(|entry| entry.weight).collect();
    let seats: Arc<[_]> = options.placement.seats(&weights, shards).into();
    let shortest = latencies.iter().copied().min().unwrap_or(WINDOW_WITHOUT_WIRES);
    let calendar = CalendarShape::new(simulation.epochs.length().unwrap_or(shortest), shortest);
    let mut paths = Vec::with_capacity(units.len());
    let mut tenants: Vec<Vec<Tenant>> = (0..shards).map(|_| Vec::new()).collect();
    let HandOver { at, twins, codes } = simulation.hand_over;
    let mut twins = twins.into_iter();
    for (index, entry) in units.into_iter().enumerate() {
        paths.push(entry.path.clone());
        let UnitEntry { path, unit, wires, .. } = entry;
        let (id, twin) = (UnitId(index as u32), twins.next().flatten());
        tenants[seats[index].shard as usize].push(Tenant { id, path, unit, twin, wires });
    }

    // Shard 0 shares this thread with the coordinator: they never work at the same time.
    let system = System::new();
    let own = system.block_on(async { Arbiter::current() });
    let arbiters: Vec<Arbiter> = (1..shards).map(|_| Arbiter::new()).collect();
    let (result, report) = tokio::sync::oneshot::channel();
    let surroundings = Surroundings {
        latencies: latencies.into(),
        calendar,
        epochs: simulation.epochs,
        cut: options.cut,
        stop_at: options.stop_at.unwrap_or(SimTime::MAX),
        deadline: Deadline::after(options.max_wall),
        interrupt: options.interrupt,
        progress: options.progress,
        seats,
        hand_over: Schedule::new(at, codes),
    };
    let setup = CoordinatorSetup {
        surroundings,
        paths,
        tenants,
        arbiters: std::iter::once(own).chain(arbiters.iter().map(Arbiter::handle)).collect(),
        wakeful: std::thread::available_parallelism().is_ok_and(|processors| processors.get() >= shards),
        result,
    };
    let report = system.block_on(async move {
        let coordinator = Coordinator::create(move |context| Coordinator::new(setup, context));
        let report = report.await;
        drop(coordinator);
        report
    });
    for arbiter in arbiters {
        arbiter.stop();
        // An arbiter whose thread panicked has nothing left to stop.
        let _ = arbiter.join();
    }
    report.unwrap_or_else(|_| Err(EngineError::Internal("the coordinator ended without a report".to_owned())))
}
