//! Kernels by the named ranges that they were launched in (NVTX), which a program opens for its steps, modules and operators.

use balar_protocol::ranges::RangePath;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The row of launches that are in no range.
pub const IN_NO_RANGE: &str = "(in no range)";

/// The sums of several launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSums {
    /// Launches.
    pub launches: u64,
    /// Those whose time was simulated.
    pub timed: u64,
    /// Time of these, ps.
    pub picoseconds: u64,
    /// SM-clock cycles of these.
    pub cycles: u64,
    /// Warp instructions of all.
    pub instructions: u64,
}

impl RangeSums {
    /// The sums of one launch; `picoseconds` is `None` where its time was not simulated.
    pub fn of_launch(picoseconds: Option<u64>, cycles: u64, instructions: u64) -> RangeSums {
        let timed = u64::from(picoseconds.is_some());
        RangeSums { launches: 1, timed, picoseconds: picoseconds.unwrap_or(0), cycles, instructions }
    }

    fn add(&mut self, other: RangeSums) {
        self.launches += other.launches;
        self.timed += other.timed;
        self.picoseconds = self.picoseconds.saturating_add(other.picoseconds);
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.instructions = self.instructions.saturating_add(other.instructions);
    }
}

/// The launches of a run, by their ranges.
pub type ByRange = BTreeMap<Option<RangePath>, RangeSums>;

/// Adds up launches that are of one range; `None` where none is of any.
pub fn by_range(launches: impl Iterator<Item = (Option<RangePath>, RangeSums)>) -> Option<ByRange> {
    let mut all = ByRange::new();
    for (range, sums) in launches {
        all.entry(range).or_default().add(sums);
    }
    all.keys().any(Option::is_some).then_some(all)
}

/// A range in each of some runs, with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRow {
    /// In how many others it stands.
    pub depth: usize,
    /// Its name. A range that has nothing but another one in it has both names, and so on.
    pub name: String,
    /// The sums of its launches and of the launches of ranges in it, in each run.
    pub sums: Vec<RangeSums>,
}

impl RangeRow {
    /// The order of ranges: the time in the run in which a range takes longest, then instructions.
    fn weight(&self) -> (u64, u64) {
        weight(&self.sums)
    }
}

fn weight(sums: &[RangeSums]) -> (u64, u64) {
    let most = |of: fn(&RangeSums) -> u64| sums.iter().map(of).max().unwrap_or(0);
    (most(|sums| sums.picoseconds), most(|sums| sums.instructions))
}

/// A range while the tree is built.
struct Node {
    sums: Vec<RangeSums>,
    inner: BTreeMap<String, Node>,
}

impl Node {
    fn new(runs: usize) -> Node {
        Node { sums: vec![RangeSums::default(); runs], inner: BTreeMap::new() }
    }

    /// Its rows, and those of all that is in it, the longest first.
    fn rows(self, mut name: String, depth: usize, rows: &mut Vec<RangeRow>) {
        let Node { sums, mut inner } = self;
        // A range of nothing but another one is one row with it.
        while inner.len() == 1
            && let Some(mut only) = inner.first_entry()
            && only.get().sums == sums
        {
            name = format!("{name} > {}", only.key());
            let below = std::mem::take(&mut only.get_mut().inner);
            inner = below;
        }
        rows.push(RangeRow { depth, name, sums });
        rows_of(inner, depth + 1, rows);
    }
}

/// The rows of ranges side by side.
fn rows_of(ranges: BTreeMap<String, Node>, depth: usize, rows: &mut Vec<RangeRow>) {
    let mut ranges: Vec<(String, Node)> = ranges.into_iter().collect();
    ranges.sort_by_key(|(_, node)| Reverse(weight(&node.sums)));
    ranges.into_iter().for_each(|(name, node)| node.rows(name, depth, rows));
}

/// The ranges of runs, each followed by those in it, the longest first; at the end the launches that are in none.
pub fn tree(runs: &[ByRange]) -> Vec<RangeRow> {
    let mut root = Node::new(runs.len());
    let mut outside = vec![RangeSums::default(); runs.len()];
    for (run, ranges) in runs.iter().enumerate() {
        for (range, sums) in ranges {
            let Some(range) = range else {
                outside[run].add(*sums);
                continue;
            };
            let mut node = &mut root;
            for name in range.names() {
                node = node.inner.entry(name.to_owned()).or_insert_with(|| Node::new(runs.len()));
                node.sums[run].add(*sums);
            }
        }
    }
    let mut rows = Vec::new();
    rows_of(root.inner, 0, &mut rows);
    if outside.iter().any(|sums| sums.launches > 0) {
        rows.push(RangeRow { depth: 0, name: IN_NO_RANGE.to_owned(), sums: outside });
    }
    rows
}

/// The heaviest rows of a tree, at most so many, in the order of the tree; and how many there are more.
pub fn heaviest(rows: Vec<RangeRow>, most: usize) -> (Vec<RangeRow>, usize) {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    // An outer range is as heavy as those in it, and stands before them.
    order.sort_by_key(|&row| Reverse(rows[row].weight()));
    order.truncate(most);
    let hidden = rows.len() - order.len();
    let mut is_shown = vec![false; rows.len()];
    order.into_iter().for_each(|row| is_shown[row] = true);
    let shown = rows.into_iter().zip(is_shown).filter_map(|(row, is_shown)| is_shown.then_some(row));
    (shown.collect(), hidden)
}

/// Launches by the name of their innermost range, wherever that stands, the longest first: the operators of a framework.
pub fn innermost(runs: &[ByRange]) -> Vec<RangeRow> {
    let mut names: BTreeMap<&str, Vec<RangeSums>> = BTreeMap::new();
    for (run, ranges) in runs.iter().enumerate() {
        for (range, sums) in ranges {
            let name = range.as_ref().and_then(|range| range.names().last()).unwrap_or(IN_NO_RANGE);
            names.entry(name).or_insert_with(|| vec![RangeSums::default(); runs.len()])[run].add(*sums);
        }
    }
    let rows = names.into_iter().map(|(name, sums)| RangeRow { depth: 0, name: name.to_owned(), sums });
    let mut rows: Vec<RangeRow> = rows.collect();
    rows.sort_by_key(|row| Reverse(row.weight()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches() -> ByRange {
        let launch = |range: &str, picoseconds| {
            let sums = RangeSums::of_launch(Some(picoseconds), picoseconds / 700, 8);
            ((!range.is_empty()).then(|| RangePath::read(range)), sums)
        };
        let launches = [
            launch("", 50),
            launch("step > forward > linear > mm", 300),
            launch("step > forward > linear > mm", 300),
            launch("step > forward > relu", 20),
            launch("step > backward > mm", 900),
        ];
        by_range(launches.into_iter()).expect("some are of ranges")
    }

    fn shown(rows: &[RangeRow]) -> Vec<(usize, &str, u64, u64)> {
        let row = |row: &RangeRow| (row.sums[0].launches, row.sums[0].picoseconds);
        rows.iter().map(|it| (it.depth, &*it.name, row(it).0, row(it).1)).collect()
    }

    #[test]
    fn a_tree_has_the_longest_first_and_one_row_for_what_is_one() {
        let rows = tree(&[launches()]);
        let expected = [
            (0, "step", 4, 1520),
            (1, "backward > mm", 1, 900),
            (1, "forward", 3, 620),
            (2, "linear > mm", 2, 600),
            (2, "relu", 1, 20),
            (0, IN_NO_RANGE, 1, 50),
        ];
        assert_eq!(shown(&rows), expected);
        let (heaviest, hidden) = heaviest(rows, 4);
        assert_eq!((shown(&heaviest), hidden), (expected[..4].to_vec(), 2));
    }

    #[test]
    fn operators_are_added_up_wherever_they_stand() {
        assert_eq!(shown(&innermost(&[launches()])), [(0, "mm", 3, 1500), (0, IN_NO_RANGE, 1, 50), (0, "relu", 1, 20)]);
    }

    #[test]
    fn two_runs_stand_side_by_side() {
        let shorter = by_range(
            [(Some(RangePath::read("step > new")), RangeSums { launches: 2, ..RangeSums::default() })].into_iter(),
        );
        let rows = tree(&[launches(), shorter.expect("of a range")]);
        let new = rows.iter().find(|row| row.name == "new").expect("in the tree");
        assert_eq!((new.depth, new.sums[0].launches, new.sums[1].launches), (1, 0, 2));
        assert_eq!(by_range([(None, RangeSums::default())].into_iter()), None);
    }
}
