//! Rules for any bytes: they are an image with PTX or are refused, and nothing panics.
//!
//! The fuzz target and the replay of the corpus share it.

use balar_isa::fatbin::{MAGIC, containers, texts};

/// Longer images are passed over: they only take longer.
pub const MAXIMUM_BYTES: usize = 1 << 16;

/// Reads an image: every entry, and the choice for some GPUs. Gives the texts chosen for compute capability 7.0.
pub fn read_image(image: &[u8]) -> Option<Vec<String>> {
    if image.starts_with(&MAGIC.to_le_bytes())
        && let Ok(containers) = containers(image)
    {
        assert!(!containers.is_empty());
        for entry in containers.iter().flat_map(|container| &container.entries) {
            assert!(entry.offset < image.len() as u64);
            if let Err(error) = entry.data() {
                assert!(error.offset <= image.len() as u64 && !error.what.is_empty(), "{error}");
            }
        }
    }
    let [chosen, ..] = [(7, 0), (6, 1), (12, 1)].map(|capability| match texts(image, capability) {
        Ok(texts) => {
            assert!(!texts.is_empty() && texts.iter().all(|text| !text.text.contains('\0')));
            Some(texts.into_iter().map(|text| text.text).collect())
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    });
    chosen
}
