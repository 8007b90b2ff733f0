//! A record to test with: printing, writing and reading of a run are tested on the same one.

use crate::ending::Ending;
use crate::json::to_text;
use crate::metrics::node_facts::NodeFacts;
use crate::result::RunRecord;
use crate::run_folder::document::RunDocument;
use crate::timing::Timing;
use balar_actors::kinds::UNITS;
use balar_actors::topology::{self, LoadOptions, PartLibrary, Topology, TopologySource};
use balar_protocol::cuda::LaunchId;
use balar_protocol::statistics::{
    CtaCounters, KernelCounters, KernelRecord, ProgramOutcome, StatisticDefinition, StatisticSink, Verification,
};
use balar_protocol::{Detail, ProcessId, SimTime};
use std::time::Duration;

/// A run with two kernels of three launches on a GPU of two SMs.
pub fn record() -> RunRecord {
    const HITS: StatisticDefinition =
        StatisticDefinition { name: "read_hits", unit: "sector", meaning: "", maximum: false };
    let mut statistics = StatisticSink::default();
    for (index, warps) in [(0, 8), (1, 5)] {
        statistics.set_location(&format!("gpu.sm[{index}]"));
        CtaCounters { warps_launched: warps, inst_executed: 10 * warps, ..CtaCounters::default() }
            .write(&mut statistics);
    }
    statistics.set_location("gpu.l2[0]");
    statistics.row_of("bank[0]", &HITS, 7);
    statistics.row_of("bank[1]", &HITS, 0);
    for (launch, name, cycles) in [(0, "lud_diagonal", 100), (1, "lud_internal", 400), (2, "lud_diagonal", 140)] {
        statistics.kernels.push(&KernelRecord {
            launch: LaunchId(launch),
            process: ProcessId::FIRST,
            name: name.into(),
            stream: 0,
            gpu: "gpu".into(),
            grid: [4, 2, 1],
            block: [16, 16, 1],
            registers_per_thread: 32,
            shared_bytes: 2048,
            detail: Detail::Timed,
            is_profiled: false,
            range: None,
            parent: None,
            start_ps: 1_000_000 * u64::from(launch),
            end_ps: 1_000_000 * u64::from(launch) + cycles * 762,
            cycles,
            completed: true,
            counters: KernelCounters {
                ctas: CtaCounters {
                    warps_launched: 64,
                    inst_executed: 2 * cycles,
                    thread_inst_executed: 48 * cycles,
                    ..CtaCounters::default()
                },
                ..KernelCounters::default()
            },
            ctas_unfinished: 0,
        });
    }
    statistics.outcome = Some(ProgramOutcome {
        finished: true,
        verification: Verification::Passed,
        error: None,
        printed: Vec::new(),
        launches_refused: 0,
        first_refused: None,
        peer_accessed: false,
        results: vec![("bandwidth".to_owned(), 12.5, "GB/s".to_owned())],
    });
    RunRecord {
        topology: "v100_node".to_owned(),
        workload: "lud".to_owned(),
        parameters: vec![("size".to_owned(), "32".to_owned()), ("mode".to_owned(), "fast".to_owned())],
        isa: "ptx".to_owned(),
        ending: Ending::Completed,
        sim_time: SimTime(3_000_000),
        wall: Duration::from_millis(250),
        threads: 1,
        statistics,
        timing: Timing::Everything,
        profiles: None,
        timeline: None,
        series: Vec::new(),
        node: NodeFacts::default(),
        chosen_launches: None,
        given_up: None,
    }
}

/// The document of that record.
pub fn document() -> RunDocument {
    RunDocument::parse(&to_text(&record().document())).expect("what is written is read")
}

/// A built-in topology.
pub fn node(name: &str) -> Topology {
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds: UNITS, library: &library, workloads: None, overrides: &[] };
    topology::load(&TopologySource::from(name), &options).expect("it is built in")
}
