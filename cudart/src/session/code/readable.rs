//! The program's own memory, read without the assumption that it is there.

use std::io;

/// Bytes that are copied at a time. A copy that meets memory that is not there ends before the page.
const PIECE: usize = 1 << 20;
const PAGE: usize = 4096;

/// Copies the bytes at an address to `to`; false where the program has no memory in part of the range.
fn copy(address: usize, to: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: to.len() };
    // SAFETY: the local piece is `to`, which this function may write; the system checks the other one, which may be no memory at all.
    let count = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    if count >= 0 {
        return count.cast_unsigned() == to.len();
    }
    if io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) {
        return false;
    }
    // Where the system does not offer the call, the program is believed.
    // SAFETY: the caller of the CUDA function says that an image is there.
    unsafe { std::ptr::copy(address as *const u8, to.as_mut_ptr(), to.len()) };
    true
}

/// So many bytes at an address; `None` where the program has no memory there.
pub fn array<const BYTES: usize>(address: usize) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    (address != 0 && copy(address, &mut bytes)).then_some(bytes)
}

/// As [`array`], for any number of bytes. Memory for them is taken as they are there.
pub fn bytes(address: usize, count: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let at = address.checked_add(bytes.len())?;
        let piece = PIECE.min(count - bytes.len());
        let before = bytes.len();
        bytes.resize(before + piece, 0);
        if !copy(at, &mut bytes[before..]) {
            return None;
        }
    }
    Some(bytes)
}

/// The text at an address with the zero byte that ends it; `None` where it does not end before `longest` bytes, or before the program's
/// memory does.
pub fn text(address: usize, longest: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < longest {
        let at = address.checked_add(text.len())?;
        let before = text.len();
        // Up to the end of a page: the next one may not be there.
        text.resize(before + PAGE - at % PAGE, 0);
        if !copy(at, &mut text[before..]) {
            return None;
        }
        if let Some(end) = text[before..].iter().position(|&byte| byte == 0) {
            text.truncate(before + end + 1);
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_read() {
        assert_eq!(array::<4>(0), None);
        assert_eq!(array::<4>(16), None);
        assert_eq!(bytes(usize::MAX - 3, 8), None);
        assert_eq!(text(8, 100), None);
    }

    #[test]
    fn what_is_there_is_copied() {
        let long: Vec<u8> = (0..3 * PIECE + 5).map(|at| (at % 251 + 1) as u8).collect();
        let address = long.as_ptr() as usize;
        assert_eq!(bytes(address, long.len()), Some(long.clone()));
        assert_eq!(array::<3>(address + 1), Some([2, 3, 4]));
        let mut ended = long;
        ended.push(0);
        let address = ended.as_ptr() as usize;
        assert_eq!(text(address, usize::MAX), Some(ended.clone()));
        assert_eq!(text(address, 2 * PIECE), None);
    }
}
