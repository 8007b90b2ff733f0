//! Bytes that a program of another process may write at the same time.
//!
//! **Invariant:** no reference to such a byte ever exists. They are copied in and out with relaxed atomic accesses, each of the
//! largest unit that fits: an aligned value of up to 8 bytes is read and written whole, as on hardware.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A range of the host window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedBytes<'a> {
    first: NonNull<u8>,
    length: usize,
    mapping: PhantomData<&'a [AtomicU8]>,
}

/// Calls `$copy!(atomic type, integer type, offset)` for each unit of `$length` bytes from `$first` on.
macro_rules! for_each_unit {
    ($first:expr, $length:expr, $copy:ident) => {
        let (first, length) = ($first, $length);
        let mut at = 0;
        while at < length {
            let (place, left) = (first.addr().wrapping_add(at), length - at);
            if place % 8 == 0 && left >= 8 {
                while length - at >= 8 {
                    $copy!(AtomicU64, u64, at);
                    at += 8;
                }
            } else if place % 4 == 0 && left >= 4 {
                $copy!(AtomicU32, u32, at);
                at += 4;
            } else if place % 2 == 0 && left >= 2 {
                $copy!(AtomicU16, u16, at);
                at += 2;
            } else {
                $copy!(AtomicU8, u8, at);
                at += 1;
            }
        }
    };
}

impl<'a> SharedBytes<'a> {
    /// `length` bytes from `first` on.
    ///
    /// # Safety
    ///
    /// They are mapped for reading and writing for `'a`, and in that time this process refers to them by [`SharedBytes`] alone.
    pub unsafe fn new(first: NonNull<u8>, length: usize) -> SharedBytes<'a> {
        SharedBytes { first, length, mapping: PhantomData }
    }

    /// How many bytes there are.
    pub fn len(self) -> usize {
        self.length
    }

    /// `length` of the bytes, from `offset` on.
    ///
    /// # Panics
    ///
    /// Where they are not all in the range.
    pub fn part(self, offset: usize, length: usize) -> SharedBytes<'a> {
        assert!(offset <= self.length && length <= self.length - offset, "outside the range");
        // SAFETY: the range holds `offset + length` bytes.
        SharedBytes { first: unsafe { self.first.add(offset) }, length, ..self }
    }

    /// Copies the bytes from `offset` on out.
    ///
    /// # Panics
    ///
    /// Where they are not all in the range.
    #[inline]
    pub fn read(self, offset: usize, destination: &mut [u8]) {
        let from = self.part(offset, destination.len()).first.as_ptr();
        macro_rules! copy {
            ($atomic:ty, $integer:ty, $at:expr) => {
                // SAFETY: `part` has checked the range, and `for_each_unit` the alignment; `new` was promised that the bytes are
                // mapped, and that all who access them in this process do so atomically.
                let unit = unsafe { <$atomic>::from_ptr(from.add($at).cast()) }.load(Relaxed);
                destination[$at..$at + size_of::<$integer>()].copy_from_slice(&unit.to_ne_bytes());
            };
        }
        for_each_unit!(from, destination.len(), copy);
    }

    /// Copies bytes in, from `offset` on.
    ///
    /// # Panics
    ///
    /// Where they are not all in the range.
    pub fn write(self, offset: usize, source: &[u8]) {
        let to = self.part(offset, source.len()).first.as_ptr();
        macro_rules! copy {
            ($atomic:ty, $integer:ty, $at:expr) => {
                let mut unit = [0; size_of::<$integer>()];
                unit.copy_from_slice(&source[$at..$at + size_of::<$integer>()]);
                // SAFETY: as in `read`.
                unsafe { <$atomic>::from_ptr(to.add($at).cast()) }.store(<$integer>::from_ne_bytes(unit), Relaxed);
            };
        }
        for_each_unit!(to, source.len(), copy);
    }

    /// Replaces the bytes, 16 at most, by the result of `change`; gives the answer of its last call. An aligned value of 4 or 8 bytes is
    /// replaced at once: where the program changes it meanwhile, `change` is called again.
    pub fn update<R>(self, mut change: impl FnMut(&mut [u8]) -> R) -> R {
        let first = self.first.as_ptr();
        macro_rules! exchange {
            ($atomic:ty, $integer:ty) => {{
                // SAFETY: as in `read`; the match arm has checked length and alignment.
                let unit = unsafe { <$atomic>::from_ptr(first.cast()) };
                let mut old = unit.load(Relaxed);
                loop {
                    let mut bytes = old.to_ne_bytes();
                    let result = change(&mut bytes);
                    match unit.compare_exchange_weak(old, <$integer>::from_ne_bytes(bytes), Relaxed, Relaxed) {
                        Ok(_) => return result,
                        Err(now) => old = now,
                    }
                }
            }};
        }
        match self.length {
            4 if first.addr().is_multiple_of(4) => exchange!(AtomicU32, u32),
            8 if first.addr().is_multiple_of(8) => exchange!(AtomicU64, u64),
            length => {
                let mut bytes = [0; 16];
                let bytes = &mut bytes[..length];
                self.read(0, bytes);
                let result = change(bytes);
                self.write(0, bytes);
                result
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes 0, 1, 2... of a heap allocation that begins at a multiple of 8.
    fn with_bytes<R>(act: impl FnOnce(SharedBytes) -> R) -> (R, Vec<u8>) {
        let mut words: Vec<u64> = (0..8u64).map(|word| 0x0706_0504_0302_0100 + word * 0x0808_0808_0808_0808).collect();
        let first = NonNull::from(&mut words[..]).cast::<u8>();
        // SAFETY: the words live until the end of this function, and nobody looks at them before `act` is done.
        let result = act(unsafe { SharedBytes::new(first, 64) });
        (result, words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    #[test]
    fn every_offset_and_length_is_copied() {
        for offset in 0..16 {
            for length in 0..40 {
                let ((), bytes) = with_bytes(|shared| {
                    let mut read = vec![0; length];
                    shared.read(offset, &mut read);
                    assert!(read.iter().enumerate().all(|(at, &byte)| usize::from(byte) == offset + at));
                    read.iter_mut().for_each(|byte| *byte += 100);
                    shared.write(offset, &read);
                });
                for (at, &byte) in bytes.iter().enumerate() {
                    let written = at >= offset && at < offset + length;
                    assert_eq!(usize::from(byte), if written { at + 100 } else { at }, "{offset} {length}");
                }
            }
        }
    }

    #[test]
    fn values_are_updated_in_place() {
        for (offset, length) in [(0, 8), (4, 4), (6, 2), (7, 1), (16, 16), (3, 4)] {
            let (old, bytes) = with_bytes(|shared| {
                shared.part(offset, length).update(|bytes| {
                    let old = bytes.to_vec();
                    bytes.reverse();
                    old
                })
            });
            let range: Vec<u8> = (offset as u8..(offset + length) as u8).collect();
            assert_eq!(old, range);
            assert!(bytes[offset..offset + length].iter().eq(range.iter().rev()));
        }
    }

    #[test]
    #[should_panic(expected = "outside the range")]
    fn no_byte_outside_the_range_is_read() {
        with_bytes(|shared| shared.part(8, 8).read(4, &mut [0; 5]));
    }

    #[test]
    fn two_threads_lose_no_update() {
        let words = [AtomicU64::new(0)];
        let add = || {
            let first = NonNull::from(&words[0]).cast::<u8>();
            // SAFETY: the words outlive the threads, and are atomics.
            let shared = unsafe { SharedBytes::new(first, 8) };
            for _ in 0..100 {
                shared.update(|bytes| bytes[0] += 1);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(add);
            scope.spawn(add);
        });
        assert_eq!(words[0].load(Relaxed).to_ne_bytes()[0], 200);
    }
}
