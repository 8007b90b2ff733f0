//! Any bytes go through the reader of device code. Run: `cargo +nightly fuzz run read_fatbin` in `isa/`.

#![no_main]

#[path = "../../tests/fatbin_corpus/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|image: &[u8]| {
    if image.len() <= check::MAXIMUM_BYTES {
        check::read_image(image);
    }
});
