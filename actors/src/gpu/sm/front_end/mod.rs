//! The front end of an SM: code that is fetched, the choice of the warp that issues, and how long instructions take their pipes.
//!
//! **Invariant:** it is told which warps are ready, and tells which of them issue; it changes no warp.

mod instruction_cache;
mod scheduler;

use super::counters::SmCounters;
use super::parameters::{SchedulerPolicy, SmParameters};
use super::warps::WarpSet;
use balar_isa::program::{LatencyClass, Pipe, Timing};
use balar_protocol::cuda::ProgramId;
use instruction_cache::InstructionCache;
pub use scheduler::Choice;
use scheduler::{Policy, SubCore};
use serde::{Deserialize, Serialize};

/// What a topology says of the front end.
#[derive(Clone, Debug)]
pub struct FrontEndSpecification {
    policy: Policy,
    /// By sub-core: its warps.
    members: Vec<WarpSet>,
    latencies: [u32; LatencyClass::COUNT],
    intervals: [u32; Pipe::ALL.len()],
}

/// What an instruction is to the front end: its [`Timing`] without what it depends on.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Unit it issues to.
    pub pipe: Pipe,
    /// When its result can be read.
    pub latency: LatencyClass,
    /// Instructions of the GPU's own that it stands for.
    pub passes: u8,
}

impl Class {
    /// Of an instruction.
    #[inline]
    pub fn of(timing: &Timing) -> Class {
        Class { pipe: timing.pipe, latency: timing.latency, passes: timing.passes.max(1) }
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

/// The state of the front end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FrontEnd {
    sub_cores: Vec<SubCore>,
    cache: InstructionCache,
    /// Warps that wait for a line of code, in the order in which they came to it.
    fetching: Vec<u16>,
    counters: SmCounters,
}

impl FrontEndSpecification {
    /// Of these parameters.
    pub fn new(parameters: &SmParameters) -> FrontEndSpecification {
        let sub_cores = parameters.sub_cores as usize;
        let of =
            |core: usize| (core..parameters.warps as usize).step_by(sub_cores).fold(0, |set, warp| set | 1 << warp);
        FrontEndSpecification {
            policy: Policy { policy: parameters.scheduler, active_warps: parameters.active_warps as usize, sub_cores },
            members: (0..sub_cores).map(of).collect(),
            latencies: parameters.latencies.table(),
            intervals: parameters.initiation_intervals.table(),
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

    /// Cycles of a latency class.
    #[inline]
    pub fn latency(&self, class: LatencyClass) -> u64 {
        u64::from(self.latencies[class as usize])
    }
}

impl FrontEnd {
    /// Without any code.
    pub fn new(parameters: &SmParameters) -> FrontEnd {
        let SmParameters { instruction_cache, instruction_bytes, instruction_prefetch, .. } = parameters;
        FrontEnd {
            sub_cores: (0..parameters.sub_cores as u8).map(SubCore::new).collect(),
            cache: InstructionCache::new(instruction_cache.0, *instruction_bytes, *instruction_prefetch),
            fetching: Vec::new(),
            counters: SmCounters::default(),
        }
    }

    /// The warps of a sub-core whose pipe is taken in `cycle`.
    #[inline]
    pub fn blocked(&mut self, sub_core: usize, wants: &[WarpSet; Pipe::ALL.len()], cycle: u64) -> WarpSet {
        self.sub_cores[sub_core].blocked(wants, cycle)
    }

    /// The warp that a sub-core comes to first among `ready` ones, of which there is at least one.
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
        (free > cycle && specification.policy.policy == SchedulerPolicy::GreedyThenOldest).then_some(free)
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
        let interval = u64::from(specification.intervals[class.pipe as usize]);
        self.sub_cores[sub_core].issue(warp, class.pipe, cycle + interval * passes);
        // The passes of a sequence depend on each other, but for those of tensor cores, which follow in a pipeline; the next
        // instruction follows the last of them.
        let (last_pass, result) = if class.pipe == Pipe::Tensor {
            ((passes - 1) * interval, latency.max(interval * passes))
        } else {
            ((passes - 1) * latency, passes * latency)
        };
        Issued { next: cycle + 1 + last_pass, result: cycle + result, latency }
    }

    /// Instructions of a line of code.
    #[inline]
    pub fn line_length(&self) -> u32 {
        self.cache.line_length()
    }

    /// A warp comes to instruction `pc`, in another line of code than before: gives the first instruction of that line where it is
    /// there. Else the warp waits, and `wanted` gets the lines to request, by number and address. A warp that `waits_already` is no
    /// further miss.
    #[inline(always)]
    pub fn fetch(
        &mut self,
        warp: usize,
        (program, instructions): (ProgramId, usize),
        pc: u32,
        waits_already: bool,
        wanted: &mut Vec<(u32, u64)>,
    ) -> Option<u32> {
        let line = pc / self.cache.line_length();
        let before = wanted.len();
        let present = self.cache.lookup(program, line, instructions, |number, address| wanted.push((number, address)));
        self.counters.instruction_requests += (wanted.len() - before) as u64;
        if !present {
            self.counters.instruction_cache_misses += u64::from(!waits_already);
            self.fetching.push(warp as u16);
        }
        present.then_some(line * self.cache.line_length())
    }

    /// A line of code has arrived: `waiting` gets the warps that wait for code, to look again.
    pub fn code_arrived(&mut self, number: u32, waiting: &mut Vec<u16>) {
        self.cache.arrived(number);
        waiting.append(&mut self.fetching);
    }

    /// Lines of code under way.
    pub fn lines_under_way(&self) -> u32 {
        self.cache.under_way()
    }

    /// What it has counted.
    pub fn counters(&self) -> &SmCounters {
        &self.counters
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

    fn class(pipe: Pipe, latency: LatencyClass, passes: u8) -> Class {
        Class { pipe, latency, passes }
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
        let (mut wanted, mut waiting) = (Vec::new(), Vec::new());
        let code = (ProgramId(1), 20);
        assert_eq!(front_end.fetch(9, code, 9, false, &mut wanted), None);
        assert_eq!(front_end.fetch(3, code, 10, false, &mut wanted), None);
        // Lines of 8 instructions: the second of three, and the prefetched third.
        assert_eq!((wanted.len(), front_end.lines_under_way()), (2, 2));
        front_end.code_arrived(wanted[1].0, &mut waiting);
        assert_eq!(waiting, [9, 3]);
        assert_eq!(front_end.fetch(9, code, 9, true, &mut wanted), None);
        front_end.code_arrived(wanted[0].0, &mut waiting);
        assert_eq!(front_end.fetch(9, code, 9, true, &mut wanted), Some(8));
        let counters = front_end.counters();
        assert_eq!((counters.instruction_cache_misses, counters.instruction_requests), (2, 2));
    }
}
