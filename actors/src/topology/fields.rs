//! The keys of a file or a part: which are there, and what their values must be.

use super::error::{ErrorKind, Errors, TopologyError};
use super::nearest::suggestion;
use super::source::{Location, SourceFile};
use super::syntax::{self, Item, Value, ValueKind};
use std::sync::Arc;

/// The keys of `Topology(...)` or `Part(...)`.
pub(crate) struct Fields {
    file: Arc<SourceFile>,
    /// "Topology" or "Part", and its place.
    what: (String, Location),
    entries: Vec<(String, Value)>,
}

impl Fields {
    /// Reads a whole file that holds `what(...)`.
    pub(crate) fn read(file: &Arc<SourceFile>, what: &str, keys: &[&str], errors: &mut Errors) -> Option<Fields> {
        let at = |span: &syntax::Span| Location { file: file.clone(), span: span.clone() };
        let value = match syntax::parse(&file.text) {
            Ok(value) => value,
            Err(error) => {
                let mut report = TopologyError::new(
                    ErrorKind::Syntax,
                    at(&error.span),
                    error.message.clone(),
                    "the text is not RON here",
                );
                if let Some(opened) = &error.opened {
                    report = report.other(at(opened), "opened here");
                }
                errors.push(report);
                return None;
            }
        };
        match &value.kind {
            ValueKind::Call(name, items) if name.text == what => {
                Some(Fields::from_items(what, at(&name.span), items, file, keys, errors))
            }
            other => {
                let found = match other {
                    ValueKind::Call(name, _) => format!("`{}`", name.text),
                    _ => value.describe().to_owned(),
                };
                let span = match other {
                    ValueKind::Call(name, _) => name.span.clone(),
                    _ => value.span.start..value.span.start + 1,
                };
                let message = format!("the file holds {found}, not a {what}");
                let label = format!("expected `{what}(...)`");
                errors.push(TopologyError::new(ErrorKind::WrongFileKind, at(&span), message, label));
                None
            }
        }
    }

    /// Sorts the items of `what(...)`.
    pub(crate) fn from_items(
        what: &str,
        location: Location,
        items: &[Item],
        file: &Arc<SourceFile>,
        keys: &[&str],
        errors: &mut Errors,
    ) -> Fields {
        let mut entries: Vec<(String, Value)> = Vec::new();
        for item in items {
            let at = |span: &syntax::Span| Location { file: file.clone(), span: span.clone() };
            let Some(key) = &item.key else {
                let message = format!("a value of {what} has no key");
                let error =
                    TopologyError::new(ErrorKind::WrongShape, at(&item.value.span), message, "expected `key: value`");
                errors.push(error.help(format!("the keys are: {}", keys.join(", "))));
                continue;
            };
            if !keys.contains(&key.text.as_str()) {
                let message = format!("{what} has no key `{}`", key.text);
                let error = TopologyError::new(ErrorKind::UnknownKey, at(&key.span), message, "not a key");
                errors.push(error.help(suggestion(&key.text, keys.iter().copied())));
            } else if entries.iter().any(|(given, _)| *given == key.text) {
                let message = format!("the key `{}` of {what} is given twice", key.text);
                errors.push(TopologyError::new(ErrorKind::KeyGivenTwice, at(&key.span), message, "given before"));
            } else {
                entries.push((key.text.clone(), item.value.clone()));
            }
        }
        Fields { file: file.clone(), what: (what.to_owned(), location), entries }
    }

    /// The place of a value.
    pub(crate) fn at(&self, value: &Value) -> Location {
        Location { file: self.file.clone(), span: value.span.clone() }
    }

    /// The value of `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(given, _)| given == key).map(|(_, value)| value)
    }

    /// The value of `key`; its absence is a mistake.
    pub(crate) fn required(&self, key: &str, errors: &mut Errors) -> Option<&Value> {
        let value = self.get(key);
        if value.is_none() {
            let message = format!("{} lacks the key `{key}`", self.what.0);
            let label = format!("expected `{key}: ...` inside");
            errors.push(TopologyError::new(ErrorKind::MissingKey, self.what.1.clone(), message, label));
        }
        value
    }

    /// The string at `key`, which must be there.
    pub(crate) fn string(&self, key: &str, errors: &mut Errors) -> Option<String> {
        let value = self.required(key, errors)?;
        if value.string().is_none() {
            self.wrong_shape(key, value, "a string", errors);
        }
        value.string().map(str::to_owned)
    }

    /// The list at `key`, empty where absent.
    pub(crate) fn list(&self, key: &str, errors: &mut Errors) -> Option<Vec<(Arc<SourceFile>, Value)>> {
        let value = self.get(key)?;
        let ValueKind::List(values) = &value.kind else {
            self.wrong_shape(key, value, "a list", errors);
            return None;
        };
        Some(values.iter().map(|value| (self.file.clone(), value.clone())).collect())
    }

    pub(crate) fn wrong_shape(&self, key: &str, value: &Value, expected: &str, errors: &mut Errors) {
        let message = format!("`{key}` of {} is {}", self.what.0, value.describe());
        let label = format!("expected {expected}");
        errors.push(TopologyError::new(ErrorKind::WrongShape, self.at(value), message, label));
    }
}
