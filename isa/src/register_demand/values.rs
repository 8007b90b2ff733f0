//! Which registers of the text need none of the machine's.

use super::lines::{Line, is_literal, register_of};
use crate::ptx::ast::{Function, Operand, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::special_register::{SpecialRegister, SpecialRegisterName as S};
use std::collections::BTreeMap;

/// The value of a register of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A register of the machine.
    Own,
    /// The value of another register.
    Same(u32),
    /// A literal, or the address of a variable.
    Literal,
    /// A value in the constant bank: parameters, sizes of the grid.
    Bank,
    /// Another register times a literal, which the sums that read it take in.
    Scaled(u32),
}

/// The registers of a function.
pub(super) struct Values {
    values: Vec<Value>,
    /// Whether anything needs the register.
    needed: Vec<bool>,
    /// Whether nothing needs more than the low half of a register of 64 bits.
    narrow: Vec<bool>,
}

/// How often a register is named, and in which places.
#[derive(Clone, Copy, Default)]
struct Count {
    /// One under a guard counts twice: the old value may stay.
    writes: u32,
    /// In all.
    reads: u32,
    /// Uses as the base of an address.
    addresses: u32,
    /// Uses by 64-bit sums and products with literals, see [`Line::is_scaling`].
    scaled_reads: u32,
    /// Uses by 64-bit sums.
    sums: u32,
}

impl Values {
    pub fn new(function: &Function, lines: &[Line]) -> Self {
        let mut counts = count(function, lines);
        let offsets = offsets(lines, &counts);
        for line in lines.iter().filter(|line| line.to.is_none_or(|to| offsets[to as usize].is_none())) {
            for register in &line.reads {
                let count = &mut counts[*register as usize];
                count.sums += u32::from(line.is_wide_sum());
                count.scaled_reads += u32::from(line.is_wide_sum() || line.is_scaling());
            }
        }
        let values = values(function, lines, &counts, &offsets);
        let needed = needed(lines, &values);
        let narrow = narrow(lines, values.len());
        Values { values, needed, narrow }
    }

    /// The register that one stands for in the end, and its value: never [`Value::Same`].
    pub fn resolve(&self, register: u32) -> (u32, Value) {
        let mut register = register;
        loop {
            match self.values[register as usize] {
                Value::Same(other) => register = other,
                value => return (register, value),
            }
        }
    }

    /// Whether a register needs to be written.
    pub fn is_written(&self, register: u32) -> bool {
        self.needed[register as usize] && self.values[register as usize] == Value::Own
    }

    /// See [`Values::narrow`].
    pub fn is_narrow(&self, register: u32) -> bool {
        self.narrow[register as usize]
    }
}

fn count(function: &Function, lines: &[Line]) -> Vec<Count> {
    let mut counts = vec![Count::default(); function.register_types.len()];
    for line in lines {
        let writes = if line.instruction.guard.is_some() { 2 } else { 1 };
        line.writes.iter().for_each(|register| counts[*register as usize].writes += writes);
        line.addresses.iter().for_each(|register| counts[*register as usize].addresses += 1);
        line.addresses.iter().chain(&line.reads).for_each(|register| counts[*register as usize].reads += 1);
        if let Some(guard) = line.instruction.guard {
            counts[guard.register.index()].reads += 1;
        }
    }
    counts
}

/// The base of each register that is a base plus a literal, and nothing but an address after that: instructions hold the offset.
fn offsets(lines: &[Line], counts: &[Count]) -> Vec<Option<u32>> {
    let once = |register: u32| counts[register as usize].writes == 1;
    let mut is_literal_move = vec![false; counts.len()];
    for line in lines.iter().filter(|line| line.instruction.opcode == O::Mov) {
        if let Some(to) = line.to.filter(|to| once(*to)) {
            is_literal_move[to as usize] = line.instruction.operands.get(1).is_some_and(is_literal);
        }
    }
    let is_known = |operand: &Operand| {
        is_literal(operand) || register_of(operand).is_some_and(|register| is_literal_move[register as usize])
    };
    let mut only_address: Vec<bool> =
        counts.iter().map(|count| count.reads > 0 && count.reads == count.addresses).collect();
    let mut base_uses = vec![0; counts.len()];
    let mut offsets = vec![None; counts.len()];
    // From the last use to the first: sums of sums are found that way.
    for line in lines.iter().rev() {
        let instruction = line.instruction;
        let ([_, first, second], Some(to)) = (&instruction.operands[..], line.to) else { continue };
        let base = match instruction.opcode {
            O::Add | O::Sub if is_known(second) => register_of(first),
            O::Add if is_known(first) => register_of(second),
            _ => None,
        };
        let Some(base) = base.filter(|base| once(*base) && once(to) && only_address[to as usize]) else { continue };
        offsets[to as usize] = Some(base);
        base_uses[base as usize] += 1;
        let count = &counts[base as usize];
        only_address[base as usize] |= count.reads == count.addresses + base_uses[base as usize];
    }
    offsets
}

fn values(function: &Function, lines: &[Line], counts: &[Count], offsets: &[Option<u32>]) -> Vec<Value> {
    let once = |register: u32| counts[register as usize].writes == 1;
    let same = |register: Option<u32>| register.filter(|register| once(*register)).map_or(Value::Own, Value::Same);
    let mut values = vec![Value::Own; counts.len()];
    // Of each special register, the first that it was read into.
    let mut specials: BTreeMap<SpecialRegister, u32> = BTreeMap::new();
    for line in lines {
        let instruction = line.instruction;
        if function.is_entry && line.reads_parameter() {
            line.writes.iter().filter(|to| once(**to)).for_each(|to| values[*to as usize] = Value::Bank);
            continue;
        }
        let Some(to) = line.to.filter(|to| once(*to)) else { continue };
        let source = instruction.operands.get(1);
        let from = source.and_then(register_of);
        let uses = &counts[to as usize];
        values[to as usize] = match instruction.opcode {
            O::Mov if line.bits(0) >= 16 => match source.map(|source| &source.kind) {
                Some(OperandKind::Register(_)) => same(from),
                Some(OperandKind::Special(special)) => match special.name {
                    S::ThreadCount | S::CtaCount => Value::Bank,
                    S::WarpSize => Value::Literal,
                    S::Clock | S::ClockHigh | S::Clock64 => Value::Own,
                    S::GlobalTimer | S::GlobalTimerLow | S::GlobalTimerHigh => Value::Own,
                    _ => match *specials.entry(*special).or_insert(to) {
                        first if first == to => Value::Own,
                        first => Value::Same(first),
                    },
                },
                _ if source.is_some_and(is_literal) => Value::Literal,
                _ => Value::Own,
            },
            // Shared and local addresses are other numbers than the generic ones; global addresses are not.
            O::Cvta if instruction.has(M::To) => same(from),
            O::Cvta if !instruction.has(M::Shared) && !instruction.has(M::Local) => same(from),
            O::Cvt if line.is_integer(0) && line.is_integer(1) => {
                let is_extended = line.bits(0) == 64 && line.bits(1) == 32 && instruction.types[1].is_signed_integer();
                let needs_sign = is_extended && uses.reads != uses.scaled_reads;
                let is_cut = line.bits(0) == 8 && line.bits(1) > 8;
                if needs_sign || is_cut { Value::Own } else { same(from) }
            }
            // Operands have these as modifiers.
            O::Neg | O::Abs if !line.is_integer(0) => same(from),
            O::Add | O::Sub => same(offsets[to as usize]),
            _ if line.is_scaling() && uses.reads > 0 && uses.reads == uses.sums => {
                from.filter(|from| once(*from)).map_or(Value::Own, Value::Scaled)
            }
            _ => Value::Own,
        };
    }
    values
}

/// The registers that something needs in the end.
fn needed(lines: &[Line], values: &[Value]) -> Vec<bool> {
    let mut needed = vec![false; values.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for line in lines.iter().rev() {
            if line.is_pure() && !line.writes.iter().any(|register| needed[*register as usize]) {
                continue;
            }
            let guard = line.instruction.guard.map(|guard| guard.register.0);
            for mut register in line.reads.iter().chain(&line.addresses).copied().chain(guard) {
                loop {
                    changed |= !std::mem::replace(&mut needed[register as usize], true);
                    match values[register as usize] {
                        Value::Same(other) | Value::Scaled(other) => register = other,
                        _ => break,
                    }
                }
            }
        }
    }
    needed
}

/// The registers that need no more than 32 bits.
fn narrow(lines: &[Line], count: usize) -> Vec<bool> {
    let mut narrow = vec![true; count];
    let mut changed = true;
    while changed {
        changed = false;
        for line in lines.iter().rev() {
            let keeps = line.keeps_low_half() && (line.bits(0) <= 32 || line.to.is_some_and(|to| narrow[to as usize]));
            let reads = line.reads.iter().filter(|_| !keeps);
            let addresses = line.addresses.iter().filter(|_| !line.has_short_address());
            for register in reads.chain(addresses) {
                changed |= std::mem::replace(&mut narrow[*register as usize], false);
            }
        }
    }
    narrow
}
