//! A unit between the crossbar and a slice of the L2: it may ask its slice for lines of that slice alone.

use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::RunOptions;
use balar_actors::interleave::SliceMap;
use balar_actors::prototyping::{Interposer, Io, Pace, definition};
use balar_experiments::{ExperimentError, run_with};
use balar_protocol::Frequency;
use balar_protocol::memory::{LINE_BYTES, MemoryKind, MemoryRequest};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Of `small_node.ron`.
const SLICES: u32 = 2;

balar_actors::parameters! {
    /// Of a prefetcher in front of a slice.
    struct SlicePrefetcherParameters {
        /// clock
        clock: Frequency,
        /// does it fetch the next line of its slice, and not just the next line?
        knows_slices: bool,
    }
}

balar_protocol::counters! {
    /// Of a prefetcher in front of a slice.
    struct SlicePrefetcherCounters {
        /// lines asked for
        prefetches: "line",
    }
}

/// Fetches a line behind each that is loaded.
#[derive(Debug, Serialize, Deserialize)]
struct SlicePrefetcher;

impl Interposer for SlicePrefetcher {
    const NAME: &'static str = "SlicePrefetcher";
    const SUMMARY: &'static str = "fetches the next line";
    type Parameters = SlicePrefetcherParameters;
    type Counters = SlicePrefetcherCounters;
    type Own = ();

    fn new(_: &SlicePrefetcherParameters) -> SlicePrefetcher {
        SlicePrefetcher
    }

    fn pace(parameters: &SlicePrefetcherParameters) -> Pace {
        Pace::new(parameters.clock, 2)
    }

    fn on_request(&mut self, request: MemoryRequest, io: &mut Io<Self>) {
        io.forward(request);
        if request.kind == MemoryKind::Load {
            let map = SliceMap::xor(SLICES);
            let is_next = |line: &u64| !io.parameters.knows_slices || map.slice_of(*line) == map.slice_of(request.line);
            let line = (1..).map(|lines| request.line + lines * LINE_BYTES).find(is_next).unwrap_or(request.line);
            io.counters.prefetches += 1;
            io.ask(MemoryRequest { line, ..request }, ());
        }
    }
}

const SLICE_PREFETCHER: UnitDefinition = definition::<SlicePrefetcher>();

/// The small node with such a unit in front of each slice.
fn topology(knows_slices: bool) -> PathBuf {
    let text = include_str!("../topologies/small_node.ron");
    let wire = r#"("crossbar.slice[*]", "l2[*].crossbar", latency: "20 ns"),"#;
    let gmmu = r#""gmmu": Gmmu(clock: "1 GHz"),"#;
    assert!(text.contains(wire) && text.contains(gmmu), "the node is wired otherwise");
    let wires = r#"("crossbar.slice[*]", "prefetcher[*].upstream", latency: "10 ns"),
                ("prefetcher[*].downstream", "l2[*].crossbar", latency: "10 ns"),"#;
    let unit =
        format!("{gmmu} \"prefetcher[0..{SLICES}]\": SlicePrefetcher(clock: \"1 GHz\", knows_slices: {knows_slices}),");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("slices_{knows_slices}.ron"));
    std::fs::write(&path, text.replacen(wire, wires, 1).replacen(gmmu, &unit, 1)).expect("a file");
    path
}

/// What a run says of it; `None` where the program comes to its end with the right result.
fn mistake(knows_slices: bool, threads: usize) -> Option<String> {
    let topology = topology(knows_slices);
    let options = RunOptions { threads, ..RunOptions::default() };
    let parameters: &[(&str, &str)] = &[("elements", "4096")];
    let result = run_with(options, &topology.to_string_lossy(), "vectoradd", parameters, &[&SLICE_PREFETCHER]);
    match result {
        Ok(result) => {
            assert!(result.sum("gpu.prefetcher", "prefetches").is_some_and(|count| count > 0), "nothing was fetched");
            None
        }
        Err(error) => {
            assert!(matches!(error, ExperimentError::NotCompleted { .. }), "{error}");
            Some(error.to_string())
        }
    }
}

#[test]
fn who_asks_for_the_lines_of_its_slice_is_let_be() {
    assert_eq!(mistake(true, 1), None);
}

#[test]
fn who_asks_a_slice_for_a_line_of_another_ends_the_run() {
    let found = mistake(false, 1).expect("it is found");
    for text in
        ["gpu.prefetcher[", " broke a rule at ", ": it asked gpu.l2[", " for the line 0x", "] of gpu.crossbar owns"]
    {
        assert!(found.contains(text), "{found}");
    }
    assert_eq!(mistake(false, 2).as_deref(), Some(found.as_str()), "it does not depend on threads");
}
