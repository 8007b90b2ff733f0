//! Mutates PTX texts and puts them through the parser and the decoder until the time is up: a fuzzer that needs no other tool.
//!
//! usage: mutate_ptx SECONDS SEED FILE...
//!
//! A text that makes it panic, or that takes longer than a second, is written to `crash-*.ptx` in the current folder.

#![expect(clippy::print_stdout, reason = "a command line")]
#![expect(clippy::disallowed_types, reason = "how long reading takes is what it tells")]

#[path = "../tests/ptx_corpus/check.rs"]
mod check;
#[path = "../tests/ptx_corpus/mutation.rs"]
mod mutation;

use check::{MAXIMUM_BYTES, Outcome, parse_and_decode};
use mutation::{Numbers, mutate};
use std::panic;
use std::time::{Duration, Instant};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
    let (Some(seconds), Some(seed)) = (number(), number()) else {
        println!("usage: mutate_ptx SECONDS SEED FILE...");
        return;
    };
    let read = |path: String| std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut texts: Vec<Vec<u8>> = arguments.map(read).filter(|text| text.len() <= MAXIMUM_BYTES).collect();
    if texts.is_empty() {
        println!("no text of at most {MAXIMUM_BYTES} bytes");
        return;
    }
    let originals = texts.len();
    let mut numbers = Numbers(seed);
    let (start, limit) = (Instant::now(), Duration::from_secs(seconds));
    let (mut rounds, mut parsed, mut found) = (0u64, 0u64, 0u32);
    while start.elapsed() < limit {
        let mut bytes = texts[numbers.below(texts.len())].clone();
        for _ in 0..=numbers.below(5) {
            let other = numbers.below(originals);
            mutate(&mut bytes, &texts[other], &mut numbers);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let begun = Instant::now();
        let outcome = panic::catch_unwind(|| parse_and_decode(&text));
        let slow = begun.elapsed() > Duration::from_secs(1);
        rounds += 1;
        if outcome.is_err() || slow {
            found += 1;
            let name = format!("crash-{seed}-{rounds}.ptx");
            println!("{name}: {}", if slow { "slow" } else { "panic" });
            if let Err(error) = std::fs::write(&name, &text) {
                println!("{name}: {error}");
            }
        }
        // A text that parses is a start for further mutations; the set stays small.
        if let Ok(Outcome::Parsed { .. }) = outcome {
            parsed += 1;
            if !slow && text.len() <= MAXIMUM_BYTES {
                if texts.len() < originals + 200 {
                    texts.push(text.into_bytes());
                } else {
                    let place = originals + numbers.below(200);
                    texts[place] = text.into_bytes();
                }
            }
        }
    }
    println!("{rounds} texts, {parsed} of them parsed, {found} findings");
}
