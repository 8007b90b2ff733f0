//! Programs of the user's in a study: the runs, and the figures that are kept of a run.

use super::instruction_mix::InstructionMix;
use super::runs::Point;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Lines of what a program has printed that are told.
const TOLD_LINES: usize = 4;

/// A run of a program of the user's on a simulated node. Two that are equal give the same figures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramRun {
    /// The words of its command.
    pub command: Vec<String>,
    /// The folder that it runs in; that of this process where there is none.
    pub directory: Option<PathBuf>,
    /// The node.
    pub topology: &'static str,
    /// Other values of the node's parameters.
    pub overrides: Vec<(&'static str, String)>,
    /// Whether its instructions are counted one by one.
    pub by_instruction: bool,
}

impl ProgramRun {
    /// The arguments of `balar-actors` that make this run.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["run".to_owned(), "--topology".to_owned(), self.topology.to_owned()];
        for (path, value) in &self.overrides {
            arguments.extend(["--set".to_owned(), format!("{path}={value}")]);
        }
        if self.by_instruction {
            arguments.push("--profile-instructions".to_owned());
        }
        arguments
    }

    /// The command line that makes this run.
    pub fn command_line(&self) -> String {
        format!("{} -- {}", self.arguments().join(" "), self.command.join(" "))
    }
}

/// A run of a study: a built-in workload, or a program of the user's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// A built-in workload.
    BuiltIn {
        /// The run.
        point: Point,
        /// Whether its instructions are counted one by one.
        by_instruction: bool,
    },
    /// A program of the user's.
    Program(ProgramRun),
}

impl Job {
    /// The command line that makes this run.
    pub fn command(&self) -> String {
        match self {
            Job::BuiltIn { point, .. } => point.command(),
            Job::Program(run) => run.command_line(),
        }
    }
}

/// The figures of a run's kernels, and what its program printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramFigures {
    /// Which code ran: "sass", "ptx", or more words.
    pub isa: String,
    /// The launches, in order.
    pub launches: Vec<LaunchFigures>,
    /// The instruction mix of each kernel, where instructions were counted.
    pub mixes: BTreeMap<String, InstructionMix>,
    /// The standard output of a program of the user's.
    pub printed: String,
}

/// A launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFigures {
    /// The kernel, as the code names it.
    pub kernel: String,
    /// SM-clock cycles.
    pub cycles: u64,
    /// From its start to its end, ps.
    pub picoseconds: u64,
}

impl ProgramFigures {
    /// Cycles of all launches.
    pub fn cycles(&self) -> u64 {
        self.launches.iter().map(|launch| launch.cycles).sum()
    }

    /// Time of all launches, ms.
    pub fn milliseconds(&self) -> f64 {
        self.launches.iter().map(|launch| launch.picoseconds).sum::<u64>() as f64 / 1e9
    }

    /// Launches of a kernel and their cycles, by its name in the source: its name in the code may say more.
    pub fn of_kernel(&self, name: &str) -> (usize, u64) {
        let cycles = self.launches.iter().filter(|launch| is_kernel(&launch.kernel, name)).map(|launch| launch.cycles);
        cycles.fold((0, 0), |(count, sum), cycles| (count + 1, sum + cycles))
    }

    /// The instruction mix of a kernel, by its name in the source.
    pub fn mix_of(&self, name: &str) -> Option<&InstructionMix> {
        self.mixes.iter().find(|(kernel, _)| is_kernel(kernel, name)).map(|(_, mix)| mix)
    }

    /// The first number that the program printed behind a label and `=`: the 0.0042 of `time_ms=0.0042`, as `validation/run_programs` finds it.
    pub fn printed_value(&self, label: &str) -> Option<f64> {
        let behind = self.printed.match_indices(label).map(|(at, _)| &self.printed[at + label.len()..]);
        behind.filter_map(|text| text.trim_start().strip_prefix('=')).find_map(|text| leading_number(text.trim_start()))
    }

    /// Whether machine code alone ran.
    pub fn is_machine_code(&self) -> bool {
        self.isa.split([',', ' ']).next() == Some("sass")
    }
}

/// The number without a sign that a text begins with.
fn leading_number(text: &str) -> Option<f64> {
    let digits = |from: usize, is_digit: fn(char) -> bool| {
        text[from..].find(|letter| !is_digit(letter)).map_or(text.len(), |length| from + length)
    };
    let mantissa = digits(0, |letter| letter.is_ascii_digit() || letter == '.');
    let exponent = text[mantissa..].strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    let end = exponent.map_or(mantissa, |rest| {
        let first = text.len() - rest.len();
        let end = digits(first, |letter| letter.is_ascii_digit());
        // An `e` without digits is no exponent.
        if end > first { end } else { mantissa }
    });
    text[..end].parse().ok()
}

/// The last lines of what a program has printed, as one.
pub fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(TOLD_LINES)..].join("; ")
}

/// Whether code has `name` as C, or as C++: its length and itself behind the prefix of mangled names.
fn is_kernel(symbol: &str, name: &str) -> bool {
    symbol == name || symbol.strip_prefix("_Z").is_some_and(|rest| rest.starts_with(&format!("{}{name}", name.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_as_c_and_as_cplusplus_name_them() {
        let launch = |kernel: &str, cycles| LaunchFigures { kernel: kernel.to_owned(), cycles, picoseconds: 10 };
        let figures = ProgramFigures {
            isa: "sass, assembled by ptxas 12.9".to_owned(),
            launches: vec![launch("_Z5firstPdi", 3), launch("first", 4), launch("_Z8firstTwoPd", 5)],
            ..ProgramFigures::default()
        };
        assert_eq!((figures.of_kernel("first"), figures.cycles()), ((2, 7), 12));
        assert_eq!(figures.of_kernel("second"), (0, 0));
        assert!(figures.is_machine_code());
        assert!(!ProgramFigures { isa: "mixed".to_owned(), ..figures }.is_machine_code());
    }

    #[test]
    fn a_printed_value_is_the_first_number_behind_its_label() {
        for (printed, expected) in [
            ("kernel=add time_ms=0.0042 reps=3\n", Some(0.0042)),
            ("time_ms = 12\ntime_ms = 13\n", Some(12.0)),
            ("mean time_ms=\n  1.5e-3 ms", Some(0.0015)),
            ("time_ms=3e", Some(3.0)),
            ("time_ms=3E+x", Some(3.0)),
            ("time_ms: 4, time_ms=none, time_ms=1.2.3, time_ms=5.25", Some(5.25)),
            ("time_ms=nan", None),
            ("time_ms=", None),
            ("time=4", None),
            ("", None),
        ] {
            let figures = ProgramFigures { printed: printed.to_owned(), ..ProgramFigures::default() };
            assert_eq!(figures.printed_value("time_ms"), expected, "{printed}");
        }
    }

    #[test]
    fn the_last_lines_are_told() {
        assert_eq!(last_lines("one\n\n two\nthree\nfour\nfive\n"), "two; three; four; five");
        assert_eq!(last_lines(""), "");
    }

    #[test]
    fn a_run_has_a_command_line() {
        let run = ProgramRun {
            command: vec!["./app".to_owned(), "-s".to_owned()],
            directory: None,
            topology: "v100_node",
            overrides: vec![("gpu.clock", "500 MHz".to_owned())],
            by_instruction: true,
        };
        let expected = "run --topology v100_node --set gpu.clock=500 MHz --profile-instructions -- ./app -s";
        assert_eq!(Job::Program(run).command(), expected);
    }
}
