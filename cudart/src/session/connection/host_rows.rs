//! Rows in the program's own memory.

use balar_host::CudaError;
use balar_host::call::CopyShape;
use std::borrow::Cow;

/// Rows in the program's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRows {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes of a row, rows, slices.
    pub shape: CopyShape,
    /// Bytes from a row to the next.
    pub row_pitch: u64,
    /// Bytes from a slice to the next.
    pub slice_pitch: u64,
}

impl HostRows {
    /// Is it one piece of memory?
    pub fn is_contiguous(&self) -> bool {
        let CopyShape { width, height, depth } = self.shape;
        (height <= 1 || self.row_pitch == width) && (depth <= 1 || Some(self.slice_pitch) == width.checked_mul(height))
    }

    /// Address of a row.
    fn row(&self, index: u64) -> u64 {
        let height = self.shape.height.max(1);
        self.address + index / height * self.slice_pitch + index % height * self.row_pitch
    }

    /// The bytes of all rows, one after another.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        // SAFETY: a source that the program passed to a copy: it promises that the rows are there for reading.
        let read = |address: u64, bytes: u64| unsafe {
            if bytes == 0 { &[][..] } else { std::slice::from_raw_parts(address as *const u8, bytes as usize) }
        };
        if self.is_contiguous() {
            return Cow::Borrowed(read(self.address, self.shape.bytes()));
        }
        let rows = self.shape.height * self.shape.depth;
        let mut packed = Vec::with_capacity(self.shape.bytes() as usize);
        for row in 0..rows {
            packed.extend_from_slice(read(self.row(row), self.shape.width));
        }
        Cow::Owned(packed)
    }

    /// Writes bytes of the rows, from `offset` on in their sequence.
    pub fn write(&self, mut offset: u64, mut data: &[u8]) {
        // SAFETY: a destination that the program passed to a copy: it promises that the rows are there for writing.
        let put = |address: u64, bytes: &[u8]| unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len());
        };
        if self.is_contiguous() {
            return put(self.address + offset, data);
        }
        while !data.is_empty() {
            let (row, within) = (offset / self.shape.width, offset % self.shape.width);
            let now = (self.shape.width - within).min(data.len() as u64);
            let (piece, rest) = data.split_at(now as usize);
            put(self.row(row) + within, piece);
            data = rest;
            offset += now;
        }
    }
}

impl HostRows {
    /// Bytes from the first to the last; `u64::MAX` where they are more than an address can count.
    pub fn extent(&self) -> u64 {
        let CopyShape { width, height, depth } = self.shape;
        let slices = depth.saturating_sub(1).saturating_mul(self.slice_pitch);
        let rows = height.saturating_sub(1).saturating_mul(self.row_pitch);
        slices.saturating_add(rows).saturating_add(width)
    }

    /// Bytes from the first to the last.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidValue`] for rows that reach beyond the last address.
    pub fn reach(&self) -> Result<u64, CudaError> {
        let extent = self.extent();
        self.address.checked_add(extent).map(|_| extent).ok_or(CudaError::InvalidValue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_packed_and_scattered() {
        let memory: Vec<u8> = (0..24).collect();
        let shape = CopyShape { width: 2, height: 2, depth: 2 };
        let rows = |address: u64| HostRows { address, shape, row_pitch: 3, slice_pitch: 12 };
        let source = rows(memory.as_ptr() as u64);
        assert_eq!(source.bytes().as_ref(), [0, 1, 3, 4, 12, 13, 15, 16]);
        assert_eq!(source.extent(), 17);
        let mut target = vec![0_u8; 24];
        let destination = rows(target.as_mut_ptr() as u64);
        destination.write(0, &[1, 2, 3]);
        destination.write(3, &[4, 5, 6, 7, 8]);
        assert_eq!(target[..17], [1, 2, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5, 6, 0, 7, 8]);
    }

    #[test]
    fn rows_beyond_the_last_address_are_refused() {
        let shape = CopyShape { width: 4, height: 3, depth: 1 };
        let rows = |address, row_pitch| HostRows { address, shape, row_pitch, slice_pitch: 0 };
        // Two pitches and a row are 16 bytes.
        assert_eq!(rows(64, 6).reach(), Ok(16));
        for row_pitch in [u64::MAX, u64::MAX / 2, 1 << 63, (1 << 63) + 2] {
            assert_eq!(rows(64, row_pitch).reach(), Err(CudaError::InvalidValue), "{row_pitch}");
        }
        assert_eq!(rows(u64::MAX - 15, 6).reach(), Err(CudaError::InvalidValue));
        assert_eq!(rows(u64::MAX - 16, 6).reach(), Ok(16));
        // 2^32 rows of 2^32 bytes are 2^64, which wraps to none.
        let many = CopyShape { width: 1 << 32, height: 1 << 32, depth: 2 };
        let rows = HostRows { address: 64, shape: many, row_pitch: 1 << 32, slice_pitch: 0 };
        assert!(!rows.is_contiguous());
        assert_eq!(rows.reach(), Err(CudaError::InvalidValue));
    }

    #[test]
    fn a_piece_without_gaps_is_not_copied() {
        let memory = [1_u8, 2, 3, 4];
        let shape = CopyShape { width: 2, height: 2, depth: 1 };
        let rows = HostRows { address: memory.as_ptr() as u64, shape, row_pitch: 2, slice_pitch: 0 };
        assert!(matches!(rows.bytes(), Cow::Borrowed([1, 2, 3, 4])));
    }
}
