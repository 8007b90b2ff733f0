//! Compares our text of machine code with a listing of NVIDIA's disassembler, for whoever adds encodings.
//!
//! usage: compare_listing ARCHITECTURE LISTING [MOST]
//!
//! A line of the listing has the two halves of a word in hexadecimal digits (the upper one first), how often the word occurs, the address of
//! the instruction, and the text, with tabs before the last three. Prints by name how many words are undecoded and how many have another
//! text, with MOST examples of each name.

#![expect(clippy::print_stdout, reason = "the result of an example is what it prints")]

use balar_isa::sass::{self, Word};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader};

/// What was found of a name.
#[derive(Default)]
struct Found {
    undecoded: u64,
    different: u64,
    examples: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let architecture: u32 = arguments.next().ok_or("which architecture?")?.parse()?;
    let listing = std::fs::File::open(arguments.next().ok_or("which listing?")?)?;
    let most: usize = arguments.next().map_or(Ok(3), |most| most.parse())?;
    let mut by_name: BTreeMap<String, Found> = BTreeMap::new();
    let (mut words, mut right) = (0, 0);
    for line in BufReader::new(listing).lines() {
        let line = line?;
        let mut columns = line.splitn(4, '\t');
        let mut column = || columns.next().ok_or_else(|| format!("too few columns: {line}"));
        let (upper, lower) = column()?.split_once(' ').ok_or("one half of a word")?;
        let word = u128::from(u64::from_str_radix(upper, 16)?) << 64 | u128::from(u64::from_str_radix(lower, 16)?);
        let count: u64 = column()?.parse()?;
        let address = u64::from_str_radix(column()?.trim_start_matches("0x"), 16)?;
        let expected = normal(column()?);
        words += count;
        let name = expected.split(' ').find(|part| !part.starts_with('@')).unwrap_or_default();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        let decoded = sass::decode(Word(word), address, architecture);
        let ours = decoded.as_ref().map(|instruction| normal(&instruction.to_string()));
        match ours {
            Ok(text) if text == expected => right += count,
            Ok(text) => {
                let found = by_name.entry(name).or_default();
                found.different += count;
                note(found, most, format!("{upper} {lower}  {expected}\n{:37}{text}", ""));
            }
            Err(_) => {
                let found = by_name.entry(name).or_default();
                found.undecoded += count;
                note(found, most, format!("{upper} {lower}  {expected}"));
            }
        }
    }
    for (name, Found { undecoded, different, examples }) in by_name {
        println!("{name}: {undecoded} undecoded, {different} different");
        examples.iter().for_each(|example| println!("  {example}"));
    }
    println!("{right} of {words} words ({:.3} %)", 100.0 * right as f64 / words as f64);
    Ok(())
}

fn note(found: &mut Found, most: usize, example: String) {
    if found.examples.len() < most {
        found.examples.push(example);
    }
}

/// Without the spaces that disassemblers differ in.
fn normal(text: &str) -> String {
    text.replace("] [", "][").replace(" ,", ",").trim().to_owned()
}
