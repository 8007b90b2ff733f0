//! Where cargo has built `libbalar_cudart.so`, for a crate that embeds it.
//!
//! `balar-cudart` is a shared library and a Rust library at once. Cargo builds both before it compiles a crate that depends on it, and
//! names the Rust library on the compiler's command line; the shared library lies beside it. A build script could not know this place:
//! it runs earlier, and the name of the file holds a hash where the sources come from git. A macro is expanded by that very compiler.

use proc_macro::{Literal, TokenStream, TokenTree};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// How the compiler is told of the Rust library.
const EXTERN: &str = "balar_cudart=";
/// What stands for the library where there is none: an empty file.
const NOTHING: &str = "/dev/null";

/// Expands to the directive of the assembler that includes the shared library, a string literal. Nothing is included where there is no
/// shared library: `cargo check` builds none, and neither does a target that knows no shared libraries.
#[proc_macro]
pub fn include_shared_library(_: TokenStream) -> TokenStream {
    let path = shared_library(std::env::args()).filter(|path| path.is_file());
    // The compiler does not know that it depends on the file: where only that has changed, the digest makes this a change of the text.
    let content = path.as_deref().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    let path = path.as_deref().and_then(Path::to_str).unwrap_or(NOTHING);
    TokenTree::from(Literal::string(&directive(path, digest(&content)))).into()
}

/// The shared library beside the Rust library that the arguments of a compiler name.
fn shared_library(arguments: impl Iterator<Item = String>) -> Option<PathBuf> {
    // As in `--extern balar_cudart=/folder/libbalar_cudart.rlib`, in one argument or in two, or with options before the name.
    let library = arguments.filter_map(|argument| {
        let (before, path) = argument.split_once(EXTERN)?;
        let is_whole_name = before.is_empty() || before.ends_with(['=', ':']);
        is_whole_name.then(|| PathBuf::from(path).with_extension("so"))
    });
    library.last()
}

fn digest(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(content);
    hasher.finish()
}

fn directive(path: &str, digest: u64) -> String {
    format!(".incbin \"{}\" /* {digest:016x} */", path.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_library_lies_beside_the_rust_library() {
        let find = |arguments: &[&str]| shared_library(arguments.iter().map(|&argument| argument.to_owned()));
        let expected = Some(PathBuf::from("/t/deps/libbalar_cudart-1f.so"));
        assert_eq!(find(&["rustc", "--extern", "balar_cudart=/t/deps/libbalar_cudart-1f.rlib"]), expected);
        assert_eq!(find(&["rustc", "--extern=balar_cudart=/t/deps/libbalar_cudart-1f.rlib"]), expected);
        assert_eq!(find(&["rustc", "--extern", "noprelude:balar_cudart=/t/deps/libbalar_cudart-1f.rlib"]), expected);
        assert_eq!(find(&["rustc", "--extern", "other_balar_cudart=/t/libother.rlib", "src/lib.rs"]), None);
    }

    #[test]
    fn quotes_do_not_end_the_path() {
        assert_eq!(directive(r#"/a "b"\c"#, 0x1f), r#".incbin "/a \"b\"\\c" /* 000000000000001f */"#);
    }

    #[test]
    fn another_library_is_another_text() {
        assert_ne!(directive("/a", digest(b"one")), directive("/a", digest(b"two")));
    }
}
