//! What images (fatbin containers, PTX, cubins) have for a GPU.

use super::assembler::ModulePart;
use super::loader::LoadError;
use super::module::{NamedCubin, NamedText};
use balar_isa::fatbin::{self, CubinImage, ImageError};

/// Whether a cubin needs no linking.
fn is_linked((_, bytes): &NamedCubin) -> bool {
    fatbin::cubin(bytes).is_some_and(|cubin| !cubin.is_relocatable)
}

/// The name of a part of a module that has none of its own.
fn part_name(name: &str, number: usize, extension: &str) -> String {
    match number {
        0 => format!("{name}.{extension}"),
        number => format!("{name}.{number}.{extension}"),
    }
}

/// The PTX texts of images.
pub(super) fn texts(images: &[&[u8]], name: &str, compute_capability: (u32, u32)) -> Result<Vec<NamedText>, LoadError> {
    let mut texts: Vec<NamedText> = Vec::new();
    for image in images {
        let found = fatbin::texts(image, compute_capability);
        if matches!(found, Err(ImageError::NoCode { .. })) && !texts.is_empty() && fatbin::is_linked(image) {
            // What the linker made of the pieces before it.
            continue;
        }
        for text in found.map_err(|error| LoadError::Image { name: name.to_owned(), error })? {
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
) -> Result<Vec<NamedCubin>, LoadError> {
    let mut cubins: Vec<NamedCubin> = Vec::new();
    for image in images {
        let found = fatbin::cubins(image, compute_capability);
        for CubinImage { name: own, bytes } in
            found.map_err(|error| LoadError::Image { name: name.to_owned(), error })?
        {
            let own = own.unwrap_or_else(|| part_name(name, cubins.len(), "cubin"));
            cubins.push((own, bytes.into()));
        }
    }
    if cubins.iter().any(is_linked) {
        // Pieces are there beside what the linker made of them.
        cubins.retain(is_linked);
    }
    Ok(cubins)
}

/// Machine code that is to be linked, of images that have some, and PTX of the others; `None` where there is an image of neither.
pub(super) fn parts(images: &[&[u8]], name: &str, compute_capability: (u32, u32)) -> Option<Vec<ModulePart>> {
    let mut parts: Vec<ModulePart> = Vec::new();
    for image in images {
        let Ok(found) = fatbin::cubins(image, compute_capability) else {
            let found = fatbin::texts(image, compute_capability);
            if matches!(found, Err(ImageError::NoCode { .. })) && !parts.is_empty() && fatbin::is_linked(image) {
                // What the linker made of the pieces before it, and nothing for this GPU.
                continue;
            }
            for text in found.ok()? {
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
