//! Misspelt keys inside of a parameter's value: the report points at the key, not at the whole value, and has the nearest right name.

use balar_actors::topology::{ErrorKind, TopologyError, suggestion};
use std::ops::Range;

/// The name that a reader of RON finds and does not expect, and those that it expects.
struct UnexpectedKey<'a> {
    /// What is wrong with, as the message begins: "gpu.sm\[0\]: latencies: ".
    before: &'a str,
    key: &'a str,
    expected: Vec<&'a str>,
}

impl<'a> UnexpectedKey<'a> {
    /// From the message of RON's reader: "Unexpected field named `integr` in `Latencies`, expected one of `integer`, `single` instead".
    fn read(message: &'a str) -> Option<UnexpectedKey<'a>> {
        let (before, rest) = message.split_once("Unexpected field named `")?;
        let (key, rest) = rest.split_once('`')?;
        let (_, expected) = rest.split_once(", expected ").unwrap_or_default();
        let expected = expected.split('`').skip(1).step_by(2).collect();
        Some(UnexpectedKey { before, key, expected })
    }
}

/// Lets a mistake in a key inside of a value point at that key, with the nearest right name. Other mistakes stay as they are.
pub fn point_at_key(error: &mut TopologyError) {
    if error.kind != ErrorKind::WrongType {
        return;
    }
    let message = std::mem::take(&mut error.message);
    let Some(UnexpectedKey { before, key, expected }) = UnexpectedKey::read(&message) else {
        error.message = message;
        return;
    };
    // The value of an override is the last piece of its text, and the key may stand in the path before it.
    let whole = 0..error.location.file.text.len();
    let searched = if error.location.file.name == "--set" { whole } else { error.location.span.clone() };
    if let Some(place) = place_of(&error.location.file.text, searched, key) {
        error.location.span = place;
        error.label = "not a key here".to_owned();
    }
    error.message = format!("{before}there is no `{key}`");
    error.help = Some(suggestion(key, expected));
}

/// Where `key` stands in a part of `text`: before a colon, or as a step of a path.
fn place_of(text: &str, within: Range<usize>, key: &str) -> Option<Range<usize>> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let searched = text.get(within.clone())?;
    let words = searched.match_indices(key).map(|(at, _)| at + within.start..at + within.start + key.len()).filter(
        |place: &Range<usize>| {
            !text[..place.start].chars().next_back().is_some_and(is_name)
                && !text[place.end..].chars().next().is_some_and(is_name)
        },
    );
    let words: Vec<Range<usize>> = words.collect();
    let is_key = |place: &&Range<usize>| text[place.end..].trim_start().starts_with(':');
    let is_step = |place: &&Range<usize>| text[..place.start].ends_with('.');
    words.iter().find(is_key).or_else(|| words.iter().find(is_step)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_actors::topology::{Location, SourceFile};
    use std::sync::Arc;

    const MESSAGE: &str = "gpu.sm[0]: latencies: Unexpected field named `integr` in `Latencies`, expected one of `integer`, `integer_multiply`, or `single` instead";

    fn error(file: &str, text: &str, span: Range<usize>, message: &str) -> TopologyError {
        let location = Location { file: Arc::new(SourceFile::text(file, text)), span };
        TopologyError::new(ErrorKind::WrongType, location, message, "expected Latencies")
    }

    #[test]
    fn a_misspelt_key_is_pointed_at() {
        let value = "(integer_multiply: 4, integr: 4)";
        let text = format!("latencies: {value}, // integr");
        for (file, text, span) in [
            ("node.ron", text.as_str(), 11..11 + value.len()),
            ("--set", "gpu.sm[*].latencies.integr=7", 27..28),
            ("--set", "gpu.sm[*].latencies=(integr: 7)", 20..31),
        ] {
            let mut error = error(file, text, span, MESSAGE);
            point_at_key(&mut error);
            assert_eq!(error.location.text(), "integr", "{text}");
            assert_eq!(error.message, "gpu.sm[0]: latencies: there is no `integr`");
            assert_eq!(error.help.as_deref(), Some("the nearest name is `integer`"));
        }
    }

    #[test]
    fn other_mistakes_stay_as_they_are() {
        let message = "gpu.sm[0]: latencies: Expected integer";
        let mut error = error("node.ron", "latencies: (integer: fast)", 11..26, message);
        point_at_key(&mut error);
        assert_eq!((error.location.text(), error.message.as_str()), ("(integer: fast)", message));
        assert_eq!((error.label.as_str(), error.help), ("expected Latencies", None));
    }

    #[test]
    fn a_key_is_a_whole_word() {
        let place = |text: &str, key| place_of(text, 0..text.len(), key);
        assert_eq!(place("(int_a: 1, int: 2)", "int"), Some(11..14));
        assert_eq!(place("(a: \"int\")", "int"), None);
        assert_eq!(place("x.int.y=3", "int"), Some(2..5));
    }
}
