//! Where hazards are checked: a warp's copies to shared memory and its products of matrices that the program has not waited for, what of
//! shared memory they write and read, and the registers that the products read and write.
//!
//! Copies are gone when their batch is, products when a wait for their group has been executed: how long the tensor cores take is not what a
//! program may count on.

use super::copies::Copies;
use balar_isa::execution::ProductReads;
use balar_isa::sass::{Instruction, Opcode, RegisterRange};
use serde::{Deserialize, Serialize};

/// Bytes of a word.
const WORD: u32 = 4;

/// Words of shared memory, a bit each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Words {
    bits: Vec<u64>,
}

impl Words {
    /// Adds the words of these bytes.
    pub fn insert(&mut self, offset: u32, bytes: u32) {
        for word in offset / WORD..(offset + bytes).div_ceil(WORD) {
            let place = (word / u64::BITS) as usize;
            if self.bits.len() <= place {
                self.bits.resize(place + 1, 0);
            }
            self.bits[place] |= 1 << (word % u64::BITS);
        }
    }

    /// The first of these bytes' words that is there: its offset.
    pub fn first_of(&self, offset: u32, bytes: u32) -> Option<u32> {
        let words = offset / WORD..offset.saturating_add(bytes).div_ceil(WORD);
        let known = self.bits.len() as u32 * u64::BITS;
        let mut words = words.start..words.end.min(known);
        let found = words.find(|word| self.bits[(word / u64::BITS) as usize] >> (word % u64::BITS) & 1 != 0)?;
        Some((found * WORD).max(offset))
    }
}

/// A copy: `cp.async`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Copy {
    pc: u32,
    /// The number of its batch.
    batch: u32,
    writes: Words,
}

/// A product.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Product {
    pc: u32,
    /// How many groups had ended before its own.
    group: u64,
    reads: Words,
    /// Registers of machine code, the first and their number: those of the result, and of a first matrix that is in registers.
    result: (u8, u8),
    factor: (u8, u8),
}

/// Something that an instruction came too early for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooEarly {
    /// The offset in shared memory, or the register.
    pub place: u32,
    /// The instruction that has not finished with it.
    pub pc: u32,
}

/// What the program has not waited for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Unwaited {
    copies: Vec<Copy>,
    products: Vec<Product>,
    /// Groups of products that have ended.
    groups: u64,
}

impl Unwaited {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.copies.clear();
        self.products.clear();
        self.groups = 0;
    }

    /// A copy has begun: gives the words that it writes, to be filled in.
    pub fn begin_copy(&mut self, pc: u32, copies: &Copies) -> &mut Words {
        self.copies.retain(|copy| copies.has_not_finished(copy.batch));
        let place = self.copies.len();
        self.copies.push(Copy { pc, batch: copies.number(), writes: Words::default() });
        &mut self.copies[place].writes
    }

    /// The program waits for all copies.
    pub fn copies_waited_for(&mut self) {
        self.copies.clear();
    }

    /// A product has begun, of this instruction where it is one of machine code.
    pub fn begin_product(&mut self, pc: u32, reads: &ProductReads, instruction: Option<&Instruction>) {
        let mut words = Words::default();
        reads.for_each_chunk(|offset| words.insert(offset, ProductReads::CHUNK));
        let (mut result, mut factor) = ((0, 0), (0, 0));
        if let Some(instruction) = instruction {
            let uses = instruction.uses();
            result = uses.writes.first().map_or((0, 0), |range| (range.first, range.count));
            if let Some(first) = instruction.source(0).and_then(|source| source.register()) {
                let read = uses.reads.iter().find(|range| range.first == first);
                factor = read.map_or((0, 0), |range| (range.first, range.count));
            }
        }
        self.products.push(Product { pc, group: self.groups, reads: words, result, factor });
    }

    /// The products since the last group are one.
    pub fn end_group(&mut self) {
        self.groups += 1;
    }

    /// The program waits until at most so many of the groups are under way.
    pub fn products_waited_for(&mut self, groups: u32) {
        let ended = self.groups;
        self.products.retain(|product| product.group + u64::from(groups) >= ended);
    }

    /// A copy that writes some of these bytes.
    pub fn copy_to(&self, copies: &Copies, offset: u32, bytes: u32) -> Option<TooEarly> {
        let mut under_way = self.copies.iter().filter(|copy| copies.has_not_finished(copy.batch));
        under_way.find_map(|copy| copy.writes.first_of(offset, bytes).map(|place| TooEarly { place, pc: copy.pc }))
    }

    /// A product that reads some of these bytes.
    pub fn product_of(&self, offset: u32, bytes: u32) -> Option<TooEarly> {
        let mut products = self.products.iter();
        products
            .find_map(|product| product.reads.first_of(offset, bytes).map(|place| TooEarly { place, pc: product.pc }))
    }

    /// An instruction of machine code that reads or writes a register of a product's result, or writes one of its first matrix: what it does
    /// to it, and what the product still does. Products follow each other in order.
    pub fn register_of_product(&self, instruction: &Instruction) -> Option<([&'static str; 2], TooEarly)> {
        let is_product = matches!(instruction.opcode(), Opcode::Hgmma | Opcode::Igmma | Opcode::Bgmma | Opcode::Qgmma);
        if self.products.is_empty() || is_product {
            return None;
        }
        let uses = instruction.uses();
        self.products.iter().find_map(|product| {
            let found = |ranges: &[RegisterRange], (first, count): (u8, u8)| {
                let mut registers = ranges.iter().flat_map(|range| range.registers());
                let place =
                    registers.find(|register| register.checked_sub(first).is_some_and(|place| place < count))?;
                Some(TooEarly { place: place.into(), pc: product.pc })
            };
            let read = found(&uses.reads, product.result).map(|early| (["reads", "written"], early));
            read.or_else(|| found(&uses.writes, product.result).map(|early| (["writes", "written"], early)))
                .or_else(|| found(&uses.writes, product.factor).map(|early| (["writes", "read"], early)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_isa::sass::{Word, decode};

    /// `FADD R9, R4, R3` of `workloads/` with other registers.
    fn add(result: u128, left: u128) -> Instruction {
        decode(Word(0x004fd00000000000_0000000300007221 | result << 16 | left << 24), 0, 90)
            .expect("it is in the tables")
    }

    #[test]
    fn registers_of_a_product_stay_until_its_wait() {
        // `HGMMA.64x64x16.F32 R24, R56, gdesc[UR4], R24, UP0, gsb0`: 32 registers of the result, four of A.
        let word = Word(0x000fe6000b800818_00e0000438187df0);
        let product = decode(word, 0, 90).expect("it is in the tables");
        let mut unwaited = Unwaited::default();
        unwaited.begin_product(7, &ProductReads::default(), Some(&product));
        let found = |unwaited: &Unwaited, result, left| {
            unwaited.register_of_product(&add(result, left)).map(|(does, early)| (does, early.place))
        };
        let expected = [
            (9, 24, Some((["reads", "written"], 24))),
            (55, 9, Some((["writes", "written"], 55))),
            (56, 9, Some((["writes", "read"], 56))),
            (9, 59, None),
            (60, 23, None),
        ];
        for (result, left, expected) in expected {
            assert_eq!(found(&unwaited, result, left), expected, "R{result} = R{left} + R3");
        }
        assert_eq!(unwaited.register_of_product(&product), None, "products follow each other");
        unwaited.end_group();
        unwaited.products_waited_for(1);
        assert!(found(&unwaited, 9, 24).is_some());
        unwaited.products_waited_for(0);
        assert_eq!(found(&unwaited, 9, 24), None);
    }

    #[test]
    fn words_overlap_by_bytes() {
        let mut words = Words::default();
        words.insert(0x1000, 16);
        words.insert(6, 1);
        assert_eq!(words.first_of(0xff8, 8), None);
        assert_eq!(words.first_of(0xff8, 9), Some(0x1000));
        assert_eq!(words.first_of(0x100e, 64), Some(0x100e));
        assert_eq!(words.first_of(0x1010, u32::MAX), None);
        assert_eq!([words.first_of(0, 4), words.first_of(0, 8), words.first_of(4, 1)], [None, Some(4), Some(4)]);
    }
}
