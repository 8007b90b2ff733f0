//! The text of an instruction, as NVIDIA's disassembler writes it.

use super::instruction::Instruction;
use super::number;
use super::slot::{AddressForm, Immediate, Place, Sign, Slot, SourceSlot, Suffix, Zeros};
use super::special_register;
use super::view::PredicateOperand;
use super::word::{ControlWord, Field, TRUE_PREDICATE, Word, ZERO_REGISTER, ZERO_UNIFORM_REGISTER, named};
use std::fmt::{self, Write as _};

/// The bit of the opcode of instructions whose latency is not fixed.
const VARIABLE_LATENCY: u8 = 8;

/// `@!P0 IADD3.X R3, R4, RZ, R5, P1, !PT`: guard, name, operands. The control word is not in it.
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, is_inverted) = self.guard();
        let guard = PredicateOperand { number, is_uniform: self.encoding.has_uniform_guard(), is_inverted };
        if !guard.is_true() {
            write!(f, "@{} ", predicate(guard))?;
        }
        f.write_str(&self.name())?;
        let operands = self.operands();
        if operands.is_empty() { Ok(()) } else { write!(f, " {operands}") }
    }
}

impl Instruction {
    /// Its name with its modifiers: `IADD3.X`.
    pub fn name(&self) -> String {
        let mut name = self.opcode().name().to_owned();
        self.encoding.modifiers.iter().for_each(|modifier| name.push_str(modifier.text(self.word).unwrap_or_default()));
        name
    }

    /// Its operands as text.
    pub fn operands(&self) -> String {
        let mut text = String::new();
        for operand in self.encoding.operands(self.word).filter(|operand| operand.shown.is_shown(self.word)) {
            let operand_text = self.operand(&operand.slot);
            if !text.is_empty() && !operand_text.is_empty() {
                text.push_str(operand.separator);
            }
            text.push_str(&operand_text);
        }
        text
    }

    fn operand(&self, slot: &Slot) -> String {
        let word = self.word;
        match *slot {
            Slot::Destination(low) => register(word.bits(low, 8)),
            Slot::UniformDestination(low) => uniform_register(word.bits(low, 6)),
            Slot::Source(slot) => self.source_text(&slot),
            Slot::Predicate(_) | Slot::UniformPredicate(_) => {
                self.written_predicate(slot).map_or_else(String::new, predicate)
            }
            Slot::PredicateSource(_)
            | Slot::UniformPredicateSource(_)
            | Slot::InvertedPredicateSource(_)
            | Slot::InvertedUniformPredicateSource(_)
            | Slot::EitherPredicateSource => self.read_predicate(slot).map_or_else(String::new, predicate),
            Slot::Number(field) => format!("{:#x}", word.field(field)),
            Slot::SignedNumber(field) => hexadecimal(word.signed(field.low, field.width)),
            Slot::Number2(low, high) => format!("{:#x}", word.fields(low, high)),
            Slot::Address(form) => self.memory_address(&form),
            Slot::IndexedConstant => constant_at(word, (word.bits(24, 8) != 255).then(|| register(word.bits(24, 8)))),
            Slot::UniformIndexedConstant => constant_at(word, Some(uniform_register(word.bits(24, 6)))),
            Slot::Constant => constant(word),
            Slot::Special => special_register::name(word.bits(72, 8) as u8, self.encoding.since),
            Slot::ConvergenceBarrier(low) => format!("B{}", word.bits(low, 4)),
            Slot::WarpState(_) => warp_state(word.bits(24, 5)),
            Slot::Scoreboard(field) => format!("SB{}", word.field(field)),
            Slot::Scoreboards(field) => scoreboards(word.field(field)),
            Slot::Target(distance) => hexadecimal(self.target_at(distance) as i64),
            Slot::ReturnTarget(distance) if word.bit(85) => hexadecimal(distance.of(word)),
            Slot::ReturnTarget(distance) => hexadecimal(self.target_at(distance) as i64),
            Slot::AbsoluteTarget(distance) => format!("{:#x}", distance.of(word)),
            Slot::JumpOffset(distance) => hexadecimal(distance.of(word)),
            Slot::AllPredicates => "PR".to_owned(),
            Slot::AllUniformPredicates => "UPR".to_owned(),
            Slot::Name(_, field, names) => named(names, word.field(field)).unwrap_or_default().to_owned(),
            Slot::Function(function, _) => function(word),
        }
    }

    fn source_text(&self, slot: &SourceSlot) -> String {
        let word = self.word;
        // A word is accepted only in forms that have the operand.
        let Some(place) = slot.place(word) else { return String::new() };
        let (name, kept) = match place {
            Place::Register(low) => (register(word.bits(low, 8)), if self.is_kept(low) { ".reuse" } else { "" }),
            Place::Uniform(low) => (uniform_register(word.bits(low, 6)), ""),
            Place::Constant => (constant(word), ""),
            Place::Immediate => return immediate_text(word.bits(32, 32) as u32, slot.immediate(word)),
        };
        let suffix = slot.suffix(word, place).unwrap_or_default();
        let (negate, absolute) = slot.sign_bits(place);
        let has_sign = word.bit(negate);
        let has_bars = slot.sign == Sign::NegateAbsolute && word.bit(absolute);
        let sign = match slot.sign {
            Sign::Invert | Sign::InvertAt(_) if has_sign => "~",
            Sign::NegateOrInvert if has_sign && word.bit(74) => "~",
            Sign::Negate | Sign::NegateAbsolute | Sign::NegateOrInvert if has_sign => "-",
            _ => "",
        };
        match slot.suffix {
            Suffix::Brackets(kind) => format!("{kind}[{name}]"),
            // The bars stand around the halves of a constant and of a uniform register, too, and before the mark of the reuse cache.
            Suffix::Halves if has_bars && matches!(place, Place::Constant | Place::Uniform(_)) => {
                format!("{sign}|{name}{suffix}|")
            }
            // The disassembler puts a space between the bank and the offset of a constant whose sign it is.
            Suffix::Fixed(_) if place == Place::Constant => format!("{}{suffix}", name.replace("][", "] [")),
            _ if has_bars => format!("{sign}|{name}|{kept}{suffix}"),
            _ => format!("{sign}{name}{kept}{suffix}"),
        }
    }

    /// Whether a register that is read stays in the reuse cache. The cache has a slot for each place; where A and one more are registers,
    /// either of the other slots keeps the second. Instructions without a fixed latency keep none.
    fn is_kept(&self, low: u8) -> bool {
        let slots = match low {
            24 => 0b001,
            _ if !self.has_three_registers() => 0b110,
            32 => 0b010,
            _ => 0b100,
        };
        let control = self.control();
        control.stays && control.reuse & slots != 0 && !self.word.bit(VARIABLE_LATENCY)
    }

    /// Are there registers in both places beside A?
    fn has_three_registers(&self) -> bool {
        let is_register = |slot: &Slot| match slot {
            Slot::Source(source) => matches!(source.place(self.word), Some(Place::Register(low)) if low != 24),
            _ => false,
        };
        let operands = self.encoding.operands(self.word).filter(|operand| operand.shown.is_shown(self.word));
        operands.filter(|operand| is_register(&operand.slot)).count() > 1
    }

    fn memory_address(&self, form: &AddressForm) -> String {
        let word = self.word;
        let general = form.general(word);
        let descriptor = form.descriptor(word);
        let uniform = form.uniform.filter(|_| descriptor.is_none());
        let names_zero = descriptor.is_some()
            || (uniform.is_some() && form.zeros != Zeros::Uniform)
            || (form.has_scale && word.bits(78, 2) != 0);
        let has_register = general != u64::from(ZERO_REGISTER) || names_zero;
        let is_zero = |low: &u8| word.bits(*low, 6) == u64::from(ZERO_UNIFORM_REGISTER);
        let leaves_zero = match form.zeros {
            Zeros::Uniform | Zeros::Both => false,
            Zeros::General => true,
            Zeros::UnlessWide => form.adds_wide(word) == Some(true),
        };
        let uniform = uniform.filter(|low| !(leaves_zero && is_zero(low)));
        // Alone it is an address.
        let Field { low, width } = form.offset;
        let is_added = has_register || uniform.is_some();
        let offset = if is_added { word.signed(low, width) } else { word.bits(low, width) as i64 };
        let shown = descriptor.filter(|descriptor| descriptor.shown.is_none_or(|bit| word.bit(bit)));
        let mut text = match shown {
            Some(descriptor) => format!("desc[{}][", uniform_register(descriptor.register(word))),
            None => String::from("["),
        };
        let beginning = text.len();
        if has_register || (uniform.is_none() && offset == 0) {
            text.push_str(&register(general));
            if form.has_scale && has_register {
                text.push_str(["", ".X4", ".X8", ".X16"][word.bits(78, 2) as usize]);
            }
            if (form.uniform.is_some() || form.descriptor.is_some()) && has_register {
                text.push_str(match form.adds_wide(word) {
                    None => "",
                    Some(false) => ".U32",
                    Some(true) => ".64",
                });
            }
        }
        if let Some(low) = uniform {
            let separator = if text.len() > beginning { "+" } else { "" };
            text.push_str(&format!("{separator}{}", uniform_register(word.bits(low, 6))));
        }
        if offset != 0 || text.len() == beginning {
            let separator = if text.len() > beginning { "+" } else { "" };
            text.push_str(&format!("{separator}{}", hexadecimal(offset)));
        }
        text.push(']');
        text
    }
}

/// A number with its sign before `0x`.
fn hexadecimal(value: i64) -> String {
    format!("{}{:#x}", if value < 0 { "-" } else { "" }, value.unsigned_abs())
}

fn register(number: u64) -> String {
    if number == u64::from(ZERO_REGISTER) { "RZ".to_owned() } else { format!("R{number}") }
}

fn uniform_register(number: u64) -> String {
    if number == u64::from(ZERO_UNIFORM_REGISTER) { "URZ".to_owned() } else { format!("UR{number}") }
}

fn predicate(PredicateOperand { number, is_uniform, is_inverted }: PredicateOperand) -> String {
    let (sign, kind) = (if is_inverted { "!" } else { "" }, if is_uniform { "UP" } else { "P" });
    if number == TRUE_PREDICATE { format!("{sign}{kind}T") } else { format!("{sign}{kind}{number}") }
}

fn immediate_text(value: u32, immediate: Immediate) -> String {
    match immediate {
        Immediate::Signed => hexadecimal(i64::from(value as i32)),
        Immediate::Bits => format!("{value:#x}"),
        Immediate::Single | Immediate::OfSize(_) => number::single(value),
        Immediate::DoubleHigh => number::double(value),
        Immediate::Half => number::half(value as u16),
        Immediate::Halves => format!("{}, {}", number::half((value >> 16) as u16), number::half(value as u16)),
        // A bfloat16 is the upper half of a single.
        Immediate::HalvesOrBfloats(_) => {
            format!("{}, {}", number::single(value & 0xffff_0000), number::single(value << 16))
        }
    }
}

fn constant(word: Word) -> String {
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

/// A word of a warp's state.
fn warp_state(number: u64) -> String {
    /// The names of the numbers from 16 on.
    const NAMES: [&str; 16] = [
        "THREAD_STATE_ENUM.0",
        "THREAD_STATE_ENUM.1",
        "THREAD_STATE_ENUM.2",
        "THREAD_STATE_ENUM.3",
        "THREAD_STATE_ENUM.4",
        "TRAP_RETURN_PC.LO",
        "TRAP_RETURN_PC.HI",
        "TRAP_RETURN_MASK",
        "MEXITED",
        "MKILL",
        "MACTIVE",
        "MATEXIT",
        "OPT_STACK",
        "API_CALL_DEPTH",
        "ATEXIT_PC.LO",
        "ATEXIT_PC.HI",
    ];
    match number {
        0..16 => format!("B{number}"),
        _ => NAMES[number as usize % NAMES.len()].to_owned(),
    }
}
