//! Finding names: a word's meaning by its spelling, and the nearest right name of a wrong one.

use std::sync::LazyLock;

use super::modifier::Modifier;
use super::opcode::Opcode;
use super::types::ScalarType;

/// A fixed open-addressing table from spellings to meanings.
struct WordTable<T> {
    slots: Vec<Option<(&'static str, T)>>,
}

impl<T: Copy> WordTable<T> {
    fn new(words: impl Iterator<Item = (&'static str, T)> + Clone) -> Self {
        let size = (words.clone().count() * 4).next_power_of_two();
        let mut table = Self { slots: vec![None; size] };
        for (word, meaning) in words {
            let mut slot = table.first_slot(word);
            while table.slots[slot].is_some() {
                slot = (slot + 1) & (size - 1);
            }
            table.slots[slot] = Some((word, meaning));
        }
        table
    }

    fn first_slot(&self, word: &str) -> usize {
        // FNV-1a: short words, and the table is built from known ones.
        let mut hash = 0x811c_9dc5u32;
        for byte in word.bytes() {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
        (hash ^ (hash >> 15)) as usize & (self.slots.len() - 1)
    }

    fn find(&self, word: &str) -> Option<T> {
        let mut slot = self.first_slot(word);
        while let Some((known, meaning)) = self.slots[slot] {
            if known == word {
                return Some(meaning);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        None
    }
}

/// The meaning of a dotted word of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DottedWord {
    Type(ScalarType),
    Modifier(Modifier),
}

static OPCODES: LazyLock<WordTable<Opcode>> =
    LazyLock::new(|| WordTable::new(Opcode::ALL.iter().map(|opcode| (opcode.name(), *opcode))));

static DOTTED: LazyLock<WordTable<DottedWord>> = LazyLock::new(|| {
    let types = ScalarType::ALL.iter().map(|word| (word.name(), DottedWord::Type(*word)));
    let modifiers = Modifier::ALL.iter().map(|word| (word.name(), DottedWord::Modifier(*word)));
    WordTable::new(types.chain(modifiers))
});

/// The opcode of that name.
pub(crate) fn opcode(word: &str) -> Option<Opcode> {
    OPCODES.find(word)
}

/// The type or modifier of that name.
pub(crate) fn dotted(word: &str) -> Option<DottedWord> {
    DOTTED.find(word)
}

/// The nearest of some names by edit distance, where one is near enough to be meant.
pub(crate) fn nearest<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    // Long words are generated ones: nobody mistypes them.
    if wrong.len() > 64 {
        return None;
    }
    let limit = match wrong.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        if name.len().abs_diff(wrong.len()) > limit || name == wrong {
            continue;
        }
        let distance = edit_distance(wrong, name);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours between two byte strings.
fn edit_distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut before_last = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut row = last.clone();
    for i in 0..left.len() {
        row[0] = i + 1;
        for j in 0..right.len() {
            let replaced = last[j] + usize::from(left[i] != right[j]);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && left[i] == right[j - 1] && left[i - 1] == right[j] {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_means_one_thing() {
        for known in Opcode::ALL {
            assert_eq!(opcode(known.name()), Some(*known));
        }
        for known in ScalarType::ALL {
            assert_eq!(dotted(known.name()), Some(DottedWord::Type(*known)));
        }
        for known in Modifier::ALL {
            assert_eq!(dotted(known.name()), Some(DottedWord::Modifier(*known)));
        }
        assert_eq!(opcode("frobnicate"), None);
        assert_eq!(dotted("frobnicate"), None);
    }

    #[test]
    fn nearest_names() {
        for (wrong, expected) in
            [("fmaa", Some("fma")), ("mvo", Some("mov")), ("setpp", Some("setp")), ("completely_else", None)]
        {
            assert_eq!(nearest(wrong, Opcode::ALL.iter().map(|opcode| opcode.name())), expected, "{wrong}");
        }
    }
}
