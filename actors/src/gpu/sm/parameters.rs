//! The topology's parameters of an SM.

use crate::catalogue::bounds::{CLOCK, CYCLES, INTERVAL, PER_CYCLE};
use crate::catalogue::{CarveOuts, ParameterSet, PeakRate, Problems, SmCapability, SmResources};
use crate::gpu::CachesBetweenKernels;
use balar_isa::program::{LatencyClass, MATRIX_PASS, Pipe};
use balar_protocol::memory::SECTOR_BYTES;
use balar_protocol::{Bytes, Frequency};
use balar_protocol::{MAXIMUM_CARVE_OUTS, MAXIMUM_REGISTER_FILES};
use serde::Deserialize;

/// Which ready warp a sub-core issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SchedulerPolicy {
    /// The warp that issued last while it can, then the one longest in the SM.
    GreedyThenOldest,
    /// The warp that issued last while it can, then the one that came to the SM last, as was found of an RTX A6000 (Huerta et al., MICRO
    /// 2025).
    GreedyThenYoungest,
    /// The next ready warp after the one that issued last.
    LooseRoundRobin,
    /// Round robin within a group of `active_warps`; another group's turn when none of it is ready.
    TwoLevel,
}

/// Cycles from issue until a dependent instruction can issue, by latency class.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// 32-bit integer and logic.
    pub integer: u32,
    /// 32-bit integer multiply-add.
    pub integer_multiply: u32,
    /// Single precision.
    pub single: u32,
    /// Half precision.
    pub half: u32,
    /// Double precision.
    pub double: u32,
    /// Special functions.
    pub special: u32,
    /// Conversions in the special-function unit.
    pub conversion: u32,
    /// Tensor cores: a whole product of matrices.
    pub tensor: u32,
    /// Machine code: a step of Volta's product of matrices. Source of the default: with it, the products of 16x16x16 that Accel-Sim's tuner
    /// measures on a TITAN V take 35 and 33 cycles.
    #[serde(default = "tensor_step")]
    pub tensor_step: u32,
    /// Machine code: a product of Turing's tensor cores, of 16x8x8 halves or fewer bits. The default is an estimate: two that depend on each
    /// other and the issue of one take about as long as the tile of 16x16x16 that they make half of takes a V100.
    #[serde(default = "tensor_product")]
    pub tensor_product: u32,
    /// Comparison into a predicate.
    pub predicate: u32,
    /// Constant cache hit.
    pub constant: u32,
    /// Machine code: a load from a constant bank that hits in its cache. Source of the default: Jia et al., Dissecting the NVIDIA Volta GPU
    /// Architecture via Microbenchmarking, 2018, table 3.1; an RTX A6000 takes 26 to 29 (Huerta et al., MICRO 2025).
    #[serde(default = "constant_load")]
    pub constant_load: u32,
    /// From a branch to the next instruction of the warp.
    pub branch: u32,
    /// Shuffle, match.
    pub exchange: u32,
    /// Machine code: moves, constants and votes of the uniform datapath. Source of the default: the smallest distance that ptxas 13.5 keeps
    /// for sm_75 between `ULDC`, `UMOV` or `VOTEU` and a reader of their results.
    #[serde(default = "uniform_move")]
    pub uniform_move: u32,
    /// From the last arrival at a barrier to the next instruction of its warps, the one that arrived last among them.
    pub barrier: u32,
}

fn constant_load() -> u32 {
    27
}

fn tensor_step() -> u32 {
    3
}

fn tensor_product() -> u32 {
    14
}

fn uniform_move() -> u32 {
    2
}

impl Latencies {
    /// Cycles by key.
    fn by_key(&self) -> impl Iterator<Item = (&'static str, u32)> {
        [
            ("integer", self.integer),
            ("integer_multiply", self.integer_multiply),
            ("single", self.single),
            ("half", self.half),
            ("double", self.double),
            ("special", self.special),
            ("conversion", self.conversion),
            ("tensor", self.tensor),
            ("tensor_step", self.tensor_step),
            ("tensor_product", self.tensor_product),
            ("predicate", self.predicate),
            ("constant", self.constant),
            ("constant_load", self.constant_load),
            ("branch", self.branch),
            ("exchange", self.exchange),
            ("uniform_move", self.uniform_move),
            ("barrier", self.barrier),
        ]
        .into_iter()
    }

    /// Cycles by class; memory (`Variable`) and `Zero` have none of their own.
    pub fn table(&self) -> [u32; LatencyClass::COUNT] {
        let mut table = [0; LatencyClass::COUNT];
        for (class, cycles) in [
            (LatencyClass::Integer, self.integer),
            (LatencyClass::IntegerMultiply, self.integer_multiply),
            (LatencyClass::Single, self.single),
            (LatencyClass::Half, self.half),
            (LatencyClass::Double, self.double),
            (LatencyClass::Special, self.special),
            (LatencyClass::Conversion, self.conversion),
            (LatencyClass::WideConversion, self.conversion),
            (LatencyClass::Tensor, self.tensor),
            (LatencyClass::TensorStep, self.tensor_step),
            (LatencyClass::TensorHalfStep, self.tensor_step),
            (LatencyClass::TensorProduct, self.tensor_product),
            (LatencyClass::TensorNarrowProduct, self.tensor_product),
            (LatencyClass::Predicate, self.predicate),
            (LatencyClass::Constant, self.constant),
            (LatencyClass::ConstantLoad, self.constant_load),
            (LatencyClass::Branch, self.branch),
            (LatencyClass::Exchange, self.exchange),
            (LatencyClass::UniformMove, self.uniform_move),
        ] {
            table[class as usize] = cycles;
        }
        table
    }
}

/// 32 banks of four bytes.
const SHARED_BYTES_PER_CYCLE: u64 = 128;

/// Cycles a sub-core's pipe is taken by one warp instruction: 32 lanes over the pipe's width.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitiationIntervals {
    /// Single precision.
    pub fp32: u32,
    /// Machine code: multiply-adds of integers, which take the pipe of single precision as well (default: as long as single precision).
    #[serde(default)]
    pub multiply: Option<u32>,
    /// Integer.
    pub int: u32,
    /// Double precision.
    pub fp64: u32,
    /// Half precision.
    pub fp16: u32,
    /// Special functions.
    pub sfu: u32,
    /// Conversions from and to types of 64 bits, in the special-function unit (default: two others).
    #[serde(default)]
    pub wide_conversion: Option<u32>,
    /// Tensor cores.
    pub tensor: u32,
    /// Machine code: a product of matrices of a warp over 128 bits of depth, and over 256 bits (default: as many as its multiply-adds take).
    #[serde(default)]
    pub products: Option<(u32, u32)>,
    /// Address generation of the memory pipe.
    pub memory: u32,
    /// Branches.
    pub branch: u32,
    /// Arrivals of warps at barriers, for the SM as a whole. Source of the default: a V100's SM takes 0.475 in a cycle (Zhang et al., A
    /// Study of Single and Multi-device Synchronization Methods in Nvidia GPUs, IPDPS 2020).
    #[serde(default = "barrier_interval")]
    pub barrier: u32,
    /// Look-ups of the constant cache by indexed loads, one for each address of their lanes, for the SM as a whole. Source of the default:
    /// CUDAkernel1DCT of dct8x8 on a Quadro GV100 (AccelWattch, hw_perf.csv), 96 of them for each of 8192 warps in 24,208 cycles.
    #[serde(default = "constant_interval")]
    pub constant: u32,
}

fn barrier_interval() -> u32 {
    2
}

fn constant_interval() -> u32 {
    2
}

impl InitiationIntervals {
    /// Cycles by key.
    fn by_key(&self) -> impl Iterator<Item = (&'static str, u32)> {
        [
            ("fp32", self.fp32),
            ("int", self.int),
            ("fp64", self.fp64),
            ("fp16", self.fp16),
            ("sfu", self.sfu),
            ("tensor", self.tensor),
            ("memory", self.memory),
            ("branch", self.branch),
            ("barrier", self.barrier),
            ("constant", self.constant),
        ]
        .into_iter()
        .chain(self.wide_conversion.map(|cycles| ("wide_conversion", cycles)))
        .chain(self.multiply.map(|cycles| ("multiply", cycles)))
        .chain(self.products.into_iter().flat_map(|(shallow, deep)| [("products", shallow), ("products", deep)]))
    }

    /// How many times as long as others an instruction of a latency class takes its pipe.
    pub fn widths(&self) -> [u32; LatencyClass::COUNT] {
        let mut widths = [1; LatencyClass::COUNT];
        widths[LatencyClass::TensorHalfStep as usize] = 2;
        // Multiply-adds over the 256 halves of a step; integers of 8 bits at twice the rate of halves, of 4 bits at four times, bits at 16.
        widths[LatencyClass::TensorProduct as usize] = 4;
        widths[LatencyClass::TensorNarrowProduct as usize] = 2;
        // They take no pipe.
        widths[LatencyClass::Zero as usize] = 0;
        let passes = 2 * self.sfu.max(1);
        widths[LatencyClass::WideConversion as usize] =
            self.wide_conversion.map_or(1, |cycles| cycles.div_ceil(passes));
        widths
    }

    /// Cycles by pipe.
    pub fn table(&self) -> [u32; Pipe::ALL.len()] {
        let mut table = [0; Pipe::ALL.len()];
        for (pipe, cycles) in [
            (Pipe::Fp32, self.fp32),
            (Pipe::Multiply, self.multiply.unwrap_or(self.fp32)),
            (Pipe::Int, self.int),
            (Pipe::Fp64, self.fp64),
            (Pipe::Fp16, self.fp16),
            (Pipe::Sfu, self.sfu),
            (Pipe::Tensor, self.tensor),
            (Pipe::Memory, self.memory),
            (Pipe::Load, self.memory),
            (Pipe::Store, self.memory),
            (Pipe::Branch, self.branch),
        ] {
            table[pipe as usize] = cycles;
        }
        table
    }
}

/// Address translation inside the SM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbParameters {
    /// Bytes one entry translates.
    pub page: Bytes,
    /// Entries of the first level; the one used least recently goes first.
    pub entries: u32,
    /// Entries of a set of the first level; 0: all are one set.
    #[serde(default)]
    pub ways: u32,
    /// Bytes one entry of the second level translates.
    pub second_level_page: Bytes,
    /// Entries of the second level, which the SM reaches without the GMMU.
    pub second_level_entries: u32,
    /// Entries of a set of the second level; 0: all are one set.
    #[serde(default)]
    pub second_level_ways: u32,
    /// Cycles that a first-level miss adds when the second level hits.
    pub second_level_latency: u32,
    /// Cycles between two reports of how often a followed page is used. Source of the default: an estimate; a microsecond is little beside
    /// the tens of them that a migration takes.
    #[serde(default = "report_interval")]
    pub report_interval: u32,
}

fn report_interval() -> u32 {
    1000
}

crate::parameters! {
    /// A streaming multiprocessor: sub-cores, memory pipe, L1 and shared memory, first TLB levels.
    pub struct SmParameters {
        /// clock of the SM
        #[range(CLOCK)]
        clock: Frequency,
        /// sub-cores, each with a scheduler that issues one warp instruction a cycle
        #[range(1..=8)]
        sub_cores: u32 = "4",
        /// which ready warp issues: GreedyThenOldest, GreedyThenYoungest, LooseRoundRobin or TwoLevel
        scheduler: SchedulerPolicy = "GreedyThenOldest",
        /// warps in a group of the TwoLevel scheduler
        active_warps: u32 = "4",
        /// warp slots
        #[range(1..=64)]
        warps: u32,
        /// CTA slots
        #[range(1..=64)]
        ctas: u32,
        /// 32-bit registers
        #[range(256..=1 << 20)]
        registers: u32,
        /// register files, which have equal shares of the registers; 0 for one of each sub-core
        #[range(..=MAXIMUM_REGISTER_FILES as u32)]
        register_files: u32 = "0",
        /// L1 data cache and shared memory together
        #[range(..=Bytes(1 << 24))]
        unified_memory: Bytes,
        /// sizes that shared memory can be given out of the unified memory; the rest is L1
        shared_carve_outs: Vec<Bytes>,
        /// units in which a CTA gets shared memory
        #[range(Bytes(1)..=Bytes(1 << 16))]
        shared_unit: Bytes = "\"256 B\"",
        /// shared memory that the system takes of each CTA beside the CTA's own
        #[range(..=Bytes(1 << 16))]
        shared_reserved: Bytes = "\"0 B\"",
        /// cycles from issue to a dependent issue, by class
        latencies: Latencies,
        /// cycles a pipe is taken by a warp instruction
        initiation_intervals: InitiationIntervals,
        /// cycles from a CTA's arrival to its first instruction
        #[range(CYCLES)]
        cta_start_latency: u32,
        /// cycles that a warp waits for a `printf`, of whichever lanes; the device's own takes some 7,100 instructions for a text with one value
        #[range(CYCLES)]
        device_print_cost: u32 = "0",
        /// kernels that launch kernels: cycles that a warp waits for buffers for the parameters, and for each of them (GPGPU-Sim's default, after Wang and Yalamanchili, IISWC 2014, on a K20c: 8023 and 129)
        parameter_buffer_cost: (u32, u32) = "(8000, 100)",
        /// kernels that launch kernels: cycles that a warp waits for launches, and for each of them (likewise: 12187 and 1592)
        device_launch_cost: (u32, u32) = "(12000, 1600)",
        /// kernels that launch kernels: cycles that a warp waits for streams of its own (likewise: 7165)
        #[range(CYCLES)]
        device_stream_cost: u32 = "7200",
        /// machine code: cycles in which arithmetic reads its operands, where each of two banks of registers gives one of them in a cycle; 0 where
        /// two operands of a bank never take longer, and a third takes a cycle
        #[range(..=16)]
        operand_read_cycles: u32 = "0",
        /// machine code: cycles from the issue of an access until its registers are read, and may be written again
        #[range(CYCLES)]
        operand_read_latency: u32 = "11",
        /// machine code: how much longer the data of a store or an atomic take to be read: of any, and for each of its registers. Where they
        /// take longer, what waits for the load/store units is read when they come to it, and otherwise when it issues
        store_read_latency: (u32, u32) = "(0, 0)",
        /// whether an instruction that uses shared memory before a copy or a product is done with it is an error, or, in machine code, one that
        /// uses a register too early
        check_hazards: bool = "false",
        /// capacity of a sub-core's own instruction cache (L0); without any, it reads the SM's
        #[range(..=Bytes(1 << 20))]
        l0_instruction_cache: Bytes = "\"0 B\"",
        /// capacity of the SM's instruction cache (L1.5), with constants in it; without any, code and constants are always there
        #[range(..=Bytes(1 << 24))]
        instruction_cache: Bytes = "\"128 KiB\"",
        /// machine code: capacity of the cache of constant operands; without any, they are always there
        #[range(..=Bytes(1 << 24))]
        constant_cache: Bytes = "\"0 B\"",
        /// cycles from a miss in the caches of sub-cores or constants to the line from the SM's instruction cache
        #[range(CYCLES)]
        l15_latency: u32 = "0",
        /// cycles from a miss to a constant that a launch says (parameters, sizes), where the SM has not got it yet
        #[range(CYCLES)]
        launch_constant_latency: u32 = "0",
        /// bytes of an instruction of the GPU's own code
        #[range(1..=128)]
        instruction_bytes: u32 = "16",
        /// lines of code that are fetched after a missing one, the length of a sub-core's stream buffer
        #[range(..=1 << 13)]
        instruction_prefetch: u32 = "8",
        /// cycles from the issue of a shared-memory load to a dependent issue
        #[range(CYCLES)]
        shared_latency: u32,
        /// cycles that a wavefront of shared memory takes
        #[range(1..=1000)]
        shared_wavefront_cycles: u32 = "1",
        /// cycles that an access to shared memory takes at least
        #[range(1..=1000)]
        shared_access_cycles: u32 = "1",
        /// further cycles that a store to shared memory takes
        #[range(..=1000)]
        shared_store_cycles: u32 = "0",
        /// cycles that an atomic on shared memory takes for each lane of the bank that most of its lanes name
        #[range(1..=1000)]
        shared_update_interval: u32 = "2",
        /// cycles from the issue of a load that hits in L1 to a dependent issue
        #[range(CYCLES)]
        l1_hit_latency: u32,
        /// cycles from the issue of a load that misses in L1 to its request leaving the SM
        #[range(CYCLES)]
        l1_miss_latency: u32,
        /// cycles from a response's arrival to a dependent issue
        #[range(CYCLES)]
        l1_fill_latency: u32,
        /// lines of a set of the L1, least recently used goes first; its sets follow from its size
        #[range(1..=64)]
        l1_ways: u32,
        /// cycles from the issue of a copy of many bytes (`cp.async.bulk`) to its first access. The default is what a copy of a tensor's box that hits
        /// in the L2 takes an H800 beyond a load that does: 365 and 265 cycles (HPMLL/NVIDIA-Hopper-Benchmark)
        #[range(CYCLES)]
        bulk_copy_latency: u32 = "100",
        /// cycles from the last read of a copy of many bytes out of shared memory until its warp knows of it
        #[range(..=1 << 20)]
        bulk_read_latency: u32 = "0",
        /// do global loads go through L1 by default (Volta) or not (Pascal)?
        l1_caches_global_loads: bool = "true",
        /// lines of tags that the L1 looks up in a cycle
        #[range(PER_CYCLE)]
        l1_tags_per_cycle: u32 = "4",
        /// sectors that the L1 delivers in a cycle
        #[range(PER_CYCLE)]
        l1_sectors_per_cycle: u32 = "4",
        /// cycles from the issue of an access to a texture that hits in L1 to a dependent issue; one that misses is as much later than a load.
        /// On GPUs before Volta all loads of the L1 go through its texture units, and take 82 cycles (Jia et al. 2018, table 3.1)
        #[range(CYCLES)]
        texture_latency: u32 = "82",
        /// lanes of an access to a texture that are served in a cycle (a V100 has 320 texture units in 80 SMs, a P100 224 in 56, a T4 160 in 40)
        #[range(PER_CYCLE)]
        texture_lanes_per_cycle: u32 = "4",
        /// tenths of a cycle that a load, of a texture aside, takes the L1 at least
        #[range(10..=1000)]
        l1_load_tenths: u32 = "10",
        /// lines that can be outstanding below the L1
        #[range(..=1 << 16)]
        l1_mshrs: u32,
        /// instructions of a sub-core that can wait for the load/store units
        #[range(1..=16)]
        memory_queue: u32 = "5",
        /// what the caches of code and constants hold when a kernel begins: Kept, or Flushed as by Nsight Compute; the L1 holds nothing
        caches_between_kernels: CachesBetweenKernels = "Kept",
        /// stores and atomics that can be outstanding below the L1
        #[range(..=1 << 16)]
        store_queue: u32,
        /// requests that may wait for a place in the crossbar
        #[range(..=1 << 16)]
        request_queue: u32 = "64",
        /// address translation
        tlb: TlbParameters,
    }
}

impl SmParameters {
    /// The SM's resources for CTAs: 32 threads a warp slot, and as much shared memory as the largest carve-out.
    pub fn provides(&self) -> SmCapability {
        let bytes = |size| u32::try_from(size).unwrap_or(u32::MAX);
        let shared = self.shared_carve_outs.iter().map(|size| size.0).max().unwrap_or(0);
        let resources = SmResources {
            threads: self.warps.saturating_mul(32),
            warps: self.warps,
            sub_cores: self.sub_cores,
            registers: self.registers,
            register_files: if self.register_files == 0 { self.sub_cores } else { self.register_files },
            shared_bytes: bytes(shared),
            shared_unit: bytes(self.shared_unit.0),
            shared_reserved: bytes(self.shared_reserved.0),
        };
        let sizes = self.shared_carve_outs.iter().map(|size| bytes(size.0));
        SmCapability { resources, cta_slots: self.ctas, carve_outs: CarveOuts::new(sizes), clock: self.clock }
    }

    /// The most work that its lanes and banks can do in a second.
    pub fn peaks(&self) -> [(PeakRate, u64); 6] {
        let InitiationIntervals { fp64, fp32, fp16, tensor, .. } = self.initiation_intervals;
        let per_second = |cycle: u64, cycles: u32| {
            let all = u128::from(cycle) * u128::from(self.clock.hertz()) / u128::from(cycles.max(1));
            u64::try_from(all).unwrap_or(u64::MAX)
        };
        // A multiply-add of each lane of a warp.
        let warp = u64::from(self.sub_cores) * 2 * 32;
        // Of tensor cores so many multiply-adds as an instruction of one pass has.
        let pass = u64::from(self.sub_cores) * 2 * u64::from(MATRIX_PASS);
        [
            (PeakRate::DoubleOperations, per_second(warp, fp64)),
            (PeakRate::SingleOperations, per_second(warp, fp32)),
            (PeakRate::HalfOperations, per_second(2 * warp, fp16)),
            (PeakRate::TensorOperations, per_second(pass, tensor)),
            (PeakRate::L1Bytes, per_second(u64::from(self.l1_sectors_per_cycle) * SECTOR_BYTES, 1)),
            (PeakRate::SharedBytes, per_second(SHARED_BYTES_PER_CYCLE, 1)),
        ]
    }

    /// The settings that contradict each other.
    pub fn problems(&self) -> Problems {
        let mut problems = self.range_problems();
        for (class, cycles) in self.latencies.by_key() {
            problems.check_range(format!("latencies.{class}"), cycles, CYCLES);
        }
        for (pipe, cycles) in self.initiation_intervals.by_key() {
            problems.check_range(format!("initiation_intervals.{pipe}"), cycles, INTERVAL);
        }
        for (key, (base, each)) in [
            ("store_read_latency", self.store_read_latency),
            ("parameter_buffer_cost", self.parameter_buffer_cost),
            ("device_launch_cost", self.device_launch_cost),
        ] {
            problems.check_range(key, base, CYCLES);
            problems.check_range(key, each, CYCLES);
        }
        problems.check_range("tlb.second_level_latency", self.tlb.second_level_latency, CYCLES);
        problems.check_range("tlb.report_interval", self.tlb.report_interval, CYCLES);
        let mut check = |holds: bool, key: &'static str, problem: &str| problems.check(holds, key, problem);
        for (key, lines) in
            [("l1_mshrs", self.l1_mshrs), ("store_queue", self.store_queue), ("request_queue", self.request_queue)]
        {
            check(lines >= 32, key, &format!("expected at least 32, the lines one warp can touch, found {lines}"));
        }
        // One mistake is one report: a number of sub-cores that cannot be says nothing of warps.
        let even = !(1..=8).contains(&self.sub_cores) || self.warps.is_multiple_of(self.sub_cores);
        check(even, "warps", "expected a multiple of the number of sub-cores");
        let active = self.warps == 0 || (1..=self.warps).contains(&self.active_warps);
        check(active, "active_warps", "expected 1 to the number of warps");
        let count = self.shared_carve_outs.len();
        check(count > 0, "shared_carve_outs", "expected at least one size");
        let most = format!("expected at most {MAXIMUM_CARVE_OUTS} sizes, found {count}");
        check(count <= MAXIMUM_CARVE_OUTS, "shared_carve_outs", &most);
        let fits = self.shared_carve_outs.iter().all(|&size| size <= self.unified_memory);
        check(fits, "shared_carve_outs", "a size is larger than the unified memory");
        let is_page = |bytes: Bytes| bytes.0.is_power_of_two() && bytes.0 >= 4096;
        let pages = is_page(self.tlb.page) && is_page(self.tlb.second_level_page);
        check(pages, "tlb", "pages must be powers of two of at least 4 KiB");
        check((1..=1 << 16).contains(&self.tlb.entries), "tlb", "expected 1 to 65536 entries");
        check(self.tlb.second_level_entries <= 1 << 16, "tlb", "expected at most 65536 second_level_entries");
        let even = |entries: u32, ways: u32| ways == 0 || entries.is_multiple_of(ways);
        let TlbParameters { entries, ways, second_level_entries, second_level_ways, .. } = self.tlb;
        check(even(entries, ways), "tlb", "expected a multiple of ways as entries");
        check(
            even(second_level_entries, second_level_ways),
            "tlb",
            "expected a multiple of second_level_ways as second_level_entries",
        );
        problems
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::catalogue::ParameterSet;

    /// The parameters of the V100's SMs.
    pub(crate) fn parameters() -> SmParameters {
        let text = include_str!("../../../../topologies/parts/v100.ron");
        let start = text.find("StreamingMultiprocessor(").expect("a V100 has SMs");
        let end = start + text[start..].find("\"crossbar\"").expect("the crossbar follows");
        let mut body = text[start..end].trim_start_matches("StreamingMultiprocessor").trim_end().to_owned();
        body.truncate(body.rfind(')').expect("the parenthesis is closed"));
        for definition in SmParameters::DEFINITIONS {
            if let (Some(default), false) = (definition.default, body.contains(&format!(" {}:", definition.name))) {
                body.push_str(&format!("{}: {default},", definition.name));
            }
        }
        ron::from_str(&format!("{body})")).expect("the file is in order")
    }

    #[test]
    fn the_shipped_sm_has_no_problem() {
        assert!(parameters().problems().is_empty());
    }

    #[test]
    fn bounds_of_outstanding_lines_say_why() {
        let narrow = SmParameters { l1_mshrs: 31, store_queue: 0, ..parameters() };
        let error = narrow.problems().into_result().expect_err("a warp touches 32 lines").to_string();
        for found in
            ["l1_mshrs: expected at least 32, the lines one warp can touch, found 31", "warp can touch, found 0"]
        {
            assert!(error.contains(found), "{error}");
        }
    }
}
