//! An instruction, or a few that belong together, in PTX and in the host's arithmetic.

use crate::random::Random;
use std::rc::Rc;

/// What may stand in place of a source's register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Literal {
    /// Nothing.
    None,
    /// An integer.
    Integer,
    /// A float of the source's width.
    Float,
}

/// A source: its bits (1 is a predicate), and which literals it takes.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub width: u32,
    pub literal: Literal,
}

/// A float format, whose not-a-number has bits that PTX leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloatFormat {
    Half,
    /// bfloat16.
    Brain,
    Single,
    Double,
}

impl FloatFormat {
    /// Bits of a value.
    pub fn width(self) -> u32 {
        match self {
            FloatFormat::Half | FloatFormat::Brain => 16,
            FloatFormat::Single => 32,
            FloatFormat::Double => 64,
        }
    }

    /// The name of the type.
    pub fn name(self) -> &'static str {
        match self {
            FloatFormat::Half => "f16",
            FloatFormat::Brain => "bf16",
            FloatFormat::Single => "f32",
            FloatFormat::Double => "f64",
        }
    }

    /// Whether bits stand for no number.
    pub fn is_nan(self, bits: u64) -> bool {
        match self {
            FloatFormat::Half => bits & 0x7fff > 0x7c00,
            FloatFormat::Brain => bits & 0x7fff > 0x7f80,
            FloatFormat::Single => bits & 0x7fff_ffff > 0x7f80_0000,
            FloatFormat::Double => bits << 1 > 0x7ff0_0000_0000_0000 << 1,
        }
    }

    /// What stands for all not-a-numbers here.
    pub fn nan(self) -> u64 {
        match self {
            FloatFormat::Half => 0x7e01,
            FloatFormat::Brain => 0x7fc1,
            FloatFormat::Single => 0x7fc1_2345,
            FloatFormat::Double => 0x7ff8_1234_5678_9abc,
        }
    }
}

/// What the sources' values come to.
pub type Meaning = Rc<dyn Fn(&[u64]) -> Vec<u64>>;

/// An operation in both languages.
#[derive(Clone)]
pub struct Operation {
    /// PTX: `$a`, `$b`, `$c`, `$e` stand for sources, `$d`, `$f`, `$g`, `$h` for destinations; `;` separates instructions. `%t0` to
    /// `%t7` (32 bits), `%u0` to `%u3` (64), `%s0` to `%s3` (16) and `%q0` to `%q3` (predicates) are for its own use. No source is
    /// read after the first destination is written.
    pub text: String,
    pub sources: Vec<Source>,
    /// Bits of the destinations.
    pub destinations: Vec<u32>,
    /// The same in the host's arithmetic.
    pub meaning: Meaning,
    /// It may be under a predicate. ptxas 12.9 makes several instructions of some, of which not all are.
    pub takes_guard: bool,
}

/// Names of sources and of destinations in texts.
pub const SOURCES: [&str; 4] = ["$a", "$b", "$c", "$e"];
/// See [`SOURCES`].
pub const DESTINATIONS: [&str; 4] = ["$d", "$f", "$g", "$h"];

/// A source that is an integer.
pub fn integer(width: u32) -> Source {
    Source { width, literal: Literal::Integer }
}

/// A source that is a float.
pub fn float(format: FloatFormat) -> Source {
    let literal = if format.width() == 16 { Literal::None } else { Literal::Float };
    Source { width: format.width(), literal }
}

/// A source that is a register.
pub fn register(width: u32) -> Source {
    Source { width, literal: Literal::None }
}

impl Operation {
    /// An operation of one destination.
    pub fn new(
        text: impl Into<String>,
        sources: &[Source],
        destination: u32,
        meaning: impl Fn(&[u64]) -> u64 + 'static,
    ) -> Self {
        Self::of_several(text, sources, &[destination], move |values| vec![meaning(values)])
    }

    /// An operation of several destinations.
    pub fn of_several(
        text: impl Into<String>,
        sources: &[Source],
        destinations: &[u32],
        meaning: impl Fn(&[u64]) -> Vec<u64> + 'static,
    ) -> Self {
        Self {
            text: text.into(),
            sources: sources.to_vec(),
            destinations: destinations.to_vec(),
            meaning: Rc::new(meaning),
            takes_guard: true,
        }
    }

    /// The same, under no predicate.
    pub fn unguarded(self) -> Self {
        Self { takes_guard: false, ..self }
    }

    /// The same, with one not-a-number in place of all in the destination, of this format or two of it.
    pub fn canonical(self, format: FloatFormat) -> Self {
        let nan = format.nan();
        let (text, meaning) = (self.text, self.meaning);
        let is_pair = self.destinations[0] > format.width();
        // No GPU before Hopper compares bfloat16.
        let of_brain = |value: &str, temporary: &str| {
            format!(
                "and.b16 %s3, {value}, 0x7fff; setp.gt.u16 %q0, %s3, 0x7f80; selp.b16 {temporary}, {nan}, {value}, %q0"
            )
        };
        let canonical = match (format, is_pair) {
            (FloatFormat::Brain, true) => format!(
                "mov.b32 {{%s0, %s1}}, $d; {}; {}; mov.b32 $d, {{%s0, %s1}}",
                of_brain("%s0", "%s0"),
                of_brain("%s1", "%s1")
            ),
            (FloatFormat::Brain, false) => of_brain("$d", "$d"),
            (FloatFormat::Half, true) => format!(
                "mov.b32 {{%s0, %s1}}, $d; setp.nan.f16 %q0, %s0, %s0; setp.nan.f16 %q1, %s1, %s1; \
                 selp.b16 %s0, {nan}, %s0, %q0; selp.b16 %s1, {nan}, %s1, %q1; mov.b32 $d, {{%s0, %s1}}"
            ),
            _ => {
                let (name, width) = (format.name(), format.width());
                format!("setp.nan.{name} %q0, $d, $d; selp.b{width} $d, {nan}, $d, %q0")
            }
        };
        let each = move |bits: u64| if format.is_nan(bits) { nan } else { bits };
        Self {
            text: format!("{text}; {canonical}"),
            meaning: Rc::new(move |values| {
                let mut results = meaning(values);
                results[0] = match is_pair {
                    true => each(results[0] & 0xffff) | each(results[0] >> 16) << 16,
                    false => each(results[0]),
                };
                results
            }),
            ..self
        }
    }
}

/// A family of operations.
pub type Family = fn(&mut Random) -> Operation;
