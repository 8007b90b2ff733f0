//! What is disassembled: a file of the user, or the machine code of a workload.

use crate::options::disassemble::Architecture;
use crate::simulation::simulate::request_failure;
use balar_actors::topology::Topology;
use balar_experiments::RequestError;
use balar_isa::sass;
use balar_record::system::failure::Failure;
use balar_record::system::files;
use balar_workloads::Cubin;
use std::borrow::Cow;
use std::path::Path;

/// What is disassembled.
#[derive(Debug)]
pub struct CodeSource {
    /// The name of the file.
    pub name: String,
    /// A cubin, a fatbin, or a program that holds some.
    pub bytes: Cow<'static, [u8]>,
}

impl CodeSource {
    /// A file of the user.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    pub fn read(file: &Path) -> Result<CodeSource, Failure> {
        let name = file.display().to_string();
        let bytes = files::read_bytes(file);
        let bytes = bytes.map_err(|error| Failure::input(format_args!("cannot read {name}: {error}")))?;
        Ok(CodeSource { name, bytes: Cow::Owned(bytes) })
    }

    /// The machine code of a built-in workload: what the GPUs of a topology run, or all of it.
    ///
    /// # Errors
    ///
    /// Where there is no such workload, or it has no machine code for a GPU.
    pub fn of_workload(name: &str, topology: Option<&Topology>) -> Result<Vec<CodeSource>, Failure> {
        let workload = balar_workloads::find(name).map_err(Failure::input)?;
        let mut cubins: Vec<&Cubin> = Vec::new();
        let Some(topology) = topology else {
            return Ok(workload.cubins.iter().map(CodeSource::from).collect());
        };
        for gpu in topology.gpus() {
            let (major, minor) = gpu.compute_capability;
            let cubin = workload.cubin_for(major * 10 + minor).ok_or_else(|| {
                let (workload, gpu) = (workload.name, gpu.part.clone());
                request_failure(RequestError::NoMachineCode { workload, gpu, major, minor })
            })?;
            if !cubins.iter().any(|known| known.file == cubin.file) {
                cubins.push(cubin);
            }
        }
        Ok(cubins.into_iter().map(CodeSource::from).collect())
    }
}

impl From<&Cubin> for CodeSource {
    fn from(cubin: &Cubin) -> CodeSource {
        CodeSource { name: cubin.file.to_owned(), bytes: Cow::Borrowed(cubin.bytes) }
    }
}

/// Whether code for an architecture is to be read: of those that are known, the one that is asked for, or all.
pub fn is_wanted(architecture: u32, asked: Option<Architecture>) -> bool {
    sass::ARCHITECTURES.contains(&architecture) && asked.is_none_or(|asked| asked.0 == architecture)
}
