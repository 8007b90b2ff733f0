//! Which registers hold something that is still needed, at each instruction of a function: a liveness over its control flow.
//!
//! Functions that lie in the same code are followed exactly: live before a call are the registers that the callee reads, and the registers
//! that are live behind the call unless the callee writes them. Calls that leave the code are taken to follow the calling convention.

use super::instruction::Instruction;
use super::opcode::Opcode;
use super::uses::{RegisterRange, Uses};
use super::word::{INSTRUCTION_BYTES, TRUE_PREDICATE};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{BitAnd, BitOr, Not};

/// Registers and predicates of a thread and of its warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet {
    /// General registers, a bit each.
    pub general: [u64; 4],
    /// Uniform registers.
    pub uniform: u64,
    /// Predicates.
    pub predicates: u8,
    /// Uniform predicates.
    pub uniform_predicates: u8,
}

impl RegisterSet {
    /// All of them.
    const ALL: RegisterSet =
        RegisterSet { general: [u64::MAX; 4], uniform: u64::MAX, predicates: 0x7f, uniform_predicates: 0x7f };

    /// The registers that an instruction reads.
    fn read(uses: &Uses) -> RegisterSet {
        RegisterSet {
            general: general(&uses.reads),
            uniform: general(&uses.uniform_reads)[0],
            predicates: uses.predicate_reads,
            uniform_predicates: uses.uniform_predicate_reads,
        }
    }

    /// The registers that an instruction writes.
    fn written(uses: &Uses) -> RegisterSet {
        RegisterSet {
            general: general(&uses.writes),
            uniform: general(&uses.uniform_writes)[0],
            predicates: uses.predicate_writes,
            uniform_predicates: uses.uniform_predicate_writes,
        }
    }

    /// How many general registers are in it.
    pub fn general_count(&self) -> u32 {
        self.general.iter().map(|part| part.count_ones()).sum()
    }

    /// The general registers that are in it.
    pub fn general_registers(&self) -> impl Iterator<Item = u8> {
        let general = self.general;
        (0..=u8::MAX).filter(move |&register| (general[usize::from(register / 64)] >> (register % 64)) & 1 != 0)
    }
}

impl RegisterSet {
    /// Is a general register in it?
    pub fn has_register(&self, number: u8) -> bool {
        self.general[usize::from(number / 64)] >> (number % 64) & 1 != 0
    }

    /// Is a uniform register in it?
    pub fn has_uniform(&self, number: u8) -> bool {
        self.uniform >> (number % 64) & 1 != 0
    }
}

const NONE: RegisterSet = RegisterSet { general: [0; 4], uniform: 0, predicates: 0, uniform_predicates: 0 };
/// The stack pointer, R1, which stays in use until the end.
const STACK_POINTER: RegisterSet = RegisterSet { general: [1 << 1, 0, 0, 0], ..NONE };
/// Where the calling convention has arguments and results: R4 to R15.
const ARGUMENTS: RegisterSet = RegisterSet { general: [0xfff0, 0, 0, 0], ..NONE };
/// The registers that a function leaves as they are: R2, R16 to R31, and from there on the upper four of each eight.
const PRESERVED: RegisterSet =
    RegisterSet { general: [0xf0f0_f0f0_ffff_0004, UPPER_FOURS, UPPER_FOURS, UPPER_FOURS], ..NONE };
const UPPER_FOURS: u64 = 0xf0f0_f0f0_f0f0_f0f0;

/// The bits of ranges.
fn general(ranges: &[RegisterRange]) -> [u64; 4] {
    let mut bits = [0; 4];
    for register in ranges.iter().flat_map(|range| range.registers()) {
        bits[usize::from(register / 64)] |= 1 << (register % 64);
    }
    bits
}

impl BitOr for RegisterSet {
    type Output = RegisterSet;

    fn bitor(self, other: RegisterSet) -> RegisterSet {
        RegisterSet {
            general: std::array::from_fn(|part| self.general[part] | other.general[part]),
            uniform: self.uniform | other.uniform,
            predicates: self.predicates | other.predicates,
            uniform_predicates: self.uniform_predicates | other.uniform_predicates,
        }
    }
}

impl BitAnd for RegisterSet {
    type Output = RegisterSet;

    fn bitand(self, other: RegisterSet) -> RegisterSet {
        RegisterSet {
            general: std::array::from_fn(|part| self.general[part] & other.general[part]),
            uniform: self.uniform & other.uniform,
            predicates: self.predicates & other.predicates,
            uniform_predicates: self.uniform_predicates & other.uniform_predicates,
        }
    }
}

impl Not for RegisterSet {
    type Output = RegisterSet;

    fn not(self) -> RegisterSet {
        RegisterSet {
            general: self.general.map(|part| !part),
            uniform: !self.uniform,
            predicates: !self.predicates,
            uniform_predicates: !self.uniform_predicates,
        }
    }
}

/// The live registers at an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Before it.
    pub before: RegisterSet,
    /// While it executes: the registers that are live before it, and the registers that it writes, needed or not.
    pub during: RegisterSet,
}

/// The live registers at each instruction of a function, and of the functions behind it in its section, from the section's beginning on.
/// `indirect` has the targets of indirect branches by the addresses of these; others are taken for returns.
pub fn live(code: &[Instruction], indirect: &BTreeMap<u64, Vec<u64>>) -> Vec<Live> {
    let flow = Flow::new(code, indirect);
    let mut states = vec![State::default(); code.len()];
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for node in (0..code.len()).rev() {
            let state = flow.before(node, &states);
            has_changed |= state != states[node];
            states[node] = state;
        }
    }
    let live = |(node, state): (&Node, &State)| Live { before: state.live, during: state.live | node.written };
    flow.nodes.iter().zip(&states).map(live).collect()
}

/// Before an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    /// The registers that are read from here to the function's return.
    read: RegisterSet,
    /// These, and the registers that reach the return as they are.
    kept: RegisterSet,
    /// The live registers, the function's callers considered.
    live: RegisterSet,
}

/// Where an instruction leads beside the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Nowhere, or to other instructions of its function.
    Within(Vec<usize>),
    /// To a function of the same code, and back.
    Call(usize),
    /// To one that is not known, with these arguments, and back.
    CallAway(RegisterSet),
    /// Back, behind these calls; where there are none, to a caller that is not known.
    Return(Vec<usize>),
    /// To the end of the thread.
    Exit,
}

/// An instruction.
#[derive(Clone, Debug)]
struct Node {
    read: RegisterSet,
    written: RegisterSet,
    /// Whether it is always executed.
    is_unconditional: bool,
    step: Step,
    /// Whether the next one may follow: always so behind calls.
    falls_through: bool,
}

/// The instructions of a function with their ways.
struct Flow {
    nodes: Vec<Node>,
}

impl Flow {
    fn new(code: &[Instruction], indirect: &BTreeMap<u64, Vec<u64>>) -> Flow {
        let nodes = (0..code.len()).map(|index| Node::new(code, index, indirect)).collect();
        let mut flow = Flow { nodes };
        flow.connect_returns();
        flow
    }

    /// Says of each return which calls it may come back from.
    fn connect_returns(&mut self) {
        let mut calls: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if let Step::Call(callee) = node.step {
                calls.entry(callee).or_default().push(index);
            }
        }
        for (callee, callers) in calls {
            for index in self.body(callee) {
                if let Step::Return(known) = &mut self.nodes[index].step {
                    known.extend(&callers);
                }
            }
        }
    }

    /// The instructions of the function that begins here.
    fn body(&self, entry: usize) -> BTreeSet<usize> {
        let (mut found, mut open) = (BTreeSet::new(), vec![entry]);
        while let Some(index) = open.pop() {
            let Some(node) = self.nodes.get(index).filter(|_| found.insert(index)) else { continue };
            if let Step::Within(targets) = &node.step {
                open.extend(targets);
            }
            if node.falls_through {
                open.push(index + 1);
            }
        }
        found.retain(|&index| index < self.nodes.len());
        found
    }

    /// The state before an instruction, from those before others.
    fn before(&self, index: usize, states: &[State]) -> State {
        let at = |index: usize| states.get(index).copied().unwrap_or_default();
        let node = &self.nodes[index];
        let next = if node.falls_through { at(index + 1) } else { State::default() };
        let after = match &node.step {
            Step::Within(targets) => targets.iter().fold(next, |state, &target| state.or(at(target))),
            Step::Call(callee) => {
                let callee = at(*callee);
                next.and(callee.kept).or(State::all(callee.read))
            }
            Step::CallAway(arguments) => next.and(PRESERVED).or(State::all(*arguments | STACK_POINTER)),
            Step::Return(calls) => {
                let needed = match &calls[..] {
                    [] => ARGUMENTS | PRESERVED | STACK_POINTER,
                    calls => calls.iter().fold(NONE, |live, call| live | at(call + 1).live),
                };
                State { read: NONE, kept: RegisterSet::ALL, live: needed }.or(next)
            }
            Step::Exit => State::all(STACK_POINTER).or(next),
        };
        // A call that is not made leaves everything.
        let is_call = matches!(node.step, Step::Call(_) | Step::CallAway(_));
        let after = if is_call && !node.is_unconditional { after.or(next) } else { after };
        let after = if node.is_unconditional { after.and(!node.written) } else { after };
        after.or(State::all(node.read))
    }
}

impl State {
    /// The same in all respects.
    fn all(set: RegisterSet) -> State {
        State { read: set, kept: set, live: set }
    }

    fn or(self, other: State) -> State {
        State { read: self.read | other.read, kept: self.kept | other.kept, live: self.live | other.live }
    }

    fn and(self, set: RegisterSet) -> State {
        State { read: self.read & set, kept: self.kept & set, live: self.live & set }
    }
}

impl Node {
    fn new(code: &[Instruction], index: usize, indirect: &BTreeMap<u64, Vec<u64>>) -> Node {
        let instruction = &code[index];
        let uses = instruction.uses();
        let is_unconditional = instruction.guard() == (TRUE_PREDICATE, false) && !instruction.has_condition();
        let to_index = |address: u64| {
            let index = usize::try_from(address.checked_sub(code[0].address())?).ok()? / INSTRUCTION_BYTES;
            (index < code.len()).then_some(index)
        };
        let target = instruction.target().and_then(to_index);
        let step = match instruction.opcode() {
            // The end of the code.
            Opcode::Bra if target == Some(index) => Step::Exit,
            Opcode::Bra => Step::Within(target.into_iter().collect()),
            Opcode::Brx | Opcode::Jmx | Opcode::Brxu | Opcode::Jmxu => match indirect.get(&instruction.address()) {
                Some(targets) => Step::Within(targets.iter().filter_map(|&target| to_index(target)).collect()),
                None => Step::Return(Vec::new()),
            },
            Opcode::Call => match target {
                // One that the linker has yet to write leads to the next instruction.
                Some(callee) if instruction.jump().is_some_and(|jump| jump.base.is_none()) && callee != index + 1 => {
                    Step::Call(callee)
                }
                _ => Step::CallAway(arguments(&code[..index])),
            },
            Opcode::Ret => Step::Return(Vec::new()),
            Opcode::Exit => Step::Exit,
            _ => Step::Within(Vec::new()),
        };
        let is_jump = matches!(
            instruction.opcode(),
            Opcode::Bra | Opcode::Brx | Opcode::Jmx | Opcode::Brxu | Opcode::Jmxu | Opcode::Ret | Opcode::Exit
        );
        Node {
            read: RegisterSet::read(&uses),
            written: RegisterSet::written(&uses),
            is_unconditional,
            step,
            falls_through: !(is_jump && is_unconditional),
        }
    }
}

/// The arguments of a call that leaves the code: registers of the convention that are written since the last jump or call before it.
fn arguments(before: &[Instruction]) -> RegisterSet {
    let block = before.iter().rev().take_while(|instruction| !instruction.opcode().is_jump());
    block.fold(NONE, |written, instruction| written | RegisterSet::written(&instruction.uses())) & ARGUMENTS
}
