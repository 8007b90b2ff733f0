//! Programs of several ranks (`tests/mpi`), started by Debian's MPICH on nodes of one and two GPUs.

use crate::cuda_toolchain::Toolchain;
use std::path::Path;
use std::time::Duration;

/// How long a program may take to build or to run before something must be wrong with it.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs `mpiexec -n RANKS PROGRAM ARGUMENTS` on a node: its exit code, its standard output, and its standard error stream.
fn run(toolchain: &Toolchain, topology: &str, ranks: u64, program: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_command-line-under-test"))
        .args(["run", "--quiet", "--topology", topology, "--"])
        .arg(toolchain.mpiexec())
        .args(["-n", &ranks.to_string()])
        .arg(program)
        .args(arguments)
        .timeout(LIMIT)
        .output()
        .expect("the simulator runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
#[ignore = "needs a CUDA toolchain with MPI: tools/cuda-toolchain --nvcc --mpi"]
fn ranks_share_nodes_of_one_and_two_gpus() {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the compilers");
    let program = toolchain.build_mpi("ranks", LIMIT).expect("builds");
    for topology in ["v100_node", "two_v100_node"] {
        for ranks in [1, 2, 4] {
            let (code, out, said) = run(&toolchain, topology, ranks, &program, &[]);
            // The series goes from 0 to one below 4096 for each rank.
            let count = 4096 * ranks;
            let expected = format!("PASS {ranks} ranks: total {}\n", count * (count - 1) / 2);
            assert_eq!((code, out.as_str()), (0, expected.as_str()), "{topology}, {ranks} ranks: {said}");
        }
    }
}

#[test]
#[ignore = "needs a CUDA toolchain with MPI: tools/cuda-toolchain --nvcc --mpi"]
fn a_rank_that_is_killed_in_the_middle_ends_the_program_and_not_the_simulator() {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the compilers");
    let program = toolchain.build_mpi("ranks", LIMIT).expect("builds");
    for topology in ["v100_node", "two_v100_node"] {
        let (code, out, said) = run(&toolchain, topology, 4, &program, &["kill"]);
        // The exit code that mpiexec makes of the signal SIGKILL, number 9.
        assert_eq!(code, 9, "{topology}: {out}{said}");
        assert!(said.contains("--- balar-actors: mpiexec"), "the statistics are there: {said}");
    }
}
