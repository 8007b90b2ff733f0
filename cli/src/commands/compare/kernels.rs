//! Kernels side by side: all launches of a name together, and launch by launch.

use super::pair::Pair;
use balar_record::run_folder::RunFolder;
use balar_record::run_folder::document::{Launch, RunDocument};
use balar_record::run_folder::instructions::{ISSUE, InstructionProfile, STALL};
use serde::Serialize;
use std::collections::BTreeMap;

/// Where warps spent their cycles, by reason; "issued" where they issued.
pub type Stalls = Vec<(String, Pair<u64>)>;

/// A kernel in both runs.
#[derive(Debug)]
pub struct KernelPair {
    /// Its name, as the code has it.
    pub name: String,
    /// Launches.
    pub calls: Pair<u64>,
    /// Time of all launches, ps; `None` where that of one was not simulated.
    pub time: Pair<Option<u64>>,
    /// SM-clock cycles of all launches, likewise.
    pub cycles: Pair<Option<u64>>,
    /// What its launches did, where that differs, the greatest relative change first.
    pub figures: Vec<Figure>,
    /// Where its warps spent their cycles, the greatest change first; `None` where a run has not counted by instruction.
    pub stalls: Option<Stalls>,
}

/// Something that is known of the launches of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// Its unit of measure.
    pub unit: &'static str,
    /// Its values.
    #[serde(flatten)]
    pub values: Pair<f64>,
}

impl Figure {
    /// How much it changed, of the greater of the two.
    pub fn relative_change(&self) -> f64 {
        let Pair { before, after } = self.values;
        let greatest = before.abs().max(after.abs());
        if greatest == 0.0 { 0.0 } else { (after - before).abs() / greatest }
    }
}

impl KernelPair {
    /// Did the same happen in both?
    pub fn is_alike(&self) -> bool {
        self.calls.before == self.calls.after
            && self.time.before == self.time.after
            && self.cycles.before == self.cycles.after
            && self.figures.is_empty()
            && self.stalls.iter().flatten().all(|(_, cycles)| cycles.before == cycles.after)
    }
}

/// A launch in both runs: the same of its kernel's launches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchPair {
    /// The kernel.
    pub name: String,
    /// Which of its launches, from 0.
    pub ordinal: usize,
    /// The number of the launch in the run.
    pub launch: Pair<u64>,
    /// Its time, ps; `None` where that was not simulated.
    pub time_ps: Pair<Option<u64>>,
    /// Its SM-clock cycles.
    pub cycles: Pair<Option<u64>>,
    /// Is it launched in the same way, with the same counters?
    pub same_work: bool,
}

impl LaunchPair {
    /// Did the same happen in both?
    pub fn is_alike(&self) -> bool {
        self.time_ps.before == self.time_ps.after && self.cycles.before == self.cycles.after && self.same_work
    }
}

/// All launches of a kernel in a run.
#[derive(Default)]
pub struct LaunchSums {
    /// Launches.
    pub calls: u64,
    /// Their time, ps; `None` where that of one was not simulated.
    pub time: Option<u64>,
    /// Their SM-clock cycles, likewise.
    pub cycles: Option<u64>,
    counters: BTreeMap<&'static str, Option<u64>>,
    threads: u64,
    registers: Option<u64>,
    shared: Option<u64>,
}

impl LaunchSums {
    /// Those of launches.
    pub fn of(launches: &[&Launch]) -> LaunchSums {
        let sum = |of: &dyn Fn(&Launch) -> Option<u64>| {
            launches.iter().try_fold(0u64, |sum, launch| Some(sum.saturating_add(of(launch)?)))
        };
        let counters = balar_protocol::statistics::KernelCounters::DEFINITIONS.iter().map(|definition| {
            let value = sum(&|launch: &Launch| launch.counter(definition.name));
            (definition.name, value)
        });
        let timed = |value: Option<u64>, launch: &Launch| value.filter(|_| launch.is_timed());
        let product = |[x, y, z]: [u32; 3]| u64::from(x).saturating_mul(y.into()).saturating_mul(z.into());
        let threads = launches.iter().map(|launch| product(launch.grid).saturating_mul(product(launch.block)));
        LaunchSums {
            calls: launches.len() as u64,
            time: sum(&|launch| timed(launch.time_ps, launch)),
            cycles: sum(&|launch| timed(launch.cycles, launch)),
            counters: counters.collect(),
            threads: threads.fold(0, u64::saturating_add),
            registers: launches.iter().filter_map(|launch| launch.registers_per_thread).max().map(u64::from),
            shared: launches.iter().filter_map(|launch| launch.shared_bytes).max().map(u64::from),
        }
    }

    /// A counter; `None` where the document of the run lacks it.
    pub fn counter(&self, name: &str) -> Option<f64> {
        self.counters.get(name).copied().flatten().map(|value| value as f64)
    }

    /// A quotient of counters.
    pub fn quotient(&self, part: &str, whole: &str) -> Option<f64> {
        let (part, whole) = (self.counter(part)?, self.counter(whole)?);
        (whole > 0.0).then(|| part / whole)
    }
}

/// What is looked at of the launches of a kernel, with its unit of measure.
type FigureDefinition = (&'static str, &'static str, fn(&LaunchSums) -> Option<f64>);

#[rustfmt::skip]
const FIGURES: &[FigureDefinition] = &[
    ("threads launched", "thread", |sums| Some(sums.threads as f64)),
    ("registers per thread", "register", |sums| sums.registers.map(|value| value as f64)),
    ("shared memory per CTA", "byte", |sums| sums.shared.map(|value| value as f64)),
    ("warps launched", "warp", |sums| sums.counter("warps_launched")),
    ("warp instructions", "instruction", |sums| sums.counter("inst_executed")),
    ("warp instructions per cycle", "instruction/cycle", |sums| {
        let cycles = sums.cycles.filter(|cycles| *cycles > 0)?;
        Some(sums.counter("inst_executed")? / cycles as f64)
    }),
    ("lanes per warp instruction", "lane", |sums| sums.quotient("thread_inst_executed", "inst_executed")),
    ("divergent branches", "instruction", |sums| sums.counter("branches_divergent")),
    ("L1 sectors of loads", "sector", |sums| sums.counter("l1_sectors_load")),
    ("L1 sectors of stores", "sector", |sums| sums.counter("l1_sectors_store")),
    ("sectors per global load", "sector", |sums| sums.quotient("l1_sectors_load", "inst_global_loads")),
    ("L1 hit rate of loads", "%", |sums| sums.quotient("l1_sector_hits_load", "l1_sectors_load").map(|rate| 100.0 * rate)),
    ("L2 sectors of loads", "sector", |sums| sums.counter("l2_sectors_load")),
    ("L2 hit rate of loads", "%", |sums| sums.quotient("l2_sector_hits_load", "l2_sectors_load").map(|rate| 100.0 * rate)),
    ("L2 sectors of stores", "sector", |sums| sums.counter("l2_sectors_written")),
    ("L2 sectors of atomics and reductions", "sector", |sums| sums.counter("l2_sectors_atomic")),
    ("sectors read from DRAM", "sector", |sums| sums.counter("dram_sectors_read")),
    ("sectors written to DRAM", "sector", |sums| sums.counter("dram_sectors_written")),
    ("achieved occupancy", "warp/SM", |sums| sums.quotient("warp_cycles_active", "cycles_active")),
    ("shared-memory wavefronts", "wavefront", |sums| {
        Some(sums.counter("shared_wavefronts_load")? + sums.counter("shared_wavefronts_store")?)
    }),
    ("shared-memory bank conflicts", "wavefront", |sums| sums.counter("shared_memory_bank_conflicts")),
    ("atomics and reductions", "instruction", |sums| Some(sums.counter("inst_atomics")? + sums.counter("inst_reductions")?)),
];

/// The launches of a run by kernel, in the order in which the kernels come.
fn by_name<'a>(run: &'a RunDocument, chosen: &impl Fn(&str) -> bool) -> Vec<(&'a str, Vec<&'a Launch>)> {
    let mut kernels: Vec<(&str, Vec<&Launch>)> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for launch in run.kernels.iter().filter(|launch| chosen(&launch.name)) {
        let index = *known.entry(&launch.name).or_insert_with(|| {
            kernels.push((&launch.name, Vec::new()));
            kernels.len() - 1
        });
        kernels[index].1.push(launch);
    }
    kernels
}

/// The kernels that both runs have, the greatest change of time first; and those that one alone has, with their calls.
pub fn pairs(
    runs: &Pair<RunFolder>,
    profiles: &Pair<Option<InstructionProfile>>,
    chosen: impl Fn(&str) -> bool,
) -> (Vec<KernelPair>, Pair<Vec<(String, u64)>>) {
    let before = by_name(&runs.before.document, &chosen);
    let after = by_name(&runs.after.document, &chosen);
    let calls = |(name, launches): &(&str, Vec<&Launch>)| ((*name).to_owned(), launches.len() as u64);
    let lacks = |kernels: &[(&str, Vec<&Launch>)], name: &str| !kernels.iter().any(|(other, _)| *other == name);
    let only = Pair {
        before: before.iter().filter(|(name, _)| lacks(&after, name)).map(calls).collect(),
        after: after.iter().filter(|(name, _)| lacks(&before, name)).map(calls).collect(),
    };
    let mut pairs: Vec<KernelPair> = before
        .iter()
        .filter_map(|(name, old)| {
            let (_, new) = after.iter().find(|(other, _)| other == name)?;
            let sums = Pair { before: LaunchSums::of(old), after: LaunchSums::of(new) };
            Some(pair(name, &sums, stalls(name, profiles)))
        })
        .collect();
    let change = |pair: &KernelPair| {
        let time = pair.time.before.zip(pair.time.after);
        time.map_or(0, |(before, after)| before.abs_diff(after))
    };
    // Those alike keep the order of their first launches.
    pairs.sort_by_key(|pair| std::cmp::Reverse(change(pair)));
    (pairs, only)
}

fn pair(name: &str, sums: &Pair<LaunchSums>, stalls: Option<Stalls>) -> KernelPair {
    let figures = FIGURES.iter().filter_map(|&(name, unit, of)| {
        let values = Pair { before: of(&sums.before)?, after: of(&sums.after)? };
        (values.before != values.after).then_some(Figure { name, unit, values })
    });
    let mut figures: Vec<Figure> = figures.collect();
    let cycles = Pair { before: sums.before.cycles, after: sums.after.cycles };
    figures.extend(stalls.as_ref().and_then(|stalls| resident_warps(stalls, cycles)));
    figures.sort_by(|a, b| b.relative_change().total_cmp(&a.relative_change()));
    KernelPair {
        name: name.to_owned(),
        calls: Pair { before: sums.before.calls, after: sums.after.calls },
        time: Pair { before: sums.before.time, after: sums.after.time },
        cycles: Pair { before: sums.before.cycles, after: sums.after.cycles },
        figures,
        stalls,
    }
}

/// How many warps were there on average: the cycles of all warps in a cycle of the kernel.
fn resident_warps(stalls: &Stalls, cycles: Pair<Option<u64>>) -> Option<Figure> {
    let of = |cycles: Option<u64>, warp_cycles: u64| {
        let cycles = cycles.filter(|cycles| *cycles > 0)?;
        Some(warp_cycles as f64 / cycles as f64)
    };
    let values = Pair {
        before: of(cycles.before, stalls.iter().map(|(_, cycles)| cycles.before).sum())?,
        after: of(cycles.after, stalls.iter().map(|(_, cycles)| cycles.after).sum())?,
    };
    (values.before != values.after).then_some(Figure { name: "resident warps", unit: "warp", values })
}

/// Where the warps of a kernel spent their cycles, the greatest change first.
fn stalls(kernel: &str, profiles: &Pair<Option<InstructionProfile>>) -> Option<Stalls> {
    let (before, after) = (profiles.before.as_ref()?, profiles.after.as_ref()?);
    let of = |profile: &InstructionProfile, name: &str| -> u64 {
        let Some(column) = profile.columns.iter().position(|column| column == name) else { return 0 };
        profile.rows.iter().filter(|row| row.kernel == kernel).map(|row| row.counts[column]).sum()
    };
    let names = before.columns.iter().filter(|name| name.starts_with(STALL));
    let stalls = names.map(|name| (reason(name), Pair { before: of(before, name), after: of(after, name) }));
    Some(ordered(stalls.collect()))
}

/// How a counter of cycles is called: by the reason of the stall, or "issued".
pub fn reason(counter: &str) -> String {
    if counter == ISSUE { "issued".to_owned() } else { counter[STALL.len()..].to_owned() }
}

/// The greatest change first; those alike keep their order. What is zero in both is left out.
pub fn ordered(mut stalls: Stalls) -> Stalls {
    stalls.retain(|(_, cycles)| cycles.before != 0 || cycles.after != 0);
    stalls.sort_by_key(|(_, cycles)| std::cmp::Reverse(cycles.before.abs_diff(cycles.after)));
    stalls
}

/// The launches of both runs, in the order of the first.
pub fn launches(documents: &Pair<&RunDocument>, chosen: impl Fn(&str) -> bool) -> Vec<LaunchPair> {
    let after: BTreeMap<&str, Vec<&Launch>> = by_name(documents.after, &chosen).into_iter().collect();
    let mut pairs: Vec<LaunchPair> = Vec::new();
    for (name, old) in by_name(documents.before, &chosen) {
        for (ordinal, (old, new)) in old.iter().zip(after.get(name).into_iter().flatten()).enumerate() {
            let names = balar_protocol::statistics::KernelCounters::DEFINITIONS.iter().map(|it| it.name);
            let counters = |launch: &Launch| names.clone().map(|name| launch.counter(name)).collect::<Vec<_>>();
            let shape = |launch: &Launch| (launch.grid, launch.block, launch.completed, launch.detail.clone());
            pairs.push(LaunchPair {
                name: name.to_owned(),
                ordinal,
                launch: Pair { before: old.launch, after: new.launch },
                time_ps: Pair { before: old.time_ps, after: new.time_ps },
                cycles: Pair { before: old.cycles, after: new.cycles },
                same_work: shape(old) == shape(new) && counters(old) == counters(new),
            });
        }
    }
    pairs.sort_by_key(|pair| pair.launch.before);
    pairs
}
