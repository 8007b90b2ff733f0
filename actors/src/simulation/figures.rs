//! Figures of a run, by name.

use super::RunResult;

impl RunResult {
    /// Cycles of all launches of a kernel together, by the SMs' clock; `None` where no kernel has this name.
    pub fn kernel_cycles(&self, kernel: &str) -> Option<u64> {
        let launches = self.statistics.kernels.iter().filter(|launch| &*launch.name == kernel);
        launches.map(|launch| launch.cycles).reduce(|sum, cycles| sum + cycles)
    }

    /// A counter's sum over a row of units, "gpu.sm", or its value in one, "gpu.sm\[3\]"; `None` where no such unit has such a counter.
    pub fn sum(&self, units: &str, counter: &str) -> Option<u64> {
        self.values(units, counter).reduce(|sum, value| sum + value)
    }

    /// A counter's largest value in a row of units; `None` where no such unit has such a counter.
    pub fn maximum(&self, units: &str, counter: &str) -> Option<u64> {
        self.values(units, counter).max()
    }

    /// A value that the program reports of itself, such as "cycles_per_access"; `None` where it does not.
    pub fn reported(&self, name: &str) -> Option<f64> {
        let results = &self.program.as_ref()?.results;
        results.iter().find(|(what, _, _)| what == name).map(|(_, value, _)| *value)
    }

    fn values(&self, units: &str, counter: &str) -> impl Iterator<Item = u64> {
        let in_row = move |location: &str| {
            let rest = location.strip_prefix(units);
            rest.is_some_and(|rest| {
                rest.is_empty() || (rest.starts_with('[') && rest.ends_with(']') && !rest.contains('.'))
            })
        };
        let rows = self.statistics.rows.iter();
        rows.filter(move |row| row.what == counter && in_row(&row.location)).map(|row| row.value)
    }
}
