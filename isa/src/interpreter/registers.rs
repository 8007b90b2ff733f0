//! The registers of a warp, and rows read and written as lanes of a type.

use crate::lanes::LANES;
use crate::operation::operand::{Row, Source, TRUE_PREDICATE};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Registers, predicates and the values of special registers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Registers {
    /// The register file.
    pub rows: Vec<Row>,
    /// Predicates, a bit a lane.
    pub predicates: Vec<u32>,
    /// The carry flag, a bit a lane.
    pub carry: u32,
    /// Special registers that are the same in all lanes, by `special` index.
    pub special: [u32; special::COUNT],
    /// Those about the CTA's cluster, by `cluster` index.
    pub cluster: [u32; cluster::COUNT],
    /// The launch's parameter block.
    pub parameters: Arc<[u8]>,
}

/// Places in [`Registers::special`].
pub(crate) mod special {
    pub const BLOCK: usize = 0;
    pub const CTA: usize = 3;
    pub const GRID: usize = 6;
    pub const SM: usize = 9;
    pub const SM_COUNT: usize = 10;
    pub const WARP: usize = 11;
    pub const WARP_COUNT: usize = 12;
    pub const GRID_ID_LOW: usize = 13;
    pub const DYNAMIC_SHARED: usize = 15;
    pub const TOTAL_SHARED: usize = 16;
    pub const ZERO: usize = 17;
    pub const ONE: usize = 18;
    /// `%envreg1`; `%envreg2` follows. All other environment registers are 0.
    pub const ENVIRONMENT_1: usize = 19;
    /// The number of the warp's first thread in its CTA, which follows from no register of PTX.
    pub const FIRST_THREAD: usize = 21;
    pub const COUNT: usize = 22;
}

/// Places in [`Registers::cluster`]; those of the first four are three each.
pub(crate) mod cluster {
    /// `%clusterid`
    pub const INDEX: usize = 0;
    /// `%nclusterid`
    pub const INDICES: usize = 3;
    /// `%cluster_ctaid`
    pub const CTA: usize = 6;
    /// `%cluster_nctaid`
    pub const CTAS: usize = 9;
    /// `%cluster_ctarank`
    pub const RANK: usize = 12;
    /// `%cluster_nctarank`
    pub const SIZE: usize = 13;
    /// 1 where the launch names its clusters.
    pub const IS_EXPLICIT: usize = 14;
    pub const COUNT: usize = 15;
}

impl Registers {
    /// The rows from an operand's first.
    #[inline(always)]
    pub fn source<'a>(&'a self, constants: &'a [Row], source: Source, rows: usize) -> &'a [Row] {
        let table = if source.0 & Source::CONSTANT != 0 { constants } else { &self.rows };
        let first = usize::from(source.0 & !Source::CONSTANT);
        &table[first..first + rows]
    }

    /// The value of a predicate operand.
    #[inline(always)]
    pub fn predicate(&self, slot: u8, flip: u32) -> u32 {
        self.predicates[usize::from(slot)] ^ flip
    }

    /// `%tid.x`, `.y` or `.z` of each lane.
    #[inline(always)]
    pub fn thread_index(&self, axis: usize) -> [u32; LANES] {
        let [width, height] = [special::BLOCK, special::BLOCK + 1].map(|place| self.special[place].max(1));
        let first = self.special[special::FIRST_THREAD];
        let (mut x, mut y, mut z) = (first % width, first / width % height, first / width / height);
        if x + LANES as u32 <= width {
            let (start, step) = [(x, 1), (y, 0), (z, 0)][axis];
            return std::array::from_fn(|lane| start + step * lane as u32);
        }
        std::array::from_fn(|_| {
            let index = [x, y, z][axis];
            x += 1;
            if x == width {
                (x, y) = (0, y + 1);
            }
            if y == height {
                (y, z) = (0, z + 1);
            }
            index
        })
    }

    /// Sets a predicate in the lanes of a mask.
    #[inline(always)]
    pub fn set_predicate(&mut self, slot: u8, value: u32, mask: u32) {
        debug_assert_ne!(slot, TRUE_PREDICATE);
        let predicate = &mut self.predicates[usize::from(slot)];
        *predicate = (*predicate & !mask) | (value & mask);
    }
}

/// A type that a lane's part of a row, or of two, can hold.
pub(crate) trait Lane: Copy {
    /// The value of zero bits.
    const ZERO: Self;
    /// Reads all lanes of an operand.
    fn read(registers: &Registers, constants: &[Row], source: Source) -> [Self; LANES];
    /// Writes the lanes of a mask.
    fn write(registers: &mut Registers, destination: u16, values: &[Self; LANES], mask: u32);
    /// As [`Self::read`], for machine code: the halves of 64-bit values are registers of their own, a row each.
    #[inline(always)]
    fn read_pair(registers: &Registers, constants: &[Row], source: Source) -> [Self; LANES] {
        Self::read(registers, constants, source)
    }
    /// As [`Self::write`], for machine code.
    #[inline(always)]
    fn write_pair(registers: &mut Registers, destination: u16, values: &[Self; LANES], mask: u32) {
        Self::write(registers, destination, values, mask);
    }
}

#[inline(always)]
fn read32(registers: &Registers, constants: &[Row], source: Source) -> [u32; LANES] {
    registers.source(constants, source, 1)[0].0
}

#[inline(always)]
fn write32(registers: &mut Registers, destination: u16, values: &[u32; LANES], mask: u32) {
    let row = &mut registers.rows[usize::from(destination)].0;
    if mask == u32::MAX {
        *row = *values;
    } else {
        for lane in 0..LANES {
            let keep = ((mask >> lane) & 1).wrapping_sub(1);
            row[lane] = (row[lane] & keep) | (values[lane] & !keep);
        }
    }
}

#[inline(always)]
fn read64(registers: &Registers, constants: &[Row], source: Source) -> [u64; LANES] {
    let rows = registers.source(constants, source, 2);
    bytemuck::cast([rows[0], rows[1]])
}

#[inline(always)]
fn write64(registers: &mut Registers, destination: u16, values: &[u64; LANES], mask: u32) {
    let first = usize::from(destination);
    let rows = &mut registers.rows[first..first + 2];
    let row: &mut [u64] = bytemuck::cast_slice_mut(rows);
    if mask == u32::MAX {
        row.copy_from_slice(values);
    } else {
        for (lane, (old, value)) in row.iter_mut().zip(values).enumerate() {
            let keep = u64::from((mask >> lane) & 1).wrapping_sub(1);
            *old = (*old & keep) | (*value & !keep);
        }
    }
}

/// Applies an expression to all lanes. A plain loop: closures passed to library functions may stay calls, compiled without the
/// processor's vector features.
macro_rules! each_lane {
    ($values:expr, |$value:ident| $result:expr) => {{
        let values = $values;
        let mut results = [{
            let $value = values[0];
            $result
        }; LANES];
        for lane in 1..LANES {
            let $value = values[lane];
            results[lane] = $result;
        }
        results
    }};
}
pub(crate) use each_lane;

#[inline(always)]
fn read_halves(registers: &Registers, constants: &[Row], source: Source) -> [u64; LANES] {
    let rows = registers.source(constants, source, 2);
    let mut values = [0; LANES];
    for (lane, value) in values.iter_mut().enumerate() {
        *value = u64::from(rows[0].0[lane]) | u64::from(rows[1].0[lane]) << 32;
    }
    values
}

#[inline(always)]
fn write_halves(registers: &mut Registers, destination: u16, values: &[u64; LANES], mask: u32) {
    write32(registers, destination, &each_lane!(values, |value| value as u32), mask);
    write32(registers, destination + 1, &each_lane!(values, |value| (value >> 32) as u32), mask);
}

macro_rules! lane {
    ($type:ty, $read:ident, $write:ident, |$from:ident| $load:expr, |$to:ident| $store:expr) => {
        lane!($type, $read, $write, |$from| $load, |$to| $store, {});
    };
    ($type:ty, |$from:ident| $load:expr, |$to:ident| $store:expr) => {
        lane!($type, read64, write64, |$from| $load, |$to| $store, {
            #[inline(always)]
            fn read_pair(registers: &Registers, constants: &[Row], source: Source) -> [Self; LANES] {
                each_lane!(read_halves(registers, constants, source), |$from| $load)
            }
            #[inline(always)]
            fn write_pair(registers: &mut Registers, destination: u16, values: &[Self; LANES], mask: u32) {
                write_halves(registers, destination, &each_lane!(values, |$to| $store), mask);
            }
        });
    };
    ($type:ty, $read:ident, $write:ident, |$from:ident| $load:expr, |$to:ident| $store:expr, {$($pair:item)*}) => {
        impl Lane for $type {
            const ZERO: Self = 0 as $type;
            #[inline(always)]
            fn read(registers: &Registers, constants: &[Row], source: Source) -> [Self; LANES] {
                each_lane!($read(registers, constants, source), |$from| $load)
            }
            #[inline(always)]
            fn write(registers: &mut Registers, destination: u16, values: &[Self; LANES], mask: u32) {
                $write(registers, destination, &each_lane!(values, |$to| $store), mask);
            }
            $($pair)*
        }
    };
}
lane!(u8, read32, write32, |from| from as u8, |to| u32::from(to));
lane!(i8, read32, write32, |from| from as i8, |to| to as u32);
lane!(u16, read32, write32, |from| from as u16, |to| u32::from(to));
lane!(i16, read32, write32, |from| from as i16, |to| u32::from(to as u16));
lane!(u32, read32, write32, |from| from, |to| to);
lane!(i32, read32, write32, |from| from as i32, |to| to as u32);
lane!(f32, read32, write32, |from| f32::from_bits(from), |to| to.to_bits());
lane!(u64, |from| from, |to| to);
lane!(i64, |from| from as i64, |to| to as u64);
lane!(f64, |from| f64::from_bits(from), |to| to.to_bits());

/// No operand.
impl Lane for () {
    const ZERO: Self = ();
    #[inline(always)]
    fn read(_: &Registers, _: &[Row], _: Source) -> [Self; LANES] {
        [(); LANES]
    }
    #[inline(always)]
    fn write(_: &mut Registers, _: u16, _: &[Self; LANES], _: u32) {}
}
