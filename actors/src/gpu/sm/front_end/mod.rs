//! The front end of an SM: code that is fetched, the choice of the warp that issues, and how long instructions take their pipes.
//!
//! **Invariant:** it is told which warps are ready, and tells which of them issue; it changes no warp.

mod constant_load;
mod instruction_buffer;
mod lines;
mod scheduler;
mod second_level;

use super::counters::SmCounters;
use super::parameters::{SchedulerPolicy, SmParameters};
use super::warps::WarpSet;
use balar_isa::program::{BankReads, ConstantLine, IssueControl, LatencyClass, Pipe, Timing};
use balar_protocol::cuda::ProgramId;
use balar_protocol::memory::LINE_BYTES;
pub use constant_load::ConstantLoad;
use instruction_buffer::InstructionBuffer;
use lines::{Lines, UNDER_WAY};
pub use scheduler::Choice;
use scheduler::{Policy, SubCore};
use second_level::{SecondLevel, code_address, line_of};
pub use second_level::{Wanted, constant_address};
use serde::{Deserialize, Serialize};

/// The topology's parameters of the front end.
#[derive(Clone, Debug)]
pub struct FrontEndSpecification {
    policy: Policy,
    /// The warps of each sub-core.
    members: Vec<WarpSet>,
    latencies: [u32; LatencyClass::COUNT],
    intervals: [u32; Pipe::ALL.len()],
    widths: [u32; LatencyClass::COUNT],
    /// Cycles of a product of matrices of machine code, by its depth.
    products: Option<(u32, u32)>,
    /// Instructions that can wait for the load/store units.
    memory_queue: u8,
    /// Cycles in which the operands of an instruction are read, one of each bank in a cycle; 0: see [`SubCore::read`].
    operand_read_cycles: u64,
}

/// The front end's view of an instruction: its [`Timing`] without its dependencies.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Unit it issues to.
    pub pipe: Pipe,
    /// When its result can be read.
    pub latency: LatencyClass,
    /// Instructions of the GPU's own that it stands for.
    pub passes: u8,
    /// The registers that it reads.
    pub bank_reads: BankReads,
    /// Of a product of matrices of machine code: so many of the least ones of its class.
    pub products: u8,
}

impl Class {
    /// The class of an instruction.
    #[inline]
    pub fn of(timing: &Timing) -> Class {
        let IssueControl { bank_reads, products, .. } = timing.control;
        let passes = timing.passes.max(1);
        Class { pipe: timing.pipe, latency: timing.latency, passes, bank_reads, products: products.max(1) }
    }
}

/// When an instruction that issues lets others follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// First cycle in which the warp's next instruction can issue.
    pub next: u64,
    /// First cycle in which its result can be read.
    pub result: u64,
    /// Cycles of one pass.
    pub latency: u64,
}

/// A need for a line of code or of constants: in which cycle, and where its misses are counted.
pub struct Need<'a> {
    /// The cycle.
    pub cycle: u64,
    /// Has the warp waited for the line before? Then this is no further miss.
    pub waits_already: bool,
    /// The counters of the launch that the warp is of.
    pub counters: &'a mut SmCounters,
    /// Gets the lines to request from the L2.
    pub wanted: &'a mut Wanted,
}

/// The state of the front end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrontEnd {
    sub_cores: Vec<SubCore>,
    /// The instruction cache of each sub-core, where sub-cores have their own.
    buffers: Vec<InstructionBuffer>,
    /// Lines of constant operands.
    constants: Lines,
    second_level: SecondLevel,
    instructions_per_line: u32,
    /// Lines of code that are fetched after a missing one.
    prefetch: u32,
    /// Warps that wait for a line of code or constants, in the order in which they came to it.
    fetching: Vec<u16>,
}

impl FrontEndSpecification {
    /// The specification by these parameters.
    pub fn new(parameters: &SmParameters) -> FrontEndSpecification {
        let sub_cores = parameters.sub_cores as usize;
        let of =
            |core: usize| (core..parameters.warps as usize).step_by(sub_cores).fold(0, |set, warp| set | 1 << warp);
        FrontEndSpecification {
            policy: Policy { policy: parameters.scheduler, active_warps: parameters.active_warps as usize, sub_cores },
            members: (0..sub_cores).map(of).collect(),
            latencies: parameters.latencies.table(),
            intervals: parameters.initiation_intervals.table(),
            widths: parameters.initiation_intervals.widths(),
            products: parameters.initiation_intervals.products,
            memory_queue: parameters.memory_queue as u8,
            operand_read_cycles: u64::from(parameters.operand_read_cycles),
        }
    }

    /// The warps of a sub-core.
    #[inline]
    pub fn members(&self, sub_core: usize) -> WarpSet {
        self.members[sub_core]
    }

    /// The sub-cores that have warps in a set, one bit each.
    #[inline]
    pub fn sub_cores_of(&self, warps: WarpSet) -> u64 {
        let sub_cores = self.policy.sub_cores;
        if sub_cores.is_power_of_two() {
            // Warps that are a multiple of that apart are of one sub-core: the set is folded until it has no others.
            let mut set = warps;
            let mut half = WarpSet::BITS as usize / 2;
            while half >= sub_cores {
                set |= set >> half;
                half /= 2;
            }
            return set & (WarpSet::MAX >> (WarpSet::BITS as usize - sub_cores));
        }
        let members = self.members.iter().enumerate();
        members.fold(0, |set, (sub_core, members)| set | u64::from(warps & members != 0) << sub_core)
    }

    /// Cycles that a pass of an instruction takes its pipe.
    #[inline]
    fn interval(&self, class: &Class) -> u64 {
        let width = u64::from(self.widths[class.latency as usize]);
        let one = width * u64::from(self.intervals[class.pipe as usize]);
        let is_deep = match class.latency {
            LatencyClass::TensorProduct => class.products > 1,
            LatencyClass::TensorNarrowProduct => class.products > 2,
            _ => return one,
        };
        match self.products.filter(|_| class.pipe == Pipe::Tensor) {
            Some((shallow, deep)) => u64::from(if is_deep { deep } else { shallow }),
            None => one * u64::from(class.products),
        }
    }

    /// Cycles of a latency class.
    #[inline]
    pub fn latency(&self, class: LatencyClass) -> u64 {
        u64::from(self.latencies[class as usize])
    }
}

impl FrontEnd {
    /// Without any code.
    pub fn new(parameters: &SmParameters) -> FrontEnd {
        let prefetch = parameters.instruction_prefetch;
        let buffer_lines = parameters.l0_instruction_cache.0 / LINE_BYTES;
        let buffers = if buffer_lines == 0 { 0 } else { parameters.sub_cores as usize };
        FrontEnd {
            sub_cores: (0..parameters.sub_cores as u8).map(SubCore::new).collect(),
            buffers: vec![InstructionBuffer::new(buffer_lines, prefetch); buffers],
            constants: Lines::new(parameters.constant_cache.0 / u64::from(ConstantLine::BYTES)),
            second_level: SecondLevel::new(
                parameters.instruction_cache.0,
                parameters.l15_latency,
                parameters.launch_constant_latency,
            ),
            instructions_per_line: (LINE_BYTES as u32 / parameters.instruction_bytes.max(1)).max(1),
            prefetch,
            fetching: Vec::new(),
        }
    }

    /// The warps of a sub-core whose pipe is taken in `cycle`.
    #[inline]
    pub fn blocked(&mut self, sub_core: usize, wants: &[WarpSet; Pipe::ALL.len()], cycle: u64) -> WarpSet {
        self.sub_cores[sub_core].blocked(wants, cycle)
    }

    /// The warp that a sub-core comes to first among `ready` ones. There is at least one.
    #[inline]
    pub fn first(
        &self,
        specification: &FrontEndSpecification,
        sub_core: usize,
        ready: WarpSet,
        older: &[WarpSet],
    ) -> usize {
        self.sub_cores[sub_core].first(&specification.policy, ready, older)
    }

    /// The warp that a sub-core issues; see [`Choice`].
    #[inline]
    pub fn choose(
        &self,
        specification: &FrontEndSpecification,
        sub_core: usize,
        ready: WarpSet,
        blocked: WarpSet,
        older: &[WarpSet],
    ) -> Choice {
        self.sub_cores[sub_core].choose(&specification.policy, ready, blocked, older)
    }

    /// Pipes of a sub-core that were taken when [`Self::blocked`] looked, one bit each by their places among [`Pipe::ALL`].
    #[inline]
    pub fn taken(&self, sub_core: usize) -> u16 {
        self.sub_cores[sub_core].taken()
    }

    /// The warp that a sub-core issued last wants to issue to a pipe, by its place among [`Pipe::ALL`], in the next cycle, `cycle`.
    /// Gives when it can, where the sub-core would come to it first and find the pipe taken.
    #[inline]
    pub fn refused_next(
        &self,
        specification: &FrontEndSpecification,
        sub_core: usize,
        pipe: usize,
        cycle: u64,
    ) -> Option<u64> {
        let free = self.sub_cores[sub_core].free_from(pipe);
        let is_greedy = matches!(
            specification.policy.policy,
            SchedulerPolicy::GreedyThenOldest | SchedulerPolicy::GreedyThenYoungest
        );
        (free > cycle && is_greedy).then_some(free)
    }

    /// When a sub-core's pipe, by its place among [`Pipe::ALL`], can take an instruction.
    #[inline]
    pub fn free_from(&self, sub_core: usize, pipe: usize) -> u64 {
        self.sub_cores[sub_core].free_from(pipe)
    }

    /// A warp issues an instruction in `cycle`.
    #[inline]
    pub fn issue(
        &mut self,
        specification: &FrontEndSpecification,
        sub_core: usize,
        warp: usize,
        class: Class,
        cycle: u64,
    ) -> Issued {
        let passes = u64::from(class.passes);
        let latency = u64::from(specification.latencies[class.latency as usize]);
        let interval = specification.interval(&class);
        if class.pipe.is_memory() {
            self.sub_cores[sub_core].issue_memory(warp, cycle + 1);
        } else {
            self.sub_cores[sub_core].issue(warp, class.pipe, cycle + interval * passes);
            // Either takes so much of the two halves of the pipe, or of the only one, as an instruction of single precision does.
            if let Pipe::Fp32 | Pipe::Multiply = class.pipe {
                let other = if class.pipe == Pipe::Fp32 { Pipe::Multiply } else { Pipe::Fp32 };
                let single = u64::from(specification.intervals[Pipe::Fp32 as usize]);
                self.sub_cores[sub_core].hold_pipe(other, cycle + single * passes);
            }
        }
        if !class.bank_reads.is_empty() {
            self.sub_cores[sub_core].read(class.bank_reads, specification.operand_read_cycles, cycle);
        }
        // The passes of a sequence depend on each other, but for those of tensor cores, which follow in a pipeline; the next
        // instruction follows the last of them.
        let (last_pass, result) = if class.pipe == Pipe::Tensor {
            ((passes - 1) * interval, latency.max(interval * passes))
        } else {
            ((passes - 1) * latency, passes * latency)
        };
        Issued { next: cycle + 1 + last_pass, result: cycle + result, latency }
    }

    /// The instruction of the tensor cores that a warp has issued in `cycle` takes those of its sub-core for so many passes: gives the cycle
    /// from which on they are free.
    pub fn hold_tensor(&mut self, specification: &FrontEndSpecification, warp: usize, passes: u8, cycle: u64) -> u64 {
        let free = cycle + u64::from(specification.intervals[Pipe::Tensor as usize]) * u64::from(passes);
        let sub_core = warp % self.sub_cores.len();
        self.sub_cores[sub_core].issue(warp, Pipe::Tensor, free);
        free
    }

    /// First cycle, from `cycle` on, in which the addresses of an instruction for the load/store units can be made that a warp issues then.
    #[inline]
    pub fn addresses_from(&self, warp: usize, cycle: u64) -> u64 {
        self.sub_cores[warp % self.sub_cores.len()].addresses_from(cycle)
    }

    /// A warp's instruction for the load/store units, whose addresses are made `from` a cycle on, is taken by them in another.
    #[inline]
    pub fn leaves(&mut self, specification: &FrontEndSpecification, warp: usize, from: u64, taken: u64) {
        let interval = u64::from(specification.intervals[Pipe::Memory as usize]);
        let sub_core = warp % self.sub_cores.len();
        self.sub_cores[sub_core].leaves(taken, (from + interval).max(taken + 1), specification.memory_queue);
    }

    /// Instructions of a line of code.
    #[inline]
    pub fn line_length(&self) -> u32 {
        self.instructions_per_line
    }

    /// A warp comes to instruction `pc`, in another line of code than before: gives the first cycle in which it is there. `None` where
    /// that is not known, and the warp waits.
    #[inline(always)]
    pub fn fetch(
        &mut self,
        warp: usize,
        (program, instructions): (ProgramId, usize),
        pc: u32,
        need: Need,
    ) -> Option<u64> {
        let Need { cycle, waits_already, counters, wanted } = need;
        if self.second_level.is_absent() {
            return Some(cycle);
        }
        let first = line_of(code_address(program));
        let line = first + u64::from(pc / self.instructions_per_line);
        let last = first + (instructions.saturating_sub(1) / self.instructions_per_line as usize) as u64;
        let before = wanted.len();
        let level = &mut self.second_level;
        let sub_core = warp % self.sub_cores.len();
        let from = match self.buffers.get_mut(sub_core) {
            Some(buffer) => buffer.look(line, last, |line| level.code(line, cycle, wanted)),
            None => {
                let from = level.code(line, cycle, wanted);
                if from == UNDER_WAY {
                    for next in line + 1..=last.min(line + u64::from(self.prefetch)) {
                        level.code(next, cycle, wanted);
                    }
                }
                from
            }
        };
        counters.instruction_requests += (wanted.len() - before) as u64;
        counters.l0_instruction_misses += u64::from(from > cycle && !waits_already);
        counters.instruction_cache_misses += u64::from(from == UNDER_WAY && !waits_already);
        self.known(warp, from)
    }

    /// A warp wants a constant operand at an address of [`constant_address`]: gives the first cycle in which it is there, as
    /// [`Self::fetch`] does.
    #[inline]
    pub fn constant(&mut self, warp: usize, address: u64, need: Need) -> Option<u64> {
        if self.has_no_constant_cache() {
            return Some(need.cycle);
        }
        let from = self.constant_line(address, need);
        self.known(warp, from)
    }

    /// From when on a line of constants is there for a load, which is not noted as one who waits; `None` where that is not known.
    pub fn constant_for_load(&mut self, address: u64, need: Need) -> Option<u64> {
        if self.has_no_constant_cache() {
            return Some(need.cycle);
        }
        Some(self.constant_line(address, need)).filter(|&from| from != UNDER_WAY)
    }

    /// Whether constants are always there.
    #[inline]
    pub fn has_no_constant_cache(&self) -> bool {
        self.constants.is_empty() || self.second_level.is_absent()
    }

    /// From when on a constant is there; [`UNDER_WAY`] where that is not known.
    #[inline]
    fn constant_line(&mut self, address: u64, need: Need) -> u64 {
        let Need { cycle, waits_already, counters, wanted } = need;
        let number = address / u64::from(ConstantLine::BYTES);
        if let Some(from) = self.constants.find(number) {
            return from;
        }
        let before = wanted.len();
        let from = self.second_level.constant(line_of(address), cycle, wanted);
        self.constants.insert(number, from);
        counters.constant_requests += (wanted.len() - before) as u64;
        counters.constant_cache_misses += u64::from(!waits_already);
        from
    }

    /// A cycle that is known; the warp waits where it is not.
    #[inline]
    fn known(&mut self, warp: usize, from: u64) -> Option<u64> {
        if from == UNDER_WAY {
            self.fetching.push(warp as u16);
            return None;
        }
        Some(from)
    }

    /// A line of code or constants has arrived: `waiting` gets the warps that wait for one, to look again.
    pub fn line_arrived(&mut self, number: u32, cycle: u64, waiting: &mut Vec<u16>) {
        let (line, from) = self.second_level.arrived(number, cycle);
        for buffer in &mut self.buffers {
            buffer.arrives(line, from);
        }
        if !self.constants.is_empty() {
            let parts = LINE_BYTES / u64::from(ConstantLine::BYTES);
            for part in 0..parts {
                self.constants.arrives(line * parts + part, from);
            }
        }
        waiting.append(&mut self.fetching);
    }

    /// Its caches are empty.
    pub fn flush_caches(&mut self) {
        self.buffers.iter_mut().for_each(InstructionBuffer::clear);
        self.constants.clear();
        self.second_level.clear();
    }

    /// Lines of code and constants under way.
    pub fn lines_under_way(&self) -> u32 {
        self.second_level.under_way()
    }

    /// Is it of as many sub-cores?
    pub fn is_like(&self, other: &FrontEnd) -> bool {
        self.sub_cores.len() == other.sub_cores.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::sm::parameters::tests::parameters;
    use balar_protocol::cuda::LaunchId;

    fn class(pipe: Pipe, latency: LatencyClass, passes: u8) -> Class {
        Class { pipe, latency, passes, bank_reads: BankReads::default(), products: 1 }
    }

    #[test]
    fn passes_take_their_pipe_and_depend_on_each_other() {
        // The V100's single precision: 4 cycles, 16 lanes; its tensor cores: 33 cycles, a new instruction every 2.
        let parameters = parameters();
        let specification = FrontEndSpecification::new(&parameters);
        let mut front_end = FrontEnd::new(&parameters);
        let issued = front_end.issue(&specification, 0, 4, class(Pipe::Fp32, LatencyClass::Single, 1), 100);
        assert_eq!(issued, Issued { next: 101, result: 104, latency: 4 });
        assert_eq!(front_end.free_from(0, Pipe::Fp32 as usize), 102);
        let issued = front_end.issue(&specification, 1, 5, class(Pipe::Fp32, LatencyClass::Single, 3), 100);
        assert_eq!((issued.next, issued.result), (109, 112));
        let issued = front_end.issue(&specification, 2, 6, class(Pipe::Tensor, LatencyClass::Tensor, 4), 100);
        assert_eq!((issued.next, issued.result), (107, 133));
        assert_eq!(front_end.free_from(2, Pipe::Tensor as usize), 108);
    }

    #[test]
    fn multiply_adds_of_integers_share_the_pipe_of_single_precision() {
        // Cycles in which both pipes are free after an instruction in cycle 100: of one pipe of 16 lanes, and of two.
        let mut parameters = parameters();
        for (single, multiply, free_after_single, free_after_multiply) in
            [(2, None, [102, 102], [102, 102]), (1, Some(2), [101, 101], [101, 102])]
        {
            parameters.initiation_intervals.fp32 = single;
            parameters.initiation_intervals.multiply = multiply;
            let specification = FrontEndSpecification::new(&parameters);
            let mut front_end = FrontEnd::new(&parameters);
            front_end.issue(&specification, 0, 4, class(Pipe::Fp32, LatencyClass::Single, 1), 100);
            front_end.issue(&specification, 1, 5, class(Pipe::Multiply, LatencyClass::IntegerMultiply, 1), 100);
            let free = |sub_core| [Pipe::Fp32, Pipe::Multiply].map(|pipe| front_end.free_from(sub_core, pipe as usize));
            assert_eq!((free(0), free(1)), (free_after_single, free_after_multiply));
            // Single precision does not free the half that multiplies earlier.
            front_end.issue(&specification, 1, 5, class(Pipe::Fp32, LatencyClass::Single, 1), 100);
            assert_eq!(front_end.free_from(1, Pipe::Multiply as usize), free_after_multiply[1]);
        }
    }

    #[test]
    fn products_of_machine_code_take_the_tensor_cores_as_long_as_their_multiply_adds() {
        let parameters = parameters();
        let specification = FrontEndSpecification::new(&parameters);
        let mut front_end = FrontEnd::new(&parameters);
        // Steps of 256 halves in two cycles; 16x8x8 halves, and 8x8x16 bytes at twice the rate.
        for (sub_core, latency, free) in [
            (0, LatencyClass::TensorStep, 102),
            (1, LatencyClass::TensorProduct, 108),
            (2, LatencyClass::TensorNarrowProduct, 104),
        ] {
            let issued = front_end.issue(&specification, sub_core, sub_core, class(Pipe::Tensor, latency, 1), 100);
            assert_eq!(issued.next, 101);
            assert_eq!(front_end.free_from(sub_core, Pipe::Tensor as usize), free, "{latency:?}");
        }
    }

    #[test]
    fn conversions_of_64_bits_take_their_pipe_as_long_as_the_topology_says() {
        for (cycles, expected) in [(None, 116), (Some(64), 164), (Some(16), 116)] {
            let mut parameters = parameters();
            parameters.initiation_intervals.wide_conversion = cycles;
            let specification = FrontEndSpecification::new(&parameters);
            let mut front_end = FrontEnd::new(&parameters);
            for (sub_core, latency, free) in
                [(0, LatencyClass::WideConversion, expected), (1, LatencyClass::Conversion, 116)]
            {
                front_end.issue(&specification, sub_core, sub_core, class(Pipe::Sfu, latency, 2), 100);
                assert_eq!(front_end.free_from(sub_core, Pipe::Sfu as usize), free, "{cycles:?} {latency:?}");
            }
        }
    }

    #[test]
    fn warps_are_dealt_out_to_the_sub_cores() {
        let specification = FrontEndSpecification::new(&parameters());
        let all = specification.members.iter().fold(0, |all, set| all ^ set);
        assert_eq!(all, u64::MAX);
        assert_eq!(specification.members(1) & 0xff, 0b0010_0010);
        let sets = [0, 0b1, 0b0100_0100, 1 << 63, u64::MAX];
        assert_eq!(sets.map(|warps| specification.sub_cores_of(warps)), [0, 0b1, 0b100, 0b1000, 0b1111]);
        let of = |sub_cores| FrontEndSpecification::new(&SmParameters { sub_cores, ..parameters() });
        assert_eq!(sets.map(|warps| of(3).sub_cores_of(warps)), [0, 0b1, 0b101, 0b001, 0b111]);
        assert_eq!(sets.map(|warps| of(1).sub_cores_of(warps)), [0, 1, 1, 1, 1]);
    }

    #[test]
    fn a_warp_waits_for_its_line_once() {
        let mut front_end = FrontEnd::new(&parameters());
        let (mut counters, mut wanted, mut waiting) = (SmCounters::default(), Vec::new(), Vec::new());
        let code = (ProgramId(1), 20);
        assert_eq!(
            front_end.fetch(
                9,
                code,
                9,
                Need { cycle: 50, waits_already: false, counters: &mut counters, wanted: &mut wanted }
            ),
            None
        );
        assert_eq!(
            front_end.fetch(
                3,
                code,
                10,
                Need { cycle: 50, waits_already: false, counters: &mut counters, wanted: &mut wanted }
            ),
            None
        );
        // Lines of 8 instructions: the second of three, and the prefetched third. Sub-cores 1 and 3 fetch them once.
        assert_eq!((wanted.len(), front_end.lines_under_way()), (2, 2));
        front_end.line_arrived(wanted[1].0, 400, &mut waiting);
        assert_eq!(waiting, [9, 3]);
        assert_eq!(
            front_end.fetch(
                9,
                code,
                9,
                Need { cycle: 400, waits_already: true, counters: &mut counters, wanted: &mut wanted }
            ),
            None
        );
        front_end.line_arrived(wanted[0].0, 410, &mut waiting);
        assert_eq!(
            front_end.fetch(
                9,
                code,
                9,
                Need { cycle: 410, waits_already: true, counters: &mut counters, wanted: &mut wanted }
            ),
            Some(472)
        );
        assert_eq!((counters.instruction_cache_misses, counters.l0_instruction_misses), (2, 2));
        assert_eq!(counters.instruction_requests, 2);
        // The SM has it for another sub-core, which has not come to it.
        assert_eq!(
            front_end.fetch(
                4,
                code,
                9,
                Need { cycle: 500, waits_already: false, counters: &mut counters, wanted: &mut wanted }
            ),
            Some(562)
        );
        assert_eq!(counters.l0_instruction_misses, 3);
    }

    #[test]
    fn a_constant_is_fetched_once_for_all_sub_cores() {
        let mut front_end = FrontEnd::new(&parameters());
        let (mut counters, mut wanted) = (SmCounters::default(), Vec::new());
        let parameter = constant_address(ProgramId(1), LaunchId(3), (0, 0x160), None);
        assert_eq!(
            front_end.constant(
                1,
                parameter,
                Need { cycle: 10, waits_already: false, counters: &mut counters, wanted: &mut wanted }
            ),
            Some(228)
        );
        assert_eq!(
            front_end.constant(
                2,
                parameter + 8,
                Need { cycle: 300, waits_already: false, counters: &mut counters, wanted: &mut wanted }
            ),
            Some(228),
            "it is there"
        );
        let variable = constant_address(ProgramId(1), LaunchId(3), (3, 0), Some(0x7000_0000));
        assert_eq!(
            front_end.constant(
                1,
                variable,
                Need { cycle: 300, waits_already: false, counters: &mut counters, wanted: &mut wanted }
            ),
            None
        );
        assert_eq!(wanted.len(), 2);
        front_end.line_arrived(wanted[0].0, 500, &mut Vec::new());
        assert_eq!(
            front_end.constant_for_load(
                variable,
                Need { cycle: 510, waits_already: true, counters: &mut counters, wanted: &mut wanted }
            ),
            Some(562)
        );
        assert_eq!((counters.constant_cache_misses, counters.constant_requests), (2, 2));
    }

    #[test]
    fn registers_of_one_bank_hold_the_sub_core() {
        let parameters = parameters();
        let specification = FrontEndSpecification::new(&parameters);
        let mut front_end = FrontEnd::new(&parameters);
        let conflict = Class { bank_reads: BankReads::new([0, 3]), ..class(Pipe::Fp32, LatencyClass::Single, 1) };
        assert_eq!(front_end.issue(&specification, 0, 4, conflict, 100).result, 104);
        let free = [Pipe::Int, Pipe::Memory, Pipe::Fp32].map(|pipe| front_end.free_from(0, pipe as usize));
        assert_eq!(free, [102; 3]);
        assert_eq!(front_end.free_from(1, Pipe::Int as usize), 0);
    }
}
