//! Metrics: the rows of the catalogue.

use super::formula::Formula;
use super::launch_counters::is_of_launches;
use super::place::Place;
use balar_actors::kinds::UNITS;
use balar_protocol::statistics::StatisticDefinition;
use std::fmt;

/// Whose name for a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Ours: a dotted path, "sm.inst_executed".
    Own,
    /// An event of nvprof: counts, summed over units.
    NvprofEvent,
    /// A metric of nvprof.
    NvprofMetric,
    /// A metric of Nsight Compute, without the ending that says how units are rolled up where several are known.
    Ncu,
    /// The names that GPGPU-Sim and Accel-Sim print.
    GpgpuSim,
    /// A statistic of SST, as component and statistic; N stands for the component's number.
    Sst,
}

impl Dialect {
    /// All of them; a name is looked for in this order.
    pub const ALL: [Dialect; 6] =
        [Dialect::Own, Dialect::NvprofEvent, Dialect::NvprofMetric, Dialect::Ncu, Dialect::GpgpuSim, Dialect::Sst];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Own => "balar-actors",
            Dialect::NvprofEvent => "nvprof event",
            Dialect::NvprofMetric => "nvprof metric",
            Dialect::Ncu => "ncu",
            Dialect::GpgpuSim => "GPGPU-Sim",
            Dialect::Sst => "SST",
        }
    }
}

/// How the values of several units become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollUpKind {
    /// Their sum.
    Sum,
    /// Their mean; for a ratio, the ratio of the sums.
    Avg,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl RollUpKind {
    /// All of them.
    pub const ALL: [RollUpKind; 4] = [RollUpKind::Sum, RollUpKind::Avg, RollUpKind::Min, RollUpKind::Max];

    /// The ending of a name that asks for it.
    pub fn ending(self) -> &'static str {
        match self {
            RollUpKind::Sum => ".sum",
            RollUpKind::Avg => ".avg",
            RollUpKind::Min => ".min",
            RollUpKind::Max => ".max",
        }
    }
}

/// A row of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Our name for it.
    pub name: &'static str,
    /// Whose units count it.
    pub place: Place,
    /// How it is made of counters.
    pub formula: Formula,
    /// Names in other dialects.
    pub names: &'static [(Dialect, &'static str)],
    pub(super) unit: &'static str,
    pub(super) meaning: &'static str,
}

impl Metric {
    /// Its names in a dialect.
    pub fn names_in(&self, dialect: Dialect) -> impl Iterator<Item = &'static str> {
        let own = (dialect == Dialect::Own).then_some(self.name);
        own.into_iter().chain(self.names.iter().filter(move |(of, _)| *of == dialect).map(|(_, name)| *name))
    }

    /// Its unit of measure: "instruction", "%", "instruction/cycle".
    pub fn unit(&self) -> &'static str {
        match self.counter() {
            Some(counter) if self.unit.is_empty() => counter.unit,
            _ => self.unit,
        }
    }

    /// One line of meaning.
    pub fn meaning(&self) -> &'static str {
        match self.counter() {
            Some(counter) if self.meaning.is_empty() => counter.meaning,
            _ => self.meaning,
        }
    }

    /// The counter that it is, where it is one counter as units declare it.
    fn counter(&self) -> Option<&'static StatisticDefinition> {
        let Formula::Sum([counter]) = self.formula else { return None };
        let kinds =
            UNITS.iter().filter(|kind| self.place.is_signed_by(|sign| kind.counters.iter().any(|c| c.name == sign)));
        kinds.flat_map(|kind| kind.counters).find(|definition| definition.name == *counter)
    }

    /// How it is rolled up unless a name says it: a count by its sum, a ratio by that of the sums.
    pub fn usual_roll_up(&self) -> RollUpKind {
        match self.formula {
            Formula::Ratio { .. } | Formula::Greatest(_) => RollUpKind::Avg,
            _ => RollUpKind::Sum,
        }
    }

    /// Is it counted, and no quotient or rate?
    pub fn is_count(&self) -> bool {
        !matches!(self.formula, Formula::Ratio { .. } | Formula::Rate(..) | Formula::Greatest(_))
    }

    /// Is it known of each launch?
    pub fn is_of_launches(&self) -> bool {
        self.launch_formula().is_some()
    }

    /// The formula over the counters of a launch; `None` where these do not suffice.
    pub fn launch_formula(&self) -> Option<Formula> {
        let is_kept = matches!(self.place, Place::Launch | Place::Sm | Place::L2 | Place::Crossbar | Place::Dram);
        let is_known = |counter: &str| is_of_launches(self.place, counter);
        (is_kept && self.formula.counters().all(is_known)).then_some(self.formula)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
