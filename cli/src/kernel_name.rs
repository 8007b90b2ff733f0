//! Names of kernels as people write them.

use cpp_demangle::{DemangleOptions, Symbol};

/// The name of a kernel as its source has it, without parameters: `scale<float>` of `_Z5scaleIfEvPT_i`.
pub fn readable_name(name: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = Symbol::new(name).ok().filter(|_| name.starts_with("_Z"));
    symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok()).unwrap_or_else(|| name.to_owned())
}

/// The name of a kernel with its parameters, as profilers write it: `scale<float>(float*, int)`.
pub fn full_name(name: &str) -> String {
    let symbol = Symbol::new(name).ok().filter(|_| name.starts_with("_Z"));
    symbol
        .and_then(|symbol| symbol.demangle_with_options(&DemangleOptions::new().no_return_type()).ok())
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_have_parameters() {
        assert_eq!(full_name("_Z9vectorAddPKfS0_Pfi"), "vectorAdd(float const*, float const*, float*, int)");
        assert_eq!(full_name("lud_internal"), "lud_internal");
    }

    #[test]
    fn names_are_those_of_the_source() {
        for (name, readable) in [
            ("_Z9vectorAddPKfS0_Pfi", "vectorAdd"),
            ("_Z5scaleIfEvPT_i", "scale<float>"),
            ("_ZN3lud8diagonalEPfii", "lud::diagonal"),
            ("vectorAdd", "vectorAdd"),
            ("_Znot a name", "_Znot a name"),
        ] {
            assert_eq!(readable_name(name), readable, "{name}");
        }
    }
}
