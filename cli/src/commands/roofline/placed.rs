//! What is placed below the ceilings: runs, as a whole and by kernel.

use balar_actors::simulation::RunResult;
use balar_experiments::roofline::{Placed, Work};
use balar_protocol::statistics::KernelCounters;
use balar_record::kernel_name::short_names;
use balar_record::run_folder::document::RunDocument;
use std::collections::BTreeMap;

/// What matters here of the launches of a kernel that were timed.
#[derive(Debug)]
struct Launch {
    kernel: String,
    picoseconds: u64,
    /// In the order of [`KernelCounters::DEFINITIONS`].
    counters: Vec<u64>,
}

impl Launch {
    fn counter(&self, name: &str) -> u64 {
        let place = KernelCounters::DEFINITIONS.iter().position(|definition| definition.name == name);
        place.map_or(0, |place| self.counters[place])
    }
}

/// A finished run, as its document tells it; with its kernels where these are wanted.
pub fn of_document(document: &RunDocument, by_kernel: bool) -> Vec<Placed> {
    let launches = document.kernels.iter().filter(|launch| launch.is_timed()).map(|launch| {
        let counters = KernelCounters::DEFINITIONS.iter();
        Launch {
            kernel: launch.name.clone(),
            picoseconds: launch.time_ps.unwrap_or(0),
            counters: counters.map(|definition| launch.counter(definition.name).unwrap_or(0)).collect(),
        }
    });
    placed(&document.workload.name, &launches.collect::<Vec<_>>(), by_kernel)
}

/// A run that was just made.
pub fn of_result(name: &str, result: &RunResult, by_kernel: bool) -> Vec<Placed> {
    let launches = result.statistics.kernels.iter().filter_map(|kernel| {
        Some(Launch {
            kernel: kernel.name.to_string(),
            picoseconds: kernel.duration_ps()?,
            counters: kernel.counters.values().collect(),
        })
    });
    placed(name, &launches.collect::<Vec<_>>(), by_kernel)
}

/// The run as a whole, and its kernels by the time they took, or its kernel alone where it has one: that is the run.
fn placed(name: &str, launches: &[Launch], by_kernel: bool) -> Vec<Placed> {
    let work = |launch: &Launch| Work::of(launch.picoseconds, |counter| launch.counter(counter));
    let whole = launches.iter().map(work).fold(Work::default(), Work::and);
    let whole = Placed { name: name.to_owned(), work: whole };
    if !by_kernel {
        return vec![whole];
    }
    let mut kernels: BTreeMap<&str, Work> = BTreeMap::new();
    for launch in launches {
        let known = kernels.entry(&launch.kernel).or_default();
        *known = known.and(work(launch));
    }
    let mut names = short_names(kernels.keys().copied());
    let placed = |(kernel, work)| Placed { name: names.remove(kernel).unwrap_or_default(), work };
    let mut kernels: Vec<_> = kernels.into_iter().map(placed).collect();
    kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.work.picoseconds));
    match kernels.len() {
        1 => kernels,
        _ => std::iter::once(whole).chain(kernels).collect(),
    }
}

/// What is placed of several sources, each under a name of its own: what other sources have under the same name gets its source's name before
/// it, and where sources have the same name, their number after that.
pub fn together(sources: Vec<(String, Vec<Placed>)>) -> Vec<Placed> {
    let labels: Vec<String> = sources.iter().map(|(label, _)| label.clone()).collect();
    let known: Vec<(usize, String)> = sources
        .iter()
        .enumerate()
        .flat_map(|(at, (_, all))| all.iter().map(move |one| (at, one.name.clone())))
        .collect();
    let is_shared = |at: usize, name: &str| known.iter().any(|(other, known)| *other != at && known == name);
    let label_of = |at: usize| {
        let alike: Vec<usize> = (0..labels.len()).filter(|other| labels[*other] == labels[at]).collect();
        match alike.iter().position(|other| *other == at) {
            Some(place) if alike.len() > 1 => format!("{} ({})", labels[at], place + 1),
            _ => labels[at].clone(),
        }
    };
    let named = |(at, (_, all)): (usize, (String, Vec<Placed>))| {
        let name_of = |name: String| {
            if !is_shared(at, &name) {
                name
            } else if labels[at].split(':').next() == Some(name.as_str()) {
                // It is named as its source.
                label_of(at)
            } else {
                format!("{}: {name}", label_of(at))
            }
        };
        all.into_iter().map(|Placed { name, work }| Placed { name: name_of(name), work }).collect::<Vec<_>>()
    };
    sources.into_iter().enumerate().flat_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(kernel: &str, picoseconds: u64, fused: u64, written: u64) -> Launch {
        let value = |name: &str| match name {
            "flop_dp_fma" => fused,
            "dram_sectors_read" => 2,
            "dram_sectors_written" => written,
            _ => 0,
        };
        let counters = KernelCounters::DEFINITIONS.iter().map(|definition| value(definition.name)).collect();
        Launch { kernel: kernel.to_owned(), picoseconds, counters }
    }

    #[test]
    fn kernels_have_what_their_launches_read_and_wrote() {
        let launches = [launch("_Z1av", 100, 8, 30), launch("b", 300, 0, 10), launch("_Z1av", 100, 8, 0)];
        let [whole, b, a] = &placed("run", &launches, true)[..] else { panic!("three") };
        assert_eq!((&*whole.name, &*b.name, &*a.name), ("run", "b", "a"));
        // Three launches read 2 sectors each, and wrote 40 together: 46 sectors of 32 bytes.
        assert_eq!((whole.work.double, whole.work.dram_bytes), (32, 1472.0));
        assert_eq!((a.work.double, a.work.picoseconds, a.work.dram_bytes), (32, 200, 1088.0));
        assert_eq!(b.work.dram_bytes, 384.0);
        assert_eq!(placed("run", &launches, false).len(), 1);
    }

    #[test]
    fn the_run_of_a_single_kernel_is_placed_once() {
        let launches = [launch("_Z1av", 100, 8, 30), launch("_Z1av", 100, 8, 0)];
        let names = |by_kernel| placed("run", &launches, by_kernel).into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!((names(true), names(false)), (vec!["a".to_owned()], vec!["run".to_owned()]));
    }

    #[test]
    fn names_tell_sources_apart() {
        let of = |label: &str, names: &[&str]| {
            let placed = names.iter().map(|name| Placed { name: (*name).to_owned(), work: Work::default() });
            (label.to_owned(), placed.collect::<Vec<_>>())
        };
        let names = |sources| together(sources).into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(names(vec![of("out", &["lud", "diagonal"]), of("gemm", &["gemm"])]), ["lud", "diagonal", "gemm"]);
        assert_eq!(
            names(vec![of("a", &["lud", "diagonal"]), of("b", &["lud", "other"])]),
            ["a: lud", "diagonal", "b: lud", "other"]
        );
        assert_eq!(names(vec![of("gemm:size=64", &["gemm"]), of("gemm", &["gemm"])]), ["gemm:size=64", "gemm"]);
        assert_eq!(names(vec![of("gemm", &["gemm"]), of("gemm", &["gemm"])]), ["gemm (1)", "gemm (2)"]);
    }
}
