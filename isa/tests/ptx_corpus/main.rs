//! The corpus of `isa/fuzz` and mutations of it go through the parser and the decoder: no panic, no hang.

mod check;
mod mutation;

use check::{MAXIMUM_BYTES, Outcome, parse_and_decode};
use mutation::{Numbers, mutate};
use std::fs;
use std::path::PathBuf;

/// The texts of the corpus, by name.
fn corpus() -> Vec<(String, String)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/parse_and_decode"));
    let mut texts: Vec<(String, String)> = fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).expect("a text")))
        .collect();
    texts.sort();
    assert!(texts.len() >= 8, "{} texts", texts.len());
    texts
}

#[test]
fn every_text_of_the_corpus_ends_and_all_but_the_broken_ones_parse() {
    for (name, text) in corpus() {
        assert!(text.len() <= MAXIMUM_BYTES, "{name}");
        let outcome = parse_and_decode(&text);
        assert_eq!(outcome == Outcome::Refused, name.contains("broken"), "{name}: {outcome:?}");
    }
}

#[test]
fn every_truncation_ends() {
    for (_, text) in corpus() {
        let step = (text.len() / 400).max(1);
        for end in (0..text.len()).step_by(step).filter(|end| text.is_char_boundary(*end)) {
            parse_and_decode(&text[..end]);
        }
    }
}

#[test]
fn every_byte_may_change() {
    for (number, (_, text)) in corpus().into_iter().enumerate() {
        let mut numbers = Numbers(number as u64);
        let step = (text.len() / 400).max(1);
        for place in (0..text.len()).step_by(step) {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = b" ;,{}[]()<>@!.%\"/0f\\:|+-"[numbers.below(24)];
            parse_and_decode(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn mutations_end() {
    let texts = corpus();
    let mut numbers = Numbers(2026);
    let mut parsed = 0;
    for round in 0..1500 {
        let mut bytes = texts[round % texts.len()].1.clone().into_bytes();
        for _ in 0..=numbers.below(4) {
            let other = numbers.below(texts.len());
            mutate(&mut bytes, texts[other].1.as_bytes(), &mut numbers);
        }
        parsed += usize::from(parse_and_decode(&String::from_utf8_lossy(&bytes)) != Outcome::Refused);
    }
    // Enough of them get past the parser for the decoder to see something.
    assert!(parsed > 50, "{parsed}");
}
