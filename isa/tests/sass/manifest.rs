//! The manifest of encodings: the encodings of the tables, and the forms that the lowering takes.

use super::{LISTINGS, listing};
use balar_isa::machine::{MachineCode, lower};
use balar_isa::sass::{self, Encoding, Word};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

const HEADER: &str = "\
# Encodings of the machine code, one a line: opcode and operand form (bits 0 to 11), name, architectures, and state:
# executed; executed but for some forms, with why these are refused; or decoded, where its text is known and nothing else. Forms that
# were tried: the words of our own kernels, each with every bit flipped.
# A code with several lines has an encoding for each.
# BALAR_UPDATE_SASS_MANIFEST=1 cargo test -p balar-isa --test sass writes it anew.
";

/// An instruction that does nothing, and one that ends the thread.
const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;
const EXIT: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d;
/// Words of a program with one instruction, so that branches of the samples stay in it.
const PROGRAM_WORDS: usize = 64;

/// Reasons that are of an operand's value rather than of a form, by what they begin with.
const OF_OPERANDS: [&str; 4] = [
    "there is no constant bank",
    "a constant bank that the module does not have",
    "constant bank",
    "a branch out of the code",
];

/// Fields that are not zero in words of many encodings: the place of a third register, predicates, the flag of uniform operands.
const USUAL_FIELDS: [u128; 5] = [0xff << 64, 7 << 81, 7 << 87, 1 << 91, 1 << 90];
/// Places of operands, cleared where one form becomes another.
const OPERAND_PLACES: [u128; 3] = [0, 0xffff_ffff << 32, 0xff_ffff_ffff << 32];
/// Words that stand for a form of which no listing has one: each is tried with every bit flipped.
const SAMPLES_OF_A_FORM: usize = 4;

/// Bits behind the code and before the control word.
const BITS: Range<u32> = 12..105;

/// A word of an architecture.
type Sample = (u32, Word);

/// A code and the place of its encoding among all encodings.
type Form = (u16, usize);

fn encodings() -> Vec<&'static Encoding> {
    sass::encodings().collect()
}

/// The form that a word is of.
fn form((architecture, word): Sample, encodings: &[&Encoding]) -> Option<Form> {
    let accepts = |it: &&Encoding| {
        it.architectures().contains(&architecture) && it.codes.contains(&word.code()) && it.accepts(word)
    };
    encodings.iter().position(accepts).map(|place| (word.code(), place))
}

/// Words of every form: those of the listings, and words that are made of other forms of the same encoding.
fn samples(encodings: &[&Encoding]) -> BTreeMap<Form, Vec<Sample>> {
    let mut samples: BTreeMap<Form, Vec<Sample>> = BTreeMap::new();
    for (architecture, text) in LISTINGS {
        for (word, _) in listing(text) {
            let sample = (architecture, word);
            samples.entry(form(sample, encodings).expect("it is decoded")).or_default().push(sample);
        }
    }
    let of_listings = samples.clone();
    for (place, encoding) in encodings.iter().enumerate() {
        for &code in encoding.codes {
            samples.entry((code, place)).or_insert_with(|| made((code, place), &of_listings, encodings));
        }
    }
    samples
}

/// Words of a form that no listing has.
fn made(wanted: Form, of_listings: &BTreeMap<Form, Vec<Sample>>, encodings: &[&Encoding]) -> Vec<Sample> {
    const NOTHING: Sample = (75, Word(7 << 12));
    // The first architecture of the simulated ones that has it.
    let has = |architecture: &&u32| encodings[wanted.1].architectures().contains(architecture);
    let architecture = sass::ARCHITECTURES.iter().find(has).copied().unwrap_or(NOTHING.0).max(NOTHING.0);
    let architecture = if has(&&architecture) { architecture } else { encodings[wanted.1].since };
    let related = of_listings
        .iter()
        .filter(|((_, place), _)| encodings[*place].opcode == encodings[wanted.1].opcode)
        .flat_map(|(_, words)| words);
    let related: Vec<u128> =
        related.chain([&NOTHING]).map(|(_, word)| word.0 & !0xfff | u128::from(wanted.0)).collect();
    // Those with most fields first.
    let fields = (0..1_u32 << USUAL_FIELDS.len()).rev().map(|chosen| {
        let chosen = USUAL_FIELDS.iter().enumerate().filter(move |(field, _)| chosen >> field & 1 == 1);
        chosen.fold(0, |set, (_, field)| set | field)
    });
    let fields: Vec<u128> = fields.collect();
    let tried = related.iter().flat_map(|word| OPERAND_PLACES.map(|place| word & !place));
    let tried: Vec<u128> = tried.flat_map(|word| fields.iter().map(move |set| word | set)).collect();
    // A form that another encoding of the code has as well differs from it in a bit.
    let flipped = tried.iter().flat_map(|word| BITS.map(move |bit| word ^ 1 << bit));
    let all = tried.iter().copied().chain(flipped).map(|word| (architecture, Word(word)));
    all.filter(|&sample| form(sample, encodings) == Some(wanted)).take(SAMPLES_OF_A_FORM).collect()
}

/// The word, and those of the same form that differ from it in a bit.
fn variants(sample: Sample, encodings: &[&Encoding]) -> impl Iterator<Item = Sample> {
    let (architecture, word) = sample;
    let wanted = form(sample, encodings);
    let flipped = BITS.map(move |bit| (architecture, Word(word.0 ^ 1 << bit)));
    [sample].into_iter().chain(flipped.filter(move |&other| form(other, encodings) == wanted))
}

/// Why a word cannot run; `None` where it can.
fn refusal((architecture, word): Sample) -> Option<String> {
    let mut words = vec![NOP; PROGRAM_WORDS];
    words[0] = word.0;
    words[PROGRAM_WORDS - 1] = EXIT;
    let code = MachineCode { name: "k".to_owned(), architecture, words, ..MachineCode::default() };
    let error = lower(&code).err()?;
    Some(error.what.split(", in `").next().unwrap_or_default().to_owned())
}

/// What is said of a form.
fn state(samples: &[Sample], encodings: &[&Encoding]) -> String {
    let mut refused = BTreeSet::new();
    let mut is_executed = false;
    for sample in samples.iter().flat_map(|&sample| variants(sample, encodings)) {
        match refusal(sample) {
            None => is_executed = true,
            Some(why) if OF_OPERANDS.iter().any(|begin| why.starts_with(begin)) => {}
            Some(why) => drop(refused.insert(why)),
        }
    }
    let reasons = refused.into_iter().collect::<Vec<_>>().join("; ");
    match (is_executed, reasons.is_empty()) {
        (true, true) => "executed".to_owned(),
        (true, false) => format!("executed, but not: {reasons}"),
        (false, _) => format!("decoded: {reasons}"),
    }
}

/// The manifest says what the tables have, and what the lowering takes of it.
#[test]
fn the_manifest_is_that_of_the_code() {
    let encodings = encodings();
    let mut rows: Vec<String> = Vec::new();
    let mut unknown = Vec::new();
    for ((code, place), samples) in samples(&encodings) {
        let encoding = encodings[place];
        let name = encoding.opcode.name();
        if samples.is_empty() {
            unknown.push(format!("{code:03x} {name} since sm_{}", encoding.since));
        }
        let architectures = match encoding.until {
            u32::MAX => format!("sm_{}", encoding.since),
            until => format!("sm_{} to sm_{until}", encoding.since),
        };
        rows.push(format!("{code:03x} {name:<10} {architectures} {}", state(&samples, &encodings)));
    }
    assert!(unknown.is_empty(), "no words of these forms are known: {}", unknown.join(", "));
    rows.sort();
    let text = format!("{HEADER}{}\n", rows.join("\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sass/manifest.txt");
    if std::env::var_os("BALAR_UPDATE_SASS_MANIFEST").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let committed = std::fs::read_to_string(&path).expect("the manifest");
    let differs = text.lines().zip(committed.lines()).find(|(code, committed)| code != committed);
    assert!(
        committed == text,
        "{} is not what the code says, see the comment that it begins with: {differs:?}",
        path.display()
    );
}

/// What the simulator is known to refuse is refused, and what all kernels have is not.
#[test]
fn states_of_words_are_those_of_the_lowering() {
    let encodings = encodings();
    let samples = samples(&encodings);
    let of = |name: &str, code: u16| {
        let mut forms =
            samples.iter().filter(|((it, place), _)| *it == code && encodings[*place].opcode.name() == name);
        let (_, words) = forms.next().unwrap_or_else(|| panic!("no {code:03x} {name}"));
        state(words, &encodings)
    };
    assert_eq!(of("EXIT", 0x94d), "executed");
    assert!(of("FSWZADD", 0x822).starts_with("decoded: "));
    assert_eq!(of("MOV", 0x202), "executed, but not: a move of some of the lanes");
    assert!(of("FFMA", 0x223).contains(".FMZ"));
    assert!(of("LDC", 0xb82).contains("an indexed constant bank"));
}
