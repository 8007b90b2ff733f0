//! Textures and surfaces.

use super::timing::access;
use super::{Decoded, Decoder, OperandList, Slot};
use crate::execution::{AtomicOperation as A, AtomicType, Space};
use crate::operation::{ImageForm, ImageOperation, Query};
use crate::operation::{Kind, MemoryForm};
use crate::program::timing::{LatencyClass, Pipe};
use crate::ptx::ast::{Address, AddressBase, Instruction, Operand, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;
use crate::texture::{Bounds, Geometry};

fn geometry(instruction: &Instruction) -> Option<Geometry> {
    instruction.modifiers.iter().find_map(|modifier| {
        Some(match modifier {
            M::D1 => Geometry::D1,
            M::D2 => Geometry::D2,
            M::D3 => Geometry::D3,
            M::A1d => Geometry::A1d,
            M::A2d => Geometry::A2d,
            M::Cube => Geometry::Cube,
            M::Acube => Geometry::Acube,
            _ => return None,
        })
    })
}

fn query(instruction: &Instruction) -> Option<Query> {
    instruction.modifiers.iter().find_map(|modifier| {
        Some(match modifier {
            M::Width => Query::Width,
            M::Height => Query::Height,
            M::Depth => Query::Depth,
            M::ArraySize => Query::ArraySize,
            M::NormalizedCoords => Query::IsNormalized,
            M::ForceUnnormalizedCoords => Query::IsNotNormalized,
            M::FilterMode => Query::IsLinear,
            M::AddrMode0 => Query::AddressMode(0),
            M::AddrMode1 => Query::AddressMode(1),
            M::AddrMode2 => Query::AddressMode(2),
            M::NumMipmapLevels | M::NumSamples => Query::One,
            _ => return None,
        })
    })
}

fn bounds(instruction: &Instruction) -> Bounds {
    if instruction.has(M::Clamp) {
        Bounds::Clamp
    } else if instruction.has(M::Zero) {
        Bounds::Zero
    } else {
        Bounds::Trap
    }
}

fn parts(operand: &Operand) -> &[Operand] {
    match &operand.kind {
        OperandKind::Vector(parts) => parts,
        _ => std::slice::from_ref(operand),
    }
}

impl Decoder<'_> {
    /// Texture and surface instructions; false where the form is not supported: mipmaps, multisampling, texel offsets, depth
    /// comparison, sparse residency, packed halves.
    pub(super) fn texture(&mut self, instruction: &Instruction) -> Decoded<bool> {
        match instruction.opcode {
            O::Txq | O::Suq => self.image_query(instruction),
            O::Tex | O::Tld4 => self.texture_fetch(instruction),
            _ => self.surface_access(instruction),
        }
    }

    /// Sources that every access has: the image, its sampler, four coordinates.
    fn image_sources(
        &mut self,
        operand: &Operand,
        geometry: Geometry,
        coordinate: T,
    ) -> Decoded<Option<(Vec<Slot>, bool)>> {
        let OperandKind::AddressList(list) = &operand.kind else {
            return Err(self.bad(operand, "an image and its coordinates in brackets are expected here"));
        };
        let (image, sampler, coordinates) = match &list[..] {
            [image, coordinates] => (image, None, coordinates),
            [image, sampler, coordinates] => (image, Some(sampler), coordinates),
            _ => return Ok(None),
        };
        let coordinates = parts(coordinates);
        let count = geometry.coordinates();
        if coordinates.len() < count {
            return Err(self.bad(operand, "the access has fewer coordinates than its geometry"));
        }
        let mut sources = vec![self.source(image, T::B64)?];
        sources.push(match sampler {
            Some(sampler) => self.source(sampler, T::B64)?,
            None => Slot::None,
        });
        for (place, part) in coordinates.iter().take(count).enumerate() {
            let scalar_type = if place == 0 && geometry.is_layered() { T::U32 } else { coordinate };
            sources.push(self.source(part, scalar_type)?);
        }
        sources.resize(6, Slot::None);
        Ok(Some((sources, sampler.is_some())))
    }

    fn push_image(&mut self, instruction: &Instruction, form: ImageForm, list: OperandList, memory: MemoryForm) {
        self.start(instruction.span, access(false, !matches!(instruction.opcode, O::Sust | O::Sured)));
        let last = self.last();
        last.list = list;
        last.instruction.kind = Kind::Image(form);
        last.instruction.memory = MemoryForm { space: Some(Space::Global), ..memory };
    }

    fn texture_fetch(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let (Some(geometry), &[result, coordinate]) = (geometry(instruction), &instruction.types[..]) else {
            return Ok(false);
        };
        let extra = match instruction.opcode {
            O::Tex if instruction.has(M::Grad) => 2,
            O::Tex if instruction.has(M::Level) => 1,
            _ => 0,
        };
        // Without mipmaps, level and gradients choose nothing: there is level 0 alone.
        if instruction.operands.len() != 2 + extra || !matches!(result, T::U32 | T::S32 | T::F32 | T::F16) {
            return Ok(false);
        }
        let operation = if instruction.opcode == O::Tld4 {
            let channel = instruction.modifiers.iter().find_map(|modifier| match modifier {
                M::R => Some(0),
                M::G => Some(1),
                M::B => Some(2),
                M::A => Some(3),
                _ => None,
            });
            let (Some(channel), Geometry::D2 | Geometry::A2d) = (channel, geometry) else { return Ok(false) };
            ImageOperation::Gather { channel }
        } else if !matches!(coordinate, T::F32 | T::S32)
            || (coordinate == T::S32 && matches!(geometry, Geometry::Cube | Geometry::Acube))
        {
            return Ok(false);
        } else {
            ImageOperation::Fetch { floats: coordinate == T::F32 }
        };
        let destination = self.operand(instruction, 0)?;
        let OperandKind::Vector(parts) = &destination.kind else { return Ok(false) };
        let Some((sources, has_sampler)) = self.image_sources(self.operand(instruction, 1)?, geometry, coordinate)?
        else {
            return Ok(false);
        };
        if parts.len() != 4 {
            return Ok(false);
        }
        let mut destinations = Vec::new();
        for part in parts {
            destinations.push(self.destination(part)?);
            if self.is_wide(destinations[destinations.len() - 1]) {
                return Err(self.bad(part, "this register is too wide for a channel of a texel"));
            }
        }
        let form = ImageForm { operation, geometry, has_sampler, halves: result == T::F16 };
        self.push_image(instruction, form, OperandList { destinations, sources }, MemoryForm::NONE);
        Ok(true)
    }

    fn image_query(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let (Some(query), 2) = (query(instruction), instruction.operands.len()) else { return Ok(false) };
        let operand = self.operand(instruction, 1)?;
        let image = match operand.kind {
            OperandKind::Address(Address { base: AddressBase::Register(register), offset: 0 }) => {
                let named = Operand { kind: OperandKind::Register(register), ..operand.clone() };
                self.source(&named, T::B64)?
            }
            OperandKind::Address(Address { base: AddressBase::Symbol(symbol), offset }) => {
                let named = Operand { kind: OperandKind::Symbol { symbol, offset }, ..operand.clone() };
                self.source(&named, T::B64)?
            }
            _ => return Ok(false),
        };
        let destination = self.destination(self.operand(instruction, 0)?)?;
        if self.is_wide(destination) {
            return Ok(false);
        }
        let mut sources = vec![image];
        sources.resize(6, Slot::None);
        let form = ImageForm {
            operation: ImageOperation::Query(query),
            geometry: Geometry::D1,
            has_sampler: false,
            halves: false,
        };
        self.push_image(instruction, form, OperandList { destinations: vec![destination], sources }, MemoryForm::NONE);
        // The descriptor is at hand: an instruction like any other.
        (self.last().cost.0, self.last().cost.1) = (Pipe::Int, LatencyClass::Integer);
        Ok(true)
    }

    fn surface_access(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let (Some(geometry), Some(&data_type)) = (geometry(instruction), instruction.types.first()) else {
            return Ok(false);
        };
        if matches!(geometry, Geometry::Cube | Geometry::Acube) || instruction.operands.len() != 2 {
            return Ok(false);
        }
        let elements = instruction.vector_length();
        let bytes = data_type.bytes();
        let is_wide = bytes == 8;
        if bytes > 8 || elements > 4 || bytes * elements > 16 {
            return Ok(false);
        }
        let formatted = instruction.has(M::P);
        let mut memory =
            MemoryForm { element_bytes: bytes as u8, elements: elements as u8, wide: [is_wide; 4], ..MemoryForm::NONE };
        let is_load = instruction.opcode == O::Suld;
        let operation = match instruction.opcode {
            O::Suld if !formatted => ImageOperation::Load { bounds: bounds(instruction) },
            O::Sust if formatted && bytes != 4 => return Ok(false),
            O::Sust => ImageOperation::Store { bounds: bounds(instruction), formatted },
            O::Sured => {
                if !reduction(instruction, data_type, &mut memory) {
                    return Ok(false);
                }
                ImageOperation::Reduce { bounds: bounds(instruction), formatted }
            }
            _ => return Ok(false),
        };
        let [image, values] = if is_load { [1, 0] } else { [0, 1] }.map(|index| &instruction.operands[index]);
        let Some((mut sources, false)) = self.image_sources(image, geometry, T::S32)? else { return Ok(false) };
        let values = parts(values);
        if values.len() != elements as usize {
            return Ok(false);
        }
        let mut destinations = Vec::new();
        for (index, value) in values.iter().enumerate() {
            if is_load {
                let slot = self.destination(value)?;
                memory.wide[index] = self.is_wide(slot);
                destinations.push(slot);
            } else {
                sources.push(self.source(value, if is_wide { T::B64 } else { T::B32 })?);
            }
        }
        let form = ImageForm { operation, geometry, has_sampler: false, halves: false };
        self.push_image(instruction, form, OperandList { destinations, sources }, memory);
        Ok(true)
    }
}

/// Fills in a surface reduction's operation and type; false where there is none such.
fn reduction(instruction: &Instruction, data_type: T, form: &mut MemoryForm) -> bool {
    form.is_reduction = true;
    let operation = instruction.modifiers.iter().find_map(|modifier| {
        Some(match modifier {
            M::Add => A::Add,
            M::Min => A::Minimum,
            M::Max => A::Maximum,
            M::And => A::And,
            M::Or => A::Or,
            _ => return None,
        })
    });
    let Some(operation) = operation else { return false };
    form.operation = operation;
    form.data_type = match data_type {
        T::U32 | T::B32 => AtomicType::U32,
        T::S32 => AtomicType::S32,
        T::U64 | T::B64 => AtomicType::U64,
        T::S64 => AtomicType::S64,
        _ => return false,
    };
    true
}
