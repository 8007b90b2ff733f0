//! Text that kernels print.

use std::io::{Read, Result, Seek, Write};

/// Runs `action`, and gives what was written to the standard output meanwhile: the driver writes there what kernels print.
pub fn captured<T>(action: impl FnOnce() -> T) -> Result<(T, Vec<u8>)> {
    std::io::stdout().flush()?;
    let mut file = tempfile::tempfile()?;
    let outside = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::stdio::dup2_stdout(&file)?;
    let result = action();
    // SAFETY: no stream is named, which means all. The driver writes by the C library's.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    rustix::stdio::dup2_stdout(&outside)?;
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    Ok((result, text))
}
