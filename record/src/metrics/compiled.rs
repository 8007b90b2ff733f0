//! Metrics made ready for samples: which numbers of a sample each is made of, so that a value costs a few additions.
//!
//! Counts are counts since the run began, as a sample has them. Quotients and rates are about the time since the sample before.

use super::formula::Parts;
use super::formula::{Fact, Formula, Term, Value};
use super::launch_counters::place_of_counter;
use super::metric::{Metric, RollUpKind};
use super::place::Place;
use crate::metrics::node_facts::NodeFacts;
use crate::metrics::rollup::pattern;
use balar_protocol::GpuDescription;
use balar_protocol::statistics::{KernelCounters, StatisticRow};
use std::ops::Range;

/// A unit, or a part of one, among the rows of samples.
#[derive(Clone, Debug)]
pub struct PlacedUnit {
    /// Its path.
    pub location: String,
    /// The place that its counts belong to; none for a unit that has no metrics.
    pub place: Option<Place>,
    /// Its rows.
    pub rows: Range<usize>,
    /// The number of its GPU; none for a unit outside of the GPUs.
    pub gpu: Option<usize>,
    /// The number of its row. Units of a row have paths that differ by their indices alone.
    pub row: usize,
}

/// The units of these rows. Rows of one unit follow each other.
pub fn placed_units(rows: &[StatisticRow], node: &NodeFacts) -> Vec<PlacedUnit> {
    let gpus: Vec<&str> = node.gpus().iter().map(|gpu| gpu.part.as_str()).collect();
    let mut units = Vec::new();
    let mut patterns: Vec<String> = Vec::new();
    let mut first = 0;
    for unit in rows.chunk_by(|row, next| row.location == next.location) {
        let location = unit[0].location.clone();
        let has = |counter: &str| unit.iter().any(|row| row.what == counter);
        let place = Place::ALL.into_iter().find(|place| place.holds(&location, has, &gpus));
        let gpu = gpus.iter().position(|gpu| super::place::is_in(&location, gpu));
        let own = pattern(&location);
        let row = patterns.iter().position(|known| *known == own).unwrap_or_else(|| {
            patterns.push(own);
            patterns.len() - 1
        });
        units.push(PlacedUnit { location, place, rows: first..first + unit.len(), gpu, row });
        first += unit.len();
    }
    units
}

/// Numbers added up, each times a factor, and a number; all of it times the seconds that have passed, where it is of their kind.
#[derive(Clone, Debug, Default)]
struct Sum {
    numbers: Vec<(usize, f64)>,
    constant: f64,
    by_time: bool,
}

impl Sum {
    /// The value of a term for a unit. `None` where a counter or a fact is not known.
    fn of(
        term: &Term,
        counter: &dyn Fn(&str) -> Option<usize>,
        fact: &dyn Fn(Fact) -> Option<f64>,
        factor: f64,
    ) -> Option<Sum> {
        let product = |facts: &[Fact]| {
            let by_time = facts.iter().any(|fact| matches!(fact, Fact::MeasuredSeconds | Fact::MeasuredCycles));
            Some((facts.iter().try_fold(factor, |product, &of| Some(product * fact(of)?))?, by_time))
        };
        let numbers = |counters: &[&str], factor: f64| {
            counters.iter().map(|name| Some((counter(name)?, factor))).collect::<Option<Vec<_>>>()
        };
        Some(match *term {
            Term::Sum(times, counters) => Sum { numbers: numbers(counters, factor * times)?, ..Sum::default() },
            Term::Times(counters, facts) => {
                let (factor, by_time) = product(facts)?;
                Sum { numbers: numbers(counters, factor)?, constant: 0.0, by_time }
            }
            Term::Product(facts) => {
                let (constant, by_time) = product(facts)?;
                Sum { numbers: Vec::new(), constant, by_time }
            }
        })
    }

    fn and(mut self, mut other: Sum) -> Sum {
        self.numbers.append(&mut other.numbers);
        self.constant += other.constant;
        self.by_time |= other.by_time;
        self
    }

    /// The numbers added up, without the constant.
    fn total(&self, values: &[u64]) -> f64 {
        self.numbers.iter().map(|&(at, factor)| values[at] as f64 * factor).sum()
    }

    /// Its value in a stretch of time, in which the numbers grew by so much.
    fn of_stretch(&self, grown: f64, seconds: f64) -> f64 {
        (grown + self.constant) * if self.by_time { seconds } else { 1.0 }
    }
}

/// A formula over the numbers of a sample.
#[derive(Clone, Debug)]
enum CompiledFormula {
    /// Numbers added up, so many times, without others.
    Count { plus: Vec<usize>, minus: Vec<usize>, factor: u64, last: u64 },
    /// A quotient, and its two sums at the sample before.
    Ratio { above: Sum, below: Sum, before: (f64, f64) },
    /// A sum by seconds, and the sum at the sample before.
    Rate { sum: Sum, before: f64 },
}

impl CompiledFormula {
    fn of(
        formula: &Formula,
        counter: &dyn Fn(&str) -> Option<usize>,
        fact: &dyn Fn(Fact) -> Option<f64>,
    ) -> Option<CompiledFormula> {
        let all = |names: &[&str]| names.iter().map(|name| counter(name)).collect::<Option<Vec<_>>>();
        let count = |plus, minus, factor| CompiledFormula::Count { plus, minus, factor, last: 0 };
        Some(match formula {
            Formula::Sum(counters) => count(all(counters)?, Vec::new(), 1),
            Formula::Times(factor, counters) => count(all(counters)?, Vec::new(), *factor),
            Formula::Without([whole, part]) => count(all(&[whole])?, all(&[part])?, 1),
            Formula::Ratio { above, below } => CompiledFormula::Ratio {
                above: Sum::of(above, counter, fact, 1.0)?,
                below: Sum::of(below, counter, fact, 1.0)?,
                before: (0.0, 0.0),
            },
            Formula::Rate(factor, counters) => {
                CompiledFormula::Rate { sum: Sum::of(&Term::Sum(*factor, counters), counter, fact, 1.0)?, before: 0.0 }
            }
            // Of whole launches alone.
            Formula::Greatest(_) => return None,
        })
    }

    /// The formula of two units together.
    fn and(self, other: CompiledFormula) -> CompiledFormula {
        use CompiledFormula::{Count, Rate, Ratio};
        match (self, other) {
            (Count { mut plus, mut minus, factor, last }, Count { plus: more, minus: less, .. }) => {
                plus.extend(more);
                minus.extend(less);
                Count { plus, minus, factor, last }
            }
            (Ratio { above, below, before }, Ratio { above: a, below: b, .. }) => {
                Ratio { above: above.and(a), below: below.and(b), before }
            }
            (Rate { sum, before }, Rate { sum: other, .. }) => Rate { sum: sum.and(other), before },
            // A metric has one formula.
            (first, _) => first,
        }
    }

    /// Its parts at a sample. Where none of its numbers has changed, it does not look at them.
    fn parts(&mut self, values: &[u64], seconds: f64, has_changed: bool) -> Parts {
        match self {
            CompiledFormula::Count { plus, minus, factor, last } => {
                if has_changed {
                    let sum = |rows: &[usize]| rows.iter().fold(0u64, |sum, &at| sum.saturating_add(values[at]));
                    *last = sum(plus).saturating_sub(sum(minus)).saturating_mul(*factor);
                }
                Parts::Sum(*last)
            }
            CompiledFormula::Ratio { above, below, before } => {
                let now = if has_changed { (above.total(values), below.total(values)) } else { *before };
                let (was_above, was_below) = std::mem::replace(before, now);
                let above = above.of_stretch(now.0 - was_above, seconds);
                Parts::Ratio(above, below.of_stretch(now.1 - was_below, seconds))
            }
            CompiledFormula::Rate { sum, before } => {
                let now = if has_changed { sum.total(values) } else { *before };
                let grown = now - std::mem::replace(before, now);
                if seconds > 0.0 { Parts::Rate(grown / seconds) } else { Parts::Ratio(0.0, 0.0) }
            }
        }
    }
}

/// How the values of several units become one, in samples.
#[derive(Clone, Debug)]
enum Gathered {
    /// All together.
    Together(CompiledFormula),
    /// The mean of so many.
    Mean(CompiledFormula, usize),
    /// Each by itself; the least or the greatest of them is taken.
    Extreme(Vec<CompiledFormula>, RollUpKind),
}

/// A metric over units of one GPU, or outside of any, ready for samples.
#[derive(Clone, Debug)]
pub struct CompiledMetric(Gathered);

impl CompiledMetric {
    /// The metric over these units; `None` where none of them gives it.
    pub fn of(
        metric: &Metric,
        roll_up: Option<RollUpKind>,
        units: &[&PlacedUnit],
        rows: &[StatisticRow],
        node: &NodeFacts,
    ) -> Option<CompiledMetric> {
        let units = units.iter().filter(|unit| unit.place == Some(metric.place));
        let formulas: Vec<CompiledFormula> = units
            .filter_map(|unit| {
                let counter = |name: &str| unit.rows.clone().find(|&at| rows[at].what == name);
                let gpu = unit.gpu.map(|gpu| &node.gpus()[gpu]);
                let fact = |fact| fact_of(fact, &unit.location, gpu, node);
                CompiledFormula::of(&metric.formula, &counter, &fact)
            })
            .collect();
        CompiledMetric::gathered(formulas, roll_up.unwrap_or_else(|| metric.usual_roll_up()))
    }

    /// A metric of launches, over numbers that stand for these counters; `None` where these do not suffice.
    pub fn of_launch(
        metric: &Metric,
        counters: &[&str],
        gpu: &GpuDescription,
        node: &NodeFacts,
    ) -> Option<CompiledMetric> {
        let formula = metric.launch_formula()?;
        let counter = |name: &str| {
            let known = KernelCounters::DEFINITIONS[place_of_counter(metric.place, name)?].name;
            counters.iter().position(|counter| *counter == known)
        };
        let is_of_units = metric.place != Place::Launch && matches!(formula, Formula::Ratio { .. });
        let fact = |fact| match fact {
            // A launch has no clock of its own, and may begin and end between samples.
            Fact::MeasuredCycles => None,
            Fact::MeasuredSeconds if is_of_units => None,
            fact => fact_of(fact, "", Some(gpu), node),
        };
        Some(CompiledMetric(Gathered::Together(CompiledFormula::of(&formula, &counter, &fact)?)))
    }

    /// A counter's rows together: their sum, or the greatest of them if it is the greatest of something.
    pub fn of_counter(rows: Vec<usize>, maximum: bool) -> CompiledMetric {
        let count = |plus| CompiledFormula::Count { plus, minus: Vec::new(), factor: 1, last: 0 };
        CompiledMetric(if maximum {
            Gathered::Extreme(rows.into_iter().map(|row| count(vec![row])).collect(), RollUpKind::Max)
        } else {
            Gathered::Together(count(rows))
        })
    }

    fn gathered(formulas: Vec<CompiledFormula>, roll_up: RollUpKind) -> Option<CompiledMetric> {
        let instances = formulas.len();
        if matches!(roll_up, RollUpKind::Min | RollUpKind::Max) && instances > 0 {
            return Some(CompiledMetric(Gathered::Extreme(formulas, roll_up)));
        }
        let together = formulas.into_iter().reduce(CompiledFormula::and)?;
        let is_mean = roll_up == RollUpKind::Avg && !matches!(together, CompiledFormula::Ratio { .. });
        Some(CompiledMetric(if is_mean { Gathered::Mean(together, instances) } else { Gathered::Together(together) }))
    }

    /// Its value at a sample, `seconds` after the one before; `has_changed` says whether any of its numbers has. `None` of a quotient whose
    /// divisor is zero.
    pub fn value(&mut self, values: &[u64], seconds: f64, has_changed: bool) -> Option<Value> {
        match &mut self.0 {
            Gathered::Together(formula) => formula.parts(values, seconds, has_changed).value(),
            Gathered::Mean(formula, instances) => {
                let sum = formula.parts(values, seconds, has_changed).value()?;
                Some(Value::Real(sum.real() / *instances as f64))
            }
            Gathered::Extreme(formulas, kind) => {
                let all = formulas.iter_mut().filter_map(|formula| formula.parts(values, seconds, has_changed).value());
                let by = |a: &Value, b: &Value| a.real().total_cmp(&b.real());
                if *kind == RollUpKind::Min { all.min_by(by) } else { all.max_by(by) }
            }
        }
    }
}

/// A fact of a unit; for a time, the value of one second.
fn fact_of(fact: Fact, location: &str, gpu: Option<&GpuDescription>, node: &NodeFacts) -> Option<f64> {
    match fact {
        Fact::MeasuredSeconds => Some(1.0),
        Fact::MeasuredCycles => Some(node.clock(location)?.hertz() as f64),
        Fact::SubCores => node.sub_cores(location).map(|sub_cores| sub_cores as f64),
        Fact::L1SectorsPerCycle => node.l1_sectors_per_cycle(location).map(|sectors| sectors as f64),
        Fact::SmWarps => Some(f64::from(gpu?.smallest_sm()?.resources.warps)),
        Fact::Sms => Some(f64::from(gpu?.sm_count())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{METRICS, Measurement, find};
    use balar_actors::kinds::UNITS;
    use balar_protocol::SimTime;
    use balar_protocol::kernel_records::KernelRecords;

    /// Two units of each kind of a V100's GPU, in which every counter has another value.
    fn rows() -> (Vec<StatisticRow>, NodeFacts) {
        let topology = crate::sample::node("v100_node");
        let mut rows = Vec::new();
        for (kind, row) in [
            ("StreamingMultiprocessor", "gpu.sm"),
            ("L2Slice", "gpu.l2"),
            ("Crossbar", "gpu.crossbar"),
            ("HbmStack", "gpu.hbm[0].channel"),
        ] {
            let definition = UNITS.iter().find(|unit| unit.name == kind).expect("a kind");
            for index in 0..2 {
                for counter in definition.counters {
                    let location = format!("{row}[{index}]");
                    let value = 1000 + 37 * rows.len() as u64;
                    let (what, unit, maximum) = (counter.name, counter.unit, counter.maximum);
                    rows.push(StatisticRow { location, what, value, unit, maximum });
                }
            }
        }
        (rows, NodeFacts::of(&topology))
    }

    fn numbers(rows: &[StatisticRow]) -> Vec<u64> {
        rows.iter().map(|row| row.value).collect()
    }

    /// A compiled metric over all units of the GPU.
    fn compiled(name: &str, rows: &[StatisticRow], node: &NodeFacts) -> Option<CompiledMetric> {
        let choice = find(name).into_iter().next().unwrap_or_else(|| panic!("{name}"));
        let units = placed_units(rows, node);
        let of_gpu: Vec<&PlacedUnit> = units.iter().filter(|unit| unit.gpu == Some(0)).collect();
        CompiledMetric::of(choice.metric, choice.roll_up, &of_gpu, rows, node)
    }

    /// Over a whole run, a sample says the same as the result, also where the use by copies is measured over all of the run.
    #[test]
    fn a_sample_of_a_whole_run_has_the_values_of_its_result() {
        let (rows, node) = rows();
        let time = SimTime::from_nanoseconds(5000);
        let launches = KernelRecords::default();
        let measured = Measurement::new(&rows, &launches, &node, time);
        let mut compared = 0;
        for metric in METRICS.iter().filter(|metric| metric.place != Place::Launch) {
            let by_time =
                matches!(metric.formula, Formula::Rate(..)) || format!("{}", metric.formula).contains("measured");
            let (Some(mut of_samples), Some(reading), false) =
                (compiled(metric.name, &rows, &node), measured.total(metric), by_time)
            else {
                continue;
            };
            let expected = reading.rolled_up(metric.usual_roll_up()).expect("it has a value").real();
            let actual = of_samples.value(&numbers(&rows), 5e-6, true).expect("it has a value").real();
            assert!((expected - actual).abs() <= 1e-9 * expected.abs(), "{metric}: {expected} {actual}");
            compared += 1;
        }
        assert!(compared > 70, "{compared} metrics");
    }

    #[test]
    fn counts_grow_from_the_beginning_and_quotients_are_of_the_time_since_the_sample_before() {
        let (rows, node) = rows();
        let place = |location: &str, what: &str| {
            rows.iter().position(|row| row.location == location && row.what == what).expect("a row")
        };
        let (executed, active) = (place("gpu.sm[0]", "inst_executed"), place("gpu.sm[0]", "cycles_active"));
        let read = place("gpu.hbm[0].channel[1]", "sectors_read");
        let mut values = vec![0; rows.len()];
        let mut metrics = ["inst_executed", "sm.ipc", "dram.read_throughput", "sm.efficiency", "sm.inst_executed.max"]
            .map(|name| compiled(name, &rows, &node).unwrap_or_else(|| panic!("{name}")));
        let mut at = |values: &[u64], seconds: f64| -> Vec<Option<f64>> {
            metrics.iter_mut().map(|metric| metric.value(values, seconds, true).map(Value::real)).collect()
        };
        assert_eq!(at(&values, 0.0), [Some(0.0), None, None, None, Some(0.0)]);
        (values[executed], values[active], values[read]) = (100, 50, 1000);
        // 1000 sectors of 32 bytes in 1 us are 32 GB/s; 50 of the 2 x 1312 cycles of the two SMs were active.
        let clock = node.clock("gpu.sm[0]").expect("a clock").hertz() as f64;
        let efficiency = 100.0 * 50.0 / (2.0 * clock * 1e-6);
        let measured = at(&values, 1e-6);
        for (value, expected) in measured.iter().zip([100.0, 2.0, 32.0, efficiency, 100.0]) {
            assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{measured:?}, not {expected}");
        }
        (values[executed], values[active]) = (110, 60);
        assert_eq!(at(&values, 1e-6)[..3], [Some(110.0), Some(1.0), Some(0.0)]);
        assert_eq!(at(&values, 1e-6)[..3], [Some(110.0), None, Some(0.0)], "no cycle was active");
    }

    /// A metric whose numbers have not changed is not looked at, and has the value that it would have.
    #[test]
    fn what_has_not_changed_keeps_its_sums() {
        let (rows, node) = rows();
        for name in ["inst_executed", "sm.ipc", "dram.read_throughput", "sm.efficiency", "sm.inst_executed.max"] {
            let mut looked = compiled(name, &rows, &node).unwrap_or_else(|| panic!("{name}"));
            let mut kept = looked.clone();
            let values = numbers(&rows);
            assert_eq!(looked.value(&values, 1e-6, true), kept.value(&values, 1e-6, true), "{name}");
            assert_eq!(looked.value(&values, 2e-6, true), kept.value(&[], 2e-6, false), "{name}");
        }
    }

    #[test]
    fn counters_are_summed_and_maxima_are_not() {
        let values = [3, 5, 4];
        let of = |maximum| CompiledMetric::of_counter(vec![0, 1, 2], maximum).value(&values, 1.0, true);
        assert_eq!((of(false), of(true)), (Some(Value::Count(12)), Some(Value::Count(5))));
    }
}
