//! `--detail`: what is timed.

use balar_protocol::DetailChoice;
use balar_protocol::detail::{KernelPattern, TimedPart};
use balar_record::kernel_name::readable_name;
use regex::Regex;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// What `--help` says.
pub const HELP: &str = "What is timed: all; none; kernel=REGEX, launches of kernels whose name matches; launch=3,7..9, launches by number, the \
                        end not included; profiler, what the program does between cudaProfilerStart and cudaProfilerStop; nvtx=NAME, what it does \
                        while an NVTX range of that name is open. All else runs for its \
                        values alone (repeatable: what any of them names) [default: all]";

/// What one `--detail` names.
#[derive(Clone, Debug)]
pub enum DetailOption {
    /// Everything.
    All,
    /// Nothing.
    None,
    /// Launches of kernels whose name matches, as code has it or as C++ does.
    Kernel(Regex),
    /// Launches by their numbers.
    Launches(Vec<RangeInclusive<u32>>),
    /// Between `cudaProfilerStart` and `cudaProfilerStop`.
    Profiler,
    /// While an NVTX range of this name is open.
    Range(String),
}

impl FromStr for DetailOption {
    type Err = String;

    fn from_str(text: &str) -> Result<DetailOption, String> {
        let (word, value) = match text.split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (text, None),
        };
        match (word, value) {
            ("all", None) => Ok(DetailOption::All),
            ("none", None) => Ok(DetailOption::None),
            ("profiler", None) => Ok(DetailOption::Profiler),
            ("kernel", Some("")) => Err("expected a pattern after kernel=, such as kernel=lud_.*".to_owned()),
            ("kernel", Some(pattern)) => {
                Regex::new(pattern).map(DetailOption::Kernel).map_err(|error| error.to_string())
            }
            ("launch", Some(list)) => {
                list.split(',').map(launches).collect::<Result<_, _>>().map(DetailOption::Launches)
            }
            ("nvtx", Some("")) => Err("expected the name of a range after nvtx=, such as nvtx=solve".to_owned()),
            ("nvtx", Some(name)) => Ok(DetailOption::Range(name.to_owned())),
            ("kernel" | "launch" | "nvtx", None) => {
                let example = match word {
                    "kernel" => "kernel=lud_.*",
                    "launch" => "launch=3,7..9",
                    _ => "nvtx=solve",
                };
                Err(format!("expected {example}: {word} needs a value"))
            }
            ("all" | "none" | "profiler", Some(_)) => Err(format!("{word} takes no value")),
            _ => Err("expected all, none, kernel=REGEX, launch=3,7..9, profiler or nvtx=NAME".to_owned()),
        }
    }
}

/// One number, or from one to before another.
fn launches(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |text: &str| -> Result<u32, String> {
        text.trim().parse().map_err(|_| format!("expected launches such as 3 or 7..9, found `{text}`"))
    };
    match text.split_once("..") {
        None => number(text).map(|launch| launch..=launch),
        Some((first, "")) => Ok(number(first)?..=u32::MAX),
        Some((first, end)) => {
            let (first, end) = (number(first)?, number(end)?);
            let last = end.checked_sub(1).filter(|last| *last >= first);
            last.map(|last| first..=last)
                .ok_or_else(|| format!("no launch is in {first}..{end}: the end is not included, and must be greater"))
        }
    }
}

/// What several options choose together.
pub fn choice(options: &[DetailOption]) -> DetailChoice {
    if options.is_empty() || options.iter().any(|option| matches!(option, DetailOption::All)) {
        return DetailChoice::default();
    }
    let parts = options.iter().flat_map(|option| -> Vec<TimedPart> {
        match option {
            DetailOption::All | DetailOption::None => Vec::new(),
            DetailOption::Kernel(pattern) => {
                let pattern = pattern.clone();
                let matches = move |name: &str| pattern.is_match(name) || pattern.is_match(&readable_name(name));
                vec![TimedPart::Kernels(KernelPattern::new(matches))]
            }
            DetailOption::Launches(launches) => launches.iter().cloned().map(TimedPart::Launches).collect(),
            DetailOption::Profiler => vec![TimedPart::Profiler],
            DetailOption::Range(name) => vec![TimedPart::Range(name.clone())],
        }
    });
    DetailChoice::of(parts.collect())
}

/// Must the program's NVTX ranges be known?
pub fn needs_ranges(options: &[DetailOption]) -> bool {
    options.iter().any(|option| matches!(option, DetailOption::Range(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::detail::ProfilerRanges;

    fn options(texts: &[&str]) -> DetailChoice {
        choice(&texts.iter().map(|text| text.parse().expect(text)).collect::<Vec<_>>())
    }

    fn timed(choice: &DetailChoice, kernel: &str, launch: u32) -> bool {
        choice.of_launch(kernel, launch, &ProfilerRanges::NONE).is_timed()
    }

    #[test]
    fn what_any_option_names_is_timed() {
        let choice = options(&["kernel=^scale$", "launch=3,7..9,20.."]);
        let numbers: Vec<u32> = (0..24).filter(|launch| timed(&choice, "other", *launch)).collect();
        assert_eq!(numbers, [3, 7, 8, 20, 21, 22, 23]);
        assert!(timed(&choice, "scale", 0) && !timed(&choice, "scale2", 0));
        assert!(timed(&options(&["kernel=spin<int>"]), "_Z4spinIiEvPVT_", 0), "by its name in C++");
        assert!(options(&[]).times_everything() && options(&["none", "all"]).times_everything());
        assert!(options(&["none"]).times_nothing() && !options(&["none", "profiler"]).times_nothing());
    }

    #[test]
    fn a_range_is_known_by_its_whole_name() {
        let chosen = ["nvtx=time step=1".parse::<DetailOption>().expect("a name"), DetailOption::None];
        let timed = |name: &str| {
            let mut ranges = ProfilerRanges::default();
            ranges.begin(0, name);
            choice(&chosen).of_copy(&ranges).is_timed()
        };
        assert!(timed("time step=1") && !timed("time step=10") && !timed("time step"));
        assert!(needs_ranges(&chosen) && !needs_ranges(&[DetailOption::Profiler, DetailOption::All]));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("", "expected all, none"),
            ("nothing", "expected all, none"),
            ("kernels=a", "expected all, none"),
            ("kernel", "kernel needs a value"),
            ("kernel=", "expected a pattern"),
            ("kernel=(", "unclosed group"),
            ("nvtx", "expected nvtx=solve: nvtx needs a value"),
            ("nvtx=", "expected the name of a range"),
            ("launch", "launch=3,7..9"),
            ("launch=", "found ``"),
            ("launch=3,x", "found `x`"),
            ("launch=-1", "found `-1`"),
            ("launch=7..7", "no launch is in 7..7"),
            ("launch=9..7", "no launch is in 9..7"),
            ("none=1", "none takes no value"),
        ] {
            let error = text.parse::<DetailOption>().expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
