//! The code for a GPU in images (fatbin containers, PTX, cubins).

use balar_isa::fatbin::{self, CubinImage, ImageError, PtxText};
use std::sync::Arc;

/// A PTX text and the name that messages give it.
pub type NamedText = (String, Arc<str>);
/// A cubin and the name that messages give it.
pub type NamedCubin = (String, Arc<[u8]>);

/// A part of a module, as a program has brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModulePart {
    /// PTX.
    Text(NamedText),
    /// Machine code that is to be linked.
    Cubin(NamedCubin),
}

/// Whether a cubin needs no linking.
fn is_linked((_, bytes): &NamedCubin) -> bool {
    fatbin::cubin(bytes).is_some_and(|cubin| !cubin.is_relocatable)
}

/// The name of a part of a module that has no name of its own.
fn part_name(name: &str, number: usize, extension: &str) -> String {
    match number {
        0 => format!("{name}.{extension}"),
        number => format!("{name}.{number}.{extension}"),
    }
}

/// The PTX texts of an image: none, where the linker made the image of the pieces before it, and it has nothing for this GPU.
fn texts_of(image: &[u8], compute_capability: (u32, u32), is_behind_pieces: bool) -> Result<Vec<PtxText>, ImageError> {
    match fatbin::texts(image, compute_capability) {
        Err(ImageError::NoCode { .. }) if is_behind_pieces && fatbin::is_linked(image) => Ok(Vec::new()),
        found => found,
    }
}

/// The PTX texts of images.
pub(super) fn texts(
    images: &[&[u8]],
    name: &str,
    compute_capability: (u32, u32),
) -> Result<Vec<NamedText>, ImageError> {
    let mut texts: Vec<NamedText> = Vec::new();
    for image in images {
        for text in texts_of(image, compute_capability, !texts.is_empty())? {
            let own = text.name.unwrap_or_else(|| part_name(name, texts.len(), "ptx"));
            texts.push((own, text.text.into()));
        }
    }
    Ok(texts)
}

/// The cubins of images.
pub(super) fn cubins(
    images: &[&[u8]],
    name: &str,
    compute_capability: (u32, u32),
) -> Result<Vec<NamedCubin>, ImageError> {
    let mut cubins: Vec<NamedCubin> = Vec::new();
    for image in images {
        for CubinImage { name: own, bytes } in fatbin::cubins(image, compute_capability)? {
            let own = own.unwrap_or_else(|| part_name(name, cubins.len(), "cubin"));
            cubins.push((own, bytes.into()));
        }
    }
    if cubins.iter().any(is_linked) {
        // Pieces are there beside the linker's output for them.
        cubins.retain(is_linked);
    }
    Ok(cubins)
}

/// Machine code that is to be linked, for images that have some, and PTX of the others; `None` where there is an image of neither.
pub(super) fn parts(images: &[&[u8]], name: &str, compute_capability: (u32, u32)) -> Option<Vec<ModulePart>> {
    let mut parts: Vec<ModulePart> = Vec::new();
    for image in images {
        let Ok(found) = fatbin::cubins(image, compute_capability) else {
            for text in texts_of(image, compute_capability, !parts.is_empty()).ok()? {
                let own = text.name.unwrap_or_else(|| part_name(name, parts.len(), "ptx"));
                parts.push(ModulePart::Text((own, text.text.into())));
            }
            continue;
        };
        for CubinImage { name: own, bytes } in found {
            let cubin = (own.unwrap_or_else(|| part_name(name, parts.len(), "cubin")), bytes.into());
            if is_linked(&cubin) {
                return None;
            }
            parts.push(ModulePart::Cubin(cubin));
        }
    }
    Some(parts)
}
