//! Code as programs bring it, and as modules: PTX or machine code.

use super::assembler::CodeChoice;
use super::images::{NamedCubin, NamedText, cubins, parts, texts};
use super::loader::LoadError;
use balar_isa::fatbin::{self, ImageError};
use balar_isa::machine::{MachineError, MachineModule, PlacedVariable, Placement};
use balar_isa::module::{PtxModule, VariableKind};
use balar_isa::program::{ParameterSlot, Program};
use balar_isa::ptx::{self, PtxErrors};
use std::path::Path;
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

/// Code of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleSource {
    /// PTX texts, which are linked with each other.
    Ptx(Vec<NamedText>),
    /// Machine code.
    Machine {
        /// Cubins. Those that are relocatable are linked with each other.
        cubins: Vec<NamedCubin>,
        /// Where they come from, where the program has brought PTX.
        origin: Option<PtxOrigin>,
    },
}

/// Where machine code comes from that a program has brought as PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxOrigin {
    /// What has assembled it: "ptxas 12.9".
    pub assembler: Arc<str>,
    /// The architecture that the PTX is for.
    pub target: u32,
}

impl ModuleSource {
    /// The code of images (fatbin containers, PTX, cubins) that a GPU runs, named after the image.
    ///
    /// # Errors
    ///
    /// The first image that has none.
    pub fn of_images(
        images: &[&[u8]],
        name: &str,
        compute_capability: (u32, u32),
        choice: &CodeChoice,
    ) -> Result<ModuleSource, LoadError> {
        let without_code = |error| LoadError::Image { name: name.to_owned(), error };
        let texts = || texts(images, name, compute_capability).map_err(without_code);
        if choice.isa == IsaChoice::Ptx {
            return texts().map(ModuleSource::Ptx);
        }
        let missing = match cubins(images, name, compute_capability) {
            Ok(cubins) => return Ok(ModuleSource::machine(cubins)),
            Err(error) => without_code(error),
        };
        let has_assembler = choice.assembler_for(compute_capability).is_some();
        let texts = texts();
        match (texts, parts(images, name, compute_capability)) {
            (texts, Some(parts)) if has_assembler => choice.of_parts(parts, texts.ok(), compute_capability),
            (Ok(_), _) if choice.isa == IsaChoice::Sass && !has_assembler => Err(no_assembler(missing)),
            (Ok(texts), _) => choice.of_texts(texts, compute_capability),
            (Err(_), Some(_)) => Err(no_assembler(missing)),
            (Err(error), None) if choice.isa == IsaChoice::Auto => Err(error),
            (Err(_), None) => Err(missing),
        }
    }

    /// Cubins that a program has brought.
    pub fn machine(cubins: Vec<NamedCubin>) -> ModuleSource {
        ModuleSource::Machine { cubins, origin: None }
    }

    /// The architecture that its PTX is for, of machine code that was assembled.
    pub(crate) fn target(&self) -> Option<u32> {
        match self {
            ModuleSource::Machine { origin, .. } => origin.as_ref().map(|origin| origin.target),
            ModuleSource::Ptx(_) => None,
        }
    }

    /// The names of its parts, for messages.
    pub fn names(&self) -> String {
        let names: Vec<&str> = match self {
            ModuleSource::Ptx(texts) => texts.iter().map(|(name, _)| name.as_str()).collect(),
            ModuleSource::Machine { cubins, .. } => cubins.iter().map(|(name, _)| name.as_str()).collect(),
        };
        names.join(", ")
    }
}

/// Whether a file is a cubin, by its name: whatever is in one that is called otherwise is taken for PTX.
pub fn is_cubin(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "cubin")
}

/// Whether a GPU of a compute capability runs a cubin.
pub fn runs_on(cubin: &[u8], compute_capability: (u32, u32)) -> bool {
    fatbin::cubins(cubin, compute_capability).is_ok_and(|found| !found.is_empty())
}

/// Why machine code is not found, where PTX would do if somebody assembled it.
fn no_assembler(missing: LoadError) -> LoadError {
    match missing {
        LoadError::Image { name, error: error @ ImageError::NoMachineCode { .. } } => {
            LoadError::NoAssembler { name, found: error.to_string() }
        }
        missing => missing,
    }
}

/// Code that was read. Its placements get addresses before its kernels are decoded.
#[derive(Debug)]
pub(crate) enum CodeModule {
    Ptx(PtxModule),
    Machine(MachineModule),
}

impl CodeModule {
    /// Reads and links code.
    pub fn read(source: &ModuleSource) -> Result<CodeModule, LoadError> {
        match source {
            ModuleSource::Ptx(texts) => {
                let trees: Result<Vec<_>, PtxErrors> =
                    texts.iter().map(|(file, text)| ptx::parse(file, text)).collect();
                let module = trees.and_then(PtxModule::link).map_err(Box::new)?;
                Ok(CodeModule::Ptx(module))
            }
            ModuleSource::Machine { cubins, .. } => {
                let module = MachineModule::read(cubins.iter().map(|(_, bytes)| Arc::clone(bytes)));
                let module = module.map_err(|error| LoadError::Machine { name: source.names(), error })?;
                Ok(CodeModule::Machine(module))
            }
        }
    }

    /// Checks that a GPU can be given the code. Machine code was chosen for it.
    pub fn check_target(&self, compute_capability: (u32, u32)) -> Result<(), LoadError> {
        match self {
            CodeModule::Ptx(module) => {
                module.check_target(compute_capability).map_err(|errors| LoadError::Target(Box::new(errors)))
            }
            CodeModule::Machine(_) => Ok(()),
        }
    }

    /// What needs a place: of PTX each variable, of machine code whole sections.
    pub fn placements(&self) -> Vec<Placement> {
        match self {
            CodeModule::Ptx(module) => {
                let variables = module.variables().iter().cloned();
                let place = |it: balar_isa::module::ModuleVariable| Placement {
                    name: it.name,
                    kind: it.kind,
                    bytes: it.bytes,
                    alignment: it.alignment,
                };
                variables.map(place).collect()
            }
            CodeModule::Machine(module) => module.placements().to_vec(),
        }
    }

    /// Whether a placement is not memory but the number of a reference: in machine code its slots have 32 bits.
    pub fn is_number(&self, placement: &Placement) -> bool {
        let is_reference =
            matches!(placement.kind, VariableKind::Texture | VariableKind::Sampler | VariableKind::Surface);
        is_reference && matches!(self, CodeModule::Machine(_))
    }

    /// Its variables, in their placements.
    pub fn variables(&self) -> Vec<PlacedVariable> {
        match self {
            CodeModule::Ptx(module) => {
                let variables = module.variables().iter().enumerate();
                let place = |(placement, it): (usize, &balar_isa::module::ModuleVariable)| PlacedVariable {
                    name: it.name.clone(),
                    kind: it.kind,
                    placement,
                    offset: 0,
                    bytes: it.bytes,
                };
                variables.map(place).collect()
            }
            CodeModule::Machine(module) => module.variables().to_vec(),
        }
    }

    /// The bytes of a placement, where not all are zero; `addresses[i]` is the address or number of `placements()[i]`.
    pub fn initial_value(&self, placement: usize, addresses: &[u64]) -> Option<Vec<u8>> {
        match self {
            CodeModule::Ptx(module) => module.initial_value(placement, addresses),
            CodeModule::Machine(module) => module.initial_value(placement, addresses),
        }
    }

    /// Whether its kernels may allocate from the device heap.
    pub fn allocates(&self) -> bool {
        match self {
            CodeModule::Ptx(module) => module.allocates(),
            CodeModule::Machine(module) => module.allocates(),
        }
    }

    /// Whether its kernels may launch kernels.
    pub fn launches(&self) -> bool {
        match self {
            CodeModule::Ptx(module) => module.launches(),
            CodeModule::Machine(module) => module.launches(),
        }
    }

    /// The kernels that a kernel can launch: the addresses by which it names them, and their names.
    pub fn launched_by(&self, kernel: &str) -> Vec<(u64, Arc<str>)> {
        let launched = match self {
            CodeModule::Ptx(module) => module.launched_by(kernel),
            CodeModule::Machine(module) => module.launched_by(kernel),
        };
        launched.into_iter().map(|(address, name)| (address, name.into())).collect()
    }

    /// Names and parameters of its kernels, in order.
    pub fn kernels(&self) -> Vec<(Arc<str>, Vec<ParameterSlot>)> {
        fn named<'a>(
            names: impl Iterator<Item = &'a str>,
            parameters: impl Iterator<Item = Vec<ParameterSlot>>,
        ) -> Vec<(Arc<str>, Vec<ParameterSlot>)> {
            names.map(Arc::from).zip(parameters).collect()
        }
        match self {
            CodeModule::Ptx(module) => named(module.kernels(), module.kernel_parameters()),
            CodeModule::Machine(module) => named(module.kernels(), module.kernel_parameters()),
        }
    }

    /// The architectures of a kernel's PTX and of the machine code that runs on a GPU: 70.
    pub fn versions(&self, kernel: &str, (major, minor): (u32, u32)) -> (u32, u32) {
        match self {
            CodeModule::Ptx(module) => (module.architecture_of(kernel), major * 10 + minor),
            CodeModule::Machine(module) => {
                let (binary, ptx) = module.architectures_of(kernel);
                (ptx, binary)
            }
        }
    }

    /// The architecture of PTX that is for a later member of the GPU's generation.
    pub fn later_architecture(&self, (major, minor): (u32, u32)) -> Option<u32> {
        match self {
            CodeModule::Ptx(module) => Some(module.architecture()).filter(|&later| later > major * 10 + minor),
            CodeModule::Machine(_) => None,
        }
    }

    /// Decodes a kernel, or says why it cannot be launched.
    pub fn program(&self, kernel: &str, addresses: &[u64]) -> Result<Program, Arc<str>> {
        match self {
            CodeModule::Ptx(module) => module.program(kernel, addresses).map_err(|errors| refusal(&errors)),
            CodeModule::Machine(module) => {
                module.program(kernel, addresses).map_err(|error: MachineError| error.to_string().into())
            }
        }
    }
}

/// Why a kernel cannot be launched, in words.
fn refusal(errors: &PtxErrors) -> Arc<str> {
    let lines = errors.errors.iter().map(|error| format!("{error}, in `{}`", error.line_text.trim()));
    lines.collect::<Vec<_>>().join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::CudaError;

    const PTX: &[u8] = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { exit; }";
    const SM_70: &[u8] = include_bytes!("../../../isa/tests/cubins/vectoradd.sm_70.cubin");
    const SM_75: &[u8] = include_bytes!("../../../isa/tests/cubins/vectoradd.sm_75.cubin");

    /// A fatbin container of PTX and cubins.
    fn container(entries: &[&[u8]]) -> Vec<u8> {
        let mut body = Vec::new();
        for data in entries {
            let cubin = fatbin::cubin(data);
            let padded = data.len().next_multiple_of(8);
            body.extend(if cubin.is_some() { 2u16 } else { 1 }.to_le_bytes());
            body.extend(0x101u16.to_le_bytes());
            body.extend(64u32.to_le_bytes());
            body.extend((padded as u64).to_le_bytes());
            body.extend([0; 12]);
            body.extend(cubin.map_or(70, |cubin| cubin.architecture).to_le_bytes());
            body.extend([0; 32]);
            body.extend(*data);
            body.resize(body.len() + padded - data.len(), 0);
        }
        let mut container = fatbin::MAGIC.to_le_bytes().to_vec();
        container.extend([1u16, 16].iter().flat_map(|number| number.to_le_bytes()));
        container.extend((body.len() as u64).to_le_bytes());
        container.extend(body);
        container
    }

    /// The names of the parts that are chosen for a GPU, or why there are none.
    fn chosen(images: &[&[u8]], capability: (u32, u32), isa: IsaChoice) -> Result<String, String> {
        let source = ModuleSource::of_images(images, "app", capability, &isa.into());
        source.map(|source| source.names()).map_err(|error| error.to_string())
    }

    #[test]
    fn images_are_named_and_refused_as_cuda_does() {
        assert_eq!(chosen(&[PTX, PTX], (7, 0), IsaChoice::Ptx).as_deref(), Ok("app.ptx, app.1.ptx"));
        assert_eq!(chosen(&[SM_70, SM_75], (7, 5), IsaChoice::Sass).as_deref(), Ok("app.cubin, app.1.cubin"));
        let refused = |image: &[u8], isa: IsaChoice| {
            ModuleSource::of_images(&[image], "app", (7, 0), &isa.into()).expect_err("no code")
        };
        let error = refused(SM_75, IsaChoice::Ptx);
        assert_eq!(error.cuda_error(), CudaError::NoKernelImageForDevice);
        assert!(error.to_string().starts_with("app: cudaErrorNoKernelImageForDevice: no PTX in the image"), "{error}");
        let error = refused(&container(&[PTX, SM_75]), IsaChoice::Sass);
        assert_eq!(error.cuda_error(), CudaError::NoKernelImageForDevice);
        let found = "no machine code for sm_70 in the image, which has PTX for compute_70, machine code for sm_75";
        assert!(error.to_string().contains(found), "{error}");
        assert!(error.to_string().ends_with("; there is no assembler (ptxas) for the PTX"), "{error}");
        let error = refused(b"\xff", IsaChoice::Auto);
        assert_eq!(error.cuda_error(), CudaError::InvalidKernelImage);
    }

    #[test]
    fn machine_code_is_taken_where_all_images_have_some() {
        let both = container(&[PTX, SM_70]);
        let mut piece = SM_70.to_vec();
        piece[16] = 1;
        let unlinked = container(&[PTX, &piece]);
        for (images, choices) in [
            (&[&both[..]][..], ["ptx", "cubin", "cubin"]),
            (&[&both, PTX], ["ptx, app.1.ptx", "ptx, app.1.ptx", "-"]),
            (&[SM_70], ["-", "cubin", "cubin"]),
            (&[PTX], ["ptx", "ptx", "-"]),
            (&[&unlinked], ["ptx", "cubin", "cubin"]),
            (&[&unlinked, PTX], ["ptx, app.1.ptx", "ptx, app.1.ptx", "-"]),
            (&[&piece], ["-", "cubin", "cubin"]),
            (&[&piece, PTX], ["-", "-", "-"]),
            (&[&piece, &piece], ["-", "cubin, app.1.cubin", "cubin, app.1.cubin"]),
            // Code that was compiled in pieces, with what the linker made of them.
            (&[&unlinked, &unlinked, &container(&[SM_70])], ["ptx, app.1.ptx", "2.cubin", "2.cubin"]),
            (&[&unlinked, &container(&[])], ["ptx", "ptx", "-"]),
        ] {
            for (isa, expected) in [IsaChoice::Ptx, IsaChoice::Auto, IsaChoice::Sass].into_iter().zip(choices) {
                let found = chosen(images, (7, 0), isa).map_or("-".to_owned(), |names| names[4..].to_owned());
                assert_eq!(found, expected, "{isa:?}");
            }
        }
        assert_eq!(chosen(&[&both], (8, 0), IsaChoice::Auto).as_deref(), Ok("app.ptx"));
    }
}
