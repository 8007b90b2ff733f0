//! The share of machine code that runs: of every word of a file's functions, whether it is a known instruction, and whether the simulator
//! executes it.
//!
//! usage: executed_share ARCHITECTURE FILE...
//!
//! A file is a cubin, a fatbin container, or any file with containers in it, such as a library; those of the architecture (90) are taken.
//! Prints the words, the known and the executed ones of each cubin with words that do not run, and of each file; then, of all files, the
//! forms that do not run, with how often they occur, why, and an example. Words are counted as they stand in the file, each by itself: nothing
//! is linked, and how often a word would be executed is not known.

#![expect(clippy::print_stdout, reason = "the result of an example is what it prints")]

use balar_isa::cubin::{Cubin, Function};
use balar_isa::fatbin::{EntryKind, MAGIC, containers};
use balar_isa::machine::{MachineCode, refused_words};
use balar_isa::program::Resources;
use std::collections::BTreeMap;
use std::error::Error;
use std::ops::AddAssign;

/// How many words there are, of which this many are known, and this many run.
#[derive(Clone, Copy, Default)]
struct Share {
    words: u64,
    decoded: u64,
    executed: u64,
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Share) {
        self.words += other.words;
        self.decoded += other.decoded;
        self.executed += other.executed;
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Share { words, decoded, executed } = *self;
        let percent = |part: u64| if words == 0 { 100.0 } else { 100.0 * part as f64 / words as f64 };
        write!(formatter, "{words} words, {:.3} % known, {:.3} % executed", percent(decoded), percent(executed))
    }
}

/// Forms that do not run, by name and reason: how often they occur, and an example.
type Refused = BTreeMap<(String, String), (u64, String)>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let architecture: u32 = arguments.next().ok_or("which architecture?")?.parse()?;
    let mut refused = Refused::new();
    let (mut functions, mut whole_functions) = (0, 0);
    for file in arguments {
        let bytes = std::fs::read(&file)?;
        let mut of_file = Share::default();
        let images = cubins(&bytes, architecture);
        for (number, image) in images.iter().enumerate() {
            let cubin = Cubin::read(image)?;
            let mut of_cubin = Share::default();
            for function in &cubin.functions {
                let share = share_of(&cubin, function, &mut refused);
                functions += 1;
                whole_functions += u64::from(share.executed == share.words);
                of_cubin += share;
            }
            if of_cubin.executed != of_cubin.words {
                println!("{file} cubin {number}: {of_cubin}");
            }
            of_file += of_cubin;
        }
        println!("{file}: {} cubins of sm_{architecture}, {of_file}", images.len());
    }
    println!("{whole_functions} of {functions} functions run as a whole");
    let mut forms: Vec<_> = refused.into_iter().collect();
    forms.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((name, why), (count, example)) in forms {
        println!("{count:8} {name}: {why}, as {example}");
    }
    Ok(())
}

/// The words of a function.
fn share_of(cubin: &Cubin<'_>, function: &Function<'_>, refused: &mut Refused) -> Share {
    let (words, _) = function.code.as_chunks::<16>();
    let code = MachineCode {
        name: function.name.to_owned(),
        architecture: cubin.architecture,
        words: words.iter().map(|bytes| u128::from_le_bytes(*bytes)).collect(),
        resources: Resources { registers_per_thread: function.registers, ..Resources::default() },
        // Any place does for words that are not run.
        bank_3: Some((1 << 32, 1 << 16)),
        ..MachineCode::default()
    };
    let mut share = Share { words: words.len() as u64, decoded: words.len() as u64, executed: words.len() as u64 };
    for word in refused_words(&code) {
        share.executed -= 1;
        share.decoded -= u64::from(word.instruction.is_none());
        let name = word.instruction.map_or_else(|| format!("{:03x}", word.word.code()), |known| known.name());
        let text = word.instruction.map_or_else(|| word.word.to_string(), |known| known.to_string());
        refused.entry((name, word.why)).or_insert_with(|| (0, format!("`{text}`"))).0 += 1;
    }
    share
}

/// The cubins for an architecture in a file. Containers begin at multiples of eight bytes.
fn cubins(bytes: &[u8], architecture: u32) -> Vec<Vec<u8>> {
    if Cubin::read(bytes).is_ok_and(|cubin| cubin.architecture == architecture) {
        return vec![bytes.to_vec()];
    }
    let mut cubins = Vec::new();
    let mut place = 0;
    while place + 16 <= bytes.len() {
        let number = |at: usize, width: usize| {
            bytes[place + at..][..width].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let end = number(6, 2).checked_add(number(8, 8)).and_then(|length| length.checked_add(place as u64));
        let end = end.filter(|end| number(0, 4) == u64::from(MAGIC) && *end <= bytes.len() as u64);
        let Some(Ok(found)) = end.map(|end| containers(&bytes[place..end as usize])) else {
            place += 8;
            continue;
        };
        let entries = found.iter().flat_map(|container| &container.entries);
        let wanted = entries.filter(|entry| entry.kind == EntryKind::Elf && entry.architecture == architecture);
        cubins.extend(wanted.filter_map(|entry| entry.data().ok()));
        place = end.map_or(bytes.len(), |end| (end as usize).next_multiple_of(8));
    }
    cubins
}
