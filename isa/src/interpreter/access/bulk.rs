//! Copies of many bytes, which a unit beside the cores makes: `cp.async.bulk` and its kin, `UBLKCP` and `UTMALDG` and theirs.
//!
//! The values are copied when the instruction issues: a program that waits as it must sees no difference. The SM makes the accesses to device
//! memory that the step describes, and tells the barrier or the group when they are done.

use super::asynchronous::BARRIER_BYTES;
use super::memory::{finish, problem};
use super::tensor_maps;
use crate::cluster::{OFFSET_BITS, rank_of};
use crate::execution::{
    AccessKind, AtomicFunction, AtomicType, BulkCopy, BulkEnd, CacheOperator, Effect, LaneMemory, LaneValues,
    MemoryAccess, MemoryProblem, PARAMETER_WINDOW, SHARED_WINDOW, Space, StepContext, WINDOW_BYTES, value_of_bytes,
};
use crate::interpreter::registers::{Lane, cluster};
use crate::lanes::{LANES, lanes};
use crate::operation::operand::Source;
use crate::operation::{BulkForm, BulkOperation, Instruction, bulk_operand as place};
use crate::program::Program;
use crate::warp::WarpState;
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace};
use balar_protocol::tensor_map::{BoxRow, ElementType, MOST_DIMENSIONS, TensorMap, swizzled};

/// Addresses and sizes of copies are multiples of this many bytes (PTX ISA).
const UNIT: u32 = 16;
/// Bytes of a multicast or a convolution's register that the upper half begins behind.
const UPPER_HALF: u32 = 16;

/// A box begins at a multiple of so many bytes of shared memory, a tensor map at one of device memory (PTX ISA).
const BOX_ALIGNMENT: u32 = 128;
const MAP_ALIGNMENT: u32 = 64;
/// The exponent of a single.
const EXPONENT: u32 = 0x7f80_0000;

/// The offset that an address in shared memory has beside a rank.
const fn offset_of(address: u32) -> u32 {
    address & OFFSET_BITS as u32
}

/// What one lane asks for.
struct Request {
    lane: u8,
    /// Offset in the CTA's shared memory.
    shared: u32,
    /// Offset of the barrier.
    barrier: u32,
    /// Device address, address of the tensor map, or an offset in shared memory.
    other: u64,
    bytes: u32,
    coordinates: [i32; MOST_DIMENSIONS],
    offsets: [u16; 3],
    /// CTAs of the cluster, a bit each.
    ctas: u16,
}

/// The operands of an instruction.
struct Operands<'a> {
    program: &'a Program,
    instruction: &'a Instruction,
    warp: &'a WarpState,
    lane: usize,
}

impl Operands<'_> {
    fn source(&self, number: usize) -> Source {
        let row = usize::from(self.instruction.operand_list) + number / LANES;
        Source(self.program.constants[row].0[number % LANES] as u16)
    }

    fn word(&self, number: usize) -> u32 {
        u32::read(&self.warp.registers, &self.warp.constants.0, self.source(number))[self.lane]
    }

    fn wide(&self, number: usize) -> u64 {
        let (registers, constants) = (&self.warp.registers, &self.warp.constants.0);
        match self.instruction.memory.pairs {
            true => u64::read_pair(registers, constants, self.source(number))[self.lane],
            false => u64::read(registers, constants, self.source(number))[self.lane],
        }
    }

    /// An address, which is followed by what is added to it; `number` is its place among the three.
    fn address(&self, place: usize, number: usize) -> u64 {
        let offset = self.word(place + 1) as i32;
        if self.instruction.memory.wide[number] {
            self.wide(place).wrapping_add(i64::from(offset) as u64)
        } else {
            u64::from(self.word(place).wrapping_add(offset as u32))
        }
    }

    /// An address in shared memory: an offset in it, or a generic address.
    fn shared(&self, place: usize, number: usize) -> u32 {
        let address = self.address(place, number);
        let within = address.wrapping_sub(SHARED_WINDOW);
        if within < WINDOW_BYTES { within as u32 } else { address as u32 }
    }

    fn request(&self, form: &BulkForm) -> Request {
        let is_machine = self.instruction.memory.pairs;
        let sends = matches!(form.operation, BulkOperation::Send | BulkOperation::SendReduce);
        let is_wide = self.instruction.memory.wide[2];
        let mut request = Request {
            lane: self.lane as u8,
            shared: self.shared(place::SHARED, 0),
            barrier: self.shared(place::BARRIER, 1),
            other: match sends {
                true => u64::from(self.shared(place::OTHER, 2)),
                false if is_wide => self.address(place::OTHER, 2),
                false => u64::from(self.word(place::OTHER)),
            },
            bytes: self.word(place::BYTES),
            coordinates: std::array::from_fn(|dimension| self.word(place::COORDINATES + dimension) as i32),
            offsets: std::array::from_fn(|dimension| self.word(place::OFFSETS + dimension) as u16),
            ctas: self.word(place::CTAS) as u16,
        };
        if is_machine {
            if form.dimensions == 0 {
                request.ctas = (request.bytes >> UPPER_HALF) as u16;
                request.bytes = (request.bytes & 0xffff) * UNIT;
            } else {
                let packed = self.word(place::OFFSETS);
                request.ctas = (packed >> UPPER_HALF) as u16;
                request.offsets = unpacked(form.dimensions, packed);
            }
        }
        request
    }
}

/// What is added to the pixels of a convolution, as machine code has it in the lower half of a register (own finding).
fn unpacked(dimensions: u8, packed: u32) -> [u16; 3] {
    let part = |shift: u32, bits: u32| (packed >> shift & ((1 << bits) - 1)) as u16;
    match dimensions {
        3 => [part(0, 16), 0, 0],
        4 => [part(0, 8), part(8, 8), 0],
        _ => [part(0, 5), part(5, 5), part(10, 5)],
    }
}

/// Runs one instruction, for one lane: of PTX each lane copies on its own, and the rest repeat it; in machine code it belongs to the warp.
pub(in crate::interpreter) fn run(
    program: &Program,
    instruction: &Instruction,
    form: &BulkForm,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    (access.mask, access.space, access.cache) = (0, Space::Global, CacheOperator::L2Only);
    if mask == 0 {
        warp.control.advance();
        return Effect::Plain;
    }
    let lane = mask.trailing_zeros() as usize;
    let request = Operands { program, instruction, warp, lane }.request(form);
    let copy = Copy { form, instruction, request, warp };
    let ended = copy.run(context, access);
    match ended {
        Ok(end) => {
            let done = if instruction.memory.pairs { mask } else { 1 << lane };
            finish(warp, mask, done);
            Effect::Bulk(end)
        }
        Err(error) => problem(error),
    }
}

struct Copy<'a> {
    form: &'a BulkForm,
    instruction: &'a Instruction,
    request: Request,
    warp: &'a WarpState,
}

/// What is copied: rows that follow each other in shared memory.
struct Shape {
    rows: Vec<BoxRow>,
    /// The bytes of all rows.
    bytes: u32,
    /// The bytes from the first row to the end of the last one in shared memory, where there may be room between rows.
    extent: u32,
    /// The pattern in shared memory.
    swizzle: u8,
    /// The type of its elements, where it is part of a tensor.
    element: Option<ElementType>,
    /// Elements outside the tensor are no zeros.
    fills_with_nan: bool,
}

impl Copy<'_> {
    fn run(&self, context: &mut StepContext, access: &mut MemoryAccess) -> Result<BulkCopy, MemoryProblem> {
        use BulkOperation as O;
        let shape = self.shape(context)?;
        let mut function = AtomicFunction {
            operation: self.instruction.memory.operation,
            data_type: self.instruction.memory.data_type,
        };
        if let Some(element) = shape.element {
            function.data_type = atomic_type(element);
        }
        if matches!(self.form.operation, O::Load | O::Send | O::SendReduce) {
            self.check_barrier(context)?;
        }
        // Which CTAs of the cluster the bytes go to, a bit for each rank.
        let own = 1 << (self.warp.registers.cluster[cluster::RANK] % 16);
        let ranks = match self.form.operation {
            O::Load if self.form.is_multicast => self.request.ctas,
            O::Load | O::Send | O::SendReduce => 1 << (rank_of(self.request.shared.into()) % 16),
            O::Store | O::Reduce | O::Prefetch => own,
        };
        let end = match self.form.operation {
            O::Load | O::Send | O::SendReduce if ranks & own != 0 => {
                BulkEnd::Barrier { address: offset_of(self.request.barrier) }
            }
            O::Store | O::Reduce => BulkEnd::Group,
            O::Load | O::Send | O::SendReduce | O::Prefetch => BulkEnd::Nothing,
        };
        let (mut values, mut old) = (LaneValues::default(), LaneValues::default());
        match self.form.operation {
            O::Prefetch => self.each_access(&shape, AccessKind::Load, context, access, |_, _, _| Ok(()))?,
            O::Load => {
                let mut bytes = shape.outside();
                self.each_access(&shape, AccessKind::Load, context, access, |memory, part, places| {
                    memory.load(part, &mut values)?;
                    for (lane, place) in lanes(part.mask).zip(places) {
                        let place = *place as usize;
                        let size = usize::from(part.bytes);
                        bytes[place..place + size].copy_from_slice(&values.get(lane).to_le_bytes()[..size]);
                    }
                    Ok(())
                })?;
                shape.round(&mut bytes);
                self.deliver(context, &shape, &bytes, (ranks, own))?;
            }
            O::Store | O::Reduce => {
                let bytes = self.read_shared(context, &shape, self.own(self.request.shared)?)?;
                let is_store = self.form.operation == O::Store;
                let kind = if is_store { AccessKind::Store } else { AccessKind::Reduction };
                self.each_access(&shape, kind, context, access, |memory, part, places| {
                    for (lane, place) in lanes(part.mask).zip(places) {
                        let (place, size) = (*place as usize, usize::from(part.bytes));
                        values.set(lane, value_of_bytes(&bytes[place..place + size]));
                    }
                    if is_store {
                        return memory.store(part, &values);
                    }
                    memory.atomic(part, function, &values, &LaneValues::default(), &mut old).map(|_| ())
                })?;
            }
            O::Send => {
                let bytes = self.read_shared(context, &shape, self.own(self.request.other as u32)?)?;
                self.deliver(context, &shape, &bytes, (ranks, own))?;
            }
            O::SendReduce => {
                let to = self.own(self.request.shared)?;
                let operands = self.read_shared(context, &shape, self.own(self.request.other as u32)?)?;
                let mut bytes = self.read_shared(context, &shape, to)?;
                let width = usize::from(function.data_type.bytes());
                for (memory, operand) in bytes.chunks_exact_mut(width).zip(operands.chunks_exact(width)) {
                    function.update(memory, value_of_bytes(operand), 0);
                }
                self.write_shared(context, &shape, to, &bytes)?;
            }
        }
        Ok(BulkCopy { end, bytes: shape.bytes, shared: offset_of(self.request.shared) })
    }

    /// What the request asks for, as the tensor map says.
    fn shape(&self, context: &mut StepContext) -> Result<Shape, MemoryProblem> {
        let request = &self.request;
        if self.form.dimensions == 0 {
            let bytes = request.bytes;
            let addresses = [u64::from(request.shared), request.other, u64::from(bytes)];
            if let Some(address) = addresses.into_iter().find(|address| !address.is_multiple_of(UNIT.into())) {
                return Err(self.misaligned(address, UNIT, FaultSpace::Global));
            }
            let row = BoxRow { place: 0, bytes, first: 0, end: bytes, address: request.other };
            let rows = vec![row];
            return Ok(Shape { rows, bytes, extent: bytes, swizzle: 0, element: None, fills_with_nan: false });
        }
        let map = self.map(context)?;
        if map.dimensions != self.form.dimensions || map.convolution.is_some() != self.form.is_convolution {
            return Err(self.refuse("a copy of a box of another kind than its tensor map".to_owned()));
        }
        if map.interleave != 0 {
            return Err(self.refuse("a copy of a tensor whose channels are interleaved".to_owned()));
        }
        if self.form.operation != BulkOperation::Prefetch && !request.shared.is_multiple_of(BOX_ALIGNMENT) {
            return Err(self.misaligned(request.shared.into(), BOX_ALIGNMENT, FaultSpace::Shared));
        }
        let rows = map.rows(request.coordinates, request.offsets);
        if let Some(row) = rows.first().filter(|row| !row.bytes.is_multiple_of(UNIT)) {
            return Err(self.refuse(format!("a box with rows of {} bytes, which are no multiple of {UNIT}", row.bytes)));
        }
        Ok(Shape {
            bytes: rows.iter().map(|row| row.bytes).sum(),
            extent: rows.last().map_or(0, |row| row.place + row.bytes),
            rows,
            swizzle: map.swizzle,
            element: Some(map.element),
            fills_with_nan: map.fills_with_nan,
        })
    }

    /// The barrier has to be a word of 8 bytes of shared memory. CTAs of a cluster have the same amount of it.
    fn check_barrier(&self, context: &mut StepContext) -> Result<(), MemoryProblem> {
        let (place, bytes) = (offset_of(self.request.barrier), u32::from(BARRIER_BYTES));
        let (address, access, space) = (place.into(), FaultAccess::Atomic, FaultSpace::Shared);
        let cause = if !place.is_multiple_of(bytes) {
            FaultCause::MisalignedAddress { address, bytes, access, space }
        } else if (place + bytes) as usize > context.memory.shared().len() {
            FaultCause::IllegalAddress { address, bytes, access, space }
        } else {
            return Ok(());
        };
        Err(MemoryProblem::Fault { lane: self.request.lane, cause })
    }

    /// Reads the tensor map, which is in device memory or among the parameters.
    fn map(&self, context: &mut StepContext) -> Result<TensorMap, MemoryProblem> {
        let address = self.request.other;
        // Compilers align parameters in the constant bank, in which the first one is at no multiple of 64.
        let is_parameter = address.wrapping_sub(PARAMETER_WINDOW) < WINDOW_BYTES;
        if !is_parameter && !address.is_multiple_of(MAP_ALIGNMENT.into()) {
            return Err(self.misaligned(address, MAP_ALIGNMENT, FaultSpace::Global));
        }
        let bytes =
            tensor_maps::read(context.memory, &self.warp.registers, address).map_err(|error| self.of_lane(error))?;
        TensorMap::decode(&bytes).ok_or_else(|| self.refuse(format!("{address:#x} is no address of a tensor map")))
    }

    /// Calls `access` for the accesses to device memory that the rows need, each with the places of its lanes in the copy. The step describes
    /// all of them.
    fn each_access(
        &self,
        shape: &Shape,
        kind: AccessKind,
        context: &mut StepContext,
        described: &mut MemoryAccess,
        mut access: impl FnMut(&mut dyn LaneMemory, &MemoryAccess, &[u32]) -> Result<(), MemoryProblem>,
    ) -> Result<(), MemoryProblem> {
        let mut is_first = true;
        let mut make = |part: &Part, bytes: u8| -> Result<(), MemoryProblem> {
            let mut whole = MemoryAccess {
                kind,
                bytes,
                cache: CacheOperator::L2Only,
                mask: u32::MAX >> (LANES - part.count),
                ..MemoryAccess::default()
            };
            whole.addresses = part.addresses;
            access(context.memory, &whole, &part.places[..part.count]).map_err(|error| self.of_lane(error))?;
            if std::mem::take(&mut is_first) {
                described.clone_from(&whole);
            } else {
                context.memory.touch(&whole);
            }
            Ok(())
        };
        // Pieces of each power of two, largest last: as many as an access has lanes are one.
        let mut parts: [Part; 5] = Default::default();
        for row in &shape.rows {
            let mut at = row.first;
            while at < row.end {
                let address = row.address.wrapping_add(u64::from(at - row.first));
                let power = address.trailing_zeros().min((row.end - at).ilog2()).min(UNIT.ilog2());
                let part = &mut parts[power as usize];
                (part.addresses[part.count], part.places[part.count]) = (address, row.place + at);
                part.count += 1;
                if part.count == LANES {
                    make(part, 1 << power)?;
                    part.count = 0;
                }
                at += 1 << power;
            }
        }
        for (power, part) in parts.iter().enumerate().filter(|(_, part)| part.count != 0) {
            make(part, 1 << power)?;
        }
        Ok(())
    }

    /// The offset of an address in the CTA's own shared memory.
    fn own(&self, address: u32) -> Result<u32, MemoryProblem> {
        if rank_of(address.into()) == self.warp.registers.cluster[cluster::RANK] {
            Ok(offset_of(address))
        } else {
            Err(self
                .refuse("a copy out of the shared memory of another CTA, or one that combines values there".to_owned()))
        }
    }

    /// Writes what is copied to shared memory: of the CTA itself now, of others of its cluster when the copy is done.
    fn deliver(
        &self,
        context: &mut StepContext,
        shape: &Shape,
        bytes: &[u8],
        (ranks, own): (u16, u16),
    ) -> Result<(), MemoryProblem> {
        let (to, barrier) = (offset_of(self.request.shared), offset_of(self.request.barrier));
        if ranks & own != 0 {
            self.write_shared(context, shape, to, bytes)?;
        }
        let others = ranks & !own;
        if others == 0 {
            return Ok(());
        }
        // A pattern changes places within lines of 128 bytes alone.
        let has_room = shape.extent != shape.bytes;
        if has_room || shape.swizzle != 0 && !shape.bytes.is_multiple_of(BOX_ALIGNMENT) {
            return Err(self.refuse("a box of parts of lines with a pattern, for another CTA".to_owned()));
        }
        let mut sent = vec![0; bytes.len()];
        for (place, from) in (0..).step_by(UNIT as usize).zip(bytes.chunks(UNIT as usize)) {
            let at = (swizzled(shape.swizzle, to + place) - to) as usize;
            sent[at..at + from.len()].copy_from_slice(from);
        }
        context.memory.send(others, to, barrier, &sent).map_err(|error| self.of_lane(error))
    }

    /// The CTA's shared memory, which has as many bytes from this address on as are copied. A pattern may lead a little further.
    fn shared<'m>(
        &self,
        context: &'m mut StepContext,
        shape: &Shape,
        address: u32,
        access: FaultAccess,
    ) -> Result<&'m mut [u8], MemoryProblem> {
        let shared = context.memory.shared();
        match address.checked_add(shape.extent) {
            Some(end) if end as usize <= shared.len() => Ok(shared),
            _ => Err(self.illegal(address.into(), access, FaultSpace::Shared)),
        }
    }

    fn read_shared(&self, context: &mut StepContext, shape: &Shape, address: u32) -> Result<Vec<u8>, MemoryProblem> {
        let shared = self.shared(context, shape, address, FaultAccess::Load)?;
        let mut bytes = vec![0; shape.extent as usize];
        for place in shape.units() {
            let from = swizzled(shape.swizzle, address + place) as usize;
            let unit = shared.get(from..from + UNIT as usize).ok_or_else(|| self.beyond(from, FaultAccess::Load))?;
            bytes[place as usize..][..UNIT as usize].copy_from_slice(unit);
        }
        Ok(bytes)
    }

    fn write_shared(
        &self,
        context: &mut StepContext,
        shape: &Shape,
        address: u32,
        bytes: &[u8],
    ) -> Result<(), MemoryProblem> {
        let shared = self.shared(context, shape, address, FaultAccess::Store)?;
        for place in shape.units() {
            let to = swizzled(shape.swizzle, address + place) as usize;
            let to = shared.get_mut(to..to + UNIT as usize).ok_or_else(|| self.beyond(to, FaultAccess::Store))?;
            to.copy_from_slice(&bytes[place as usize..][..UNIT as usize]);
        }
        Ok(())
    }

    /// A pattern leads behind the end of shared memory.
    fn beyond(&self, place: usize, access: FaultAccess) -> MemoryProblem {
        self.illegal(place as u64, access, FaultSpace::Shared)
    }

    fn illegal(&self, address: u64, access: FaultAccess, space: FaultSpace) -> MemoryProblem {
        let cause = FaultCause::IllegalAddress { address, bytes: UNIT, access, space };
        MemoryProblem::Fault { lane: self.request.lane, cause }
    }

    fn misaligned(&self, address: u64, bytes: u32, space: FaultSpace) -> MemoryProblem {
        let cause = FaultCause::MisalignedAddress { address, bytes, access: FaultAccess::Load, space };
        MemoryProblem::Fault { lane: self.request.lane, cause }
    }

    fn refuse(&self, what: String) -> MemoryProblem {
        MemoryProblem::Fault { lane: self.request.lane, cause: FaultCause::Unsupported(what) }
    }

    /// A problem of an access is one of the lane that asked for the copy.
    fn of_lane(&self, error: MemoryProblem) -> MemoryProblem {
        error.of_lane(self.request.lane.into())
    }
}

/// Pieces of one size that become an access.
#[derive(Default)]
struct Part {
    count: usize,
    addresses: [u64; LANES],
    places: [u32; LANES],
}

impl Shape {
    /// Where its units of 16 bytes are, which rows are whole numbers of.
    fn units(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().flat_map(|row| (row.place..row.place + row.bytes).step_by(UNIT as usize))
    }

    /// The bytes in shared memory, where no element is in the tensor.
    fn outside(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.extent as usize];
        if let (Some(element), true) = (self.element, self.fills_with_nan) {
            let fill = element.not_a_number().to_le_bytes();
            let width = element.bytes() as usize;
            bytes.chunks_mut(width).for_each(|to| to.copy_from_slice(&fill[..width]));
        }
        bytes
    }

    /// Rounds elements on their way into shared memory, where their type says so: to the nearest number of `tf32`, halves away from zero, as
    /// `cvt.rna` does (an assumption: CUDA says that they are rounded, not how).
    fn round(&self, bytes: &mut [u8]) {
        let flushes = match self.element {
            Some(ElementType::Tf32) => false,
            Some(ElementType::Tf32Flushed) => true,
            _ => return,
        };
        for element in bytes.chunks_exact_mut(4) {
            let bits = u32::from_le_bytes([element[0], element[1], element[2], element[3]]);
            let is_number = bits & EXPONENT != EXPONENT;
            let rounded = if is_number { bits.wrapping_add(1 << 12) & !0x1fff } else { bits };
            let flushed = if flushes && bits & EXPONENT == 0 { bits & 1 << 31 } else { rounded };
            element.copy_from_slice(&flushed.to_le_bytes());
        }
    }
}

/// The type that a reduction of a tensor's elements has.
fn atomic_type(element: ElementType) -> AtomicType {
    match element {
        ElementType::U8 | ElementType::U16 => AtomicType::B16,
        ElementType::U32 => AtomicType::U32,
        ElementType::S32 => AtomicType::S32,
        ElementType::U64 => AtomicType::U64,
        ElementType::S64 => AtomicType::S64,
        ElementType::F16 => AtomicType::F16,
        ElementType::Bf16 => AtomicType::Bf16,
        ElementType::F32 | ElementType::Tf32 => AtomicType::F32,
        ElementType::F32Flushed | ElementType::Tf32Flushed => AtomicType::F32Flushed,
        ElementType::F64 => AtomicType::F64,
    }
}
