//! Ceilings of a V100, measured on the simulated node by the microbenchmarks of `roofline`, beside those measured on the card.

use super::report::Report;
use super::runs::{RunError, Running};
use super::side_by_side::{Pair, Sheet};
use super::{PartDescription, Selection, Study};
use crate::BuiltInWorkloads;
use crate::roofline::{self, MeasureError, Measurements, Precision, Settings};
use balar_actors::kinds::UNITS;
use balar_actors::simulation::CodeChoice;
use balar_actors::topology::{LoadOptions, PartLibrary, TopologySource, load};

/// The study of ceilings.
pub const STUDY: Study = Study {
    name: "roofline",
    summary: "levels of memory and arithmetic throughput of a V100, as `roofline` measures them",
    duration: "two minutes on two CPUs",
    parts: &[CEILINGS],
    programs: Vec::new,
    user_programs: &[],
    takes_folder: false,
    run,
};

const CEILINGS: PartDescription = PartDescription {
    name: "ceilings",
    summary: "bandwidth of L1, L2 and DRAM and arithmetic throughput (v100_sxm2_node) beside a V100 and a TITAN V",
};

const NODE: &str = "v100_sxm2_node";
const RRZE: &str = "RRZE gpu-benches, V100 PCIe 16GB";
const TUNER: &str = "Accel-Sim tuner, TITAN V: operations of an SM and cycle, at 80 SMs and 1380 MHz";
/// SMs times cycles a nanosecond.
const SM_CYCLES: f64 = 80.0 * 1.38;

type Ceiling = (&'static str, &'static str, fn(&Measurements) -> Option<f64>, f64, &'static str);

/// The measurements of the cards. The tuner's operations are multiply-adds, and each counts as two here.
const MEASURED: [Ceiling; 7] = [
    ("L1, all SMs", "GB/s", |found| found.empirical.level("L1"), 13_870.0, RRZE),
    ("L2", "GB/s", |found| found.empirical.level("L2"), 2450.0, RRZE),
    ("DRAM, read", "GB/s", |found| found.empirical.level("DRAM"), 867.0, RRZE),
    ("fp64", "GFLOP/s", |found| found.empirical.of(Precision::Double), 2.0 * 63.93 * SM_CYCLES, TUNER),
    ("fp32", "GFLOP/s", |found| found.empirical.of(Precision::Single), 2.0 * 126.86 * SM_CYCLES, TUNER),
    ("fp16", "GFLOP/s", |found| found.empirical.of(Precision::Half), 2.0 * 249.3 * SM_CYCLES, TUNER),
    ("tensor cores", "GFLOP/s", |found| found.empirical.of(Precision::Tensor), 2.0 * 477.6 * SM_CYCLES, TUNER),
];

fn run(selection: &Selection, running: &Running<'_>) -> Result<Report, RunError> {
    let mut report = Report { study: STUDY.name, completed: true, ..Report::default() };
    // It has no programs: a user who asks for one does not mean this study.
    if !selection.has_part(CEILINGS.name) || !selection.programs.is_empty() {
        return Ok(report);
    }
    report.planned = 1;
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds: UNITS, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &[] };
    let topology = load(&TopologySource::from(NODE), &options).expect("a built-in topology loads");
    let benchmarks = roofline::Running {
        jobs: running.threads,
        code: CodeChoice::default(),
        interrupt: running.interrupt.clone(),
        progress: running.progress,
    };
    let found = match roofline::measure(&topology, &Settings::default(), &benchmarks) {
        Ok(found) => Some(found),
        Err(MeasureError::Interrupted) => None,
        Err(MeasureError::Thread(error)) => return Err(RunError::Thread(error)),
        Err(error) => {
            report.failures.push(error.to_string());
            None
        }
    };
    report.runs = usize::from(found.is_some());
    report.completed = found.is_some();
    let pairs = MEASURED.iter().map(|(name, unit, ceiling, reference, source)| Pair {
        program: (*name).to_owned(),
        quantity: "ceiling".into(),
        unit: (*unit).into(),
        simulated: found.as_ref().and_then(ceiling),
        reference: *reference,
        other: None,
        source: (*source).into(),
    });
    Sheet {
        part: CEILINGS.name,
        name: "ceilings",
        title: "Ceilings of a V100 beside the card's",
        subject: "ceiling",
        reference: "measured",
        other: None,
        setting: "",
        notes: Vec::new(),
        pairs: pairs.collect(),
    }
    .enter(&mut report);
    if let Some(found) = &found {
        let measured = roofline::report(found, &[]);
        report.charts.extend(measured.charts);
        report.tables.extend(measured.tables.into_iter().filter(|table| table.name != "ceilings"));
    }
    Ok(report)
}
