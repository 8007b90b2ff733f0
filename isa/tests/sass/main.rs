//! Machine code against listings: words of our own kernels, as ptxas 12.9 (sm_70) and 13.5 (sm_75) assembled them, with the text that the
//! disassembler of CUDA 12.8 prints for each. Every code, name and modifier of those kernels is there once, and some further ones of
//! NVIDIA's libraries: loads that make zeros under a predicate (CUDA 12.4's text), `F2FP` (its text for sm_80). For sm_80 and sm_90: one
//! word of each code and name of our kernels, Triton's, those of PTX's features, and NVIDIA's libraries, with the text of CUDA 13.5.

mod liveness;
mod manifest;
mod uses;

use balar_isa::sass::{self, Word};
use proptest::prelude::*;

const SM_70: &str = include_str!("sm_70.txt");
const SM_75: &str = include_str!("sm_75.txt");
/// The listings, by architecture.
const LISTINGS: [(u32, &str); 5] = [
    (70, SM_70),
    (75, SM_75),
    (80, include_str!("sm_80.txt")),
    (89, include_str!("sm_89.txt")),
    (90, include_str!("sm_90.txt")),
];

/// The words of a listing with their texts.
fn listing(text: &str) -> impl Iterator<Item = (Word, &str)> {
    text.lines().map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut half = || u64::from_str_radix(parts.next().expect("a half"), 16).expect("hexadecimal digits");
        let word = u128::from(half()) << 64 | u128::from(half());
        (Word(word), parts.next().expect("a text").trim_start())
    })
}

#[test]
fn words_have_the_texts_of_the_listings() {
    for (architecture, text) in LISTINGS {
        let mut wrong = Vec::new();
        for (word, expected) in listing(text) {
            match sass::decode(word, 0, architecture) {
                Ok(instruction) if normal(&instruction.to_string()) == expected => {}
                Ok(instruction) => wrong.push(format!("{word}: {instruction}, expected {expected}")),
                Err(error) => wrong.push(format!("{error}, expected {expected}")),
            }
        }
        assert!(wrong.is_empty(), "sm_{architecture}: {} wrong\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// Without the spaces that disassemblers leave behind an infinity and a negative zero.
fn normal(text: &str) -> String {
    text.replace(" ,", ",").trim_end().to_owned()
}

/// What sm_75 has first is no instruction of sm_70.
#[test]
fn turing_has_more_than_volta() {
    let names = ["UIADD3", "ULDC", "S2UR", "IMMA", "LDSM", "I2I"];
    let of_turing = |text: &str| names.iter().any(|name| text.starts_with(name));
    let (mut found, mut shared) = (0, 0);
    for (word, text) in listing(SM_75) {
        let is_volta = sass::decode(word, 0, 70).is_ok();
        assert!(!(is_volta && of_turing(text)), "{text}");
        found += usize::from(of_turing(text));
        shared += usize::from(is_volta);
    }
    assert!(found > 30 && shared > 900, "{found} of Turing, {shared} that Volta has too");
}

/// Every bit belongs to something: a word with one more bit is another instruction, or none.
#[test]
fn no_bit_is_overlooked() {
    let mut silent = Vec::new();
    for (word, text) in listing(SM_70) {
        for bit in (16..105).filter(|bit| (word.0 >> bit) & 1 == 0) {
            let Ok(changed) = sass::decode(Word(word.0 | 1 << bit), 0, 70) else { continue };
            if normal(&changed.to_string()) == text && !is_silent(text, bit) {
                silent.push(format!("bit {bit} says nothing in {text}"));
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// The text of an immediate that is not a number does not say which one it is.
fn is_silent(text: &str, bit: u32) -> bool {
    text.ends_with("NAN") && (32..64).contains(&bit)
}

proptest! {
    #[test]
    fn no_word_is_a_panic(upper in any::<u64>(), lower in any::<u64>(), architecture in 60_u32..100) {
        let word = Word(u128::from(upper) << 64 | u128::from(lower));
        if let Ok(instruction) = sass::decode(word, 0x10, architecture) {
            prop_assert!(!instruction.to_string().is_empty());
        }
    }

    /// Words that are nearly instructions get further than random ones.
    #[test]
    fn no_changed_instruction_is_a_panic(index in any::<prop::sample::Index>(), bits in any::<u128>(), mask in any::<u128>()) {
        let words: Vec<Word> = listing(SM_75).map(|(word, _)| word).collect();
        let word = Word(words[index.index(words.len())].0 ^ bits & mask & !0xfff);
        if let Ok(instruction) = sass::decode(word, 0, 75) {
            prop_assert!(!instruction.to_string().is_empty());
        }
    }
}
