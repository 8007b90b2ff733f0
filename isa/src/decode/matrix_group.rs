//! Products of matrices by groups of four warps: `wgmma`.

use super::matrix::element_of;
use super::{Decoded, Decoder, OperandList, Slot};
use crate::liveness::Width;
use crate::matrix::Element;
use crate::matrix_group::{GroupForm, MOST_COLUMNS};
use crate::operation::Kind;
use crate::program::timing::{CountClass, GROUP_PRODUCT, LatencyClass, Pipe};
use crate::ptx::ast::{Instruction, Operand, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::types::ScalarType as T;
use crate::ptx::{PtxErrorKind, error::RawError};

/// The target that has these instructions (PTX ISA: of Hopper alone, and with what is specific to it).
const TARGET: &str = "sm_90a";
/// Bookkeeping that issues like a branch, and waits for no pipe.
const BOOKKEEPING: super::timing::Cost = (Pipe::Branch, LatencyClass::Branch, CountClass::Other, 1);

/// Whether products of this type of A have so many columns (PTX ISA, table of shapes of `wgmma`).
fn has_columns(a: Element, columns: u32) -> bool {
    let fits = match a {
        Element::S8 | Element::U8 | Element::Bits => columns.is_multiple_of(16) || matches!(columns, 8 | 24),
        _ => columns.is_multiple_of(8),
    };
    fits && (8..=MOST_COLUMNS).contains(&columns)
}

/// Whether D may be of this type.
fn may_accumulate(a: Element, d: Element) -> bool {
    match a {
        Element::F16 | Element::E4m3 | Element::E5m2 => matches!(d, Element::F16 | Element::F32),
        Element::Bf16 | Element::Tf32 => d == Element::F32,
        Element::S8 | Element::U8 | Element::Bits => d == Element::S32,
        _ => false,
    }
}

fn alike(a: Element, b: Element) -> bool {
    let is_byte = |element: Element| matches!(element, Element::S8 | Element::U8);
    let is_byte_float = |element: Element| matches!(element, Element::E4m3 | Element::E5m2);
    a == b || is_byte(a) && is_byte(b) || is_byte_float(a) && is_byte_float(b)
}

impl Decoder<'_> {
    /// `wgmma`; false where the form is not supported.
    pub(super) fn matrix_group(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if !self.module.targets.iter().any(|target| **target == *TARGET) {
            let message = format!("`wgmma` needs `.target {TARGET}`");
            return Err(RawError::new(PtxErrorKind::UnknownInstruction, instruction.span, message));
        }
        if !instruction.has(M::Sync) || !instruction.has(M::Aligned) {
            return Ok(false);
        }
        let (kind, groups) = match () {
            () if instruction.has(M::MmaAsync) => return self.group_product(instruction),
            () if instruction.has(M::CommitGroup) => (Kind::ProductCommit, 0),
            () if instruction.has(M::WaitGroup) => {
                let operand = self.operand(instruction, 0)?;
                let OperandKind::Integer(groups) = operand.kind else {
                    return Err(self.bad(operand, "a number of groups is expected here"));
                };
                (Kind::ProductWait, u32::try_from(groups).unwrap_or(u32::MAX))
            }
            // The fence before products: registers are in order, and products begin when all four warps have come to them.
            () => (Kind::ProductWait, u32::MAX),
        };
        self.start(instruction.span, BOOKKEEPING);
        self.last().instruction.kind = kind;
        self.last().instruction.immediate = groups;
        Ok(true)
    }

    /// `wgmma.mma_async`: D, A, B, of a sparse A its metadata and their lanes, whether the accumulator counts; then, by the types, the factors of A and B, 1 or -1, and for matrices of
    /// 16 bits whether they are transposed, A where it is in shared memory.
    fn group_product(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let shape = instruction.modifiers.iter().find_map(|modifier| modifier.group_shape());
        let elements: Option<Vec<Element>> = instruction.types.iter().map(|name| element_of(*name)).collect();
        let (Some([columns, depth]), Some(&[d, a, b])) = (shape, elements.as_deref()) else { return Ok(false) };
        let is_of_bits = a == Element::Bits;
        let counts_conjunctions = instruction.has(M::And) && instruction.has(M::Popc);
        let names_operation = instruction.has(M::And) || instruction.has(M::Popc);
        let saturates = instruction.has(M::Satfinite);
        let may_saturate = matches!(a, Element::S8 | Element::U8);
        let is_sparse = instruction.has(M::Sp);
        if is_sparse && is_of_bits
            || !has_columns(a, columns)
            || !alike(a, b)
            || !may_accumulate(a, d)
            || is_of_bits != counts_conjunctions
            || is_of_bits != names_operation
            || saturates && !may_saturate
        {
            return Ok(false);
        }
        let a_operand = self.operand(instruction, 1)?;
        let a_in_registers = matches!(a_operand.kind, OperandKind::Vector(_));
        let factors = if a.is_integer() { 0 } else { 2 };
        let transpositions = match a {
            Element::F16 | Element::Bf16 => 2 - usize::from(a_in_registers),
            _ => 0,
        };
        // A sparse A has its metadata, and which lanes have them, behind B.
        let accumulates = if is_sparse { 5 } else { 3 };
        let first_factor = accumulates + 1;
        let expected = first_factor + factors + transpositions;
        if instruction.operands.len() != expected {
            let message = format!("`wgmma.mma_async` of these types has {expected} operands here");
            return Err(RawError::new(PtxErrorKind::OperandCount, instruction.span, message));
        }
        let mut negates = [false; 2];
        for (negates, operand) in negates.iter_mut().zip(&instruction.operands[first_factor..][..factors]) {
            *negates = match operand.kind {
                OperandKind::Integer(1) => false,
                OperandKind::Integer(factor) if factor as i64 == -1 => true,
                _ => return Err(self.bad(operand, "a factor is 1 or -1")),
            };
        }
        let mut transposes = [false; 2];
        for (transposes, operand) in
            transposes.iter_mut().rev().zip(instruction.operands[first_factor + factors..].iter().rev())
        {
            *transposes = match operand.kind {
                OperandKind::Integer(value @ (0 | 1)) => value != 0,
                _ => return Err(self.bad(operand, "0 or 1 is expected here")),
            };
        }
        let (ends_group, selector) = (false, is_sparse.then_some(0));
        let mut form =
            GroupForm { a, b, d, columns, a_in_registers, negates, transposes, saturates, ends_group, selector };
        if depth != form.depth() {
            return Ok(false);
        }
        if is_sparse {
            form.selector = Some(self.metadata_selector(self.operand(instruction, 4)?, form.sparse_rows())?);
        }
        let result = self.operand(instruction, 0)?;
        let destinations = self.fragment_destinations(result, d, form.result_registers())?;
        let mut sources = self.fragment_sources(result, d, form.result_registers())?;
        let mut descriptors = [Slot::None; 2];
        if a_in_registers {
            sources.extend(self.fragment_sources(a_operand, a, form.factor_registers())?);
        } else {
            descriptors[0] = self.descriptor(a_operand)?;
        }
        descriptors[1] = self.descriptor(self.operand(instruction, 2)?)?;
        if is_sparse {
            sources.push(self.source(self.operand(instruction, 3)?, T::B32)?);
        }
        let (accumulates, flip) = self.predicate(self.operand(instruction, accumulates)?)?;
        let (pipe, latency, count) = GROUP_PRODUCT;
        self.together(instruction, (pipe, latency, count, 1), OperandList { destinations, sources });
        let last = self.last();
        last.sources[..2].copy_from_slice(&descriptors);
        last.predicate_sources[0] = accumulates;
        last.instruction.predicate_flips[0] = flip;
        last.instruction.kind = Kind::GroupProduct;
        last.instruction.immediate = form.pack();
        Ok(true)
    }

    fn descriptor(&mut self, operand: &Operand) -> Decoded<Slot> {
        match operand.kind {
            OperandKind::Register(register) if self.widths[register.index()] != Width::Two => {
                Err(self.bad(operand, "a descriptor has 64 bits"))
            }
            _ => self.source(operand, T::B64),
        }
    }
}
