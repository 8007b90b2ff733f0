//! Building the programs of `tests/cuda` with the compilers that `tools/cuda-toolchain` sets up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A compiler with a version of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// nvcc 13 for sm_75, the oldest that it knows.
    Nvcc13,
    /// The same for sm_90a, with its PTX.
    Nvcc13Hopper,
    /// The same as users start it: the CUDA runtime is linked statically.
    Nvcc13Default,
    /// clang with CUDA 12.6 for sm_70.
    Clang12,
    /// clang with CUDA 11.8 for sm_70.
    Clang11,
}

/// The folder that `tools/cuda-toolchain` has filled.
#[derive(Debug)]
pub struct Toolchain {
    folder: PathBuf,
}

impl Toolchain {
    /// The folder that `BALAR_CUDA_TOOLCHAIN` names.
    pub fn from_environment() -> Option<Self> {
        let folder = std::env::var_os("BALAR_CUDA_TOOLCHAIN").filter(|value| !value.is_empty())?;
        Some(Self { folder: PathBuf::from(folder) })
    }

    /// Builds `tests/cuda/NAME.cu`, or all sources of the folder `tests/cuda/NAME` as separate units, and gives the
    /// executable. What an earlier run of the tests has built with the same command from the same text is used again.
    pub fn build(&self, compiler: Compiler, name: &str, options: &[&str], limit: Duration) -> Result<PathBuf, String> {
        self.build_from(compiler, name, sources(name)?, options, limit)
    }

    /// As [`Toolchain::build`], of these sources.
    fn build_from(
        &self,
        compiler: Compiler,
        name: &str,
        sources: Vec<PathBuf>,
        options: &[&str],
        limit: Duration,
    ) -> Result<PathBuf, String> {
        let variant = options.iter().flat_map(|option| option.chars()).filter(char::is_ascii_alphanumeric);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda_programs").join(format!("{compiler:?}"));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let executable = folder.join(format!("{name}{}", variant.collect::<String>()));
        let launches = matches!(name, "dynamic_parallelism" | "conditional_graphs");
        let mut command = self.command(compiler, launches || sources.len() > 1)?;
        command.args(options).args(&sources).arg("-o").arg(&executable);
        match name {
            _ if launches => drop(command.arg("-lcudadevrt")),
            "driver_api" => drop(command.arg("-lcuda")),
            "nvrtc" => {
                let library =
                    self.folder.join("libnvrtc.so").canonicalize().map_err(|error| format!("NVRTC: {error}"))?;
                let folder = library.parent().ok_or("NVRTC is in no folder")?;
                command.arg("-I").arg(folder.join("../include"));
                command.arg("-lcuda").arg("-L").arg(&self.folder).arg("-lnvrtc");
                command.args(["-Xlinker", "-rpath", "-Xlinker"]).arg(folder);
            }
            _ => {}
        }
        let recipe = recipe(&command, &sources)?;
        let recipe_path = executable.with_extension("recipe");
        if executable.exists() && fs::read_to_string(&recipe_path).is_ok_and(|old| old == recipe) {
            return Ok(executable);
        }
        let output = assert_cmd::Command::from_std(command).timeout(limit).output();
        let output = output.map_err(|error| format!("the compiler did not run: {error}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("does not build ({}):\n{text}", output.status));
        }
        fs::write(&recipe_path, recipe).map_err(|error| format!("{}: {error}", recipe_path.display()))?;
        Ok(executable)
    }

    /// Builds `tests/mpi/NAME.cu` with nvcc 13 and the MPI library.
    pub fn build_mpi(&self, name: &str, limit: Duration) -> Result<PathBuf, String> {
        let path = self.folder.join("mpi-options");
        let options = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let options: Vec<&str> = options.split_whitespace().collect();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("mpi").join(format!("{name}.cu"));
        self.build_from(Compiler::Nvcc13, name, vec![source], &options, limit)
    }

    /// Builds `tests/cuda_hopper/NAME.cu`.
    pub fn build_for_hopper(&self, name: &str, limit: Duration) -> Result<PathBuf, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda_hopper").join(format!("{name}.cu"));
        self.build_from(Compiler::Nvcc13Hopper, name, vec![source], &[], limit)
    }

    /// What starts the processes of an MPI program. It finds its parts from its own place, which is not that of the link.
    pub fn mpiexec(&self) -> PathBuf {
        let link = self.folder.join("mpiexec");
        link.canonicalize().unwrap_or(link)
    }

    /// The folder of the Python packages, with a Python that has them.
    pub fn python_packages(&self) -> PathBuf {
        self.folder.join("python-packages")
    }

    /// The assembler of CUDA 12.9, the last that knows sm_70.
    pub fn ptxas(&self) -> PathBuf {
        self.folder.join("ptxas")
    }

    /// The compiler with the options that all programs take.
    fn command(&self, compiler: Compiler, separate: bool) -> Result<Command, String> {
        let (program, cuda) = match compiler {
            Compiler::Nvcc13 | Compiler::Nvcc13Hopper | Compiler::Nvcc13Default => ("nvcc", None),
            Compiler::Clang12 => ("clang", Some("cuda-12.6")),
            Compiler::Clang11 => ("clang", Some("cuda-11.8")),
        };
        // nvcc finds its parts from its own place, which is not that of the link.
        let program = self.folder.join(program);
        let program = program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))?;
        let mut command = Command::new(program);
        command.args(["-std=c++17", "-O2"]).arg("-L").arg(self.folder.join("driver"));
        match cuda {
            None => {
                let target = match compiler {
                    Compiler::Nvcc13Hopper => "-gencode=arch=compute_90a,code=[sm_90a,compute_90a]",
                    _ => "-arch=sm_75",
                };
                command.args([target, "-Xcompiler", "-pthread"]);
                if compiler != Compiler::Nvcc13Default {
                    command.args(["-cudart", "shared"]);
                }
                if separate {
                    command.arg("-rdc=true");
                }
            }
            Some(cuda) => {
                let tree = self.folder.join(cuda);
                command.args(["--driver-mode=g++", "-pthread", "--cuda-gpu-arch=sm_70", "-Wno-unknown-cuda-version"]);
                command.arg(format!("--cuda-path={}", tree.display()));
                command.arg("-L").arg(tree.join("lib64")).args(["-Wl,--no-as-needed", "-lcudart", "-Wl,--as-needed"]);
            }
        }
        Ok(command)
    }
}

/// The sources of a program: one file, or those of a folder.
fn sources(name: &str) -> Result<Vec<PathBuf>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda");
    let single = folder.join(format!("{name}.cu"));
    if single.exists() {
        return Ok(vec![single]);
    }
    let folder = folder.join(name);
    let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut sources: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "cu"));
    sources.sort();
    Ok(sources)
}

/// All that an executable depends on: the command, and the text of the sources and of the headers beside them.
fn recipe(command: &Command, sources: &[PathBuf]) -> Result<String, String> {
    let mut recipe = format!("{command:?}\n");
    let headers = ["check.h", "separate/library.h"];
    let headers = headers.map(|header| Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda").join(header));
    for path in sources.iter().chain(&headers) {
        recipe += &fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(recipe)
}
