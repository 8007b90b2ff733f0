//! Managed memory that several GPUs use: where its pages go, that values are right, and that nothing depends on threads.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use balar_host::Call;
use balar_host::call::AdviceChange;
use balar_tests::page_transfers::{PageTransfer, page_transfers};
use balar_tests::steps::{
    Argument, DOUBLE, Seen, Step, call, launch, read_managed, run_on_devices, value, write_managed,
};
use balar_tests::{built_in_with, described};

const KIB: u64 = 1 << 10;
/// Bytes of a leaf of the driver's tree: 16 pages.
const LEAF: u64 = 64 * KIB;
const LEAF_KIB: u64 = LEAF / KIB;
const LEAF_PAGES: u64 = 16;
const THREADS: u32 = 256;

/// Each thread adds 1 to the same word, so many times one after the other.
const COUNT: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry count(.param .u64 word, .param .u32 rounds) {
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %d<2>;
    ld.param.u64 %d1, [word];
    ld.param.u32 %r1, [rounds];
LOOP:
    atom.global.add.u32 %r2, [%d1], 1;
    min.u32 %r2, %r2, 1;
    sub.u32 %r1, %r1, %r2;
    setp.gt.s32 %p1, %r1, 0;
    @%p1 bra LOOP;
    ret;
}
";

/// Calls with their current devices; what they allocate is named by its place among them.
#[derive(Default)]
struct Program(Vec<(u32, Step)>);

impl Program {
    fn on(mut self, gpu: u32, step: Step) -> Program {
        self.0.push((gpu, step));
        self
    }

    /// Arrays 0 to `count` of a leaf each, the first of which the host fills with 1, 2, 3 and so on.
    fn new(count: usize) -> Program {
        let arrays = (0..count).map(|_| (0, call(Call::MallocManaged { bytes: LEAF })));
        Program(arrays.collect()).on(0, write_managed(0, bytes(words())))
    }

    /// A GPU writes the doubled words of one array to another, and is waited for.
    fn double(self, gpu: u32, from: usize, to: usize) -> Program {
        self.double_first(gpu, from, to, LEAF)
    }

    /// The same of the first bytes alone.
    fn double_first(self, gpu: u32, from: usize, to: usize, bytes: u64) -> Program {
        let arguments = [Argument::Value(from), Argument::Value(to)];
        let blocks = (bytes / 4) as u32 / THREADS;
        self.on(gpu, launch("double", [blocks, 1], [THREADS, 1], &arguments)).on(gpu, call(Call::DeviceSynchronize))
    }

    fn advise(self, array: usize, advice: AdviceChange) -> Program {
        let advise = move |pointer| Call::Advise { pointer, bytes: LEAF, advice };
        self.on(0, Box::new(move |results| advise(value(results, array))))
    }

    /// A prefetch of an array, in a stream of a GPU, which is waited for.
    fn prefetch(self, gpu: u32, array: usize, device: Option<u32>) -> Program {
        let prefetch = move |pointer| Call::Prefetch { pointer, bytes: LEAF, device, stream: 0 };
        let step: Step = Box::new(move |results| prefetch(value(results, array)));
        self.on(gpu, step).on(gpu, call(Call::DeviceSynchronize))
    }

    fn read(self, array: usize) -> Program {
        self.on(0, read_managed(array, LEAF))
    }

    fn run(self, topology: &str, overrides: &[&str]) -> Run {
        let (result, seen) = run_on_devices(&built_in_with(topology, overrides), DOUBLE, self.0, RunOptions::default());
        Run { result, seen }
    }
}

fn words() -> impl Iterator<Item = u32> {
    1..=(LEAF / 4) as u32
}

fn bytes(words: impl Iterator<Item = u32>) -> Vec<u8> {
    words.flat_map(|word| word.to_le_bytes()).collect()
}

struct Run {
    result: RunResult,
    seen: Seen,
}

impl Run {
    /// The arrays that were read have the first words times these factors.
    fn expect(&self, factors: &[u32]) {
        for (array, factor) in factors.iter().enumerate() {
            assert_eq!(self.seen.words(array), words().map(|word| word * factor).collect::<Vec<_>>(), "read {array}");
        }
    }

    fn count(&self, counter: &str) -> u64 {
        self.result.sum("unified_memory", counter).unwrap_or_else(|| panic!("no counter {counter}"))
    }

    /// What moved, run by run of the same link and direction: "in 0" to GPU 0, "out 0" from there, with KiB.
    fn hops(&self) -> Vec<(String, u64)> {
        let mut hops: Vec<(String, u64)> = Vec::new();
        for PageTransfer { gpu, to_device, kib, .. } in page_transfers(&self.result) {
            let hop = format!("{} {gpu}", if to_device { "in" } else { "out" });
            match hops.last_mut() {
                Some((last, sum)) if *last == hop => *sum += kib,
                _ => hops.push((hop, kib)),
            }
        }
        hops
    }

    fn expect_hops(&self, expected: &[(&str, u64)]) {
        let expected: Vec<_> = expected.iter().map(|(hop, kib)| ((*hop).to_owned(), *kib)).collect();
        assert_eq!(self.hops(), expected, "{:#?}", page_transfers(&self.result));
    }
}

#[test]
fn a_page_of_one_gpu_goes_to_the_other_through_the_host() {
    let run = Program::new(2).double(0, 0, 0).double(1, 0, 1).read(1).run("two_v100_node", &[]);
    run.expect(&[4]);
    // The host reads the values that GPU 1 has made; it has not written that array before.
    let hops = run.hops();
    assert_eq!(hops[0], ("in 0".to_owned(), LEAF_KIB));
    assert_eq!(hops.last(), Some(&("out 1".to_owned(), LEAF_KIB)));
    let between = &page_transfers(&run.result);
    let of =
        |gpu, to_device| between.iter().filter(move |transfer| (transfer.gpu, transfer.to_device) == (gpu, to_device));
    let out: Vec<_> = of(0, false).collect();
    let back: Vec<_> = of(1, true).collect();
    assert_eq!(out.iter().map(|transfer| transfer.kib).sum::<u64>(), LEAF_KIB);
    assert_eq!(out.len(), back.len());
    for (out, back) in out.iter().zip(&back) {
        assert_eq!((out.address, out.kib), (back.address, back.kib));
        assert!(out.time.1 <= back.time.0, "pages are on the host before they go on: {out:?}, {back:?}");
    }
    let links = |link: &str| run.result.sum(&format!("migration_link[{link}"), "bytes").expect("links count bytes");
    assert_eq!(["0].to_device", "0].to_host", "1].to_device", "1].to_host"].map(links), [LEAF; 4]);
    let resident = |gpu| run.result.sum(&format!("unified_memory.gpu[{gpu}]"), "pages_resident");
    assert_eq!([resident(0), resident(1)], [Some(0), Some(LEAF_PAGES)]);
    assert_eq!((run.count("pages_to_device"), run.count("pages_populated")), (2 * LEAF_PAGES, 2 * LEAF_PAGES));
    let pages = run.result.statistics.tables.iter().find(|table| table.name == "unified_memory_pages");
    let ends: Vec<String> =
        pages.expect("recorded").lines.iter().filter_map(|line| Some(line.last()?.to_string())).collect();
    assert_eq!(ends, [["gpu[1]"; LEAF_PAGES as usize], ["host"; LEAF_PAGES as usize]].concat());
}

#[test]
fn four_gpus_pass_an_array_on() {
    let ring = (0..4).fold(Program::new(1), |program, gpu| program.double(gpu, 0, 0));
    let run = ring.read(0).run("four_v100_node", &[]);
    run.expect(&[16]);
    for gpu in 0..4 {
        for direction in ["to_device", "to_host"] {
            let bytes = run.result.sum(&format!("migration_link[{gpu}].{direction}"), "bytes");
            assert_eq!(bytes, Some(LEAF), "{direction} of {gpu}");
        }
    }
}

#[test]
fn what_is_mostly_read_is_on_both_gpus_until_one_writes() {
    let read = Program::new(3).advise(0, AdviceChange::ReadMostly(true)).double(0, 0, 1).double(1, 0, 2).read(0);
    let run = read.run("two_v100_node", &[]);
    run.expect(&[1]);
    run.expect_hops(&[("in 0", LEAF_KIB), ("in 1", LEAF_KIB)]);
    assert_eq!((run.count("pages_duplicated"), run.count("duplicates_ended")), (2 * LEAF_PAGES, 0));

    let written = Program::new(3).advise(0, AdviceChange::ReadMostly(true)).double(0, 0, 1).double(1, 0, 2);
    let run = written.double(0, 0, 0).double(1, 0, 2).read(2).read(1).run("two_v100_node", &[]);
    run.expect(&[4, 2]);
    // The host's copies end, and those of GPU 1, which gets new ones.
    assert_eq!(run.count("duplicates_ended"), 2 * LEAF_PAGES);
    assert_eq!(run.count("pages_duplicated"), 3 * LEAF_PAGES);
    let kib = |gpu: u32| run.result.sum(&format!("migration_link[{gpu}].to_device"), "bytes").map(|bytes| bytes / KIB);
    assert_eq!([kib(0), kib(1)], [Some(LEAF_KIB), Some(2 * LEAF_KIB)]);
}

/// The copies are those of the GPUs alone: the host has none that would tell the owner that there are others.
#[test]
fn a_gpu_that_writes_to_its_own_ends_the_copies_of_the_other() {
    let program = Program::new(2).double(0, 0, 0).advise(0, AdviceChange::ReadMostly(true)).double(1, 0, 1);
    let run = program.double(0, 0, 0).double(1, 0, 1).read(1).run("two_v100_node", &[]);
    run.expect(&[8]);
    assert_eq!(run.count("duplicates_ended"), LEAF_PAGES);
    let link = |gpu: u32, way: &str| run.result.sum(&format!("migration_link[{gpu}].{way}"), "bytes");
    assert_eq!([link(0, "to_host"), link(1, "to_device")], [Some(2 * LEAF); 2], "twice, once for each reading");
}

#[test]
fn advice_names_a_gpu() {
    // Nobody prefetches out of a preferred location: of GPU 1's array, GPU 0 gets the page alone that it reads.
    for (advice, kib) in [(AdviceChange::PreferredLocation(Some(1)), 4), (AdviceChange::NoPreferredLocation, LEAF_KIB)]
    {
        let program = Program::new(2).prefetch(0, 0, Some(1)).advise(0, advice);
        let run = program.double_first(0, 0, 1, 4 * KIB).read(0).run("two_v100_node", &[]);
        run.expect(&[1]);
        let to_gpu_0 = run.result.sum("migration_link[0].to_device", "bytes");
        assert_eq!(to_gpu_0, Some(kib * KIB), "{advice:?}");
    }
    // On the host, GPU 1 accesses it where it is, if it was named, and GPU 0 does not.
    let accessed_by = AdviceChange::AccessedBy(Some(1), true);
    let run = Program::new(3).advise(0, accessed_by).double(1, 0, 1).double(0, 0, 2).read(1).read(2);
    let run = run.run("two_v100_node", &[]);
    run.expect(&[2, 2]);
    assert_eq!(run.hops().iter().filter(|(hop, _)| hop == "in 1").count(), 0);
    assert_eq!(run.result.sum("migration_link[0].to_device", "bytes"), Some(LEAF));
    assert_eq!(run.count("pages_mapped_remotely"), LEAF_PAGES);
    // GPU 1 cannot reach another GPU's memory: it gets what GPU 0 has.
    let run = Program::new(2).prefetch(0, 0, Some(0)).advise(0, accessed_by).double(1, 0, 1).run("two_v100_node", &[]);
    assert_eq!(run.count("pages_mapped_remotely"), 0);
    run.expect_hops(&[("in 0", LEAF_KIB), ("out 0", LEAF_KIB), ("in 1", LEAF_KIB)]);
}

#[test]
fn prefetches_go_to_either_gpu() {
    let program = Program::new(1).prefetch(0, 0, Some(1)).double(1, 0, 0).prefetch(1, 0, Some(0)).double(0, 0, 0);
    let run = program.prefetch(0, 0, None).read(0).run("two_v100_node", &[]);
    run.expect(&[4]);
    assert_eq!((run.count("far_faults"), run.count("host_faults")), (0, 0));
    run.expect_hops(&[("in 1", LEAF_KIB), ("out 1", LEAF_KIB), ("in 0", LEAF_KIB), ("out 0", LEAF_KIB)]);
}

#[test]
fn one_gpu_has_too_little_memory_and_the_other_keeps_its_pages() {
    // Arrays of two leaves fit; GPU 0 uses four, and GPU 1 one.
    let program = Program::new(5).double(1, 0, 4).double(0, 0, 1).double(0, 1, 2).double(0, 2, 3);
    let run = program.read(1).read(2).read(3).read(4);
    let run = run.run("two_v100_node", &[r#"unified_memory.gpu_memory="128 KiB""#]);
    run.expect(&[2, 4, 8, 2]);
    assert!(run.count("pages_evicted") >= 2 * LEAF_PAGES, "{}", run.count("pages_evicted"));
    let evictions = page_transfers(&run.result).into_iter().filter(|transfer| transfer.cause == "eviction");
    assert!(evictions.clone().count() > 0 && evictions.clone().all(|transfer| transfer.gpu == 0));
    let most = |gpu| run.result.sum(&format!("unified_memory.gpu[{gpu}]"), "most_pages_resident");
    assert_eq!([most(0), most(1)], [Some(2 * LEAF_PAGES); 2]);
}

/// Two GPUs change the same word at the same time, again and again. The driver lets one of them work for a while.
#[test]
fn gpus_that_fight_over_a_page_are_throttled_and_come_to_an_end() {
    const ROUNDS: u32 = 2000;
    let fight = |overrides: &[&str]| {
        let count = || launch("count", [2, 1], [32, 1], &[Argument::Value(0), Argument::Word(ROUNDS)]);
        let program =
            Program(vec![(0, call(Call::MallocManaged { bytes: LEAF }))]).on(0, write_managed(0, vec![1, 0, 0, 0]));
        let program = program.on(0, count()).on(1, count()).on(0, call(Call::DeviceSynchronize));
        let program = program.on(1, call(Call::DeviceSynchronize)).on(0, read_managed(0, 4));
        let node = built_in_with("two_v100_node", overrides);
        let (result, seen) = run_on_devices(&node, COUNT, program.0, RunOptions::default());
        assert_eq!(seen.words(0), [1 + 2 * 2 * 32 * ROUNDS], "{overrides:?}");
        let run = Run { result, seen };
        (run.count("far_faults"), run.count("faults_throttled"), run.result.sim_time)
    };
    let ((faults, throttled, time), (more, none, longer)) = (fight(&[]), fight(&["unified_memory.thrashing=None"]));
    assert!(throttled > 0 && none == 0, "{throttled} and {none} faults were put off");
    assert!(10 * faults < more && time < longer, "{faults} and {more} faults, {time} and {longer}");
}

#[test]
fn nothing_depends_on_threads() {
    for (topology, gpus, overrides) in
        [("two_v100_node", 2, &[r#"unified_memory.gpu_memory="128 KiB""#][..]), ("four_v100_node", 4, &[])]
    {
        let of = |threads| {
            let mut program = Program::new(4).advise(0, AdviceChange::ReadMostly(true));
            for round in 0..4 {
                let gpu = round % gpus;
                program = program.prefetch(gpu, 1, Some(gpu)).double(gpu, 0, 2).double(gpu, 2, 3).double(gpu, 3, 1);
            }
            let options = RunOptions { threads, ..RunOptions::default() };
            let node = built_in_with(topology, overrides);
            let (result, seen) = run_on_devices(&node, DOUBLE, program.read(1).read(3).0, options);
            let tables: Vec<_> = result.statistics.tables.clone();
            (described(&result), tables, seen.words(0), seen.words(1))
        };
        let expected = of(1);
        assert_eq!(expected.2, words().map(|word| word * 8).collect::<Vec<_>>());
        for threads in [1, 2, 4] {
            assert!(of(threads) == expected, "{topology}, {threads} threads");
        }
    }
}
