//! The forms of a unit's name, and which names there are.

/// A unit's name, as its type and topologies have it and as files and modules do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitName {
    /// "WriteFilter".
    pub camel: String,
    /// "`write_filter`".
    pub snake: String,
}

/// Why a unit cannot have a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is no identifier.
    #[error(
        "`{0}` is no name of a unit: expected letters and digits with a letter first, as in WriteFilter or write_filter"
    )]
    NoIdentifier(String),
    /// It is longer than file systems and tables like.
    #[error("`{0}` is no name of a unit: it has more than {MOST} letters")]
    TooLong(String),
    /// It means something else to Rust, to Cargo or to the project.
    #[error("`{0}` is no name of a unit: it means something else to Rust, to Cargo or in the project")]
    Reserved(String),
    /// There is such a unit.
    #[error("there is a unit `{0}` already")]
    Taken(String),
}

/// Letters of a name, at most.
const MOST: usize = 60;

/// Names of modules and packages that mean something else: Rust's keywords, its own crates, folders of Cargo, and what the project uses.
const RESERVED: &str = "abstract alloc as async await become box break build const continue core crate deps do dyn else enum \
    examples extern false final fn for gen if impl in incremental let loop macro main match mod move mut \
    override priv proc_macro pub ref return ron self serde static std struct super test tests trait true try \
    type typeof unsafe unsized use virtual where while yield";

/// Types that the file of the unit uses.
const USED: &str = "Deserialize Frequency Interposer Io MemoryRequest Pace Serialize String UnitDefinition Vec";

impl UnitName {
    /// The forms of a name that is given in one of them, where no other unit has it.
    ///
    /// # Errors
    ///
    /// Why no unit can have this name.
    pub fn of<'a>(given: &str, others: impl IntoIterator<Item = &'a str>) -> Result<UnitName, NameError> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !given.chars().all(is_part) || !given.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(NameError::NoIdentifier(given.to_owned()));
        }
        if given.len() > MOST {
            return Err(NameError::TooLong(given.to_owned()));
        }
        let words = words(given);
        let snake = words.iter().map(|word| word.to_ascii_lowercase()).collect::<Vec<_>>().join("_");
        let camel: String = words.iter().map(|word| capitalised(word)).collect();
        let is_among = |words: &str, word: &str| words.split(' ').any(|known| known == word);
        if is_among(RESERVED, &snake) || snake.starts_with("balar") || is_among(USED, &camel) {
            return Err(NameError::Reserved(given.to_owned()));
        }
        match others.into_iter().find(|other| *other == camel) {
            Some(_) => Err(NameError::Taken(camel)),
            None => Ok(UnitName { camel, snake }),
        }
    }
}

/// The words of a name: "L2", "Filter" of "L2Filter"; "write", "filter" of "`write_filter`".
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in name.split(['_', '-']).filter(|part| !part.is_empty()) {
        let letters: Vec<char> = part.chars().collect();
        for (at, &letter) in letters.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| letters[at]);
            let after = letters.get(at + 1);
            // A word begins with a capital, unless it is one of several in an abbreviation that goes on.
            let begins = match before {
                None => true,
                Some(before) if letter.is_ascii_uppercase() => {
                    !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
                }
                Some(_) => false,
            };
            match words.last_mut() {
                Some(word) if !begins => word.push(letter),
                _ => words.push(letter.to_string()),
            }
        }
    }
    words
}

/// A word with a capital first.
fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    format!("{}{rest}", first.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(given: &str) -> (String, String) {
        let UnitName { camel, snake } = UnitName::of(given, ["L2Slice"]).expect(given);
        (camel, snake)
    }

    #[test]
    fn a_name_is_given_in_any_of_its_forms() {
        for (given, camel, snake) in [
            ("WriteFilter", "WriteFilter", "write_filter"),
            ("write_filter", "WriteFilter", "write_filter"),
            ("write-filter", "WriteFilter", "write_filter"),
            ("cache", "Cache", "cache"),
            ("L2Filter", "L2Filter", "l2_filter"),
            ("HTTPUnit", "HTTPUnit", "http_unit"),
            ("MyL2", "MyL2", "my_l2"),
            ("X", "X", "x"),
        ] {
            assert_eq!(forms(given), (camel.to_owned(), snake.to_owned()), "{given}");
        }
    }

    #[test]
    fn names_that_no_unit_can_have_are_refused() {
        let refused = |given: &str| UnitName::of(given, ["L2Slice"]).expect_err(given);
        for given in ["", "2Filter", "_filter", "-filter", "a b", "a/b", "../filter", "Größe", "a.b", "filter!"] {
            assert_eq!(refused(given), NameError::NoIdentifier(given.to_owned()), "{given}");
        }
        for given in ["Self", "match", "Test", "std", "serde", "Pace", "balar_filter", "Balar"] {
            assert_eq!(refused(given), NameError::Reserved(given.to_owned()), "{given}");
        }
        assert_eq!(refused("l2-slice"), NameError::Taken("L2Slice".to_owned()));
        let long = "a".repeat(MOST + 1);
        assert_eq!(refused(&long), NameError::TooLong(long.clone()));
    }
}
