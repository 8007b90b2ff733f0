//! Numbers of the report in units of measure, and cells of tables.

use super::input::RunInput;
use balar_record::kernel_name::short_name;
use balar_report::{Cell, Format, number};

/// Picoseconds as text: "473.7 us".
pub fn time(picoseconds: u64) -> String {
    let value = picoseconds as f64;
    let (value, unit) = match value {
        value if value < 1e6 => (value / 1e3, "ns"),
        value if value < 1e9 => (value / 1e6, "us"),
        value if value < 1e12 => (value / 1e9, "ms"),
        value => (value / 1e12, "s"),
    };
    format!("{}\u{a0}{unit}", number(Some(value), Format::Fixed(if value < 100.0 { 2 } else { 1 })))
}

/// Bytes as text: "1.5 MB".
pub fn bytes(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes < 1e3 => (bytes, "B"),
        bytes if bytes < 1e6 => (bytes / 1e3, "kB"),
        bytes if bytes < 1e9 => (bytes / 1e6, "MB"),
        bytes => (bytes / 1e9, "GB"),
    };
    format!("{}\u{a0}{unit}", number(Some(value), Format::Short))
}

/// A count as text: "845 k".
pub fn count(value: f64) -> String {
    let (value, unit) = match value {
        value if value < 1e5 => return number(Some(value), Format::Count),
        value if value < 1e6 => (value / 1e3, "k"),
        value if value < 1e9 => (value / 1e6, "M"),
        value => (value / 1e9, "G"),
    };
    format!("{}\u{a0}{unit}", number(Some(value), Format::Short))
}

/// A percentage as text.
pub fn percent(value: f64) -> String {
    format!("{}\u{a0}%", number(Some(value), Format::Percent))
}

/// A cell with a number of each run.
pub fn numbers(runs: &[RunInput], of: impl Fn(&RunInput) -> Option<f64>) -> Cell {
    Cell::Numbers(runs.iter().map(of).collect())
}

/// `part / whole`; `None` where that means nothing.
pub fn quotient(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// What a chart or picture of a run is called: with the run's name where there are two, and its GPU's where there are several.
pub fn titled(what: &str, run: &RunInput, gpu: Option<usize>) -> String {
    let mut title = what.to_owned();
    if let Some(gpu) = gpu.filter(|_| run.gpus.len() > 1) {
        title = format!("{title}, {}", run.gpu_name(gpu));
    }
    if run.label.is_empty() { title } else { format!("{}: {title}", run.label) }
}

/// A kernel's name as its source has it.
pub fn kernel_name(name: &str) -> String {
    short_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_that_suit_them() {
        let plain = |text: String| text.replace(['\u{a0}', '\u{202f}'], " ");
        assert_eq!(plain(time(473_707_309)), "473.7 us");
        assert_eq!(plain(time(1_500)), "1.50 ns");
        assert_eq!(plain(time(12_345_678_901)), "12.35 ms");
        assert_eq!((plain(bytes(999.0)), plain(bytes(1.5e6))), ("999 B".into(), "1.50 MB".into()));
        assert_eq!((plain(count(12_345.0)), plain(count(844_904.0))), ("12 345".into(), "845 k".into()));
        assert_eq!(plain(percent(12.34)), "12.3 %");
    }
}
