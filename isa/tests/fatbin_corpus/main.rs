//! The images of `isa/fuzz`, made by a compiler, and broken ones: a whole image has its kernel, and nothing panics.

mod check;

use balar_isa::module::PtxModule;
use check::{MAXIMUM_BYTES, read_image};
use std::fs;
use std::path::PathBuf;

/// The images of the corpus, by name.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/read_fatbin"));
    let mut images: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.display().to_string(), fs::read(&path).expect("an image")))
        .collect();
    images.sort();
    assert!(images.len() >= 5, "{} images", images.len());
    images
}

#[test]
fn a_compilers_images_have_their_kernel() {
    for (name, image) in corpus() {
        assert!(image.len() <= MAXIMUM_BYTES, "{name}");
        let texts = read_image(&image);
        assert_eq!(texts.is_none(), name.contains("code_alone"), "{name}");
        for text in texts.into_iter().flatten() {
            let module = PtxModule::parse(&name, &text).expect("a compiler's PTX");
            assert_eq!(module.kernels().collect::<Vec<_>>(), ["scale"], "{name}");
            let lowest = if name.contains("plain") { 80 } else { 75 };
            assert_eq!(module.architecture(), lowest, "{name}");
            assert!(module.program("scale", &[]).is_ok(), "{name}");
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    for (name, image) in corpus() {
        for end in 1..image.len() {
            // Before the magic number is whole, it is a text of strange letters.
            assert!(end < 4 || read_image(&image[..end]).is_none(), "{name}, {end} bytes");
        }
    }
}

#[test]
fn bits_may_change() {
    for (_, image) in corpus() {
        for bit in (0..image.len() * 8).step_by(5) {
            let mut image = image.clone();
            image[bit / 8] ^= 1 << (bit % 8);
            read_image(&image);
        }
    }
}
