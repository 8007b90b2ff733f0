//! CUDA programs (`tests/cuda`), built by real compilers and run unmodified, on a node of one GPU and on one of two.
//!
//! The compilers are those that `tools/cuda-toolchain --nvcc --clang FOLDER` sets up; `BALAR_CUDA_TOOLCHAIN` names the
//! folder. Without it there is nothing to build with: `cargo test` shows these tests as ignored, and with
//! `-- --include-ignored`, as continuous integration runs them, they fail.

#![expect(clippy::print_stdout, reason = "says how many programs were built and run")]

use crate::cuda_toolchain::{Compiler, Toolchain};
use crate::managed_memory;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A program, and what it does when all is well.
struct Program {
    /// The stem of its source in `tests/cuda`, or a folder there.
    name: &'static str,
    stdout: &'static str,
    /// What it prints on a node of two GPUs, where that is something else.
    stdout_on_two: Option<&'static str>,
    /// Texts that stderr must contain.
    stderr: &'static [&'static str],
    exit_code: i32,
    arguments: &'static [&'static str],
}

/// A program that prints one line and ends with code 0.
const fn program(name: &'static str, stdout: &'static str) -> Program {
    Program { name, stdout, stdout_on_two: None, stderr: &[], exit_code: 0, arguments: &[] }
}

/// Totals are worked out in comments where the sources do not say them.
const PROGRAMS: &[Program] = &[
    // 3 (0 + 1 + ... + 9999).
    program("vectoradd", "PASS vectoradd: 10000 elements, total 149985000\n"),
    program("processes", "PASS processes\n"),
    program("streams_events", "PASS streams and events\n"),
    program("managed", "PASS managed memory\n"),
    program("managed_pages", "PASS managed pages\n"),
    program("managed_devices", "PASS managed memory of several devices\n"),
    // 588 times 0 + ... + 16, and 0 + 1 + 2 + 3.
    program("cooperative", "PASS cooperative groups: sum 79974\n"),
    program("member_masks", "PASS collectives of masks, tiles and labels\n"),
    // The sum of the generator's 3000 numbers.
    program("thrust_algorithms", "PASS thrust: sum 1482886\n"),
    // The sum of 7919 i mod 1009 for i below 5000.
    program("cub_algorithms", "PASS cub: sum 2520540\n"),
    program("textures_surfaces", "PASS textures and surfaces\n"),
    program("texture_references", "PASS texture references\n"),
    program("symbols", "PASS symbols: 37 calls\n"),
    program("stream_capture", "PASS capture\n"),
    program("graphs", "PASS graphs: 4 calls of the host function\n"),
    program("conditional_graphs", "PASS conditional graphs: 14 launches\n"),
    // 3 blocks of 2 threads; each thread has 16 descendants, and there is one more.
    program("dynamic_parallelism", "tail after 96 leaves\nPASS dynamic parallelism: 97 leaves\n"),
    // Thread t makes 26 + 63 t of each of 512 elements, for t from 0 to 3.
    program("host_threads", "PASS host threads: total 246784\n"),
    // 0 + 1 + ... + 999.
    program("many_threads", "PASS many threads: total 499500\n"),
    Program {
        stdout_on_two: Some("PASS peer copies on 2 devices\n"),
        ..program("peer", "PASS peer copies on 1 device\n")
    },
    program(
        "device_printf",
        "host before\n\
         int -5 unsigned 5 hex ff char z percent %\n\
         float 1.500 1.23e+04 width [   42] [42   ] [00042]\n\
         long -1234567890123 deadbeefcafe string text\n\
         host between\n\
         thread 0 of block 0\nthread 1 of block 0\nthread 2 of block 0\narguments 2\n\
         thread 0 of block 0\narguments 2\n\
         PASS device printf\n",
    ),
    Program {
        stderr: &[
            "device_assert.cu:6: ",
            "block: [0,0,0], thread: [6,0,0] Assertion `values[threadIdx.x] != 5` failed.",
        ],
        ..program("device_assert", "PASS device assert: device-side assert triggered\n")
    },
    program("kernel_fault", "PASS kernel fault: cudaErrorIllegalAddress\n"),
    program("half_precision", "PASS half precision: 200 values\n"),
    program("separate", "PASS separate compilation: counter 19\n"),
    program("driver_api", "PASS driver API: 16 blocks\n"),
    // 2.25 times 0 + ... + 999.
    program("nvrtc", "PASS NVRTC: total 1123875.0\n"),
    // 300, 5 times 32 and three times 40, 30, twice 7 + ... + 16, 50.
    program("repeated_launches", "PASS repeated launches: 890\n"),
    program("copies_2d_3d", "PASS copies in two and three dimensions\n"),
    program("pinned_mapped", "PASS pinned and mapped memory\n"),
    program("registered_memory", "PASS registered memory\n"),
    program("pageable_queue", "PASS pageable queue\n"),
    program("memory_pools", "PASS memory pools\n"),
    program("host_functions", "PASS host functions: 5 calls\n"),
    // 10 t + 45 for t below 64.
    program("device_heap", "PASS device heap: total 23040\n"),
    program("occupancy", "PASS occupancy and attributes\n"),
    program("error_codes", "PASS error codes: 30 failures\n"),
    program("device_properties", "PASS device properties\n"),
    program("l2_residency", "PASS L2 residency\n"),
    // Twice 3 (0 + ... + 1499) + 1500.
    program("large_parameters", "PASS large parameters: sum 6748500\n"),
    Program {
        exit_code: 7,
        arguments: &["--topology", "two words"],
        ..program("kernel_arguments", "PASS kernel arguments\n")
    },
];

/// What a compiler cannot build, or does not run as the other ones do, and why.
const LEFT_OUT: &[(&str, Compiler, &str)] = &[
    ("texture_references", Compiler::Nvcc13, "CUDA 12 took texture references away"),
    ("texture_references", Compiler::Nvcc13Default, "CUDA 12 took texture references away"),
    ("error_codes", Compiler::Nvcc13Default, "NVIDIA's runtime makes other codes of some errors of the driver"),
    ("repeated_launches", Compiler::Nvcc13Default, "it expects such a code, of a launch of too many threads"),
    ("texture_references", Compiler::Clang12, "CUDA 12 took texture references away"),
    ("large_parameters", Compiler::Clang12, "parameters of more than 4 KiB are refused"),
    ("large_parameters", Compiler::Clang11, "parameters of more than 4 KiB are refused"),
    ("separate", Compiler::Clang12, "the packages for clang have no nvlink"),
    ("separate", Compiler::Clang11, "the packages for clang have no nvlink"),
    ("dynamic_parallelism", Compiler::Clang12, "the packages for clang have no nvlink"),
    ("dynamic_parallelism", Compiler::Clang11, "the packages for clang have no nvlink"),
    ("conditional_graphs", Compiler::Clang12, "the packages for clang have no nvlink"),
    ("conditional_graphs", Compiler::Clang11, "the packages for clang have no nvlink"),
];

/// Further builds of a program: another way of compiling that changes what the program asks of its runtime library.
const VARIANTS: &[(&str, Compiler, &[&str])] = &[
    // One default stream for each host thread: other names of every function that takes a stream.
    ("host_threads", Compiler::Nvcc13, &["--default-stream", "per-thread"]),
    ("host_threads", Compiler::Clang12, &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM", "-fgpu-default-stream=per-thread"]),
    // Device code in each form that a container can hold it.
    ("symbols", Compiler::Nvcc13, &["-compress-mode=size"]),
    ("symbols", Compiler::Nvcc13, &["-compress-mode=speed"]),
    ("symbols", Compiler::Nvcc13, &["-compress-mode=none"]),
    // Device code as a debugger wants it.
    ("cooperative", Compiler::Nvcc13, &["-G"]),
    ("textures_surfaces", Compiler::Clang12, &["-O0"]),
];

/// What is not run as machine code, with any compiler, and why.
const NOT_AS_MACHINE_CODE: &[(&str, &str)] =
    &[("many_threads", "launches no kernel"), ("pageable_queue", "launches no kernel")];

/// Programs of nvcc that also run from their PTX alone, assembled for the V100, and what they try of that.
const ASSEMBLED: &[(&str, &str)] = &[
    ("vectoradd", "a fatbin's PTX for compute_75"),
    ("symbols", "variables of all kinds"),
    ("textures_surfaces", "texture and surface instructions"),
    ("cub_algorithms", "a program that asks which architecture its PTX is for"),
    ("driver_api", "cuModuleLoadData, cuLinkAddData, and PTX with mistakes"),
    ("nvrtc", "PTX that is made at run time"),
];

/// How long a program may take to build or to run before something must be wrong with it.
const LIMIT: Duration = Duration::from_secs(240);

#[test]
#[ignore = "needs a CUDA toolchain: tools/cuda-toolchain"]
fn programs_of_nvcc_with_cuda_13_run() {
    build_and_run(Compiler::Nvcc13);
}

/// The runtime that is linked into a program asks the driver for all that it does.
#[test]
#[ignore = "needs a CUDA toolchain: tools/cuda-toolchain"]
fn programs_as_nvcc_builds_them_by_default_run() {
    build_and_run(Compiler::Nvcc13Default);
}

#[test]
#[ignore = "needs a CUDA toolchain: tools/cuda-toolchain"]
fn programs_of_clang_with_cuda_12_run() {
    build_and_run(Compiler::Clang12);
}

#[test]
#[ignore = "needs a CUDA toolchain: tools/cuda-toolchain"]
fn programs_of_clang_with_cuda_11_run() {
    build_and_run(Compiler::Clang11);
}

/// Programs with Hopper's own instructions: as machine code and as PTX, timed and for their values alone.
#[test]
#[ignore = "needs a CUDA toolchain: tools/cuda-toolchain"]
fn programs_for_hopper_run() {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the compilers");
    for program in &[
        program("group_products", "PASS products of warp groups: 27200 elements\n"),
        program("multicast", "PASS clusters of 1, 2, 4 and 8\n"),
    ] {
        let executable =
            toolchain.build_for_hopper(program.name, LIMIT).unwrap_or_else(|error| panic!("{}: {error}", program.name));
        for further in [
            &["--check-hazards"][..],
            &["--isa", "ptx"],
            &["--threads", "2"],
            &["--detail", "none", "--threads", "2"],
            &["--detail", "none", "--isa", "ptx"],
        ] {
            let options: Vec<&Path> = ["--topology", "h100_sxm_node"].iter().chain(further).map(Path::new).collect();
            let outcome = run_with(program, &executable, &options, program.stdout);
            outcome.unwrap_or_else(|error| panic!("{}: {error}", program.name));
        }
    }
}

/// The V100 of the other tests has no persisting lines.
#[test]
#[ignore = "needs a CUDA toolchain: tools/cuda-toolchain"]
fn a_program_keeps_data_in_the_l2() {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the compilers");
    let program = program("l2_residency", "PASS L2 residency\n");
    for compiler in [Compiler::Nvcc13, Compiler::Nvcc13Default, Compiler::Clang12, Compiler::Clang11] {
        let executable = toolchain.build(compiler, program.name, &[], LIMIT).unwrap_or_else(|error| panic!("{error}"));
        run(&program, &executable, "rtx3070_node", program.stdout).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
#[ignore = "needs a CUDA toolchain: tools/cuda-toolchain"]
fn a_program_of_the_runtime_moves_pages_as_the_real_driver_does() {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the compilers");
    // The GPU of this node runs no code for sm_70.
    let built = toolchain.build(Compiler::Clang12, "managed_pages", &["--cuda-gpu-arch=sm_61"], LIMIT);
    let program = built.unwrap_or_else(|error| panic!("{error}"));
    let outcome = managed_memory::run_program("gtx1080ti_node", &[], &[program.as_os_str()], "PASS managed pages\n");
    if outcome.saw() {
        managed_memory::check_leaves_read_backwards(&outcome);
    }
}

#[test]
fn what_is_left_out_or_varied_exists() {
    let excepted = NOT_AS_MACHINE_CODE.iter().chain(ASSEMBLED).map(|row| row.0);
    let names = LEFT_OUT.iter().map(|row| row.0).chain(VARIANTS.iter().map(|row| row.0)).chain(excepted);
    for name in names {
        assert!(PROGRAMS.iter().any(|program| program.name == name), "no program {name}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda");
    let mut sources: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of the sources")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir() || path.extension().is_some_and(|extension| extension == "cu"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    sources.sort();
    let mut listed: Vec<_> = PROGRAMS.iter().map(|program| program.name.to_owned()).collect();
    listed.sort();
    assert_eq!(sources, listed, "every source is in the table");
}

/// Builds and runs all programs of a compiler, as many at a time as there are processors.
fn build_and_run(compiler: Compiler) {
    let toolchain = Toolchain::from_environment().expect("BALAR_CUDA_TOOLCHAIN names the folder of the compilers");
    let left_out = |program: &Program| LEFT_OUT.iter().any(|row| row.0 == program.name && row.1 == compiler);
    let plain = PROGRAMS.iter().filter(|program| !left_out(program)).map(|program| (program, &[] as &[&str]));
    let varied = VARIANTS.iter().filter(|row| row.1 == compiler).map(|row| {
        let program = PROGRAMS.iter().find(|program| program.name == row.0);
        (program.expect("a listed program"), row.2)
    });
    let jobs: Vec<(&Program, &[&str])> = plain.chain(varied).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((program, options)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = toolchain.build(compiler, program.name, options, LIMIT).and_then(|executable| {
                        run(program, &executable, "v100_node", program.stdout)?;
                        let stdout = program.stdout_on_two.unwrap_or(program.stdout);
                        run(program, &executable, "two_v100_node", stdout)?;
                        // It is the same code that runs for its values alone.
                        if compiler != Compiler::Nvcc13Default {
                            run_for_values(program, &executable)?;
                        }
                        run_as_machine_code(program, &executable, compiler, &toolchain.ptxas())
                    });
                    if let Err(text) = outcome {
                        let failure = format!("{} {options:?}: {text}", program.name);
                        failures.lock().expect("no worker panics while it holds the lock").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker panics while it holds the lock");
    assert!(failures.is_empty(), "{} of {} programs failed:\n{}", failures.len(), jobs.len(), failures.join("\n\n"));
    println!("{} programs ran", jobs.len());
}

/// Runs a program without timing, on any number of threads: it does the same.
fn run_for_values(program: &Program, executable: &Path) -> Result<(), String> {
    for threads in ["1", "2", "4"] {
        let options = ["--topology", "v100_node", "--detail", "none", "--threads", threads].map(Path::new);
        run_with(program, executable, &options, program.stdout)?;
    }
    let options = ["--topology", "two_v100_node", "--detail", "none", "--threads", "2"].map(Path::new);
    run_with(program, executable, &options, program.stdout_on_two.unwrap_or(program.stdout))
}

/// Runs a program as the machine code that its compiler made; what it has as PTX alone is assembled.
fn run_as_machine_code(program: &Program, executable: &Path, compiler: Compiler, ptxas: &Path) -> Result<(), String> {
    if NOT_AS_MACHINE_CODE.iter().any(|row| row.0 == program.name) {
        return Ok(());
    }
    let run_on = |topology| {
        let options = ["--topology".as_ref(), topology, "--isa".as_ref(), "sass".as_ref(), "--ptxas".as_ref(), ptxas];
        run_with(program, executable, &options, program.stdout)
    };
    match compiler {
        Compiler::Nvcc13Default => run_on(Path::new("t4_node")),
        Compiler::Nvcc13 => {
            run_on(Path::new("t4_node"))?;
            let is_assembled = ASSEMBLED.iter().any(|row| row.0 == program.name);
            if is_assembled { run_on(Path::new("v100_node")) } else { Ok(()) }
        }
        Compiler::Clang12 => run_on(Path::new("v100_node")),
        // Its machine code is that of the same sources, by an older ptxas.
        Compiler::Clang11 => Ok(()),
        Compiler::Nvcc13Hopper => run_on(Path::new("h100_sxm_node")),
    }
}

/// Runs a program on a simulated node; says what went wrong.
fn run(program: &Program, executable: &Path, topology: &str, expected: &str) -> Result<(), String> {
    run_with(program, executable, &["--topology".as_ref(), topology.as_ref()], expected)
}

fn run_with(program: &Program, executable: &Path, options: &[&Path], expected: &str) -> Result<(), String> {
    let output = assert_cmd::Command::new(env!("CARGO_BIN_EXE_command-line-under-test"))
        .args(["run", "--quiet"])
        .args(options)
        .arg("--")
        .arg(executable)
        .args(program.arguments)
        .env("KERNEL_ARGUMENTS_TEST", "of the caller")
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .timeout(LIMIT)
        .output()
        .map_err(|error| error.to_string())?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut wrong = Vec::new();
    if output.status.code() != Some(program.exit_code) {
        wrong.push(format!("ended with {}, expected code {}", output.status, program.exit_code));
    }
    if stdout != expected {
        wrong.push(format!("stdout is not {expected:?}"));
    }
    for text in program.stderr.iter().filter(|text| !stderr.contains(**text)) {
        wrong.push(format!("stderr lacks {text:?}"));
    }
    if stderr.contains("not implemented") {
        wrong.push("a function is missing".to_owned());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("with {options:?}: {}\nstdout: {stdout}\nstderr: {stderr}", wrong.join("; ")))
}
