//! Memory that is too small: eviction policies with prefetchers, how times grow with oversubscription, and accesses from afar.

use super::common::{Compared, OF_UVMSMART, Part, STUDY_NODE};
use super::{Figures, program_named};
use crate::validation::agreement::{Agreement, error_percent};
use crate::validation::report::{Cell, Chart, Column, Report, Table};
use crate::validation::runs::{Point, Runs};
use crate::validation::{PartDescription, Selection};
use balar_charts::Panel;

pub(super) const PART: Part = Part {
    description: PartDescription {
        name: "evictions",
        summary: "times and pages thrashed in too little memory, by eviction policy, prefetcher and remote access, beside UVMSmart",
    },
    points,
    report,
};

/// An eviction policy, and the prefetcher once the memory has been too small; until then it is the tree's.
struct Policies {
    name: &'static str,
    eviction: &'static str,
    prefetcher: &'static str,
}

const POLICIES: [Policies; 5] = [
    Policies { name: "LRU 4K + on demand", eviction: "LeastRecentPage", prefetcher: "None" },
    Policies { name: "Random + Random", eviction: "RandomPage", prefetcher: "Random" },
    Policies { name: "SL + SL", eviction: "SequentialLocal", prefetcher: "SequentialLocal" },
    Policies { name: "Tree + Tree", eviction: "Tree", prefetcher: "Tree" },
    Policies { name: "LRU 2M + Tree", eviction: "LeastRecentBlock", prefetcher: "Tree" },
];

const TREE: &Policies = &POLICIES[3];

/// The figures in UVMSmart's logs of a program at 110 %: us and pages thrashed, by [`POLICIES`]; and us at 100, 110, 125 and 150 % with the
/// tree's policies.
struct Logged {
    program: &'static str,
    at_110: [Option<(f64, u32)>; 5],
    scaling: [f64; 4],
}

const LOGGED: [Logged; 4] = [
    Logged {
        program: "backprop",
        at_110: [Some((18_774.0, 0)), Some((15_536.0, 0)), Some((7688.0, 0)), Some((7374.0, 0)), Some((7321.0, 0))],
        scaling: [7321.0, 7374.0, 7462.0, 7398.0],
    },
    Logged {
        program: "bfs",
        at_110: [
            Some((254_615.0, 5366)),
            Some((104_885.0, 2352)),
            Some((22_925.0, 5952)),
            Some((11_780.0, 9152)),
            Some((12_865.0, 9760)),
        ],
        scaling: [3845.0, 11_780.0, 12_760.0, 17_086.0],
    },
    Logged {
        program: "FDTD-2D",
        at_110: [
            Some((280_049.0, 5639)),
            Some((200_118.0, 4220)),
            Some((24_880.0, 5936)),
            Some((18_214.0, 13_888)),
            Some((21_061.0, 13_888)),
        ],
        scaling: [4884.0, 18_214.0, 23_003.0, 32_911.0],
    },
    Logged {
        program: "hotspot",
        // The log of the first is lost.
        at_110: [None, Some((84_546.0, 1681)), Some((10_216.0, 1872)), Some((6563.0, 3072)), Some((6756.0, 3072))],
        scaling: [3398.0, 6563.0, 7655.0, 9173.0],
    },
];

/// The sizes of [`Logged::scaling`], percent of the memory that there is.
const SCALING: [u32; 4] = [100, 110, 125, 150];

/// UVMSmart's names of when reads stay remote, and ours.
const REMOTE: [(&str, &str); 4] =
    [("Disabled", "Off"), ("Adaptive", "Adaptive"), ("Always", "Always"), ("Oversub", "AfterOversubscription")];

/// us at 125 % with remote access by [`REMOTE`], the least frequent block evicted, a threshold of 8 and a penalty of 8. srad, whose managed
/// memory the study does not say, and sssp, whose runs are long, are left out.
const LOGGED_REMOTE: [(&str, [f64; 4]); 6] = [
    ("backprop", [7354.0, 7391.0, 7326.0, 7356.0]),
    ("FDTD-2D", [24_484.0, 24_672.0, 24_652.0, 24_611.0]),
    ("hotspot", [11_816.0, 11_842.0, 10_876.0, 11_752.0]),
    ("bfs", [12_442.0, 9731.0, 9972.0, 11_277.0]),
    ("nw", [68_999.0, 46_355.0, 69_342.0, 68_087.0]),
    ("ra", [33_693.0, 7336.0, 8212.0, 33_693.0]),
];

/// Managed memory of the study's programs, each allocation rounded up, KiB: its percentages refer to these sizes.
const FOOTPRINTS_KIB: [(&str, u64); 6] =
    [("backprop", 17_984), ("bfs", 9984), ("FDTD-2D", 18_496), ("hotspot", 12_288), ("nw", 8320), ("ra", 12_288)];

fn footprint_kib(program: &str) -> u64 {
    let found = FOOTPRINTS_KIB.iter().find(|(name, _)| *name == program);
    found.expect("every program with too little memory has a footprint").1
}

/// The GPU's memory for a program that needs so many percent of it, in whole pages.
fn gpu_memory(program: &str, percent: u32) -> String {
    format!("\"{} KiB\"", footprint_kib(program) * 100 / u64::from(percent) / 4 * 4)
}

fn with_policies(program: &'static str, percent: u32, policies: &Policies) -> Point {
    let mut overrides = vec![("unified_memory.prefetcher", "Tree".to_owned())];
    if percent > 100 {
        overrides.extend([
            ("unified_memory.gpu_memory", gpu_memory(program, percent)),
            ("unified_memory.eviction", policies.eviction.to_owned()),
            ("unified_memory.prefetcher_when_full", format!("Some({})", policies.prefetcher)),
        ]);
    }
    program_named(program).point(STUDY_NODE, &overrides)
}

fn with_remote_access(program: &'static str, mode: &str) -> Point {
    let overrides = [
        ("unified_memory.prefetcher", "Tree".to_owned()),
        ("unified_memory.gpu_memory", gpu_memory(program, 125)),
        ("unified_memory.eviction", "LeastFrequentBlock".to_owned()),
        ("unified_memory.remote_access", format!("(mode: {mode}, threshold: 8, penalty: 8)")),
    ];
    program_named(program).point(STUDY_NODE, &overrides)
}

fn logged(selection: &Selection) -> impl Iterator<Item = &'static Logged> {
    LOGGED.iter().filter(|logged| selection.has_program(logged.program))
}

fn logged_remote(selection: &Selection) -> impl Iterator<Item = &'static (&'static str, [f64; 4])> {
    LOGGED_REMOTE.iter().filter(|(program, _)| selection.has_program(program))
}

fn points(selection: &Selection) -> Vec<Point> {
    let at_110 = logged(selection)
        .flat_map(|logged| POLICIES.iter().map(|policies| with_policies(logged.program, 110, policies)));
    let scaling =
        logged(selection).flat_map(|logged| SCALING.map(|percent| with_policies(logged.program, percent, TREE)));
    let remote =
        logged_remote(selection).flat_map(|(program, _)| REMOTE.map(|(_, mode)| with_remote_access(program, mode)));
    at_110.chain(scaling).chain(remote).collect()
}

fn report(selection: &Selection, runs: &Runs<Figures>, report: &mut Report) {
    let logs: Vec<_> = logged(selection).collect();
    if !logs.is_empty() {
        by_policy(&logs, runs, report);
        scaling(&logs, runs, report);
    }
    let remote: Vec<_> = logged_remote(selection).collect();
    if !remote.is_empty() {
        remote_access(&remote, runs, report);
    }
}

/// Where a program of ours has another amount of managed memory than UVMSmart's.
fn other_footprint(program: &'static str, found: Option<&Figures>) -> Option<String> {
    let (ours, theirs) = (found?.footprint_kib, footprint_kib(program));
    (ours != theirs).then(|| {
        format!(
            "{program} has {ours} KiB of managed memory here and {theirs} KiB there, to which the percentages refer"
        )
    })
}

fn by_policy(logs: &[&Logged], runs: &Runs<Figures>, report: &mut Report) {
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let (mut times, mut thrashed) = (Vec::new(), Vec::new());
    for logged in logs {
        for (policies, theirs) in POLICIES.iter().zip(logged.at_110) {
            let found = runs.get(&with_policies(logged.program, 110, policies));
            let (us, pages) = (found.map(|found| found.kernel_us), found.map(|found| found.thrashed as f64));
            let (their_us, their_pages) = (theirs.map(|their| their.0), theirs.map(|their| f64::from(their.1)));
            times.extend(us.zip(their_us));
            thrashed.extend(pages.zip(their_pages));
            rows.push(vec![
                Cell::text(logged.program),
                Cell::text(policies.name),
                Cell::number(us, 0),
                Cell::number(their_us, 0),
                Cell::signed(us.zip(their_us).map(|(us, theirs)| error_percent(us, theirs)), 1),
                Cell::number(pages, 0),
                Cell::number(their_pages, 0),
            ]);
            let setting = format!("110 %, {}", policies.name);
            let compared = Compared { study: "evictions", program: logged.program, setting, source: OF_UVMSMART };
            report.comparisons.push(compared.with("kernel time", "us", us, their_us));
            report.comparisons.push(compared.with("pages thrashed", "page", pages, their_pages));
        }
        notes.extend(other_footprint(logged.program, runs.get(&with_policies(logged.program, 110, TREE))));
    }
    let agreements = [("us", times), ("pages thrashed, where both thrash", thrashed)].into_iter();
    let agreements = agreements.filter_map(|(name, pairs)| Some(format!("{name}: {}", Agreement::of(pairs)?)));
    report.tables.push(Table {
        name: "evictions",
        title: "Programs that need 110 % of the GPU's memory, by eviction policy and prefetcher, beside UVMSmart",
        columns: vec![
            Column::new("program", "program"),
            Column::new("policies", "eviction + prefetcher"),
            Column::new("simulated_us", "us"),
            Column::new("uvmsmart_us", "UVMSmart"),
            Column::new("error_percent", "error %"),
            Column::new("pages_thrashed", "thrashed"),
            Column::new("uvmsmart_pages_thrashed", "UVMSmart"),
        ],
        rows,
        notes: agreements.chain(notes).collect(),
    });
}

fn scaling(logs: &[&Logged], runs: &Runs<Figures>, report: &mut Report) {
    let (mut rows, mut panels, mut growth) = (Vec::new(), Vec::new(), Vec::new());
    for logged in logs {
        let found =
            SCALING.map(|percent| runs.get(&with_policies(logged.program, percent, TREE)).map(|found| found.kernel_us));
        for (index, percent) in SCALING.into_iter().enumerate() {
            let (us, theirs) = (found[index], logged.scaling[index]);
            let (ratio, their_ratio) = (us.zip(found[0]).map(|(us, whole)| us / whole), theirs / logged.scaling[0]);
            if index > 0 {
                growth.extend(ratio.map(|ratio| (ratio, their_ratio)));
            }
            rows.push(vec![
                Cell::text(logged.program),
                Cell::Number(f64::from(percent), 0),
                Cell::number(us, 0),
                Cell::Number(theirs, 0),
                Cell::signed(us.map(|us| error_percent(us, theirs)), 1),
                Cell::number(ratio, 2),
                Cell::Number(their_ratio, 2),
            ]);
            let setting = format!("{percent} %, {}", TREE.name);
            let compared =
                Compared { study: "oversubscription", program: logged.program, setting, source: OF_UVMSMART };
            report.comparisons.push(compared.with("kernel time", "us", us, Some(theirs)));
        }
        let points = |us: [Option<f64>; 4]| {
            SCALING.iter().zip(us).filter_map(|(percent, us)| Some((f64::from(*percent), us?))).collect::<Vec<_>>()
        };
        panels.push(Panel { title: logged.program, solid: points(found), dashed: points(logged.scaling.map(Some)) });
    }
    let agreement = Agreement::of(growth).map(|agreement| format!("growth over 100 %: {agreement}"));
    report.tables.push(Table {
        name: "oversubscription",
        title: "Programs that need more memory than the GPU has, with the tree's eviction and prefetcher, beside UVMSmart",
        columns: vec![
            Column::new("program", "program"),
            Column::new("percent", "% of memory"),
            Column::new("simulated_us", "us"),
            Column::new("uvmsmart_us", "UVMSmart"),
            Column::new("error_percent", "error %"),
            Column::new("growth", "over 100 %"),
            Column::new("uvmsmart_growth", "UVMSmart"),
        ],
        rows,
        notes: agreement.into_iter().collect(),
    });
    let svg = balar_charts::panels(&balar_charts::Panels {
        title: "Kernel time with too little memory, tree eviction and prefetcher",
        x: "managed memory, % of the GPU's",
        x_ticks: &[100.0, 110.0, 125.0, 150.0],
        y: "kernel time, us",
        solid: "balar-actors (uvmsmart_v100_node)",
        dashed: "UVMSmart",
        panels,
    });
    report.charts.push(Chart { name: "oversubscription", svg });
}

fn remote_access(logs: &[&(&'static str, [f64; 4])], runs: &Runs<Figures>, report: &mut Report) {
    let (mut rows, mut times) = (Vec::new(), Vec::new());
    for (program, theirs) in logs {
        let found = REMOTE.map(|(_, mode)| runs.get(&with_remote_access(program, mode)).map(|found| found.kernel_us));
        let mut row = vec![Cell::text(*program)];
        for ((name, _), (us, theirs)) in REMOTE.iter().zip(found.into_iter().zip(theirs)) {
            row.extend([Cell::number(us, 0), Cell::Number(*theirs, 0)]);
            times.extend(us.map(|us| (us, *theirs)));
            let setting = format!("125 %, remote access {name}");
            let compared = Compared { study: "remote access", program, setting, source: OF_UVMSMART };
            report.comparisons.push(compared.with("kernel time", "us", us, Some(*theirs)));
        }
        rows.push(row);
    }
    let mut notes: Vec<_> = Agreement::of(times).map(|agreement| format!("us: {agreement}")).into_iter().collect();
    // Those of the table above have their note there.
    let without_log = logs.iter().filter(|(program, _)| LOGGED.iter().all(|logged| logged.program != *program));
    let footprints =
        without_log.filter_map(|(program, _)| other_footprint(program, runs.get(&with_remote_access(program, "Off"))));
    notes.extend(footprints);
    report.tables.push(Table {
        name: "remote_access",
        title: "Programs that need 125 % of the GPU's memory, by when reads stay on the host, us, beside UVMSmart",
        columns: vec![
            Column::new("program", "program"),
            Column::new("disabled_us", "Disabled"),
            Column::new("uvmsmart_disabled_us", "UVMSmart"),
            Column::new("adaptive_us", "Adaptive"),
            Column::new("uvmsmart_adaptive_us", "UVMSmart"),
            Column::new("always_us", "Always"),
            Column::new("uvmsmart_always_us", "UVMSmart"),
            Column::new("oversubscribed_us", "Oversub"),
            Column::new("uvmsmart_oversubscribed_us", "UVMSmart"),
        ],
        rows,
        notes,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver's parameter at 110 %, as the study's scripts set it: 15.966, 8.864, 16.420 and 10.909 MB.
    #[test]
    fn the_memory_is_that_of_the_study() {
        for (program, mib) in [("backprop", 15.966), ("bfs", 8.864), ("FDTD-2D", 16.420), ("hotspot", 10.909)] {
            let text = gpu_memory(program, 110);
            let kib: f64 = text.trim_matches('"').trim_end_matches(" KiB").parse().expect("a number");
            assert!((kib / 1024.0 - mib).abs() < 4.0 / 1024.0, "{program}: {text}");
        }
        assert_eq!(gpu_memory("hotspot", 125), "\"9828 KiB\"", "whole pages");
    }

    #[test]
    fn every_program_of_the_tables_has_a_footprint() {
        for name in LOGGED.iter().map(|logged| logged.program).chain(LOGGED_REMOTE.iter().map(|logged| logged.0)) {
            assert!(footprint_kib(name) >= 8192, "{name}");
        }
    }
}
