//! Any text goes through the parser and the decoder. Run: `cargo +nightly fuzz run parse_and_decode` in `isa/`.

#![no_main]

#[path = "../../tests/ptx_corpus/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if text.len() <= check::MAXIMUM_BYTES {
        check::parse_and_decode(text);
    }
});
