//! Matrix instructions. Loads and stores of `wmma`, `ldmatrix` and `stmatrix` become plain loads and stores, with the computation of
//! addresses before them and exchanges between lanes after or before them.

use super::timing::{access as memory_access, cost, matrix_product};
use super::{Decoded, Decoder, OperandList, Slot};
use crate::execution::Space;
use crate::interpreter::bodies::functions;
use crate::interpreter::floating_point::float::rounding;
use crate::interpreter::matrix::*;
use crate::interpreter::movement::{Pack, Unpack};
use crate::lanes::LANES;
use crate::liveness::Width;
use crate::matrix::{Element, Family, Generation, MatrixForm, Part, SparseRows};
use crate::operation::{Kind, MemoryForm};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::ast::{Instruction, Operand, OperandKind};
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::{ScalarType as T, StateSpace};

pub(super) fn element_of(scalar_type: T) -> Option<Element> {
    Some(match scalar_type {
        T::F16 => Element::F16,
        T::Bf16 => Element::Bf16,
        T::Tf32 => Element::Tf32,
        T::F64 => Element::F64,
        T::S8 => Element::S8,
        T::U8 => Element::U8,
        T::S4 => Element::S4,
        T::U4 => Element::U4,
        T::B1 => Element::Bits,
        T::E4m3 => Element::E4m3,
        T::E5m2 => Element::E5m2,
        T::F32 => Element::F32,
        T::S32 => Element::S32,
        _ => return None,
    })
}

/// The shape that an instruction names: m, n, k.
fn shape(instruction: &Instruction) -> Option<[u32; 3]> {
    instruction.modifiers.iter().find_map(|modifier| {
        Some(match modifier {
            M::M8n8k4 => [8, 8, 4],
            M::M8n8k16 => [8, 8, 16],
            M::M8n8k32 => [8, 8, 32],
            M::M8n8k128 => [8, 8, 128],
            M::M16n8k4 => [16, 8, 4],
            M::M16n8k8 => [16, 8, 8],
            M::M16n8k16 => [16, 8, 16],
            M::M16n8k32 => [16, 8, 32],
            M::M16n8k64 => [16, 8, 64],
            M::M16n8k128 => [16, 8, 128],
            M::M16n8k256 => [16, 8, 256],
            M::M16n16k8 => [16, 16, 8],
            M::M16n16k16 => [16, 16, 16],
            M::M8n32k16 => [8, 32, 16],
            M::M32n8k16 => [32, 8, 16],
            _ => return None,
        })
    })
}

/// Whether `mma` has products of this type in this shape (PTX ISA, table of shapes of `mma`).
fn mma_has(element: Element, [m, n, k]: [u32; 3]) -> bool {
    use Element::*;
    let shapes: &[[u32; 2]] = match element {
        F16 => &[[8, 4], [16, 8], [16, 16]],
        Bf16 => &[[16, 8], [16, 16]],
        Tf32 => &[[16, 4], [16, 8]],
        F64 => &[[8, 4], [16, 4], [16, 8], [16, 16]],
        S8 | U8 => &[[8, 16], [16, 16], [16, 32]],
        S4 | U4 => &[[8, 32], [16, 32], [16, 64]],
        Bits => &[[8, 128], [16, 128], [16, 256]],
        E4m3 | E5m2 => &[[16, 16], [16, 32]],
        F32 | S32 => &[],
    };
    n == 8 && shapes.contains(&[m, k])
}

/// How a product of doubles is rounded.
fn rounding_of(instruction: &Instruction) -> u32 {
    let mut roundings = instruction.modifiers.iter().filter_map(|modifier| match modifier {
        M::Rz => Some(rounding::ZERO),
        M::Rm => Some(rounding::DOWN),
        M::Rp => Some(rounding::UP),
        _ => None,
    });
    roundings.next().unwrap_or(rounding::NEAREST)
}

/// Whether `wmma` has products of this type in this shape.
fn wmma_has(element: Element, shape: [u32; 3]) -> bool {
    use Element::*;
    match element {
        F16 | Bf16 | S8 | U8 => matches!(shape, [16, 16, 16] | [8, 32, 16] | [32, 8, 16]),
        Tf32 => shape == [16, 16, 8],
        F64 => shape == [8, 8, 4],
        S4 | U4 => shape == [8, 8, 32],
        Bits => shape == [8, 8, 128],
        E4m3 | E5m2 | F32 | S32 => false,
    }
}

/// Part of a lane's elements, together in memory: one access.
struct Chunk {
    /// Of each lane: the line (row or column) that it is in, and its place there, in elements.
    lines: [u32; LANES],
    places: [u32; LANES],
    /// Its first element among the lane's.
    first: u32,
    /// How many elements.
    count: u32,
}

/// A lane's part of A or B of `wmma`, as chunks of at most 16 bytes.
fn factor_chunks(form: &MatrixForm, part: Part, element: Element, by_column: bool) -> Vec<Chunk> {
    let (rows, columns) = form.size(part);
    let length = if by_column { rows } else { columns };
    let elements = form.elements(part);
    let count = (128 / element.bits()).min(elements).min(length);
    let at = |first: u32| {
        let place = |lane: usize| form.line_and_place(part, by_column, lane as u32, first);
        let lines = std::array::from_fn(|lane| place(lane).0);
        let places = std::array::from_fn(|lane| place(lane).1);
        Chunk { lines, places, first, count }
    };
    (0..elements).step_by(count as usize).map(at).collect()
}

/// The same of an accumulator: pairs in a row, single elements where columns lie together.
fn accumulator_chunks(form: &MatrixForm, by_column: bool) -> Vec<Chunk> {
    let count = if by_column { 1 } else { 2 };
    let at = |first: u32| {
        let place = |lane: usize| {
            let (row, column) = form.position(Part::Accumulator, lane as u32, first);
            if by_column { (column, row) } else { (row, column) }
        };
        let lines = std::array::from_fn(|lane| place(lane).0);
        let places = std::array::from_fn(|lane| place(lane).1);
        Chunk { lines, places, first, count }
    };
    (0..form.elements(Part::Accumulator)).step_by(count as usize).map(at).collect()
}

/// Whether all lanes' places differ from others' by the same number; that number.
fn common_distance(from: &[u32; LANES], to: &[u32; LANES]) -> Option<i64> {
    let distance = |lane: usize| i64::from(to[lane]) - i64::from(from[lane]);
    (1..LANES).all(|lane| distance(lane) == distance(0)).then(|| distance(0))
}

impl Decoder<'_> {
    /// Matrix instructions; false where the form is not supported.
    pub(super) fn matrix(&mut self, instruction: &Instruction) -> Decoded<bool> {
        match instruction.opcode {
            O::Mma => self.product(instruction, Family::Mma),
            O::Wmma if instruction.has(M::Mma) => self.product(instruction, Family::Wmma),
            O::Wmma => self.matrix_access(instruction),
            O::Ldmatrix => self.load_matrices(instruction),
            O::Stmatrix => self.store_matrices(instruction),
            _ => self.transposition(instruction),
        }
    }

    fn generation(&self) -> Generation {
        let capabilities = self.module.targets.iter().filter_map(|target| {
            let digits = target.strip_prefix("sm_")?;
            digits.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).parse().ok()
        });
        Generation::of(capabilities.max().unwrap_or(70))
    }

    /// The registers of an operand: a vector of that many, or one.
    fn vector<'b>(&self, operand: &'b Operand, count: usize) -> Decoded<&'b [Operand]> {
        let parts = match &operand.kind {
            OperandKind::Vector(parts) => parts,
            _ => std::slice::from_ref(operand),
        };
        if parts.len() != count {
            return Err(self.bad(operand, &format!("{count} registers are expected here, not {}", parts.len())));
        }
        Ok(parts)
    }

    pub(super) fn fragment_sources(&mut self, operand: &Operand, element: Element, count: usize) -> Decoded<Vec<Slot>> {
        let scalar_type = if element == Element::F64 { T::F64 } else { T::B32 };
        self.vector(operand, count)?.iter().map(|part| self.source(part, scalar_type)).collect()
    }

    pub(super) fn fragment_destinations(
        &mut self,
        operand: &Operand,
        element: Element,
        count: usize,
    ) -> Decoded<Vec<Slot>> {
        let parts = self.vector(operand, count)?;
        let mut slots = Vec::with_capacity(count);
        for part in parts {
            let slot = self.destination(part)?;
            if slot != Slot::None && self.is_wide(slot) != (element == Element::F64) {
                return Err(self.bad(part, "the register's width is not the matrix's"));
            }
            slots.push(slot);
        }
        Ok(slots)
    }

    fn product(&mut self, instruction: &Instruction, family: Family) -> Decoded<bool> {
        let Some(sizes @ [m, n, k]) = shape(instruction) else { return Ok(false) };
        let is_sparse = instruction.has(M::Sp) || instruction.has(M::SpOrderedMetadata);
        let extended = [M::BlockScale, M::KindF8f6f4, M::KindMxf8f6f4, M::KindMxf4, M::KindMxf4nvf4];
        if extended.into_iter().any(|modifier| instruction.has(modifier)) {
            return Ok(false);
        }
        let elements: Option<Vec<Element>> = instruction.types.iter().map(|name| element_of(*name)).collect();
        let [d, a, b, c] = match elements.as_deref() {
            Some(&[d, c]) if family == Family::Wmma => [d, Element::F16, Element::F16, c],
            Some(&[d, a, b, c]) => [d, a, b, c],
            _ => return Ok(false),
        };
        let alike = |first: Element, second: Element| {
            first == second
                || matches!((first, second), (Element::S8, Element::U8) | (Element::U8, Element::S8))
                || matches!((first, second), (Element::S4, Element::U4) | (Element::U4, Element::S4))
                || matches!((first, second), (Element::E4m3, Element::E5m2) | (Element::E5m2, Element::E4m3))
        };
        let may_accumulate = |element: Element| match a {
            Element::F16 | Element::E4m3 | Element::E5m2 => matches!(element, Element::F16 | Element::F32),
            Element::Bf16 | Element::Tf32 => element == Element::F32,
            Element::F64 => element == Element::F64,
            _ => element == Element::S32,
        };
        let has_shape = match family {
            Family::Wmma => wmma_has(a, sizes),
            _ if is_sparse => a.has_sparse_products(sizes),
            _ => mma_has(a, sizes),
        };
        let rounding = rounding_of(instruction);
        let is_rounded = a == Element::F64 || rounding == rounding::NEAREST;
        if !has_shape || !alike(a, b) || !may_accumulate(c) || !may_accumulate(d) || !is_rounded {
            return Ok(false);
        }
        let mut columns = instruction.modifiers.iter().filter_map(|modifier| match modifier {
            M::Row => Some(false),
            M::Col => Some(true),
            _ => None,
        });
        let (Some(a_by_column), Some(b_by_column)) = (columns.next(), columns.next()) else { return Ok(false) };
        let family = match family {
            Family::Mma if is_sparse => Family::Sparse,
            Family::Mma if a == Element::F16 && m == 8 => Family::QuadPairs,
            family => family,
        };
        let fixed =
            matches!(family, Family::Mma | Family::Sparse) || matches!(a, Element::S4 | Element::U4 | Element::Bits);
        if fixed && (a_by_column || !b_by_column) {
            return Ok(false);
        }
        let form = MatrixForm {
            family,
            a,
            b,
            c,
            d,
            m,
            n,
            k: if a == Element::Bits { k / 32 } else { k },
            a_by_column,
            b_by_column,
            saturates: instruction.has(M::Satfinite),
            conjunction: instruction.has(M::And),
            generation: self.generation(),
        };
        let count = |part: Part, element: Element| (form.elements(part) / element.per_register()) as usize;
        let accumulator = Part::Accumulator;
        let destinations = self.fragment_destinations(self.operand(instruction, 0)?, d, count(accumulator, d))?;
        let mut sources = self.fragment_sources(self.operand(instruction, 1)?, a, count(Part::A, a))?;
        sources.extend(self.fragment_sources(self.operand(instruction, 2)?, b, count(Part::B, b))?);
        sources.extend(self.fragment_sources(self.operand(instruction, 3)?, c, count(accumulator, c))?);
        let mut selector = 0;
        if is_sparse {
            sources.push(self.source(self.operand(instruction, 4)?, T::B32)?);
            selector = self.metadata_selector(self.operand(instruction, 5)?, form.sparse_rows())?;
        }
        let places = self.places(&form);
        self.together(instruction, matrix_product(&form), OperandList { destinations, sources });
        let last = self.last();
        last.sources[4] = places;
        last.instruction.functions = functions::<MultiplyMatrices>();
        last.instruction.immediate = form.pack();
        last.instruction.offset = rounding.into();
        last.instruction.memory.elements = selector;
        Ok(true)
    }

    /// Which lanes of four neighbours have the metadata of a sparse A.
    pub(super) fn metadata_selector(&self, operand: &Operand, rows: SparseRows) -> Decoded<u8> {
        let groups = rows.selectors();
        match operand.kind {
            OperandKind::Integer(selector) if selector < u64::from(groups) => Ok(selector as u8),
            _ => {
                let what =
                    format!("the lanes that have the metadata of this shape are given by a number below {groups}");
                Err(self.bad(operand, &what))
            }
        }
    }

    /// The rows of constants with the places of the form's elements, once for all instructions of the form.
    fn places(&mut self, form: &MatrixForm) -> Slot {
        let constants = &mut self.constants;
        let first = *self.known_places.entry(form.pack()).or_insert_with(|| {
            let first = constants.len() as u16;
            constants.extend(place_table(form));
            first
        });
        Slot::Constant(first)
    }

    /// Begins an instruction that the whole warp does together.
    pub(super) fn together(&mut self, instruction: &Instruction, cost: super::timing::Cost, list: OperandList) {
        let members = self.constant(0xffff_ffff, false);
        self.start(instruction.span, cost);
        let last = self.last();
        last.instruction.kind = Kind::Collective;
        last.sources[3] = members;
        last.list = list;
    }

    fn matrix_space(&self, instruction: &Instruction) -> Option<Option<Space>> {
        Some(match instruction.state_space() {
            None => None,
            Some(StateSpace::Global) => Some(Space::Global),
            Some(StateSpace::Shared | StateSpace::SharedCta) => Some(Space::Shared),
            Some(_) => return None,
        })
    }

    /// `wmma.load` and `wmma.store`.
    fn matrix_access(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let is_load = instruction.has(M::Load);
        let (Some(sizes), Some(space)) = (shape(instruction), self.matrix_space(instruction)) else { return Ok(false) };
        let Some(element) = instruction.types.first().and_then(|name| element_of(*name)) else { return Ok(false) };
        let part = match () {
            () if is_load && instruction.has(M::A) => Part::A,
            () if is_load && instruction.has(M::B) => Part::B,
            () => Part::Accumulator,
        };
        let [m, n, k] = sizes;
        let may_be = match (part, element) {
            (Part::Accumulator, Element::F16) => wmma_has(Element::F16, sizes),
            (Part::Accumulator, Element::F32) => wmma_has(Element::F16, sizes) || wmma_has(Element::Tf32, sizes),
            (Part::Accumulator, Element::F64) => wmma_has(Element::F64, sizes),
            (Part::Accumulator, Element::S32) => {
                [Element::S8, Element::S4, Element::Bits].into_iter().any(|factor| wmma_has(factor, sizes))
            }
            (Part::Accumulator, _) => false,
            _ => wmma_has(element, sizes),
        };
        let by_column = instruction.has(M::Col);
        if !may_be || by_column == instruction.has(M::Row) {
            return Ok(false);
        }
        let is_factor = part != Part::Accumulator;
        let form = MatrixForm {
            family: Family::Wmma,
            a: element,
            b: element,
            c: element,
            d: element,
            m,
            n,
            k: if element == Element::Bits { k / 32 } else { k },
            a_by_column: by_column,
            b_by_column: by_column,
            saturates: false,
            conjunction: false,
            generation: Generation::Volta,
        };
        let registers = (form.elements(part) / element.per_register()) as usize;
        let (address_place, register_place) = if is_load { (1, 0) } else { (0, 1) };
        let (base, short, offset) = self.address(self.operand(instruction, address_place)?)?;
        let (rows, columns) = form.size(part);
        let stride = match instruction.operands.get(2) {
            // In words of 32 bits where those are the elements.
            Some(operand) => self.source(operand, T::U32)?,
            None => {
                let length = if by_column { rows } else { columns };
                self.constant(u64::from(length * if element == Element::Bits { 32 } else { 1 }), false)
            }
        };
        let fragment = self.operand(instruction, register_place)?;
        let slots = if is_load {
            self.fragment_destinations(fragment, element, registers)?
        } else {
            self.fragment_sources(fragment, element, registers)?
        };
        let chunks = if is_factor {
            factor_chunks(&form, part, element, by_column)
        } else {
            accumulator_chunks(&form, by_column)
        };
        // Addresses first: a load may overwrite the register of the base.
        let mut addresses: Vec<(usize, Slot)> = Vec::new();
        let mut placed = Vec::with_capacity(chunks.len());
        for (index, chunk) in chunks.iter().enumerate() {
            let known = addresses.iter().find_map(|(other, slot)| {
                let other = &chunks[*other];
                let distance = common_distance(&other.places, &chunk.places)?;
                (other.lines == chunk.lines).then_some((*slot, distance))
            });
            let (slot, distance) = match known {
                Some(known) => known,
                None => {
                    let slot = self.matrix_address(instruction, base, short, stride, chunk, element);
                    addresses.push((index, slot));
                    (slot, 0)
                }
            };
            placed.push((slot, offset.wrapping_add(distance * i64::from(element.bits()) / 8)));
        }
        let mut low_half = Slot::None;
        for (chunk, (address, offset)) in chunks.iter().zip(placed) {
            let form = MemoryForm { space, short_address: short, ..MemoryForm::NONE };
            if chunk.count * element.bits() < 32 {
                let (register, is_high) = (slots[(chunk.first / 2) as usize], chunk.first % 2 != 0);
                if !is_load {
                    self.half_store(instruction, form, address, offset, register, is_high);
                } else if is_high {
                    let high_half = self.half_load(instruction, form, address, offset);
                    self.pack_halves(instruction, [low_half, high_half], register);
                } else {
                    low_half = self.half_load(instruction, form, address, offset);
                }
            } else {
                let first = (chunk.first / element.per_register()) as usize;
                let count = (chunk.count / element.per_register()) as usize;
                self.chunk_access(instruction, form, address, offset, &slots[first..first + count], element);
            }
        }
        Ok(true)
    }

    fn matrix_address(
        &mut self,
        instruction: &Instruction,
        base: Slot,
        short: bool,
        stride: Slot,
        chunk: &Chunk,
        element: Element,
    ) -> Slot {
        let address = Slot::Register(self.new_register(if short { Width::One } else { Width::Two }));
        // The stride counts single bits: lines of whole words start at as many bits.
        let bits = if element == Element::Bits { 1 } else { element.bits() };
        let lines = self.constant_row(chunk.lines);
        let places = self.constant_row(chunk.places.map(|place| place * (element.bits() / bits)));
        self.start(instruction.span, (Pipe::Int, LatencyClass::IntegerMultiply, CountClass::Integer, 1));
        let last = self.last();
        last.sources[..4].copy_from_slice(&[base, stride, lines, places]);
        last.destinations[0] = address;
        last.instruction.immediate = bits;
        last.instruction.functions =
            if short { functions::<MatrixAddress<true>>() } else { functions::<MatrixAddress<false>>() };
        address
    }

    /// Loads or stores up to four registers.
    fn chunk_access(
        &mut self,
        instruction: &Instruction,
        form: MemoryForm,
        address: Slot,
        offset: i64,
        slots: &[Slot],
        element: Element,
    ) {
        let is_load = instruction.has(M::Load);
        let wide = element == Element::F64;
        self.access(instruction, form, address, offset, is_load);
        let last = self.last();
        last.instruction.memory.element_bytes = if wide { 8 } else { 4 };
        last.instruction.memory.elements = slots.len() as u8;
        last.instruction.memory.wide = [wide; 4];
        if is_load {
            last.destinations[..slots.len()].copy_from_slice(slots);
        } else {
            last.sources[1..1 + slots.len()].copy_from_slice(slots);
        }
    }

    /// Loads a half into a register of its own.
    fn half_load(&mut self, instruction: &Instruction, form: MemoryForm, address: Slot, offset: i64) -> Slot {
        let half = Slot::Register(self.new_register(Width::One));
        self.access(instruction, MemoryForm { element_bytes: 2, ..form }, address, offset, true);
        self.last().destinations[0] = half;
        half
    }

    /// Puts a register of two halves together.
    fn pack_halves(&mut self, instruction: &Instruction, halves: [Slot; 2], register: Slot) {
        self.start(instruction.span, (Pipe::Int, LatencyClass::Integer, CountClass::Other, 1));
        let last = self.last();
        last.sources[..2].copy_from_slice(&halves);
        last.destinations[0] = register;
        last.instruction.functions = functions::<Pack>();
        last.instruction.memory.elements = 2;
        last.instruction.immediate = 16;
    }

    /// Stores the high half of a register, or the low one.
    fn half_store(
        &mut self,
        instruction: &Instruction,
        form: MemoryForm,
        address: Slot,
        offset: i64,
        register: Slot,
        is_high: bool,
    ) {
        let mut stored = register;
        if is_high {
            stored = Slot::Register(self.new_register(Width::One));
            self.start(instruction.span, (Pipe::Int, LatencyClass::Integer, CountClass::Other, 1));
            let last = self.last();
            last.sources[0] = register;
            last.destinations[1] = stored;
            last.instruction.functions = functions::<Unpack>();
            last.instruction.memory.elements = 2;
            last.instruction.immediate = 16;
        }
        self.access(instruction, MemoryForm { element_bytes: 2, ..form }, address, offset, false);
        self.last().sources[1] = stored;
    }

    fn access(&mut self, instruction: &Instruction, form: MemoryForm, address: Slot, offset: i64, is_load: bool) {
        self.start(instruction.span, memory_access(form.space == Some(Space::Shared), is_load));
        let last = self.last();
        last.sources[0] = address;
        last.instruction.offset = offset;
        last.instruction.memory = form;
        last.instruction.kind = if is_load { Kind::Load } else { Kind::Store };
    }

    /// Matrices of `ldmatrix` and `stmatrix`: 8 by 8 of 16 bits; others are of later GPUs and not supported.
    fn matrix_count(&self, instruction: &Instruction) -> Option<usize> {
        let is_known = instruction.has(M::M8n8) && instruction.types[..] == [T::B16];
        let count = instruction.modifiers.iter().find_map(|modifier| match modifier {
            M::X1 => Some(1),
            M::X2 => Some(2),
            M::X4 => Some(4),
            _ => None,
        });
        count.filter(|_| is_known)
    }

    /// The access of the lanes that give addresses: the first eight for each matrix.
    fn row_access(
        &mut self,
        instruction: &Instruction,
        matrices: usize,
        address: (Slot, bool, i64),
        words: [Slot; 4],
        is_load: bool,
    ) -> Decoded<bool> {
        let Some(space) = self.matrix_space(instruction).filter(|space| *space != Some(Space::Global)) else {
            return Ok(false);
        };
        let form = MemoryForm { space, short_address: address.1, elements: 4, ..MemoryForm::NONE };
        let lanes = Slot::Register(self.new_register(Width::Predicate));
        if matrices < 4 {
            self.start(instruction.span, (Pipe::Free, LatencyClass::Zero, CountClass::Other, 1));
            let last = self.last();
            last.instruction.functions = functions::<LanesOf>();
            last.instruction.immediate = (1 << (8 * matrices)) - 1;
            last.predicate_destinations[0] = lanes;
            last.has_own_guard = true;
            if let Some(guard) = instruction.guard {
                last.predicate_sources[0] = Slot::Register(guard.register.0);
                last.instruction.predicate_flips[0] = if guard.negated { u32::MAX } else { 0 };
            }
        }
        self.access(instruction, form, address.0, address.2, is_load);
        let last = self.last();
        if is_load {
            last.destinations = words;
        } else {
            last.sources[1..].copy_from_slice(&words);
        }
        if let (true, Slot::Register(lanes)) = (matrices < 4, lanes) {
            last.guard = Some(lanes);
            last.has_own_guard = true;
        }
        Ok(true)
    }

    fn load_matrices(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let Some(count) = self.matrix_count(instruction) else { return Ok(false) };
        let address = self.address(self.operand(instruction, 1)?)?;
        let destinations = self.fragment_destinations(self.operand(instruction, 0)?, Element::S32, count)?;
        let words = [(); 4].map(|()| Slot::Register(self.new_register(Width::One)));
        if !self.row_access(instruction, count, address, words, true)? {
            return Ok(false);
        }
        let exchange = (Pipe::Free, LatencyClass::Zero, CountClass::Other, 1);
        self.together(instruction, exchange, OperandList { destinations, sources: words.to_vec() });
        let last = self.last();
        last.instruction.functions = functions::<DistributeMatrices>();
        last.instruction.immediate = u32::from(instruction.has(M::Trans));
        last.instruction.memory.elements = count as u8;
        Ok(true)
    }

    fn store_matrices(&mut self, instruction: &Instruction) -> Decoded<bool> {
        let Some(count) = self.matrix_count(instruction) else { return Ok(false) };
        let address = self.address(self.operand(instruction, 0)?)?;
        let sources = self.fragment_sources(self.operand(instruction, 1)?, Element::S32, count)?;
        let words = [(); 4].map(|()| Slot::Register(self.new_register(Width::One)));
        let exchange = (Pipe::Free, LatencyClass::Zero, CountClass::Other, 1);
        self.together(instruction, exchange, OperandList { destinations: words.to_vec(), sources });
        let last = self.last();
        last.instruction.functions = functions::<CollectMatrices>();
        last.instruction.immediate = u32::from(instruction.has(M::Trans));
        last.instruction.memory.elements = count as u8;
        self.row_access(instruction, count, address, words, false)
    }

    fn transposition(&mut self, instruction: &Instruction) -> Decoded<bool> {
        if !instruction.has(M::Trans) || !instruction.has(M::M8n8) || instruction.types[..] != [T::B16] {
            return Ok(false);
        }
        let source = self.source(self.operand(instruction, 1)?, T::B32)?;
        let destination = self.destination(self.operand(instruction, 0)?)?;
        self.together(instruction, cost(instruction), OperandList::default());
        let last = self.last();
        last.sources[0] = source;
        last.destinations[0] = destination;
        last.instruction.functions = functions::<TransposeMatrix>();
        Ok(true)
    }
}
