//! Images of device code that a program passes by address alone: their content says how long they are. A damaged one says anything, so
//! an image is read by copies that end where the program's memory does.

use super::readable;
use crate::session::code::loaded::Image;
use balar_host::CudaError;
use std::ffi::c_void;
use std::sync::Arc;

/// First four bytes of a fatbin container.
pub const CONTAINER: u32 = 0xba55_ed50;
/// First four bytes of the record that points to one.
const CONTAINER_RECORD: u32 = 0x4662_43b1;
/// The version of a record whose code was compiled in pieces and linked.
const LINKED_RECORD: u32 = 2;
/// First four bytes of an ELF file; cubins are ELF files.
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");
/// First eight bytes of an image that [`linked`] makes.
const LINKED: [u8; 8] = *b"balarlnk";

/// Bytes of an image at most. An image that claims to be longer is damaged.
const LONGEST: usize = 4 << 30;
/// Parts of linked code at most.
const MOST_PIECES: usize = 1 << 16;
/// Bytes of a container's header that say how long it is.
const CONTAINER_HEADER: usize = 16;
/// Bytes of the header of a 64-bit ELF file.
const ELF_HEADER: usize = 64;

/// The images at an address: one, or several that `cuLinkComplete` put together.
///
/// # Errors
///
/// Where there is none, and where the bytes are no complete image: text that ends with a zero byte, a fatbin container, a record of one, a
/// cubin, or a linked image.
pub fn at(address: *const c_void) -> Result<Vec<Image>, CudaError> {
    if address.is_null() {
        return Err(CudaError::InvalidValue);
    }
    let address = address as usize;
    match word(address) {
        Some(CONTAINER_RECORD) => {
            let container = |address| copied(address, container_bytes(address));
            containers(address).map(container).collect()
        }
        Some(CONTAINER) => Ok(vec![copied(address, container_bytes(address))?]),
        Some(ELF) => Ok(vec![copied(address, elf_bytes(address))?]),
        _ if readable::array::<8>(address) == Some(LINKED) => unlinked(&bytes(address, linked_bytes(address))?),
        // The text with its zero byte, as containers have it.
        _ => {
            let text = readable::text(address, LONGEST).filter(|text| text.len() > 4);
            Ok(vec![Image::Copied(text.ok_or(CudaError::InvalidKernelImage)?.into())])
        }
    }
}

/// The images of the program's own code that a record at `address` points to, where they are; those that are no containers are left out.
pub fn of_program(address: *const c_void) -> Vec<Image> {
    let address = address as usize;
    if word(address) != Some(CONTAINER_RECORD) {
        return Vec::new();
    }
    let image = |address: usize| {
        let bytes = container_bytes(address).filter(|&bytes| bytes <= LONGEST)?;
        // What lies between belongs to the same section of the program.
        let last = address.checked_add(bytes.checked_sub(1)?)?;
        readable::array::<1>(last).map(|_| Image::OfProgram { address, bytes })
    };
    containers(address).filter_map(image).collect()
}

/// The four bytes at an address; `None` where the program has no memory there.
fn word(address: usize) -> Option<u32> {
    readable::array(address).map(u32::from_le_bytes)
}

/// The address at an address.
fn pointer(address: usize) -> Option<usize> {
    readable::array(address).map(usize::from_le_bytes)
}

/// The containers of a record. Linked code has one for each of its parts, which the device links as it compiles them, and behind them the
/// machine code that the linker made of them.
fn containers(record: usize) -> impl Iterator<Item = usize> {
    let linked = record.checked_add(8).and_then(pointer);
    pieces(record).chain([linked.unwrap_or(0)])
}

/// The containers of the parts of code that was compiled in pieces and linked, as a record of it lists them; none of other code.
fn pieces(record: usize) -> impl Iterator<Item = usize> {
    let is_linked = record.checked_add(4).and_then(word) == Some(LINKED_RECORD);
    // A record of linked code has a list behind its container, which ends with null.
    let list = record.checked_add(16).filter(|_| is_linked).and_then(pointer).filter(|&list| list != 0);
    let piece = move |index: usize| pointer(list?.checked_add(8 * index)?).filter(|&piece| piece != 0);
    (0..MOST_PIECES).map_while(piece)
}

/// The images in a file.
///
/// # Errors
///
/// Where it cannot be read, and where it ends before its image does.
pub fn in_file(path: &str) -> Result<Vec<Image>, CudaError> {
    let mut data = std::fs::read(path).map_err(|_| CudaError::FileNotFound)?;
    // PTX in files does not end with a zero byte; other images do not change by it.
    data.extend([0; 8]);
    let address = data.as_ptr() as usize;
    // Of images other than text the headers say the length: one that has been cut off is found by what they say.
    let bytes = match word(address) {
        Some(CONTAINER) if data.len() >= CONTAINER_HEADER + 8 => container_bytes(address),
        Some(ELF) if data.len() >= ELF_HEADER + 8 => elf_bytes(address),
        Some(CONTAINER | ELF | CONTAINER_RECORD) => None,
        _ if data.len() >= 24 && data.starts_with(&LINKED) => linked_bytes(address),
        _ if data.starts_with(&LINKED) => None,
        _ => Some(0),
    };
    if bytes.is_none_or(|bytes| bytes > data.len()) {
        return Err(CudaError::InvalidKernelImage);
    }
    at(address as *const c_void)
}

/// A copy of so many bytes at an address.
fn bytes(address: usize, bytes: Option<usize>) -> Result<Vec<u8>, CudaError> {
    let bytes = bytes.filter(|&bytes| bytes <= LONGEST);
    bytes.and_then(|bytes| readable::bytes(address, bytes)).ok_or(CudaError::InvalidKernelImage)
}

fn copied(address: usize, length: Option<usize>) -> Result<Image, CudaError> {
    Ok(Image::Copied(Arc::from(bytes(address, length)?)))
}

/// A number of up to eight bytes, the least significant one first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

/// The bytes of the container at an address, as its header says; `None` where there is none.
fn container_bytes(address: usize) -> Option<usize> {
    let header: [u8; CONTAINER_HEADER] = readable::array(address)?;
    let at = |range: std::ops::Range<usize>| number(&header[range]);
    if at(0..4) != u64::from(CONTAINER) {
        return None;
    }
    usize::try_from(at(6..8).checked_add(at(8..16))?).ok()
}

/// The size of the ELF file at an address: it ends with the table of sections or of segments, or with the last section or segment; a
/// cubin's tables come last.
fn elf_bytes(address: usize) -> Option<usize> {
    let header: [u8; ELF_HEADER] = readable::array(address)?;
    let end = |table: usize, entry: usize, count: usize| {
        number(&header[table..table + 8])
            .checked_add(number(&header[entry..entry + 2]) * number(&header[count..count + 2]))
    };
    usize::try_from(end(40, 58, 60)?.max(end(32, 54, 56)?)).ok()
}

/// The size of the image that [`linked`] made at an address.
fn linked_bytes(address: usize) -> Option<usize> {
    pointer(address.checked_add(8)?)
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
        at(bytes.as_ptr().cast()).map(contents)
    }

    #[test]
    fn the_length_of_an_image_is_found() {
        assert_eq!(at_bytes(b".version 7.0\n\0rest"), Ok(vec![b".version 7.0\n\0".to_vec()]));
        // A container's header says its own length and the length of the rest.
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
        assert_eq!(at(std::ptr::null()).map(contents), Err(CudaError::InvalidValue));
        assert_eq!(at_bytes(b"\0"), Err(CudaError::InvalidKernelImage));
    }

    /// Lengths that no memory has, and lengths that end behind the program's memory.
    #[test]
    fn damaged_headers_are_refused() {
        let mut file = b"\x7fELF".to_vec();
        file.resize(128, 0);
        for table in [0x5e7d_0000_0000_0000_u64, u64::MAX, 1 << 40, 3 << 30] {
            file[40..48].copy_from_slice(&table.to_le_bytes());
            assert_eq!(at_bytes(&file), Err(CudaError::InvalidKernelImage), "{table:#x}");
        }
        let mut container = CONTAINER.to_le_bytes().to_vec();
        container.extend([1, 0, 16, 0]);
        container.extend(u64::MAX.to_le_bytes());
        assert_eq!(at_bytes(&container), Err(CudaError::InvalidKernelImage));
        let mut linked = LINKED.to_vec();
        linked.extend(u64::MAX.to_le_bytes());
        assert_eq!(at_bytes(&linked), Err(CudaError::InvalidKernelImage));
        assert_eq!(at(8 as *const c_void).map(contents), Err(CudaError::InvalidKernelImage));
        let mut record = CONTAINER_RECORD.to_le_bytes().to_vec();
        record.extend(1_u32.to_le_bytes());
        record.extend(8_u64.to_le_bytes());
        assert_eq!(at_bytes(&record), Err(CudaError::InvalidKernelImage));
        assert!(of_program(record.as_ptr().cast()).is_empty());
    }
}
