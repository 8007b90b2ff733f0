//! How metrics are made of counters.

use serde::Serialize;
use std::fmt;

/// A value: a count, or a quotient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Counted.
    Count(u64),
    /// Derived.
    Real(f64),
}

impl Value {
    /// The value as a real number.
    pub fn real(self) -> f64 {
        match self {
            Value::Count(count) => count as f64,
            Value::Real(real) => real,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => write!(f, "{count}"),
            Value::Real(real) => real.fmt(f),
        }
    }
}

/// The facts of the node and of the measured time that a formula takes, beside counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Sub-cores of an SM.
    SubCores,
    /// Warps that an SM has room for.
    SmWarps,
    /// SMs of the GPU.
    Sms,
    /// Sectors that the L1 of an SM delivers in a cycle.
    L1SectorsPerCycle,
    /// Seconds in which kernels of the GPU ran; for units that copies use as well, all seconds of the run.
    MeasuredSeconds,
    /// Cycles of the unit's clock in that time.
    MeasuredCycles,
}

/// A part of a quotient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    /// Counters added up, times a number.
    Sum(f64, &'static [&'static str]),
    /// Counters added up, times facts.
    Times(&'static [&'static str], &'static [Fact]),
    /// The product of facts.
    Product(&'static [Fact]),
}

/// How a metric is made. A counter that is named twice counts twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Formula {
    /// Counters added up.
    Sum(&'static [&'static str]),
    /// Counters added up, so many times.
    Times(u64, &'static [&'static str]),
    /// The first counter without the second, which is a part of it.
    Without([&'static str; 2]),
    /// A quotient: that of several units is the quotient of their sums.
    Ratio {
        /// Above the line.
        above: Term,
        /// Below it.
        below: Term,
    },
    /// Counters in the time that kernels ran, times a number: that of several units is the sum.
    Rate(f64, &'static [&'static str]),
    /// The greatest of metrics of launches, by our names: each is that of all units of a GPU together.
    Greatest(&'static [&'static str]),
}

impl Formula {
    /// The counters that it is made of; none of what is the greatest of other metrics.
    pub fn counters(&self) -> impl Iterator<Item = &'static str> {
        let of = |term: &Term| match *term {
            Term::Sum(_, counters) | Term::Times(counters, _) => counters,
            Term::Product(_) => &[],
        };
        let (first, second): (&[&str], &[&str]) = match self {
            Formula::Sum(counters) | Formula::Times(_, counters) | Formula::Rate(_, counters) => (counters, &[]),
            Formula::Without([whole, part]) => (std::slice::from_ref(whole), std::slice::from_ref(part)),
            Formula::Ratio { above, below } => (of(above), of(below)),
            Formula::Greatest(_) => (&[], &[]),
        };
        first.iter().chain(second).copied().collect::<Vec<_>>().into_iter()
    }

    /// The sum, or what is above and below the line. `None` where a counter or a fact is not known, and of the greatest of other metrics.
    pub(super) fn parts(
        &self,
        counter: impl Fn(&str) -> Option<u64>,
        fact: impl Fn(Fact) -> Option<f64>,
    ) -> Option<Parts> {
        let sum = |names: &[&str]| names.iter().try_fold(0u64, |sum, name| Some(sum.saturating_add(counter(name)?)));
        let product = |facts: &[Fact]| facts.iter().try_fold(1.0, |product, &of| Some(product * fact(of)?));
        let term = |term: &Term| match *term {
            Term::Sum(factor, counters) => Some(factor * sum(counters)? as f64),
            Term::Times(counters, facts) => Some(sum(counters)? as f64 * product(facts)?),
            Term::Product(facts) => product(facts),
        };
        Some(match self {
            Formula::Sum(counters) => Parts::Sum(sum(counters)?),
            Formula::Times(factor, counters) => Parts::Sum(sum(counters)?.saturating_mul(*factor)),
            Formula::Without([whole, part]) => Parts::Sum(counter(whole)?.saturating_sub(counter(part)?)),
            Formula::Ratio { above, below } => Parts::Ratio(term(above)?, term(below)?),
            Formula::Rate(factor, counters) => {
                let seconds = fact(Fact::MeasuredSeconds).filter(|seconds| *seconds > 0.0)?;
                Parts::Rate(factor * sum(counters)? as f64 / seconds)
            }
            Formula::Greatest(_) => return None,
        })
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fact = |fact: &Fact| match fact {
            Fact::SubCores => "sub-cores of an SM",
            Fact::SmWarps => "warp slots of an SM",
            Fact::Sms => "SMs",
            Fact::L1SectorsPerCycle => "sectors an L1 delivers in a cycle",
            Fact::MeasuredSeconds => "seconds measured over",
            Fact::MeasuredCycles => "cycles measured over",
        };
        let sum = |counters: &[&str]| match counters {
            [counter] => (*counter).to_owned(),
            _ => format!("({})", counters.join(" + ")),
        };
        let product = |facts: &[Fact]| facts.iter().map(fact).collect::<Vec<_>>().join(" x ");
        let term = |term: &Term| match term {
            Term::Sum(1.0, counters) => sum(counters),
            Term::Sum(factor, counters) => format!("{factor} x {}", sum(counters)),
            Term::Times(counters, facts) => format!("({} x {})", sum(counters), product(facts)),
            Term::Product(facts) => format!("({})", product(facts)),
        };
        match self {
            Formula::Sum(counters) => f.write_str(&counters.join(" + ")),
            Formula::Times(factor, counters) => write!(f, "{factor} x {}", sum(counters)),
            Formula::Without([whole, part]) => write!(f, "{whole} - {part}"),
            Formula::Ratio { above, below } => write!(f, "{} / {}", term(above), term(below)),
            Formula::Rate(factor, counters) => {
                write!(f, "{factor} x {} / {}", sum(counters), fact(&Fact::MeasuredSeconds))
            }
            Formula::Greatest(metrics) => write!(f, "the greatest of {}", metrics.join(", ")),
        }
    }
}

/// The parts of a formula for one unit, or for several added up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Parts {
    Sum(u64),
    Ratio(f64, f64),
    Rate(f64),
}

impl Parts {
    /// The parts of two units together.
    pub fn and(self, other: Parts) -> Parts {
        match (self, other) {
            (Parts::Sum(a), Parts::Sum(b)) => Parts::Sum(a.saturating_add(b)),
            (Parts::Ratio(a, b), Parts::Ratio(c, d)) => Parts::Ratio(a + c, b + d),
            (Parts::Rate(a), Parts::Rate(b)) => Parts::Rate(a + b),
            // A metric has one formula.
            (first, _) => first,
        }
    }

    /// The value; `None` of a quotient whose divisor is zero.
    pub fn value(self) -> Option<Value> {
        match self {
            Parts::Sum(sum) => Some(Value::Count(sum)),
            Parts::Ratio(above, below) => (below > 0.0).then(|| Value::Real(above / below)),
            Parts::Rate(rate) => Some(Value::Real(rate)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(formula: Formula, warps: u64) -> Option<Parts> {
        let counter = |name: &str| match name {
            "warps" => Some(warps),
            "cycles" => Some(10),
            _ => None,
        };
        formula.parts(counter, |fact| (fact == Fact::SmWarps).then_some(4.0))
    }

    #[test]
    fn a_ratio_of_several_units_is_that_of_their_sums() {
        let share =
            Formula::Ratio { above: Term::Sum(100.0, &["warps"]), below: Term::Times(&["cycles"], &[Fact::SmWarps]) };
        let (one, other) = (parts(share, 20).expect("known"), parts(share, 0).expect("known"));
        assert_eq!(one.value(), Some(Value::Real(50.0)));
        assert_eq!(one.and(other).value(), Some(Value::Real(25.0)));
        assert_eq!(share.to_string(), "100 x warps / (cycles x warp slots of an SM)");
    }

    #[test]
    fn what_is_not_known_has_no_value() {
        assert_eq!(parts(Formula::Sum(&["warps", "warps", "cycles"]), 3), Some(Parts::Sum(16)));
        assert_eq!(parts(Formula::Sum(&["warps", "threads"]), 3), None);
        let by_fact = |fact| Formula::Ratio { above: Term::Sum(1.0, &["warps"]), below: Term::Product(fact) };
        assert_eq!(parts(by_fact(&[Fact::Sms]), 3), None);
        let nothing = Formula::Ratio { above: Term::Sum(1.0, &["warps"]), below: Term::Sum(0.0, &["cycles"]) };
        assert_eq!(parts(nothing, 3).and_then(Parts::value), None);
    }
}
