//! Copies of many bytes (`cp.async.bulk`, `cp.reduce.async.bulk`), of bytes and of boxes of tensors; and the instructions that change tensor maps.

use super::atomic::function;
use super::timing::cost;
use super::{Decoded, Decoder, OperandList, Slot};
use crate::execution::{AtomicOperation, AtomicType, Space};
use crate::operation::{BulkForm, BulkOperation as B, Kind, MemoryForm, bulk_operand as place};
use crate::ptx::ast::{Instruction, Operand, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::types::{ScalarType as T, StateSpace};
use balar_protocol::tensor_map::Field;

/// Most groups that a wait can leave under way, beyond which it does not wait.
const MOST_GROUPS: u32 = i32::MAX as u32;
/// Bytes of a tensor map, as `tensormap.cp_fenceproxy` has them.
const MAP_BYTES: u64 = 128;

fn is_shared(space: &StateSpace) -> bool {
    matches!(space, StateSpace::Shared | StateSpace::SharedCta | StateSpace::SharedCluster)
}

/// The dimensions of the tensor; 0 where it is none.
fn dimensions(instruction: &Instruction) -> u8 {
    let words = [M::D1, M::D2, M::D3, M::D4, M::D5];
    words.iter().position(|word| instruction.has(*word)).map_or(0, |place| place as u8 + 1)
}

impl Decoder<'_> {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`; false where the form is not supported: masks of bytes.
    pub(super) fn bulk(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if instruction.has(M::CommitGroup) {
            self.start(instruction.span, cost(instruction));
            self.last().instruction.kind = Kind::BulkCommit;
            return Ok(true);
        }
        if instruction.has(M::WaitGroup) {
            let operand = self.operand(instruction, 0)?;
            let OperandKind::Integer(groups) = operand.kind else {
                return Err(self.bad(operand, "a number of groups is expected here"));
            };
            self.start(instruction.span, cost(instruction));
            self.last().instruction.kind = Kind::BulkWait;
            self.last().instruction.immediate = u32::try_from(groups).unwrap_or(MOST_GROUPS).min(MOST_GROUPS);
            return Ok(true);
        }
        if instruction.modifiers.iter().any(|word| matches!(word, M::Other | M::CpMask | M::IgnoreOutOfBounds)) {
            return Ok(false);
        }
        let spaces: Vec<StateSpace> = instruction.modifiers.iter().filter_map(|word| word.state_space()).collect();
        let reduces = instruction.has(M::Reduce);
        let operation = match &spaces[..] {
            [StateSpace::Global] if instruction.has(M::Prefetch) => B::Prefetch,
            [to, StateSpace::Global] if is_shared(to) && !reduces => B::Load,
            [to, from] if is_shared(to) && is_shared(from) => {
                if reduces {
                    B::SendReduce
                } else {
                    B::Send
                }
            }
            [StateSpace::Global, from] if is_shared(from) => {
                if reduces {
                    B::Reduce
                } else {
                    B::Store
                }
            }
            _ => return Ok(false),
        };
        let is_tensor = instruction.has(M::Tensor);
        let form = BulkForm {
            operation,
            dimensions: dimensions(instruction),
            is_convolution: instruction.has(M::Im2col) || instruction.has(M::Im2colWithoutOffsets),
            is_multicast: instruction.has(M::MulticastCluster),
        };
        if is_tensor != (form.dimensions != 0) {
            return Ok(false);
        }
        let mut memory = MemoryForm { space: Some(Space::Shared), ..MemoryForm::NONE };
        if reduces {
            // The type of a tensor's elements is in its map: any that has the operation does here.
            let is_bitwise = instruction.modifiers.iter().any(|word| matches!(word, M::And | M::Or | M::Xor));
            let of_tensor = if is_bitwise { T::B32 } else { T::U32 };
            let named = if is_tensor { Some(of_tensor) } else { instruction.types.last().copied() };
            let Some((operation, data_type)) = named.and_then(|data_type| reduction(instruction, data_type)) else {
                return Ok(false);
            };
            (memory.operation, memory.data_type) = (operation, data_type);
        }
        let zero = self.constant(0, false);
        let mut list = vec![zero; place::COUNT];
        let mut next = 0;
        let mut take = || {
            next += 1;
            next - 1
        };
        // The place that is written comes first.
        let to_shared = matches!(operation, B::Load | B::Send | B::SendReduce);
        if to_shared {
            memory.wide[0] = self.bulk_address(instruction, take(), place::SHARED, &mut list)?;
        }
        memory.wide[2] = self.bulk_source(instruction, take(), &form, &mut list)?;
        if matches!(operation, B::Store | B::Reduce) {
            memory.wide[0] = self.bulk_address(instruction, take(), place::SHARED, &mut list)?;
        }
        if !is_tensor {
            list[place::BYTES] = self.source(self.operand(instruction, take())?, T::U32)?;
        }
        if to_shared {
            memory.wide[1] = self.bulk_address(instruction, take(), place::BARRIER, &mut list)?;
        }
        if instruction.has(M::Im2col) && form.dimensions > 2 {
            let operand = self.operand(instruction, take())?;
            let OperandKind::Vector(parts) = &operand.kind else {
                return Err(self.bad(operand, "what is added to the pixels is expected here, in braces"));
            };
            if parts.len() != usize::from(form.dimensions) - 2 {
                return Err(self.bad(operand, "a number for each spatial dimension is expected here"));
            }
            for (offset, part) in parts.iter().enumerate() {
                list[place::OFFSETS + offset] = self.source(part, T::U16)?;
            }
        }
        if form.is_multicast {
            list[place::CTAS] = self.source(self.operand(instruction, take())?, T::U16)?;
        }
        if instruction.has(M::L2CacheHint) {
            self.source(self.operand(instruction, take())?, T::B64)?;
        }
        if instruction.operands.len() != take() {
            return Ok(false);
        }
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        last.list = OperandList { destinations: Vec::new(), sources: list };
        last.instruction.kind = Kind::Bulk(form);
        last.instruction.memory = memory;
        Ok(true)
    }

    /// An address and what is added to it, at their places of the list; tells whether the address has 64 bits.
    fn bulk_address(
        &mut self,
        instruction: &Instruction,
        number: usize,
        place: usize,
        list: &mut [Slot],
    ) -> Decoded<bool> {
        let operand = self.operand(instruction, number)?;
        let (base, is_short, offset) = self.address(operand)?;
        let Ok(offset) = i32::try_from(offset) else {
            return Err(self.bad(operand, "this offset has more than 32 bits"));
        };
        list[place] = base;
        list[place + 1] = self.constant(u64::from(offset as u32), false);
        Ok(!is_short)
    }

    /// The other side of a copy: an address, or a tensor map and coordinates.
    fn bulk_source(
        &mut self,
        instruction: &Instruction,
        number: usize,
        form: &BulkForm,
        list: &mut [Slot],
    ) -> Decoded<bool> {
        if form.dimensions == 0 {
            return self.bulk_address(instruction, number, place::OTHER, list);
        }
        let operand = self.operand(instruction, number)?;
        let OperandKind::AddressList(parts) = &operand.kind else {
            return Err(self.bad(operand, "a tensor map and coordinates in brackets are expected here"));
        };
        let [map, Operand { kind: OperandKind::Vector(coordinates), .. }] = &parts[..] else {
            return Err(self.bad(operand, "a tensor map and coordinates in braces are expected here"));
        };
        if coordinates.len() != usize::from(form.dimensions) {
            return Err(self.bad(operand, "the tensor has another number of dimensions"));
        }
        list[place::OTHER] = self.source(map, T::B64)?;
        for (dimension, coordinate) in coordinates.iter().enumerate() {
            list[place::COORDINATES + dimension] = self.source(coordinate, T::S32)?;
        }
        Ok(true)
    }

    /// `tensormap.replace` and `tensormap.cp_fenceproxy`.
    pub(super) fn tensor_map(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if instruction.has(M::CopyFenceProxy) {
            return self.copy_tensor_map(instruction);
        }
        if !instruction.has(M::Replace) || !instruction.has(M::Tile) {
            return Ok(false);
        }
        let mut value = 1;
        // Fields of which there is one for each dimension name it first; strides begin with that of dimension 1.
        let mut dimension = |most: u64| -> Decoded<u8> {
            let operand = self.operand(instruction, 1)?;
            value = 2;
            match operand.kind {
                OperandKind::Integer(dimension) if (0..most).contains(&dimension) => Ok(dimension as u8),
                _ => Err(self.bad(operand, "a dimension of the tensor is expected here")),
            }
        };
        let field = match () {
            () if instruction.has(M::GlobalAddress) => Field::Address,
            () if instruction.has(M::Rank) => Field::Rank,
            () if instruction.has(M::BoxDim) => Field::BoxSize(dimension(5)?),
            () if instruction.has(M::GlobalDim) => Field::Size(dimension(5)?),
            () if instruction.has(M::GlobalStride) => Field::Stride(dimension(4)?),
            () if instruction.has(M::ElementStride) => Field::ElementStride(dimension(5)?),
            () if instruction.has(M::ElementTypeField) => Field::ElementType,
            () if instruction.has(M::InterleaveLayout) => Field::Interleave,
            () if instruction.has(M::SwizzleMode) => Field::Swizzle,
            () if instruction.has(M::FillMode) => Field::Fill,
            () => return Ok(false),
        };
        let is_wide = matches!(field, Field::Address | Field::Stride(_));
        let value = self.source(self.operand(instruction, value)?, if is_wide { T::B64 } else { T::B32 })?;
        let (base, is_short, offset) = self.address(self.operand(instruction, 0)?)?;
        let space = instruction.state_space().filter(is_shared).map(|_| Space::Shared);
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        (last.sources[0], last.sources[1]) = (base, value);
        last.instruction.kind = Kind::ReplaceField(field);
        last.instruction.offset = offset;
        last.instruction.memory =
            MemoryForm { space, short_address: is_short, wide: [false, is_wide, false, false], ..MemoryForm::NONE };
        Ok(true)
    }

    fn copy_tensor_map(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let size = self.operand(instruction, 2)?;
        if !matches!(size.kind, OperandKind::Integer(bytes) if bytes == MAP_BYTES) {
            return Err(self.bad(size, "a tensor map has 128 bytes"));
        }
        let (to, to_short, to_offset) = self.address(self.operand(instruction, 0)?)?;
        let (from, from_short, from_offset) = self.address(self.operand(instruction, 1)?)?;
        let Ok(from_offset) = i32::try_from(from_offset) else {
            return Err(self.bad(&instruction.operands[1], "this offset is no offset in shared memory"));
        };
        self.start(instruction.span, cost(instruction));
        let last = self.last();
        (last.sources[0], last.sources[1]) = (to, from);
        last.instruction.kind = Kind::CopyTensorMap;
        last.instruction.offset = to_offset;
        last.instruction.immediate = from_offset as u32;
        last.instruction.memory = MemoryForm {
            space: Some(Space::Global),
            short_address: to_short,
            wide: [false, !from_short, false, false],
            ..MemoryForm::NONE
        };
        Ok(true)
    }
}

/// How values are combined, and as which type: halves one by one.
fn reduction(instruction: &Instruction, data_type: T) -> Option<(AtomicOperation, AtomicType)> {
    match (data_type, instruction.has(M::Add), instruction.has(M::Min)) {
        (T::F16 | T::Bf16, is_sum, is_minimum) => {
            let operation = match (is_sum, is_minimum, instruction.has(M::Max)) {
                (true, ..) => AtomicOperation::Add,
                (_, true, _) => AtomicOperation::Minimum,
                (.., true) => AtomicOperation::Maximum,
                _ => return None,
            };
            Some((operation, if data_type == T::F16 { AtomicType::F16 } else { AtomicType::Bf16 }))
        }
        _ => function(instruction, data_type, 1),
    }
}
