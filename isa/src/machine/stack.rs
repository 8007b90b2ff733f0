//! The local memory that a thread of a kernel needs: the frames of the functions that can be active at once.
//!
//! Figures in files are not reliable (ptxas 12.9 leaves out recursion and calls through pointers, and inner functions), so the stack is
//! added up from the calls in the code.

use super::code::CODE_WINDOW;
use super::link::Linker;
use super::shared::{Part, Parts};
use crate::cubin::Function;
use crate::sass::{self, INSTRUCTION_BYTES, Jump, Opcode, RegisterOperand, Word};
use std::collections::BTreeSet;

/// The bytes that are added where the depth of calls is not known: `cudaLimitStackSize` before a program changes it (CUDA C++ Programming
/// Guide).
const DEFAULT_STACK_BYTES: u32 = 1 << 10;
/// The local memory of a thread is a multiple of this.
const ALIGNMENT: u32 = 16;

/// The local memory of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LocalMemory {
    /// All of it, bytes.
    pub bytes: u32,
    /// The part of it for calls of unknown depth.
    pub open_stack_bytes: u32,
}

impl Parts {
    /// The calls in the words of a program from `first` on.
    pub fn of(words: &[u128], first: usize, functions: &[&Function<'_>], linker: &Linker<'_>) -> Parts {
        let mut parts = Vec::new();
        let mut system_calls = BTreeSet::new();
        for function in functions {
            let first = linker.first_word(function);
            let own = (0, function.stack.frame);
            let inner = function.inner.iter().map(|inner| (inner.offset as usize / 16, inner.stack.frame));
            for (offset, frame) in [own].into_iter().chain(inner) {
                parts.push(Part { first: first + offset, frame: frame.unwrap_or(0), calls: Vec::new() });
            }
            system_calls.extend(function.system_calls.iter().map(|offset| first + *offset as usize / 16));
        }
        parts.sort_by_key(|part| part.first);
        let mut is_open = false;
        let end = first + words.len();
        let ends: Vec<usize> = parts.iter().skip(1).map(|next| next.first).chain([end]).collect();
        for (part, next) in parts.iter_mut().zip(ends) {
            for at in part.first..next.min(end) {
                match callee(Word(words[at - first]), at, linker.architecture()) {
                    Callee::None => {}
                    Callee::Word(word) => part.calls.push(word),
                    Callee::Unknown => is_open |= !system_calls.contains(&at),
                }
            }
            part.calls.sort_unstable();
            part.calls.dedup();
        }
        Parts { parts, is_open }
    }
}

impl LocalMemory {
    /// The stack of a kernel, whose parts are the first, with the functions that it can reach. The program has so many words.
    pub fn of<'p>(entry: &Function<'_>, parts: impl IntoIterator<Item = &'p Parts>, words: usize) -> LocalMemory {
        let mut is_open = entry.stack.frame.is_none();
        let mut all: Vec<Part> = Vec::new();
        for of_some in parts {
            is_open |= of_some.is_open;
            all.extend_from_slice(&of_some.parts);
        }
        let mut parts = all;
        let firsts: Vec<usize> = parts.iter().map(|part| part.first).collect();
        let place = |word: usize| firsts.partition_point(|first| *first <= word).checked_sub(1);
        for part in &mut parts {
            let callees = part.calls.iter().filter(|word| **word < words).filter_map(|word| place(*word));
            let mut callees: Vec<usize> = callees.collect();
            callees.dedup();
            part.calls = callees;
        }
        let deepest = if is_open { None } else { depth(&parts) };
        let said = entry.stack.minimum.max(entry.stack.maximum).unwrap_or(0);
        let all = || parts.iter().fold(0u32, |sum, part| sum.saturating_add(part.frame));
        let frames = deepest.unwrap_or_else(all).max(said);
        let open_stack_bytes = if deepest.is_none() { DEFAULT_STACK_BYTES } else { 0 };
        let bytes = frames.saturating_add(open_stack_bytes);
        LocalMemory { bytes: bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(u32::MAX), open_stack_bytes }
    }
}

/// The function that an instruction calls.
enum Callee {
    None,
    /// The function at this word, or one of the device runtime, which is far behind all words.
    Word(usize),
    /// A function that a register names.
    Unknown,
}

fn callee(word: Word, at: usize, architecture: u32) -> Callee {
    let address = (at * INSTRUCTION_BYTES) as u64;
    let Some(call) = sass::decode_only(Opcode::Call, word, address, architecture) else { return Callee::None };
    let Some(Jump { base, added, is_absolute }) = call.jump() else { return Callee::None };
    if base.is_some_and(|register| register != RegisterOperand::General(sass::ZERO_REGISTER)) {
        return Callee::Unknown;
    }
    let place = if is_absolute { added.wrapping_sub(CODE_WINDOW) } else { added } as i64;
    usize::try_from(place / INSTRUCTION_BYTES as i64).map_or(Callee::Unknown, Callee::Word)
}

/// The largest sum of frames on a way from the first part; `None` where a function can call itself.
fn depth(parts: &[Part]) -> Option<u32> {
    /// Not seen yet, on the way, done.
    #[derive(Clone, Copy)]
    enum State {
        New,
        Open,
        Done(u32),
    }
    let mut states = vec![State::New; parts.len()];
    let mut way = vec![0];
    while let Some(&number) = way.last() {
        let part = parts.get(number)?;
        states[number] = State::Open;
        let mut deepest = 0;
        let mut next = None;
        for &callee in &part.calls {
            match states[callee] {
                State::Done(bytes) => deepest = deepest.max(bytes),
                State::Open => return None,
                State::New => next = Some(callee),
            }
        }
        match next {
            Some(callee) => way.push(callee),
            None => {
                states[number] = State::Done(part.frame.saturating_add(deepest));
                way.pop();
            }
        }
    }
    match states.first() {
        Some(State::Done(bytes)) => Some(*bytes),
        _ => Some(0),
    }
}
