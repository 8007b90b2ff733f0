//! Images of device code that a program passes by address alone: their content says how long they are.

use crate::session::code::loaded::Image;
use balar_host::CudaError;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// First four bytes of a fatbin container.
pub const CONTAINER: u32 = 0xba55_ed50;
/// First four bytes of the record that points to one.
const CONTAINER_RECORD: u32 = 0x4662_43b1;
/// The version of a record whose code was compiled in pieces and linked.
const LINKED_RECORD: u32 = 2;
/// First four bytes of an ELF file, of which cubins are a kind.
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");
/// First eight bytes of what [`linked`] makes.
const LINKED: [u8; 8] = *b"balarlnk";

/// The images at an address: one, or several that `cuLinkComplete` put together.
///
/// # Safety
///
/// `address` is null, or that of a complete image: text that ends with a zero byte, a fatbin container, a record of one, a cubin,
/// or a linked image.
pub unsafe fn at(address: *const c_void) -> Result<Vec<Image>, CudaError> {
    if address.is_null() {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: an image of any kind is there; each is read no further than its own headers say, starting with a text's zero byte.
    unsafe {
        let text = CStr::from_ptr(address.cast());
        if text.count_bytes() < 4 {
            return Err(CudaError::InvalidKernelImage);
        }
        match address.cast::<u32>().read_unaligned() {
            CONTAINER_RECORD => {
                let container = |address| {
                    let bytes = length_of_container(address).ok_or(CudaError::InvalidKernelImage)?;
                    Ok(copied(address, bytes))
                };
                containers(address).map(container).collect()
            }
            CONTAINER => Ok(vec![copied(address, container_bytes(address))]),
            ELF => Ok(vec![copied(address, elf_bytes(address))]),
            _ if text.to_bytes().starts_with(&LINKED) => {
                let bytes = address.byte_add(8).cast::<u64>().read_unaligned();
                unlinked(std::slice::from_raw_parts(address.cast(), bytes as usize))
            }
            // The text with its zero byte, as containers have it.
            _ => Ok(vec![copied(address, text.count_bytes() + 1)]),
        }
    }
}

/// The images of the program's own code that a record at `address` points to, where they are; those that are no containers are left out.
///
/// # Safety
///
/// `address` is null, or a record is there as nvcc writes it into the section `.nvFatBinSegment`.
pub unsafe fn of_program(address: *const c_void) -> Vec<Image> {
    // SAFETY: the caller's.
    unsafe {
        if address.is_null() || address.cast::<u32>().read_unaligned() != CONTAINER_RECORD {
            return Vec::new();
        }
        let image = |address: *const c_void| {
            Some(Image::OfProgram { address: address as usize, bytes: length_of_container(address)? })
        };
        containers(address).filter_map(image).collect()
    }
}

/// The containers of a record. Linked code has one for each of its parts, which the device links as it compiles them, and behind them the
/// machine code that the linker made of them.
///
/// # Safety
///
/// A record of a container is at `address`.
unsafe fn containers(address: *const c_void) -> impl Iterator<Item = *const c_void> {
    // SAFETY: the caller's.
    let (pieces, linked) = unsafe { (pieces(address), address.byte_add(8).cast::<*const c_void>().read_unaligned()) };
    pieces.chain([linked])
}

/// The bytes of the container at an address; `None` where there is none.
///
/// # Safety
///
/// `address` is null, or 16 bytes of a program's code are there.
unsafe fn length_of_container(address: *const c_void) -> Option<usize> {
    // SAFETY: the caller's.
    unsafe {
        let is_there = !address.is_null() && address.cast::<u32>().read_unaligned() == CONTAINER;
        is_there.then(|| container_bytes(address))
    }
}

/// The containers of the parts of code that was compiled in pieces and linked, as a record of it lists them; none of other code.
///
/// # Safety
///
/// A record of a container is at `address`.
unsafe fn pieces(address: *const c_void) -> impl Iterator<Item = *const c_void> {
    // SAFETY: the caller's. A record of linked code has a list behind its container, which ends with null.
    let list = unsafe {
        let version = address.byte_add(4).cast::<u32>().read_unaligned();
        if version == LINKED_RECORD {
            address.byte_add(16).cast::<*const *const c_void>().read_unaligned()
        } else {
            std::ptr::null()
        }
    };
    let piece = move |index: usize| {
        // SAFETY: as above; what comes before has not ended the list.
        let piece = if list.is_null() { std::ptr::null() } else { unsafe { list.add(index).read_unaligned() } };
        (!piece.is_null()).then_some(piece)
    };
    (0..).map_while(piece)
}

/// The images in a file.
pub fn in_file(path: &str) -> Result<Vec<Image>, CudaError> {
    let mut data = std::fs::read(path).map_err(|_| CudaError::FileNotFound)?;
    // PTX in files does not end with a zero byte; other images do not change by it.
    data.extend([0; 8]);
    // SAFETY: a text ends with the zero bytes just added. Of other images the headers say the length: one that has been cut off is
    // caught here, by what they say.
    unsafe {
        let bytes = match data.first_chunk::<4>().map(|first| u32::from_le_bytes(*first)) {
            Some(CONTAINER) if data.len() >= 24 => container_bytes(data.as_ptr().cast()),
            Some(ELF) if data.len() >= 72 => elf_bytes(data.as_ptr().cast()),
            Some(CONTAINER | ELF | CONTAINER_RECORD) => usize::MAX,
            _ if data.starts_with(&LINKED) => data.as_ptr().byte_add(8).cast::<u64>().read_unaligned() as usize,
            _ => 0,
        };
        if bytes > data.len() {
            return Err(CudaError::InvalidKernelImage);
        }
        at(data.as_ptr().cast())
    }
}

/// # Safety
///
/// `bytes` bytes can be read at `address`.
unsafe fn copied(address: *const c_void, bytes: usize) -> Image {
    // SAFETY: the caller's.
    Image::Copied(Arc::from(unsafe { std::slice::from_raw_parts(address.cast::<u8>(), bytes) }))
}

/// # Safety
///
/// A container's header of 16 bytes is at `address`.
unsafe fn container_bytes(address: *const c_void) -> usize {
    // SAFETY: the caller's. The header's length, and that of what follows, are fields of it.
    unsafe {
        let header = address.byte_add(6).cast::<u16>().read_unaligned();
        let content = address.byte_add(8).cast::<u64>().read_unaligned();
        usize::from(header).saturating_add(content as usize)
    }
}

/// # Safety
///
/// The header of a 64-bit ELF file is at `address`, with what its fields point to.
unsafe fn elf_bytes(address: *const c_void) -> usize {
    // SAFETY: the caller's. The file ends with the table of sections or that of segments, or with what those name; a cubin's
    // tables come last.
    unsafe {
        let half = |at: usize| usize::from(address.byte_add(at).cast::<u16>().read_unaligned());
        let word = |at: usize| address.byte_add(at).cast::<u64>().read_unaligned() as usize;
        let sections = word(40).saturating_add(half(58) * half(60));
        let segments = word(32).saturating_add(half(54) * half(56));
        sections.max(segments)
    }
}

/// One image that contains several, which are linked when a module is made of it.
pub fn linked(images: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = LINKED.to_vec();
    bytes.extend([0; 8]);
    for image in images {
        bytes.extend((image.len() as u64).to_le_bytes());
        bytes.extend(image);
    }
    let all = (bytes.len() as u64).to_le_bytes();
    bytes[8..16].copy_from_slice(&all);
    bytes
}

fn unlinked(bytes: &[u8]) -> Result<Vec<Image>, CudaError> {
    let mut images = Vec::new();
    let mut rest = bytes.get(16..).ok_or(CudaError::InvalidKernelImage)?;
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length) as usize;
        let (image, after) = after.split_at_checked(length).ok_or(CudaError::InvalidKernelImage)?;
        images.push(Image::Copied(Arc::from(image)));
        rest = after;
    }
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of each image.
    fn contents(images: Vec<Image>) -> Vec<Vec<u8>> {
        let copied = |image| match image {
            Image::Copied(bytes) => Some(bytes.to_vec()),
            Image::OfProgram { .. } => None,
        };
        images.into_iter().filter_map(copied).collect()
    }

    fn at_bytes(bytes: &[u8]) -> Result<Vec<Vec<u8>>, CudaError> {
        // SAFETY: each test passes a complete image.
        unsafe { at(bytes.as_ptr().cast()) }.map(contents)
    }

    #[test]
    fn the_length_of_an_image_is_found() {
        assert_eq!(at_bytes(b".version 7.0\n\0rest"), Ok(vec![b".version 7.0\n\0".to_vec()]));
        // A container's header says its own length and that of what follows.
        let mut container = CONTAINER.to_le_bytes().to_vec();
        container.extend([1, 0, 16, 0]);
        container.extend(5_u64.to_le_bytes());
        container.extend(b"entryrest");
        assert_eq!(at_bytes(&container), Ok(vec![container[..21].to_vec()]));
        let mut record = CONTAINER_RECORD.to_le_bytes().to_vec();
        record.extend(1_u32.to_le_bytes());
        record.extend((container.as_ptr() as u64).to_le_bytes());
        assert_eq!(at_bytes(&record), Ok(vec![container[..21].to_vec()]));
        // An ELF file with two sections of 64 bytes at 0x50.
        let mut file = b"\x7fELF".to_vec();
        file.resize(0x50 + 128 + 3, 0);
        file[40] = 0x50;
        file[58] = 64;
        file[60] = 2;
        assert_eq!(at_bytes(&file), Ok(vec![file[..0x50 + 128].to_vec()]));
    }

    #[test]
    fn what_was_linked_is_taken_apart() {
        let images = [b"first\0".to_vec(), b"second, longer\0".to_vec()];
        assert_eq!(at_bytes(&linked(&images)), Ok(images.to_vec()));
    }

    #[test]
    fn nothing_and_too_little_are_refused() {
        // SAFETY: null is allowed.
        assert_eq!(unsafe { at(std::ptr::null()) }.map(contents), Err(CudaError::InvalidValue));
        assert_eq!(at_bytes(b"\0"), Err(CudaError::InvalidKernelImage));
    }
}
