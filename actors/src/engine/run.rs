//! A simulation, and the call that runs it.

use super::containment;
use super::coordinator::{Coordinator, CoordinatorSetup};
use super::epoch::Epochs;
use super::hand_over::{HandOver, Schedule};
use super::options::RunOptions;
use super::pending::CalendarShape;
use super::report::{EngineError, RunReport};
use super::shard::{RunConditions, Tenant};
use super::unit::{Unit, Wire};
use super::wall_clock::Deadline;
use super::watching::sampler::Sampler;
use super::watching::watchdog::{Calls, Watchdog};
use actix::{Actor, Arbiter, System};
use balar_protocol::{SimTime, UnitId};
use std::sync::{Arc, mpsc};

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

/// All units of a node, wired, with the state that they share.
#[derive(Default)]
pub struct Simulation {
    /// The units.
    pub units: Vec<UnitEntry>,
    /// Work at fixed multiples of a length of time: the writes of units become visible.
    pub epochs: Epochs,
    /// Units that take over from others in the middle of the run, if any do.
    pub hand_over: HandOver,
}

/// Runs a simulation to its end and collects statistics, whatever the end is. Blocks; may be called from any thread.
///
/// Where a limit of the options is reached and a unit does not return for two seconds, the run is given up: its threads are left behind
/// until the process ends, and the report names the unit.
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
    let deadline = Deadline::after(options.max_wall);
    let calls = Calls::new(shards_of(&simulation, &options));
    let paths: Arc<[String]> = simulation.units.iter().map(|entry| entry.path.clone()).collect();
    let watchdog = Watchdog {
        calls: calls.clone(),
        interrupt: Arc::clone(&options.interrupt),
        deadline,
        paths: Arc::clone(&paths),
    };
    let (sender, report) = mpsc::channel();
    let work = move || run_system(simulation, options, Prepared { paths, latencies, deadline, calls });
    engine
        .spawn(move || {
            let report = span.in_scope(work);
            // The span of a run that has a report ends where its caller ends it.
            drop(span);
            // Nobody waits for the report of a run that was given up.
            let _ = sender.send(report);
        })
        .map_err(EngineError::Threads)?;
    watchdog.wait(&report).unwrap_or_else(|| Err(EngineError::Internal("its thread panicked".to_owned())))
}

/// How many shards a run has.
fn shards_of(simulation: &Simulation, options: &RunOptions) -> usize {
    options.threads.clamp(1, simulation.units.len().max(1))
}

/// The parts of a run before its thread starts.
struct Prepared {
    /// Paths, by unit.
    paths: Arc<[String]>,
    latencies: Vec<SimTime>,
    deadline: Deadline,
    calls: Calls,
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

fn run_system(simulation: Simulation, options: RunOptions, prepared: Prepared) -> Result<RunReport, EngineError> {
    let Prepared { paths, latencies, deadline, calls } = prepared;
    let shards = shards_of(&simulation, &options);
    let units = simulation.units;
    let weights: Vec<u32> = units.iter().map(|entry| entry.weight).collect();
    let seats: Arc<[_]> = options.placement.seats(&weights, shards).into();
    let shortest = latencies.iter().copied().min().unwrap_or(WINDOW_WITHOUT_WIRES);
    let calendar = CalendarShape::new(simulation.epochs.length().unwrap_or(shortest), shortest);
    let shard_of = |unit: usize| seats[unit].shard as usize;
    let control = options.watch.as_ref().map(|watch| watch.control.clone());
    let readable = || units.iter().map(|entry| (entry.path.as_str(), entry.unit.as_ref()));
    let sampler = options.watch.map(|watch| Sampler::new(watch, readable(), shard_of, shards));
    let mut tenants: Vec<Vec<Tenant>> = (0..shards).map(|_| Vec::new()).collect();
    let HandOver { at, twins, codes } = simulation.hand_over;
    let mut twins = twins.into_iter();
    for (index, entry) in units.into_iter().enumerate() {
        let UnitEntry { path, unit, wires, .. } = entry;
        let (id, twin) = (UnitId(index as u32), twins.next().flatten());
        let numbers = sampler.as_ref().map_or(0, |sampler| sampler.numbers_of(index));
        tenants[seats[index].shard as usize].push(Tenant { id, path, unit, twin, wires, numbers });
    }

    // Shard 0 shares this thread with the coordinator: they never work at the same time.
    let system = System::new();
    let own = system.block_on(async { Arbiter::current() });
    let arbiters: Vec<Arbiter> = (1..shards).map(|_| Arbiter::new()).collect();
    let (result, report) = tokio::sync::oneshot::channel();
    let conditions = RunConditions {
        latencies: latencies.into(),
        calendar,
        epochs: simulation.epochs,
        cut: options.cut,
        stop_at: options.stop_at.unwrap_or(SimTime::MAX),
        deadline,
        interrupt: options.interrupt,
        control,
        progress: options.progress,
        seats,
        hand_over: Schedule::new(at, codes),
        calls,
        span: tracing::Span::current(),
    };
    let setup = CoordinatorSetup {
        conditions,
        paths,
        tenants,
        sampler,
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
