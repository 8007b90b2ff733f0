//! Loads from constant banks: one by machine code that hits in the constant cache has a latency of its own, another one waits for its lines.
//! Lanes with the same address take no longer than one; each address is a look-up of its own in the SM's constant cache.

use super::counters::Stall;
use super::front_end::{ConstantLoad, Need, constant_address};
use super::profile::Profile;
use super::progress::{Sm, State, Step};
use super::warps::readiness::Ready;
use super::warps::slot::Status;
use balar_isa::execution::{MemoryAccess, Space};
use balar_isa::program::{ConstantLine, LatencyClass, lanes};
use balar_protocol::cuda::LaunchId;

/// Bytes that a bank gives to all lanes at once.
const WORD_BYTES: u64 = 4;

/// The words at which the lanes of an access begin, each once and in order, where `address_of` is the address in its bank.
fn distinct_words(access: &MemoryAccess, address_of: impl Fn(u64) -> u64) -> Vec<u64> {
    let mut words: Vec<u64> = lanes(access.mask).map(|lane| address_of(access.addresses[lane]) / WORD_BYTES).collect();
    words.sort_unstable();
    words.dedup();
    words
}

impl<P: Profile> Sm<P> {
    /// Times the last step's read of constants or parameters, which no lane may make: it does not go through the memory pipe.
    pub(super) fn access_constants(&mut self, warp: usize, pc: u32, is_empty: bool, step: &mut Step) {
        let cycle = step.now.cycle;
        if is_empty {
            self.no_results(warp, pc, cycle);
        } else if self.state.warps.context(warp).program().is_machine_code() {
            self.load_constant(warp, pc, step);
        } else {
            let ready = self.load_constant_operand(cycle);
            self.set_results(warp, pc, Ready::at(ready, Stall::ShortScoreboard));
        }
    }

    /// Times a load from a constant bank that the last step made.
    fn load_constant(&mut self, warp: usize, pc: u32, step: &mut Step) {
        let access = &self.execution.access;
        let (slot, context, cta) = self.state.warps.all_of(warp);
        let launch = cta.launch.as_ref().map_or(LaunchId(0), |launch| launch.id);
        let words = distinct_words(access, |address| match access.space {
            Space::Parameter => {
                let offset = (address as u32).wrapping_add(context.program().parameters_at());
                constant_address(slot.program_id, launch, (0, offset), None)
            }
            _ => address,
        });
        let generation = slot.generation;
        let line = u64::from(ConstantLine::BYTES);
        let mut lines: Vec<u64> = words.iter().map(|word| word * WORD_BYTES / line * line).collect();
        lines.dedup();
        let waits = self.look_up_constants(words.len(), step.now.cycle);
        let latency = self.specification.front_end.latency(LatencyClass::ConstantLoad) + waits;
        let load = ConstantLoad { warp: warp as u16, generation, pc, lines, latency };
        let ready = match self.lines_of(&load, false, step) {
            Some(ready) => {
                let (_, _, readiness) = self.state.warps.context(warp).parts();
                Ready::at(readiness.in_order(ready), Stall::ShortScoreboard)
            }
            None => {
                self.state.constant_loads.push(load);
                Ready::PENDING
            }
        };
        self.set_results(warp, pc, ready);
    }

    /// The cycle in which the result of a load by PTX can be read. Lanes with one address get it as an operand, as in the machine code that
    /// the PTX stands for; several addresses go through the SM's constant cache, where all lines are taken to be.
    fn load_constant_operand(&mut self, cycle: u64) -> u64 {
        let access = &self.execution.access;
        let operand = cycle + self.specification.front_end.latency(LatencyClass::Constant);
        let mut addresses = lanes(access.mask).map(|lane| access.addresses[lane]);
        let first = addresses.next();
        // Most reads have one address, and there is nothing to sort.
        if addresses.all(|address| Some(address) == first) {
            return operand;
        }
        match distinct_words(access, |address| address).len() {
            1 => operand,
            words => operand + self.look_up_constants(words, cycle),
        }
    }

    /// Gives a load that issues in `cycle` as many look-ups of the SM's constant cache as its lanes have addresses. Gives the cycles that the
    /// load waits for the last of them.
    fn look_up_constants(&mut self, addresses: usize, cycle: u64) -> u64 {
        let interval = self.specification.constant_interval;
        let first = cycle.max(self.state.constant_cache_free);
        self.state.constant_cache_free = first + addresses as u64 * interval;
        self.state.constant_cache_free - interval - cycle
    }

    /// When the result of a load can be read, `None` where a line is not there; missing lines are requested.
    fn lines_of(&mut self, load: &ConstantLoad, waits_already: bool, step: &mut Step) -> Option<u64> {
        let cycle = step.now.cycle;
        let State { warps, front_end, pipe, launch, .. } = &mut self.state;
        let (_, _, _, counters, _) = warps.parts_of(usize::from(load.warp));
        let wanted = &mut self.scratch.wanted_lines;
        let mut latest = Some(cycle);
        for &line in &load.lines {
            // Those behind a missing one are requested as well.
            let from = front_end
                .constant_for_load(line, Need { cycle, waits_already, counters: &mut *counters, wanted: &mut *wanted });
            latest = latest.zip(from).map(|(latest, from)| latest.max(from));
        }
        for (number, address) in wanted.drain(..) {
            pipe.request_code((number, address), *launch, cycle, &self.wiring.ports, step.out);
        }
        latest.map(|from| from + load.latency)
    }

    /// A line has arrived: loads that wait for no other one have their results.
    pub(super) fn continue_constant_loads(&mut self, step: &mut Step) {
        for load in std::mem::take(&mut self.state.constant_loads) {
            let warp = usize::from(load.warp);
            if !self.state.warps.is_current(warp, load.generation) {
                continue;
            }
            match self.lines_of(&load, true, step) {
                None => self.state.constant_loads.push(load),
                Some(ready) => {
                    self.results_come(warp, load.pc, Ready::at(ready, Stall::ShortScoreboard));
                    if self.state.warps.warp(warp).status == Status::Memory {
                        self.resume(warp, step.now.cycle, step);
                    }
                }
            }
        }
    }
}
