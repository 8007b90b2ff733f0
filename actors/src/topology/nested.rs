//! A value inside of a parameter: `latencies.integer` of `latencies: (integer: 4, single: 4)`.

use super::nearest::suggestion;
use super::pattern::Segment;
use super::syntax::{self, Item, Span, Value, ValueKind};

/// Why there is no such value.
#[derive(Debug, PartialEq)]
pub(crate) struct NestedError {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The step of the path at fault.
    pub(crate) span: Span,
}

/// `text` (RON) with `value` in the place that `path` names, each step a key of a struct. A key that is absent, whose default would
/// hold, is added at the end of its struct; whether it exists is for the type of the parameter to say.
pub(crate) fn replace(text: &str, path: &[Segment], value: &str) -> Result<String, NestedError> {
    let step = |segment: &Segment, message: String, help: Option<String>| NestedError {
        message,
        help,
        span: segment.span.clone(),
    };
    let Some((last, outer)) = path.split_last() else { return Ok(value.to_owned()) };
    let first = |message: String| step(&path[0], message, None);
    let mut here = syntax::parse(text).map(bare).map_err(|error| first(error.message))?;
    for segment in outer {
        let keys: Vec<String> = items(&here).iter().flat_map(|items| items.iter()).filter_map(key).collect();
        let help = (!keys.is_empty()).then(|| suggestion(&segment.name, keys.iter().map(String::as_str)));
        here = find(here, &segment.name)
            .map(|item| bare(item.value))
            .ok_or_else(|| step(segment, format!("there is no `{}` in it", segment.name), help))?;
    }
    let Some(given) = items(&here) else {
        let message = format!("it is {}, which has no `{}`", here.describe(), last.name);
        return Err(step(last, message, None));
    };
    if let Some(item) = given.iter().find(|item| key(item).as_deref() == Some(&last.name)) {
        let Span { start, end } = item.value.span.clone();
        return Ok(format!("{}{value}{}", &text[..start], &text[end..]));
    }
    if given.iter().any(|item| item.key.is_none()) {
        let message = format!("it is {} of values without names, which has no `{}`", here.describe(), last.name);
        return Err(step(last, message, None));
    }
    // Directly behind the opening bracket: what stands before the closing one may be a comment or a comma.
    let name = match &here.kind {
        ValueKind::Call(name, _) => name.span.end,
        _ => here.span.start,
    };
    let open = text[name..here.span.end].find('(').map(|at| name + at + 1);
    match open {
        Some(open) => Ok(format!("{}{}: {value}, {}", &text[..open], last.name, &text[open..])),
        None => Ok(format!("{}({}: {value}){}", &text[..here.span.end], last.name, &text[here.span.end..])),
    }
}

/// The value in the place that `path` names, where one is given there.
pub(crate) fn given(text: &str, path: &[Segment]) -> Option<String> {
    let step = |value, segment: &Segment| Some(find(value, &segment.name)?.value);
    let here = path.iter().try_fold(syntax::parse(text).ok()?, step)?;
    Some(text[here.span].to_owned())
}

/// Where `text` gives the value that the keys of `path`, with dots between them, lead to: its last key and the value.
pub(crate) fn place(text: &str, path: &str) -> Option<Span> {
    let mut value = syntax::parse(text).ok()?;
    let mut place = value.span.clone();
    for name in path.split('.') {
        let item = find(value, name)?;
        place = item.span();
        value = item.value;
    }
    Some(place)
}

/// A value, or what it holds where it is `Some(value)`.
fn bare(value: Value) -> Value {
    match value.kind {
        ValueKind::Call(name, mut items) if name.text == "Some" && items.len() == 1 && items[0].key.is_none() => {
            items.remove(0).value
        }
        kind => Value { kind, ..value },
    }
}

fn items(value: &Value) -> Option<&Vec<Item>> {
    match &value.kind {
        ValueKind::Tuple(items) | ValueKind::Call(_, items) => Some(items),
        _ => None,
    }
}

fn key(item: &Item) -> Option<String> {
    item.key.as_ref().map(|key| key.text.clone())
}

fn find(value: Value, name: &str) -> Option<Item> {
    match bare(value).kind {
        ValueKind::Tuple(items) | ValueKind::Call(_, items) => {
            items.into_iter().find(|item| key(item).as_deref() == Some(name))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::pattern;

    fn set(text: &str, path: &str, value: &str) -> Result<String, String> {
        let path = pattern::parse(path).expect("a path");
        replace(text, &path, value).map_err(|error| error.message)
    }

    #[test]
    fn the_value_alone_is_replaced() {
        let text = "(integer: 4, // [HPEC19]\n single: 4,\n)";
        assert_eq!(set(text, "single", "7").as_deref(), Ok("(integer: 4, // [HPEC19]\n single: 7,\n)"));
        let model = "BankTimed(latency: \"72 ns\", timing: (cl: 12, wl: 2))";
        assert_eq!(
            set(model, "timing.cl", "14").as_deref(),
            Ok("BankTimed(latency: \"72 ns\", timing: (cl: 14, wl: 2))")
        );
    }

    #[test]
    fn what_may_be_absent_is_looked_into_where_it_is_there() {
        let text = "Some((lapse: \"1 ms\", pin: 3))";
        assert_eq!(set(text, "pin", "7").as_deref(), Ok("Some((lapse: \"1 ms\", pin: 7))"));
        assert_eq!(set("Some(())", "pin", "7").as_deref(), Ok("Some((pin: 7, ))"));
        assert_eq!(set("(rules: Some((pin: 3)))", "rules.pin", "7").as_deref(), Ok("(rules: Some((pin: 7)))"));
    }

    #[test]
    fn a_place_is_that_of_the_key_and_its_value() {
        let text_at = |text: &'static str, path| place(text, path).map(|span| &text[span]);
        assert_eq!(text_at("Driver(threshold_percent: 120)", "threshold_percent"), Some("threshold_percent: 120"));
        assert_eq!(text_at("Some((lapse: \"0 s\"))", "lapse"), Some("lapse: \"0 s\""));
        assert_eq!(text_at("(timing: (cl: 12, /* : */ wl: 2))", "timing.wl"), Some("wl: 2"));
        assert_eq!([text_at("(cl: 1)", "wl"), text_at("Simple", "wl"), text_at("((", "wl")], [None; 3]);
    }

    #[test]
    fn an_absent_key_is_added() {
        assert_eq!(set("()", "entries", "3").as_deref(), Ok("(entries: 3, )"));
        assert_eq!(set("(page: 1, /* ( */)", "entries", "3").as_deref(), Ok("(entries: 3, page: 1, /* ( */)"));
        assert_eq!(set("Timed", "banks", "3").as_deref(), Ok("Timed(banks: 3)"));
    }

    #[test]
    fn what_has_no_keys_is_refused() {
        assert_eq!(set("4", "integer", "7"), Err("it is a number, which has no `integer`".to_owned()));
        assert_eq!(set("(timing: (cl: 1))", "timin.cl", "7"), Err("there is no `timin` in it".to_owned()));
        let unnamed = "it is a tuple of values without names, which has no `major`";
        assert_eq!(set("(7, 0)", "major", "8"), Err(unnamed.to_owned()));
    }
}
