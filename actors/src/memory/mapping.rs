//! Where the bytes of a node's memories are in the simulator's own address space.
//!
//! One mapping holds the memories of all GPUs, each in a slot of its own, and behind them the host window. Memory is taken for
//! pages that are written alone. The host window is backed by a file, so that a program can map its pages, too.
//!
//! A slot is larger than the memory of its GPU: what follows is room for addresses that programs reserve, and map memory at later.

use balar_host::memory::{BASE, END, GPU_STRIDE, HOST_BASE, HOST_BYTES, MAXIMUM_GPUS, gpu_base};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Bits of an address within one GPU's memory, or within the host window.
const STRIDE_BITS: u32 = GPU_STRIDE.trailing_zeros();
const _: () = assert!(GPU_STRIDE.is_power_of_two() && HOST_BYTES <= GPU_STRIDE);

/// The smallest slot of a GPU.
const SMALLEST_SLOT: u64 = 2 << 20;

/// A slot with room for reserved addresses, in slots without it. Programs reserve more than a GPU has, several times.
const SLOTS_WITH_ROOM: u64 = 8;

/// The bytes of a node's memories.
#[derive(Debug)]
pub(super) struct Mapping {
    first: NonNull<u8>,
    length: usize,
    /// Logarithm of a slot's bytes.
    slot_bits: u32,
    /// Bytes of a slot before the room for reserved addresses.
    memory_bytes: u64,
    /// What the host window is backed by, from `HOST_BASE - BASE` on; `None` where there is no window.
    file: Option<Arc<OwnedFd>>,
}

// SAFETY: the mapping belongs to this value alone, which hands out its bytes by the rules of borrowing.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Room for GPUs of these capacities, and for the host window. Where the system refuses so large a mapping (`ulimit -v`), for
    /// the GPUs alone.
    pub fn new(capacities: &[u64]) -> io::Result<Mapping> {
        Mapping::with_window(capacities).or_else(|_| Mapping::without_window(capacities))
    }

    /// Room for GPUs of these capacities, no host window.
    pub fn without_window(capacities: &[u64]) -> io::Result<Mapping> {
        let slot = slot_of(capacities)?;
        let last = capacities.last().copied().unwrap_or(0).max(1);
        let bytes = (capacities.len().max(1) as u64 - 1) * slot + last;
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let first = map_devices(length, length, None)?;
        Ok(Mapping { first, length, slot_bits: slot.trailing_zeros(), memory_bytes: slot, file: None })
    }

    fn with_window(capacities: &[u64]) -> io::Result<Mapping> {
        let memory_bytes = slot_of(capacities)?;
        let slot = (memory_bytes * SLOTS_WITH_ROOM).min(GPU_STRIDE);
        let devices = usize::try_from(MAXIMUM_GPUS * slot).map_err(io::Error::other)?;
        let window = usize::try_from(HOST_BYTES).map_err(io::Error::other)?;
        let length = devices.checked_add(window).ok_or_else(|| io::Error::other("larger than the address space"))?;
        let file = memfd_create("balar-actors", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, END - BASE)?;
        let first = map_devices(length, devices, Some(&file))?;
        let mut mapping = Mapping { first, length, slot_bits: slot.trailing_zeros(), memory_bytes, file: None };
        // SAFETY: the range is the end of the mapping just made, which nothing refers to yet.
        unsafe {
            let at = first.as_ptr().add(devices);
            let flags = MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED;
            mmap(at.cast(), window, ProtFlags::READ | ProtFlags::WRITE, flags, &file, HOST_BASE - BASE)?;
        }
        mapping.file = Some(Arc::new(file));
        Ok(mapping)
    }

    /// What the host window is backed by.
    pub fn file(&self) -> Option<&Arc<OwnedFd>> {
        self.file.as_ref()
    }

    /// Addresses of a GPU's slot behind every memory: those that programs can reserve.
    pub fn reservable(&self, gpu: usize) -> Range<u64> {
        let start = gpu_base(gpu) + self.memory_bytes;
        start..gpu_base(gpu) + (1 << self.slot_bits)
    }

    /// Where the byte at a node's address is. Addresses in no memory give places in another memory, or outside the mapping.
    #[inline(always)]
    fn place(&self, address: u64) -> usize {
        let offset = address.wrapping_sub(BASE);
        (((offset >> STRIDE_BITS) << self.slot_bits) + (offset & (GPU_STRIDE - 1))) as usize
    }

    /// `length` bytes from `address` on.
    ///
    /// # Panics
    ///
    /// Where they lie outside the mapping.
    #[inline(always)]
    pub fn bytes(&self, address: u64, length: usize) -> &[u8] {
        let place = self.place(address);
        &self.all()[place..place + length]
    }

    /// `length` bytes from `address` on; `None` where they lie outside the mapping.
    #[inline]
    pub fn bytes_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let place = self.place(address);
        if !(BASE..END).contains(&address) {
            return None;
        }
        self.all_mut().get_mut(place..place.checked_add(length)?)
    }

    /// Copies bytes, as if all were read before any is written; nothing where a range lies outside the mapping.
    pub fn copy(&mut self, destination: u64, source: u64, bytes: u64) {
        let (Ok(bytes), to, from) = (usize::try_from(bytes), self.place(destination), self.place(source)) else {
            return;
        };
        let all = self.all_mut();
        let inside = |at: usize| at.checked_add(bytes).is_some_and(|end| end <= all.len());
        let known = (BASE..END).contains(&destination) && (BASE..END).contains(&source);
        if known && inside(to) && inside(from) {
            all.copy_within(from..from + bytes, to);
        }
    }

    /// Asks for huge pages below the whole ones that lie in the range: the first touch of many small pages costs more than what is
    /// written to them.
    pub fn expect_writes(&self, address: u64, bytes: u64) {
        const HUGE: usize = 2 << 20;
        let inside = |at: u64| (BASE..END).contains(&at) && self.place(at) < self.length;
        if bytes == 0 || !inside(address) || !address.checked_add(bytes - 1).is_some_and(inside) {
            return;
        }
        let at = self.first.as_ptr().wrapping_add(self.place(address));
        let skipped = at.align_offset(HUGE);
        let whole = (bytes as usize).saturating_sub(skipped) & !(HUGE - 1);
        if whole > 0 && skipped < bytes as usize {
            // SAFETY: the range lies in the mapping; the advice changes nothing of its contents. Where it is refused, all is slower.
            let _ = unsafe { madvise(at.wrapping_add(skipped).cast(), whole, Advice::LinuxHugepage) };
        }
    }

    #[inline(always)]
    fn all(&self) -> &[u8] {
        // SAFETY: `length` bytes from `first` on are mapped for reading and writing while `self` lives. A program that shares the
        // host window may write to it meanwhile, as a host does to memory that a GPU reads: values are then of either time.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.length) }
    }

    #[inline(always)]
    fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `all`; `self` is borrowed for as long as the bytes are.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and nothing refers to it any more.
        let unmapped = unsafe { munmap(self.first.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "a mapping of ours can be ended");
    }
}

/// Bytes from one GPU's memory to the next in the mapping.
fn slot_of(capacities: &[u64]) -> io::Result<u64> {
    let largest = capacities.iter().copied().max().unwrap_or(0);
    if capacities.len() as u64 > MAXIMUM_GPUS {
        return Err(io::Error::other(format!("{} GPUs, a node has at most {MAXIMUM_GPUS}", capacities.len())));
    }
    if largest > GPU_STRIDE {
        return Err(io::Error::other(format!("a GPU has at most {GPU_STRIDE} bytes of memory")));
    }
    Ok(largest.next_power_of_two().max(SMALLEST_SLOT))
}

/// Maps `length` bytes, the first `devices` of which can be used. Where the system promises no memory that it does not have
/// (`vm.overcommit_memory` 2), these are backed by `file`, which it does not count.
fn map_devices(length: usize, devices: usize, file: Option<&OwnedFd>) -> io::Result<NonNull<u8>> {
    let usable = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: new mappings at addresses that the system chooses; the second lies within the first, which nothing refers to yet.
    let at = unsafe {
        match (mmap_anonymous(null_mut(), length, usable, flags), file) {
            (Ok(at), _) => at,
            (Err(error), None) => return Err(error.into()),
            (Err(_), Some(file)) => {
                let at = mmap_anonymous(null_mut(), length, ProtFlags::empty(), flags)?;
                let shared = MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED;
                if let Err(error) = mmap(at, devices, usable, shared, file, 0) {
                    // Nothing is lost where the range cannot be given back.
                    let _ = munmap(at, length);
                    return Err(error.into());
                }
                at
            }
        }
    };
    NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn memories_do_not_overlap() {
        let mut mapping = Mapping::new(&[16 << 30, 3 << 20]).expect("the system maps without reserving");
        let places =
            [gpu_base(0), gpu_base(0) + (16 << 30) - 8, gpu_base(1), gpu_base(1) + (3 << 20) - 8, HOST_BASE, END - 8];
        for (value, &address) in places.iter().enumerate() {
            mapping.bytes_mut(address, 8).expect("inside").fill(value as u8 + 1);
        }
        for (value, &address) in places.iter().enumerate() {
            assert_eq!(mapping.bytes(address, 8), [value as u8 + 1; 8], "{address:#x}");
        }
        for gpu in [0, 1] {
            let room = mapping.reservable(gpu);
            assert_eq!((room.start, room.end), (gpu_base(gpu) + (16 << 30), gpu_base(gpu) + (128 << 30)));
            mapping.bytes_mut(room.start, 8).expect("inside").fill(17);
            mapping.bytes_mut(room.end - 8, 8).expect("inside").fill(18);
        }
        for (value, &address) in places.iter().enumerate() {
            assert_eq!(mapping.bytes(address, 8), [value as u8 + 1; 8], "{address:#x}");
        }
        mapping.copy(gpu_base(1) + 8, HOST_BASE, 8);
        assert_eq!(mapping.bytes(gpu_base(1), 16)[7..9], [3, 5]);
        for outside in [BASE - 1, END - 7, END, 0, u64::MAX] {
            assert!(mapping.bytes_mut(outside, 8).is_none(), "{outside:#x}");
            mapping.copy(outside, BASE, 8);
        }
    }

    #[test]
    fn the_host_window_is_shared_at_the_offset_of_its_addresses() {
        let mut mapping = Mapping::new(&[1 << 20]).expect("the system maps without reserving");
        mapping.bytes_mut(HOST_BASE + 4096, 4).expect("inside").copy_from_slice(b"text");
        let file = mapping.file().expect("there is a window").as_fd();
        let mut read = [0; 4];
        assert_eq!(rustix::io::pread(file, &mut read, HOST_BASE + 4096 - BASE), Ok(4));
        assert_eq!(&read, b"text");
        assert_eq!(rustix::io::pwrite(file, b"back", HOST_BASE + 4096 - BASE), Ok(4));
        assert_eq!(mapping.bytes(HOST_BASE + 4096, 4), b"back");
    }

    #[test]
    fn a_window_can_be_missing() {
        let mut mapping = Mapping::without_window(&[1 << 20, 1 << 20]).expect("4 MiB");
        assert!(mapping.bytes_mut(gpu_base(1) + (1 << 20) - 4, 4).is_some());
        assert!(mapping.bytes_mut(gpu_base(1) + (1 << 20) - 3, 4).is_none());
        assert!(mapping.bytes_mut(HOST_BASE, 4).is_none() && mapping.file().is_none());
        assert!(mapping.reservable(0).is_empty());
        assert!(Mapping::new(&[0; 9]).is_err() && Mapping::new(&[(1 << 40) + 1]).is_err());
    }
}
