//! The rule that makes an instruction ready: an exchangeable rule, one for each warp.
//!
//! PTX has a scoreboard of registers. Machine code carries control words, which count cycles and name scoreboards of their own, six a
//! warp: an instruction takes one until its result is written or its operands are read, and others wait until it is free.

use crate::gpu::sm::counters::Stall;
use balar_isa::program::{Program, SCOREBOARDS, Timing};
use serde::{Deserialize, Serialize};

/// From when on, with why not before in the low bits, so that the later of two is the larger number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ready(u64);

impl Ready {
    /// Not known before an answer of the memory system arrives.
    pub const PENDING: Ready = Ready((u64::MAX >> 2) << 2 | Stall::LongScoreboard as u64);

    /// From `cycle` on; `stall` (one of the first three reasons) is charged to a warp that waits for it.
    #[inline]
    pub fn at(cycle: u64, stall: Stall) -> Ready {
        debug_assert!((stall as u64) < 3);
        Ready(cycle << 2 | stall as u64)
    }

    /// The cycle.
    #[inline]
    pub fn cycle(self) -> u64 {
        self.0 >> 2
    }

    /// The reason.
    #[inline]
    pub fn stall(self) -> Stall {
        match self.0 & 3 {
            0 => Stall::Wait,
            1 => Stall::LongScoreboard,
            _ => Stall::ShortScoreboard,
        }
    }
}

/// The rule that a warp's program goes by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Readiness {
    /// When each register and predicate can be read and written.
    Scoreboard(Vec<Ready>),
    /// When each of the scoreboards that control words name is free, and from which cycle on the results of the shared-memory accesses
    /// and exchanges so far can be read.
    ControlWords([Scoreboard; SCOREBOARDS], u64),
}

/// A scoreboard that control words name.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Scoreboard {
    /// When those that hold it and whose time is known have let go of it.
    free: Ready,
    /// Those that hold it until an answer of the memory system comes.
    pending: u16,
}

impl Scoreboard {
    /// When at most so many hold it, that let go of it in order: those whose time is known are the first.
    fn at_most(&self, most: u16) -> Ready {
        if self.pending > most { Ready::PENDING } else { self.free }
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Readiness::Scoreboard(Vec::new())
    }
}

impl Readiness {
    /// A warp begins to run this program.
    pub fn start(&mut self, program: &Program) {
        if program.is_machine_code() {
            *self = Readiness::ControlWords(Default::default(), 0);
            return;
        }
        if !matches!(self, Readiness::Scoreboard(_)) {
            *self = Readiness::default();
        }
        if let Readiness::Scoreboard(entries) = self {
            entries.clear();
            entries.resize(program.scoreboard_size(), Ready::default());
        }
    }

    /// When an instruction can issue; [`Ready::PENDING`] where that follows from an answer that is not there yet.
    #[inline(always)]
    pub fn issue_cycle(&self, program: &Program, timing: &Timing) -> Ready {
        let entries = match self {
            Readiness::Scoreboard(entries) => entries,
            Readiness::ControlWords(scoreboards, _) => {
                let free = scoreboards_free(scoreboards, timing.control.wait_mask);
                let counted = timing.control.counted_wait.get();
                return counted
                    .map_or(free, |(number, most)| free.max(scoreboards[number % SCOREBOARDS].at_most(most)));
            }
        };
        let dependencies = &timing.dependencies;
        let latest = |ready: Ready, &register: &u16| ready.max(entries[usize::from(register)]);
        let ready = dependencies.waits.iter().fold(Ready::default(), latest);
        if dependencies.is_complete() {
            return ready;
        }
        program.further_waits(dependencies).iter().fold(ready, latest)
    }

    /// An instruction has issued: its results can be read from `results` on, which may be [`Ready::PENDING`].
    #[inline]
    pub fn issued(&mut self, program: &Program, timing: &Timing, results: Ready) {
        let entries = match self {
            Readiness::Scoreboard(entries) => entries,
            Readiness::ControlWords(scoreboards, _) => {
                for scoreboard in held(scoreboards, timing.control.write_barrier) {
                    if results == Ready::PENDING {
                        scoreboard.pending += 1;
                    } else {
                        scoreboard.free = scoreboard.free.max(results);
                    }
                }
                return;
            }
        };
        let dependencies = &timing.dependencies;
        for &register in &dependencies.writes {
            entries[usize::from(register)] = results;
        }
        if !dependencies.is_complete() {
            for &register in program.further_writes(dependencies) {
                entries[usize::from(register)] = results;
            }
        }
    }

    /// A plain instruction has issued: its results can be read from a cycle on, and its operands are read in another, where it is one
    /// whose operands the memory pipe reads. `LDC` from bank 2 is both.
    #[inline]
    pub fn plain_issued(&mut self, program: &Program, timing: &Timing, results: u64, operands: u64) {
        self.issued(program, timing, Ready::at(results, Stall::Wait));
        if timing.control.read_barrier != 0 && timing.pipe.is_memory() {
            self.operands_read(timing, Ready::at(operands, Stall::ShortScoreboard));
        }
    }

    /// A pending result of an instruction has come: it can be read from `results` on.
    #[inline]
    pub fn completed(&mut self, program: &Program, timing: &Timing, results: Ready) {
        if let Readiness::ControlWords(scoreboards, _) = self {
            for scoreboard in held(scoreboards, timing.control.write_barrier) {
                scoreboard.pending = scoreboard.pending.saturating_sub(1);
                scoreboard.free = scoreboard.free.max(results);
            }
            return;
        }
        self.issued(program, timing, results);
    }

    /// Holds scoreboards until [`Self::give_scoreboards`].
    pub fn take_scoreboards(&mut self, mask: u8) {
        if let Readiness::ControlWords(scoreboards, _) = self {
            held(scoreboards, mask).for_each(|scoreboard| scoreboard.pending += 1);
        }
    }

    /// What held these scoreboards has come, and can be read from `ready` on.
    pub fn give_scoreboards(&mut self, mask: u8, ready: Ready) {
        if let Readiness::ControlWords(scoreboards, _) = self {
            for scoreboard in held(scoreboards, mask) {
                scoreboard.pending = scoreboard.pending.saturating_sub(1);
                scoreboard.free = scoreboard.free.max(ready);
            }
        }
    }

    /// When the result of a shared-memory access or an exchange between lanes, which can be read from `ready` on, can be read at the soonest:
    /// they come in order, on which machine code relies, in that it waits for the last alone.
    #[inline]
    pub fn in_order(&mut self, ready: u64) -> u64 {
        match self {
            Readiness::Scoreboard(_) => ready,
            Readiness::ControlWords(_, last) => {
                *last = ready.max(*last);
                *last
            }
        }
    }

    /// The operands of an instruction that has issued are read in a cycle: their registers can be written again.
    #[inline]
    pub fn operands_read(&mut self, timing: &Timing, read: Ready) {
        if let Readiness::ControlWords(scoreboards, _) = self {
            for scoreboard in held(scoreboards, timing.control.read_barrier) {
                scoreboard.free = scoreboard.free.max(read);
            }
        }
    }
}

/// The scoreboards of a mask.
#[inline]
fn held(scoreboards: &mut [Scoreboard; SCOREBOARDS], mask: u8) -> impl Iterator<Item = &mut Scoreboard> {
    scoreboards.iter_mut().enumerate().filter(move |(number, _)| mask >> number & 1 != 0).map(|(_, held)| held)
}

/// When all scoreboards of a mask are free.
#[inline]
fn scoreboards_free(scoreboards: &[Scoreboard; SCOREBOARDS], mask: u8) -> Ready {
    let mut ready = Ready::default();
    let mut rest = mask;
    while rest != 0 {
        let scoreboard = &scoreboards[rest.trailing_zeros() as usize % SCOREBOARDS];
        rest &= rest - 1;
        if scoreboard.pending != 0 {
            return Ready::PENDING;
        }
        ready = ready.max(scoreboard.free);
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::sm::warps::tests::program;
    use balar_isa::machine::{MachineCode, lower};

    #[test]
    fn the_later_of_two_is_the_one_waited_for() {
        let [soon, late] = [Ready::at(7, Stall::ShortScoreboard), Ready::at(8, Stall::Wait)];
        assert_eq!(soon.max(late), late);
        assert_eq!((soon.cycle(), soon.stall()), (7, Stall::ShortScoreboard));
        assert!(Ready::PENDING > Ready::at(1 << 60, Stall::LongScoreboard));
    }

    #[test]
    fn an_indexed_read_of_constants_holds_its_operands_until_they_are_read() {
        // LDC R5, c[0x2][R0], which takes scoreboards 0 for R5 and 1 for R0; MOV R0, R2, which waits for scoreboard 1; EXIT.
        let words = vec![
            0x0002220000000800_0080000000057b82,
            0x002fe40000000f00_0000000200007202,
            0x000fea0003800000_000000000000794d,
        ];
        let code = MachineCode { name: "k".to_owned(), architecture: 75, words, ..MachineCode::default() };
        let program = lower(&code).expect("the words are instructions");
        let mut rule = Readiness::default();
        rule.start(&program);
        let load = program.timing(0);
        assert!(load.is_plain, "it asks nothing of memory");
        rule.plain_issued(&program, load, 30, 21);
        assert_eq!(rule.issue_cycle(&program, program.timing(1)), Ready::at(21, Stall::ShortScoreboard));
    }

    #[test]
    fn a_counted_wait_lets_the_last_ones_hold_the_scoreboard() {
        // LDC R5, c[0x2][R0], which takes scoreboard 0; DEPBAR.LE SB0, 0x1; EXIT.
        let words = vec![
            0x0002220000000800_0080000000057b82,
            0x000fc80000000000_000080400000791a,
            0x000fea0003800000_000000000000794d,
        ];
        let code = MachineCode { name: "k".to_owned(), architecture: 75, words, ..MachineCode::default() };
        let program = lower(&code).expect("the words are instructions");
        let mut rule = Readiness::default();
        rule.start(&program);
        let (load, wait) = (program.timing(0), program.timing(1));
        rule.issued(&program, load, Ready::PENDING);
        assert_eq!(rule.issue_cycle(&program, wait), Ready::default(), "one may hold it");
        rule.issued(&program, load, Ready::PENDING);
        assert_eq!(rule.issue_cycle(&program, wait), Ready::PENDING);
        let first = Ready::at(40, Stall::LongScoreboard);
        rule.completed(&program, load, first);
        assert_eq!(rule.issue_cycle(&program, wait), first);
    }

    #[test]
    fn an_instruction_waits_for_what_it_reads() {
        // 0: mov %r1, 1; 1: add %r2, %r1, 1; 2: mov %r3, 2; 3: add %r3, %r2, %r1.
        let program = program("mov.u32 %r1, 1; add.u32 %r2, %r1, 1; mov.u32 %r3, 2; add.u32 %r3, %r2, %r1;");
        let mut rule = Readiness::default();
        rule.start(&program);
        let timing = |pc| program.timing(pc);
        rule.issued(&program, timing(0), Ready::at(10, Stall::Wait));
        assert_eq!(rule.issue_cycle(&program, timing(1)), Ready::at(10, Stall::Wait));
        assert_eq!(rule.issue_cycle(&program, timing(2)), Ready::default());
        rule.issued(&program, timing(1), Ready::PENDING);
        assert_eq!(rule.issue_cycle(&program, timing(3)), Ready::PENDING);
        rule.completed(&program, timing(1), Ready::at(50, Stall::LongScoreboard));
        assert_eq!(rule.issue_cycle(&program, timing(3)), Ready::at(50, Stall::LongScoreboard));
    }
}
