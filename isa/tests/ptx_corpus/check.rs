//! Rules for any text: it parses or is refused, its kernels decode or are refused, and nothing panics.
//!
//! The fuzz target, the replay of the corpus and the loop of mutations share it.

use balar_isa::module::PtxModule;
use balar_isa::ptx::PtxErrors;
use balar_isa::ptx::error::MAXIMUM_ERRORS;

/// Longer texts are passed over: they only take longer.
pub const MAXIMUM_BYTES: usize = 1 << 16;

/// What came of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does not parse.
    Refused,
    /// It parses; so many of its kernels decode, and so many do not.
    Parsed { decoded: usize, refused: usize },
}

/// Parses a text and decodes all of its kernels.
pub fn parse_and_decode(text: &str) -> Outcome {
    let module = match PtxModule::parse("any.ptx", text) {
        Ok(module) => module,
        Err(errors) => {
            errors_lie_in(&errors, text);
            return Outcome::Refused;
        }
    };
    let addresses: Vec<u64> = (1..).map(|index| index << 32).take(module.variables().len()).collect();
    for (index, variable) in module.variables().iter().enumerate() {
        // Large ones are no mistake; their bytes are not looked at here.
        if variable.bytes < 1 << 20
            && let Some(bytes) = module.initial_value(index, &addresses)
        {
            assert_eq!(bytes.len() as u64, variable.bytes);
        }
    }
    let (mut decoded, mut refused) = (0, 0);
    for kernel in module.kernels() {
        match module.program(kernel, &addresses) {
            Ok(program) => {
                assert!(!program.is_empty());
                decoded += 1;
            }
            Err(errors) => {
                errors_lie_in(&errors, text);
                refused += 1;
            }
        }
    }
    Outcome::Parsed { decoded, refused }
}

fn errors_lie_in(errors: &PtxErrors, text: &str) {
    assert!(!errors.errors.is_empty() && errors.errors.len() <= MAXIMUM_ERRORS, "{} errors", errors.errors.len());
    for error in &errors.errors {
        let (start, end) = (error.span.start as usize, error.span.end as usize);
        assert!(start <= end && end <= text.len() && text.is_char_boundary(start), "{error:?}");
        assert!(!error.message.is_empty() && error.position.line >= 1, "{error:?}");
    }
}
