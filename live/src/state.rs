//! The state of a run that is under way: one document, for the page, for scripts and for `watch`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of [`LiveState`]. It grows when a member changes its meaning or goes; new ones do not change it.
pub const VERSION: u32 = 1;

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Code is loaded and memory is filled; nothing has been simulated.
    #[default]
    Preparing,
    /// It goes on.
    Running,
    /// It is held, because a user asked for that.
    Held,
    /// Nothing is left to simulate; the result is checked and written.
    Concluding,
    /// It is over.
    Ended,
}

impl Phase {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Preparing => "preparing",
            Phase::Running => "running",
            Phase::Held => "held",
            Phase::Concluding => "concluding",
            Phase::Ended => "ended",
        }
    }
}

/// A run at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveState {
    /// [`VERSION`].
    pub version: u32,
    /// Which run.
    pub run: RunFacts,
    /// How far it is.
    pub phase: Phase,
    /// How it ended, in words, once it has.
    pub ending: Option<String>,
    /// Simulated time that has been reached.
    pub sim_ps: u64,
    /// Windows of the engine so far.
    pub windows: u64,
    /// Messages between units so far.
    pub messages: u64,
    /// Real time since the beginning.
    pub wall_seconds: f64,
    /// Real time for which the run was held.
    pub held_seconds: f64,
    /// Real time for which simulated time has not moved.
    pub still_seconds: f64,
    /// Real time for which the simulator has owed an answer: it computes in one window, or waits for the program.
    pub unanswered_seconds: f64,
    /// Simulated microseconds in a second of real time, lately.
    pub sim_us_per_second: f64,
    /// Messages between units in a second of real time, lately.
    pub messages_per_second: f64,
    /// Warp instructions in a second of real time, lately.
    pub warp_instructions_per_second: f64,
    /// CTAs that have ended.
    pub ctas_ended: u64,
    /// CTAs of all launches, where that is known.
    pub ctas_planned: Option<u64>,
    /// The time that is left.
    pub estimate: Estimate,
    /// Launches that have ended.
    pub kernels_ended: u64,
    /// Launches that are there, after those that ended last.
    pub kernels: Vec<Kernel>,
    /// GPUs.
    pub gpus: Vec<Gpu>,
    /// Measurements outside of the GPUs.
    pub node: Vec<Measured>,
    /// How busy units are, by path, in percent.
    pub units: BTreeMap<String, f32>,
    /// Simulated time of the last sample.
    pub sampled_ps: u64,
    /// Shares, quotients and rates per simulated time are those from here: from the sample before, or from the beginning once the run is over.
    pub measured_from_ps: u64,
    /// Up to here.
    pub measured_to_ps: u64,
    /// Where a run stands still, its waiting units: one line for all units that wait alike.
    pub waiting: Vec<String>,
}

/// Which run it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Its process.
    pub pid: u32,
    /// The version of balar-actors.
    pub program: String,
    /// The topology.
    pub topology: String,
    /// The workload, the program or the trace.
    pub workload: String,
    /// Does a program that computes by itself decide what comes?
    pub is_program: bool,
}

/// The time that is left of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Real time that is left, where there is something to go by.
    pub seconds_left: Option<f64>,
    /// How much is done, from 0 to 1, where the whole is known.
    pub fraction: Option<f64>,
    /// The basis of the estimate, or why nothing is known.
    pub basis: String,
}

/// A launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Numbered from 0, in the order of launches.
    pub launch: u32,
    /// The kernel, as its source has it.
    pub name: String,
    /// The GPU.
    pub gpu: String,
    /// The stream.
    pub stream: u32,
    /// CTAs of the grid.
    pub ctas: u64,
    /// Those that have ended.
    pub ctas_ended: u64,
    /// When it began.
    pub start_ps: u64,
    /// When it ended, if it has.
    pub end_ps: Option<u64>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its path.
    pub name: String,
    /// Launches that are on it.
    pub kernels: u64,
    /// Launches that have ended on it.
    pub kernels_ended: u64,
    /// CTAs that have ended on it.
    pub ctas_ended: u64,
    /// How busy its parts are, in percent.
    pub utilisation: Vec<Share>,
    /// The activity of its warps, in percent of the cycles of resident warps; activities with no cycles are left out.
    pub stalls: Vec<Share>,
    /// All that is measured of it.
    pub metrics: Vec<Measured>,
}

/// A part of a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// From 0 to 100; none where nothing was measured.
    pub percent: Option<f64>,
}

/// A number that is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its name: letters, digits and underscores.
    pub name: String,
    /// The value; none for a quotient without a divisor.
    pub value: Option<f64>,
    /// Its unit of measure.
    pub unit: String,
    /// One line of meaning.
    pub meaning: String,
    /// Does it only grow?
    pub is_count: bool,
}

impl LiveState {
    /// The state as JSON.
    pub fn json(&self) -> String {
        // Numbers and texts alone: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Why the state of a run that does not answer is not known, and its last sign of life. `None` where it does answer.
    pub fn silence(&self) -> Option<String> {
        if self.unanswered_seconds < 2.0 || matches!(self.phase, Phase::Ended | Phase::Concluding) {
            return None;
        }
        let seconds = self.unanswered_seconds;
        if self.phase == Phase::Preparing {
            return Some(format!("no answer for {seconds:.0} s: code is being loaded, or memory filled"));
        }
        let running: Vec<&str> =
            self.kernels.iter().filter(|kernel| kernel.end_ps.is_none()).map(|kernel| kernel.name.as_str()).collect();
        let last = match running.as_slice() {
            [] => "no kernel was running".to_owned(),
            names => format!("{} was running", names.join(", ")),
        };
        let why = if self.run.is_program && running.is_empty() {
            "the program computes by itself, and simulated time stands still meanwhile, or a window does not end"
        } else {
            "a window takes long, or does not end"
        };
        let time = self.sampled_ps as f64 / 1e6;
        Some(format!("no answer for {seconds:.0} s: {why}. At the last answer, at {time:.3} us, {last}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_from_json() {
        let kernel = Kernel { name: "scale<float>".to_owned(), ctas: 3, end_ps: Some(5), ..Kernel::default() };
        let state = LiveState { version: VERSION, phase: Phase::Held, kernels: vec![kernel], ..LiveState::default() };
        assert_eq!(serde_json::from_str::<LiveState>(&state.json()).expect("its own"), state);
    }

    #[test]
    fn silence_is_named_with_what_was_last() {
        let mut state = LiveState { phase: Phase::Running, unanswered_seconds: 1.0, ..LiveState::default() };
        assert_eq!(state.silence(), None, "an answer may take a moment");
        (state.unanswered_seconds, state.sampled_ps) = (12.3, 4_500_000);
        state.kernels.push(Kernel { name: "lud".to_owned(), ..Kernel::default() });
        let text = "no answer for 12 s: a window takes long, or does not end. At the last answer, at 4.500 us, lud was running";
        assert_eq!(state.silence().as_deref(), Some(text));
        state.kernels[0].end_ps = Some(1);
        state.run.is_program = true;
        assert!(state.silence().is_some_and(|text| text.contains("the program computes by itself")));
        state.phase = Phase::Ended;
        assert_eq!(state.silence(), None);
    }
}
