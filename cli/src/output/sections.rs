//! `--sections`: what is derived from counters, in the sections of Nsight Compute: speed of light, memory, occupancy, warp states.

use super::table::Lines;
use super::{kernel_table, memory_levels, summary};
use balar_protocol::statistics::KernelRecord;
use balar_record::kernel_name::short_name;
use balar_record::metrics::{METRICS, Measurement, Metric, Occupancy, Value, find};
use balar_record::result::RunRecord;

/// The head, the kernels, and the sections. `width` is the terminal's, where there is one.
pub fn text(record: &RunRecord, width: Option<u16>) -> String {
    let measured = record.measurement();
    let mut text = summary::head(record);
    for (title, table) in [
        ("Kernels", kernel_table::text(record, usize::MAX, true, width)),
        ("Speed of light", speed_of_light(record, &Values::of(record), width)),
        ("Memory", memory_levels::text(record, width)),
        ("Accesses", accesses(&Values::of(record), width)),
        ("Occupancy", occupancy(record, &measured, width)),
        ("Warp states", warp_states(&Values::of(record), width)),
    ] {
        text.push_str(&summary::section(title, &table));
    }
    text
}

/// Values of metrics over the chosen launches together; of what launches do not have, and where none was timed, over the whole node.
struct Values<'a> {
    record: &'a RunRecord,
    measured: Measurement<'a>,
}

impl Values<'_> {
    fn of(record: &RunRecord) -> Values<'_> {
        Values { record, measured: record.measurement() }
    }

    fn metric(&self, metric: &Metric) -> Option<Value> {
        let launches = self.record.launches();
        if metric.is_of_launches() && launches.iter().any(|launch| launch.detail.is_timed()) {
            return self.measured.over_launches(metric, launches.iter());
        }
        self.measured.total(metric)?.rolled_up(metric.usual_roll_up())
    }

    fn named(&self, name: &str) -> Option<Value> {
        self.metric(METRICS.iter().find(|metric| metric.name == name)?)
    }
}

fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1}"))
}

/// How much of what SMs and each level of memory can do at most was done.
fn speed_of_light(record: &RunRecord, values: &Values, width: Option<u16>) -> String {
    let Some(issued) = values.named("sm.issue_active_elapsed") else { return String::new() };
    let levels = memory_levels::shares_of_peak(record);
    // Levels that are measured over the run say nothing of kernels beside those that are measured over these.
    let any_in_kernels = levels.iter().any(|(_, _, in_kernels)| *in_kernels);
    let comparable = levels.iter().filter(|(_, _, in_kernels)| *in_kernels == any_in_kernels);
    let most = comparable.map(|(_, share, _)| *share).reduce(f64::max);
    let mut rows = vec![
        vec!["SM".to_owned(), percent(Some(issued.real())), "issue slots".to_owned(), "kernels".to_owned()],
        vec![
            "memory".to_owned(),
            percent(most),
            "the busiest level".to_owned(),
            if any_in_kernels { "kernels" } else { "run" }.to_owned(),
        ],
    ];
    let levels = levels.into_iter().map(|(name, share, in_kernels)| {
        vec![
            format!("  {name}"),
            percent(Some(share)),
            String::new(),
            if in_kernels { "kernels" } else { "run" }.to_owned(),
        ]
    });
    rows.extend(levels);
    let header = vec!["unit", "% of peak", "of", "measured over"];
    Lines { header, left: vec![0, 2, 3], droppable: vec![3, 2], elastic: Some(0), rows }.text(width)
}

/// Kinds of accesses: name, then the metrics of instructions, of sectors or wavefronts, of these for an instruction, of hits.
const ACCESSES: [[&str; 5]; 8] = [
    ["global loads", "sm.inst_global_ld", "l1.sectors_ld", "l1.sectors_per_req_ld", "l1.hit_rate"],
    ["global stores", "sm.inst_global_st", "l1.sectors_st", "l1.sectors_per_req_st", ""],
    ["local loads", "sm.inst_local_ld", "", "", ""],
    ["local stores", "sm.inst_local_st", "", "", ""],
    ["shared loads", "sm.inst_shared_ld", "smem.wavefronts_ld", "smem.wavefronts_per_ld", ""],
    ["shared stores", "sm.inst_shared_st", "smem.wavefronts_st", "smem.wavefronts_per_st", ""],
    ["atomics", "sm.inst_atom", "", "", ""],
    ["reductions", "sm.inst_red", "", "", ""],
];

/// What warps accessed, by kind.
fn accesses(values: &Values, width: Option<u16>) -> String {
    let cell = |name: &str, digits: usize| match values.named(name) {
        Some(Value::Count(count)) => count.to_string(),
        Some(Value::Real(real)) => format!("{real:.digits$}"),
        None => "-".to_owned(),
    };
    if values.named("sm.inst_global_ld").is_none() {
        return String::new();
    }
    let rows = ACCESSES.iter().map(|[name, instructions, sectors, each, hits]| {
        vec![(*name).to_owned(), cell(instructions, 0), cell(sectors, 0), cell(each, 2), cell(hits, 1)]
    });
    let header = vec!["access", "warp inst", "sectors or wavefronts", "for each inst", "L1 hit %"];
    let mut text = Lines { header, left: vec![0], droppable: vec![3], elastic: None, rows: rows.collect() }.text(width);
    text.push_str(&format!(" {} wavefronts were bank conflicts of shared memory\n", cell("smem.bank_conflicts", 0)));
    text
}

/// Launches that an SM has as much room for: one row for each.
fn occupancy(record: &RunRecord, measured: &Measurement, width: Option<u16>) -> String {
    let mut seen: Vec<(KernelRecord, u64)> = Vec::new();
    for launch in record.launches().iter() {
        let is_like = |known: &KernelRecord| {
            let of = |launch: &KernelRecord| {
                (
                    launch.block,
                    launch.registers_per_thread,
                    launch.shared_bytes,
                    launch.grid.map(u64::from).iter().product::<u64>(),
                )
            };
            known.name == launch.name && known.gpu == launch.gpu && of(known) == of(&launch)
        };
        match seen.iter_mut().find(|(known, _)| is_like(known)) {
            Some((_, count)) => *count += 1,
            None => seen.push((launch, 1)),
        }
    }
    let rows = seen.iter().filter_map(|(launch, count)| {
        let gpu = record.node.gpus().iter().find(|gpu| *gpu.part == *launch.gpu)?;
        let room = Occupancy::of(launch, &gpu.smallest_sm()?, gpu.sm_count());
        let ctas = |ctas: u32| if ctas == u32::MAX { "-".to_owned() } else { ctas.to_string() };
        let achieved = find("sm.occupancy").first().and_then(|choice| measured.of_launch(choice.metric, launch));
        Some(vec![
            percent(Some(100.0 * f64::from(room.warps()) / f64::from(room.warps_of_sm))),
            percent(achieved.map(Value::real)),
            room.warps().to_string(),
            ctas(room.by_registers),
            ctas(room.by_shared_memory),
            ctas(room.by_warps),
            ctas(room.by_ctas),
            room.limit().name().to_owned(),
            count.to_string(),
            short_name(&launch.name),
        ])
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = vec![
        "theoretical %",
        "achieved %",
        "warps/SM",
        "CTAs: registers",
        "shared memory",
        "warps",
        "slots",
        "limited by",
        "launches",
        "kernel",
    ];
    let table = Lines { header, left: vec![7, 9], droppable: vec![6, 5, 4, 3, 8], elastic: Some(9), rows };
    let all = percent(Values::of(record).named("sm.occupancy").map(Value::real));
    format!("{} achieved over these launches: {all} %\n", table.text(width))
}

/// The states of warps: metrics that are shares of the cycles of resident warps, of one counter each.
fn states() -> impl Iterator<Item = &'static Metric> {
    let of_one = |metric: &&Metric| metric.formula.counters().count() == 2;
    METRICS.iter().filter(|metric| metric.name.starts_with("stall.")).filter(of_one)
}

/// What warps did with their cycles: shares, which are 100 % together.
fn shares(values: &Values) -> Vec<(&'static Metric, f64)> {
    let share = |metric: &'static Metric| Some((metric, values.metric(metric)?.real()));
    let mut shares: Vec<(&Metric, f64)> = states().filter_map(share).collect();
    shares.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    shares
}

fn warp_states(values: &Values, width: Option<u16>) -> String {
    let shares = shares(values);
    if shares.is_empty() {
        return String::new();
    }
    let state = |metric: &Metric| metric.name.trim_start_matches("stall.").to_owned();
    let row =
        |(metric, share): &(&Metric, f64)| vec![state(metric), format!("{share:.2}"), metric.meaning().to_owned()];
    let mut rows: Vec<Vec<String>> = shares.iter().map(row).collect();
    let total: f64 = shares.iter().map(|(_, share)| share).sum();
    rows.push(vec!["together".to_owned(), format!("{total:.2}"), String::new()]);
    let header = vec!["state", "% of warp cycles", "what the warp did"];
    Lines { header, left: vec![0, 2], droppable: Vec::new(), elastic: Some(2), rows }.text(width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_actors::kinds::UNITS;

    /// Every cycle of a resident warp is charged to one of the counters that the states are made of.
    #[test]
    fn each_stall_counter_is_one_state() {
        let mut of_states: Vec<&str> = states().filter_map(|metric| metric.formula.counters().next()).collect();
        let counters = UNITS.iter().flat_map(|kind| kind.counters).map(|counter| (counter.name, counter.unit));
        let mut stalls: Vec<&str> = counters
            .filter(|(name, unit)| name.starts_with("stall_") && *unit == "warp-cycle")
            .map(|(name, _)| name)
            .collect();
        of_states.sort_unstable();
        stalls.sort_unstable();
        assert_eq!(of_states, stalls);
    }
}
