//! The operands of an encoding: what each of them is, and the bits that it lies in.

use super::aspect::Aspect;
use super::word::{Field, Word, ZERO_REGISTER, named};

/// Set where a source is a uniform register.
pub const UNIFORM_FLAG: u8 = 91;
/// A constant's bank, and its offset in bytes, for loads of constants.
const CONSTANT_BYTE: Field = Field::new(38, 21);

/// An operand's kind and place.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// A general register that is written.
    Destination(u8),
    /// A uniform register that is written.
    UniformDestination(u8),
    /// A value that is read.
    Source(SourceSlot),
    /// A predicate that is written.
    Predicate(u8),
    /// A predicate that is read; the bit above inverts it.
    PredicateSource(u8),
    /// A predicate that is read, its number inverted, so that no bit is set of PT; the bit above inverts the predicate.
    InvertedPredicateSource(u8),
    /// The same of the uniform datapath.
    InvertedUniformPredicateSource(u8),
    /// A uniform predicate that is written.
    UniformPredicate(u8),
    /// A uniform predicate that is read.
    UniformPredicateSource(u8),
    /// A predicate that is read, uniform where bit 67 is set (at bit 68).
    EitherPredicateSource,
    /// A number.
    Number(Field),
    /// A signed number.
    SignedNumber(Field),
    /// A number in two fields, the lower half first.
    Number2(Field, Field),
    /// An address.
    Address(AddressForm),
    /// A constant whose offset a general register gives.
    IndexedConstant,
    /// A constant whose offset a uniform register gives.
    UniformIndexedConstant,
    /// A constant (bits 38 to 58).
    Constant,
    /// A special register.
    Special,
    /// A convergence barrier of the warp.
    ConvergenceBarrier(u8),
    /// A word of a warp's state: a convergence barrier, or from 16 on another one. The field may leave the upper bit to others.
    WarpState(Field),
    /// A scoreboard.
    Scoreboard(Field),
    /// Scoreboards in braces, a bit each; not shown where there is none.
    Scoreboards(Field),
    /// An instruction, relative to the next one.
    Target(Distance),
    /// As `Target`, absolute where bit 85 is set.
    ReturnTarget(Distance),
    /// The address of an instruction, which the linker writes.
    AbsoluteTarget(Distance),
    /// What is added to a register that says where to go.
    JumpOffset(Distance),
    /// All predicates.
    AllPredicates,
    /// All uniform predicates.
    AllUniformPredicates,
    /// A word, as modifiers are, but among the operands.
    Name(Aspect, Field, &'static [&'static str]),
    /// Something that a function writes, from the bits of a mask.
    Function(fn(Word) -> String, u128),
}

/// How far an instruction is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// A signed number of words of four bytes.
    Words(Field),
    /// The same from Hopper on: its lower eight bits from bit 16 on, the others from bit 34 on.
    Split,
    /// A signed number of bytes.
    Bytes(Field),
}

impl Distance {
    /// The lower and the upper bits of a split one.
    const LOW: Field = Field::new(16, 8);
    const HIGH: Field = Field::new(34, 48);

    /// Bytes.
    pub fn of(self, word: Word) -> i64 {
        match self {
            Distance::Words(field) => word.signed(field.low, field.width) << 2,
            Distance::Split => {
                let high = word.signed(Self::HIGH.low, Self::HIGH.width) << Self::LOW.width;
                (high | word.field(Self::LOW) as i64) << 2
            }
            Distance::Bytes(field) => word.signed(field.low, field.width),
        }
    }

    const fn mask(self) -> u128 {
        match self {
            Distance::Words(field) | Distance::Bytes(field) => field.mask(),
            Distance::Split => Self::LOW.mask() | Self::HIGH.mask(),
        }
    }
}

/// A value that is read.
#[derive(Clone, Copy, Debug)]
pub struct SourceSlot {
    /// Where it lies.
    pub place: SourcePlace,
    /// How an immediate is read, where the place may have one.
    pub immediate: Immediate,
    /// The signs before it.
    pub sign: Sign,
    /// What stands behind it.
    pub suffix: Suffix,
}

/// Where a source lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourcePlace {
    /// A general register, by its lowest bit.
    Register(u8),
    /// A uniform register, by its lowest bit.
    Uniform(u8),
    /// Where the form puts this role.
    Role(Role),
    /// Bits 32 to 63, whichever role the form puts there.
    Exchanged,
    /// The same of the uniform datapath: an immediate, or a uniform register.
    UniformExchanged,
}

/// What stands behind a source.
#[derive(Clone, Copy, Debug)]
pub enum Suffix {
    /// Nothing.
    None,
    /// Always the same.
    Fixed(&'static str),
    /// Brackets around it, behind a name: the register has an address, a place in a surface, or a descriptor.
    Brackets(&'static str),
    /// The part of the register that is used: a field, and the texts of its values, which may depend on other fields. Immediates and
    /// constants are whole.
    Part(Field, fn(Word) -> &'static [&'static str]),
    /// The halves of half-precision arithmetic that are used. Each place has bits of its own for them, and for the signs.
    Halves,
    /// The same, where this field says it.
    HalvesAt(Field),
    /// Always both halves, in their order; the signs are as with `Halves`.
    BothHalves,
}

/// The part of a half-precision source that is used: its two halves, the register as a single, its lower or its upper half twice.
pub const HALVES: &[&str] = &["", ".F32", ".H0_H0", ".H1_H1"];

/// The signs before a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing.
    None,
    /// It may be negated.
    Negate,
    /// It may be negated, and its absolute value taken.
    NegateAbsolute,
    /// It may be negated; with the carry (bit 74), inverted instead.
    NegateOrInvert,
    /// It may be inverted.
    Invert,
    /// It is inverted where this bit is set.
    InvertAt(u8),
}

/// How an immediate is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immediate {
    /// A signed number.
    Signed,
    /// Bits.
    Bits,
    /// A single.
    Single,
    /// The upper half of a double.
    DoubleHigh,
    /// A half, in the lower 16 bits.
    Half,
    /// Two halves.
    Halves,
    /// Two halves, or two bfloat16 where a bit is set.
    HalvesOrBfloats(u8),
    /// A half, a single or the upper half of a double, as a field says: 1, 2, 3.
    OfSize(Field),
}

/// Which operand of an instruction with exchangeable forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The second source.
    B,
    /// The third.
    C,
}

/// Where a word has a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A general register, by its lowest bit: 24, 32 or 64.
    Register(u8),
    /// A uniform register, by its lowest bit.
    Uniform(u8),
    /// Bits 32 to 63.
    Immediate,
    /// A constant: its offset in words from bit 40 on, its bank from bit 54 on.
    Constant,
}

impl Place {
    /// Where the form of a word puts a role; `None` in forms without it.
    fn of(role: Role, word: Word) -> Option<Place> {
        Some(match (word.form(), role) {
            (1, Role::B) => Place::Register(32),
            (2 | 3 | 7, Role::B) | (1 | 4 | 5 | 6, Role::C) => Place::Register(64),
            (2, Role::C) | (4, Role::B) => Place::Immediate,
            (3, Role::C) | (5, Role::B) => Place::Constant,
            (6, Role::B) | (7, Role::C) => Place::Uniform(32),
            _ => return None,
        })
    }

    /// The operand in bits 32 to 63 of the form.
    fn exchanged(word: Word) -> Option<Place> {
        let is_there = |place: &Place| *place != Place::Register(64);
        Place::of(Role::B, word).filter(is_there).or_else(|| Place::of(Role::C, word))
    }

    /// The same of the uniform datapath.
    fn uniform_exchanged(word: Word) -> Option<Place> {
        match word.form() {
            2 | 4 => Some(Place::Immediate),
            1 | 6 => Some(Place::Uniform(32)),
            _ => None,
        }
    }

    /// Its bits without its sign.
    const fn mask(self) -> u128 {
        match self {
            Place::Register(low) => Field::new(low, 8).mask(),
            Place::Uniform(low) => Field::new(low, 6).mask(),
            Place::Immediate => Field::new(32, 32).mask(),
            Place::Constant => Field::new(40, 19).mask(),
        }
    }
}

impl SourceSlot {
    /// Where a word has it; `None` in forms without it.
    pub fn place(&self, word: Word) -> Option<Place> {
        match self.place {
            SourcePlace::Register(low) => Some(Place::Register(low)),
            SourcePlace::Uniform(low) => Some(Place::Uniform(low)),
            SourcePlace::Role(role) => Place::of(role, word),
            SourcePlace::Exchanged => Place::exchanged(word),
            SourcePlace::UniformExchanged => Place::uniform_exchanged(word),
        }
    }

    /// The bits that negate it (or invert it) and take its absolute value, at a place.
    pub const fn sign_bits(&self, place: Place) -> (u8, u8) {
        if let Sign::InvertAt(bit) = self.sign {
            return (bit, bit);
        }
        match (self.suffix, place) {
            (_, Place::Register(24) | Place::Uniform(24)) => (72, 73),
            (Suffix::Halves | Suffix::HalvesAt(_) | Suffix::BothHalves, Place::Register(64)) => (84, 83),
            (_, Place::Register(64) | Place::Uniform(64)) => (75, 74),
            _ => (63, 62),
        }
    }

    /// The field that says which part of it is used, at a place.
    pub const fn part(&self, place: Place) -> Option<Field> {
        match (self.suffix, place) {
            (Suffix::Halves, Place::Register(24)) => Some(Field::new(74, 2)),
            (Suffix::Halves, Place::Register(64)) => Some(Field::new(81, 2)),
            (Suffix::Halves, _) => Some(Field::new(60, 2)),
            (Suffix::Part(field, _) | Suffix::HalvesAt(field), _) => Some(field),
            _ => None,
        }
    }

    /// How an immediate of a word is read.
    pub fn immediate(&self, word: Word) -> Immediate {
        match self.immediate {
            Immediate::OfSize(field) => match word.field(field) {
                1 => Immediate::Half,
                3 => Immediate::DoubleHigh,
                _ => Immediate::Single,
            },
            Immediate::HalvesOrBfloats(bit) if !word.bit(bit) => Immediate::Halves,
            known => known,
        }
    }

    /// What stands behind it in a word; `None` where there is no such part.
    pub fn suffix(&self, word: Word, place: Place) -> Option<&'static str> {
        match self.suffix {
            Suffix::None | Suffix::Brackets(_) | Suffix::BothHalves => Some(""),
            Suffix::Fixed(text) => Some(text),
            Suffix::Part(field, names) => named(names(word), word.field(field)),
            Suffix::Halves | Suffix::HalvesAt(_) => named(HALVES, word.field(self.part(place)?)),
        }
    }

    /// The bits that it is made of; `None` where the form has no such operand, or the word a part that there is not.
    fn mask(&self, word: Word) -> Option<u128> {
        let place = self.place(word)?;
        let flag = self.flag(word, place)?;
        // The sign bits of an immediate are its own.
        if place == Place::Immediate {
            return Some(place.mask() | flag);
        }
        let (negate, absolute) = self.sign_bits(place);
        let sign = match self.sign {
            Sign::None => 0,
            Sign::Negate | Sign::Invert | Sign::NegateOrInvert => 1 << negate,
            Sign::NegateAbsolute => 1 << negate | 1 << absolute,
            Sign::InvertAt(bit) => 1 << bit,
        };
        self.suffix(word, place)?;
        Some(place.mask() | flag | sign | self.part(place).map_or(0, Field::mask))
    }

    /// The flag of uniform registers, where it is this operand's; `None` where the word has it and should not, or the other way around.
    fn flag(&self, word: Word, place: Place) -> Option<u128> {
        /// A move of an immediate is the one instruction of the uniform datapath without the flag.
        const UMOV_IMMEDIATE: u16 = 0x882;
        let is_expected = match self.place {
            SourcePlace::UniformExchanged => word.code() != UMOV_IMMEDIATE,
            SourcePlace::Role(_) | SourcePlace::Exchanged if place == Place::Uniform(32) => true,
            _ => return Some(0),
        };
        (word.bit(UNIFORM_FLAG) == is_expected).then_some(1 << UNIFORM_FLAG)
    }
}

/// How a memory instruction forms its address.
#[derive(Clone, Copy, Debug)]
pub struct AddressForm {
    /// The lowest bit of the general register, where the instruction has one.
    pub register: Option<u8>,
    /// The signed number that is added.
    pub offset: Field,
    /// The uniform register that is added, by its lowest bit, where the instruction has one.
    pub uniform: Option<u8>,
    /// For addresses with a uniform register: how many bits of the general one are added to it.
    pub width: RegisterWidth,
    /// Where uniform registers may be a descriptor of memory.
    pub descriptor: Option<Descriptor>,
    /// The register may be scaled by bits 78 and 79.
    pub has_scale: bool,
    /// Which registers that are zero the text has beside others.
    pub zeros: Zeros,
}

/// Which registers that are zero the text of an address has, of a general one and a uniform one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// The uniform one.
    Uniform,
    /// The general one.
    General,
    /// Both. The general one is never zero where all its 64 bits are added.
    Both,
    /// Where the general one has 64 bits, which are never zero, the uniform one is left out; elsewhere both are there.
    UnlessWide,
}

/// How many bits of a general register are added to a uniform one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterWidth {
    /// It is not said: addresses of shared and local memory have 32.
    Unsaid,
    /// 64 where this bit is set, 32 otherwise.
    Bit(u8),
    /// 64.
    Wide,
}

/// A pair of uniform registers that describes the memory that an address is of, and adds nothing to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The lowest bit of the uniform register, or of the one before it.
    pub register: u8,
    /// The descriptor is in the next registers.
    pub is_next: bool,
    /// The bit that is set where the registers are one.
    pub bit: u8,
    /// The text has it where this bit is set; `None` where the text always has it.
    pub shown: Option<u8>,
}

impl Descriptor {
    /// The uniform register that a word has it in.
    pub const fn register(self, word: Word) -> u64 {
        let register = word.bits(self.register, 6);
        if self.is_next && register != 63 { register + 1 } else { register }
    }
}

impl AddressForm {
    /// A general register and an offset.
    pub const fn new(register: u8, offset: Field) -> AddressForm {
        AddressForm {
            register: Some(register),
            offset,
            uniform: None,
            width: RegisterWidth::Unsaid,
            descriptor: None,
            has_scale: false,
            zeros: Zeros::Uniform,
        }
    }

    /// A uniform register and an offset.
    pub const fn of_uniform(register: u8, offset: Field) -> AddressForm {
        AddressForm { register: None, uniform: Some(register), ..AddressForm::new(0, offset) }
    }

    /// The number of the general register; RZ where the instruction has none.
    pub fn general(&self, word: Word) -> u64 {
        self.register.map_or(u64::from(ZERO_REGISTER), |low| word.bits(low, 8))
    }

    /// The descriptor that a word has.
    pub fn descriptor(&self, word: Word) -> Option<Descriptor> {
        self.descriptor.filter(|descriptor| word.bit(descriptor.bit))
    }

    /// Are all 64 bits of the general register added to a uniform one? `None` where the form does not say.
    pub fn adds_wide(&self, word: Word) -> Option<bool> {
        match self.width {
            RegisterWidth::Unsaid => None,
            RegisterWidth::Bit(bit) => Some(word.bit(bit)),
            RegisterWidth::Wide => Some(true),
        }
    }

    fn mask(self, word: Word) -> Option<u128> {
        let AddressForm { register, offset, uniform, width, descriptor, has_scale, zeros } = self;
        if uniform.is_some() && !word.bit(UNIFORM_FLAG) {
            return None;
        }
        let uniform = uniform.map_or(0, |low| Field::new(low, 6).mask() | 1 << UNIFORM_FLAG);
        let width = match width {
            RegisterWidth::Bit(bit) => 1 << bit,
            RegisterWidth::Unsaid | RegisterWidth::Wide => 0,
        };
        // A described address has 64 bits.
        if self.descriptor(word).is_some() && self.adds_wide(word) == Some(false) {
            return None;
        }
        let is_never_zero = matches!(zeros, Zeros::Both | Zeros::UnlessWide) && self.descriptor(word).is_none();
        if is_never_zero && self.adds_wide(word) == Some(true) && self.general(word) == u64::from(ZERO_REGISTER) {
            return None;
        }
        let descriptor = descriptor
            .map_or(0, |it| Field::new(it.register, 6).mask() | 1 << it.bit | it.shown.map_or(0, |shown| 1 << shown));
        let scale = if has_scale { Field::new(78, 2).mask() } else { 0 };
        let register = register.map_or(0, |low| Field::new(low, 8).mask());
        Some(register | offset.mask() | uniform | width | descriptor | scale)
    }
}

impl Slot {
    /// The bits that it is made of in this word; `None` where the form has no such operand.
    pub fn mask(&self, word: Word) -> Option<u128> {
        let predicate = |low: u8| Field::new(low, 3).mask();
        Some(match *self {
            Slot::Destination(low) => Field::new(low, 8).mask(),
            Slot::UniformDestination(low) => Field::new(low, 6).mask(),
            Slot::Source(source) => source.mask(word)?,
            Slot::Predicate(low) | Slot::UniformPredicate(low) => predicate(low),
            Slot::PredicateSource(low)
            | Slot::InvertedPredicateSource(low)
            | Slot::InvertedUniformPredicateSource(low)
            | Slot::UniformPredicateSource(low) => Field::new(low, 4).mask(),
            Slot::EitherPredicateSource => Field::new(67, 5).mask(),
            Slot::Number(field)
            | Slot::SignedNumber(field)
            | Slot::Scoreboard(field)
            | Slot::Scoreboards(field)
            | Slot::WarpState(field) => field.mask(),
            Slot::Target(distance)
            | Slot::ReturnTarget(distance)
            | Slot::AbsoluteTarget(distance)
            | Slot::JumpOffset(distance) => distance.mask(),
            Slot::Number2(low, high) => low.mask() | high.mask(),
            Slot::Address(form) => form.mask(word)?,
            Slot::IndexedConstant => Field::new(24, 8).mask() | CONSTANT_BYTE.mask(),
            Slot::UniformIndexedConstant => Field::new(24, 6).mask() | CONSTANT_BYTE.mask() | 1 << UNIFORM_FLAG,
            Slot::Constant => CONSTANT_BYTE.mask(),
            Slot::Special => Field::new(72, 8).mask(),
            Slot::ConvergenceBarrier(low) => Field::new(low, 4).mask(),
            Slot::AllPredicates | Slot::AllUniformPredicates => 0,
            Slot::Name(_, field, names) => {
                named(names, word.field(field))?;
                field.mask()
            }
            Slot::Function(_, mask) => mask,
        })
    }
}
