//! A decoded instruction, and its text.

use super::encoding::{AddressForm, Encoding, Immediate, Place, RegisterWidth, Role, Sign, Slot};
use super::number;
use super::opcode::Opcode;
use super::special_register;
use super::word::{ControlWord, Field, Word};
use std::fmt::{self, Write as _};

/// The register that is zero and takes nothing.
pub const ZERO_REGISTER: u8 = 255;
/// The uniform register that is zero and takes nothing.
pub const ZERO_UNIFORM_REGISTER: u8 = 63;
/// The predicate that is true.
pub const TRUE_PREDICATE: u8 = 7;

/// An instruction with its place in its section.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub(super) word: Word,
    pub(super) address: u64,
    pub(super) encoding: &'static Encoding,
}

impl Instruction {
    /// Its bits.
    pub fn word(&self) -> Word {
        self.word
    }

    /// Where it lies, bytes from the beginning of its section.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The same at another place: addresses that it goes to are counted from there.
    #[must_use]
    pub fn at(self, address: u64) -> Instruction {
        Instruction { address, ..self }
    }

    /// Its opcode.
    pub fn opcode(&self) -> Opcode {
        self.encoding.opcode
    }

    /// How it is encoded.
    pub fn encoding(&self) -> &'static Encoding {
        self.encoding
    }

    /// When it issues.
    pub fn control(&self) -> ControlWord {
        self.word.control()
    }

    /// The predicate that guards it, and whether it is inverted.
    pub fn guard(&self) -> (u8, bool) {
        (self.word.bits(12, 3) as u8, self.word.bit(15))
    }

    /// The address that it may go to.
    pub fn target(&self) -> Option<u64> {
        self.encoding.operands.iter().find_map(|operand| match operand.slot {
            Slot::Target(field) => Some(target(self.word, self.address, field)),
            _ => None,
        })
    }

    /// Whether a branch, a call or the like depends on more than its guard: on a predicate, or on the paths of the warp's lanes (`.DIV`,
    /// `.CONV`).
    pub fn has_condition(&self) -> bool {
        let asks_warp = self.opcode() == Opcode::Bra && matches!(self.word.bits(32, 2), 2 | 3);
        self.opcode().is_jump() && (asks_warp || self.word.bits(87, 4) != u64::from(TRUE_PREDICATE))
    }

    /// Its name with its modifiers: `IADD3.X`.
    pub fn name(&self) -> String {
        let mut name = self.opcode().name().to_owned();
        self.encoding.modifiers.iter().for_each(|modifier| name.push_str(modifier.text(self.word).unwrap_or_default()));
        name
    }

    /// Its operands as text.
    pub fn operands(&self) -> String {
        let mut text = String::new();
        for operand in self.encoding.operands.iter().filter(|operand| operand.shown.is_shown(self.word)) {
            let operand_text = self.operand(&operand.slot);
            if !text.is_empty() && !operand_text.is_empty() {
                text.push_str(if operand.is_joined { " " } else { ", " });
            }
            text.push_str(&operand_text);
        }
        text
    }

    fn operand(&self, slot: &Slot) -> String {
        let word = self.word;
        match *slot {
            Slot::Destination(low) => register(word.bits(low, 8)),
            Slot::Source(low, sign) => {
                signed(word, Place::Register(low), sign, &register_source(word, low, self.has_three_registers()))
            }
            Slot::Flexible(role, immediate, sign) => self.flexible(role, immediate, sign),
            Slot::UniformDestination(low) => uniform_register(word.bits(low, 6)),
            Slot::UniformSource(low, sign) => {
                signed(word, Place::Register(low), sign, &uniform_register(word.bits(low, 6)))
            }
            Slot::Predicate(low) => predicate("P", word.bits(low, 3), false),
            Slot::PredicateSource(low) => predicate("P", word.bits(low, 3), word.bit(low + 3)),
            Slot::InvertedPredicateSource(low) => predicate("P", word.bits(low, 3) ^ 7, word.bit(low + 3)),
            Slot::UniformPredicate(low) => predicate("UP", word.bits(low, 3), false),
            Slot::UniformPredicateSource(low) => predicate("UP", word.bits(low, 3), word.bit(low + 3)),
            Slot::EitherPredicateSource => {
                predicate(if word.bit(67) { "UP" } else { "P" }, word.bits(68, 3), word.bit(71))
            }
            Slot::Number(field) => format!("{:#x}", word.field(field)),
            Slot::SignedNumber(field) => hexadecimal(word.signed(field.low, field.width)),
            Slot::Number2(low, high) => format!("{:#x}", word.field(low) | word.field(high) << low.width),
            Slot::Address(form) => self.memory_address(&form),
            Slot::IndexedConstant => constant_at(word, (word.bits(24, 8) != 255).then(|| register(word.bits(24, 8)))),
            Slot::UniformIndexedConstant => constant_at(word, Some(uniform_register(word.bits(24, 6)))),
            Slot::Constant => constant(word),
            Slot::Special => special_register::name(word.bits(72, 8) as u8),
            Slot::ConvergenceBarrier(low) => format!("B{}", word.bits(low, 4)),
            Slot::Scoreboard(field) => format!("SB{}", word.field(field)),
            Slot::Scoreboards(field) => scoreboards(word.field(field)),
            Slot::Target(field) => hexadecimal(target(word, self.address, field) as i64),
            Slot::ReturnTarget(field) if word.bit(85) => hexadecimal(word.signed(field.low, field.width) << 2),
            Slot::ReturnTarget(field) => hexadecimal(target(word, self.address, field) as i64),
            Slot::AllPredicates => "PR".to_owned(),
            Slot::AllUniformPredicates => "UPR".to_owned(),
            Slot::Register(_, function, _)
            | Slot::UniformRegister(_, function)
            | Slot::Function(function, _)
            | Slot::Exchanged(function, _)
            | Slot::UniformExchanged(function, _) => function(word),
        }
    }

    /// Are there registers in both places beside A?
    fn has_three_registers(&self) -> bool {
        let is_register = |slot: &Slot| match *slot {
            Slot::Source(low, _) => low != 24,
            Slot::Flexible(role, ..) => matches!(Place::of(role, self.word), Some(Place::Register(_))),
            _ => false,
        };
        let operands = self.encoding.operands.iter().filter(|operand| operand.shown.is_shown(self.word));
        operands.filter(|operand| is_register(&operand.slot)).count() > 1
    }

    fn flexible(&self, role: Role, immediate: Immediate, sign: Sign) -> String {
        let word = self.word;
        // A word is accepted only in forms that have the operand.
        let Some(place) = Place::of(role, word) else { return String::new() };
        match source_at(word, place, self.has_three_registers()) {
            Some(text) => signed(word, place, sign, &text),
            None => immediate_text(word.bits(32, 32) as u32, immediate),
        }
    }

    fn memory_address(&self, form: &AddressForm) -> String {
        let word = self.word;
        let has_register = word.bits(24, 8) as u8 != ZERO_REGISTER;
        let uniform = form.uniform;
        // Alone it is an address.
        let Field { low, width } = form.offset;
        let is_added = has_register || uniform.is_some();
        let offset = if is_added { word.signed(low, width) } else { word.bits(low, width) as i64 };
        let mut text = String::from("[");
        if has_register || (uniform.is_none() && offset == 0) {
            text.push_str(&register(word.bits(24, 8)));
            if form.has_scale && has_register {
                text.push_str(["", ".X4", ".X8", ".X16"][word.bits(78, 2) as usize]);
            }
            if uniform.is_some() && has_register {
                text.push_str(match form.width {
                    RegisterWidth::Unsaid => "",
                    RegisterWidth::Bit90 if !word.bit(90) => ".U32",
                    RegisterWidth::Bit90 | RegisterWidth::Wide => ".64",
                });
            }
        }
        if let Some(low) = uniform {
            let separator = if text.len() > 1 { "+" } else { "" };
            text.push_str(&format!("{separator}{}", uniform_register(word.bits(low, 6))));
        }
        if offset != 0 || text.len() == 1 {
            let separator = if text.len() > 1 { "+" } else { "" };
            text.push_str(&format!("{separator}{}", hexadecimal(offset)));
        }
        text.push(']');
        text
    }
}

/// `@!P0 IADD3.X R3, R4, RZ, R5, P1, !PT`: guard, name, operands. The control word is not in it.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (guard, is_inverted) = self.guard();
        if guard != TRUE_PREDICATE || is_inverted {
            let kind = if self.encoding.has_uniform_guard { "UP" } else { "P" };
            write!(f, "@{} ", predicate(kind, u64::from(guard), is_inverted))?;
        }
        f.write_str(&self.name())?;
        let operands = self.operands();
        if operands.is_empty() { Ok(()) } else { write!(f, " {operands}") }
    }
}

/// A general register that is read, with its mark where it stays in the reuse cache. The cache has a slot for each place; where A and one
/// more are registers, either of the other slots keeps the second. Instructions without a fixed latency keep none.
pub(super) fn register_source(word: Word, low: u8, has_three_registers: bool) -> String {
    let slots = match low {
        24 => 0b001,
        _ if !has_three_registers => 0b110,
        32 => 0b010,
        _ => 0b100,
    };
    let control = word.control();
    let is_kept = control.stays && control.reuse & slots != 0 && !word.bit(VARIABLE_LATENCY);
    format!("{}{}", register(word.bits(low, 8)), if is_kept { ".reuse" } else { "" })
}

/// The operand at a place, without a sign; `None` for an immediate.
pub(super) fn source_at(word: Word, place: Place, has_three_registers: bool) -> Option<String> {
    match place {
        Place::Register(low) => Some(register_source(word, low, has_three_registers)),
        Place::Immediate => None,
        Place::Constant => Some(constant(word)),
        Place::Uniform => Some(uniform_register(word.bits(32, 6))),
    }
}

/// The floating-point source of an instruction with one: a single, or half a register.
pub(super) fn single_or_half(word: Word, is_half: bool) -> String {
    let immediate = if is_half { Immediate::Half } else { Immediate::Single };
    let Some(place) = Place::exchanged(word) else { return String::new() };
    let Some(text) = source_at(word, place, false) else { return immediate_text(word.bits(32, 32) as u32, immediate) };
    let half = if is_half && word.bit(60) { ".H1" } else { "" };
    format!("{}{half}", signed(word, place, Sign::NegateAbsolute, &text))
}

/// The bit of the opcode of instructions whose latency is not fixed.
const VARIABLE_LATENCY: u8 = 8;

/// A source with the signs before it.
fn signed(word: Word, place: Place, sign: Sign, text: &str) -> String {
    let (negate, absolute) = place.sign_bits();
    let is_negated = word.bit(negate);
    match sign {
        Sign::None => text.to_owned(),
        Sign::Invert if is_negated => format!("~{text}"),
        Sign::NegateOrInvert if is_negated && word.bit(74) => format!("~{text}"),
        Sign::NegateAbsolute if word.bit(absolute) => {
            // The mark of the reuse cache stands behind the bars.
            let (name, kept) = text.strip_suffix(".reuse").map_or((text, ""), |name| (name, ".reuse"));
            format!("{}|{name}|{kept}", if is_negated { "-" } else { "" })
        }
        Sign::Negate | Sign::NegateAbsolute | Sign::NegateOrInvert if is_negated => format!("-{text}"),
        _ => text.to_owned(),
    }
}

/// Where a target field points.
fn target(word: Word, address: u64, field: Field) -> u64 {
    address.wrapping_add(16).wrapping_add((word.signed(field.low, field.width) << 2) as u64)
}

/// A number with its sign before `0x`.
pub(super) fn hexadecimal(value: i64) -> String {
    format!("{}{:#x}", if value < 0 { "-" } else { "" }, value.unsigned_abs())
}

pub(super) fn register(number: u64) -> String {
    if number == u64::from(ZERO_REGISTER) { "RZ".to_owned() } else { format!("R{number}") }
}

pub(super) fn uniform_register(number: u64) -> String {
    if number == u64::from(ZERO_UNIFORM_REGISTER) { "URZ".to_owned() } else { format!("UR{number}") }
}

fn predicate(kind: &str, number: u64, is_inverted: bool) -> String {
    let sign = if is_inverted { "!" } else { "" };
    if number == u64::from(TRUE_PREDICATE) { format!("{sign}{kind}T") } else { format!("{sign}{kind}{number}") }
}

pub(super) fn immediate_text(value: u32, immediate: Immediate) -> String {
    match immediate {
        Immediate::Signed => hexadecimal(i64::from(value as i32)),
        Immediate::Bits => format!("{value:#x}"),
        Immediate::Single => number::single(value),
        Immediate::DoubleHigh => number::double(value),
        Immediate::Half => number::half(value as u16),
        Immediate::Halves => format!("{}, {}", number::half((value >> 16) as u16), number::half(value as u16)),
    }
}

pub(super) fn constant(word: Word) -> String {
    format!("c[{:#x}][{}]", word.bits(54, 5), hexadecimal(word.signed(38, 16)))
}

/// A constant at a register's value and a signed number.
fn constant_at(word: Word, register: Option<String>) -> String {
    let offset = word.signed(38, 16);
    let index = match register {
        Some(register) if offset == 0 => register,
        Some(register) => format!("{register}+{}", hexadecimal(offset)),
        None if offset == 0 => "RZ".to_owned(),
        None => hexadecimal(offset),
    };
    format!("c[{:#x}][{index}]", word.bits(54, 5))
}

fn scoreboards(mask: u64) -> String {
    if mask == 0 {
        return String::new();
    }
    let mut text = String::new();
    for scoreboard in (0..ControlWord::SCOREBOARDS).rev().filter(|scoreboard| (mask >> scoreboard) & 1 != 0) {
        // Writing to a string does not fail.
        let _ = write!(text, "{}{scoreboard}", if text.is_empty() { "{" } else { "," });
    }
    text + "}"
}
