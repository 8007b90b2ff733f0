//! Textures and surfaces.
//!
//! The places of operands are findings from the output of ptxas 12.9 for each form. RA has the layer and the coordinates of a texture; RB
//! has the handle, unless a constant has it, then level or bias. `.SCR` takes them all in this order, the first half in RA. Gradients: RA
//! has the handle, the coordinates, the layer. Surfaces: the coordinates, then the layer; RC or a constant has the handle.

use super::operands::{Operands, predicate_destination};
use super::{Lowered, Pending};
use crate::execution::{AtomicOperation, AtomicType, Space};
use crate::operation::operand::{SINK_PREDICATE, SINK_ROW, Source};
use crate::operation::{ImageForm, ImageOperation, Query};
use crate::operation::{Kind, MemoryForm};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::sass::{self, Opcode, Word};
use crate::texture::{Bounds, Geometry};

const SHAPES: [Option<Geometry>; 8] = [
    Some(Geometry::D1),
    Some(Geometry::D2),
    Some(Geometry::D3),
    Some(Geometry::Cube),
    Some(Geometry::A1d),
    Some(Geometry::A2d),
    None,
    Some(Geometry::Acube),
];
const SURFACE_SHAPES: [Option<Geometry>; 8] = [
    Some(Geometry::D1),
    Some(Geometry::D1),
    Some(Geometry::A1d),
    Some(Geometry::D2),
    Some(Geometry::A2d),
    Some(Geometry::D3),
    None,
    None,
];

/// Does the instruction take its handle from a register?
fn is_bindless(word: Word) -> bool {
    !matches!(word.code(), 0xb60 | 0xb66 | 0xb63 | 0xb6c | 0xb6f | 0xb99 | 0xb9d | 0xb9b | 0x59f)
}

fn field(word: Word, low: u8) -> u8 {
    word.bits(low, 8) as u8
}

/// The handle in the constant that a word names.
fn bound_handle(word: Word, operands: &mut Operands) -> Lowered<Source> {
    operands.constant(word.bits(54, 5) as u32, 4 * word.bits(40, 14) as u32)
}

/// The parts of a list of operands: the destinations of results, the handle, the coordinates with the layer first, the stored values.
struct Access {
    destinations: Vec<u16>,
    handle: Source,
    coordinates: Vec<Source>,
    values: Vec<Source>,
}

impl Pending {
    pub(super) fn texture(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        let word = sass.word();
        if predicate_destination(word, 81, false) != SINK_PREDICATE
            && !matches!(sass.opcode(), O::Txq | O::Sust | O::Sured)
        {
            return Err("a texture whose pages may be absent".to_owned());
        }
        match sass.opcode() {
            O::Txq => self.image_query(word, operands),
            O::Suld | O::Sust | O::Sured => self.surface(sass.opcode(), word, operands),
            opcode => self.fetch(opcode, word, operands),
        }
    }

    fn image(&mut self, form: ImageForm, memory: MemoryForm, access: &Access, operands: &mut Operands) {
        let mut list = access.destinations.clone();
        let zero = Source(Source::CONSTANT);
        list.extend([access.handle.0, zero.0]);
        list.extend((0..4).map(|place| access.coordinates.get(place).unwrap_or(&zero).0));
        list.extend(access.values.iter().map(|value| value.0));
        self.instruction.operand_list = operands.list(list);
        self.instruction.memory = MemoryForm { space: Some(Space::Global), pairs: true, ..memory };
        self.instruction.kind = Kind::Image(form);
    }

    /// Textures that are read.
    fn fetch(&mut self, opcode: Opcode, word: Word, operands: &mut Operands) -> Lowered<()> {
        let geometry = SHAPES[word.bits(61, 3) as usize].ok_or("a shape that is not known")?;
        let is_gradient = opcode == Opcode::Txd;
        let is_gather = opcode == Opcode::Tld4;
        if word.bit(76) {
            return Err("offsets of texels".to_owned());
        }
        if !is_gradient && word.bit(78) {
            return Err(if opcode == Opcode::Tld { "samples of texels" } else { "a comparison of depths" }.to_owned());
        }
        if is_gather && (word.bit(77) || !matches!(geometry, Geometry::D2 | Geometry::A2d)) {
            return Err("a gather with offsets, or of a cube".to_owned());
        }
        let count = geometry.coordinates() as u8;
        let is_bindless = is_bindless(word);
        let (ra, rb) = (field(word, 24), field(word, 32));
        let level = match opcode {
            Opcode::Tex => [0, 0, 1, 1, 1, 2, 0, 0][word.bits(87, 3) as usize],
            Opcode::Tld => u8::from(word.bits(87, 3) == 3),
            _ => 0,
        };
        let handle_place = u8::from(is_bindless);
        let split = match (is_gradient, word.bit(60)) {
            (true, _) => u8::MAX,
            (false, false) => count,
            (false, true) => (count + handle_place + level).div_ceil(2),
        };
        let at = |place: u8| {
            if place < split { operands.following(ra, place) } else { operands.following(rb, place - split) }
        };
        let (handle, mut coordinates) = if is_gradient {
            let coordinates: Vec<Source> = (0..count).map(|place| at(place + handle_place)).collect();
            (is_bindless.then(|| at(0)), coordinates)
        } else {
            (is_bindless.then(|| at(count)), (0..count).map(at).collect())
        };
        if is_gradient && geometry.is_layered() {
            coordinates.rotate_right(1);
        }
        let handle = match handle {
            Some(handle) => handle,
            None => bound_handle(word, operands)?,
        };
        let halves = word.bits(79, 2) != 0;
        if word.bits(79, 2) == 2 {
            return Err("halves that are rounded toward zero".to_owned());
        }
        let mask = word.bits(72, 4) as u32;
        let mut destinations = vec![SINK_ROW; 4];
        let registers = |place: u8| {
            let (rd, rd2) = (field(word, 16), field(word, 64));
            let each = if halves { 1 } else { 2 };
            if place < each { operands.following_row(rd, place) } else { operands.following_row(rd2, place - each) }
        };
        if halves {
            (destinations[0], destinations[1]) = (registers(0), registers(1));
        } else {
            let components = (0..4).filter(|component| (mask >> component) & 1 != 0);
            for (place, component) in (0u8..).zip(components) {
                destinations[component as usize] = registers(place);
            }
        }
        self.instruction.immediate = mask;
        let operation = match opcode {
            Opcode::Tld => ImageOperation::Fetch { floats: false },
            Opcode::Tld4 => ImageOperation::Gather { channel: word.bits(87, 2) as u8 },
            _ => ImageOperation::Fetch { floats: true },
        };
        let form = ImageForm { operation, geometry, has_sampler: false, halves };
        let access = Access { destinations, handle, coordinates, values: Vec::new() };
        self.image(form, MemoryForm::NONE, &access, operands);
        Ok(())
    }

    /// `TXQ`: one component of the size of level 0, the only one.
    fn image_query(&mut self, word: Word, operands: &mut Operands) -> Lowered<()> {
        let query = match (word.bits(62, 2), word.bits(72, 4)) {
            (0, 1) => Query::Width,
            (0, 2) => Query::Height,
            (0, 4) => Query::Depth,
            (0, 8) => Query::One,
            _ => return Err("a query of several properties, or of another one than the size".to_owned()),
        };
        let handle = if is_bindless(word) { operands.register(field(word, 24)) } else { bound_handle(word, operands)? };
        let form = ImageForm {
            operation: ImageOperation::Query(query),
            geometry: Geometry::D1,
            has_sampler: false,
            halves: false,
        };
        let destinations = vec![operands.row(field(word, 16))];
        let access = Access { destinations, handle, coordinates: Vec::new(), values: Vec::new() };
        self.image(form, MemoryForm::NONE, &access, operands);
        (self.cost.pipe, self.cost.latency, self.cost.count) = (Pipe::Int, LatencyClass::Integer, CountClass::Other);
        Ok(())
    }

    fn surface(&mut self, opcode: Opcode, word: Word, operands: &mut Operands) -> Lowered<()> {
        let geometry = SURFACE_SHAPES[word.bits(61, 3) as usize].ok_or("a shape that is not known")?;
        let bounds = [Bounds::Zero, Bounds::Clamp, Bounds::Trap][word.bits(59, 2) as usize % 3];
        let is_pixel = matches!(word.code(), 0x99c | 0xb9b);
        // The place counts texels.
        let formatted = is_pixel || !word.bit(72);
        let ra = field(word, 24);
        let mut coordinates: Vec<Source> =
            (0..geometry.coordinates() as u8).map(|place| operands.following(ra, place)).collect();
        if geometry.is_layered() {
            coordinates.rotate_right(1);
        }
        let handle = if is_bindless(word) { operands.register(field(word, 64)) } else { bound_handle(word, operands)? };
        let mut memory = MemoryForm::NONE;
        let mut access = Access { destinations: Vec::new(), handle, coordinates, values: Vec::new() };
        if is_pixel {
            memory.elements = (word.bits(72, 4) as u8).count_ones() as u8;
        } else if opcode != Opcode::Sured {
            if formatted {
                return Err("bytes of a texel that its number names".to_owned());
            }
            (memory.element_bytes, memory.elements, memory.signed) = match word.bits(73, 3) {
                0 => (1, 1, false),
                1 => (1, 1, true),
                2 => (2, 1, false),
                3 => (2, 1, true),
                4 => (4, 1, false),
                5 => (4, 2, false),
                _ => (4, 4, false),
            };
        }
        let operation = match opcode {
            Opcode::Suld => {
                let rd = field(word, 16);
                access.destinations = (0..memory.elements).map(|place| operands.following_row(rd, place)).collect();
                ImageOperation::Load { bounds }
            }
            Opcode::Sust => {
                let rb = field(word, 32);
                access.values = (0..memory.elements).map(|place| operands.following(rb, place)).collect();
                ImageOperation::Store { bounds, formatted }
            }
            _ => {
                reduction(word, &mut memory)?;
                access.values = vec![operands.register(field(word, 32))];
                ImageOperation::Reduce { bounds, formatted }
            }
        };
        let form = ImageForm { operation, geometry, has_sampler: false, halves: false };
        self.image(form, memory, &access, operands);
        Ok(())
    }
}

/// The operation and the type of `SURED`.
fn reduction(word: Word, form: &mut MemoryForm) -> Lowered<()> {
    use AtomicOperation as A;
    form.is_reduction = true;
    form.operation =
        [A::Add, A::Minimum, A::Maximum, A::Increment, A::Decrement, A::And, A::Or, A::Xor][word.bits(87, 3) as usize];
    form.data_type = match word.bits(73, 3) {
        0 => AtomicType::U32,
        1 => AtomicType::S32,
        2 => AtomicType::U64,
        3 => AtomicType::F32Flushed,
        5 => AtomicType::S64,
        6 if word.bit(72) => AtomicType::F64,
        // The format of the surface decides.
        6 => AtomicType::U32,
        _ => return Err("a type that reductions do not have".to_owned()),
    };
    let is_wide = matches!(form.data_type, AtomicType::U64 | AtomicType::S64 | AtomicType::F64);
    form.element_bytes = if is_wide { 8 } else { 4 };
    form.wide[0] = is_wide;
    Ok(())
}
