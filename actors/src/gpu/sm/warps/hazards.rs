//! A check of machine code: that no instruction reads a register before its producer's latency has passed, nor writes one that is still
//! to be read or written by an earlier instruction.
//!
//! The compiler counts on the latencies of the GPU when it writes control words. So a hazard in code that runs on the GPU is a latency
//! of ours that is too long, or a result that comes later than the compiler could expect.

use balar_isa::sass::{Instruction, Opcode, RegisterRanges};
use serde::{Deserialize, Serialize};

/// Registers and predicates of a thread and of the uniform datapath, numbered through.
const UNIFORM: u16 = 256;
const PREDICATE: u16 = UNIFORM + 64;
const UNIFORM_PREDICATE: u16 = PREDICATE + 8;

/// A result that is not there yet, or an operand that is not read yet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Outstanding {
    place: u16,
    /// The lanes that it is of.
    lanes: u32,
    /// The cycle from which on it can be read; for operands, written.
    ready: u64,
    /// The same where it guards an instruction.
    ready_to_guard: u64,
    /// Whose it is.
    pc: u32,
    is_operand: bool,
}

/// The pending reads and writes of a warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Hazards {
    outstanding: Vec<Outstanding>,
}

/// The cycles from which on the results and operands of an instruction can be used.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// It issues.
    pub issue: u64,
    /// Its results can be read; `None` where the memory system will say.
    pub result: Option<u64>,
    /// Its predicates can guard instructions.
    pub guard: u64,
    /// Its registers have been read, where it is an access to memory.
    pub operands: Option<u64>,
}

/// A read or write that is too early: `R4, 3 cycles early, of the instruction at` this program counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The access and its register, and how much it is too early.
    pub what: String,
    /// The instruction that has not finished with it.
    pub pc: u32,
}

impl Hazards {
    /// Nothing is under way.
    pub fn clear(&mut self) {
        self.outstanding.clear();
    }

    /// An instruction issues in these lanes.
    ///
    /// # Errors
    ///
    /// The accesses that are too early.
    pub fn issue(&mut self, instruction: &Instruction, pc: u32, lanes: u32, times: &Times) -> Result<(), Hazard> {
        self.outstanding.retain(|other| other.ready.max(other.ready_to_guard) > times.issue);
        let uses = instruction.uses();
        let (guard, _) = instruction.guard();
        let is_control = matches!(
            instruction.opcode(),
            Opcode::Bra | Opcode::Brx | Opcode::Call | Opcode::Ret | Opcode::Exit | Opcode::Bssy | Opcode::Bsync
        );
        let read = places(&uses.reads, 0)
            .chain(places(&uses.uniform_reads, UNIFORM))
            .chain(bits(uses.predicate_reads, PREDICATE))
            .chain(bits(uses.uniform_predicate_reads, UNIFORM_PREDICATE));
        for place in read {
            // The guard is read in all lanes, also in those where it is false.
            let guards = place == PREDICATE + u16::from(guard) && guard < 7;
            for other in self.outstanding.iter().filter(|other| other.place == place && !other.is_operand) {
                let decides = guards || (is_control && place >= PREDICATE);
                let ready = if decides { other.ready_to_guard } else { other.ready };
                if ready > times.issue && other.lanes & lanes != 0 {
                    return Err(hazard("reads", place, ready - times.issue, other));
                }
            }
        }
        let written: Vec<u16> = places(&uses.writes, 0)
            .chain(places(&uses.uniform_writes, UNIFORM))
            .chain(bits(uses.predicate_writes, PREDICATE))
            .chain(bits(uses.uniform_predicate_writes, UNIFORM_PREDICATE))
            .collect();
        let result = times.result.unwrap_or(u64::MAX);
        for &place in &written {
            for other in self.outstanding.iter().filter(|other| other.place == place && other.lanes & lanes != 0) {
                if other.ready > result {
                    return Err(hazard("writes", place, other.ready - result, other));
                }
            }
        }
        let add = |place: u16| Outstanding {
            place,
            lanes,
            ready: result,
            ready_to_guard: times.result.map_or(u64::MAX, |result| result.max(times.guard)),
            pc,
            is_operand: false,
        };
        self.outstanding.extend(written.into_iter().map(add));
        if let Some(ready) = times.operands {
            let add = |place: u16| Outstanding { place, lanes, ready, ready_to_guard: ready, pc, is_operand: true };
            self.outstanding.extend(places(&uses.reads, 0).map(add));
        }
        Ok(())
    }

    /// The results of an instruction that were outstanding come at a cycle.
    pub fn completed(&mut self, pc: u32, ready: u64) {
        for other in self.outstanding.iter_mut().filter(|other| other.pc == pc && other.ready == u64::MAX) {
            (other.ready, other.ready_to_guard) = (ready, ready);
        }
    }
}

fn places(ranges: &RegisterRanges, first: u16) -> impl Iterator<Item = u16> + '_ {
    ranges.iter().flat_map(|range| range.registers()).map(move |register| first + u16::from(register))
}

fn bits(mask: u8, first: u16) -> impl Iterator<Item = u16> {
    (0..8).filter(move |bit| mask >> bit & 1 != 0).map(move |bit| first + bit)
}

fn hazard(verb: &str, place: u16, early: u64, other: &Outstanding) -> Hazard {
    let name = match place {
        UNIFORM_PREDICATE.. => format!("UP{}", place - UNIFORM_PREDICATE),
        PREDICATE.. => format!("P{}", place - PREDICATE),
        UNIFORM.. => format!("UR{}", place - UNIFORM),
        _ => format!("R{place}"),
    };
    let when = if other.ready == u64::MAX {
        "before the answer of memory".to_owned()
    } else {
        format!("{early} cycles early")
    };
    let whose = if other.is_operand { "which is still to be read by" } else { "which is still to be written by" };
    Hazard { what: format!("it {verb} {name} {when}, {whose}"), pc: other.pc }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_isa::sass::{Word, decode};

    /// `LDG.E.SYS R4, [R4]`, `FADD R9, R4, R3`, `IADD3 R3, R1, ...`: words of the vectorAdd in `workloads/`.
    fn instruction(word: u128) -> Instruction {
        decode(Word(word), 0, 70).expect("it is in the tables")
    }

    const LOAD: u128 = 0x000ea800001ee900_0000000004047381;
    const ADD: u128 = 0x004fd00000000000_0000000304097221;

    fn at(issue: u64, result: Option<u64>) -> Times {
        Times { issue, result, guard: issue + 12, operands: None }
    }

    #[test]
    fn results_are_waited_for_in_their_lanes() {
        let mut hazards = Hazards::default();
        let (load, add) = (instruction(LOAD), instruction(ADD));
        hazards.issue(&load, 0, 0xff, &at(10, None)).expect("nothing is under way");
        let early = hazards.clone().issue(&add, 1, 0x80, &at(20, Some(24))).expect_err("R4 is not there");
        assert_eq!(
            (early.what.as_str(), early.pc),
            ("it reads R4 before the answer of memory, which is still to be written by", 0)
        );
        assert_eq!(hazards.clone().issue(&add, 1, 0x100, &at(20, Some(24))), Ok(()), "another lane");
        hazards.completed(0, 30);
        let early = hazards.clone().issue(&add, 1, 1, &at(27, Some(31))).expect_err("three cycles are left");
        assert!(early.what.contains("R4 3 cycles early"), "{}", early.what);
        assert_eq!(hazards.issue(&add, 1, 1, &at(30, Some(34))), Ok(()));
    }

    #[test]
    fn operands_of_accesses_stay_until_they_are_read() {
        let mut hazards = Hazards::default();
        let (load, add) = (instruction(LOAD), instruction(ADD));
        let times = Times { operands: Some(21), ..at(10, Some(30)) };
        hazards.issue(&add, 0, 1, &at(1, Some(5))).expect("nothing is under way");
        hazards.issue(&load, 1, 1, &times).expect("R4 is there");
        // The load writes R4 itself at 30, and a second one would at 29.
        let early = hazards.clone().issue(&load, 2, 1, &at(12, Some(29)));
        assert!(
            early.is_err_and(|hazard| hazard.what.contains("R4 18 cycles early") || hazard.what.contains("writes R4"))
        );
    }
}
