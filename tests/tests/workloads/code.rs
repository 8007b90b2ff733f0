//! Every workload with the PTX of every compiler: the result is right, and a run says the same for any number of threads.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{CodeChoice, RunResult};
use balar_experiments::{SimulationRequest, simulate};
use balar_tests::{built_in, described, small, small_run};
use balar_workloads::{Code, Compiler, Descriptor, workloads};
use std::sync::Arc;

/// The PTX for sm_60 is what a P100 runs.
fn topology(code: &Code) -> &'static str {
    if code.capability < 70 { "p100_node" } else { "v100_node" }
}

/// The run on one thread; the one that other tests look at, too, where they run the same PTX: those of a V100 run machine code.
fn run_on_one(workload: &Descriptor, code: &Code) -> Arc<RunResult> {
    if code.capability < 70 && workload.ptx_for(60) == Some(code.text) {
        return small_run(topology(code), workload.name);
    }
    Arc::new(run(workload, code, 1))
}

fn run(workload: &Descriptor, code: &Code, threads: usize) -> RunResult {
    let result = simulate(SimulationRequest {
        topology: built_in(topology(code)),
        workload: Some((workload.name.to_owned(), small(workload.name))),
        ptx: vec![(code.file.to_owned(), code.text.to_owned())],
        code: CodeChoice::default(),
        options: RunOptions { threads, ..RunOptions::default() },
    });
    result.unwrap_or_else(|error| panic!("{}: {error}", code.file))
}

/// Runs what one compiler made of each workload with one thread, and with two and four.
fn all_of(compiler: Compiler) {
    let mut count = 0;
    for workload in workloads() {
        for code in workload.code.iter().filter(|code| code.compiler == compiler) {
            let result = run_on_one(workload, code);
            assert!(result.completed(), "{}: {:?} {:?}", code.file, result.outcome, result.program);
            assert_eq!(result.verified(), Some(true), "{}: {:?}", code.file, result.program);
            let expected = described(&result);
            for threads in [2, 4] {
                let actual = described(&run(workload, code, threads));
                let differs = expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
                assert!(differs.is_none(), "{}, {threads} threads: {differs:?}", code.file);
                assert_eq!(expected.len(), actual.len(), "{}, {threads} threads", code.file);
            }
            count += 1;
        }
    }
    assert!(count >= workloads().len(), "{} has {count} files for {} workloads", compiler.name(), workloads().len());
}

#[test]
fn nvrtc() {
    all_of(Compiler::Nvrtc);
}

#[test]
fn nvcc() {
    all_of(Compiler::Nvcc);
}

#[test]
fn clang() {
    all_of(Compiler::Clang);
}
