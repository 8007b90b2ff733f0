//! What the run of a point found, from the folder of that run.

use balar_protocol::statistics::KernelCounters;
use balar_record::run_folder::document::{Launch, RowReading, RunDocument};
use balar_record::run_folder::{DOCUMENT, RunFolder};
use balar_sweeps::collect::{KernelFigures, Reading, RunFigures};
use std::collections::BTreeMap;
use std::path::Path;

/// The figures of a run; `None` where it has written no document.
///
/// # Errors
///
/// In words: the document is not as it should be.
pub fn of_folder(folder: &Path) -> Result<Option<RunFigures>, String> {
    if !folder.join(DOCUMENT).is_file() {
        return Ok(None);
    }
    RunFolder::read(folder).map(|run| Some(figures(run.document))).map_err(|failure| failure.message())
}

fn figures(document: RunDocument) -> RunFigures {
    RunFigures {
        kernels: kernels(&document.kernels),
        isa: document.isa,
        ended_by: document.ended_by,
        verified: document.verified,
        sim_time_ps: document.sim_time_ps,
        statistics: document.roll_ups.into_iter().map(reading).collect(),
        metrics: document.metrics.into_iter().map(reading).collect(),
    }
}

fn reading(row: RowReading) -> Reading {
    let RowReading { metric, location, instances, sum, avg, min, max, unit } = row;
    Reading { name: metric, location, instances, sum, avg, min, max, unit }
}

/// The launches by kernel.
fn kernels(launches: &[Launch]) -> Vec<KernelFigures> {
    let mut kernels: Vec<(&str, Vec<&Launch>)> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for launch in launches {
        let index = *known.entry(&launch.name).or_insert(kernels.len());
        if index == kernels.len() {
            kernels.push((&launch.name, Vec::new()));
        }
        kernels[index].1.push(launch);
    }
    kernels.into_iter().map(|(name, launches)| kernel(name, &launches)).collect()
}

fn kernel(name: &str, launches: &[&Launch]) -> KernelFigures {
    let sum = |of: &dyn Fn(&Launch) -> Option<u64>| {
        launches.iter().try_fold(0u64, |sum, launch| Some(sum.saturating_add(of(launch)?)))
    };
    let counters = KernelCounters::DEFINITIONS.iter().map(|definition| {
        let value = sum(&|launch| launch.counter(definition.name));
        (definition.name, value)
    });
    KernelFigures {
        name: name.to_owned(),
        calls: launches.len() as u64,
        time_ps: sum(&|launch| launch.time_ps.filter(|_| launch.is_timed())),
        cycles: sum(&|launch| launch.cycles.filter(|_| launch.is_timed())),
        counters: counters.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folder;
    use balar_record::sample::record;

    #[test]
    fn figures_are_those_of_the_document() {
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(of_folder(place.path()), Ok(None));
        let record = record();
        folder::write(place.path(), &record, "Topology()\n").expect("written");
        let figures = of_folder(place.path()).expect("read").expect("a run");
        assert_eq!((figures.ended_by.as_str(), figures.sim_time_ps), ("completed", Some(record.sim_time.0)));
        let launches = record.launches();
        assert_eq!(figures.kernels.iter().map(|kernel| kernel.calls).sum::<u64>(), launches.len() as u64);
        let cycles: u64 = launches.iter().map(|launch| launch.cycles).sum();
        assert_eq!(figures.kernels.iter().filter_map(|kernel| kernel.cycles).sum::<u64>(), cycles);
        assert!(!figures.statistics.is_empty() && !figures.metrics.is_empty());
        std::fs::write(place.path().join(DOCUMENT), "{\"schema\": 1").expect("written");
        let error = of_folder(place.path()).expect_err("cut off");
        assert!(error.contains("stats.json: it is cut off at line 1"), "{error}");
    }
}
