//! What command lines mean, and what is said of mistakes in them.

use super::*;
use crate::options::format::Format;
use crate::options::simulation::Isa;
use crate::options::topology::Override;
use balar_protocol::SimTime;
use std::path::Path;
use std::time::Duration;

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("balar-actors").chain(line.split_whitespace()))
}

#[test]
fn the_definition_is_sound() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}

#[test]
fn every_option_of_a_run_is_read() {
    let line = "--topology t.ron --workload lud:size=256,seed=3 --set gpu.sm[*].clock=1800MHz --set cpu.a=1 \
                --threads 4 --isa auto --ptxas bin/ptxas --format csv --output out --stop-at 20us --max-wall 1.5 --quiet";
    let RunOptions { simulation: run, work, .. } = parse(line).expect(line).run;
    assert_eq!(run.topology.as_deref(), Some("t.ron"));
    let workload = work.workload.expect("given");
    assert_eq!(workload.name, "lud");
    assert_eq!(workload.parameters, [("size".into(), "256".into()), ("seed".into(), "3".into())]);
    assert_eq!(run.set[0], Override { path: "gpu.sm[*].clock".into(), value: "1800MHz".into() });
    assert_eq!((run.set.len(), run.limits.threads, run.code.isa, run.format), (2, 4, Isa::Auto, Format::Csv));
    assert_eq!(run.code.ptxas.as_deref(), Some(Path::new("bin/ptxas")));
    assert_eq!(run.limits.stop_at, Some(SimTime(20_000_000)));
    assert_eq!(run.limits.max_wall, Some(Duration::from_millis(1500)));
    assert!(run.quiet);
}

#[test]
fn subcommands_are_read() {
    for line in [
        "topology check t.ron",
        "topology show t.ron --set a.b=1",
        "topology graph t.ron --format svg",
        "topology graph t.ron --output t.svg",
        "units",
        "units L2Slice",
        "new unit WriteFilter --path filters --simulator ../balar-actors",
        "metrics",
        "metrics sm__* --format json",
        "topologies --format json",
        "completions zsh",
        "man",
        "workloads vectoradd --format json",
        "ptx a.ptx b.ptx --format json",
        "disassemble a.cubin --function k --words --live --format json",
        "disassemble --workload gemm --topology v100_node --run out",
        "--topology t.ron --output out --profile-instructions",
        "--topology t.ron --timeline t.pftrace.gz --timeline-detail kernels",
        "--topology t.ron --launches 3",
        "run --launches 3 -- ./app",
        "run --code scale<float>=a.ptx --code _Z1kv=b.cubin ./app",
        "replay --topology t.ron --threads 2 --partial --unchecked --ptx a.ptx trace",
        "--topology t.ron --record trace",
        "--topology t.ron --output out --sample-interval 1us --samples jsonl,csv,sqlite,ldms-csv --sample-epoch 1790000000",
        "hotspots out --by line --sort lanes --limit 5 --kernel lud --format csv --folded out.folded",
        "hotspots out --listing --source src",
        "report a b --output page.html",
        "--topology t.ron --report page.html --profile-instructions",
        "compare a b --limit 3 --kernel lud --format json --details",
        "snapshot check --topology t.ron pinned.txt",
        "snapshot check --topology t.ron --tolerance 0.5 pinned.txt",
        "snapshot accept --topology t.ron --threads 2 pinned.txt",
        "roofline --topology t.ron",
        "roofline --topology t.ron --set gpu.clock=1GHz --part levels,toolkit --workload lud:size=64 --run out --by-kernel --growth 1.1 --largest 64MiB",
        "roofline --topology t.ron --part all --blocks 112 --threads 32 --jobs 4 --format json --output out --quiet",
        "sweep --topology t.ron --set gpu.clock=500MHz,1GHz --output out --jobs 2 --points 3..7 --retry-failed --plot kernel_cycles",
        "sweep --set topology=a,b --points-file p.ron --workload lud --metrics inst_executed --output out --isa ptx --max-wall 5",
        "sweep --topology t.ron --set n=1,2 --output out --host-accesses assumed -- ./app --size={n}",
        "sweep collect out --format json --metrics stall.*",
        "validate",
        "validate uvm hardware shootdowns --program hotspot --program nw --threads 2 --output out --format csv --quiet",
        "validate hardware titanv --programs built --program histogram",
    ] {
        assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
    }
}

#[test]
fn mistakes_are_named() {
    for (line, said) in [
        ("", "--topology"),
        ("--topology t --thread 4", "--threads"),
        ("--topology t --threads 0", "0 is not in 1..=1024"),
        ("--topology t --format jsn", "json"),
        ("--topology t --stop-at 20", "expected a time"),
        ("--topology t --max-wall 0", "more than zero"),
        ("--topology t --max-wall soon", "expected seconds"),
        ("--topology t --max-wall nan", "more than zero"),
        ("--topology t --set clock", "expected PATH=VALUE"),
        ("--topology t --workload :a=1", "found no name"),
        ("--topology t --workload lud:size", "expected key=value"),
        ("--topology t --workload lud:size=1,size=2", "given twice"),
        ("snapshot check pinned.txt", "--topology"),
        ("--topology t --profile-instructions", "--output"),
        ("--topology t --output o --samples csv", "--sample-interval"),
        ("--topology t --output o --sample-interval 0ns", "more than zero"),
        ("--topology t --output o --sample-interval 5", "expected a time"),
        ("--topology t --output o --sample-interval 1us --samples jsonl,cvs", "csv"),
        ("--topology t --timeline-detail kernels", "--timeline"),
        ("--topology t --timeline t --timeline-detail warps", "ctas"),
        ("disassemble", "FILE"),
        ("disassemble a.cubin --topology t", "--topology"),
        ("disassemble --topology t", "--workload"),
        ("roofline", "--topology"),
        ("roofline --topology t --part level", "levels"),
        ("roofline --topology t --growth 1", "from 1.01 to 16"),
        ("roofline --topology t --largest much", "expected a size"),
        ("roofline --topology t --threads 48", "a multiple of 32"),
        ("run --code scale ./app", "expected KERNEL=FILE"),
        ("--topology t --launches 0", "0 is not in 1.."),
        ("replay trace", "--topology"),
        ("replay --topology t.ron", "DIR"),
        ("sweep --topology t", "--output"),
        ("sweep --topology t --output o --set a", "expected KEY=VALUE"),
        ("sweep --topology t --output o --set a=[1,2", "closing `]`"),
        ("sweep --topology t --output o --points 5..2", "expected points"),
        ("sweep --topology t --output o --jobs 0", "0 is not in"),
        ("sweep --topology t --output o --detail some", "expected all, none"),
        ("sweep --topology t --output o --workload lud -- ./app", "cannot be used"),
        ("sweep colect out", "colect"),
        ("topologys", "topology"),
        ("--topology t --kernel (", "regex parse error"),
        ("--topology t --metrics /nonexistent/list", "there is no such file"),
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(said), "{line}: {error}");
    }
}

#[test]
fn what_is_passed_on_is_what_a_run_reads() {
    let given = "--isa sass --detail kernel=a,b --detail launch=1..3 --kernel lud_.* --launch-skip 1 --launch-count 2 --stop-at 20us \
             --compiler clang --sample-interval 1us --samples jsonl,sqlite --profile-from-start off --check-hazards \
             --profile-instructions --ptxas bin/ptxas";
    let line = format!("balar-actors sweep --topology t --output o {given}");
    let arguments = Arguments::try_parse_from(line.split_whitespace()).expect("a sweep");
    let Some(Command::Sweep(options)) = arguments.command else { panic!("a sweep") };
    let passed = options.common.arguments();
    let run = ["balar-actors", "--topology", "t", "--output", "o"].map(str::to_owned).into_iter().chain(passed.clone());
    Arguments::try_parse_from(run).expect("a run");
    let wanted = "--compiler clang --isa sass --ptxas bin/ptxas --detail kernel=a,b --detail launch=1..3 --sample-interval 1000000 ps \
              --samples jsonl,sqlite --kernel lud_.* --profile-from-start off --launch-skip 1 --launch-count 2 --stop-at 20000000 ps \
              --check-hazards --profile-instructions";
    assert_eq!(passed.join(" "), wanted);
}

#[test]
fn options_have_short_forms() {
    let run = parse("-t t.ron -w lud:size=64 -o out -q").expect("a run").run;
    assert_eq!(run.simulation.topology.as_deref(), Some("t.ron"));
    assert_eq!(run.work.workload.expect("given").to_string(), "lud:size=64");
    assert_eq!((run.simulation.output.as_deref(), run.simulation.quiet), (Some(Path::new("out")), true));
    let line = "run -t t.ron -o out ./app -t own -w own";
    let Some(Command::Run(options)) = parse(line).expect(line).command else { panic!("{line}") };
    assert_eq!(options.simulation.topology.as_deref(), Some("t.ron"));
    assert_eq!(options.command, ["./app", "-t", "own", "-w", "own"]);
}

#[test]
fn a_run_that_names_its_program_needs_no_topology() {
    for line in ["--workload gemm", "-w gemm -q", "run ./app", "run -- ./app -t x"] {
        assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
    }
    for line in ["--details", "snapshot accept pinned.txt"] {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains("--topology"), "{line}: {error}");
    }
}

#[test]
fn every_option_of_a_run_is_in_a_group() {
    use clap::CommandFactory;
    let program = Arguments::command();
    for command in std::iter::once(&program).chain(program.get_subcommands()) {
        if !["balar-actors", "run", "replay", "sweep"].contains(&command.get_name()) {
            continue;
        }
        for argument in command.get_opts() {
            let is_own = !["help", "version"].contains(&argument.get_id().as_str());
            assert!(!is_own || argument.get_help_heading().is_some(), "{}: {argument}", command.get_name());
        }
        for argument in command.get_positionals() {
            assert_eq!(argument.get_help_heading(), None, "{}: {argument}", command.get_name());
        }
    }
}
