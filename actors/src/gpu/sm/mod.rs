//! The streaming multiprocessor: sub-cores that issue warps, the memory pipe with L1 and shared memory, and the CTA slots.
//!
//! ```text
//!   cta port ──► CTA slots ──► warp slots ──► sub-cores (scheduler, pipes) ──► memory pipe ──► L1 ──► TLBs ──► memory port
//! ```
//!
//! An instruction's meaning is executed when it issues; its timing follows: a result's cycle goes to the warp's scoreboard, a
//! memory access goes through the pipe, and misses travel to the crossbar as requests. Between the cycles in which something can
//! happen the SM sleeps.
//!
//! The SM has three parts that own their state: the warps, the memory pipe and the front end; this file carries events between them.
//! `functional` has CTAs that run for their values alone, `runtime` the effects of calls of the device runtime, `device_calls` their time,
//! `device_runtime` their messages.
//!
//! A PTX instruction that the GPU does in several (a division) has that many *passes*. Parameter loads and address-space casts, which the GPU's own code folds
//! into operands, are executed and counted, but take no issue slot.
//!
//! A warp leaves when its last store has left the SM, not when that store is acknowledged. A CTA's end says whether stores of it are under
//! way, and the SM tells the scheduler when the last of them is done (`warps/left.rs`). A kernel ends when all its CTAs and all their
//! stores have. A warp stays only for writes to its registers that are still to come: an atomic's answer, or copies to shared memory.
//!
//! A request whose page no TLB of the SM knows waits for the GMMU, and costs nothing meanwhile. Requests of 2 MiB are asked for together,
//! until the GMMU tells smaller pages of them apart. Memory that a driver of unified memory manages is there where the driver has mapped
//! it: the page table is looked up when a walk ends, so that a page that was unmapped meanwhile faults. A fault is a matter of time alone:
//! the request waits in the GMMU until the driver lets it go on, or has all requests tried again.
//!
//! CTAs of a cluster reach the shared memory of each other through a network between SMs (`remote`, `remote_access`).
//!
//! Where a run asks for it, each charge of a cycle goes to an instruction as well (`profile.rs`). An SM that does so is another type than
//! one that does not, so that the latter pays nothing. SMs put their counts into one place (`catalogue/instruction_profile.rs`), as sums.
//!
//! **Invariant:** every cycle of every resident warp is charged to exactly one reason: issued, or a named stall.
//! **Invariant:** no allocation for each cycle or each warp instruction, but for bulk copies and messages to CTAs on other SMs; a test
//! counts.

mod arrivals;
mod bulk_copies;
mod bulk_queue;
mod coalescer;
mod constant_loads;
mod counters;
mod device_calls;
mod device_runtime;
mod effects;
mod execution;
mod front_end;
mod functional;
mod hazard_checks;
mod lane_access;
mod lane_memory;
mod memory_pipe;
mod multiprocessor;
mod parameters;
mod profile;
mod progress;
mod remote;
mod remote_access;
mod runtime;
mod serde_array;
mod timeline;
mod warps;

use crate::catalogue::{
    BuildContext, BuildError, Capability, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition,
};
use crate::engine::Unit;
use balar_protocol::Protocol;
use balar_protocol::statistics::CtaCounters;
use counters::SmCounters;
pub use parameters::{InitiationIntervals, Latencies, SchedulerPolicy, SmParameters, TlbParameters};
use profile::{ByInstruction, NoProfile};
pub use progress::Sm;

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "StreamingMultiprocessor",
    summary: "executes CTAs: warp schedulers, pipes, L1 and shared memory, first TLB levels",
    parameters: SmParameters::DEFINITIONS,
    check: SmParameters::check,
    ports: &[
        PortDefinition {
            name: "cta",
            protocol: Protocol::Cta,
            role: Role::Server,
            indexed: false,
            required: true,
            meaning: "CTAs from the scheduler",
        },
        PortDefinition {
            name: "memory",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: false,
            required: true,
            meaning: "requests below the L1",
        },
        PortDefinition {
            name: "translation",
            protocol: Protocol::Translation,
            role: Role::Client,
            indexed: false,
            required: false,
            meaning: "pages that miss in the SM's TLBs",
        },
        PortDefinition {
            name: "cluster",
            protocol: Protocol::Cluster,
            role: Role::Client,
            indexed: false,
            required: false,
            meaning: "the network to other SMs, for clusters of CTAs",
        },
    ],
    counters: &COUNTERS,
    provides,
    weight: 16,
    build,
};

const COUNTERS: [balar_protocol::statistics::StatisticDefinition;
    SmCounters::DEFINITIONS.len() + CtaCounters::DEFINITIONS.len()] = {
    let mut all = [SmCounters::DEFINITIONS[0]; SmCounters::DEFINITIONS.len() + CtaCounters::DEFINITIONS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < SmCounters::DEFINITIONS.len() {
            SmCounters::DEFINITIONS[at]
        } else {
            CtaCounters::DEFINITIONS[at - SmCounters::DEFINITIONS.len()]
        };
        at += 1;
    }
    all
};

fn provides(text: &str) -> Vec<Capability> {
    let Ok(parameters) = ron::from_str::<SmParameters>(text) else { return Vec::new() };
    let peaks = parameters.peaks().map(|(what, per_second)| Capability::Peak { what, per_second });
    [Capability::Sm(parameters.provides()), Capability::CountsCredits].into_iter().chain(peaks).collect()
}

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters = context.surroundings.parameters::<SmParameters>(text)?;
    let mut problems = parameters.problems();
    let gpu = context.surroundings.gpu(context.part);
    if gpu.is_none() {
        problems.push(ParameterProblem::new(
            "clock",
            "an SM belongs to a part that has a GPU front end, such as a CtaScheduler",
        ));
    }
    if let (Some((index, _)), true) = (gpu, problems.is_empty()) {
        let values = (context.memory()?, context.writer()?);
        return Ok(match context.surroundings.instruction_profiles {
            Some(_) => Box::new(Sm::<ByInstruction>::new(&parameters, context, index, values)),
            None => Box::new(Sm::<NoProfile>::new(&parameters, context, index, values)),
        });
    }
    Err(problems.into())
}
