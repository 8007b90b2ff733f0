//! Machine code that an assembler outside the simulator makes of PTX.

use super::images::{ModulePart, NamedText};
use super::loader::LoadError;
use super::module::{IsaChoice, ModuleSource, PtxOrigin};
use balar_isa::sass;
use std::fmt::Debug;
use std::sync::Arc;

/// Makes machine code of PTX texts. The driver starts no process and reads no file: whoever makes a driver brings the assembler.
pub trait Assembler: Debug + Send + Sync {
    /// The cubin of one PTX text, for an architecture: 70. The same text gives the same cubin of a form.
    ///
    /// # Errors
    ///
    /// The text is for a later generation of GPUs, or the assembler refuses it or does not run.
    fn assemble(&self, text: &NamedText, architecture: u32, form: CubinForm) -> Result<Assembled, AssemblyError>;

    /// Tells the user that PTX runs where machine code was preferred, and why; the same words once.
    fn warn(&self, words: &str);
}

/// Whether a cubin is a whole module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubinForm {
    /// It is: it needs no linking.
    Linked,
    /// It is to be linked with others.
    Relocatable,
}

/// What an assembler has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The cubin, in the form that was asked for.
    pub cubin: Arc<[u8]>,
    /// The assembler and its version: "ptxas 12.9".
    pub by: Arc<str>,
    /// The architecture that the text is for, which may be a later member of the GPU's generation: programs ask for it.
    pub target: u32,
}

/// Why an assembler has made nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyError {
    /// The text is for a later generation of GPUs.
    #[error("PTX for compute_{target} on a GPU of the generation of sm_{architecture}")]
    Generation {
        /// What the text is for: 80.
        target: u32,
        /// What it was to be assembled for: 70.
        architecture: u32,
    },
    /// The assembler does not run, or does not know the architecture, in words.
    #[error("{0}")]
    Unavailable(Arc<str>),
    /// What the assembler says of the text.
    #[error("{0}")]
    Refused(Arc<str>),
}

/// Which code of modules is loaded, and what assembles PTX where machine code is chosen and there is none.
#[derive(Clone, Debug, Default)]
pub struct CodeChoice {
    /// PTX or machine code.
    pub isa: IsaChoice,
    /// The assembler, where there is one.
    pub assembler: Option<Arc<dyn Assembler>>,
}

impl From<IsaChoice> for CodeChoice {
    fn from(isa: IsaChoice) -> CodeChoice {
        CodeChoice { isa, assembler: None }
    }
}

impl CodeChoice {
    /// The assembler for a GPU whose machine code the simulator runs, where machine code may run and there is an assembler.
    pub fn assembler_for(&self, (major, minor): (u32, u32)) -> Option<&dyn Assembler> {
        let is_known = sass::ARCHITECTURES.contains(&(major * 10 + minor));
        self.assembler.as_deref().filter(|_| is_known && self.isa != IsaChoice::Ptx)
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

/// Assembles what is PTX of a module: one text as a whole, several parts to be linked with each other.
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

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::CudaError;
    use std::sync::Mutex;

    const PTX: &[u8] = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { exit; }";
    const CUBIN: &[u8] = include_bytes!("../../../isa/tests/cubins/vectoradd.sm_70.cubin");

    /// Makes the same cubin of each text, but of those with a mistake.
    #[derive(Debug, Default)]
    struct Fake {
        warned: Mutex<Vec<String>>,
    }

    impl Assembler for Fake {
        fn assemble(&self, text: &NamedText, architecture: u32, form: CubinForm) -> Result<Assembled, AssemblyError> {
            assert_eq!(architecture, 70);
            if text.1.contains("mistake") {
                return Err(AssemblyError::Refused("a mistake".into()));
            }
            if text.1.contains("sm_80") {
                return Err(AssemblyError::Generation { target: 80, architecture });
            }
            let mut cubin = CUBIN.to_vec();
            cubin[16] = if form == CubinForm::Relocatable { 1 } else { 2 };
            Ok(Assembled { cubin: cubin.into(), by: "ptxas 12.9".into(), target: 70 })
        }

        fn warn(&self, words: &str) {
            self.warned.lock().expect("no panic").push(words.to_owned());
        }
    }

    /// What is chosen, or the error that the program gets; and what the user is told.
    fn chosen(
        images: &[&[u8]],
        capability: (u32, u32),
        isa: IsaChoice,
    ) -> (Result<&'static str, CudaError>, Vec<String>) {
        let fake = Arc::new(Fake::default());
        let choice = CodeChoice { isa, assembler: Some(Arc::clone(&fake) as Arc<dyn Assembler>) };
        let source = ModuleSource::of_images(images, "app", capability, &choice);
        let source = source.map_err(|error| error.cuda_error()).map(|source| match source {
            ModuleSource::Ptx(_) => "ptx",
            ModuleSource::Machine { origin: None, .. } => "sass",
            ModuleSource::Machine { origin: Some(origin), cubins } => {
                assert_eq!(&*origin.assembler, "ptxas 12.9");
                let are_linked = cubins.iter().all(|(_, bytes)| bytes[16] == 2);
                assert_eq!(are_linked, cubins.len() == 1);
                if are_linked { "assembled" } else { "parts" }
            }
        });
        let warned = fake.warned.lock().expect("no panic").clone();
        (source, warned)
    }

    #[test]
    fn ptx_is_assembled_where_there_is_no_machine_code() {
        let mistake = &b"mistake"[..];
        let later = &b".target sm_80"[..];
        let mut piece = CUBIN.to_vec();
        piece[16] = 1;
        let no_image = Err(CudaError::NoKernelImageForDevice);
        for (images, [ptx, auto, sass], warning) in [
            (&[PTX][..], [Ok("ptx"), Ok("assembled"), Ok("assembled")], None),
            (&[CUBIN], [no_image, Ok("sass"), Ok("sass")], None),
            (&[PTX, PTX], [Ok("ptx"), Ok("parts"), Ok("parts")], None),
            (&[mistake], [Ok("ptx"), Ok("ptx"), Err(CudaError::InvalidPtx)], Some("app.ptx: runs as PTX: a mistake")),
            (&[later], [Ok("ptx"), Ok("ptx"), no_image], Some("app.ptx: runs as PTX: PTX for compute_80")),
            // Pieces that are linked as they are loaded.
            (&[&piece], [no_image, Ok("sass"), Ok("sass")], None),
            (&[&piece, PTX], [no_image, Ok("parts"), Ok("parts")], None),
            (&[&piece, mistake], [no_image, Err(CudaError::InvalidPtx), Err(CudaError::InvalidPtx)], None),
            // What was linked is no piece.
            (&[CUBIN, PTX], [no_image, no_image, no_image], None),
        ] {
            assert_eq!(chosen(images, (7, 0), IsaChoice::Ptx), (ptx, Vec::new()));
            let (source, warned) = chosen(images, (7, 0), IsaChoice::Auto);
            assert_eq!(source, auto);
            assert_eq!(warned.len(), usize::from(warning.is_some()), "{warned:?}");
            assert!(warned.iter().all(|words| warning.is_some_and(|start| words.starts_with(start))), "{warned:?}");
            assert_eq!(chosen(images, (7, 0), IsaChoice::Sass), (sass, Vec::new()));
        }
        // Of GPUs whose machine code is not known, PTX runs.
        assert_eq!(chosen(&[PTX], (6, 0), IsaChoice::Auto), (Ok("ptx"), Vec::new()));
        assert_eq!(chosen(&[PTX], (6, 0), IsaChoice::Sass).0, no_image);
    }

    #[test]
    fn parts_that_cannot_be_assembled_run_as_the_texts_that_there_are() {
        let fake = Arc::new(Fake::default());
        let text = |words: &str| ("k.ptx".to_owned(), Arc::from(words));
        let piece = || ModulePart::Cubin(("piece.cubin".to_owned(), CUBIN.into()));
        let run = |isa, words: &str, texts: Option<Vec<NamedText>>| {
            let choice = CodeChoice { isa, assembler: Some(Arc::clone(&fake) as Arc<dyn Assembler>) };
            choice.of_parts(vec![piece(), ModulePart::Text(text(words))], texts, (7, 0))
        };
        let Ok(ModuleSource::Machine { cubins, origin }) = run(IsaChoice::Auto, "text", None) else { panic!("parts") };
        assert_eq!(cubins.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["piece.cubin", "k.ptx"]);
        assert_eq!(origin, Some(PtxOrigin { assembler: "ptxas 12.9".into(), target: 70 }));
        let texts = vec![text("of the piece"), text("mistake")];
        let source = run(IsaChoice::Auto, "mistake", Some(texts.clone())).expect("all have PTX");
        assert_eq!(source, ModuleSource::Ptx(texts.clone()));
        assert_eq!(*fake.warned.lock().expect("no panic"), ["k.ptx, k.ptx: runs as PTX: a mistake"]);
        for error in [run(IsaChoice::Sass, "mistake", Some(texts)), run(IsaChoice::Auto, "mistake", None)] {
            assert_eq!(error.expect_err("a mistake").to_string(), "piece.cubin, k.ptx: a mistake");
        }
    }

    #[test]
    fn texts_that_are_loaded_from_the_start_need_an_assembler() {
        let text = || vec![("k.ptx".to_owned(), Arc::from("text"))];
        let choice = CodeChoice::from(IsaChoice::Sass);
        let error = choice.of_texts(text(), (7, 0)).expect_err("no assembler");
        assert!(error.to_string().starts_with("k.ptx: PTX alone; there is no assembler"), "{error}");
        let choice = CodeChoice::from(IsaChoice::Auto);
        assert_eq!(choice.of_texts(text(), (7, 0)).ok(), Some(ModuleSource::Ptx(text())));
    }
}
