//! The stores of a unit, line by line: for warps that run for their values alone, thousands of instructions in an epoch.
//!
//! Stores are gathered by lines instead of logged one after the other, so that a load finds the stored bytes at once, however many there
//! are, and a line that is written often is applied once. Atomics are logged in the usual way. Within an epoch a byte is either stored or
//! the target of atomics at last: after an atomic, a lane that loads or stores it waits for the epoch's end.

use super::WriteLog;
use crate::memory::access_pattern::AccessPattern;
use crate::memory::arena::Arena;
use balar_isa::execution::{AtomicFunction, LaneValues, MemoryAccess};
use balar_isa::program::{LANES, lanes};
use balar_protocol::SimTime;
use serde::{Deserialize, Serialize};

/// Bytes of a line.
const LINE: usize = 128;

/// An own atomic of this epoch touches an access: the value that it leaves is not known before the epoch's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

/// A line that has been written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Line {
    address: u64,
    /// Its place in the table.
    slot: u32,
    /// A bit for each byte that was stored.
    stored: u128,
    /// A bit for each byte that atomics were applied to.
    atomic: u128,
}

/// The lines of an epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// The bytes of the lines.
    data: Vec<u8>,
    /// Open addressing: places of lines plus one, 0 where there is none.
    table: Vec<u32>,
    /// Is there an entry in the log that applies the stores?
    is_logged: bool,
    has_atomics: bool,
}

impl Lines {
    pub fn clear(&mut self) {
        if self.lines.len() * 8 > self.table.len() {
            self.table.fill(0);
        } else {
            for line in &self.lines {
                self.table[line.slot as usize] = 0;
            }
        }
        self.lines.clear();
        self.data.clear();
        (self.is_logged, self.has_atomics) = (false, false);
    }

    /// The slot that has a line, or would have it.
    #[inline]
    fn slot(&self, address: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut slot = ((address / LINE as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            match self.table[slot] {
                0 => return slot,
                line if self.lines[line as usize - 1].address == address => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The place of a line that has been written.
    #[inline]
    fn find(&self, address: u64) -> Option<usize> {
        (self.table[self.slot(address)] as usize).checked_sub(1)
    }

    /// The place of a line, which is empty at first.
    #[inline]
    fn entry(&mut self, address: u64) -> usize {
        if self.lines.len() * 2 >= self.table.len() {
            self.grow();
        }
        let slot = self.slot(address);
        if let Some(at) = (self.table[slot] as usize).checked_sub(1) {
            return at;
        }
        self.lines.push(Line { address, slot: slot as u32, stored: 0, atomic: 0 });
        self.data.resize(self.lines.len() * LINE, 0);
        self.table[slot] = self.lines.len() as u32;
        self.lines.len() - 1
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(256);
        self.table.clear();
        self.table.resize(size, 0);
        for at in 0..self.lines.len() {
            let slot = self.slot(self.lines[at].address);
            self.table[slot] = at as u32 + 1;
            self.lines[at].slot = slot as u32;
        }
    }

    /// Does an own atomic touch the access?
    fn is_unknown(&self, access: &MemoryAccess) -> bool {
        self.has_atomics
            && lanes(access.mask).any(|lane| {
                let (address, offset) = split(access.addresses[lane]);
                self.find(address).is_some_and(|at| self.lines[at].atomic & bits(offset, access.bytes.into()) != 0)
            })
    }

    /// Lays the stored bytes over those of a lane.
    #[inline]
    fn lay_over(&self, at: usize, (lane, offset, bytes): (usize, usize, usize), values: &mut LaneValues) {
        let wanted = bits(offset, bytes);
        let stored = self.lines[at].stored & wanted;
        if stored == 0 {
            return;
        }
        let own = &self.data[at * LINE + offset..][..bytes];
        let mut value = values.get(lane).to_le_bytes();
        if stored == wanted {
            value[..bytes].copy_from_slice(own);
        } else {
            for (byte, own) in own.iter().enumerate().filter(|(byte, _)| stored >> (offset + byte) & 1 != 0) {
                value[byte] = *own;
            }
        }
        values.set(lane, u128::from_le_bytes(value));
    }

    /// Stores a lane's value.
    #[inline]
    fn store(&mut self, at: usize, offset: usize, value: &[u8]) {
        self.lines[at].stored |= bits(offset, value.len());
        self.data[at * LINE + offset..][..value.len()].copy_from_slice(value);
    }

    pub fn apply(&self, arena: &mut Arena) {
        for (line, data) in self.lines.iter().zip(self.data.chunks_exact(LINE)) {
            let mut rest = line.stored;
            while rest != 0 {
                let first = rest.trailing_zeros();
                let count = (!(rest >> first)).trailing_zeros().min(LINE as u32 - first);
                rest &= !bits(first as usize, count as usize);
                let (first, count) = (first as usize, count as usize);
                if let Some(bytes) = arena.mapping.bytes_mut(line.address + first as u64, count) {
                    bytes.write(&data[first..first + count]);
                }
            }
        }
    }
}

/// The line of an address, and the place in it.
#[inline]
fn split(address: u64) -> (u64, usize) {
    (address & !(LINE as u64 - 1), address as usize % LINE)
}

/// Bits of consecutive bytes of a line; at least one.
#[inline]
fn bits(first: usize, count: usize) -> u128 {
    (u128::MAX >> (LINE - count)) << first
}

impl WriteLog {
    /// Gathers a warp's store, which is aligned.
    ///
    /// # Errors
    ///
    /// An own atomic touches it; nothing is stored.
    #[inline]
    pub fn store_in_lines(&mut self, time: SimTime, access: &MemoryAccess, values: &LaneValues) -> Result<(), Unknown> {
        let lines = &mut self.lines;
        if lines.is_unknown(access) {
            return Err(Unknown);
        }
        let pattern = AccessPattern::of(access);
        let bytes = usize::from(access.bytes);
        match pattern {
            AccessPattern::Consecutive if bytes == 4 => {
                lines.store_consecutive(access.addresses[0], |lane| (values.low[lane] as u32).to_le_bytes());
            }
            AccessPattern::Consecutive if bytes == 8 => {
                lines.store_consecutive(access.addresses[0], |lane| values.low[lane].to_le_bytes());
            }
            _ => {
                let mut last = (u64::MAX, 0);
                for lane in lanes(access.mask) {
                    let (address, offset) = split(access.addresses[lane]);
                    if last.0 != address {
                        last = (address, lines.entry(address));
                    }
                    lines.store(last.1, offset, &values.get(lane).to_le_bytes()[..bytes]);
                }
            }
        }
        if !std::mem::replace(&mut lines.is_logged, true) {
            self.push_lines(time);
        }
        Ok(())
    }

    /// Lays the bytes of this epoch's stores over the `values` from the arena.
    ///
    /// # Errors
    ///
    /// An own atomic touches the access; the values mean nothing.
    #[inline]
    pub(crate) fn lay_lines_over(
        &self,
        access: &MemoryAccess,
        pattern: AccessPattern,
        values: &mut LaneValues,
    ) -> Result<(), Unknown> {
        let lines = &self.lines;
        if lines.lines.is_empty() {
            return Ok(());
        }
        let bytes = usize::from(access.bytes);
        let first = access.addresses[0];
        let single = match pattern {
            AccessPattern::Uniform => true,
            AccessPattern::Consecutive => split(first).1 + LANES * bytes <= LINE,
            AccessPattern::Scattered => false,
        };
        if single && lines.find(split(first).0).is_none() {
            return Ok(());
        }
        if lines.is_unknown(access) {
            return Err(Unknown);
        }
        let mut last = (u64::MAX, None);
        for lane in lanes(access.mask) {
            let (address, offset) = split(access.addresses[lane]);
            if last.0 != address {
                last = (address, lines.find(address));
            }
            if let Some(at) = last.1 {
                lines.lay_over(at, (lane, offset, bytes), values);
            }
        }
        Ok(())
    }

    /// Logs a warp's atomic, after which its bytes are not known before the epoch's end.
    pub fn atomic_beside_lines(
        &mut self,
        time: SimTime,
        access: &MemoryAccess,
        function: AtomicFunction,
        [operands, replacements]: [&LaneValues; 2],
        token: u32,
    ) {
        self.lines.has_atomics = true;
        for lane in lanes(access.mask) {
            let (address, offset) = split(access.addresses[lane]);
            let at = self.lines.entry(address);
            self.lines.lines[at].atomic |= bits(offset, access.bytes.into());
        }
        self.atomic(time, access, function, operands, replacements, token);
    }

    /// Lines that were written in this epoch.
    pub fn line_count(&self) -> usize {
        self.lines.lines.len()
    }
}

impl Lines {
    /// Stores the values of all lanes from an address on.
    #[inline(always)]
    fn store_consecutive<const BYTES: usize>(&mut self, first: u64, value: impl Fn(usize) -> [u8; BYTES]) {
        let mut packed = [[0; BYTES]; LANES];
        for (lane, packed) in packed.iter_mut().enumerate() {
            *packed = value(lane);
        }
        let (mut rest, mut at) = (packed.as_flattened(), first);
        while !rest.is_empty() {
            let (address, offset) = split(at);
            let (here, further) = rest.split_at(rest.len().min(LINE - offset));
            let line = self.entry(address);
            self.store(line, offset, here);
            at += here.len() as u64;
            rest = further;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Bounds, DeviceMemory};
    use balar_isa::execution::{AccessKind, AtomicOperation, AtomicType};
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    const BASE: u64 = DeviceMemory::BASE;
    const BYTES: usize = 8192;

    fn memory() -> DeviceMemory {
        let memory = DeviceMemory::new(1 << 20).expect("1 MiB can be mapped");
        let mut log = WriteLog::default();
        log.map(SimTime(0), BASE, BYTES as u64, Bounds::Allocations);
        memory.apply(&mut log);
        memory
    }

    /// A random aligned access of some lanes, consecutive or not.
    fn access(random: &mut Pcg32) -> MemoryAccess {
        let bytes = 1u8 << (random.next_u32() % 5);
        let stride = u64::from(bytes) * u64::from([0u8, 1, 1, 3][random.next_u32() as usize % 4]);
        let room = BYTES as u64 - 32 * stride - u64::from(bytes);
        let first = BASE + u64::from(random.next_u32()) % room / u64::from(bytes) * u64::from(bytes);
        let mut addresses: [u64; LANES] = std::array::from_fn(|lane| first + stride * lane as u64);
        if random.next_u32().is_multiple_of(4) {
            addresses.swap(3, 17);
        }
        let mask = if random.next_u32().is_multiple_of(2) { u32::MAX } else { random.next_u32() | 1 };
        MemoryAccess { bytes, mask, addresses, ..MemoryAccess::default() }
    }

    #[test]
    fn loads_find_what_was_stored_and_memory_gets_it() {
        let memory = memory();
        let mut random = Pcg32::seed_from_u64(5);
        let mut expected = vec![0u8; BYTES];
        let mut log = WriteLog::default();
        for epoch in 0..20 {
            for step in 0..if cfg!(miri) { 10 } else { 200 } {
                let store = access(&mut random);
                let mut values = LaneValues::default();
                for lane in 0..LANES {
                    values.set(lane, u128::from(random.next_u64()) << 64 | u128::from(random.next_u64()));
                }
                log.store_in_lines(SimTime(epoch), &store, &values).expect("there are no atomics");
                for lane in lanes(store.mask) {
                    let (at, bytes) = ((store.addresses[lane] - BASE) as usize, usize::from(store.bytes));
                    expected[at..at + bytes].copy_from_slice(&values.get(lane).to_le_bytes()[..bytes]);
                }
                let load = access(&mut random);
                let view = memory.view();
                let mut loaded = LaneValues::default();
                for lane in lanes(load.mask) {
                    let mut bytes = [0; 16];
                    view.read(load.addresses[lane], &mut bytes[..usize::from(load.bytes)]);
                    loaded.set(lane, u128::from_le_bytes(bytes));
                }
                log.lay_lines_over(&load, AccessPattern::of(&load), &mut loaded).expect("there are no atomics");
                for lane in lanes(load.mask) {
                    let (at, bytes) = ((load.addresses[lane] - BASE) as usize, usize::from(load.bytes));
                    let (found, wanted) = (loaded.get(lane).to_le_bytes(), &expected[at..at + bytes]);
                    assert_eq!(&found[..bytes], wanted, "epoch {epoch}, step {step}, lane {lane} of {load:?}");
                }
            }
            let saved = postcard::to_stdvec(&log).expect("a log is a plain value");
            log = postcard::from_bytes(&saved).expect("it was written");
            memory.apply(&mut log);
            log.clear();
            assert_eq!((log.is_empty(), log.line_count()), (true, 0));
            let mut all = vec![0; BYTES];
            assert!(memory.read(BASE, &mut all) && all == expected, "epoch {epoch}");
        }
    }

    #[test]
    fn what_an_atomic_touches_is_unknown_until_the_epoch_ends() {
        let memory = memory();
        let mut log = WriteLog::default();
        let word =
            |address, kind| MemoryAccess { kind, mask: 1, addresses: [address; LANES], ..MemoryAccess::default() };
        let mut values = LaneValues::default();
        values.low[0] = 5;
        assert_eq!(log.store_in_lines(SimTime(0), &word(BASE + 64, AccessKind::Store), &values), Ok(()));
        let add = AtomicFunction { operation: AtomicOperation::Add, data_type: AtomicType::U32 };
        let both = [&values.clone(), &values.clone()];
        log.atomic_beside_lines(SimTime(0), &word(BASE + 64, AccessKind::Reduction), add, both, 0);
        log.atomic_beside_lines(SimTime(0), &word(BASE + 64, AccessKind::Reduction), add, both, 0);
        for (address, expected) in [(64, Err(Unknown)), (60, Ok(())), (68, Ok(()))] {
            let load = word(BASE + address, AccessKind::Load);
            let loaded = log.lay_lines_over(&load, AccessPattern::of(&load), &mut LaneValues::default());
            assert_eq!(loaded, expected, "{address}");
            let store = word(BASE + address, AccessKind::Store);
            assert_eq!(log.store_in_lines(SimTime(0), &store, &values), expected, "{address}");
        }
        memory.apply(&mut log);
        let mut word = [0; 4];
        assert!(memory.read(BASE + 64, &mut word) && u32::from_le_bytes(word) == 15, "5 was stored, and added twice");
    }
}
