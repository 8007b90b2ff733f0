//! How closely work is simulated: cycle by cycle, or for its values alone; and what chooses that.

use crate::ranges::{RangePath, range_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// How closely a kernel launch or a copy is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Detail {
    /// Cycle by cycle.
    #[default]
    Timed,
    /// For its values alone: it takes no simulated time that means anything.
    Functional,
}

impl Detail {
    /// Its name in results: "timed" or "functional".
    pub const fn name(self) -> &'static str {
        match self {
            Detail::Timed => "timed",
            Detail::Functional => "functional",
        }
    }

    /// Is time simulated?
    #[inline]
    pub const fn is_timed(self) -> bool {
        matches!(self, Detail::Timed)
    }
}

/// Tells by the name of a kernel, as its module has it, whether its launches are timed.
#[derive(Clone)]
pub struct KernelPattern(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl KernelPattern {
    /// The kernels for whose names `matches` is true.
    pub fn new(matches: impl Fn(&str) -> bool + Send + Sync + 'static) -> KernelPattern {
        KernelPattern(Arc::new(matches))
    }

    /// Is it a kernel of this name?
    pub fn matches(&self, kernel: &str) -> bool {
        (self.0)(kernel)
    }
}

impl fmt::Debug for KernelPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelPattern")
    }
}

/// Something that is timed.
#[derive(Clone, Debug)]
pub enum TimedPart {
    /// Launches of these kernels.
    Kernels(KernelPattern),
    /// Launches by their numbers, as results have them: from 0.
    Launches(RangeInclusive<u32>),
    /// What a process asks for between `cudaProfilerStart` and `cudaProfilerStop`.
    Profiler,
    /// What a process asks for while a range of this name is open.
    Range(String),
}

/// Which launches and copies of a run are timed. By default all are.
#[derive(Clone, Debug, Default)]
pub struct DetailChoice {
    /// `None`: everything.
    parts: Option<Vec<TimedPart>>,
}

impl DetailChoice {
    /// Nothing is timed.
    pub fn none() -> DetailChoice {
        DetailChoice::of(Vec::new())
    }

    /// What is in any of these parts is timed.
    pub fn of(parts: Vec<TimedPart>) -> DetailChoice {
        DetailChoice { parts: Some(parts) }
    }

    /// Is everything timed?
    pub fn times_everything(&self) -> bool {
        self.parts.is_none()
    }

    /// Is nothing ever timed?
    pub fn times_nothing(&self) -> bool {
        self.parts.as_ref().is_some_and(Vec::is_empty)
    }

    /// Of the launch of a kernel; `launch` is its number from 0, `ranges` are those of its process.
    pub fn of_launch(&self, kernel: &str, launch: u32, ranges: &ProfilerRanges) -> Detail {
        self.find(|part| match part {
            TimedPart::Kernels(KernelPattern(matches)) => matches(kernel),
            TimedPart::Launches(launches) => launches.contains(&launch),
            TimedPart::Profiler | TimedPart::Range(_) => ranges.is_in(part),
        })
    }

    /// Of a copy or a fill.
    pub fn of_copy(&self, ranges: &ProfilerRanges) -> Detail {
        self.find(|part| ranges.is_in(part))
    }

    fn find(&self, is_in: impl FnMut(&TimedPart) -> bool) -> Detail {
        match &self.parts {
            Some(parts) if !parts.iter().any(is_in) => Detail::Functional,
            _ => Detail::Timed,
        }
    }
}

/// Which ranges a process is in, by what it has told profilers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilerRanges {
    /// `cudaProfilerStart` was called later than `cudaProfilerStop`.
    pub is_profiling: bool,
    /// Open ranges by their names: how many of each.
    open: BTreeMap<String, u64>,
    /// Those that each thread has begun, by its number, the innermost last.
    of_thread: BTreeMap<u32, Vec<OpenRange>>,
}

/// A range that a thread is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OpenRange {
    name: String,
    path: RangePath,
}

impl ProfilerRanges {
    /// Nothing has been told.
    pub const NONE: ProfilerRanges =
        ProfilerRanges { is_profiling: false, open: BTreeMap::new(), of_thread: BTreeMap::new() };

    /// A thread begins a range.
    pub fn begin(&mut self, thread: u32, name: &str) {
        let name = range_name(name);
        *self.open.entry(name.to_owned()).or_default() += 1;
        let ranges = self.of_thread.entry(thread).or_default();
        let path = RangePath::within(ranges.last().map(|range| &range.path), name);
        ranges.push(OpenRange { name: name.to_owned(), path });
    }

    /// A thread ends a range of this name, its own or another thread's. One that was not begun is nothing.
    pub fn end(&mut self, thread: u32, name: &str) {
        let name = range_name(name);
        let Some(count) = self.open.get_mut(name) else { return };
        *count -= 1;
        if *count == 0 {
            self.open.remove(name);
        }
        let innermost = |ranges: &Vec<OpenRange>| ranges.iter().rposition(|range| range.name == name);
        let own = self.of_thread.get(&thread).and_then(innermost).map(|place| (thread, place));
        let any = || self.of_thread.iter().find_map(|(thread, ranges)| Some((*thread, innermost(ranges)?)));
        let Some((thread, place)) = own.or_else(any) else { return };
        if let Some(ranges) = self.of_thread.get_mut(&thread) {
            ranges.remove(place);
            if ranges.is_empty() {
                self.of_thread.remove(&thread);
            }
        }
    }

    /// The innermost range that a thread is in; `None` if it is in none.
    pub fn innermost(&self, thread: u32) -> Option<RangePath> {
        self.of_thread.get(&thread)?.last().map(|range| range.path.clone())
    }

    fn is_in(&self, part: &TimedPart) -> bool {
        match part {
            TimedPart::Profiler => self.is_profiling,
            TimedPart::Range(name) => self.open.contains_key(range_name(name)),
            TimedPart::Kernels(_) | TimedPart::Launches(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_part_names_is_functional() {
        let ranges = ProfilerRanges::default();
        let kernels = TimedPart::Kernels(KernelPattern::new(|name| name.starts_with("lud")));
        let choice = DetailChoice::of(vec![kernels, TimedPart::Launches(3..=4)]);
        let timed = |kernel, launch| choice.of_launch(kernel, launch, &ranges).is_timed();
        assert_eq!([timed("lud_internal", 9), timed("k", 2), timed("k", 3), timed("k", 5)], [true, false, true, false]);
        assert_eq!(choice.of_copy(&ranges), Detail::Functional);
        assert_eq!(DetailChoice::default().of_copy(&ranges), Detail::Timed);
        assert_eq!(DetailChoice::none().of_launch("k", 0, &ranges), Detail::Functional);
        assert!(DetailChoice::none().times_nothing() && !choice.times_nothing() && !choice.times_everything());
    }

    #[test]
    fn ranges_are_open_until_each_has_ended() {
        let mut ranges = ProfilerRanges::default();
        let choice = DetailChoice::of(vec![TimedPart::Range("solve".to_owned()), TimedPart::Profiler]);
        ranges.begin(0, "solve");
        ranges.begin(1, "solve, op_id = 7");
        ranges.end(2, "solve");
        ranges.end(0, "other");
        assert_eq!(choice.of_copy(&ranges), Detail::Timed);
        ranges.end(0, "solve");
        assert_eq!(choice.of_copy(&ranges), Detail::Functional);
        ranges.end(0, "solve");
        ranges.is_profiling = true;
        assert_eq!(choice.of_launch("k", 0, &ranges), Detail::Timed);
    }

    #[test]
    fn each_thread_is_in_its_own_ranges() {
        let mut ranges = ProfilerRanges::default();
        let innermost = |ranges: &ProfilerRanges, thread| ranges.innermost(thread).map(|path| path.to_string());
        ranges.begin(0, "step");
        ranges.begin(0, "aten::mm, seq = 3, op_id = 4");
        ranges.begin(1, "backward");
        assert_eq!(innermost(&ranges, 0).as_deref(), Some("step > aten::mm"));
        assert_eq!(innermost(&ranges, 1).as_deref(), Some("backward"));
        assert_eq!(innermost(&ranges, 2), None);
        // Ranges that were started, not pushed, end in any order and by any thread.
        ranges.end(1, "step");
        assert_eq!(innermost(&ranges, 0).as_deref(), Some("step > aten::mm"));
        ranges.end(0, "aten::mm, seq = 3, op_id = 4");
        ranges.end(1, "backward");
        assert_eq!(ranges, ProfilerRanges::NONE);
    }
}
