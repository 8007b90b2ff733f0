//! Bulk data of a call.

use crate::huge_pages;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// A buffer of this many zero bytes with a single owner, which a large copy fills.
pub fn zeroed(length: usize) -> Arc<[u8]> {
    let mut bytes = Arc::new_uninit_slice(length);
    if let Some(all) = Arc::get_mut(&mut bytes) {
        prefer_huge_pages(all);
        all.fill(MaybeUninit::new(0));
    }
    // SAFETY: every byte has been written: a new allocation has one owner.
    unsafe { bytes.assume_init() }
}

/// As [`huge_pages::prefer`], for memory that will be written whole.
pub(crate) fn prefer_huge_pages(memory: &mut [MaybeUninit<u8>]) {
    // SAFETY: it is memory of this process.
    unsafe { huge_pages::prefer(NonNull::from(&mut *memory).cast(), memory.len()) };
}

/// Bytes that come with a call or a result. Serialised, they are their length alone: code that moves a call moves its data separately
/// ([`Call::payloads`](crate::Call::payloads)), and puts it in place at the other end.
#[derive(Clone, Debug)]
pub struct Bytes {
    length: u64,
    data: Option<Arc<[u8]>>,
}

impl Bytes {
    /// Bytes that are somewhere else: only their number is known.
    pub fn absent(length: u64) -> Bytes {
        Bytes { length, data: None }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes; `None` where they are absent.
    pub fn data(&self) -> Option<&Arc<[u8]>> {
        self.data.as_ref()
    }

    /// The bytes as a new vector; empty if they are absent.
    pub fn to_vec(&self) -> Vec<u8> {
        self.data.as_ref().map_or(Vec::new(), |data| data.to_vec())
    }

    /// Puts the bytes in place.
    ///
    /// # Panics
    ///
    /// Where their number is another than was announced.
    pub fn fill(&mut self, data: Arc<[u8]>) {
        assert_eq!(self.length, data.len() as u64, "a payload has the length that was announced");
        self.data = Some(data);
    }
}

impl<T: Into<Arc<[u8]>>> From<T> for Bytes {
    fn from(data: T) -> Bytes {
        let data = data.into();
        Bytes { length: data.len() as u64, data: Some(data) }
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        self.length == other.length && self.data == other.data
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.length.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        u64::deserialize(deserializer).map(Bytes::absent)
    }
}
