//! Which part of a result is printed: the summary, all of it, or the rows, metrics and launches asked for.

use super::headings;
use balar_actors::kinds::UNITS;
use balar_actors::topology::{PathPattern, Topology, nearest, suggestion};
use balar_protocol::kernel_records::KernelRecords;
use balar_protocol::statistics::{KernelRecord, StatisticRow};
use balar_record::metrics::{Choice, Place, all_names, find, is_like};
use balar_record::system::failure::Failure;
use clap::{Args, ValueEnum};
use regex::Regex;
use std::path::Path;

const SHOW_HELP: &str = "Print the counters of these units: 'gpu.l2[*]', 'gpu.sm[0..4]', 'gpu' (repeatable)";
const METRICS_HELP: &str = "Print these counters and metrics, by any name that `balar-actors metrics` lists: inst_executed,'stall_*',dram__bytes_read.sum; \
                            a file has one on a line, and comments after # (repeatable)";

/// Names of a list at most: each is looked up among all counters and metrics.
const MOST_NAMES: usize = 4096;

/// What to print of a result. Files and JSON always have all counters.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = headings::PRINTED)]
pub struct Selection {
    /// Print every counter, not a summary of one screen
    #[arg(long)]
    pub details: bool,
    /// Print what is derived from counters: speed of light, memory, occupancy, warp states
    #[arg(long, conflicts_with_all = ["details", "show", "metrics"])]
    pub sections: bool,
    /// Units whose counters are printed.
    #[arg(long, value_name = "PATH", value_parser = pattern, help = SHOW_HELP)]
    pub show: Vec<PathPattern>,
    /// Counters and metrics that are printed.
    #[arg(long, value_name = "FILE|NAME,...", value_parser = metric_list, help = METRICS_HELP)]
    pub metrics: Vec<MetricList>,
    /// Which launches are printed and written.
    #[command(flatten)]
    pub launches: LaunchSelection,
}

/// When launches are of interest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProfileFromStart {
    /// From the start, whatever the program tells profilers.
    #[default]
    #[value(aliases = ["yes", "1"])]
    On,
    /// Between cudaProfilerStart and cudaProfilerStop.
    #[value(aliases = ["no", "0"])]
    Off,
}

/// Which launches are printed and written: first those of the kernels, then without the first of them, then so many.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = headings::PRINTED)]
pub struct LaunchSelection {
    /// Print and write only launches of kernels whose name matches: 'lud_.*'
    #[arg(long, value_name = "REGEX")]
    pub kernel: Option<Regex>,
    /// Off: print and write only launches that the program makes between cudaProfilerStart and cudaProfilerStop
    #[arg(long, value_name = "ON|OFF", value_enum, default_value_t = ProfileFromStart::On, hide_possible_values = true)]
    pub profile_from_start: ProfileFromStart,
    /// Leave out the first launches, of those that match
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub launch_skip: usize,
    /// Print and write at most so many launches
    #[arg(long, value_name = "N")]
    pub launch_count: Option<usize>,
    /// Of points of a sweep, which may have other kernels than the one that is asked for: that it has not run is no mistake
    #[arg(long, hide = true)]
    pub kernel_may_be_absent: bool,
}

impl LaunchSelection {
    /// The mistake that no launch of a run is of a kernel as `--kernel` names it, with those that ran.
    pub fn unmatched(&self, launches: &KernelRecords) -> Option<Failure> {
        let pattern = self.kernel.as_ref().filter(|_| !self.kernel_may_be_absent)?;
        if launches.iter().any(|launch| is_named(pattern, &launch.name)) {
            return None;
        }
        let mut ran: Vec<String> = Vec::new();
        for launch in launches.iter() {
            let name = balar_record::kernel_name::short_name(&launch.name);
            if !ran.contains(&name) {
                ran.push(name);
            }
        }
        let near = nearest(pattern.as_str(), ran.iter().map(String::as_str))
            .map(|near| format!("the nearest name is `{near}`; "));
        let listed = ran.iter().take(MOST_LISTED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let more = ran.len().checked_sub(MOST_LISTED).filter(|more| *more > 0).map(|more| format!(" and {more} more"));
        let help = if ran.is_empty() {
            "no kernel ran".to_owned()
        } else {
            format!("{}these ran: {listed}{}", near.unwrap_or_default(), more.unwrap_or_default())
        };
        Some(Failure::mistake(format_args!("--kernel {pattern}: no launch is of such a kernel"), help))
    }

    /// The launches that are chosen; `None` where all are.
    pub fn of(&self, launches: &KernelRecords) -> Option<KernelRecords> {
        let LaunchSelection { kernel, profile_from_start, launch_skip, launch_count, .. } = self;
        let takes_all = *profile_from_start == ProfileFromStart::On;
        if kernel.is_none() && takes_all && *launch_skip == 0 && launch_count.is_none() {
            return None;
        }
        let matches = |launch: &KernelRecord| {
            (takes_all || launch.is_profiled) && kernel.as_ref().is_none_or(|kernel| is_named(kernel, &launch.name))
        };
        let most = launch_count.unwrap_or(usize::MAX);
        Some(launches.iter().filter(matches).skip(*launch_skip).take(most).collect())
    }
}

/// Kernels that ran, at most, of which a mistake tells.
const MOST_LISTED: usize = 8;

/// Has a kernel the name that a pattern asks for, as the code or as C++ has it?
fn is_named(pattern: &Regex, kernel: &str) -> bool {
    pattern.is_match(kernel) || pattern.is_match(&balar_record::kernel_name::readable_name(kernel))
}

/// The names of a list, or of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricList(pub Vec<WantedMetric>);

/// A name that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedMetric {
    /// The name, in which "*" stands for anything.
    pub name: String,
    /// Where it stands: "--metrics", "metrics.txt:3:".
    pub place: String,
}

fn pattern(text: &str) -> Result<PathPattern, String> {
    text.parse().map_err(|error: balar_actors::topology::PatternError| error.message)
}

/// The names in `text`: of the file with this name, unless it is the name of a counter or a metric.
pub fn metric_list(text: &str) -> Result<MetricList, String> {
    let path = Path::new(text);
    let is_name = || {
        let mut counters = UNITS.iter().flat_map(|kind| kind.counters);
        counters.any(|counter| counter.name == text) || !find(text).is_empty()
    };
    let split = |line: &str, place: &str| -> Vec<WantedMetric> {
        let names = line.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| WantedMetric { name: name.to_owned(), place: place.to_owned() }).collect()
    };
    let wanted = if !path.is_dir() && path.exists() && !is_name() {
        let lines = balar_record::system::files::read(path).map_err(|error| format!("cannot read it: {error}"))?;
        let lines = lines.lines().map(|line| line.split('#').next().unwrap_or_default()).zip(1..);
        lines.flat_map(|(line, number)| split(line, &format!("{text}:{number}:"))).collect()
    } else if text.contains('/') {
        return Err("there is no such file".to_owned());
    } else {
        split(text, "--metrics")
    };
    match wanted.len() {
        0 => Err("it names no metric".to_owned()),
        1..=MOST_NAMES => Ok(MetricList(wanted)),
        names => Err(format!("it has {names} names, and may have {MOST_NAMES} at most")),
    }
}

/// The mistake that `name` is no metric's, nor one of the `others`, with the nearest that is.
pub fn unknown<'a>(message: impl std::fmt::Display, name: &str, others: impl IntoIterator<Item = &'a str>) -> Failure {
    let own: Vec<&str> = all_names().collect();
    let near = nearest(name, others.into_iter().chain(own));
    let help = near.map(|near| format!("the nearest name is `{near}`"));
    Failure::mistake(message, help.unwrap_or_else(|| "`balar-actors metrics` lists them".to_owned()))
}

impl Selection {
    /// Everything.
    pub fn all() -> Selection {
        Selection { details: true, ..Selection::default() }
    }

    /// Are single rows asked for?
    pub fn is_partial(&self) -> bool {
        !self.show.is_empty() || !self.metrics.is_empty()
    }

    /// The names of counters and metrics that are asked for.
    fn wanted(&self) -> impl Iterator<Item = &WantedMetric> {
        self.metrics.iter().flat_map(|list| &list.0)
    }

    /// The same, without where they stand.
    pub fn wanted_names(&self) -> impl Iterator<Item = &str> {
        self.wanted().map(|wanted| wanted.name.as_str())
    }

    /// Refuses what no unit of the topology has, before a run that would print nothing.
    ///
    /// # Errors
    ///
    /// A path without a unit, or a counter or metric that no unit gives, with the nearest right one.
    pub fn check(&self, topology: &Topology) -> Result<(), Failure> {
        for path in &self.show {
            if !topology.units.iter().any(|unit| path.leads_to(&unit.path)) {
                let mut rows: Vec<String> =
                    topology.units.iter().map(|unit| balar_record::metrics::rollup::pattern(&unit.path)).collect();
                rows.dedup();
                let text = path.to_string();
                let help = suggestion(&text, rows.iter().map(String::as_str));
                return Err(Failure::mistake(format_args!("--show {text}: there is no such unit"), help));
            }
        }
        let counters = || topology.units.iter().flat_map(|unit| unit.kind.counters).map(|counter| counter.name);
        let is_there = |place: Place| {
            let counts = |sign: &str| counters().any(|counter| counter == sign);
            place == Place::Launch || place.is_signed_by(counts)
        };
        for WantedMetric { name, place } in self.wanted() {
            if counters().any(|counter| is_like(name, counter)) {
                continue;
            }
            let found = find(name);
            if found.is_empty() {
                let message = format_args!("{place} {name}: no unit counts that, and no metric has that name");
                return Err(unknown(message, name, counters()));
            }
            if !found.iter().any(|choice| is_there(choice.metric.place)) {
                let (what, node) = (found[0].metric.place.name(), &topology.name);
                let message = format_args!("{place} {name}: it is counted by what {node} has none of: {what}");
                return Err(Failure::mistake(message, "`balar-actors topology show` prints what a node has"));
            }
        }
        Ok(())
    }

    /// Is this location asked for?
    pub fn covers_location(&self, location: &str) -> bool {
        self.show.is_empty() || self.show.iter().any(|path| path.covers(location))
    }

    /// Is this row asked for?
    pub fn covers(&self, row: &StatisticRow) -> bool {
        self.covers_location(&row.location)
            && (self.metrics.is_empty() || self.wanted().any(|wanted| is_like(&wanted.name, row.what)))
    }

    /// The metrics that are asked for by names that are no counter's among `rows`, each once.
    pub fn metrics_beside(&self, rows: &[StatisticRow]) -> Vec<Choice> {
        let is_counter = |name: &str| rows.iter().any(|row| is_like(name, row.what));
        once(self.wanted().filter(|wanted| !is_counter(&wanted.name)).flat_map(|wanted| find(&wanted.name)))
    }

    /// The metrics that are asked for by any name, each once; `None` where none is asked for at all.
    pub fn chosen_metrics(&self) -> Option<Vec<Choice>> {
        (!self.metrics.is_empty()).then(|| once(self.wanted().flat_map(|wanted| find(&wanted.name))))
    }

    /// The name that a row shares with those it is rolled up with.
    pub fn label(&self, location: &str) -> String {
        let own = self.show.iter().find(|path| path.covers(location));
        own.map_or_else(|| balar_record::metrics::rollup::pattern(location), |path| path.label(location))
    }
}

fn once(choices: impl Iterator<Item = Choice>) -> Vec<Choice> {
    let mut different: Vec<Choice> = Vec::new();
    for choice in choices {
        if !different.iter().any(|known| known.name == choice.name) {
            different.push(choice);
        }
    }
    different
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use balar_record::sample::record;

    /// These names.
    pub(crate) fn metrics(names: &str) -> Vec<MetricList> {
        vec![metric_list(names).expect("names")]
    }

    #[test]
    fn rows_are_selected_by_both() {
        let row = |location: &str, what| StatisticRow {
            location: location.to_owned(),
            what,
            value: 1,
            unit: "sector",
            maximum: false,
        };
        let show = vec!["gpu.l2[0..2]".parse().expect("a path")];
        let selection = Selection { show, metrics: metrics("sectors_*"), ..Selection::default() };
        assert!(selection.covers(&row("gpu.l2[1]", "sectors_read")));
        assert!(!selection.covers(&row("gpu.l2[2]", "sectors_read")));
        assert!(!selection.covers(&row("gpu.l2[1]", "requests")));
        assert_eq!(selection.label("gpu.l2[1]"), "gpu.l2[0..2]");
        assert_eq!(Selection::all().label("gpu.l2[1]"), "gpu.l2[*]");
    }

    #[test]
    fn a_file_has_a_name_on_each_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("metadata");
        let text = "# of the study\nactive_cycles\n\n  inst_executed  # warps\nwarps_launched, stall_*\n";
        std::fs::write(&path, text).expect("written");
        let name = path.to_str().expect("UTF-8");
        let MetricList(wanted) = metric_list(name).expect("a list");
        let read: Vec<(&str, &str)> = wanted.iter().map(|w| (w.name.as_str(), w.place.as_str())).collect();
        let at = |line: u32| format!("{name}:{line}:");
        let (second, fourth, fifth) = (at(2), at(4), at(5));
        let expected: [(&str, &str); 4] =
            [("active_cycles", &second), ("inst_executed", &fourth), ("warps_launched", &fifth), ("stall_*", &fifth)];
        assert_eq!(read, expected);
        std::fs::write(&path, "# nothing\n").expect("written");
        assert_eq!(metric_list(name), Err("it names no metric".to_owned()));
        assert!(metric_list(&"calls,".repeat(4096)).is_ok());
        let many = metric_list(&"calls,".repeat(4097));
        assert_eq!(many, Err("it has 4097 names, and may have 4096 at most".to_owned()));
        assert_eq!(metric_list(&format!("{name}2")), Err("there is no such file".to_owned()));
    }

    #[test]
    fn names_of_counters_are_no_metrics_beside_them() {
        let rows = record().statistics.rows;
        let selection = Selection { metrics: metrics("inst_executed,active_cycles,*_cycles"), ..Selection::default() };
        let beside: Vec<String> = selection.metrics_beside(&rows).into_iter().map(|choice| choice.name).collect();
        assert_eq!(beside.first().map(String::as_str), Some("active_cycles"));
        assert!(!beside.contains(&"inst_executed".to_owned()), "{beside:?}");
        let chosen: Vec<String> = selection.chosen_metrics().expect("some").into_iter().map(|c| c.name).collect();
        assert_eq!(chosen[..2], ["inst_executed", "active_cycles"]);
        assert_eq!(chosen.iter().filter(|name| *name == "active_cycles").count(), 1, "{chosen:?}");
    }

    #[test]
    fn launches_are_chosen_by_name_then_skipped_then_counted() {
        let launches = record().statistics.kernels;
        let chosen = |kernel: Option<&str>, launch_skip, launch_count| -> Option<Vec<u32>> {
            let kernel = kernel.map(|kernel| Regex::new(kernel).expect("a pattern"));
            let selection = LaunchSelection { kernel, launch_skip, launch_count, ..LaunchSelection::default() };
            Some(selection.of(&launches)?.iter().map(|launch| launch.launch.0).collect())
        };
        assert_eq!(chosen(None, 0, None), None);
        assert_eq!(chosen(Some("diag"), 0, None), Some(vec![0, 2]));
        assert_eq!(chosen(Some("^lud_(diagonal|none)$"), 1, None), Some(vec![2]));
        assert_eq!(chosen(None, 1, Some(1)), Some(vec![1]));
        assert_eq!(chosen(Some("other"), 0, None), Some(vec![]));
    }

    #[test]
    fn a_kernel_that_did_not_run_is_a_mistake_that_names_those_that_did() {
        let launches = record().statistics.kernels;
        let unmatched = |kernel: Option<&str>| {
            let kernel = kernel.map(|kernel| Regex::new(kernel).expect("a pattern"));
            LaunchSelection { kernel, ..LaunchSelection::default() }.unmatched(&launches)
        };
        assert!(unmatched(None).is_none() && unmatched(Some("lud_.*")).is_none());
        let mistake = unmatched(Some("lud_diagnal")).expect("a mistake");
        assert_eq!(mistake.message(), "--kernel lud_diagnal: no launch is of such a kernel");
        assert_eq!(mistake.status, balar_record::system::exit::ExitStatus::BadInput);
    }

    #[test]
    fn launches_are_chosen_by_what_the_program_tells_profilers() {
        let profiled = |launch: KernelRecord| KernelRecord { is_profiled: launch.launch.0 == 1, ..launch };
        let launches: KernelRecords = record().statistics.kernels.iter().map(profiled).collect();
        let selection = LaunchSelection { profile_from_start: ProfileFromStart::Off, ..LaunchSelection::default() };
        let chosen = selection.of(&launches).expect("not all");
        assert_eq!(chosen.iter().map(|launch| launch.launch.0).collect::<Vec<_>>(), [1]);
    }
}
