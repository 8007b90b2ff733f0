//! Pinned and managed memory, which a program writes without a call: a comparison with a copy finds its writes.

use crate::call::{Call, CallResult, VariableKind};
use crate::memory::{BASE, HOST_BASE, Place, place_of};
use rustix::fd::OwnedFd;
use rustix::fs::{SeekFrom, seek};
use rustix::io::{Errno, pread, pwrite};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are compared at once.
const PAGE: u64 = 4096;
/// Equal bytes between changed ones that do not part a range: a range costs more than they do.
const LARGEST_GAP: usize = 16;

/// The host window of a node: the file that the program and the simulator share. The byte at an address is at the offset
/// `address - BASE`.
pub type HostWindow = Arc<OwnedFd>;

/// The changes of a program: address and length of each range, and the bytes of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub ranges: Vec<(u64, u64)>,
    pub data: Vec<u8>,
}

/// The allocations of the host window, with a copy of their bytes.
pub(super) struct SharedMemory {
    window: Option<HostWindow>,
    /// First address and bytes of each allocation.
    allocations: BTreeMap<u64, u64>,
    /// Variables of each module.
    modules: BTreeMap<u32, Vec<u64>>,
    /// The pages that are not all zero, by address.
    pages: BTreeMap<u64, Box<[u8; PAGE as usize]>>,
}

impl SharedMemory {
    pub fn new(window: Option<HostWindow>) -> SharedMemory {
        SharedMemory { window, allocations: BTreeMap::new(), modules: BTreeMap::new(), pages: BTreeMap::new() }
    }

    /// Is there anything to look at?
    pub fn is_empty(&self) -> bool {
        self.window.is_none() || self.allocations.is_empty()
    }

    /// A call has returned: it may have allocated pinned or managed memory, or ended some.
    pub fn called(&mut self, call: &Call, result: &CallResult) {
        match (call, result) {
            (Call::MallocHost { bytes } | Call::MallocManaged { bytes }, CallResult::Pointer(pointer)) => {
                self.begin(*pointer, *bytes);
            }
            (Call::FreeHost { pointer } | Call::Free { pointer }, CallResult::None) => self.end(*pointer),
            (Call::ModuleLoad { .. }, CallResult::Module { module, variables, .. }) => {
                let managed = variables.iter().filter(|variable| variable.kind == VariableKind::Managed);
                let managed: Vec<(u64, u64)> = managed.map(|variable| (variable.address, variable.bytes)).collect();
                for &(address, bytes) in &managed {
                    self.begin(address, bytes);
                }
                self.modules.insert(*module, managed.into_iter().map(|(address, _)| address).collect());
            }
            (Call::ModuleUnload { module }, CallResult::None) => {
                for address in self.modules.remove(module).unwrap_or_default() {
                    self.end(address);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, address: u64, bytes: u64) {
        if place_of(address) == Place::HostWindow && bytes > 0 {
            self.allocations.insert(address, bytes);
        }
    }

    fn end(&mut self, address: u64) {
        self.allocations.remove(&address);
        // The copy of what nobody uses any longer would cost memory; pages that others share are read again.
        if self.allocations.is_empty() {
            self.pages.clear();
        }
    }

    /// Makes the copy equal to the memory: devices may have written.
    pub fn refresh(&mut self) {
        self.compare(&mut |_, _, _| ());
    }

    /// The changes since the last look at the memory.
    pub fn changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        self.compare(&mut |address, old, new| changes.add(address, old, new));
        changes
    }

    /// Checksum of all that the allocations hold.
    pub fn checksum(&mut self) -> u128 {
        self.refresh();
        let mut hasher = Xxh3::new();
        for (&address, &bytes) in &self.allocations {
            hasher.update(&address.to_le_bytes());
            hasher.update(&bytes.to_le_bytes());
            let end = address + bytes;
            let first = address & !(PAGE - 1);
            for (&page, content) in self.pages.range(first..end) {
                let from = address.saturating_sub(page) as usize;
                let to = (end - page).min(PAGE) as usize;
                if content[from..to].iter().any(|&byte| byte != 0) {
                    hasher.update(&page.to_le_bytes());
                    hasher.update(&content[from..to]);
                }
            }
        }
        hasher.digest128()
    }

    /// Writes the bytes that the program wrote as the trace was recorded.
    pub fn write(&mut self, ranges: &[(u64, u64)], data: &[u8]) -> Result<(), String> {
        let window =
            self.window.clone().ok_or("this system has no room for the window of pinned and managed memory")?;
        let mut rest = data;
        for &(address, length) in ranges {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (bytes, after) = rest.split_at_checked(length).ok_or("a write has fewer bytes than it says")?;
            rest = after;
            let last = address.saturating_add(bytes.len().saturating_sub(1) as u64);
            if place_of(address) != Place::HostWindow || place_of(last) != Place::HostWindow {
                return Err(format!("{length} bytes at {address:#x} are not pinned or managed memory"));
            }
            write_all(&window, address, bytes).map_err(|error| format!("cannot write to {address:#x}: {error}"))?;
        }
        Ok(())
    }

    /// Brings the copy up to date; tells of each page that differs its address, its old bytes and its new bytes.
    fn compare(&mut self, differs: &mut impl FnMut(u64, &[u8], &[u8])) {
        let Some(window) = self.window.clone() else { return };
        let zeros = [0; PAGE as usize];
        let mut buffer = [0; PAGE as usize];
        let mut done = 0;
        for (&address, &bytes) in &self.allocations {
            let end = (address + bytes).next_multiple_of(PAGE);
            let mut page = done.max(address & !(PAGE - 1));
            while page < end {
                // Memory that was never written takes no memory of ours, and no time either.
                let written = next_written(&window, page).map_or(end, |written| written & !(PAGE - 1));
                if written > page && self.pages.range(page..written.min(end)).next().is_none() {
                    page = written.min(end);
                    continue;
                }
                if read_page(&window, page, &mut buffer).is_err() {
                    page += PAGE;
                    continue;
                }
                let old = self.pages.get(&page).map_or(&zeros, |old| old);
                if *old != buffer {
                    differs(page, old, &buffer);
                    self.pages.insert(page, Box::new(buffer));
                }
                page += PAGE;
            }
            done = done.max(end);
        }
    }
}

impl Changes {
    /// Adds the bytes of a page that differ.
    fn add(&mut self, page: u64, old: &[u8], new: &[u8]) {
        let mut at = 0;
        while let Some(first) = (at..new.len()).find(|&index| old[index] != new[index]) {
            let mut last = first;
            let mut index = first + 1;
            while index < new.len() && index - last <= LARGEST_GAP {
                if old[index] != new[index] {
                    last = index;
                }
                index += 1;
            }
            self.push(page + first as u64, &new[first..=last]);
            at = last + 1;
        }
    }

    fn push(&mut self, address: u64, bytes: &[u8]) {
        match self.ranges.last_mut() {
            Some((start, length)) if *start + *length == address => *length += bytes.len() as u64,
            _ => self.ranges.push((address, bytes.len() as u64)),
        }
        self.data.extend_from_slice(bytes);
    }
}

/// The first address from `address` on that the file holds bytes for; `None` where none follow, or where that is not known.
fn next_written(window: &OwnedFd, address: u64) -> Option<u64> {
    match seek(window, SeekFrom::Data(address - BASE)) {
        Ok(offset) => Some(offset + BASE),
        Err(Errno::NXIO) => None,
        Err(_) => Some(address),
    }
}

fn read_page(window: &OwnedFd, address: u64, page: &mut [u8; PAGE as usize]) -> Result<(), Errno> {
    let mut done = 0;
    while done < page.len() {
        match pread(window, &mut page[done..], address - BASE + done as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn write_all(window: &OwnedFd, address: u64, mut bytes: &[u8]) -> Result<(), Errno> {
    debug_assert!(address >= HOST_BASE, "checked by the caller");
    let mut offset = address - BASE;
    while !bytes.is_empty() {
        match pwrite(window, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::END;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    fn window() -> HostWindow {
        let file = memfd_create("window", MemfdFlags::CLOEXEC).expect("a file in memory");
        ftruncate(&file, END - BASE).expect("a sparse file");
        Arc::new(file)
    }

    fn allocate(memory: &mut SharedMemory, address: u64, bytes: u64) {
        memory.called(&Call::MallocHost { bytes }, &CallResult::Pointer(address));
    }

    #[test]
    fn what_a_program_writes_is_found() {
        let window = window();
        let mut memory = SharedMemory::new(Some(Arc::clone(&window)));
        let (first, second) = (HOST_BASE + 512, HOST_BASE + (1 << 30));
        allocate(&mut memory, first, 10_000);
        allocate(&mut memory, second, 1 << 32);
        assert_eq!(memory.changes(), Changes::default());
        write_all(&window, first, b"ab").expect("written");
        write_all(&window, first + 4, b"c").expect("written");
        write_all(&window, first + 100, b"d").expect("written");
        // Over the edge of a page, in a large allocation.
        write_all(&window, second + (1 << 31) - 2, b"wxyz").expect("written");
        let changes = memory.changes();
        assert_eq!(changes.ranges, [(first, 5), (first + 100, 1), (second + (1 << 31) - 2, 4)]);
        assert_eq!(changes.data, b"ab\0\0cdwxyz");
        assert_eq!(memory.changes(), Changes::default());
        // The writes of a device are taken over silently.
        write_all(&window, first, b"z").expect("written");
        memory.refresh();
        assert_eq!(memory.changes(), Changes::default());
        // A byte that becomes zero again is a change, too.
        write_all(&window, first + 100, b"\0").expect("written");
        assert_eq!(memory.changes().ranges, [(first + 100, 1)]);
        memory.called(&Call::FreeHost { pointer: first }, &CallResult::None);
        write_all(&window, first + 200, b"no").expect("written");
        assert_eq!(memory.changes(), Changes::default());
    }

    #[test]
    fn changes_can_be_written_elsewhere() {
        let (one, other) = (window(), window());
        let mut source = SharedMemory::new(Some(Arc::clone(&one)));
        let mut copy = SharedMemory::new(Some(other));
        allocate(&mut source, HOST_BASE, 5000);
        allocate(&mut copy, HOST_BASE, 5000);
        let empty = source.checksum();
        let bytes: Vec<u8> = (0..5000u32).map(|index| (index * index) as u8).collect();
        write_all(&one, HOST_BASE, &bytes).expect("written");
        let changes = source.changes();
        assert_ne!(source.checksum(), empty);
        assert_eq!(copy.checksum(), empty);
        copy.write(&changes.ranges, &changes.data).expect("inside");
        assert_eq!(copy.checksum(), source.checksum());
    }

    #[test]
    fn writes_outside_are_refused() {
        let mut memory = SharedMemory::new(Some(window()));
        for ranges in [[(BASE, 2)], [(END - 1, 2)], [(HOST_BASE, 3)], [(0, 2)], [(u64::MAX, 2)]] {
            assert!(memory.write(&ranges, b"ab").is_err(), "{ranges:?}");
        }
        assert!(memory.write(&[(HOST_BASE, 2)], b"ab").is_ok());
        assert!(SharedMemory::new(None).write(&[(HOST_BASE, 2)], b"ab").is_err());
    }
}
