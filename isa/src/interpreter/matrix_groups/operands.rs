//! The elements of a group's product: A and B from registers and shared memory, the accumulator from registers and back.
//!
//! Columns are computed in blocks. In a block, each tile of eight has its even columns first: those are what four lanes beside each other
//! hold in one register of the accumulator, the odd ones in the next, so that accumulators are copied by four.

use super::descriptor::{CHUNK, Descriptor, OutOfReach, chunk};
use crate::interpreter::registers::{Lane, Registers};
use crate::interpreter::tensor_columns::WIDTH;
use crate::interpreter::tensor_sum::widened;
use crate::lanes::LANES;
use crate::matrix::Element;
use crate::matrix_group::{GroupForm, WARP_ROWS};
use crate::operation::Instruction;
use crate::operation::operand::{Row, Source};

/// A product that is to be computed.
pub(super) struct Product<'a> {
    pub form: GroupForm,
    pub instruction: &'a Instruction,
    pub constants: &'a [Row],
    pub shared: &'a [u8],
    /// Those of A and B.
    pub descriptors: [Descriptor; 2],
    /// Whether the accumulator counts.
    pub adds: bool,
    /// The warp's number in its group.
    pub warp: u32,
    pub mask: u32,
}

/// Columns that are computed together.
pub(super) const BLOCK: usize = 64;
/// Columns of a tile.
const TILE: usize = 8;

/// The accumulators of a block of columns: halves as singles, all else as it is.
pub(super) struct Block(pub [[[u32; WIDTH]; BLOCK / WIDTH]; WARP_ROWS]);

impl Block {
    pub const ZERO: Block = Block([[[0; WIDTH]; BLOCK / WIDTH]; WARP_ROWS]);
}

/// The place of a tile's column in it.
const fn place_in_tile(column: usize) -> usize {
    column % 2 * 4 + column / 2
}

/// Calls back with the elements of a chunk and their numbers.
#[inline(always)]
fn elements(bits: u32, bytes: [u8; CHUNK], mut put: impl FnMut(usize, u32)) {
    match bits {
        8 => bytes.into_iter().enumerate().for_each(|(number, byte)| put(number, byte.into())),
        16 => {
            let (halves, _) = bytes.as_chunks::<2>();
            halves.iter().enumerate().for_each(|(number, half)| put(number, u16::from_le_bytes(*half).into()));
        }
        _ => {
            let (words, _) = bytes.as_chunks::<4>();
            words.iter().enumerate().for_each(|(number, word)| put(number, u32::from_le_bytes(*word)));
        }
    }
}

impl Product<'_> {
    /// An operand of the list.
    #[inline(always)]
    fn listed(&self, number: usize) -> u16 {
        let rows = &self.constants[usize::from(self.instruction.operand_list)..];
        rows[number / LANES].0[number % LANES] as u16
    }

    /// The warp's rows of A with the zeros that a sparse one leaves out. Where metadata name a place twice, which the ISA does not allow, the
    /// later element is there.
    #[inline(always)]
    pub(super) fn gather_whole_rows<const STORED: usize, const DEPTH: usize>(
        &self,
        registers: &Registers,
        rows: &mut [[u32; DEPTH]; WARP_ROWS],
    ) -> Result<(), OutOfReach> {
        let Some(selector) = self.form.selector else { return self.gather_rows(registers, rows) };
        let mut stored = [[0; STORED]; WARP_ROWS];
        self.gather_rows(registers, &mut stored)?;
        let place = 2 * self.form.result_registers() + self.form.factor_registers();
        let metadata = u32::read(registers, self.constants, Source(self.listed(place)));
        let sparse = self.form.sparse_rows();
        for (row, (stored, whole)) in stored.iter().zip(rows).enumerate() {
            for (place, element) in stored.iter().enumerate() {
                whole[sparse.column(&metadata, selector.into(), row, place) % DEPTH] = *element;
            }
        }
        Ok(())
    }

    /// The warp's rows of A, as they are stored.
    pub(super) fn gather_rows<const DEPTH: usize>(
        &self,
        registers: &Registers,
        rows: &mut [[u32; DEPTH]; WARP_ROWS],
    ) -> Result<(), OutOfReach> {
        let bits = self.form.a.bits();
        if self.form.a_in_registers {
            let before = 2 * self.form.result_registers();
            for register in 0..self.form.factor_registers() {
                let words = registers.source(self.constants, Source(self.listed(before + register)), 1)[0].0;
                for (lane, word) in words.into_iter().enumerate() {
                    for part in 0..self.form.a.per_register() as usize {
                        let (row, place) = self.form.factor_position(lane, register, part);
                        rows[row][place] = word >> (bits * part as u32) & (u32::MAX >> (32 - bits));
                    }
                }
            }
            return Ok(());
        }
        let (descriptor, first) = (&self.descriptors[0], self.warp * WARP_ROWS as u32);
        let each = CHUNK * 8 / bits as usize;
        if self.form.transposes[0] {
            for (depth, place) in (0..DEPTH as u32).zip(0..DEPTH) {
                for part in 0..WARP_ROWS / each {
                    let address = descriptor.of_depth(first / each as u32 + part as u32, depth);
                    let bytes = chunk(self.shared, address)?;
                    elements(bits, bytes, |number, element| rows[part * each + number][place] = element);
                }
            }
            return Ok(());
        }
        for (row, elements_of_row) in rows.iter_mut().enumerate() {
            for part in 0..DEPTH / each {
                let bytes = chunk(self.shared, descriptor.of_row(first + row as u32, part as u32))?;
                elements(bits, bytes, |number, element| elements_of_row[part * each + number] = element);
            }
        }
        Ok(())
    }

    /// Columns of B from `first` on, by groups of columns, each depth by depth. Others of the last group stay as they are.
    pub(super) fn gather_columns<const DEPTH: usize>(
        &self,
        first: u32,
        count: usize,
        columns: &mut [[[u32; WIDTH]; DEPTH]; BLOCK / WIDTH],
    ) -> Result<(), OutOfReach> {
        let (descriptor, bits) = (&self.descriptors[1], self.form.b.bits());
        let each = CHUNK * 8 / bits as usize;
        for tile in 0..count / TILE {
            let (group, before) = (&mut columns[tile * TILE / WIDTH], tile * TILE % WIDTH);
            let first = first + (tile * TILE) as u32;
            if self.form.transposes[1] {
                // Only matrices of 16 bits are transposed: a chunk has the tile's columns.
                for (depth, to) in group.iter_mut().enumerate() {
                    let bytes = chunk(self.shared, descriptor.of_depth(first / TILE as u32, depth as u32))?;
                    elements(bits, bytes, |number, element| to[before + place_in_tile(number % TILE)] = element);
                }
                continue;
            }
            for column in 0..TILE {
                let place = before + place_in_tile(column);
                for part in 0..DEPTH / each {
                    let bytes = chunk(self.shared, descriptor.of_row(first + column as u32, part as u32))?;
                    elements(bits, bytes, |number, element| group[part * each + number][place] = element);
                }
            }
        }
        Ok(())
    }

    /// The accumulators of columns from `first` on; zeros where they do not count.
    pub(super) fn read_block(&self, registers: &Registers, first: u32, count: usize, block: &mut Block) {
        if !self.adds {
            return;
        }
        let of_tile = self.form.result_registers() / (self.form.columns as usize / TILE);
        let before = self.form.result_registers() + first as usize / TILE * of_tile;
        for tile in 0..count / TILE {
            let (group, inside) = (tile * TILE / WIDTH, tile * TILE % WIDTH);
            for register in 0..of_tile {
                let source = Source(self.listed(before + tile * of_tile + register));
                let words = &registers.source(self.constants, source, 1)[0].0;
                for (row, words) in words.as_chunks::<4>().0.iter().enumerate() {
                    if self.form.d == Element::F16 {
                        let to = &mut block.0[row + 8 * register][group][inside..inside + TILE];
                        for (place, word) in words.iter().enumerate() {
                            (to[place], to[place + 4]) = (widened(word & 0xffff), widened(word >> 16));
                        }
                    } else {
                        let to = &mut block.0[row + register / 2 * 8][group];
                        to[inside + register % 2 * 4..][..4].copy_from_slice(words);
                    }
                }
            }
        }
    }

    /// Writes results of columns from `first` on to the registers of D.
    pub(super) fn write_block(&self, registers: &mut Registers, first: u32, count: usize, block: &Block) {
        let of_tile = self.form.result_registers() / (self.form.columns as usize / TILE);
        let before = first as usize / TILE * of_tile;
        for tile in 0..count / TILE {
            let (group, inside) = (tile * TILE / WIDTH, tile * TILE % WIDTH);
            for register in 0..of_tile {
                let mut values = [0; LANES];
                for (row, words) in values.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    if self.form.d == Element::F16 {
                        let from = &block.0[row + 8 * register][group][inside..inside + TILE];
                        for (place, word) in words.iter_mut().enumerate() {
                            *word = from[place] | from[place + 4] << 16;
                        }
                    } else {
                        let from = &block.0[row + register / 2 * 8][group];
                        words.copy_from_slice(&from[inside + register % 2 * 4..][..4]);
                    }
                }
                u32::write(registers, self.listed(before + tile * of_tile + register), &values, self.mask);
            }
        }
    }
}
