//! Which code of the images that a program brings is loaded: machine code where there is some or an assembler makes some, or PTX.

use super::assembler::{Assembled, Assembler, AssemblyError, CubinForm};
use super::error::LoadError;
use super::images::{ModulePart, NamedText, cubins, parts, texts};
use super::replacement::Replacement;
use super::source::{ModuleSource, PtxOrigin};
use balar_isa::fatbin::ImageError;
use balar_isa::sass;
use std::sync::Arc;

/// Which code of a module is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsaChoice {
    /// Machine code where each of the module's images has some that the GPU runs, or where its PTX can be assembled; otherwise PTX.
    #[default]
    Auto,
    /// PTX alone.
    Ptx,
    /// Machine code alone, assembled where there is PTX alone.
    Sass,
}

/// The choice of the code of modules, and the assembler for PTX where machine code is chosen and there is none.
#[derive(Clone, Debug, Default)]
pub struct CodeChoice {
    /// PTX or machine code.
    pub isa: IsaChoice,
    /// The assembler, where there is one.
    pub assembler: Option<Arc<dyn Assembler>>,
    /// Code for single kernels of programs in place of their own.
    pub replacements: Vec<Replacement>,
}

impl From<IsaChoice> for CodeChoice {
    fn from(isa: IsaChoice) -> CodeChoice {
        CodeChoice { isa, ..CodeChoice::default() }
    }
}

impl CodeChoice {
    /// The assembler for a GPU whose machine code the simulator runs, where machine code may run and there is an assembler.
    pub fn assembler_for(&self, (major, minor): (u32, u32)) -> Option<&dyn Assembler> {
        let is_known = sass::ARCHITECTURES.contains(&(major * 10 + minor));
        self.assembler.as_deref().filter(|_| is_known && self.isa != IsaChoice::Ptx)
    }

    /// The code of images (fatbin containers, PTX, cubins) that a GPU runs, named after the image.
    ///
    /// # Errors
    ///
    /// The first image that has none.
    pub fn of_images(
        &self,
        images: &[&[u8]],
        name: &str,
        compute_capability: (u32, u32),
    ) -> Result<ModuleSource, LoadError> {
        let without_code = |error| LoadError::Image { name: name.to_owned(), error };
        let texts = || texts(images, name, compute_capability).map_err(without_code);
        if self.isa == IsaChoice::Ptx {
            return texts().map(ModuleSource::Ptx);
        }
        let missing = match cubins(images, name, compute_capability) {
            Ok(cubins) => return Ok(ModuleSource::machine(cubins)),
            Err(error) => without_code(error),
        };
        let has_assembler = self.assembler_for(compute_capability).is_some();
        let texts = texts();
        match (texts, parts(images, name, compute_capability)) {
            (texts, Some(parts)) if has_assembler => self.of_parts(parts, texts.ok(), compute_capability),
            (Ok(_), _) if self.isa == IsaChoice::Sass && !has_assembler => Err(no_assembler(missing)),
            (Ok(texts), _) => self.of_texts(texts, compute_capability),
            (Err(_), Some(_)) => Err(no_assembler(missing)),
            (Err(error), None) if self.isa == IsaChoice::Auto => Err(error),
            (Err(_), None) => Err(missing),
        }
    }

    /// PTX texts as they run on a GPU: assembled where that is chosen and can be done, otherwise as they are.
    ///
    /// # Errors
    ///
    /// Machine code alone is chosen, and they cannot be assembled.
    pub fn of_texts(&self, texts: Vec<NamedText>, compute_capability: (u32, u32)) -> Result<ModuleSource, LoadError> {
        if self.assembler_for(compute_capability).is_some() || self.isa == IsaChoice::Sass {
            let parts = texts.iter().cloned().map(ModulePart::Text).collect();
            return self.of_parts(parts, Some(texts), compute_capability);
        }
        Ok(ModuleSource::Ptx(texts))
    }

    /// Parts of a module as they run on a GPU: the PTX is assembled, and all are linked. Where that cannot be done, and machine code alone is
    /// not chosen, the PTX texts of the whole module run, if there are such.
    ///
    /// # Errors
    ///
    /// The PTX cannot be assembled.
    pub(super) fn of_parts(
        &self,
        parts: Vec<ModulePart>,
        texts: Option<Vec<NamedText>>,
        compute_capability: (u32, u32),
    ) -> Result<ModuleSource, LoadError> {
        let names = parts.iter().map(|part| match part {
            ModulePart::Text((name, _)) | ModulePart::Cubin((name, _)) => name.as_str(),
        });
        let name = names.collect::<Vec<_>>().join(", ");
        let Some(assembler) = self.assembler_for(compute_capability) else {
            return Err(LoadError::NoAssembler { name, found: "PTX alone".to_owned() });
        };
        let error = match assembled(assembler, parts, compute_capability) {
            Ok(source) => return Ok(source),
            Err(error) => error,
        };
        let Some(texts) = texts.filter(|_| self.isa == IsaChoice::Auto) else {
            return Err(LoadError::Assembly { name, error });
        };
        let source = ModuleSource::Ptx(texts);
        assembler.warn(&format!("{}: runs as PTX: {error}", source.names()));
        Ok(source)
    }
}

/// Assembles the PTX of a module: one text as a whole, several parts to be linked with each other.
fn assembled(
    assembler: &dyn Assembler,
    parts: Vec<ModulePart>,
    (major, minor): (u32, u32),
) -> Result<ModuleSource, AssemblyError> {
    let form = if parts.len() == 1 { CubinForm::Linked } else { CubinForm::Relocatable };
    let mut origin: Option<PtxOrigin> = None;
    let mut cubins = Vec::new();
    for part in parts {
        let text = match part {
            ModulePart::Text(text) => text,
            ModulePart::Cubin(cubin) => {
                cubins.push(cubin);
                continue;
            }
        };
        let Assembled { cubin, by, target } = assembler.assemble(&text, major * 10 + minor, form)?;
        cubins.push((text.0, cubin));
        let target = origin.map_or(target, |origin| origin.target.max(target));
        origin = Some(PtxOrigin { assembler: by, target });
    }
    Ok(ModuleSource::Machine { cubins, origin })
}

/// The error that machine code is missing, for images whose PTX an assembler could turn into it.
fn no_assembler(missing: LoadError) -> LoadError {
    match missing {
        LoadError::Image { name, error: error @ ImageError::NoMachineCode { .. } } => {
            LoadError::NoAssembler { name, found: error.to_string() }
        }
        missing => missing,
    }
}

#[cfg(test)]
mod tests;
