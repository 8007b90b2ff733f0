//! Parameters of workloads: declared in a table, given as `key=value`, parsed strictly.

use std::fmt;

/// Where a workload keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// In device memory, by `cudaMalloc` and `cudaMemcpy`.
    Device,
    /// In managed memory, whose pages move as they are accessed.
    Managed,
    /// In managed memory that is brought to the GPU before the first launch, and back before it is read (`cudaMemPrefetchAsync`).
    Prefetched,
}

/// Declares one parameter of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The key.
    pub name: &'static str,
    /// The values it takes, and the one where none is given.
    pub domain: Domain,
    /// One line: the meaning of its value, and its unit.
    pub meaning: &'static str,
}

/// The kind, default and range of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// A whole number.
    Integer {
        /// The default.
        value: u64,
        /// The least accepted.
        minimum: u64,
        /// The greatest accepted.
        maximum: u64,
    },
    /// A number of bytes: a whole number, or one with `KiB`, `MiB` or `GiB` behind it.
    Bytes {
        /// The default.
        value: u64,
        /// The least accepted.
        minimum: u64,
        /// The greatest accepted.
        maximum: u64,
    },
    /// One of several words; the first is the default.
    Choice(&'static [&'static str]),
}

impl Domain {
    fn value(self) -> Value {
        match self {
            Domain::Integer { value, .. } | Domain::Bytes { value, .. } => Value::Integer(value),
            Domain::Choice(words) => Value::Choice(words[0]),
        }
    }

    /// The values that it takes, in words.
    pub fn expected(self) -> String {
        match self {
            Domain::Integer { minimum, maximum, .. } => format!("a whole number from {minimum} to {maximum}"),
            Domain::Bytes { minimum, maximum, .. } => {
                format!("bytes from {minimum} to {maximum}, as a whole number, or with KiB, MiB or GiB")
            }
            Domain::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    fn parse(self, text: &str) -> Option<Value> {
        let (digits, factor, minimum, maximum) = match self {
            Domain::Choice(words) => return words.iter().find(|word| **word == text).map(|word| Value::Choice(word)),
            Domain::Integer { minimum, maximum, .. } => (text, 1, minimum, maximum),
            Domain::Bytes { minimum, maximum, .. } => {
                let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
                let found =
                    units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim_end(), *factor)));
                let (digits, factor) = found.unwrap_or((text, 1));
                (digits, factor, minimum, maximum)
            }
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let value = digits.parse::<u64>().ok()?.checked_mul(factor)?;
        (minimum..=maximum).contains(&value).then_some(Value::Integer(value))
    }
}

impl Parameter {
    /// The value that a text gives.
    fn read(&self, workload: &'static str, text: &str) -> Result<Value, WorkloadError> {
        self.domain.parse(text).ok_or_else(|| WorkloadError::InvalidValue {
            workload,
            name: self.name,
            value: text.to_owned(),
            expected: self.domain.expected(),
        })
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(formatter)
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, whether bytes or anything else.
    Integer(u64),
    /// A word.
    Choice(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => value.fmt(formatter),
            Value::Choice(word) => word.fmt(formatter),
        }
    }
}

/// The parameter that every workload has besides its own. It is not among a workload's values unless it was given.
pub const MEMORY: Parameter = Parameter {
    name: "memory",
    domain: Domain::Choice(&["device", "managed", "prefetched"]),
    meaning: "where it keeps its data: in device memory; in managed memory; in managed memory that is prefetched",
};

/// The values of all parameters of one workload, in the order of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    values: Vec<(&'static str, Value)>,
}

impl Parameters {
    /// The values that `settings` (key and value) give, and defaults for the rest.
    pub fn new<'text>(
        workload: &'static str,
        table: &[Parameter],
        settings: impl IntoIterator<Item = (&'text str, &'text str)>,
    ) -> Result<Self, WorkloadError> {
        let mut values: Vec<_> = table.iter().map(|parameter| (parameter.name, parameter.domain.value())).collect();
        let mut given = vec![false; table.len()];
        let mut memory = None;
        for (key, text) in settings {
            let Some(index) = table.iter().position(|parameter| parameter.name == key) else {
                if key == MEMORY.name {
                    if memory.replace(MEMORY.read(workload, text)?).is_some() {
                        return Err(WorkloadError::ParameterGivenTwice { workload, name: MEMORY.name });
                    }
                    continue;
                }
                let names = table.iter().map(|parameter| parameter.name).chain([MEMORY.name]);
                return Err(WorkloadError::UnknownParameter {
                    workload,
                    name: key.to_owned(),
                    suggestion: Suggestion::new(key, names),
                });
            };
            if std::mem::replace(&mut given[index], true) {
                return Err(WorkloadError::ParameterGivenTwice { workload, name: table[index].name });
            }
            values[index].1 = table[index].read(workload, text)?;
        }
        values.extend(memory.map(|memory| (MEMORY.name, memory)));
        Ok(Parameters { values })
    }

    /// Where the workload keeps its data.
    pub(crate) fn memory(&self) -> Memory {
        match self.get(MEMORY.name) {
            Some(Value::Choice("managed")) => Memory::Managed,
            Some(Value::Choice("prefetched")) => Memory::Prefetched,
            _ => Memory::Device,
        }
    }

    /// All values, in the order of the workload's table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.values.iter().copied()
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.values.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// A number that the workload's table declares.
    pub(crate) fn integer(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Value::Integer(value)) => value,
            other => unreachable!("the workload declares no number {name}: {other:?}"),
        }
    }

    /// A number that the workload's table declares to fit 32 bits.
    pub(crate) fn small(&self, name: &str) -> u32 {
        u32::try_from(self.integer(name)).unwrap_or_else(|_| unreachable!("the range of {name} exceeds 32 bits"))
    }

    /// A word that the workload's table declares.
    pub(crate) fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Some(Value::Choice(word)) => word,
            other => unreachable!("the workload declares no choice {name}: {other:?}"),
        }
    }
}

/// The nearest right name, and all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The nearest right name, where one is near.
    pub nearest: Option<&'static str>,
    /// All right names.
    pub known: Vec<&'static str>,
}

impl Suggestion {
    pub(crate) fn new(wrong: &str, known: impl Iterator<Item = &'static str>) -> Self {
        let known: Vec<_> = known.collect();
        let near = |name: &&'static str| (strsim::damerau_levenshtein(&wrong.to_lowercase(), name), *name);
        let nearest = known.iter().map(near).filter(|(distance, name)| *distance <= 1 + name.len() / 3).min();
        Suggestion { nearest: nearest.map(|(_, name)| name), known }
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(nearest) = self.nearest {
            write!(formatter, "did you mean `{nearest}`? ")?;
        }
        write!(formatter, "known: {}", self.known.join(", "))
    }
}

/// A mistake in the request for a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No workload has this name.
    #[error("no workload `{name}`; {suggestion}")]
    UnknownWorkload {
        /// The name asked for.
        name: String,
        /// The nearest known name.
        suggestion: Suggestion,
    },
    /// The workload has no such parameter.
    #[error("workload {workload} has no parameter `{name}`; {suggestion}")]
    UnknownParameter {
        /// The workload.
        workload: &'static str,
        /// The key asked for.
        name: String,
        /// The nearest known name.
        suggestion: Suggestion,
    },
    /// A setting without `=`.
    #[error("workload {workload}: `{text}` is not of the form key=value")]
    NotKeyValue {
        /// The workload.
        workload: &'static str,
        /// The text given.
        text: String,
    },
    /// A key appears twice.
    #[error("workload {workload}: parameter {name} is given twice")]
    ParameterGivenTwice {
        /// The workload.
        workload: &'static str,
        /// The key.
        name: &'static str,
    },
    /// A value of the wrong form, or out of range.
    #[error("workload {workload}: {name} = `{value}`; expected {expected}")]
    InvalidValue {
        /// The workload.
        workload: &'static str,
        /// The key.
        name: &'static str,
        /// The value given.
        value: String,
        /// The expected value.
        expected: String,
    },
    /// Values that do not go together.
    #[error("workload {workload}: {message}")]
    Inconsistent {
        /// The workload.
        workload: &'static str,
        /// Which, and why.
        message: String,
    },
}
