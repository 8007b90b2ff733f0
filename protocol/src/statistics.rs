//! Statistic definitions: a unit declares its counters in one table, and every output is made from it.

use crate::SimTime;
use crate::by_launch::{LaunchTotals, Unreported};
use crate::context::ProcessId;
use crate::cuda::LaunchId;
use crate::detail::Detail;
use crate::kernel_records::KernelRecords;
use crate::ranges::RangePath;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// One counter as a unit declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatisticDefinition {
    /// Its name, the same everywhere.
    pub name: &'static str,
    /// Its unit of measure: "instruction", "cycle", "byte", "sector", "message".
    pub unit: &'static str,
    /// One line of meaning.
    pub meaning: &'static str,
    /// Is it the greatest value of something? Then several are not added up: their greatest is taken.
    pub maximum: bool,
}

/// One row of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticRow {
    /// Path of the unit, or of a part of it: "gpu.sm\[3\]".
    pub location: String,
    /// Name of the counter.
    pub what: &'static str,
    /// Its value.
    pub value: u64,
    /// Its unit of measure.
    pub unit: &'static str,
    /// As [`StatisticDefinition::maximum`].
    pub maximum: bool,
}

/// What a kernel launch did, as the CTA scheduler saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRecord {
    /// The launch.
    pub launch: LaunchId,
    /// The process that launched it.
    pub process: ProcessId,
    /// The kernel's name.
    pub name: Arc<str>,
    /// Its stream.
    pub stream: u32,
    /// Path of the GPU it ran on.
    pub gpu: Arc<str>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Shared memory of a CTA, bytes.
    pub shared_bytes: u32,
    /// How closely it was simulated.
    pub detail: Detail,
    /// Its process was between `cudaProfilerStart` and `cudaProfilerStop`.
    pub is_profiled: bool,
    /// The innermost named range that the thread was in that launched it, or the kernel that did.
    pub range: Option<RangePath>,
    /// The launch whose kernel has launched it, where no host has.
    pub parent: Option<LaunchId>,
    /// When the scheduler started it, ps. Of a launch that was not timed this tells the order alone.
    pub start_ps: u64,
    /// When its last CTA ended, ps; of a launch that was still running at the end of the run, that end. Of a launch that was not timed
    /// this tells the order alone.
    pub end_ps: u64,
    /// SM-clock cycles from start to end; 0 of a launch that was not timed.
    pub cycles: u64,
    /// Did it end as it should?
    pub completed: bool,
    /// Sums over its CTAs; of a launch that did not run to its end, over those that had begun by then.
    pub counters: KernelCounters,
    /// Of these CTAs, those that have not run to their end.
    pub ctas_unfinished: u64,
}

/// Whether the simulated program's result is right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verification {
    /// The program has no check, or did not get as far.
    #[default]
    NotChecked,
    /// The result equals the host's computation.
    Passed,
    /// It does not; the text says where.
    Failed(String),
}

impl Verification {
    /// `true` and `false` where the result was checked, as the result format has it.
    pub fn verified(&self) -> Option<bool> {
        match self {
            Verification::NotChecked => None,
            Verification::Passed => Some(true),
            Verification::Failed(_) => Some(false),
        }
    }
}

/// How the simulated program ended, as the host CPU saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramOutcome {
    /// Did the program reach its end?
    pub finished: bool,
    /// Is its result right?
    pub verification: Verification,
    /// The error that ended it: a CUDA error with its cause.
    pub error: Option<String>,
    /// Values the program reports of itself: (name, value, unit).
    pub results: Vec<(String, f64, String)>,
    /// What its kernels printed and the host has taken.
    pub printed: Vec<u8>,
    /// Launches that CUDA refused, so that no kernel began.
    pub launches_refused: u64,
    /// The first of them, and why.
    pub first_refused: Option<String>,
}

/// A field of a [`DataTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A number.
    Number(u64),
    /// A word.
    Word(&'static str),
    /// One of a row: "gpu\[1\]".
    Member(&'static str, u32),
    /// An address, written in hexadecimal.
    Address(u64),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Number(number) => number.fmt(f),
            Field::Word(word) => word.fmt(f),
            Field::Member(row, index) => write!(f, "{row}[{index}]"),
            Field::Address(address) => write!(f, "{address:#x}"),
        }
    }
}

/// What a unit has recorded beside its counters, line by line: with `--output`, a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataTable {
    /// The unit and what it is a table of, as the file is called: "unified_memory_transfers".
    pub name: String,
    /// What stands in each line.
    pub columns: &'static [&'static str],
    /// The lines.
    pub lines: Vec<Vec<Field>>,
}

/// Where units write their statistics to. Zeros are written too.
///
/// In the middle of a run it takes [`numbers`](Self::of_numbers) alone: what would be rows are values in the same order, and no name is
/// built for any of them.
#[derive(Debug, Default)]
pub struct StatisticSink {
    location: String,
    /// Rows in the order of writing.
    pub rows: Vec<StatisticRow>,
    /// The values of rows, where names are not wanted.
    numbers: Option<Vec<u64>>,
    /// Kernel launches, of every GPU.
    pub kernels: KernelRecords,
    /// What units count of launches.
    pub shares: LaunchTotals,
    /// What CTAs did of which the CTA schedulers have not heard.
    pub unreported: Vec<Unreported>,
    /// How the simulated program ended.
    pub outcome: Option<ProgramOutcome>,
    /// What units have recorded line by line.
    pub tables: Vec<DataTable>,
    /// Simulated time at which it is asked: everything before it has happened, and nothing after it. What has not ended by itself counts
    /// up to then.
    pub now: SimTime,
}

impl StatisticSink {
    /// One that takes the values of rows at a time, without their names, into a buffer that is reused.
    pub fn of_numbers(now: SimTime, mut buffer: Vec<u64>) -> StatisticSink {
        buffer.clear();
        StatisticSink { now, numbers: Some(buffer), ..StatisticSink::default() }
    }

    /// The values that have been written, of a sink that takes numbers alone.
    pub fn into_numbers(self) -> Vec<u64> {
        self.numbers.unwrap_or_default()
    }

    /// How many values have been written, to a sink that takes numbers alone.
    pub fn numbers_written(&self) -> usize {
        self.numbers.as_ref().map_or(0, Vec::len)
    }

    /// Rows that follow belong to `location`. The engine calls it with each unit's path.
    pub fn set_location(&mut self, location: &str) {
        self.location.clear();
        self.location.push_str(location);
    }

    /// The location rows are written for.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Adds a row for the unit itself.
    pub fn row(&mut self, definition: &StatisticDefinition, value: u64) {
        if let Some(numbers) = &mut self.numbers {
            return numbers.push(value);
        }
        let location = self.location.clone();
        let StatisticDefinition { name: what, unit, maximum, .. } = *definition;
        self.rows.push(StatisticRow { location, what, value, unit, maximum });
    }

    /// Adds a table of the unit; its name begins with the unit's.
    pub fn table(&mut self, name: &str, columns: &'static [&'static str], lines: Vec<Vec<Field>>) {
        let name = format!("{}_{name}", self.location.replace(['.', '['], "_").replace(']', ""));
        self.tables.push(DataTable { name, columns, lines });
    }

    /// Adds a row for a part of the unit: "channel\[2\]".
    pub fn row_of(&mut self, part: impl fmt::Display, definition: &StatisticDefinition, value: u64) {
        if let Some(numbers) = &mut self.numbers {
            return numbers.push(value);
        }
        let location = format!("{}.{part}", self.location);
        let StatisticDefinition { name: what, unit, maximum, .. } = *definition;
        self.rows.push(StatisticRow { location, what, value, unit, maximum });
    }

    /// Takes the values of a set of counters where names are not wanted. False where they are.
    #[inline]
    pub fn takes_numbers(&mut self, values: &[u64]) -> bool {
        let Some(numbers) = &mut self.numbers else { return false };
        numbers.extend_from_slice(values);
        true
    }
}

/// A struct of counters that [`counters!`](crate::counters) declares, for code that does not know which.
pub trait CounterSet: Default {
    /// The counters in the order of declaration.
    const DEFINITIONS: &'static [StatisticDefinition];

    /// Writes every counter, zeros included, for the unit itself.
    fn write(&self, sink: &mut StatisticSink);
}

/// Declares a struct of `u64` counters with their units and meanings. A counter that is the greatest value of something says
/// `maximum` after its unit: it is not added to others, but the greatest of them is taken.
///
/// ```
/// balar_protocol::counters! {
///     /// What a queue counts.
///     pub struct QueueCounters {
///         /// entries taken in
///         entries: "entry",
///         /// most entries at once
///         length_maximum: "entry" maximum,
///     }
/// }
/// let mut counters = QueueCounters::default();
/// counters.entries += 1;
/// assert_eq!(QueueCounters::DEFINITIONS[0].meaning, "entries taken in");
/// counters.length_maximum = 3;
/// counters.add(&QueueCounters { entries: 4, length_maximum: 2 });
/// assert_eq!((counters.entries, counters.length_maximum), (5, 3));
/// ```
#[macro_export]
macro_rules! counters {
    (@is_maximum) => { false };
    (@is_maximum maximum) => { true };
    (@add $to:expr, $from:expr) => { $to += $from };
    (@add $to:expr, $from:expr, maximum) => { $to = $to.max($from) };
    (
        $(#[doc = $about:expr])*
        $visibility:vis struct $name:ident {
            $( #[doc = $meaning:expr] $counter:ident : $unit:literal $($maximum:ident)? ),* $(,)?
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, $crate::serde::Serialize, $crate::serde::Deserialize)]
        #[serde(crate = "balar_protocol::serde")]
        $visibility struct $name {
            $( #[doc = $meaning] pub $counter: u64, )*
        }

        impl $name {
            /// The counters in the order of declaration.
            pub const DEFINITIONS: &'static [$crate::statistics::StatisticDefinition] = &[
                $( $crate::statistics::StatisticDefinition {
                    name: stringify!($counter),
                    unit: $unit,
                    meaning: $meaning.trim_ascii(),
                    maximum: $crate::counters!(@is_maximum $($maximum)?),
                }, )*
            ];

            /// The values in the order of declaration.
            pub fn values(&self) -> impl Iterator<Item = u64> {
                self.to_array().into_iter()
            }

            /// The counters with these values, in the order of declaration.
            pub fn of_values(values: impl IntoIterator<Item = u64>) -> Self {
                let mut values = values.into_iter();
                Self { $( $counter: values.next().unwrap_or_default(), )* }
            }

            /// All values, in the order of declaration.
            #[inline]
            pub fn to_array(&self) -> [u64; Self::DEFINITIONS.len()] {
                [$( self.$counter ),*]
            }

            /// The counters with these values, in the order of declaration.
            #[inline]
            pub fn of_array(values: [u64; Self::DEFINITIONS.len()]) -> Self {
                let [$( $counter ),*] = values;
                Self { $( $counter ),* }
            }

            /// Writes every counter, zeros included, for the unit itself.
            pub fn write(&self, sink: &mut $crate::statistics::StatisticSink) {
                if sink.takes_numbers(&self.to_array()) {
                    return;
                }
                for (definition, value) in Self::DEFINITIONS.iter().zip(self.values()) {
                    sink.row(definition, value);
                }
            }

            /// Writes every counter, zeros included, for a part of the unit.
            pub fn write_of(&self, part: impl std::fmt::Display, sink: &mut $crate::statistics::StatisticSink) {
                if sink.takes_numbers(&self.to_array()) {
                    return;
                }
                for (definition, value) in Self::DEFINITIONS.iter().zip(self.values()) {
                    sink.row_of(&part, definition, value);
                }
            }

            /// Adds the other's counts to this one's; of maxima, the greater is kept.
            pub fn add(&mut self, other: &Self) {
                $( $crate::counters!(@add self.$counter, other.$counter $(, $maximum)?); )*
            }
        }

        impl $crate::statistics::CounterSet for $name {
            const DEFINITIONS: &'static [$crate::statistics::StatisticDefinition] = $name::DEFINITIONS;

            fn write(&self, sink: &mut $crate::statistics::StatisticSink) {
                $name::write(self, sink);
            }
        }
    };
}

counters! {
    /// What the CTAs of a kernel did, summed over its warps; an SM keeps the same counters over all kernels.
    pub struct CtaCounters {
        /// warps started
        warps_launched: "warp",
        /// CTAs started
        ctas_launched: "CTA",
        /// warp instructions executed
        inst_executed: "instruction",
        /// thread instructions executed, lanes inside the active mask
        thread_inst_executed: "instruction",
        /// thread instructions executed whose guard was true
        thread_inst_executed_pred_on: "instruction",
        /// integer thread instructions
        inst_integer: "instruction",
        /// single-precision additions by threads
        flop_sp_add: "operation",
        /// single-precision multiplications by threads
        flop_sp_mul: "operation",
        /// single-precision fused multiply-adds by threads (one each)
        flop_sp_fma: "operation",
        /// double-precision additions by threads
        flop_dp_add: "operation",
        /// double-precision multiplications by threads
        flop_dp_mul: "operation",
        /// double-precision fused multiply-adds by threads (one each)
        flop_dp_fma: "operation",
        /// half-precision operations by threads
        flop_hp: "operation",
        /// thread instructions that convert between types
        inst_bit_convert: "instruction",
        /// control-flow warp instructions
        inst_control: "instruction",
        /// branches whose active threads all went the same way
        branches_uniform: "instruction",
        /// branches whose active threads parted
        branches_divergent: "instruction",
        /// warp instructions that load from global memory
        inst_global_loads: "instruction",
        /// warp instructions that store to global memory
        inst_global_stores: "instruction",
        /// warp instructions that load from shared memory
        inst_shared_loads: "instruction",
        /// warp instructions that store to shared memory
        inst_shared_stores: "instruction",
        /// warp instructions that load from local memory
        inst_local_loads: "instruction",
        /// warp instructions that store to local memory
        inst_local_stores: "instruction",
        /// atomics that return a value
        inst_atomics: "instruction",
        /// atomics that return nothing
        inst_reductions: "instruction",
        /// barriers that warps arrived at
        inst_barriers: "instruction",
        /// shared-memory wavefronts of loads
        shared_wavefronts_load: "wavefront",
        /// shared-memory wavefronts of stores
        shared_wavefronts_store: "wavefront",
        /// shared-memory wavefronts beyond the least possible
        shared_memory_bank_conflicts: "wavefront",
        /// sectors that global loads asked L1 for
        l1_sectors_load: "sector",
        /// sectors that global stores sent through L1
        l1_sectors_store: "sector",
        /// sectors of loads that hit in L1
        l1_sector_hits_load: "sector",
        /// sectors of loads that this SM asked the L2 for
        l2_sectors_load: "sector",
        /// sectors of loads that hit in L2, those on their way for another request included
        l2_sector_hits_load: "sector",
        /// of the sectors that the L2 fetched from device memory for loads, neighbours that were not asked for
        dram_sectors_promoted: "sector",
    }
}

counters! {
    /// What units count of a launch beside what its CTAs do: where the cycles of its warps go, and what its requests do in the L2, the
    /// crossbar and the memory of its GPU. The latter have the names that the units give them, after `l2_`, `crossbar_` and `dram_`. What a
    /// line costs when it is replaced is charged to the launch whose request takes its place.
    pub struct UnitCounters {
        /// cycles with at least one of its warps resident, summed over SMs
        cycles_active: "cycle",
        /// warp-cycles: its resident warps summed over cycles
        warp_cycles_active: "warp-cycle",
        /// warp instructions issued by the schedulers
        inst_issued: "instruction",
        /// warp-cycles in which the warp issued
        stall_none_selected: "warp-cycle",
        /// warp-cycles ready to issue while the scheduler chose another warp
        stall_not_selected: "warp-cycle",
        /// warp-cycles waiting for a fixed-latency result
        stall_wait: "warp-cycle",
        /// warp-cycles waiting for global or local memory
        stall_long_scoreboard: "warp-cycle",
        /// warp-cycles waiting for shared memory or an exchange between lanes
        stall_short_scoreboard: "warp-cycle",
        /// warp-cycles waiting at a CTA barrier
        stall_barrier: "warp-cycle",
        /// warp-cycles waiting at a memory fence
        stall_membar: "warp-cycle",
        /// warp-cycles waiting for an arithmetic pipe
        stall_math_pipe_throttle: "warp-cycle",
        /// warp-cycles waiting for room in the memory pipe
        stall_lg_throttle: "warp-cycle",
        /// warp-cycles waiting for a branch to resolve
        stall_branch_resolve: "warp-cycle",
        /// warp-cycles after the last instruction, waiting for outstanding stores
        stall_drain: "warp-cycle",
        /// warp-cycles asleep
        stall_sleeping: "warp-cycle",
        /// warp-cycles from a CTA's arrival to its first instruction, and waiting for code
        stall_no_instruction: "warp-cycle",
        /// warp-cycles waiting for a constant operand that was not in the constant cache
        stall_imc_miss: "warp-cycle",
        /// requests that L2 slices took
        l2_requests: "request",
        /// sectors that loads asked the L2 for, those of code and constants included
        l2_sectors_read: "sector",
        /// sectors of these that were in the L2 or on their way there
        l2_sector_hits_read: "sector",
        /// sectors that stores wrote to the L2; each is a hit, as nothing is fetched for it
        l2_sectors_written: "sector",
        /// sectors that atomics and reductions touched in the L2
        l2_sectors_atomic: "sector",
        /// sectors of atomics and reductions that were in the L2 or on their way there
        l2_sector_hits_atomic: "sector",
        /// requests to the L2 that were atomics
        l2_atomics: "request",
        /// requests to the L2 that were reductions
        l2_reductions: "request",
        /// data bytes between the crossbar and the L2
        l2_bytes: "byte",
        /// cycles that data arrays of the L2 were busy
        l2_data_busy_cycles: "cycle",
        /// dirty sectors that left the L2 for device memory
        l2_sectors_written_back: "sector",
        /// packets from SMs to L2 slices
        crossbar_packets_request: "packet",
        /// packets from L2 slices to SMs
        crossbar_packets_response: "packet",
        /// flits from SMs to L2 slices
        crossbar_flits_request: "flit",
        /// flits from L2 slices to SMs
        crossbar_flits_response: "flit",
        /// sectors read from device memory
        dram_sectors_read: "sector",
        /// sectors written to device memory
        dram_sectors_written: "sector",
        /// time that data buses of device memory carried data
        dram_busy_time: "ps",
        /// requests to device memory that found their row open
        dram_row_hits: "request",
        /// requests to device memory whose bank had no row open
        dram_row_misses: "request",
        /// requests to device memory whose bank had another row open
        dram_row_conflicts: "request",
        /// requests to device memory that read
        dram_requests_read: "request",
        /// time from arrival of a load at device memory to its response, summed over loads
        dram_latency_read: "ps",
    }
}

/// What is counted of a launch: its CTAs' counters, then the units'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounters {
    /// What its CTAs did.
    pub ctas: CtaCounters,
    /// What units counted of its requests.
    pub units: UnitCounters,
}

const OF_CTAS: usize = CtaCounters::DEFINITIONS.len();
const OF_UNITS: usize = UnitCounters::DEFINITIONS.len();

impl KernelCounters {
    /// The counters in order.
    pub const DEFINITIONS: &'static [StatisticDefinition] = &{
        let mut all = [CtaCounters::DEFINITIONS[0]; OF_CTAS + OF_UNITS];
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < OF_CTAS { CtaCounters::DEFINITIONS[at] } else { UnitCounters::DEFINITIONS[at - OF_CTAS] };
            at += 1;
        }
        all
    };

    /// The values, in the order of the definitions.
    pub fn values(&self) -> impl Iterator<Item = u64> {
        self.ctas.values().chain(self.units.values())
    }

    /// The counters with these values, in the order of the definitions.
    pub fn of_values(values: impl IntoIterator<Item = u64>) -> KernelCounters {
        let mut values = values.into_iter();
        KernelCounters { ctas: CtaCounters::of_values(values.by_ref()), units: UnitCounters::of_values(values) }
    }

    /// Adds the other's counts to these.
    pub fn add(&mut self, other: &KernelCounters) {
        self.ctas.add(&other.ctas);
        self.units.add(&other.units);
    }

    /// Whether the counter of this name is absent from launches that are not timed: what instructions ask of caches and of the banks of shared
    /// memory is found only where these are simulated.
    pub fn needs_timing(name: &str) -> bool {
        Self::DEFINITIONS.iter().skip(Self::first_of_timing()).any(|definition| definition.name == name)
    }

    /// Where the counters begin that need timing.
    fn first_of_timing() -> usize {
        Self::DEFINITIONS.iter().position(|definition| definition.name == "shared_wavefronts_load").unwrap_or(0)
    }
}

impl KernelRecord {
    /// Picoseconds from start to end; `None` of a launch that was not timed.
    pub fn duration_ps(&self) -> Option<u64> {
        self.detail.is_timed().then(|| self.end_ps.saturating_sub(self.start_ps))
    }

    /// SM-clock cycles from start to end; `None` of a launch that was not timed.
    pub fn timed_cycles(&self) -> Option<u64> {
        self.detail.is_timed().then_some(self.cycles)
    }

    /// The values of the counters in the order of their definitions; `None` of those that a launch which was not timed does not have.
    pub fn known_counters(&self) -> impl Iterator<Item = Option<u64>> {
        let known = if self.detail.is_timed() { usize::MAX } else { KernelCounters::first_of_timing() };
        self.counters.values().enumerate().map(move |(at, value)| (at < known).then_some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_timing_is_known_of_every_launch() {
        let needs =
            ["l1_sectors_load", "shared_wavefronts_load", "shared_memory_bank_conflicts", "dram_sectors_promoted"];
        assert!(needs.into_iter().all(KernelCounters::needs_timing));
        let others = ["warps_launched", "inst_executed", "flop_sp_fma", "inst_global_loads", "inst_barriers"];
        assert!(!others.into_iter().any(KernelCounters::needs_timing));
    }

    #[test]
    fn zeros_are_written() {
        let mut sink = StatisticSink::default();
        sink.set_location("gpu.sm[0]");
        CtaCounters::default().write(&mut sink);
        assert_eq!(sink.rows.len(), CtaCounters::DEFINITIONS.len());
        assert_eq!(sink.rows[2].what, "inst_executed");
        assert_eq!(sink.rows[2].location, "gpu.sm[0]");
        assert_eq!(sink.rows[2].value, 0);
    }

    #[test]
    fn numbers_are_the_values_of_the_rows() {
        let counters = CtaCounters { warps_launched: 3, ..Default::default() };
        let write = |sink: &mut StatisticSink| {
            counters.write(sink);
            counters.write_of(format_args!("channel[{}]", 2), sink);
            sink.row(&CtaCounters::DEFINITIONS[0], 7);
            sink.row_of("bank", &CtaCounters::DEFINITIONS[0], 8);
        };
        let mut rows = StatisticSink::default();
        write(&mut rows);
        let mut numbers = StatisticSink::of_numbers(SimTime(5), vec![9; 3]);
        write(&mut numbers);
        assert!(numbers.rows.is_empty());
        assert_eq!(numbers.numbers_written(), rows.rows.len());
        assert_eq!(numbers.into_numbers(), rows.rows.iter().map(|row| row.value).collect::<Vec<_>>());
    }

    #[test]
    fn parts_have_their_own_location() {
        let mut sink = StatisticSink::default();
        sink.set_location("gpu.hbm[1]");
        let counters = CtaCounters { warps_launched: 3, ..Default::default() };
        counters.write_of("channel[2]", &mut sink);
        assert_eq!((sink.rows[0].location.as_str(), sink.rows[0].value), ("gpu.hbm[1].channel[2]", 3));
    }
}
