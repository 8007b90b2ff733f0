//! Names of kernels and functions in messages, as their source has them.

use cpp_demangle::{DemangleOptions, Symbol};

/// A message in which names of C++ are as the source has them, without parameters: `scale<float>` in place of `_Z5scaleIfEvPT_i`. What
/// cannot be read stays as it is.
pub fn readable_names(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find("_Z") {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !c.is_ascii_alphanumeric() && !"_$.".contains(c)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        text.push_str(before);
        let is_inside = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        match readable(name).filter(|_| !is_inside) {
            Some(readable) => text.push_str(&readable),
            None => text.push_str(name),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

fn readable(name: &str) -> Option<String> {
    let options = DemangleOptions::new().no_params().no_return_type();
    Symbol::new(name).ok()?.demangle_with_options(&options).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_messages_are_readable() {
        for (message, readable) in [
            (
                "trap by kernel _Z5scaleIfEvPT_i (launch 1), at k.cu:3",
                "trap by kernel scale<float> (launch 1), at k.cu:3",
            ),
            ("at $first$_Z5apartf+0x10: FADD", "at $first$apart+0x10: FADD"),
            ("_Z1kv and _Z1kv", "k and k"),
            // No names of C++.
            ("at my_Z1kv, _Zzz and vectorAdd", "at my_Z1kv, _Zzz and vectorAdd"),
            ("", ""),
        ] {
            assert_eq!(readable_names(message), readable);
        }
    }
}
