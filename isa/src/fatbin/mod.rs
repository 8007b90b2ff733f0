//! Device code as programs carry it: fatbin containers, PTX texts, cubins.
//!
//! A fatbin container holds the same code for several architectures, as PTX and as machine code. A program registers or loads an image: one
//! container, several one after another, a PTX text, or a single cubin. [`texts`] and [`cubins`] take it apart.

mod container;
mod error;
mod payload;
#[cfg(test)]
mod tests;

pub use container::{Container, Entry, EntryKind, MAGIC, containers};
pub use error::{FatbinError, ImageError};
pub use payload::MAXIMUM_PAYLOAD_BYTES;

use crate::cubin::CubinHeader;
use crate::sass;
use std::fmt::Write as _;

/// A PTX text of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxText {
    /// The name that the container gives it, if any.
    pub name: Option<String>,
    /// The text.
    pub text: String,
}

/// The target of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubinDescription {
    /// The architecture: 75.
    pub architecture: u32,
    /// Whether it is to be linked with others before it is loaded.
    pub is_relocatable: bool,
}

/// The target of a cubin; `None` for any other file. [`Cubin`](crate::cubin::Cubin) has the rest of it.
pub fn cubin(image: &[u8]) -> Option<CubinDescription> {
    let CubinHeader { architecture, is_relocatable, .. } = CubinHeader::read(image)?;
    Some(CubinDescription { architecture, is_relocatable })
}

/// The PTX texts of an image that a GPU of this compute capability runs. Each container gives the text for the highest architecture that is
/// not above the GPU's, or where all are above it, the lowest.
///
/// # Errors
///
/// The image is malformed, or has no PTX.
pub fn texts(image: &[u8], compute_capability: (u32, u32)) -> Result<Vec<PtxText>, ImageError> {
    if !image.starts_with(&MAGIC.to_le_bytes()) {
        return plain(image);
    }
    let capability = compute_capability.0 * 10 + compute_capability.1;
    let containers = containers(image)?;
    let mut texts = Vec::new();
    for container in &containers {
        let ptx = || container.entries.iter().filter(|entry| entry.kind == EntryKind::Ptx);
        let fitting = ptx().filter(|entry| entry.architecture <= capability);
        let best = fitting.max_by_key(|entry| (entry.architecture, entry.version));
        let Some(best) = best.or_else(|| ptx().min_by_key(|entry| entry.architecture)) else { continue };
        texts.push(PtxText { name: best.name.clone(), text: best.text()? });
    }
    if texts.is_empty() {
        return Err(ImageError::NoCode { found: inventory(&containers) });
    }
    Ok(texts)
}

/// A cubin of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CubinImage {
    /// The name that the container gives it, if any.
    pub name: Option<String>,
    /// The file.
    pub bytes: Vec<u8>,
}

/// The cubins of an image that a GPU of this compute capability runs. Each container gives the cubin for the highest architecture that has
/// the GPU's first digit and no larger second one, and that the simulator knows.
///
/// # Errors
///
/// The image is malformed, or it or one of its containers has no such code.
pub fn cubins(image: &[u8], compute_capability: (u32, u32)) -> Result<Vec<CubinImage>, ImageError> {
    let (major, minor) = compute_capability;
    let runs = |architecture: u32| {
        architecture / 10 == major && architecture % 10 <= minor && sass::ARCHITECTURES.contains(&architecture)
    };
    let none = |found: String| ImageError::NoMachineCode { architecture: major * 10 + minor, found };
    if !image.starts_with(&MAGIC.to_le_bytes()) {
        return match cubin(image) {
            Some(found) if runs(found.architecture) => Ok(vec![CubinImage { name: None, bytes: image.to_vec() }]),
            Some(found) => Err(none(format!("machine code for sm_{} alone (a cubin)", found.architecture))),
            None => plain(image).and_then(|_| Err(none("PTX alone".to_owned()))),
        };
    }
    let containers = containers(image)?;
    let mut cubins = Vec::new();
    for container in containers.iter().filter(|container| !container.entries.is_empty()) {
        let fitting = container.entries.iter().filter(|entry| entry.kind == EntryKind::Elf && runs(entry.architecture));
        let Some(best) = fitting.max_by_key(|entry| entry.architecture) else {
            return Err(none(inventory(std::slice::from_ref(container))));
        };
        cubins.push(CubinImage { name: best.name.clone(), bytes: best.data()? });
    }
    if cubins.is_empty() {
        return Err(none(inventory(&containers)));
    }
    Ok(cubins)
}

/// Whether an image is a container with nothing but machine code that needs no linking, such as the linker makes of code that was compiled
/// in pieces; one without entries is.
pub fn is_linked(image: &[u8]) -> bool {
    let is_linked = |entry: &Entry<'_>| {
        let data = if entry.kind == EntryKind::Elf { entry.data().ok() } else { None };
        data.and_then(|data| cubin(&data)).is_some_and(|cubin| !cubin.is_relocatable)
    };
    let containers = if image.starts_with(&MAGIC.to_le_bytes()) { containers(image).ok() } else { None };
    containers.is_some_and(|containers| containers.iter().flat_map(|container| &container.entries).all(is_linked))
}

/// An image that is no container.
fn plain(image: &[u8]) -> Result<Vec<PtxText>, ImageError> {
    if let Some(cubin) = cubin(image) {
        let found = format!("machine code for sm_{} alone (a cubin)", cubin.architecture);
        return Err(ImageError::NoCode { found });
    }
    let unknown = || ImageError::Unknown { bytes: image.len(), first: image[..image.len().min(8)].to_vec() };
    // The driver takes a text that ends with a zero byte.
    let end = image.iter().position(|&byte| byte == 0).unwrap_or(image.len());
    let text = std::str::from_utf8(&image[..end]).map_err(|_| unknown())?;
    if text.trim().is_empty() {
        return Err(unknown());
    }
    Ok(vec![PtxText { name: None, text: text.to_owned() }])
}

/// The contents of containers, in words.
fn inventory(containers: &[Container]) -> String {
    let mut text = String::new();
    for entry in containers.iter().flat_map(|container| &container.entries) {
        let separator = if text.is_empty() { "" } else { ", " };
        let architecture = entry.architecture;
        // Writing to a string cannot fail.
        let _ = match entry.kind {
            EntryKind::Ptx => write!(text, "{separator}PTX for compute_{architecture}"),
            EntryKind::Elf => write!(text, "{separator}machine code for sm_{architecture}"),
            EntryKind::Other(kind) => write!(text, "{separator}an entry of kind {kind} for sm_{architecture}"),
        };
    }
    if text.is_empty() { "no entries".to_owned() } else { text }
}
