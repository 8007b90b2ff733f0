//! Arithmetic throughput over operations on an element, and over parallelism.

use super::MeasureError;
use super::ceilings::Precision;
use super::machine::{Benchmark, Machine, Running};

/// The rate of arithmetic with so many operations on each element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThroughputPoint {
    /// The precision.
    pub precision: Precision,
    /// Operations on an element.
    pub flops: u32,
    /// Operations for each byte that is read or written.
    pub intensity: f64,
    /// GFLOP/s, launch and wait of the host included.
    pub with_launch: f64,
    /// GFLOP/s, without the cost of a launch.
    pub sustained: f64,
}

/// The rate of arithmetic with so much parallelism.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParallelismPoint {
    /// The precision.
    pub precision: Precision,
    /// Warps of an SM: parallelism between threads.
    pub warps: u32,
    /// Independent chains of a thread: parallelism between its instructions.
    pub chains: u32,
    /// GFLOP/s of the GPU, without the cost of a launch.
    pub sustained: f64,
}

/// Operations that a launch is to have for each SM, roughly.
const OPERATIONS_OF_SM: u64 = 4 << 20;
/// Operations on an element, where parallelism is measured.
const PARALLELISM_FLOPS: u32 = 512;

/// The precisions that the GPU has, by its parameters.
fn precisions(machine: &Machine<'_>) -> Vec<Precision> {
    let textbook = super::textbook(machine.topology, &machine.gpu);
    textbook.arithmetic.iter().map(|(precision, _)| *precision).collect()
}

/// The measured numbers of operations on an element: powers of four; for tensor cores multiples of one instruction's operations, and more
/// of them, since tensor cores do more for each byte of memory bandwidth.
fn flops(precision: Precision) -> Vec<u32> {
    let (least, most) = if precision == Precision::Tensor { (32, 2048) } else { (2, 512) };
    std::iter::successors(Some(least), |flops| Some(flops * 4)).take_while(|flops| *flops <= most).collect()
}

/// Two blocks an SM, which fill it or have 1024 threads each, with two chains a thread; a quarter of that keeps tensor cores busy.
pub(super) fn throughput(machine: &Machine<'_>, running: &Running<'_>) -> Result<Vec<ThroughputPoint>, MeasureError> {
    let chains = 2;
    let warps = (machine.threads_of_sm() / 64).clamp(1, 32);
    let grid = |precision| if precision == Precision::Tensor { (1, warps.div_ceil(2) * 32) } else { (2, warps * 32) };
    let all = precisions(machine).into_iter().flat_map(|one| flops(one).into_iter().map(move |flops| (one, flops)));
    let planned: Vec<(Precision, u32)> = all.collect();
    let benchmark = |&(precision, flops): &(Precision, u32)| {
        let width = if precision == Precision::Tensor { 8 } else { 1 };
        let (blocks_of_sm, threads) = grid(precision);
        let of_pass = u64::from(blocks_of_sm * threads * chains) * u64::from(flops) * width;
        let passes = (OPERATIONS_OF_SM / of_pass).clamp(1, 4);
        Benchmark::new(
            "throughput",
            &[
                ("precision", &precision.name()),
                ("flops", &flops),
                ("chains", &chains),
                ("blocks", &(blocks_of_sm * machine.gpu.sm_count())),
                ("threads", &threads),
                ("passes", &passes),
            ],
        )
    };
    let measured = machine.run(&planned.iter().map(benchmark).collect::<Vec<_>>(), running)?;
    let points = planned.iter().zip(&measured).map(|(&(precision, flops), measured)| {
        let value = |name| measured.get(name).unwrap_or(0.0);
        let with_launch = value("host_throughput");
        let sustained = measured.get("sustained_throughput").unwrap_or(with_launch);
        ThroughputPoint { precision, flops, intensity: value("flops_per_byte"), with_launch, sustained }
    });
    Ok(points.collect())
}

/// One block an SM, with one warp and more.
pub(super) fn parallelism(machine: &Machine<'_>, running: &Running<'_>) -> Result<Vec<ParallelismPoint>, MeasureError> {
    let most = machine.threads_of_sm().min(1024) / 32;
    let warps = || std::iter::successors(Some(1), |warps| Some(warps * 2)).take_while(move |warps| *warps <= most);
    let wanted = precisions(machine).into_iter().filter(|one| matches!(one, Precision::Double | Precision::Single));
    let planned: Vec<(Precision, u32, u32)> =
        wanted.flat_map(|one| warps().flat_map(move |warps| [1, 2, 4, 8].map(|chains| (one, warps, chains)))).collect();
    let blocks = machine.gpu.sm_count();
    let benchmark = |&(precision, warps, chains): &(Precision, u32, u32)| {
        Benchmark::new(
            "throughput",
            &[
                ("precision", &precision.name()),
                ("flops", &PARALLELISM_FLOPS),
                ("chains", &chains),
                ("blocks", &blocks),
                ("threads", &(warps * 32)),
            ],
        )
    };
    let measured = machine.run(&planned.iter().map(benchmark).collect::<Vec<_>>(), running)?;
    let points = planned.iter().zip(&measured).map(|(&(precision, warps, chains), measured)| ParallelismPoint {
        precision,
        warps,
        chains,
        sustained: measured.get("sustained_throughput").unwrap_or(0.0),
    });
    Ok(points.collect())
}
