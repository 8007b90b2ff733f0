//! The registers, the predicates and the convergence barriers that an instruction reads and writes.
//!
//! The slots of an encoding say where an operand lies, [`Widths`] how many registers it has.

use super::aspect::Aspect;
use super::instruction::Instruction;
use super::opcode::Opcode;
use super::slot::{AddressForm, Place, Role, Slot, SourcePlace, SourceSlot, UNIFORM_FLAG};
use super::view::PredicateOperand;
use super::word::{Field, TRUE_PREDICATE, ZERO_REGISTER, ZERO_UNIFORM_REGISTER};
use smallvec::SmallVec;

/// Adjacent registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisterRange {
    /// The first.
    pub first: u8,
    /// How many.
    pub count: u8,
}

impl RegisterRange {
    /// Their numbers. Registers beyond the last one, which no compiler names, are left out.
    pub fn registers(self) -> impl Iterator<Item = u8> {
        (self.first..=u8::MAX).take(usize::from(self.count))
    }
}

/// Ranges of registers; most instructions have few.
pub type RegisterRanges = SmallVec<[RegisterRange; 4]>;

/// The operands that an instruction reads and writes. RZ, URZ and PT are never among them. Where the guard is not PT, a written register
/// may as well be left as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// General registers that are read.
    pub reads: RegisterRanges,
    /// General registers that are written.
    pub writes: RegisterRanges,
    /// Predicates that are read, the guard included: bit `i` is `Pi`.
    pub predicate_reads: u8,
    /// Predicates that are written.
    pub predicate_writes: u8,
    /// Uniform registers that are read.
    pub uniform_reads: RegisterRanges,
    /// Uniform registers that are written.
    pub uniform_writes: RegisterRanges,
    /// Uniform predicates that are read, the guard included.
    pub uniform_predicate_reads: u8,
    /// Uniform predicates that are written.
    pub uniform_predicate_writes: u8,
    /// Convergence barriers that are read: bit `i` is `Bi`.
    pub barrier_reads: u16,
    /// Convergence barriers that are written.
    pub barrier_writes: u16,
}

impl Uses {
    fn read(&mut self, register: u64, count: u8) {
        push(&mut self.reads, register as u8, count, ZERO_REGISTER);
    }

    fn write(&mut self, register: u64, count: u8) {
        push(&mut self.writes, register as u8, count, ZERO_REGISTER);
    }

    fn read_uniform(&mut self, register: u64, count: u8) {
        push(&mut self.uniform_reads, register as u8, count, ZERO_UNIFORM_REGISTER);
    }

    fn read_predicate(&mut self, predicate: PredicateOperand) {
        let read = if predicate.is_uniform { &mut self.uniform_predicate_reads } else { &mut self.predicate_reads };
        *read |= predicate_bit(predicate.number);
    }

    fn write_predicate(&mut self, predicate: PredicateOperand) {
        let written =
            if predicate.is_uniform { &mut self.uniform_predicate_writes } else { &mut self.predicate_writes };
        *written |= predicate_bit(predicate.number);
    }

    fn write_uniform(&mut self, register: u64, count: u8) {
        push(&mut self.uniform_writes, register as u8, count, ZERO_UNIFORM_REGISTER);
    }
}

fn push(ranges: &mut RegisterRanges, first: u8, count: u8, zero: u8) {
    if first != zero && count != 0 {
        ranges.push(RegisterRange { first, count });
    }
}

/// The bit of a predicate; none of PT.
fn predicate_bit(number: u8) -> u8 {
    if number == TRUE_PREDICATE { 0 } else { 1 << number }
}

/// How many registers each operand has; uniform ones alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Widths {
    /// The destination in bits 16 to 23.
    destination: u8,
    /// The second destination, in bits 64 to 71.
    second_destination: u8,
    /// The source in place A. Of addresses: the address in a general register.
    a: u8,
    /// The second source: role B, or bits 32 to 39.
    b: u8,
    /// The third: role C, or bits 64 to 71.
    c: u8,
    /// A fourth one in bits 40 to 47.
    d: u8,
}

impl Widths {
    /// One register each, as most instructions have.
    const SINGLE: Widths = Widths { destination: 1, second_destination: 1, a: 1, b: 1, c: 1, d: 1 };
    /// Pairs throughout.
    const PAIRS: Widths = Widths { destination: 2, second_destination: 2, a: 2, b: 2, c: 2, d: 2 };
    /// A 64-bit place to go to.
    const WIDE_TARGET: Widths = Widths { a: 2, ..Widths::SINGLE };

    /// The widths of an instruction's operands.
    fn of(sass: &Instruction) -> Widths {
        let single = Widths::SINGLE;
        match sass.opcode() {
            Opcode::ImadWide | Opcode::UimadWide => Widths { destination: 2, c: 2, ..single },
            // The addend of the high half of a product has a low half too.
            Opcode::ImadHigh => Widths { c: 2, ..single },
            Opcode::Dfma | Opcode::Dadd | Opcode::Dmul | Opcode::Dsetp => Widths::PAIRS,
            Opcode::Uiadd3 if sass.has(Aspect::Wide) => Widths::PAIRS,
            Opcode::Clmad => Widths::PAIRS,
            Opcode::Rpcmov if sass.text(Aspect::Half) == "Rpc" => Widths::PAIRS,
            Opcode::I2f | Opcode::F2i | Opcode::F2f => {
                let [destination, b] = [Aspect::ResultType, Aspect::SourceType].map(|aspect| converted(sass, aspect));
                Widths { destination, b, ..single }
            }
            Opcode::Frnd => {
                let width = converted(sass, Aspect::SourceType);
                Widths { destination: width, b: width, ..single }
            }
            Opcode::Match => Widths { a: pair_if(sass.has(Aspect::Wide)), ..single },
            Opcode::Cs2r => Widths { destination: pair_if(sass.text(Aspect::Size) != ".32"), ..single },
            Opcode::Lepc | Opcode::Ulepc => Widths { destination: 2, ..single },
            Opcode::Brx | Opcode::Jmx | Opcode::Brxu | Opcode::Jmxu | Opcode::Call | Opcode::Ret => Widths::WIDE_TARGET,
            Opcode::Uldc | Opcode::Ldc | Opcode::Lds | Opcode::Ldl => Widths { destination: sized(sass), ..single },
            Opcode::Sts | Opcode::Stl => Widths { b: sized(sass), ..single },
            Opcode::Ldg | Opcode::Ld => Widths { destination: sized(sass), a: address(sass), ..single },
            Opcode::Stg | Opcode::St => Widths { a: address(sass), b: sized(sass), c: sized(sass), ..single },
            Opcode::Atoms => Widths { a: 1, ..typed(sass) },
            Opcode::Atom | Opcode::Atomg | Opcode::Red | Opcode::Redg | Opcode::Ldgmc => {
                Widths { a: address(sass), ..typed(sass) }
            }
            Opcode::Cctl | Opcode::Qspc => Widths { a: address(sass), ..single },
            Opcode::Ldsm => Widths { destination: 1 << sass.value(Aspect::Count), ..single },
            Opcode::Stsm => Widths { b: 1 << sass.value(Aspect::Count), ..single },
            Opcode::Stas => Widths { a: 2, b: sized(sass), ..single },
            Opcode::Redas => Widths { a: 2, ..typed(sass) },
            Opcode::Syncs => barrier(sass),
            Opcode::HmmaStep | Opcode::Hmma | Opcode::Imma | Opcode::Bmma | Opcode::Dmma | Opcode::Qmma => {
                matrices(sass)
            }
            Opcode::Hgmma | Opcode::Igmma | Opcode::Bgmma | Opcode::Qgmma => matrices_of_group(sass),
            Opcode::Ublkcp
            | Opcode::Ublkred
            | Opcode::Ublkpf
            | Opcode::Utmaldg
            | Opcode::Utmastg
            | Opcode::Utmaredg
            | Opcode::Utmapf
            | Opcode::Utmacctl => bulk(sass),
            Opcode::Tex | Opcode::Tld | Opcode::Tld4 | Opcode::Txd | Opcode::Txq => texture(sass),
            Opcode::Suld => Widths { destination: sized(sass), a: texel(sass), ..single },
            Opcode::Sust => Widths { a: texel(sass), b: stored_to_surface(sass), ..single },
            Opcode::Sured => Widths { a: texel(sass), c: 1, ..typed(sass) },
            _ => single,
        }
    }
}

const fn pair_if(is_pair: bool) -> u8 {
    if is_pair { 2 } else { 1 }
}

/// Registers of a converted value, by its type.
fn converted(sass: &Instruction, aspect: Aspect) -> u8 {
    pair_if(matches!(sass.text(aspect), ".F64" | ".U64" | ".S64"))
}

/// Registers of a loaded or stored value: `.64`, then the two kinds of 128 bits.
fn sized(sass: &Instruction) -> u8 {
    match sass.text(Aspect::Size) {
        ".64" => 2,
        ".128" | ".U.128" => 4,
        _ => 1,
    }
}

/// Registers of an atomic's operands.
fn typed(sass: &Instruction) -> Widths {
    let width = match sass.text(Aspect::Type) {
        ".64" | ".U64" | ".S64" | ".F64.RN" | ".SD32" => 2,
        ".F16x4.RN" | ".BF16x4.RN" | ".F32x2.FTZ.RN" | ".F32x2.RN" => 2,
        ".128" | ".F16x8.RN" | ".BF16x8.RN" | ".F32x4.FTZ.RN" | ".F32x4.RN" => 4,
        _ => 1,
    };
    Widths { destination: width, b: width, c: width, ..Widths::SINGLE }
}

/// Registers of an address of 64 bits (`.E`) or 32.
fn address(sass: &Instruction) -> u8 {
    pair_if(sass.has(Aspect::Extended))
}

/// Registers of the operands of a barrier in shared memory, which has 64 bits.
fn barrier(sass: &Instruction) -> Widths {
    let b = match sass.text(Aspect::Operation) {
        ".EXCH" => 2,
        // The new value is behind the one that is compared with.
        ".CAS" => 4,
        _ => 1,
    };
    Widths { destination: 2, b, ..Widths::SINGLE }
}

/// Registers of the fragments that a lane has of a product of matrices.
fn matrices(sass: &Instruction) -> Widths {
    const LANES: u32 = 32;
    let of = |destination, a, b, c| Widths { destination, a, b, c, ..Widths::SINGLE };
    let bits = match sass.opcode() {
        // A step of Volta's 8x8x4.
        Opcode::HmmaStep => return of(2, 2, 2, 2),
        // Turing's texts say more than the shape.
        Opcode::Imma | Opcode::Bmma if sass.encoding.since < 80 => return of(2, 1, 1, 2),
        Opcode::Dmma => 64,
        Opcode::Hmma if sass.text(Aspect::SourceType) == ".TF32" => 32,
        Opcode::Hmma => 16,
        Opcode::Imma if matches!(sass.text(Aspect::FirstType), ".U4" | ".S4") => 4,
        Opcode::Bmma => 1,
        _ => 8,
    };
    let accumulated = match sass.opcode() {
        Opcode::Dmma => 64,
        Opcode::Hmma | Opcode::Qmma if sass.text(Aspect::ResultType) == ".F16" => 16,
        _ => 32,
    };
    let (rows, depth) = sizes(sass.text(Aspect::Shape));
    let columns = 8;
    let registers = |elements: u32, bits: u32| (elements * bits).div_ceil(32 * LANES) as u8;
    let stored = if sass.has(Aspect::Sparse) { depth / 2 } else { depth };
    let result = registers(rows * columns, accumulated);
    of(result, registers(rows * stored, bits), registers(columns * depth, bits), result)
}

/// The rows of the first matrix of a product, and how many elements a row has. The second one has eight columns.
fn sizes(shape: &str) -> (u32, u32) {
    let shape: String = shape.chars().filter(char::is_ascii_digit).collect();
    let (rows, depth) = match shape.strip_prefix("168") {
        Some(depth) => (16, depth),
        None => (8, shape.strip_prefix("88").unwrap_or_default()),
    };
    (rows, depth.parse().unwrap_or_default())
}

/// Registers of the fragments that a lane of four warps has.
fn matrices_of_group(sass: &Instruction) -> Widths {
    let columns: u32 = sass.text(Aspect::Shape).trim_start_matches(".64x").parse().unwrap_or_default();
    // The result has 64 rows for 128 lanes.
    let halved = if sass.text(Aspect::ResultType) == ".F16" { 4 } else { 2 };
    let result = (columns / halved) as u8;
    // A part of the first matrix has four registers, whatever its type is, as the descriptors of both have.
    Widths { destination: result, a: 4, b: 4, c: result, ..Widths::SINGLE }
}

/// Uniform registers of the operands of copies of blocks: an address of device memory and a descriptor have two, one of shared memory has
/// one, and a barrier is behind it where the copy ends in shared memory.
fn bulk(sass: &Instruction) -> Widths {
    let dimensions = sass.value(Aspect::Shape) as u8 + 1;
    let from = pair_if(sass.text(Aspect::SourceSpace) != ".S");
    let (a, b) = match sass.opcode() {
        Opcode::Ublkcp | Opcode::Ublkred => (from, 2),
        Opcode::Utmaldg => (2, 2 + dimensions),
        Opcode::Utmastg | Opcode::Utmaredg => (2, 1 + dimensions),
        Opcode::Utmapf => (2, dimensions),
        _ => (2, 1),
    };
    Widths { a, b, d: 2, ..Widths::SINGLE }
}

/// Registers of the operands of a texture: components are packed by two where they are halves; a handle takes one register.
fn texture(sass: &Instruction) -> Widths {
    let opcode = sass.opcode();
    let components = components(sass);
    let has_halves = opcode != Opcode::Txq && sass.has(Aspect::ResultType);
    let registers = |components: u8| if has_halves { components.div_ceil(2) } else { components };
    let first = components.min(2);
    let handle = u8::from(sass.has(Aspect::Bindless));
    let shape = sass.text(Aspect::Shape);
    let coordinates = coordinates(shape.trim_start_matches("ARRAY_")) + u8::from(shape.starts_with("ARRAY_"));
    let has_offset = sass.has(Aspect::Offsets);
    let (a, b) = match opcode {
        // A level.
        Opcode::Txq => (1 + handle, 0),
        // One register has the offset and the layer; place B the two gradients.
        Opcode::Txd => {
            let dimensions = self::coordinates(shape.trim_start_matches("ARRAY_"));
            let has_further = shape.starts_with("ARRAY_") || has_offset || sass.has(Aspect::Level);
            (handle + dimensions + u8::from(has_further), 2 * dimensions)
        }
        _ => {
            let further = handle + u8::from(has_offset) + further_coordinates(sass);
            let all = coordinates + further;
            // Up to four scalars are spread over two pairs.
            if sass.has(Aspect::Scalars) { (all.div_ceil(2), all / 2) } else { (coordinates, further) }
        }
    };
    Widths { destination: registers(first), second_destination: registers(components - first), a, b, c: 1, d: 1 }
}

/// The components of a texel that are read, or of the answer to a query.
fn components(sass: &Instruction) -> u8 {
    // The last number among the operands.
    let mask = sass.sources().filter_map(|source| source.immediate()).last();
    mask.unwrap_or_default().count_ones() as u8
}

/// The coordinates of a shape without its layer.
fn coordinates(shape: &str) -> u8 {
    match shape {
        "1D" => 1,
        "2D" => 2,
        _ => 3,
    }
}

/// The operands behind the coordinates of a texture, beside an offset: level, bias or sample, and the value to compare with.
fn further_coordinates(sass: &Instruction) -> u8 {
    let one_if = |aspect| u8::from(sass.has(aspect));
    sass.level_operands()
        + one_if(Aspect::DepthComparison)
        + one_if(Aspect::Samples)
        + 2 * one_if(Aspect::OffsetsOfTexels)
}

/// Registers of a place in a surface.
fn texel(sass: &Instruction) -> u8 {
    match sass.text(Aspect::Shape) {
        ".1D" | ".1D_BUFFER" => 1,
        ".1D_ARRAY" | ".2D" => 2,
        ".2D_ARRAY" | ".3D" => 3,
        _ => 0,
    }
}

/// Registers of a stored value: bytes by their size, or the components of a pixel.
fn stored_to_surface(sass: &Instruction) -> u8 {
    match sass.text(Aspect::Component) {
        _ if sass.has(Aspect::Size) => sized(sass),
        ".R" => 1,
        ".RG" => 2,
        _ if sass.encoding().has(Aspect::Component) => 4,
        _ => sized(sass),
    }
}

impl Instruction {
    /// The registers that say of which level of a texture: the level itself, a bias, a limit.
    pub(crate) fn level_operands(&self) -> u8 {
        match self.text(Aspect::Level) {
            ".LB" | ".LL" | ".LC" => 1,
            ".LB.LC" => 2,
            _ => 0,
        }
    }

    /// The operands that it reads and writes.
    pub fn uses(&self) -> Uses {
        let mut uses = Uses::default();
        let (number, is_inverted) = self.guard();
        uses.read_predicate(PredicateOperand { number, is_uniform: self.encoding.has_uniform_guard, is_inverted });
        let widths = Widths::of(self);
        for operand in self.encoding.operands(self.word).filter(|operand| operand.shown.is_shown(self.word)) {
            self.add(&mut uses, operand.slot, widths);
        }
        self.add_convergence(&mut uses);
        uses
    }

    /// Adds one operand.
    fn add(&self, uses: &mut Uses, slot: Slot, widths: Widths) {
        let word = self.word;
        let at = |low| word.bits(low, 8);
        let uniform_at = |low| word.bits(low, 6);
        match slot {
            Slot::Destination(64) => uses.write(at(64), widths.second_destination),
            Slot::Destination(low) => uses.write(at(low), widths.destination),
            Slot::Source(source) => self.add_source(uses, &source, widths),
            Slot::UniformDestination(low) => uses.write_uniform(uniform_at(low), widths.destination),
            Slot::IndexedConstant => uses.read(at(24), 1),
            Slot::UniformIndexedConstant => uses.read_uniform(uniform_at(24), 1),
            Slot::Address(form) => self.add_address(uses, form, widths.a),
            Slot::Predicate(_) | Slot::UniformPredicate(_) => {
                self.written_predicate(&slot).into_iter().for_each(|predicate| uses.write_predicate(predicate));
            }
            Slot::PredicateSource(_)
            | Slot::UniformPredicateSource(_)
            | Slot::InvertedPredicateSource(_)
            | Slot::InvertedUniformPredicateSource(_)
            | Slot::EitherPredicateSource => {
                self.read_predicate(&slot).into_iter().for_each(|predicate| uses.read_predicate(predicate));
            }
            Slot::AllPredicates => {
                let masked = self.predicate_mask();
                let is_read = self.opcode() == Opcode::P2r;
                *(if is_read { &mut uses.predicate_reads } else { &mut uses.predicate_writes }) |= masked;
            }
            Slot::AllUniformPredicates => {
                let masked = self.predicate_mask();
                match self.opcode() {
                    Opcode::Up2ur => uses.uniform_predicate_reads |= masked,
                    _ => uses.uniform_predicate_writes |= masked,
                }
            }
            Slot::Number(_)
            | Slot::SignedNumber(_)
            | Slot::Number2(..)
            | Slot::Constant
            | Slot::Special
            | Slot::ConvergenceBarrier(_)
            | Slot::WarpState(_)
            | Slot::Scoreboard(_)
            | Slot::Scoreboards(_)
            | Slot::Target(_)
            | Slot::ReturnTarget(_)
            | Slot::AbsoluteTarget(_)
            | Slot::JumpOffset(_)
            | Slot::Name(..)
            | Slot::Function(..) => {}
        }
    }

    /// The predicates that a move of all predicates is about. All may be where the mask is in a register.
    fn predicate_mask(&self) -> u8 {
        let has_immediate = self.word.form() == 4;
        if has_immediate { self.word.field(PREDICATE_MASK) as u8 } else { 0x7f }
    }

    /// Adds a source.
    fn add_source(&self, uses: &mut Uses, source: &SourceSlot, widths: Widths) {
        let width = |low: u8| match (source.place, low) {
            (SourcePlace::Role(Role::C), _) => widths.c,
            (SourcePlace::Role(Role::B) | SourcePlace::Exchanged | SourcePlace::UniformExchanged, _) => widths.b,
            (_, low) => widths.at(low),
        };
        match source.place(self.word) {
            Some(Place::Register(low)) => uses.read(self.word.bits(low, 8), width(low)),
            Some(Place::Uniform(low)) => uses.read_uniform(self.word.bits(low, 6), width(low)),
            Some(Place::Immediate | Place::Constant) | None => {}
        }
    }

    /// Adds the registers of an address. Where a uniform register is added, it has the width of the address, and the general one has the
    /// width that the form says.
    fn add_address(&self, uses: &mut Uses, form: AddressForm, width: u8) {
        let word = self.word;
        let general = match form.adds_wide(word) {
            Some(adds_wide) if form.uniform.is_some() || form.descriptor.is_some() => pair_if(adds_wide),
            _ => width,
        };
        uses.read(form.general(word), general);
        if let Some(descriptor) = form.descriptor(word) {
            uses.read_uniform(descriptor.register(word), 2);
        }
        if let Some(low) = form.uniform.filter(|_| word.bit(UNIFORM_FLAG) && form.descriptor(word).is_none()) {
            let width = if form.adds_wide(word).is_some() { 2 } else { width };
            uses.read_uniform(word.bits(low, 6), width);
        }
    }

    /// Adds the convergence barriers.
    fn add_convergence(&self, uses: &mut Uses) {
        if let Some(barrier) = self.convergence_barrier().map(|number| 1 << number) {
            let (is_read, is_written) = match self.opcode() {
                Opcode::Bssy => (false, true),
                Opcode::Bsync => (true, false),
                // A thread leaves those that the barrier waits for.
                Opcode::Break => (true, true),
                // A move to it is before the other word, a move from it behind.
                _ => (!self.is_moved_to_barrier(), self.is_moved_to_barrier()),
            };
            uses.barrier_reads |= if is_read { barrier } else { 0 };
            uses.barrier_writes |= if is_written { barrier } else { 0 };
        }
        let state = self.warp_state().filter(|_| self.convergence_barrier().is_none());
        if let Some(barrier) = state.filter(|&number| number < 16).map(|number| 1 << number) {
            let (is_read, is_cleared) = (self.destination(0).is_some(), self.has(Aspect::Clear));
            uses.barrier_reads |= if is_read { barrier } else { 0 };
            uses.barrier_writes |= if !is_read || is_cleared { barrier } else { 0 };
        }
    }

    /// Is it a move from another word of the warp's state to a convergence barrier?
    fn is_moved_to_barrier(&self) -> bool {
        matches!(self.slots().next(), Some(Slot::ConvergenceBarrier(_)))
    }
}

/// The predicates that `P2R` and `R2P` are about, a bit each.
const PREDICATE_MASK: Field = Field::new(32, 7);

impl Widths {
    /// The widths of a source that always lies in the same bits.
    const fn at(self, low: u8) -> u8 {
        match low {
            24 => self.a,
            32 => self.b,
            40 => self.d,
            _ => self.c,
        }
    }
}
