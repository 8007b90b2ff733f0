//! Pinned snapshots of a run: every number of the result without its wall-clock fields, in a compact text.
//!
//! One line holds one counter of a whole row of units, in the order of their indices, equal neighbours folded:
//!
//! ```text
//! gpu.sm[0..84] warps_launched = 64 x80, 0 x4 (warp)
//! ```

use balar_record::result::{KernelEntry, RunRecord};
use std::collections::BTreeMap;
use std::fmt::Write;

/// First line of every snapshot of this form.
const HEADER: &str = "balar-actors snapshot 1";

/// One pinned value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    location: String,
    what: String,
    value: String,
    unit: String,
}

/// A snapshot: its values in the order of the result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    entries: Vec<Entry>,
}

/// A text that is not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct SnapshotError {
    /// Line, from 1.
    pub line: usize,
    /// What was expected.
    pub problem: &'static str,
}

/// One value that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path of the unit, "run", or "kernel\[3\]".
    pub location: String,
    /// Name of the counter.
    pub what: String,
    /// Pinned value; `None` where the snapshot has none.
    pub old: Option<String>,
    /// Value of this run; `None` where it has none.
    pub new: Option<String>,
}

impl Snapshot {
    /// What a run is pinned to.
    pub fn of(record: &RunRecord) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let run = |what: &str| ("run".to_owned(), what.to_owned());
        snapshot.add(run("topology"), quoted(&record.topology), "");
        snapshot.add(run("workload"), quoted(&record.workload), "");
        for (key, value) in &record.parameters {
            snapshot.add(run(&format!("workload.{key}")), quoted(value), "");
        }
        snapshot.add(run("isa"), quoted(&record.isa), "");
        snapshot.add(run("ended_by"), quoted(record.ending.name()), "");
        snapshot.add(run("completed"), record.completed().to_string(), "");
        snapshot.add(run("verified"), record.verified().map_or("null".to_owned(), |verified| verified.to_string()), "");
        snapshot.add(run("problem"), record.problem().map_or("null".to_owned(), |problem| quoted(&problem)), "");
        let time = record.timed_span().map_or("null".to_owned(), |time| time.picoseconds().to_string());
        snapshot.add(run("sim_time"), time, "ps");
        for (name, value, unit) in record.statistics.outcome.iter().flat_map(|program| &program.results) {
            snapshot.add(run(&format!("result.{}", name.replace(' ', "_"))), value.to_string(), unit);
        }
        for (index, kernel) in record.launches().iter().enumerate() {
            let fields = serde_json::to_value(KernelEntry(&kernel)).unwrap_or_default();
            for (what, value) in fields.as_object().into_iter().flatten() {
                // Snapshots are of timed runs, unless they say otherwise.
                if what == "detail" && kernel.detail.is_timed() {
                    continue;
                }
                snapshot.add((format!("kernel[{index}]"), what.clone()), value.to_string(), "");
            }
        }
        for row in &record.statistics.rows {
            snapshot.add((row.location.clone(), row.what.to_owned()), row.value.to_string(), row.unit);
        }
        snapshot
    }

    fn add(&mut self, (location, what): (String, String), value: String, unit: &str) {
        self.entries.push(Entry { location, what, value, unit: unit.to_owned() });
    }

    /// The text of a snapshot file. Statistics of a row of units share a line where their indices are consecutive.
    pub fn text(&self) -> String {
        let mut groups: Vec<(String, Vec<&Entry>)> = Vec::new();
        let mut known: BTreeMap<(String, &str), usize> = BTreeMap::new();
        for entry in &self.entries {
            let pattern = balar_record::metrics::rollup::pattern(&entry.location);
            let index = *known.entry((pattern.clone(), &entry.what)).or_insert(groups.len());
            if index == groups.len() {
                groups.push((pattern, Vec::new()));
            }
            groups[index].1.push(entry);
        }
        let mut text = format!("{HEADER}\n");
        for (pattern, entries) in groups {
            match ranges(&pattern, &entries) {
                Some(location) => line(&mut text, &location, &entries),
                None => entries.iter().for_each(|entry| line(&mut text, &entry.location, &[entry])),
            }
        }
        text
    }

    /// Reads what [`Snapshot::text`] wrote.
    ///
    /// # Errors
    ///
    /// The first line that is not of a snapshot.
    pub fn parse(text: &str) -> Result<Snapshot, SnapshotError> {
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        if lines.next().map(|(_, line)| line.trim_end()) != Some(HEADER) {
            return Err(SnapshotError { line: 1, problem: "expected \"balar-actors snapshot 1\"" });
        }
        let mut snapshot = Snapshot::default();
        for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
            let error = |problem| SnapshotError { line, problem };
            let (key, rest) = text.split_once(" = ").ok_or(error("expected LOCATION WHAT = VALUES"))?;
            let (location, what) = key.split_once(' ').ok_or(error("expected LOCATION WHAT = VALUES"))?;
            let locations = expand(location).ok_or(error("expected a location, such as gpu.sm[0..84]"))?;
            let (values, unit) = values(rest, locations.len()).map_err(error)?;
            if values.len() != locations.len() {
                return Err(error("expected as many values as the location has units"));
            }
            for (location, value) in locations.into_iter().zip(values) {
                snapshot.add((location, what.to_owned()), value, &unit);
            }
        }
        Ok(snapshot)
    }

    /// What differs in `new`: changed and new values in its order, then what it lacks.
    pub fn differences(&self, new: &Snapshot) -> Vec<Difference> {
        let index = |snapshot: &Snapshot| -> BTreeMap<(String, String), Entry> {
            snapshot.entries.iter().map(|entry| ((entry.location.clone(), entry.what.clone()), entry.clone())).collect()
        };
        let (pinned, present) = (index(self), index(new));
        let key = |entry: &Entry| (entry.location.clone(), entry.what.clone());
        let worded = |entry: &Entry| format!("{} {}", entry.value, entry.unit).trim_end().to_owned();
        let difference = |entry: &Entry, old: Option<&Entry>, new: Option<&Entry>| Difference {
            location: entry.location.clone(),
            what: entry.what.clone(),
            old: old.map(worded),
            new: new.map(worded),
        };
        let moved = new.entries.iter().filter_map(|entry| match pinned.get(&key(entry)) {
            Some(old) if old.value == entry.value && old.unit == entry.unit => None,
            old => Some(difference(entry, old, Some(entry))),
        });
        let gone = self.entries.iter().filter(|entry| !present.contains_key(&key(entry)));
        moved.chain(gone.map(|entry| difference(entry, Some(entry), None))).collect()
    }
}

impl Difference {
    /// Is it a number that moved by at most `percent` of its pinned value?
    pub fn is_within(&self, percent: f64) -> bool {
        self.percent().is_some_and(|moved| moved.abs() <= percent)
    }

    /// How far a number moved, in percent of its pinned value.
    pub fn percent(&self) -> Option<f64> {
        let number = |text: &Option<String>| text.as_ref()?.split(' ').next()?.parse::<f64>().ok();
        let (old, new) = (number(&self.old)?, number(&self.new)?);
        (old != 0.0).then(|| (new - old) / old * 100.0)
    }
}

/// What moved of one counter in a row of units.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Path of the unit; that of several has "\[*\]" for each index.
    pub location: String,
    /// Name of the counter.
    pub what: String,
    /// Units in which it moved.
    pub units: usize,
    /// Pinned value: of several units together where they are numbers.
    pub old: String,
    /// Value of this run, in the same way.
    pub new: String,
    /// The greatest change of one unit, in percent of its pinned value; `None` where the change is no number: of words, of a
    /// value that was zero, of one that came or went.
    pub percent: Option<f64>,
}

/// Rolls differences up by row of units, the greatest relative change first.
pub fn roll_up(differences: &[Difference]) -> Vec<Moved> {
    let mut rows: BTreeMap<(String, &str), Vec<&Difference>> = BTreeMap::new();
    for difference in differences {
        let key = (balar_record::metrics::rollup::pattern(&difference.location), difference.what.as_str());
        rows.entry(key).or_default().push(difference);
    }
    let moved = rows.into_iter().map(|((pattern, what), members)| {
        let changes: Option<Vec<f64>> = members.iter().map(|member| member.percent()).collect();
        let greatest = changes.and_then(|all| all.into_iter().reduce(|a, b| if b.abs() > a.abs() { b } else { a }));
        let location = if members.len() == 1 { members[0].location.clone() } else { pattern };
        Moved {
            location,
            what: what.to_owned(),
            units: members.len(),
            old: together(members.iter().map(|member| member.old.as_deref())),
            new: together(members.iter().map(|member| member.new.as_deref())),
            percent: greatest,
        }
    });
    let mut moved: Vec<Moved> = moved.collect();
    let size = |moved: &Moved| moved.percent.map_or(f64::INFINITY, f64::abs);
    // Those alike keep the order of their names.
    moved.sort_by(|a, b| size(b).total_cmp(&size(a)));
    moved
}

/// One value, or the sum of several.
fn together<'a>(values: impl Iterator<Item = Option<&'a str>>) -> String {
    let values: Vec<Option<&str>> = values.collect();
    if let [value] = values[..] {
        return value.unwrap_or("(absent)").to_owned();
    }
    let parts = || values.iter().flatten().map(|value| value.split_once(' ').unwrap_or((value, "")));
    let numbers: Option<Vec<u128>> = parts().map(|(number, _)| number.parse().ok()).collect();
    match numbers {
        Some(numbers) if !numbers.is_empty() => {
            let unit = parts().next().map_or("", |(_, unit)| unit);
            format!("{} {unit}", numbers.into_iter().sum::<u128>()).trim_end().to_owned()
        }
        Some(_) => "(absent)".to_owned(),
        None => "(several)".to_owned(),
    }
}

/// A string that a snapshot line can hold.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn line(text: &mut String, location: &str, entries: &[&Entry]) {
    write!(text, "{location} {} = ", entries[0].what).expect("a String takes every byte");
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let run = rest.iter().take_while(|entry| entry.value == first.value).count();
        text.push_str(&first.value);
        if run > 1 {
            write!(text, " x{run}").expect("a String takes every byte");
        }
        rest = &rest[run..];
        if !rest.is_empty() {
            text.push_str(", ");
        }
    }
    if !entries[0].unit.is_empty() {
        write!(text, " ({})", entries[0].unit).expect("a String takes every byte");
    }
    text.push('\n');
}

/// "gpu.hbm\[*\].channel\[*\]" with ranges for the indices, where the entries are all of them in order, and share a
/// unit of measure and hold plain values.
fn ranges(pattern: &str, entries: &[&Entry]) -> Option<String> {
    if entries.len() < 2 || entries.iter().any(|entry| entry.unit != entries[0].unit || !is_plain(&entry.value)) {
        return None;
    }
    let pieces: Vec<&str> = pattern.split("[*]").collect();
    let indices = |entry: &Entry| -> Option<Vec<u64>> {
        entry.location.split('[').skip(1).map(|piece| piece.split(']').next()?.parse().ok()).collect()
    };
    let (first, last) = (indices(entries.first()?)?, indices(entries.last()?)?);
    let mut location = String::new();
    for (dimension, piece) in pieces.iter().enumerate() {
        location.push_str(piece);
        if dimension + 1 < pieces.len() {
            let end = last.get(dimension)?.checked_add(1)?;
            write!(location, "[{}..{end}]", first.get(dimension)?).ok()?;
        }
    }
    let expanded = expand(&location)?;
    let same = expanded.len() == entries.len() && expanded.iter().zip(entries).all(|(path, e)| *path == e.location);
    same.then_some(location)
}

/// A number or a word, which needs no quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// All paths of a location with ranges, the last index fastest; `None` where a range is malformed or absurdly long.
fn expand(location: &str) -> Option<Vec<String>> {
    const MOST: usize = 1 << 20;
    let mut paths = vec![String::new()];
    let mut rest = location;
    while let Some((piece, tail)) = rest.split_once('[') {
        let (index, tail) = tail.split_once(']')?;
        let range = match index.split_once("..") {
            Some((start, end)) => start.parse::<usize>().ok()?..end.parse::<usize>().ok()?,
            None => {
                let index = index.parse::<usize>().ok()?;
                index..index.checked_add(1)?
            }
        };
        if range.len().checked_mul(paths.len())? > MOST {
            return None;
        }
        paths = paths.iter().flat_map(|p| range.clone().map(move |index| format!("{p}{piece}[{index}]"))).collect();
        rest = tail;
    }
    paths.iter_mut().for_each(|path| path.push_str(rest));
    (!location.is_empty()).then_some(paths)
}

/// The values of a line, folded ones repeated up to `most` in all, and the unit of measure.
fn values(text: &str, most: usize) -> Result<(Vec<String>, String), &'static str> {
    let text = text.trim_end();
    let (text, unit) = match text.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((values, unit)) if !text.starts_with('"') => (values, unit),
        _ => (text, ""),
    };
    let mut values = Vec::new();
    if most == 1 {
        return Ok((vec![text.to_owned()], unit.to_owned()));
    }
    for run in text.split(", ") {
        let (value, count) = run.split_once(" x").unwrap_or((run, "1"));
        let count: usize = count.parse().map_err(|_| "expected VALUE xCOUNT")?;
        if !is_plain(value) || count == 0 || count > most - values.len() {
            return Err("expected as many values as the location has units");
        }
        values.extend(std::iter::repeat_n(value.to_owned(), count));
    }
    Ok((values, unit.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::statistics::KernelRecord;
    use balar_record::sample::record;

    #[test]
    fn a_snapshot_reads_back() {
        let mut record = record();
        record.statistics.outcome.as_mut().expect("program").error = Some("kernel \"k\" (x) = 3\nline 2".to_owned());
        let snapshot = Snapshot::of(&record);
        let text = snapshot.text();
        let parsed = Snapshot::parse(&text).expect("own text");
        assert_eq!(snapshot.differences(&parsed), []);
        assert_eq!(parsed.differences(&snapshot), []);
        assert_eq!(parsed.entries.len(), snapshot.entries.len());
    }

    #[test]
    fn rows_of_units_share_a_line() {
        let text = Snapshot::of(&record()).text();
        assert!(text.contains("\ngpu.sm[0..2] warps_launched = 8, 5 (warp)\n"), "{text}");
        assert!(text.contains("\ngpu.sm[0..2] inst_barriers = 0 x2 (instruction)\n"), "{text}");
        assert!(text.contains("\nrun topology = \"v100_node\"\n"), "{text}");
        assert!(text.contains("\nkernel[1] grid = [4,2,1]\n"), "{text}");
        assert!(!text.contains("wall") && !text.contains("threads ="), "{text}");
    }

    #[test]
    fn gaps_and_crooked_rows_keep_their_own_lines() {
        let mut record = record();
        record.statistics.rows.retain(|row| row.what == "read_hits");
        record.statistics.rows[1].location = "gpu.l2[1].bank[3]".to_owned();
        let text = Snapshot::of(&record).text();
        assert!(
            text.contains("gpu.l2[0].bank[0] read_hits = 7 (sector)\ngpu.l2[1].bank[3] read_hits = 0 (sector)"),
            "{text}"
        );
    }

    #[test]
    fn differences_name_the_row_and_both_values() {
        let pinned = Snapshot::of(&record());
        let mut moved = record();
        moved.statistics.rows[0].value = 10;
        moved.statistics.kernels = moved.statistics.kernels.iter().take(2).collect();
        let differences = pinned.differences(&Snapshot::of(&moved));
        assert_eq!((differences[0].location.as_str(), differences[0].what.as_str()), ("gpu.sm[0]", "warps_launched"));
        assert_eq!(differences[0].old.as_deref(), Some("8 warp"));
        assert_eq!(differences[0].new.as_deref(), Some("10 warp"));
        assert_eq!(differences[0].percent(), Some(25.0));
        assert!(differences[1..].iter().all(|d| d.location == "kernel[2]" && d.new.is_none()));
    }

    #[test]
    fn rows_of_units_move_together_and_the_farthest_comes_first() {
        let pinned = Snapshot::of(&record());
        let mut other = record();
        for row in &mut other.statistics.rows {
            match row.what {
                // 8 and 5 become 10 and 5; 80 and 50 become 60 and 55; 0 becomes 1 in one of two banks, 7 stays.
                "warps_launched" if row.value == 8 => row.value = 10,
                "inst_executed" => row.value = if row.value == 80 { 60 } else { 55 },
                "read_hits" if row.value == 0 => row.value = 1,
                _ => {}
            }
        }
        let moved = |(index, kernel)| if index == 1 { KernelRecord { cycles: 404, ..kernel } } else { kernel };
        other.statistics.kernels = other.statistics.kernels.iter().enumerate().map(moved).collect();
        let differences = pinned.differences(&Snapshot::of(&other));
        let moved = roll_up(&differences);
        let read: Vec<_> = moved
            .iter()
            .filter(|m| !m.what.ends_with("_per_cycle"))
            .map(|m| (m.location.as_str(), m.what.as_str(), m.units, m.old.as_str(), m.new.as_str(), m.percent))
            .collect();
        let expected = [
            ("gpu.l2[0].bank[1]", "read_hits", 1, "0 sector", "1 sector", None),
            ("gpu.sm[*]", "inst_executed", 2, "130 instruction", "115 instruction", Some(-25.0)),
            ("gpu.sm[0]", "warps_launched", 1, "8 warp", "10 warp", Some(25.0)),
            ("kernel[1]", "cycles", 1, "400", "404", Some(1.0)),
        ];
        assert_eq!(read, expected);
        let left = differences.iter().filter(|difference| !difference.is_within(10.0));
        // One of the two SMs moved by exactly 10 %; what was zero has no percentage, and is never within.
        assert_eq!(left.count(), 3);
    }

    #[test]
    fn threads_and_wall_clock_are_not_pinned() {
        let mut other = record();
        other.threads = 4;
        other.wall = std::time::Duration::from_secs(9);
        assert_eq!(Snapshot::of(&record()).text(), Snapshot::of(&other).text());
    }

    #[test]
    fn damaged_files_are_refused_by_line() {
        for (text, line) in [
            ("", 1),
            ("{}", 1),
            ("balar-actors snapshot 1\nno equals sign\n", 2),
            ("balar-actors snapshot 1\n\ngpu.sm[0..2] a = 1 (warp)\n", 3),
            ("balar-actors snapshot 1\ngpu.sm[0..2] a = 1 x3 (warp)\n", 2),
            ("balar-actors snapshot 1\ngpu.sm[0..2] a = 1 x18446744073709551616 (warp)\n", 2),
            ("balar-actors snapshot 1\ngpu.sm[0..2 a = 1, 2 (warp)\n", 2),
            ("balar-actors snapshot 1\ngpu.sm[0..99999999999] a = 1 (warp)\n", 2),
        ] {
            assert_eq!(Snapshot::parse(text).map_err(|error| error.line), Err(line), "{text:?}");
        }
    }
}
