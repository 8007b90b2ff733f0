//! A state in words: parts of the screen, and all that is shown where there is no screen.

use super::estimate::in_words;
use super::state::{Kernel, LiveState, Phase};
use std::fmt::Write;

/// A number of something with a prefix: "12.3M ".
pub fn short(value: f64) -> String {
    let scales = [(1e12, 'T'), (1e9, 'G'), (1e6, 'M'), (1e3, 'k')];
    match scales.iter().find(|(scale, _)| value.abs() >= *scale) {
        Some((scale, prefix)) => format!("{:.1}{prefix} ", value / scale),
        None if value.fract() == 0.0 => format!("{value:.0} "),
        None => format!("{value:.2} "),
    }
}

/// Simulated time.
pub fn simulated(picoseconds: u64) -> String {
    let time = picoseconds as f64;
    match picoseconds {
        0..1_000_000 => format!("{:.1} ns", time / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} us", time / 1e6),
        _ => format!("{:.3} ms", time / 1e9),
    }
}

/// The time that is left, and why that is believed.
pub fn left(state: &LiveState) -> String {
    let estimate = &state.estimate;
    match estimate.seconds_left {
        Some(seconds) => format!("{} ({})", in_words(seconds), estimate.basis),
        None => format!("left: {}", estimate.basis),
    }
}

/// The rates of a run.
pub fn rates(state: &LiveState) -> String {
    format!(
        "{:.2} us/s, {}messages/s, {}warp instructions/s",
        state.sim_us_per_second,
        short(state.messages_per_second),
        short(state.warp_instructions_per_second)
    )
}

/// The phase, and how the run ended.
pub fn phase(state: &LiveState) -> String {
    match (&state.ending, state.phase) {
        (Some(ending), _) => ending.clone(),
        (None, Phase::Concluding) => "the result is checked and written".to_owned(),
        (None, phase) => phase.name().to_owned(),
    }
}

/// A launch.
pub fn kernel(kernel: &Kernel) -> String {
    let time = match kernel.end_ps {
        Some(end) => format!("took {}", simulated(end.saturating_sub(kernel.start_ps))),
        None => format!("since {}", simulated(kernel.start_ps)),
    };
    format!(
        "#{} {} on {}: {} of {} CTAs, {time}",
        kernel.launch, kernel.name, kernel.gpu, kernel.ctas_ended, kernel.ctas
    )
}

/// All of it.
pub fn snapshot(state: &LiveState) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_snapshot(&mut text, state);
    text
}

fn write_snapshot(text: &mut String, state: &LiveState) -> std::fmt::Result {
    let run = &state.run;
    writeln!(text, "{} on {}, process {}: {}", run.workload, run.topology, run.pid, phase(state))?;
    writeln!(text, "simulated {} in {:.1} s, {}", simulated(state.sim_ps), state.wall_seconds, rates(state))?;
    let planned = state.ctas_planned.map_or(String::new(), |planned| format!(" of {planned}"));
    writeln!(text, "{}{planned} CTAs, {} kernels have ended; {}", state.ctas_ended, state.kernels_ended, left(state))?;
    if let Some(silence) = state.silence() {
        writeln!(text, "{silence}")?;
    }
    for launch in &state.kernels {
        writeln!(text, "  {}", kernel(launch))?;
    }
    for gpu in &state.gpus {
        let percent = |percent: Option<f64>| percent.map_or("-".to_owned(), |percent| format!("{percent:.1} %"));
        let parts: Vec<String> =
            gpu.utilisation.iter().map(|part| format!("{} {}", part.name, percent(part.percent))).collect();
        writeln!(text, "{}: {}", gpu.name, parts.join(", "))?;
        let stalls: Vec<String> =
            gpu.stalls.iter().take(6).map(|stall| format!("{} {}", stall.name, percent(stall.percent))).collect();
        if !stalls.is_empty() {
            writeln!(text, "  warps: {}", stalls.join(", "))?;
        }
    }
    if !state.waiting.is_empty() {
        writeln!(text, "waiting at {}:", simulated(state.sampled_ps))?;
        state.waiting.iter().try_for_each(|line| writeln!(text, "  {line}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Estimate;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [(0.0, "0 "), (7.0, "7 "), (0.25, "0.25 "), (1234.0, "1.2k "), (5.6e9, "5.6G ")] {
            assert_eq!(short(value), text);
        }
        for (time, text) in [(0, "0.0 ns"), (1500, "1.5 ns"), (2_500_000, "2.50 us"), (1_234_567_000, "1.235 ms")] {
            assert_eq!(simulated(time), text);
        }
    }

    #[test]
    fn a_snapshot_says_what_is_known() {
        let kernel =
            Kernel { name: "lud".to_owned(), gpu: "gpu".to_owned(), ctas: 8, ctas_ended: 3, ..Kernel::default() };
        let estimate =
            Estimate { basis: "unknown: the program decides what it launches".to_owned(), ..Estimate::default() };
        let mut state = LiveState { phase: Phase::Running, kernels: vec![kernel], estimate, ..LiveState::default() };
        state.waiting = vec!["cpu: waits for launch 3".to_owned()];
        let text = snapshot(&state);
        for line in [
            "left: unknown: the program decides what it launches",
            "  #0 lud on gpu: 3 of 8 CTAs, since 0.0 ns",
            "  cpu: waits for launch 3",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        state.ending = Some("completed, at 5 us".to_owned());
        assert!(snapshot(&state).lines().next().is_some_and(|line| line.ends_with(": completed, at 5 us")));
    }
}
