//! NVIDIA's assembler, where there is one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// ptxas as an environment variable names it: itself, or the folder that `tools/cuda-toolchain` has filled.
pub fn ptxas() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("BALAR_PTXAS").or_else(|| Some(variable("BALAR_CUDA_TOOLCHAIN")?.join("ptxas")))
}

/// The cubin of a text, optimised to a level.
///
/// # Errors
///
/// What the assembler says.
pub fn assemble(ptxas: &Path, text: &str, architecture: u32, level: u32) -> Result<Vec<u8>, String> {
    // Tests run at the same time.
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let stem = format!("random_kernels_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    let (source, output) = (folder.join(format!("{stem}.ptx")), folder.join(format!("{stem}.cubin")));
    std::fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch=sm_{architecture}")).arg(format!("-O{level}")).arg(&source).arg("-o").arg(&output);
    let result = command.output().map_err(|error| format!("{}: {error}", ptxas.display()))?;
    if !result.status.success() {
        let text = String::from_utf8_lossy(&result.stderr);
        return Err(format!("{} ({}): {text}", source.display(), result.status));
    }
    let code = std::fs::read(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    // Files that are left behind do no harm.
    let _ = std::fs::remove_file(&source);
    let _ = std::fs::remove_file(&output);
    Ok(code)
}
