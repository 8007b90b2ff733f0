//! The registers, the predicates and the convergence barriers that an instruction reads and writes.
//!
//! The slots of an encoding say where an operand lies, [`Widths`] how many registers it has.

use super::encoding::{AddressForm, Place, RegisterWidth, Role, Slot, UNIFORM_FLAG};
use super::instruction::{Instruction, TRUE_PREDICATE, ZERO_REGISTER, ZERO_UNIFORM_REGISTER};
use super::opcode::Opcode;
use super::word::{Field, Word};
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
fn predicate_bit(number: u64) -> u8 {
    if number == u64::from(TRUE_PREDICATE) { 0 } else { 1 << number }
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
}

impl Widths {
    /// One register each, as most instructions have.
    const SINGLE: Widths = Widths { destination: 1, second_destination: 1, a: 1, b: 1, c: 1 };
    /// Pairs throughout.
    const PAIRS: Widths = Widths { destination: 2, second_destination: 2, a: 2, b: 2, c: 2 };
    /// A 64-bit place to go to.
    const WIDE_TARGET: Widths = Widths { a: 2, ..Widths::SINGLE };

    /// The widths of an instruction's operands.
    fn of(opcode: Opcode, word: Word) -> Widths {
        let single = Widths::SINGLE;
        match opcode {
            Opcode::ImadWide => Widths { destination: 2, c: 2, ..single },
            // The addend of the high half of a product has a low half too.
            Opcode::ImadHigh => Widths { c: 2, ..single },
            Opcode::Uimad if word.code() & 0x1ff == UIMAD_WIDE => Widths { destination: 2, c: 2, ..single },
            Opcode::Dfma | Opcode::Dadd | Opcode::Dmul | Opcode::Dsetp => Widths::PAIRS,
            Opcode::I2f | Opcode::F2i | Opcode::F2f | Opcode::Frnd => {
                Widths { destination: converted(word.bits(75, 2)), b: converted(word.bits(84, 2)), ..single }
            }
            Opcode::Match => Widths { a: pair_if(word.bit(73)), ..single },
            Opcode::Cs2r => Widths { destination: pair_if(word.bit(80)), ..single },
            Opcode::Lepc => Widths { destination: 2, ..single },
            Opcode::Brx | Opcode::Jmx | Opcode::Brxu | Opcode::Jmxu | Opcode::Call | Opcode::Ret => Widths::WIDE_TARGET,
            Opcode::Uldc | Opcode::Ldc | Opcode::Lds | Opcode::Ldl => Widths { destination: sized(word), ..single },
            Opcode::Sts | Opcode::Stl => Widths { b: sized(word), ..single },
            Opcode::Ldg | Opcode::Ld => Widths { destination: sized(word), a: address(word), ..single },
            Opcode::Stg | Opcode::St => Widths { a: address(word), b: sized(word), c: sized(word), ..single },
            Opcode::Atoms => Widths { a: 1, ..typed(word) },
            Opcode::Atom | Opcode::Atomg | Opcode::Red => Widths { a: address(word), ..typed(word) },
            Opcode::Cctl | Opcode::Qspc => Widths { a: address(word), ..single },
            Opcode::Ldsm => Widths { destination: 1 << word.bits(72, 2), ..single },
            Opcode::Hmma | Opcode::Imma | Opcode::Bmma => matrices(opcode, word),
            Opcode::Tex | Opcode::Tld | Opcode::Tld4 | Opcode::Txd | Opcode::Txq => texture(opcode, word),
            Opcode::Suld => Widths { destination: sized(word), a: texel(word), ..single },
            Opcode::Sust => Widths { a: texel(word), b: stored_to_surface(word), ..single },
            Opcode::Sured => Widths { a: texel(word), c: 1, ..typed(word) },
            _ => single,
        }
    }
}

/// The code of `UIMAD.WIDE` without its form.
const UIMAD_WIDE: u16 = 0x0a5;

const fn pair_if(is_pair: bool) -> u8 {
    if is_pair { 2 } else { 1 }
}

/// Registers of a converted value, by its size field.
const fn converted(size: u64) -> u8 {
    pair_if(size == 3)
}

/// Registers of a loaded or stored value: `.64`, then the two kinds of 128 bits.
const fn sized(word: Word) -> u8 {
    match word.bits(73, 3) {
        5 => 2,
        6 | 7 => 4,
        _ => 1,
    }
}

/// Registers of an atomic's operands: `.64`, `.S64` and `.F64`.
const fn typed(word: Word) -> Widths {
    let width = pair_if(matches!(word.bits(73, 3), 2 | 5 | 6));
    Widths { destination: width, b: width, c: width, ..Widths::SINGLE }
}

/// Registers of an address of 64 bits (`.E`) or 32.
const fn address(word: Word) -> u8 {
    pair_if(word.bit(72))
}

/// Registers of the fragments of a product of matrices.
fn matrices(opcode: Opcode, word: Word) -> Widths {
    let of = |destination, a, b, c| Widths { destination, a, b, c, ..Widths::SINGLE };
    match (opcode, word.code()) {
        // A step of Volta's 8x8x4.
        (Opcode::Hmma, 0x236) => of(2, 2, 2, 2),
        // Turing's 16x8x8, 16x8x4: its accumulator has halves or singles.
        (Opcode::Hmma, _) => {
            let accumulator = if word.bit(76) { 4 } else { 2 };
            of(accumulator, 2, 1, accumulator)
        }
        _ => of(2, 1, 1, 2),
    }
}

/// Registers of the operands of a texture: components are packed by two where they are halves; a handle takes one register.
fn texture(opcode: Opcode, word: Word) -> Widths {
    let components = word.bits(72, 4).count_ones() as u8;
    let has_halves = opcode != Opcode::Txq && word.bits(79, 2) != 0;
    let registers = |components: u8| if has_halves { components.div_ceil(2) } else { components };
    let first = components.min(2);
    let handle = u8::from(word.code() >> 9 == 1);
    let (dimensions, is_array) = SHAPES[word.bits(61, 3) as usize];
    let coordinates = dimensions + u8::from(is_array);
    let has_offset = word.bit(76);
    let (a, b) = match opcode {
        // A level.
        Opcode::Txq => (1 + handle, 0),
        // One register has the offset and the layer; place B the two gradients.
        Opcode::Txd => (handle + dimensions + u8::from(is_array || has_offset || word.bit(87)), 2 * dimensions),
        _ => {
            let further = handle + u8::from(has_offset) + further_coordinates(opcode, word);
            let all = coordinates + further;
            // Up to four scalars are spread over two pairs.
            if word.bit(SCALARS) { (all.div_ceil(2), all / 2) } else { (coordinates, further) }
        }
    };
    Widths { destination: registers(first), second_destination: registers(components - first), a, b, c: 1 }
}

/// Set where a texture's coordinates are in pairs of registers (`.SCR`).
const SCALARS: u8 = 60;

/// How many coordinates the shapes of textures have, and whether they are arrays.
const SHAPES: [(u8, bool); 8] =
    [(1, false), (2, false), (3, false), (3, false), (1, true), (2, true), (3, true), (3, true)];

/// The operands behind the coordinates of a texture, beside an offset: level, bias or sample, and the value to compare with.
fn further_coordinates(opcode: Opcode, word: Word) -> u8 {
    let bit = |bit| u8::from(word.bit(bit));
    match opcode {
        // `.LB`, `.LL` and `.LC` have one each, `.LB.LC` two.
        Opcode::Tex => [0, 0, 1, 1, 1, 2, 0, 0][word.bits(87, 3) as usize] + bit(78),
        // `.LL`, and `.MS`.
        Opcode::Tld => u8::from(word.bits(87, 3) == 3) + bit(78),
        // `.DC`, and the four offsets of `.PTP`.
        _ => bit(78) + 2 * bit(77),
    }
}

/// Registers of a place in a surface: 1D, 1D buffer, 1D array, 2D, 2D array, 3D.
const fn texel(word: Word) -> u8 {
    [1, 1, 2, 2, 3, 3, 0, 0][word.bits(61, 3) as usize]
}

/// Registers of a stored value: bytes by their size, or the components of a pixel.
fn stored_to_surface(word: Word) -> u8 {
    match word.code() {
        0x99c | 0xb9b => word.bits(72, 4).count_ones() as u8,
        _ => sized(word),
    }
}

impl Instruction {
    /// The operands that it reads and writes.
    pub fn uses(&self) -> Uses {
        let mut uses = Uses::default();
        let (guard, _) = self.guard();
        let guards =
            if self.encoding.has_uniform_guard { &mut uses.uniform_predicate_reads } else { &mut uses.predicate_reads };
        *guards |= predicate_bit(u64::from(guard));
        let widths = Widths::of(self.opcode(), self.word);
        for operand in self.encoding.operands.iter().filter(|operand| operand.shown.is_shown(self.word)) {
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
        let predicate = |low| predicate_bit(word.bits(low, 3));
        match slot {
            Slot::Destination(64) => uses.write(at(64), widths.second_destination),
            Slot::Destination(low) => uses.write(at(low), widths.destination),
            Slot::Source(low, _) | Slot::Register(low, ..) => uses.read(at(low), widths.at(low)),
            Slot::Flexible(role, ..) => {
                let width = if role == Role::B { widths.b } else { widths.c };
                self.add_place(uses, Place::of(role, word), width);
            }
            Slot::Exchanged(..) => self.add_place(uses, Place::exchanged(word), widths.b),
            Slot::UniformExchanged(..) if matches!(word.code() >> 9, 1 | 6) => {
                uses.read_uniform(uniform_at(32), widths.b);
            }
            Slot::UniformExchanged(..) => {}
            Slot::UniformDestination(low) => uses.write_uniform(uniform_at(low), widths.destination),
            Slot::UniformSource(low, _) | Slot::UniformRegister(low, _) => {
                uses.read_uniform(uniform_at(low), widths.at(low))
            }
            Slot::IndexedConstant => uses.read(at(24), 1),
            Slot::UniformIndexedConstant => uses.read_uniform(uniform_at(24), 1),
            Slot::Address(form) => self.add_address(uses, form, widths.a),
            Slot::Predicate(low) => uses.predicate_writes |= predicate(low),
            Slot::PredicateSource(low) => uses.predicate_reads |= predicate(low),
            Slot::InvertedPredicateSource(low) => uses.predicate_reads |= predicate_bit(word.bits(low, 3) ^ 7),
            Slot::UniformPredicate(low) => uses.uniform_predicate_writes |= predicate(low),
            Slot::UniformPredicateSource(low) => uses.uniform_predicate_reads |= predicate(low),
            Slot::EitherPredicateSource if word.bit(67) => uses.uniform_predicate_reads |= predicate(68),
            Slot::EitherPredicateSource => uses.predicate_reads |= predicate(68),
            Slot::AllPredicates => {
                let masked = word.field(PREDICATE_MASK) as u8;
                let is_read = self.opcode() == Opcode::P2r;
                *(if is_read { &mut uses.predicate_reads } else { &mut uses.predicate_writes }) |= masked;
            }
            Slot::AllUniformPredicates => {
                let masked = word.field(PREDICATE_MASK) as u8;
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
            | Slot::Scoreboard(_)
            | Slot::Scoreboards(_)
            | Slot::Target(_)
            | Slot::ReturnTarget(_)
            | Slot::Function(..) => {}
        }
    }

    /// Adds a source that is where its form says.
    fn add_place(&self, uses: &mut Uses, place: Option<Place>, width: u8) {
        match place {
            Some(Place::Register(low)) => uses.read(self.word.bits(low, 8), width),
            Some(Place::Uniform) => uses.read_uniform(self.word.bits(32, 6), width),
            Some(Place::Immediate | Place::Constant) | None => {}
        }
    }

    /// Adds the registers of an address. Where a uniform register is added, it has the width of the address, and the general one has the
    /// width that the form says.
    fn add_address(&self, uses: &mut Uses, form: AddressForm, width: u8) {
        let word = self.word;
        let general = match (form.uniform, form.width) {
            (None, _) | (_, RegisterWidth::Unsaid) => width,
            (_, RegisterWidth::Bit90) => pair_if(word.bit(90)),
            (_, RegisterWidth::Wide) => 2,
        };
        uses.read(word.bits(24, 8), general);
        if let Some(low) = form.uniform.filter(|_| word.bit(UNIFORM_FLAG)) {
            uses.read_uniform(word.bits(low, 6), width);
        }
    }

    /// Adds the convergence barriers.
    fn add_convergence(&self, uses: &mut Uses) {
        let word = self.word;
        let barrier = 1 << word.bits(16, 4);
        match (self.opcode(), word.code()) {
            (Opcode::Bssy, _) | (Opcode::Bmov, 0xf55) => uses.barrier_writes |= barrier,
            (Opcode::Bsync, _) | (Opcode::Bmov, 0xf56) => uses.barrier_reads |= barrier,
            // A thread leaves those that the barrier waits for.
            (Opcode::Break, _) => {
                uses.barrier_reads |= barrier;
                uses.barrier_writes |= barrier;
            }
            (Opcode::Bmov, code) if word.bits(24, 5) < 16 => {
                let barrier = 1 << word.bits(24, 4);
                let (is_read, is_cleared) = (code == 0x355, word.bit(84));
                uses.barrier_reads |= if is_read { barrier } else { 0 };
                uses.barrier_writes |= if !is_read || is_cleared { barrier } else { 0 };
            }
            _ => {}
        }
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
            _ => self.c,
        }
    }
}
