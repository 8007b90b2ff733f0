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

/// Launches of a kernel that an SM has room for alike, in a row of the table.
struct Alike {
    /// The first of them.
    first: KernelRecord,
    launches: u64,
    /// The occupancy that was achieved, the least and the most of any of them.
    achieved: Option<(f64, f64)>,
    /// What lets no more CTAs in: grids may differ.
    limits: Vec<&'static str>,
}

/// Does an SM have room alike for CTAs of both launches? `with_grid`: and are their grids of one size?
fn are_alike(one: &KernelRecord, other: &KernelRecord, with_grid: bool) -> bool {
    let of_cta = |launch: &KernelRecord| (launch.block, launch.registers_per_thread, launch.shared_bytes);
    let ctas = |launch: &KernelRecord| launch.grid.map(u64::from).iter().product::<u64>();
    let is_same_kernel = one.name == other.name && one.gpu == other.gpu;
    is_same_kernel && of_cta(one) == of_cta(other) && (!with_grid || ctas(one) == ctas(other))
}

/// A row for each kernel, with what its launches achieved together and each; where a single kernel is chosen, for each size of its grid.
fn occupancy(record: &RunRecord, measured: &Measurement, width: Option<u16>) -> String {
    let first = record.launches().first();
    let is_single = record.chosen_launches.is_some()
        && record.launches().iter().all(|launch| first.as_ref().is_some_and(|first| first.name == launch.name));
    let metric = find("sm.occupancy").first().map(|choice| choice.metric);
    let mut seen: Vec<Alike> = Vec::new();
    for launch in record.launches().iter() {
        let Some(room) = room_for(record, &launch) else { continue };
        let limit = room.limit().name();
        let achieved = metric.and_then(|metric| measured.of_launch(metric, &launch)).map(Value::real);
        match seen.iter_mut().find(|known| are_alike(&known.first, &launch, is_single)) {
            Some(known) => {
                known.launches += 1;
                if let Some(achieved) = achieved {
                    let (least, most) = known.achieved.unwrap_or((achieved, achieved));
                    known.achieved = Some((least.min(achieved), most.max(achieved)));
                }
                if !known.limits.contains(&limit) {
                    known.limits.push(limit);
                }
            }
            None => {
                let achieved = achieved.map(|achieved| (achieved, achieved));
                seen.push(Alike { first: launch, launches: 1, achieved, limits: vec![limit] });
            }
        }
    }
    let rows = seen.iter().filter_map(|alike| {
        let room = room_for(record, &alike.first)?;
        let ctas = |ctas: u32| if ctas == u32::MAX { "-".to_owned() } else { ctas.to_string() };
        let own = record.launches().iter().filter(|launch| are_alike(&alike.first, launch, is_single));
        let together = metric.and_then(|metric| measured.over_launches(metric, own)).map(Value::real);
        Some(vec![
            percent(Some(100.0 * f64::from(room.warps()) / f64::from(room.warps_of_sm))),
            with_range(together, alike.achieved),
            room.warps().to_string(),
            ctas(room.by_registers),
            ctas(room.by_shared_memory),
            ctas(room.by_warps),
            ctas(room.by_ctas),
            alike.limits.join(", "),
            alike.launches.to_string(),
            short_name(&alike.first.name),
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

/// What an SM of its GPU has room for of a launch.
fn room_for(record: &RunRecord, launch: &KernelRecord) -> Option<Occupancy> {
    let gpu = record.node.gpus().iter().find(|gpu| *gpu.part == *launch.gpu)?;
    Some(Occupancy::of(launch, &gpu.smallest_sm()?, gpu.sm_count()))
}

/// A percentage over several launches, with the least and the most of any of them where these are not the same.
fn with_range(together: Option<f64>, range: Option<(f64, f64)>) -> String {
    let all = percent(together);
    match range.map(|(least, most)| (percent(Some(least)), percent(Some(most)))) {
        Some((least, most)) if least != most => format!("{all} ({least} to {most})"),
        _ => all,
    }
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
    use balar_record::metrics::node_facts::NodeFacts;

    /// Two launches of lud_diagonal, whose grids differ, and one of lud_internal. 8 CTAs leave most of the 84 SMs of a V100 without one; of
    /// 2000 an SM has as many as its registers let in: 65536 for CTAs of 256 threads with 32 registers each.
    #[test]
    fn occupancy_has_a_row_for_each_kernel() {
        let mut record = balar_record::sample::record();
        record.node = NodeFacts::of(&balar_record::sample::node("v100_node"));
        let mut launches: Vec<KernelRecord> = record.statistics.kernels.iter().collect();
        launches[2].grid = [1000, 2, 1];
        // 8 and 16 of 64 warp slots in 100 and 300 cycles: together 5600 of 25600.
        for (launch, cycles, warps) in [(0, 100, 8), (2, 300, 16)] {
            let units = &mut launches[launch].counters.units;
            (units.cycles_active, units.warp_cycles_active) = (cycles, cycles * warps);
        }
        record.statistics.kernels = launches.iter().cloned().collect();
        let of = |record: &RunRecord| occupancy(record, &record.measurement(), None);
        let rows = |text: &str, kernel: &str| -> Vec<String> {
            let of_kernel = text.lines().filter(|line| line.ends_with(kernel));
            of_kernel.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let text = of(&record);
        let [diagonal] = &rows(&text, "lud_diagonal")[..] else { panic!("one row: {text}") };
        assert!(diagonal.starts_with("100.0 21.9 (12.5 to 25.0) 64 8 "), "{text}");
        assert!(diagonal.contains(" grid, registers 2 "), "{text}");
        assert_eq!(rows(&text, "lud_internal").len(), 1, "{text}");
        // Of a kernel that is chosen each size of the grid is told.
        record.chosen_launches = Some([0, 2].map(|launch| launches[launch].clone()).into_iter().collect());
        let text = of(&record);
        let [small, large] = &rows(&text, "lud_diagonal")[..] else { panic!("two rows: {text}") };
        assert!(small.starts_with("100.0 12.5 64 8 ") && small.contains(" grid 1 "), "{text}");
        assert!(large.starts_with("100.0 25.0 64 8 ") && large.contains(" registers 1 "), "{text}");
    }

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
