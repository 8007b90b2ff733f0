//! Where operands are.

use crate::interpreter::machine::signs::sign;
use crate::interpreter::matrix::place_table;
use crate::lanes::LANES;
use crate::machine::code::{LaunchWord, MachineCode, ParameterBase};
use crate::matrix::{Generation, MatrixForm};
use crate::operation::operand::{
    FIRST_PREDICATE, FIRST_ROW, PREDICATES, Row, SINK_PREDICATE, SINK_ROW, Source, TRUE_PREDICATE, uniform_predicate,
};
use crate::program::timing::{ConstantLine, Dependencies};
use crate::sass::{self, Location, Opcode, PredicateOperand, RegisterOperand, SourceOperand, Uses};
use std::collections::BTreeMap;

/// Instructions of a kernel from which on it is not worth while to find out which registers are written before they are read.
const LONG: usize = 2049;
/// Registers of the uniform datapath, without the one that is zero.
const UNIFORM_REGISTERS: u16 = 63;
/// The register that is zero.
const ZERO: u8 = sass::ZERO_REGISTER;

/// The constant bank that each kernel has its own of.
const KERNEL_BANK: u32 = 2;

/// The rows and constants of a program.
#[derive(Clone, Debug)]
pub(in crate::machine) struct Operands {
    /// General registers.
    pub registers: u16,
    /// The tensor cores that the code is for.
    pub generation: Generation,
    uniform: u16,
    /// The row that reductions at barriers write to.
    pub barrier_row: u16,
    /// Rows behind it for the place of code that threads keep: two, or none where no instruction names it.
    place_rows: u16,
    /// Immediates, and values that launches fill in.
    pub constants: Vec<Row>,
    /// Rows of words that launches fill in. Those of pairs follow each other.
    pub launch_rows: BTreeMap<LaunchWord, u16>,
    known: BTreeMap<u32, u16>,
    known_pairs: BTreeMap<(u32, u32), u16>,
    launch_pairs: BTreeMap<LaunchWord, u16>,
    /// Where parameters begin in bank 0.
    pub parameter_base: ParameterBase,
    bank_2: Vec<u8>,
    bank_3: Option<u64>,
    bank_4: Vec<u8>,
    bank_rows: BTreeMap<u32, u16>,
    /// Whether they are of functions that several kernels have: then words of bank 2 follow from the kernel.
    are_of_functions: bool,
    /// Rows of such words, by their offsets.
    kernel_rows: BTreeMap<u32, u16>,
    /// The same of pairs.
    kernel_pairs: BTreeMap<u32, u16>,
    /// The line of the constant bank that the instruction at hand names an operand in.
    pub constant_line: ConstantLine,
    lists: BTreeMap<Vec<u16>, u16>,
    places: BTreeMap<u32, u16>,
}

/// The kind of a word in a bank.
enum Word32 {
    Known(u32),
    Launch(LaunchWord),
    /// The address of a kernel, at this offset of bank 2, in functions that several kernels have.
    Kernel(u32),
}

/// A predicate that is read: its slot, and the mask that inverts it.
pub(super) type PredicateSource = (u8, u32);

impl Operands {
    pub fn new(code: &MachineCode, decoded: &[sass::Instruction]) -> Operands {
        let has = |opcode: Opcode| decoded.iter().any(|instruction| instruction.opcode() == opcode);
        let uses_uniform = decoded.iter().any(sass::Instruction::names_uniform);
        Operands::with(code, uses_uniform, has(Opcode::Rpcmov), has(Opcode::Usetmaxreg))
    }

    /// Operands of functions that several kernels share, for any of these kernels.
    pub fn of_functions(code: &MachineCode) -> Operands {
        let (has_uniform, has_places) = (code.architecture >= 75, code.architecture >= 80);
        Operands { are_of_functions: true, ..Operands::with(code, has_uniform, has_places, false) }
    }

    /// Operands of a kernel that has these functions, before its own code is lowered.
    pub fn of_kernel(&self, code: &MachineCode) -> Operands {
        let mut operands = Operands {
            bank_2: code.bank_2.clone(),
            parameter_base: code.parameter_base,
            are_of_functions: false,
            ..self.clone()
        };
        let rows = self.kernel_rows.iter().map(|(offset, row)| (*offset, *row));
        let halves = self.kernel_pairs.iter().flat_map(|(offset, row)| [(*offset, *row), (offset + 4, row + 1)]);
        for (offset, row) in rows.chain(halves) {
            operands.constants[usize::from(row)] = Row([word_at(&code.bank_2, offset); LANES]);
        }
        operands
    }

    /// Whether code reads bank 2 by an index.
    pub fn has_rows_of_bank_2(&self) -> bool {
        self.bank_rows.contains_key(&KERNEL_BANK)
    }

    fn with(code: &MachineCode, uses_uniform: bool, uses_places: bool, changes_count: bool) -> Operands {
        // Registers are given out in units; a vector may name a few beyond the last that is used.
        // A warp may ask for more than its kernel begins with.
        let most = if changes_count { u16::from(ZERO) } else { code.resources.registers_per_thread as u16 };
        let registers = most.clamp(1, u16::from(ZERO)).next_multiple_of(8) + 8;
        let uniform = if uses_uniform { UNIFORM_REGISTERS + 1 } else { 0 };
        Operands {
            registers,
            generation: Generation::of(code.architecture),
            uniform,
            barrier_row: FIRST_ROW + registers + uniform,
            place_rows: if uses_places { 2 } else { 0 },
            // The first two rows are zero: RZ, and a pair of it.
            constants: vec![Row::ZERO; 2],
            launch_rows: BTreeMap::new(),
            known: BTreeMap::from([(0, 0)]),
            known_pairs: BTreeMap::from([((0, 0), 0)]),
            launch_pairs: BTreeMap::new(),
            parameter_base: code.parameter_base,
            bank_2: code.bank_2.clone(),
            bank_3: code.bank_3.map(|(address, _)| address),
            bank_4: code.bank_4.clone(),
            bank_rows: BTreeMap::new(),
            are_of_functions: false,
            kernel_rows: BTreeMap::new(),
            kernel_pairs: BTreeMap::new(),
            constant_line: ConstantLine::default(),
            lists: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    /// Rows of a warp's register file.
    pub fn rows(&self) -> u16 {
        self.barrier_row + 1 + self.place_rows
    }

    /// The first of the two rows of the place of code that threads keep, which an instruction names.
    pub fn place_row(&self) -> u16 {
        if self.place_rows == 0 { SINK_ROW } else { self.barrier_row + 1 }
    }

    /// The registers that are brought closer before an instruction issues: the first ones that it reads and writes. Control words alone
    /// decide readiness.
    pub fn dependencies(&self, uses: &Uses) -> Dependencies {
        let general = uses.reads.iter().chain(&uses.writes).map(|range| self.row(range.first));
        let uniform = uses.uniform_reads.iter().map(|range| self.uniform_row(range.first));
        let mut waits = [SINK_ROW; 6];
        for (place, row) in waits.iter_mut().zip(general.chain(uniform)) {
            *place = row;
        }
        Dependencies { waits, ..Dependencies::default() }
    }

    /// The rows that a warp starts with as zeros: those that may be read before they are written, which in long kernels are all.
    /// `behind` are functions that other kernels have, too.
    pub fn zeroed_rows(&self, decoded: &[sass::Instruction], behind: &[sass::Instruction]) -> Vec<u16> {
        let live = match decoded.len() + behind.len() {
            LONG.. => Vec::new(),
            _ if behind.is_empty() => sass::live(decoded, &BTreeMap::new()),
            _ => sass::live(&[decoded, behind].concat(), &BTreeMap::new()),
        };
        let Some(first) = live.first() else { return (0..self.rows()).collect() };
        let is_live = |row: &u16| match row.checked_sub(FIRST_ROW) {
            Some(number) if number < self.registers.min(u16::from(ZERO)) => first.before.has_register(number as u8),
            Some(number) => match number.checked_sub(self.registers) {
                Some(number) if number < self.uniform.saturating_sub(1) => first.before.has_uniform(number as u8),
                _ => true,
            },
            None => true,
        };
        (0..self.rows()).filter(is_live).collect()
    }

    /// Predicate slots of a warp.
    pub fn predicates(&self) -> u16 {
        u16::from(FIRST_PREDICATE + 2 * PREDICATES)
    }

    /// A general register that is read.
    pub fn register(&self, number: u8) -> Source {
        if number == ZERO { Source(Source::CONSTANT) } else { Source(self.row(number)) }
    }

    /// The register `further` places behind another one, in a vector that is read.
    pub fn following(&self, number: u8, further: u8) -> Source {
        if number == ZERO { Source(Source::CONSTANT) } else { self.register(number.saturating_add(further)) }
    }

    /// The row of a register that is written.
    pub fn row(&self, number: u8) -> u16 {
        // Registers beyond what the kernel says to have are not there.
        if u16::from(number) >= self.registers { SINK_ROW } else { FIRST_ROW + u16::from(number) }
    }

    /// The same `further` places behind another one.
    pub fn following_row(&self, number: u8, further: u8) -> u16 {
        if number == ZERO { SINK_ROW } else { self.row(number.saturating_add(further)) }
    }

    /// A uniform register that is read.
    pub fn uniform(&self, number: u8) -> Source {
        if number == sass::ZERO_UNIFORM_REGISTER { Source(Source::CONSTANT) } else { Source(self.uniform_row(number)) }
    }

    /// The uniform register `further` places behind another one, in a block that is read.
    pub fn uniform_following(&self, number: u8, further: u8) -> Source {
        if number == sass::ZERO_UNIFORM_REGISTER {
            self.uniform(number)
        } else {
            self.uniform(number.saturating_add(further))
        }
    }

    /// The row of a uniform register that is written.
    pub fn uniform_row(&self, number: u8) -> u16 {
        if u16::from(number) >= self.uniform.saturating_sub(1) {
            SINK_ROW
        } else {
            FIRST_ROW + self.registers + u16::from(number)
        }
    }

    /// A number.
    pub fn number(&mut self, value: u32) -> Source {
        let constants = &mut self.constants;
        let row = *self.known.entry(value).or_insert_with(|| {
            constants.push(Row([value; LANES]));
            (constants.len() - 1).min(usize::from(Source::CONSTANT)) as u16
        });
        Source(Source::CONSTANT | row)
    }

    /// A number of 64 bits.
    pub fn wide_number(&mut self, value: u64) -> Source {
        let (low, high) = (value as u32, (value >> 32) as u32);
        let constants = &mut self.constants;
        let row = *self.known_pairs.entry((low, high)).or_insert_with(|| {
            constants.extend([Row([low; LANES]), Row([high; LANES])]);
            (constants.len() - 2).min(usize::from(Source::CONSTANT)) as u16
        });
        Source(Source::CONSTANT | row)
    }

    /// Where constant bank 3 lies in device memory.
    pub fn bank_3(&self) -> Option<u64> {
        self.bank_3
    }

    /// The first row of the constants that has a bank's words, 32 in each, and the number of words.
    pub fn bank_rows(&mut self, bank: u32) -> Result<(u16, u32), String> {
        let bytes = match bank {
            KERNEL_BANK => &self.bank_2,
            4 => &self.bank_4,
            _ => return Err(format!("there is no constant bank {bank}")),
        };
        let words: Vec<u32> = bytes
            .chunks(4)
            .map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)))
            .collect();
        let constants = &mut self.constants;
        let first = *self.bank_rows.entry(bank).or_insert_with(|| {
            let first = constants.len();
            constants.extend(words.chunks(LANES).map(|part| {
                let mut row = Row::ZERO;
                row.0[..part.len()].copy_from_slice(part);
                row
            }));
            first.min(usize::from(Source::CONSTANT)) as u16
        });
        Ok((first, words.len() as u32))
    }

    /// The first row of the constants that lists operands; see [`Instruction::operand_list`](crate::operation::Instruction).
    pub fn list(&mut self, numbers: Vec<u16>) -> u16 {
        let constants = &mut self.constants;
        *self.lists.entry(numbers).or_insert_with_key(|numbers| {
            let first = constants.len();
            constants.extend(numbers.chunks(LANES).map(|part| {
                let mut row = Row::ZERO;
                row.0.iter_mut().zip(part).for_each(|(to, from)| *to = u32::from(*from));
                row
            }));
            first.min(usize::from(Source::CONSTANT)) as u16
        })
    }

    /// Where elements of the matrices of a form are; see [`place_table`].
    pub fn places(&mut self, form: &MatrixForm) -> Source {
        let constants = &mut self.constants;
        let first = *self.places.entry(form.pack()).or_insert_with(|| {
            let first = constants.len();
            constants.extend(place_table(form));
            first.min(usize::from(Source::CONSTANT)) as u16
        });
        Source(Source::CONSTANT | first)
    }

    /// The number of each lane.
    pub fn lane_numbers(&mut self) -> Source {
        let row = self.constants.len();
        self.constants.push(Row(std::array::from_fn(|lane| lane as u32)));
        Source(Source::CONSTANT | row.min(usize::from(Source::CONSTANT)) as u16)
    }

    fn word(&self, bank: u32, offset: u32) -> Result<Word32, String> {
        Ok(match bank {
            0 => Word32::Launch(LaunchWord::Bank0(offset)),
            KERNEL_BANK if self.are_of_functions => Word32::Kernel(offset),
            KERNEL_BANK => Word32::Known(word_at(&self.bank_2, offset)),
            3 => Word32::Launch(LaunchWord::Bank3(offset)),
            4 => Word32::Known(word_at(&self.bank_4, offset)),
            _ => return Err(format!("there is no constant bank {bank}")),
        })
    }

    /// A word of a constant bank.
    pub fn constant(&mut self, bank: u32, offset: u32) -> Result<Source, String> {
        self.constant_line = ConstantLine::of(bank, offset);
        let word = self.word(bank, offset)?;
        let constants = &mut self.constants;
        let new_row = || {
            constants.push(Row::ZERO);
            (constants.len() - 1).min(usize::from(Source::CONSTANT)) as u16
        };
        let row = match word {
            Word32::Known(value) => return Ok(self.number(value)),
            Word32::Launch(word) => *self.launch_rows.entry(word).or_insert_with(new_row),
            Word32::Kernel(offset) => *self.kernel_rows.entry(offset).or_insert_with(new_row),
        };
        Ok(Source(Source::CONSTANT | row))
    }

    /// Two words of a constant bank.
    pub fn wide_constant(&mut self, bank: u32, offset: u32) -> Result<Source, String> {
        self.constant_line = ConstantLine::of(bank, offset);
        let words = [self.word(bank, offset)?, self.word(bank, offset + 4)?];
        let constants = &mut self.constants;
        let new_pair = || {
            constants.extend([Row::ZERO; 2]);
            (constants.len() - 2).min(usize::from(Source::CONSTANT)) as u16
        };
        let row = match words {
            [Word32::Known(low), Word32::Known(high)] => {
                return Ok(self.wide_number(u64::from(low) | u64::from(high) << 32));
            }
            [Word32::Launch(low), Word32::Launch(_)] => *self.launch_pairs.entry(low).or_insert_with(new_pair),
            [Word32::Kernel(low), Word32::Kernel(_)] => *self.kernel_pairs.entry(low).or_insert_with(new_pair),
            _ => return Err(format!("constant bank {bank} ends within a number")),
        };
        Ok(Source(Source::CONSTANT | row))
    }

    /// All rows that launches fill in.
    pub fn launch_words(&self) -> impl Iterator<Item = (u16, LaunchWord)> + '_ {
        let single = self.launch_rows.iter().map(|(word, row)| (*row, *word));
        let pairs = self.launch_pairs.iter().flat_map(|(word, row)| {
            let next = match *word {
                LaunchWord::Bank0(offset) => LaunchWord::Bank0(offset + 4),
                LaunchWord::Bank3(offset) => LaunchWord::Bank3(offset + 4),
            };
            [(*row, *word), (*row + 1, next)]
        });
        single.chain(pairs)
    }

    /// A register that is read.
    pub fn read_register(&self, register: RegisterOperand) -> Source {
        match register {
            RegisterOperand::General(number) => self.register(number),
            RegisterOperand::Uniform(number) => self.uniform(number),
        }
    }

    /// The row of a register that is written; the sink where there is none.
    pub fn written(&self, register: Option<RegisterOperand>) -> u16 {
        match register {
            Some(RegisterOperand::General(number)) => self.row(number),
            Some(RegisterOperand::Uniform(number)) => self.uniform_row(number),
            None => SINK_ROW,
        }
    }

    /// The same of the register `further` places behind another one.
    pub fn written_following(&self, register: Option<RegisterOperand>, further: u8) -> u16 {
        match register {
            Some(RegisterOperand::General(number)) => self.following_row(number, further),
            Some(RegisterOperand::Uniform(number)) => self.uniform_row(number.saturating_add(further)),
            None => SINK_ROW,
        }
    }

    /// A source of 32 bits.
    pub fn read(&mut self, source: SourceOperand) -> Result<Source, String> {
        match source.location {
            Location::Register(register) => Ok(self.read_register(register)),
            Location::Immediate(value) => Ok(self.number(value)),
            Location::Constant { bank, offset, .. } => self.constant(bank, offset as u32),
        }
    }

    /// A source of 64 bits; an immediate is its upper half.
    pub fn read_wide(&mut self, source: SourceOperand) -> Result<Source, String> {
        match source.location {
            Location::Register(register) => Ok(self.read_register(register)),
            Location::Immediate(value) => Ok(self.wide_number(u64::from(value) << 32)),
            Location::Constant { bank, offset, .. } => self.wide_constant(bank, offset as u32),
        }
    }

    /// The same, where an immediate is extended with its sign.
    pub fn read_extended(&mut self, source: SourceOperand) -> Result<Source, String> {
        match source.immediate() {
            Some(value) => Ok(self.wide_number(i64::from(value as i32) as u64)),
            None => self.read_wide(source),
        }
    }
}

/// A word of a bank; zero past its end.
fn word_at(bytes: &[u8], offset: u32) -> u32 {
    let mut value = [0; 4];
    for (to, from) in value.iter_mut().zip(bytes.iter().skip(offset as usize)) {
        *to = *from;
    }
    u32::from_le_bytes(value)
}

/// The sign of a source, shifted to the place of source `number` among an instruction's signs.
pub(super) fn sign_of(source: SourceOperand, number: usize) -> u8 {
    let negates = if source.is_negated { sign::NEGATE } else { 0 };
    let takes_absolute = if source.is_absolute { sign::ABSOLUTE } else { 0 };
    (negates | takes_absolute) << (2 * number)
}

/// The slot of a predicate that is read.
pub(super) fn predicate(number: u8) -> u8 {
    if number >= PREDICATES { TRUE_PREDICATE } else { FIRST_PREDICATE + number }
}

/// A predicate that is read; PT where there is none.
pub(super) fn predicate_source(predicate: Option<PredicateOperand>) -> PredicateSource {
    match predicate {
        Some(PredicateOperand { number, is_uniform, is_inverted }) => {
            let slot = if is_uniform { uniform_predicate(number) } else { self::predicate(number) };
            (slot, if is_inverted { u32::MAX } else { 0 })
        }
        None => (TRUE_PREDICATE, 0),
    }
}

/// The slot of a predicate that is written; the sink where there is none.
pub(super) fn predicate_destination(predicate: Option<PredicateOperand>) -> u8 {
    match predicate {
        Some(PredicateOperand { number: number @ 0..PREDICATES, is_uniform: true, .. }) => uniform_predicate(number),
        Some(PredicateOperand { number: number @ 0..PREDICATES, .. }) => self::predicate(number),
        _ => SINK_PREDICATE,
    }
}
