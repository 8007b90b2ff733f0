//! Textures and surfaces.
//!
//! The places of operands are findings from the output of ptxas 12.9 for each form. RA has the layer and the coordinates of a texture; RB
//! has the handle, unless a constant or a uniform register has it, then level or bias. `.SCR` takes them all in this order, the first half in RA. Gradients: RA
//! has the handle, the coordinates, the layer. Surfaces: the coordinates, then the layer; RC or a constant has the handle.
//!
//! Code for Hopper has the handle in a uniform register. The register behind it has the sampler's number where PTX has samplers of their
//! own (`.texmode_independent`), else zero (findings from ptxas 13.5, which always puts zero behind the register): as everywhere in
//! machine code, a texture has the sampler of its own here.

use super::memory::{atomic_operation, size_of};
use super::operands::{Operands, predicate_destination};
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::execution::{AtomicType, Space};
use crate::operation::operand::{SINK_PREDICATE, SINK_ROW, Source};
use crate::operation::{ImageForm, ImageOperation, Query};
use crate::operation::{Kind, MemoryForm};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::sass::{self, Aspect, Location, Opcode, RegisterOperand};
use crate::texture::{Bounds, Geometry};

/// The shape of a texture or a surface.
fn geometry(sass: &sass::Instruction) -> Lowered<Geometry> {
    Ok(match sass.text(Aspect::Shape) {
        "1D" | ".1D" | ".1D_BUFFER" => Geometry::D1,
        "2D" | ".2D" => Geometry::D2,
        "3D" | ".3D" => Geometry::D3,
        "CUBE" => Geometry::Cube,
        "ARRAY_1D" | ".1D_ARRAY" => Geometry::A1d,
        "ARRAY_2D" | ".2D_ARRAY" => Geometry::A2d,
        "ARRAY_CUBE" => Geometry::Acube,
        _ => return Err("a shape that is not known".to_owned()),
    })
}

/// The numbers among the operands: of the bank and the word of a constant that has a handle, then of components.
fn numbers(sass: &sass::Instruction) -> Vec<u32> {
    sass.sources().filter_map(|source| source.immediate()).collect()
}

/// The general registers among the sources, RZ included.
fn registers(sass: &sass::Instruction) -> Vec<u8> {
    sass.sources().filter_map(|source| source.register()).collect()
}

/// The uniform register among the sources.
fn uniform_register(sass: &sass::Instruction) -> Option<u8> {
    sass.sources().find_map(|source| match source.location {
        Location::Register(RegisterOperand::Uniform(number)) => Some(number),
        _ => None,
    })
}

/// The handle in the uniform register, or in the constant, that an instruction names.
fn bound_handle(sass: &sass::Instruction, operands: &mut Operands) -> Lowered<Source> {
    match (uniform_register(sass), &numbers(sass)[..]) {
        (Some(register), [0, ..]) => Ok(operands.uniform(register)),
        (Some(_), _) => Err("a place behind the handle of a texture in a uniform register".to_owned()),
        (None, &[bank, word, ..]) => operands.constant(bank, 4 * word),
        _ => Err(NO_SUCH_OPERAND.to_owned()),
    }
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
        if predicate_destination(sass.predicate(0)) != SINK_PREDICATE {
            return Err("a texture whose pages may be absent".to_owned());
        }
        match sass.opcode() {
            O::Txq => self.image_query(sass, operands),
            O::Suld | O::Sust | O::Sured => self.surface(sass, operands),
            _ => self.fetch(sass, operands),
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
    fn fetch(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let opcode = sass.opcode();
        let geometry = geometry(sass)?;
        let is_gradient = opcode == Opcode::Txd;
        let is_gather = opcode == Opcode::Tld4;
        if sass.has(Aspect::Offsets) {
            return Err("offsets of texels".to_owned());
        }
        if sass.has(Aspect::Samples) {
            return Err("samples of texels".to_owned());
        }
        if sass.has(Aspect::DepthComparison) {
            return Err("a comparison of depths".to_owned());
        }
        if is_gather && (sass.has(Aspect::OffsetsOfTexels) || !matches!(geometry, Geometry::D2 | Geometry::A2d)) {
            return Err("a gather with offsets, or of a cube".to_owned());
        }
        let count = geometry.coordinates() as u8;
        let is_bindless = sass.has(Aspect::Bindless);
        let [ra, rb] = registers(sass)[..] else { return Err(NO_SUCH_OPERAND.to_owned()) };
        let level = sass.level_operands();
        let handle_place = u8::from(is_bindless);
        let split = match (is_gradient, sass.has(Aspect::Scalars)) {
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
            None => bound_handle(sass, operands)?,
        };
        let halves = sass.has(Aspect::ResultType);
        if sass.text(Aspect::ResultType) == ".F16.RZ" {
            return Err("halves that are rounded toward zero".to_owned());
        }
        let mask = numbers(sass).last().copied().ok_or(NO_SUCH_OPERAND)?;
        let mut destinations = vec![SINK_ROW; 4];
        let registers = |place: u8| {
            // The first destination in the text has the third and the fourth component.
            let [rd2, rd] = [0, 1].map(|number| sass.destination(number));
            let each = if halves { 1 } else { 2 };
            if place < each {
                operands.written_following(rd, place)
            } else {
                operands.written_following(rd2, place - each)
            }
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
            Opcode::Tld4 => ImageOperation::Gather { channel: sass.value(Aspect::Component) as u8 },
            _ => ImageOperation::Fetch { floats: true },
        };
        let form = ImageForm { operation, geometry, has_sampler: false, halves };
        let access = Access { destinations, handle, coordinates, values: Vec::new() };
        self.image(form, MemoryForm::NONE, &access, operands);
        Ok(())
    }

    /// `TXQ`: one component of the size of level 0, the only one.
    fn image_query(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let query = match (sass.text(Aspect::Operation), numbers(sass).last()) {
            ("TEX_HEADER_DIMENSION", Some(1)) => Query::Width,
            ("TEX_HEADER_DIMENSION", Some(2)) => Query::Height,
            ("TEX_HEADER_DIMENSION", Some(4)) => Query::Depth,
            ("TEX_HEADER_DIMENSION", Some(8)) => Query::One,
            _ => return Err("a query of several properties, or of another one than the size".to_owned()),
        };
        let handle = match registers(sass)[..] {
            [handle, ..] if sass.has(Aspect::Bindless) => operands.register(handle),
            _ => bound_handle(sass, operands)?,
        };
        let form = ImageForm {
            operation: ImageOperation::Query(query),
            geometry: Geometry::D1,
            has_sampler: false,
            halves: false,
        };
        let destinations = vec![operands.written(sass.destination(1))];
        let access = Access { destinations, handle, coordinates: Vec::new(), values: Vec::new() };
        self.image(form, MemoryForm::NONE, &access, operands);
        (self.cost.pipe, self.cost.latency, self.cost.count) = (Pipe::Int, LatencyClass::Integer, CountClass::Other);
        Ok(())
    }

    fn surface(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let opcode = sass.opcode();
        let geometry = geometry(sass)?;
        let bounds = match sass.text(Aspect::Outside) {
            ".IGN" => Bounds::Zero,
            ".TRAP" => Bounds::Trap,
            _ => Bounds::Clamp,
        };
        let is_pixel = sass.encoding().has(Aspect::Component);
        // The place counts texels.
        let formatted = !sass.has(Aspect::ByBytes);
        // The place, the value of a store, the handle where no constant has it.
        let registers = registers(sass);
        let ra = *registers.first().ok_or(NO_SUCH_OPERAND)?;
        let value = registers.get(1).copied();
        let mut coordinates: Vec<Source> =
            (0..geometry.coordinates() as u8).map(|place| operands.following(ra, place)).collect();
        if geometry.is_layered() {
            coordinates.rotate_right(1);
        }
        let handle = match registers.get(if opcode == Opcode::Suld { 1 } else { 2 }) {
            Some(&handle) => operands.register(handle),
            None => bound_handle(sass, operands)?,
        };
        let mut memory = MemoryForm::NONE;
        let mut access = Access { destinations: Vec::new(), handle, coordinates, values: Vec::new() };
        if is_pixel {
            memory.elements = match sass.text(Aspect::Component) {
                ".R" => 1,
                ".RG" => 2,
                _ => 4,
            };
        } else if opcode != Opcode::Sured {
            if formatted {
                return Err("bytes of a texel that its number names".to_owned());
            }
            (memory.element_bytes, memory.elements, memory.signed) = size_of(sass);
        }
        let operation = match opcode {
            Opcode::Suld => {
                let rd = sass.destination(0);
                access.destinations = (0..memory.elements).map(|place| operands.written_following(rd, place)).collect();
                ImageOperation::Load { bounds }
            }
            Opcode::Sust => {
                let rb = value.ok_or(NO_SUCH_OPERAND)?;
                access.values = (0..memory.elements).map(|place| operands.following(rb, place)).collect();
                ImageOperation::Store { bounds, formatted }
            }
            _ => {
                reduction(sass, &mut memory)?;
                access.values = vec![operands.register(value.ok_or(NO_SUCH_OPERAND)?)];
                ImageOperation::Reduce { bounds, formatted }
            }
        };
        let form = ImageForm { operation, geometry, has_sampler: false, halves: false };
        self.image(form, memory, &access, operands);
        Ok(())
    }
}

/// The operation and the type of `SURED`.
fn reduction(sass: &sass::Instruction, form: &mut MemoryForm) -> Lowered<()> {
    form.is_reduction = true;
    form.operation = atomic_operation(sass)?;
    form.data_type = match sass.text(Aspect::Type) {
        "" => AtomicType::U32,
        ".S32" => AtomicType::S32,
        ".U64" => AtomicType::U64,
        ".F32.FTZ.RN" => AtomicType::F32Flushed,
        ".S64" => AtomicType::S64,
        ".F64.RN" => AtomicType::F64,
        // The format of the surface decides.
        ".SD32" => AtomicType::U32,
        _ => return Err("a type that reductions do not have".to_owned()),
    };
    let is_wide = matches!(form.data_type, AtomicType::U64 | AtomicType::S64 | AtomicType::F64);
    form.element_bytes = if is_wide { 8 } else { 4 };
    form.wide[0] = is_wide;
    Ok(())
}
