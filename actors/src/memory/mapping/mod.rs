//! Where the bytes of a node's memories are in the simulator's own address space.
//!
//! One mapping holds the memories of all GPUs, each in a slot of its own, and behind them the host window. Memory is taken for
//! pages that are written alone. The host window is backed by a file, so that a program can map its pages, too.
//!
//! A slot is larger than the memory of its GPU: the rest is room for addresses that programs reserve, and map memory at later.
//!
//! **Invariant:** slices exist of device memory alone, which no other process can map. A program writes to the host window whenever
//! it likes, so that its bytes are [`SharedBytes`].

#[cfg(miri)]
mod heap_backed;
mod shared;
#[cfg(not(miri))]
mod system;

#[cfg(miri)]
use heap_backed as system;
pub(crate) use shared::SharedBytes;

use balar_host::memory::{BASE, END, GPU_STRIDE, HOST_BYTES, MAXIMUM_GPUS, gpu_base};
use rustix::fd::OwnedFd;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bits of an address within one GPU's memory, or within the host window.
const STRIDE_BITS: u32 = GPU_STRIDE.trailing_zeros();
const _: () = assert!(GPU_STRIDE.is_power_of_two() && HOST_BYTES <= GPU_STRIDE);

/// The smallest slot of a GPU.
const SMALLEST_SLOT: u64 = 2 << 20;

/// Bytes of a copy between the two kinds of memory that are on their way at a time.
const COPIED_AT_ONCE: usize = 4096;

/// The bytes of a node's memories.
#[derive(Debug)]
pub(super) struct Mapping {
    first: NonNull<u8>,
    /// Bytes of all slots. The host window follows.
    devices: usize,
    /// Bytes of the host window; 0 where there is none.
    window: usize,
    /// Logarithm of a slot's bytes.
    slot_bits: u32,
    /// Bytes of a slot before the room for reserved addresses.
    memory_bytes: u64,
    /// The file behind the host window, from `HOST_BASE - BASE` on; `None` where there is no window.
    file: Option<Arc<OwnedFd>>,
}

/// Bytes that a warp or a copy reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bytes<'a> {
    /// Device memory: they stay as they are while they are borrowed.
    Device(&'a [u8]),
    /// The host window: a program may write them at any time.
    Window(SharedBytes<'a>),
}

impl Bytes<'_> {
    /// Copies the bytes from `offset` on out.
    ///
    /// # Panics
    ///
    /// Where they are not all there.
    pub fn read(self, offset: usize, destination: &mut [u8]) {
        match self {
            Bytes::Device(bytes) => destination.copy_from_slice(&bytes[offset..offset + destination.len()]),
            Bytes::Window(bytes) => bytes.read(offset, destination),
        }
    }
}

/// Bytes that change at the end of an epoch.
#[derive(Debug)]
pub(super) enum BytesMut<'a> {
    Device(&'a mut [u8]),
    Window(SharedBytes<'a>),
}

impl BytesMut<'_> {
    /// Replaces the bytes by these, which are as many.
    pub fn write(self, source: &[u8]) {
        match self {
            BytesMut::Device(bytes) => bytes.copy_from_slice(source),
            BytesMut::Window(bytes) => bytes.write(0, source),
        }
    }

    /// Replaces the bytes by copies of an element; the last one may be cut short.
    pub fn fill(self, element: &[u8]) {
        let repeat = |bytes: &mut [u8]| match element {
            [] => {}
            [byte] => bytes.fill(*byte),
            _ => bytes.chunks_mut(element.len()).for_each(|to| to.copy_from_slice(&element[..to.len()])),
        };
        match self {
            BytesMut::Device(bytes) => repeat(bytes),
            BytesMut::Window(bytes) => {
                let mut copies = [0; COPIED_AT_ONCE];
                repeat(&mut copies);
                // Whole elements, so that each part begins with one.
                let step = COPIED_AT_ONCE - COPIED_AT_ONCE % element.len().max(1);
                for at in (0..bytes.len()).step_by(step) {
                    bytes.write(at, &copies[..step.min(bytes.len() - at)]);
                }
            }
        }
    }

    /// Replaces the bytes, 16 at most, by the result of `change`; gives its answer.
    pub fn update<R>(self, mut change: impl FnMut(&mut [u8]) -> R) -> R {
        match self {
            BytesMut::Device(bytes) => change(bytes),
            BytesMut::Window(bytes) => bytes.update(change),
        }
    }
}

// SAFETY: the mapping belongs to this value alone, which hands out its bytes by the rules of borrowing, and those of the host
// window as `SharedBytes`, which any number of threads may access.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared references read device memory alone.
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
        let devices = usize::try_from(bytes).map_err(io::Error::other)?;
        let first = system::map(devices)?;
        Ok(Mapping { first, devices, window: 0, slot_bits: slot.trailing_zeros(), memory_bytes: slot, file: None })
    }

    fn with_window(capacities: &[u64]) -> io::Result<Mapping> {
        let memory_bytes = slot_of(capacities)?;
        let slot = (memory_bytes * system::SLOTS_WITH_ROOM).min(GPU_STRIDE);
        let devices = usize::try_from(MAXIMUM_GPUS * slot).map_err(io::Error::other)?;
        let window = usize::try_from(system::WINDOW_BYTES).map_err(io::Error::other)?;
        let (first, file) = system::map_with_window(devices, window)?;
        Ok(Mapping { first, devices, window, slot_bits: slot.trailing_zeros(), memory_bytes, file: file.map(Arc::new) })
    }

    /// The file behind the host window.
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

    /// Are `length` bytes from `address` on all in device memory, or all in the host window?
    #[inline]
    pub fn contains(&self, address: u64, length: usize) -> bool {
        let place = self.place(address);
        let end = if place < self.devices { self.devices } else { self.devices + self.window };
        (BASE..END).contains(&address) && place <= end && length <= end - place
    }

    /// `length` bytes from `address` on.
    ///
    /// # Panics
    ///
    /// Where they lie outside the mapping, or in both kinds of memory.
    #[inline(always)]
    pub fn bytes(&self, address: u64, length: usize) -> Bytes<'_> {
        let place = self.place(address);
        if place < self.devices || self.window == 0 {
            return Bytes::Device(&self.device()[place..place + length]);
        }
        Bytes::Window(self.window().part(place - self.devices, length))
    }

    /// `length` bytes from `address` on; `None` where [`Self::contains`] is false.
    #[inline]
    pub fn bytes_mut(&mut self, address: u64, length: usize) -> Option<BytesMut<'_>> {
        let place = self.place(address);
        if !self.contains(address, length) {
            return None;
        }
        if place < self.devices {
            return Some(BytesMut::Device(&mut self.device_mut()[place..place + length]));
        }
        Some(BytesMut::Window(self.window().part(place - self.devices, length)))
    }

    /// Copies bytes, as if all were read before any is written; nothing where a range lies outside the mapping.
    pub fn copy(&mut self, destination: u64, source: u64, bytes: u64) {
        let Ok(bytes) = usize::try_from(bytes) else { return };
        if !self.contains(destination, bytes) || !self.contains(source, bytes) {
            return;
        }
        let (to, from) = (self.place(destination), self.place(source));
        if to < self.devices && from < self.devices {
            self.device_mut().copy_within(from..from + bytes, to);
            return;
        }
        let mut part = [0; COPIED_AT_ONCE];
        let mut copy = |at: usize| {
            let part = &mut part[..COPIED_AT_ONCE.min(bytes - at)];
            self.bytes(source + at as u64, part.len()).read(0, part);
            if let Some(bytes) = self.bytes_mut(destination + at as u64, part.len()) {
                bytes.write(part);
            }
        };
        let parts = (0..bytes).step_by(COPIED_AT_ONCE);
        // No part is written over before it is read.
        if to > from { parts.rev().for_each(&mut copy) } else { parts.for_each(&mut copy) }
    }

    /// Makes all of these bytes zero; nothing where the range lies outside the mapping. Whole pages take no memory until they are written.
    pub fn zero(&mut self, address: u64, bytes: u64) {
        let Ok(length) = usize::try_from(bytes) else { return };
        if !self.contains(address, length) {
            return;
        }
        let start = address.next_multiple_of(system::PAGE as u64).min(address + bytes);
        let end = (address + bytes) / system::PAGE as u64 * system::PAGE as u64;
        let mut fill = |from: u64, to: u64| {
            if let Some(bytes) = self.bytes_mut(from, (to - from) as usize) {
                bytes.fill(&[0]);
            }
        };
        if end <= start {
            return fill(address, address + bytes);
        }
        fill(address, start);
        fill(end, address + bytes);
        // SAFETY: whole pages of the mapping, as `contains` says; `self` is borrowed for writing, so that no slice of them exists.
        let given_back = unsafe { system::give_back(self.first.add(self.place(start)), (end - start) as usize) };
        if !given_back && let Some(bytes) = self.bytes_mut(start, (end - start) as usize) {
            bytes.fill(&[0]);
        }
    }

    /// Says that most of these bytes will soon be written.
    pub fn expect_writes(&self, address: u64, bytes: u64) {
        let Ok(bytes) = usize::try_from(bytes) else { return };
        if self.contains(address, bytes) {
            // SAFETY: the range lies in the mapping, as `contains` says.
            unsafe { system::expect_writes(self.first.add(self.place(address)), bytes) };
        }
    }

    #[inline(always)]
    fn device(&self) -> &[u8] {
        // SAFETY: `devices` bytes from `first` on are mapped for reading and writing while `self` lives. No other process has a
        // file that they are backed by, and `device_mut` alone gives them out for writing.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.devices) }
    }

    #[inline(always)]
    fn device_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `device`; `self` is borrowed for as long as the bytes are.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.devices) }
    }

    #[inline(always)]
    fn window(&self) -> SharedBytes<'_> {
        // SAFETY: `window` bytes behind the `devices` ones are mapped for reading and writing while `self` lives, and no slice is
        // ever made of them.
        unsafe { SharedBytes::new(self.first.add(self.devices), self.window) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and nothing refers to it any more.
        unsafe { system::unmap(self.first, self.devices + self.window) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::memory::HOST_BASE;
    #[cfg(not(miri))]
    use std::os::fd::AsFd;

    /// Bytes of a large GPU. Under Miri all of them are taken.
    const LARGE: u64 = if cfg!(miri) { 4 << 20 } else { 16 << 30 };

    fn read<const BYTES: usize>(mapping: &Mapping, address: u64) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        mapping.bytes(address, BYTES).read(0, &mut bytes);
        bytes
    }

    fn fill(mapping: &mut Mapping, address: u64, value: u8) {
        mapping.bytes_mut(address, 8).expect("inside").fill(&[value]);
    }

    #[test]
    fn memories_do_not_overlap() {
        let mut mapping = Mapping::new(&[LARGE, 3 << 20]).expect("the system maps without reserving");
        let window_end = HOST_BASE + system::WINDOW_BYTES;
        let places =
            [gpu_base(0), gpu_base(0) + LARGE - 8, gpu_base(1), gpu_base(1) + (3 << 20) - 8, HOST_BASE, window_end - 8];
        for (value, &address) in places.iter().enumerate() {
            fill(&mut mapping, address, value as u8 + 1);
        }
        for (value, &address) in places.iter().enumerate() {
            assert_eq!(read(&mapping, address), [value as u8 + 1; 8], "{address:#x}");
        }
        for gpu in [0, 1] {
            let room = mapping.reservable(gpu);
            let slot = LARGE * system::SLOTS_WITH_ROOM;
            assert_eq!((room.start, room.end), (gpu_base(gpu) + LARGE, gpu_base(gpu) + slot));
            fill(&mut mapping, room.start, 17);
            fill(&mut mapping, room.end - 8, 18);
        }
        for (value, &address) in places.iter().enumerate() {
            assert_eq!(read(&mapping, address), [value as u8 + 1; 8], "{address:#x}");
        }
        mapping.copy(gpu_base(1) + 8, HOST_BASE, 8);
        assert_eq!(read::<16>(&mapping, gpu_base(1))[7..9], [3, 5]);
        for outside in [BASE - 1, window_end - 7, END - 7, END, 0, u64::MAX] {
            assert!(mapping.bytes_mut(outside, 8).is_none(), "{outside:#x}");
            mapping.copy(outside, BASE, 8);
        }
        // The end of the last slot is not the beginning of the window.
        assert!(!mapping.contains(mapping.reservable(7).end - 4, 8));
    }

    #[test]
    fn overlapping_ranges_are_copied_as_if_read_first() {
        let mut mapping = Mapping::new(&[1 << 20]).expect("the system maps without reserving");
        let bytes: Vec<u8> = (0..10_000u32).map(|at| (at * 7 / 3) as u8).collect();
        let [device, window] = [gpu_base(0), HOST_BASE];
        for (from, to) in [(device, device + 100), (window + 100, window), (window, window + 100), (window, device)] {
            mapping.bytes_mut(from, bytes.len()).expect("inside").write(&bytes);
            mapping.copy(to, from, bytes.len() as u64);
            assert_eq!(read::<10_000>(&mapping, to), *bytes, "{from:#x} to {to:#x}");
        }
    }

    #[test]
    fn elements_fill_both_kinds_of_memory() {
        let mut mapping = Mapping::new(&[1 << 20]).expect("the system maps without reserving");
        for start in [gpu_base(0) + 6, HOST_BASE + 6] {
            mapping.bytes_mut(start, 5001).expect("inside").fill(&[1, 2, 3, 4]);
            let filled: [u8; 5003] = read(&mapping, start - 1);
            assert_eq!((filled[0], filled[5002]), (0, 0));
            assert!(filled[1..5002].iter().enumerate().all(|(at, &byte)| usize::from(byte) == at % 4 + 1));
            let old = mapping.bytes_mut(start + 2, 4).expect("inside").update(|bytes| {
                let old = bytes.to_vec();
                bytes.fill(9);
                old
            });
            assert_eq!((old, read(&mapping, start)), (vec![3, 4, 1, 2], [1, 2, 9, 9, 9, 9, 3, 4]));
        }
    }

    #[test]
    fn whole_pages_and_parts_of_them_become_zero() {
        const BYTES: usize = 3 * system::PAGE;
        let mut mapping = Mapping::new(&[1 << 20]).expect("the system maps without reserving");
        for start in [gpu_base(0), HOST_BASE] {
            for (from, to) in [(0, BYTES), (5, BYTES - 1), (system::PAGE, BYTES), (7, 9), (4090, 4100), (8, 8)] {
                mapping.bytes_mut(start, BYTES).expect("inside").fill(&[7]);
                mapping.zero(start + from as u64, (to - from) as u64);
                let bytes: [u8; BYTES] = read(&mapping, start);
                let is_right = |(at, byte): (usize, &u8)| *byte == if (from..to).contains(&at) { 0 } else { 7 };
                assert!(bytes.iter().enumerate().all(is_right), "{start:#x}: {from} to {to}");
            }
        }
        mapping.zero(END - 4, 8);
    }

    /// Miri knows no files in memory.
    #[cfg(not(miri))]
    #[test]
    fn the_host_window_is_shared_at_the_offset_of_its_addresses() {
        let mut mapping = Mapping::new(&[1 << 20]).expect("the system maps without reserving");
        mapping.bytes_mut(HOST_BASE + 4096, 4).expect("inside").write(b"text");
        let file = Arc::clone(mapping.file().expect("there is a window"));
        let file = file.as_fd();
        let mut text = [0; 4];
        assert_eq!(rustix::io::pread(file, &mut text, HOST_BASE + 4096 - BASE), Ok(4));
        assert_eq!(&text, b"text");
        assert_eq!(rustix::io::pwrite(file, b"back", HOST_BASE + 4096 - BASE), Ok(4));
        assert_eq!(&read(&mapping, HOST_BASE + 4096), b"back");
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
