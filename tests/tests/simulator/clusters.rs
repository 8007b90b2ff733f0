//! Clusters of CTAs on a Hopper node: distributed shared memory, the barriers of clusters, and launches that are refused.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::{DeviceCode, RunResult, simulate_host_with_code};
use balar_host::{Call, CallResult, CudaError, SingleThread};
use balar_protocol::DetailChoice;
use balar_tests::steps::{Argument, Seen, Step, Steps, call, download, launch, upload};
use balar_tests::{built_in, sum};

/// The same kernels as PTX and as machine code.
const CODES: [(&str, &[u8]); 2] = [
    ("clusters.ptx", include_bytes!("../../device_code/clusters.ptx")),
    ("clusters.cubin", include_bytes!("../../device_code/clusters.sm_90.cubin")),
];

fn run((name, code): (&str, &[u8]), node: &str, steps: Vec<Step>, options: RunOptions) -> (RunResult, Seen) {
    let (program, seen) = Steps::new(steps);
    let code = DeviceCode { initial: vec![vec![(name.to_owned(), code.into())]], ..DeviceCode::default() };
    let host = Box::new(SingleThread::new(program));
    let result = simulate_host_with_code(&built_in(node), &code, |_| Ok(host), options);
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    let seen = seen.lock().expect("the run is over").clone();
    (result, seen)
}

/// A launch in clusters.
fn in_clusters(cluster: [u32; 3], shared_bytes: u32, step: Step) -> Step {
    Box::new(move |results: &[CallResult]| match step(results) {
        Call::Launch(mut launch) => {
            (launch.cluster, launch.shared_memory_bytes) = (Some(cluster), shared_bytes);
            launch.non_portable_cluster = true;
            Call::Launch(launch)
        }
        other => other,
    })
}

fn words_of(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Runs the same with one and two threads, and without timing: gives the words, which are the same for all, and the timed result.
fn everywhere(code: (&str, &[u8]), what: &str, steps: impl Fn() -> Vec<Step>) -> (Vec<u32>, RunResult) {
    let timed = |threads| {
        let (result, seen) = run(code, "h100_sxm_node", steps(), RunOptions { threads, ..RunOptions::default() });
        assert!(result.completed(), "{what} {}: {:?} {:?}", code.0, result.outcome, result.program);
        (result, seen.words(0))
    };
    let (result, words) = timed(1);
    let (other, same) = timed(2);
    assert_eq!(words, same, "{what} {}", code.0);
    assert_eq!(result.statistics.rows, other.statistics.rows, "{what} {}", code.0);
    let options = RunOptions { detail: DetailChoice::none(), ..RunOptions::default() };
    let (functional, seen) = run(code, "h100_sxm_node", steps(), options);
    assert!(functional.completed(), "{what} {}: {:?} {:?}", code.0, functional.outcome, functional.program);
    assert_eq!(seen.words(0), words, "{what} {} for its values alone", code.0);
    (words, result)
}

#[test]
fn a_histogram_is_shared_by_the_ctas_of_a_cluster() {
    const BINS: u32 = 512;
    let inputs: Vec<u32> = (0..20_000u32).map(|n| n.wrapping_mul(n).wrapping_mul(2_654_435_761) >> 7).collect();
    let mut expected = vec![0; BINS as usize];
    inputs.iter().for_each(|input| expected[(input % BINS) as usize] += 1);
    for code in CODES {
        for (size, ctas) in [(1, 6), (2, 20), (4, 40), (8, 160), (16, 32)] {
            let data = words_of(&inputs);
            let (words, result) = everywhere(code, &format!("clusters of {size}"), || {
                let kernel = launch(
                    "histogram",
                    [ctas, 1],
                    [128, 1],
                    &[
                        Argument::Value(0),
                        Argument::Word(inputs.len() as u32),
                        Argument::Value(1),
                        Argument::Word(BINS),
                    ],
                );
                vec![
                    call(Call::Malloc { bytes: data.len() as u64 }),
                    call(Call::Malloc { bytes: 4 * u64::from(BINS) }),
                    upload(0, data.clone()),
                    upload(1, vec![0; 4 * BINS as usize]),
                    in_clusters([size, 1, 1], 4 * BINS / size, kernel),
                    download(1, 4 * u64::from(BINS)),
                ]
            });
            assert_eq!(words, expected, "clusters of {size}, {}", code.0);
            let barriers = sum(&result, "gpu.sm_network", "cluster_barriers");
            assert_eq!(barriers, if size == 1 { 0 } else { 2 * u64::from(ctas / size) }, "clusters of {size}");
            assert_eq!(sum(&result, "gpu.sm_network", "messages") > 0, size > 1);
        }
    }
}

/// What the kernel `ring` leaves, thread by thread; the old value of the token apart, which the order of exchanges does not change.
fn ring(ctas: u32, size: i32) -> Vec<u32> {
    let mut words = Vec::new();
    for cta in 0..ctas as i32 {
        let (first, rank) = (cta / size * size, cta % size);
        let next = (rank + 1) % size;
        for t in 0..128 {
            let rank_of = |rank: i32, t: i32| (rank + t).rem_euclid(size);
            let four = [next, t ^ 1, next + (t ^ 1), next - (t ^ 1)];
            let writer = rank_of(rank, -t);
            let sums: i32 = (0..128).filter(|other| other % 4 == t % 4).map(|other| other + 1).sum();
            words.extend([
                1000 * (first + next) + t,
                -(100 * next + t),
                four[0] + 10 * four[1] + 100 * four[2] + 1000 * four[3],
                1000 * (first + rank_of(rank, t)) + 127 - t,
                5 * writer + t,
                sums,
                if t == 0 { 77 + next } else { 0 },
                1000 + rank_of(rank, -1),
            ]);
        }
    }
    words.into_iter().map(|word| word as u32).collect()
}

#[test]
fn ctas_read_and_write_the_memory_of_others_in_every_width() {
    for code in CODES {
        for (size, ctas) in [(2, 4), (4, 8), (8, 8)] {
            let bytes = u64::from(ctas) * 128 * 32;
            let (words, _) = everywhere(code, &format!("clusters of {size}"), || {
                vec![
                    call(Call::Malloc { bytes }),
                    in_clusters([size, 1, 1], 0, launch("ring", [ctas, 1], [128, 1], &[Argument::Value(0)])),
                    download(0, bytes),
                ]
            });
            let expected = ring(ctas, size as i32);
            // Where the clusters have two CTAs of each remainder, lanes of one remainder add to one place.
            for (at, (found, expected)) in words.iter().zip(&expected).enumerate() {
                if at % 8 != 5 {
                    assert_eq!(*found as i32, *expected as i32, "word {} of thread {} of {}", at % 8, at / 8, code.0);
                }
            }
            let total: u32 =
                (0..ctas).map(|cta| (0..4).map(|t| words[((cta * 128 + t) * 8 + 5) as usize]).sum::<u32>()).sum();
            assert_eq!(total, ctas * (1..=128).sum::<u32>(), "all that was added, {}", code.0);
        }
    }
}

/// What a CTA receives from the kernel `tell`: the words of `Received` in clusters.cu, up to its padding.
fn told(size: u32, rank: u32) -> Vec<u32> {
    // The thread of each number that sends here is of the CTA with this rank.
    let words: Vec<[u32; 3]> = (0..64)
        .map(|t| {
            let sender = (0..size).find(|sender| (sender + t) % size == rank).expect("one of them");
            [t, sender, 1000 * sender + t]
        })
        .collect();
    let mut all = Vec::new();
    all.extend(words.iter().flat_map(|&[t, sender, word]| [t, sender, word, !t]));
    all.extend(words.iter().flat_map(|&[t, _, word]| [t, word, !t, !word]));
    all.extend(words.iter().flat_map(|&[t, _, word]| [t, word]));
    all.extend(words.iter().flat_map(|&[t, _, word]| [word, t]));
    all.extend(words.iter().map(|&[.., word]| word));
    let products: u32 = words.iter().map(|&[t, sender, _]| t * sender).sum();
    all.extend([1 + products, 64 << 1, (1..=64).sum(), words.iter().map(|&[.., word]| word).max().unwrap_or(0)]);
    // Sixty-four times one up, or down, where forty-one make a round.
    all.extend([64 % 41, 82 - 64, 0xffff_0000, 0x00ff_ff00]);
    all.push((0..64u32).fold(0, |odd, t| odd ^ t.wrapping_mul(2_654_435_761)));
    all.push(words.iter().map(|&[.., word]| -(word as i32)).min().unwrap_or(0) as u32);
    all
}

#[test]
fn words_are_sent_and_combined_with_a_barrier_that_is_told_of_them() {
    const WORDS: u32 = 844;
    for code in CODES {
        for (size, ctas) in [(1, 2), (2, 6), (4, 4), (8, 16)] {
            let bytes = u64::from(4 * WORDS * ctas);
            let (words, _) = everywhere(code, &format!("clusters of {size}"), || {
                vec![
                    call(Call::Malloc { bytes }),
                    in_clusters([size, 1, 1], 0, launch("tell", [ctas, 1], [64, 1], &[Argument::Value(0)])),
                    download(0, bytes),
                ]
            });
            for (cta, words) in (0..).zip(words.chunks(WORDS as usize)) {
                let expected = told(size, cta % size);
                assert_eq!(words[..expected.len()], expected, "CTA {cta} in a cluster of {size}, {}", code.0);
            }
        }
    }
}

#[test]
fn a_two_dimensional_cluster_knows_its_place() {
    let (width, height) = (4, 9);
    for code in CODES {
        let bytes = u64::from(width * height) * 48;
        let (words, _) = everywhere(code, "plane", || {
            vec![
                call(Call::Malloc { bytes }),
                launch("plane", [width, height], [1, 1], &[Argument::Value(0)]),
                download(0, bytes),
            ]
        });
        for (cta, words) in words.chunks(12).enumerate() {
            let (x, y) = (cta as u32 % width, cta as u32 / width);
            let rank = x % 2 + 2 * (y % 3);
            let passed = 7 * ((rank + 5) % 6) + 1;
            let peer = 7 * (5 - rank) + 1;
            let expected = [
                x % 2 + 10 * (y % 3),
                2 + 30 + 100,
                width / 2 + 10 * (height / 3),
                x / 2 + 10 * (y / 3),
                rank,
                6,
                1,
                5 - rank,
                rank,
                100 + 10,
                passed,
                peer,
            ];
            assert_eq!(words, expected, "CTA {cta} of {}", code.0);
        }
    }
}

#[test]
fn ctas_that_have_ended_are_not_waited_for() {
    for code in CODES {
        for size in [2, 5, 8] {
            let (words, _) = everywhere(code, "leave", || {
                vec![
                    call(Call::Malloc { bytes: 12 }),
                    in_clusters([size, 1, 1], 0, launch("leave", [3 * size, 1], [64, 1], &[Argument::Value(0)])),
                    download(0, 12),
                ]
            });
            assert_eq!(words, [size * (size + 1) / 2; 3], "clusters of {size}, {}", code.0);
        }
    }
}

#[test]
fn a_read_of_a_cta_that_has_ended_is_a_fault() {
    for code in CODES {
        for detail in [DetailChoice::default(), DetailChoice::none()] {
            let steps = vec![
                call(Call::Malloc { bytes: 4 }),
                in_clusters([2, 1, 1], 0, launch("late", [2, 1], [1, 1], &[Argument::Value(0)])),
                download(0, 4),
            ];
            let (result, seen) = run(code, "h100_sxm_node", steps, RunOptions { detail, ..RunOptions::default() });
            assert_eq!(seen.error(), Some(CudaError::IllegalAddress), "{}", code.0);
            let text = format!("{:?}", result.program);
            assert!(text.contains("shared memory of the CTA of rank 1") || text.contains("IllegalAddress"), "{text}");
        }
    }
}

/// Distributed shared memory is as far away as on hardware: 181 to 213 cycles, by the pair of SMs (HPMLL/NVIDIA-Hopper-Benchmark).
#[test]
fn a_read_of_another_sm_takes_as_long_as_on_hardware() {
    let steps = vec![
        call(Call::Malloc { bytes: 8 }),
        in_clusters([2, 1, 1], 0, launch("latency", [2, 1], [32, 1], &[Argument::Value(0)])),
        download(0, 8),
    ];
    let (result, seen) = run(CODES[1], "h100_sxm_node", steps, RunOptions::default());
    assert!(result.completed(), "{:?}", result.program);
    let words = seen.words(0);
    assert!((181..=213).contains(&words[0]), "{} cycles", words[0]);
    assert_eq!(words[1], 64 % 32);
}

/// Arrivals from other CTAs at an `mbarrier` object, with values that they have stored before.
const ARRIVALS: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry arrive(.param .u64 to) {
    .reg .b32 %r<12>; .reg .b64 %d<6>; .reg .pred %p<4>;
    .shared .align 8 .b64 barrier;
    .shared .align 4 .b32 values[64];
    ld.param.u64 %d0, [to];
    mov.u32 %r0, %cluster_ctarank;
    mov.u32 %r1, %cluster_nctarank;
    mov.u32 %r2, barrier;
    setp.ne.u32 %p0, %r0, 0;
    @!%p0 mbarrier.init.shared::cta.b64 [%r2], %r1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    mov.u32 %r3, values;
    shl.b32 %r4, %r0, 2;
    add.u32 %r4, %r3, %r4;
    mapa.shared::cluster.u32 %r4, %r4, 0;
    mul.lo.u32 %r5, %r0, %r0;
    st.shared::cluster.u32 [%r4], %r5;
    mapa.shared::cluster.u32 %r6, %r2, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];
    @%p0 bra done;
again:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r2], 0;
    @!%p1 bra again;
    mov.u32 %r7, 0;
    mov.u32 %r8, 0;
add:
    ld.shared.u32 %r9, [%r3];
    add.u32 %r7, %r7, %r9;
    add.u32 %r3, %r3, 4;
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p2, %r8, %r1;
    @%p2 bra add;
    mov.u32 %r10, %clusterid.x;
    mul.wide.u32 %d1, %r10, 4;
    add.u64 %d1, %d0, %d1;
    st.global.u32 [%d1], %r7;
done:
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    ret;
}
";

#[test]
fn other_ctas_arrive_at_a_barrier_in_shared_memory() {
    for size in [2, 4, 8] {
        let (words, _) = everywhere(("arrive.ptx", ARRIVALS.as_bytes()), "arrive", || {
            vec![
                call(Call::Malloc { bytes: 20 }),
                in_clusters([size, 1, 1], 0, launch("arrive", [5 * size, 1], [1, 1], &[Argument::Value(0)])),
                download(0, 20),
            ]
        });
        let sum: u32 = (0..size).map(|rank| rank * rank).sum();
        assert_eq!(words, [sum; 5], "clusters of {size}");
    }
}

#[test]
fn launches_in_wrong_clusters_are_refused() {
    let error = |node: &str, cluster: [u32; 3], grid: [u32; 2], kernel: &'static str| {
        let steps = vec![
            call(Call::Malloc { bytes: 4096 }),
            in_clusters(cluster, 0, launch(kernel, grid, [32, 1], &[Argument::Value(0)])),
        ];
        run(CODES[0], node, steps, RunOptions::default()).1.error()
    };
    let invalid = Some(CudaError::InvalidClusterSize);
    assert_eq!(error("h100_sxm_node", [2, 1, 1], [3, 1], "ring"), invalid, "the grid is no multiple");
    assert_eq!(error("h100_sxm_node", [32, 1, 1], [32, 1], "ring"), invalid, "too many CTAs");
    assert_eq!(error("h100_sxm_node", [2, 1, 1], [4, 3], "plane"), invalid, "the kernel is compiled for others");
    assert_eq!(error("h100_sxm_node", [2, 1, 1], [4, 1], "ring"), None);
}
