//! Options of compilations at run time (`CUjit_option`, `cudaJitOption`).

use super::arguments::{In, Out};
use balar_host::CudaError;
use std::ffi::c_void;

/// Options of compilation (`CUjit_option`) whose values are results.
const WALL_TIME: u32 = 2;
const INFORMATION_LOG: u32 = 3;
const INFORMATION_LOG_BYTES: u32 = 4;
const ERROR_LOG: u32 = 5;
const ERROR_LOG_BYTES: u32 = 6;

/// A buffer of the program for a text.
#[derive(Clone, Copy, Default)]
pub struct Log {
    address: usize,
    bytes: usize,
}

impl Log {
    /// Where the options of a compilation want errors to be told.
    ///
    /// # Safety
    ///
    /// `values` has as many entries as there are options, and the buffers are there when [`Log::write`] is called.
    pub unsafe fn of_errors(options: &[u32], values: *const *mut c_void) -> Log {
        let value = |wanted: u32| {
            let index = options.iter().position(|option| *option == wanted);
            // SAFETY: the caller's.
            index.map_or(0, |index| unsafe { values.add(index).read() as usize })
        };
        Log { address: value(ERROR_LOG), bytes: value(ERROR_LOG_BYTES) }
    }

    /// Writes as much of a text as there is room for, and gives its bytes.
    pub fn write(self, text: &str) -> usize {
        if self.address == 0 || self.bytes == 0 {
            return 0;
        }
        let length = text.len().min(self.bytes - 1);
        let buffer = self.address as *mut u8;
        // SAFETY: the program has given a buffer of so many bytes.
        unsafe {
            buffer.copy_from_nonoverlapping(text.as_ptr(), length);
            buffer.add(length).write(0);
        }
        length
    }
}

/// The text of an error in a log.
pub fn error_text(error: CudaError) -> String {
    format!("error   : {}\n", error.description())
}

/// Answers the options of a compilation, and gives back its `outcome`: its log of errors has the text of the outcome, and the compilation
/// takes no time of the host.
pub fn answer_options(
    options: In<u32>,
    values: Out<*mut c_void>,
    count: u32,
    outcome: impl FnOnce() -> Result<(), CudaError>,
) -> Result<(), CudaError> {
    let options = options.array(count as usize)?;
    if !options.is_empty() && values.is_null() {
        return Err(CudaError::InvalidValue);
    }
    let outcome = outcome();
    let values = values.pointer();
    let at = |wanted: u32| options.iter().position(|option| *option == wanted);
    let errors = outcome.err().map_or(String::new(), error_text);
    // SAFETY: `values` has as many entries as there are options. An entry is the value itself, or for a log the address of a buffer
    // whose size another entry has; the sizes become those of the logs.
    unsafe {
        for (log, bytes, text) in
            [(INFORMATION_LOG, INFORMATION_LOG_BYTES, ""), (ERROR_LOG, ERROR_LOG_BYTES, errors.as_str())]
        {
            if let (Some(log), Some(bytes)) = (at(log), at(bytes)) {
                let log = Log { address: values.add(log).read() as usize, bytes: values.add(bytes).read() as usize };
                values.add(bytes).write(log.write(text) as *mut c_void);
            }
        }
        if let Some(time) = at(WALL_TIME) {
            values.add(time).cast::<f32>().write_unaligned(0.0);
        }
    }
    outcome
}
