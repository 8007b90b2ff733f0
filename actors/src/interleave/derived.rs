//! The address map of a cache with another number of slices than the one that was measured.
//!
//! Rows of address bits number slices and sets together: those of a V100 tell all lines of an aligned run of 128 KiB apart, each in a
//! slice and a set of its own. A power of two of slices keeps that where it can:
//!
//! - With twice the slices, each slice becomes two. The set number gives up a row of bits for it, the one that begins at the lowest bit
//!   above those by which slices are told apart at least.
//! - With half the slices, two neighbours become one. The set number takes the row that told them apart.
//!
//! The rows of the slices that stay are the highest, so that the memory behind the slices keeps its map. Every other number of slices has
//! the general map of [`AddressHash::Granules`], with runs as long as those that the measured bits leave in one slice.

use super::{AddressBits, AddressHash, LOWEST_BIT, MOST_NUMBERED};
use balar_protocol::Bytes;

/// A map that was made for a number of slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DerivedMap {
    /// How lines spread over the slices.
    pub(crate) hash: AddressHash,
    /// How the lines of a slice spread over its sets.
    pub(crate) set_bits: AddressBits,
    /// What was made of the measured map, in words.
    pub(crate) how: String,
}

/// The map over `slices` slices of `sets` sets each, where `measured` numbers other slices and `set_bits` their sets.
pub(crate) fn derive(measured: &AddressBits, set_bits: &AddressBits, sets: u32, slices: u32) -> DerivedMap {
    let rows = measured.count();
    let bits = slices.trailing_zeros();
    let numbered = 1u64.checked_shl(rows).unwrap_or(0);
    if slices.is_power_of_two() && slices <= MOST_NUMBERED {
        let found = match bits > rows {
            true => split(measured, set_bits, bits - rows),
            false => merged(measured, set_bits, sets, rows - bits),
        };
        if let Some((hash, set_bits)) = found {
            let how = if bits > rows {
                let given_up = if bits - rows == 1 { "one".to_owned() } else { (bits - rows).to_string() };
                format!("the {rows} bits of {numbered} slices, and below them {given_up} of the set number")
            } else {
                format!("the highest {bits} of the {rows} bits of {numbered} slices")
            };
            return DerivedMap { hash: AddressHash::Bits(hash), set_bits, how };
        }
    }
    let run = 1u64.checked_shl(measured.0.iter().map(|row| lowest(row)).min().unwrap_or(LOWEST_BIT)).map(Bytes);
    let hash = run.map_or(AddressHash::Xor, AddressHash::Granules);
    let how = format!("the general map {hash}: the bits that are known are those of {numbered} slices");
    DerivedMap { hash, set_bits: AddressBits::default(), how }
}

/// The rows of slices and sets where each slice becomes 2^more.
fn split(measured: &AddressBits, set_bits: &AddressBits, more: u32) -> Option<(AddressBits, AddressBits)> {
    let granularity = measured.0.iter().map(|row| lowest(row)).min()?;
    let mut rows: Vec<usize> = (0..set_bits.0.len()).filter(|&row| lowest(&set_bits.0[row]) > granularity).collect();
    rows.sort_by_key(|&row| lowest(&set_bits.0[row]));
    let given_up = rows.get(..more as usize)?;
    let mut slices = measured.0.clone();
    // The last one given up is the lowest, so that 128 slices are 64 slices in halves.
    given_up.iter().for_each(|&row| slices.insert(0, set_bits.0[row].clone()));
    let kept = (0..set_bits.0.len()).filter(|row| !given_up.contains(row));
    Some((AddressBits(slices), AddressBits(kept.map(|row| set_bits.0[row].clone()).collect())))
}

/// The rows of slices and sets where 2^fewer neighbours become one.
fn merged(measured: &AddressBits, set_bits: &AddressBits, sets: u32, fewer: u32) -> Option<(AddressBits, AddressBits)> {
    let (dropped, kept) = measured.0.split_at_checked(fewer as usize)?;
    let slices = AddressBits(kept.to_vec());
    if set_bits.0.is_empty() {
        // The sets were not told apart by bits before.
        return Some((slices, AddressBits::default()));
    }
    let mut rows: Vec<Vec<u32>> = set_bits.0.iter().chain(dropped).cloned().collect();
    rows.sort_by_key(|row| lowest(row));
    while !rows.is_empty() {
        let divides = 1u32.checked_shl(rows.len() as u32).is_some_and(|counted| sets.is_multiple_of(counted));
        if divides && tell_all_apart(slices.0.iter().chain(&rows)) {
            return Some((slices, AddressBits(rows)));
        }
        rows.pop();
    }
    None
}

fn lowest(row: &[u32]) -> u32 {
    row.iter().copied().min().unwrap_or(u32::MAX)
}

/// Do as many rows as there are bits give every line of an aligned run of 2^rows lines another number?
fn tell_all_apart<'a>(rows: impl Iterator<Item = &'a Vec<u32>>) -> bool {
    let bit = |bit: &u32| bit.checked_sub(LOWEST_BIT).and_then(|bit| 1u64.checked_shl(bit)).unwrap_or(0);
    let mut rows: Vec<u64> = rows.map(|row| row.iter().fold(0, |mask, position| mask ^ bit(position))).collect();
    // Gaussian elimination over the lowest bits: each has a row of its own.
    for bit in 0..rows.len() {
        let Some(at) = rows.iter().position(|row| row >> bit & 1 == 1) else { return false };
        let pivot = rows.swap_remove(at);
        rows.iter_mut().filter(|row| **row >> bit & 1 == 1).for_each(|row| *row ^= pivot);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::{LINE_BYTES, SliceMap};
    use super::*;

    /// Those of parts/v100.ron.
    fn v100() -> (AddressBits, AddressBits) {
        let slices = "[[10, 13, 17, 19, 24, 25, 26, 29, 30, 32, 33], [11, 13, 15, 23, 24, 26, 27, 29, 30, 31], \
                      [12, 15, 16, 18, 20, 21, 23, 26, 28, 29, 30], [13, 19, 20, 22, 25, 27, 28, 29], \
                      [15, 18, 22, 23, 26, 29, 30, 31, 32, 33]]";
        let sets = "[[7, 15, 21, 23, 24, 25, 28, 32], [8, 9, 15, 19, 21, 23, 24, 25, 28, 29, 31], \
                    [9, 15, 19, 21, 22, 24, 25, 26, 27, 30, 31, 32, 33], [14, 19, 20, 24, 25, 27, 28, 29, 30, 31, 32, 33], \
                    [16, 19, 21, 22, 25, 26, 28, 30, 32]]";
        (ron::from_str(slices).expect("bits"), ron::from_str(sets).expect("bits"))
    }

    /// Lines of a run that fall into each pair of a slice and a set, the fewest and the most.
    fn lines_of_places(map: &DerivedMap, slices: u32, run: u64) -> (u32, u32) {
        let over_slices = SliceMap::new(&map.hash, slices).expect("a map");
        let sets = 1 << map.set_bits.count();
        let over_sets = map.set_bits.function(sets).expect("a function");
        let lines = u64::from(slices * sets);
        let mut counts = vec![0u32; lines as usize];
        for line in (run * lines..(run + 1) * lines).map(|number| number * LINE_BYTES) {
            counts[(over_slices.slice_of(line) * sets + over_sets.of(line)) as usize] += 1;
        }
        (*counts.iter().min().expect("places"), *counts.iter().max().expect("places"))
    }

    /// 96 sets of 16 ways: 192 KiB.
    #[test]
    fn powers_of_two_give_each_line_of_a_run_a_place_of_its_own() {
        let (slices, sets) = v100();
        for (count, set_rows) in [(1, 5), (16, 5), (64, 4), (128, 3)] {
            let map = derive(&slices, &sets, 96, count);
            assert!(matches!(&map.hash, AddressHash::Bits(bits) if 1 << bits.count() == count), "{count}: {map:?}");
            assert_eq!(map.set_bits.count(), set_rows, "{count}");
            for run in [0, 1, 77, 12_345] {
                assert_eq!(lines_of_places(&map, count, run), (1, 1), "{count}, run {run}");
            }
        }
    }

    /// The number of a slice of the card is that of its halves, without their lowest bit: so each stack of memory keeps its lines.
    #[test]
    fn slices_split_and_merge_in_place() {
        let (slices, sets) = v100();
        let over = |count| SliceMap::new(&derive(&slices, &sets, 96, count).hash, count).expect("a map");
        let measured = SliceMap::new(&AddressHash::Bits(slices.clone()), 32).expect("a map");
        let (half, twice, fourfold) = (over(16), over(64), over(128));
        for line in (0..1 << 18).map(|number: u64| number * 37 * LINE_BYTES) {
            let slice = measured.slice_of(line);
            let others = [half.slice_of(line), twice.slice_of(line) >> 1, fourfold.slice_of(line) >> 2];
            assert_eq!(others, [slice >> 1, slice, slice]);
        }
    }

    #[test]
    fn other_numbers_have_the_general_map() {
        let (slices, sets) = v100();
        for count in [2, 8, 24, 33, 48, 256, 512] {
            let map = derive(&slices, &sets, 96, count);
            let granules = AddressHash::Granules(Bytes(1024));
            assert_eq!((map.hash, map.set_bits), (granules, AddressBits::default()), "{count}");
        }
        // Where sets have no bits, none can be given up, and none need be taken.
        let map = derive(&slices, &AddressBits::default(), 96, 64);
        assert_eq!(map.hash, AddressHash::Granules(Bytes(1024)));
        let map = derive(&slices, &AddressBits::default(), 96, 16);
        assert_eq!(
            (map.hash, map.set_bits),
            (AddressHash::Bits(AddressBits(slices.0[1..].to_vec())), AddressBits::default())
        );
    }

    #[test]
    fn maps_are_written_as_they_are_read() {
        let (slices, _) = v100();
        assert_eq!(ron::from_str(&slices.to_string()), Ok(slices.clone()));
        for hash in
            [AddressHash::Modulo, AddressHash::Xor, AddressHash::Granules(Bytes(2048)), AddressHash::Bits(slices)]
        {
            assert_eq!(ron::from_str(&hash.to_string()), Ok(hash));
        }
    }
}
