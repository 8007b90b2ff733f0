//! `btree`: look-ups in a B+ tree.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

/// The answer of a query that finds nothing.
const NOT_FOUND: i32 = -1;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "btree",
    summary: "look-ups of keys and of ranges in a B+ tree: a block a query, dependent loads from node to node",
    parameters: &[
        integer("keys", 10_000, 1, 1 << 24, "keys in the tree"),
        integer("width", 128, 2, 1024, "keys of a node, and threads of a block"),
        integer("queries", 500, 1, 65_535, "look-ups of each kind"),
        SEED,
    ],
    code: code!("btree"),
    cubins: cubins!("btree"),
    small: "keys=600,width=32,queries=40",
    build,
};

/// A tree packed from sorted keys. Nodes lie level after level, the root first.
struct Tree {
    keys: Vec<i32>,
    children: Vec<i32>,
    /// Levels below the root.
    height: u32,
}

impl Tree {
    fn new(sorted: &[i32], width: usize) -> Self {
        // From the leaves up: each level's keys are the least of each node below.
        let mut levels = vec![sorted.to_vec()];
        while levels[levels.len() - 1].len() > width {
            let above = levels[levels.len() - 1].iter().step_by(width).copied().collect();
            levels.push(above);
        }
        let height = levels.len() as u32 - 1;
        let (mut keys, mut children) = (Vec::new(), Vec::new());
        let mut nodes = 0;
        for (distance, level) in levels.iter().enumerate().rev() {
            // The level below begins where this one ends; the children of leaves are places of records.
            nodes += level.len().div_ceil(width);
            let first_child = if distance == 0 { 0 } else { nodes as i32 };
            for (node, node_keys) in level.chunks(width).enumerate() {
                let end = keys.len() + width;
                keys.extend_from_slice(node_keys);
                keys.resize(end, i32::MAX);
                children.extend((0..node_keys.len()).map(|slot| first_child + (node * width + slot) as i32));
                children.resize(end, 0);
            }
        }
        Tree { keys, children, height }
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [count, width, queries] = ["keys", "width", "queries"].map(|name| parameters.small(name));
    let seed = parameters.integer("seed");
    // Ascending keys with gaps of 1 to 3; the record at each place is random.
    let mut key = -1;
    let keys: Vec<i32> = integers(seed, 0, count as usize)
        .into_iter()
        .map(|bits| {
            key += 1 + (bits % 3) as i32;
            key
        })
        .collect();
    let records: Vec<i32> = integers(seed, 1, count as usize).into_iter().map(|bits| (bits >> 1) as i32).collect();
    let tree = Tree::new(&keys, width as usize);

    // Keys that may lie in a gap, and from the first key on, so that every descent finds a way.
    let span = (key - keys[0] + 1) as u32;
    let wanted: Vec<i32> =
        integers(seed, 2, queries as usize).into_iter().map(|bits| keys[0] + (bits % span) as i32).collect();
    let answers: Vec<i32> =
        wanted.iter().map(|key| keys.binary_search(key).map_or(NOT_FOUND, |place| records[place])).collect();
    // Ranges from a key to a later one.
    let starts: Vec<i32> = integers(seed, 3, queries as usize).into_iter().map(|bits| (bits % count) as i32).collect();
    let lengths: Vec<i32> = integers(seed, 4, queries as usize)
        .into_iter()
        .zip(&starts)
        .map(|(bits, start)| 1 + (bits % (count - *start as u32)) as i32)
        .collect();
    let firsts: Vec<i32> = starts.iter().map(|start| keys[*start as usize]).collect();
    let lasts: Vec<i32> =
        starts.iter().zip(&lengths).map(|(start, length)| keys[(start + length - 1) as usize]).collect();

    let mut script = Script::default();
    let inputs = [&tree.keys, &tree.children, &records, &wanted, &firsts, &lasts];
    let inputs = inputs.map(|values| script.allocate_with(values));
    let [tree_keys, children, records, wanted, firsts, lasts] = inputs.map(Argument::Buffer);
    let bytes = u64::from(queries) * 4;
    let outputs = [(); 3].map(|()| script.allocate(bytes));
    for output in outputs {
        script.fill(output, 0xff, bytes, Queue::Default);
    }
    let [found, found_starts, found_lengths] = outputs.map(Argument::Buffer);
    let (width_in, height) = (Argument::U32(width), Argument::U32(tree.height));
    let shape = Shape::linear(queries, width);
    script.launch("btree_find", shape, &[tree_keys, children, records, wanted, found, width_in, height]);
    let arguments = [tree_keys, children, firsts, lasts, found_starts, found_lengths, width_in, height];
    script.launch("btree_find_range", shape, &arguments);
    let transfers = outputs.map(|output| script.download(output, bytes, Queue::Default));
    for buffer in inputs.into_iter().chain(outputs) {
        script.release(buffer);
    }
    let mut comparisons = Comparisons::default();
    comparisons.add(transfers[0], "the answer to query", answers);
    comparisons.add(transfers[1], "the first place of range", starts);
    comparisons.add(transfers[2], "the length of range", lengths);
    script.finish(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A descent by the definition of the tree finds every key at its place, for whole and for partial levels.
    #[test]
    fn every_key_is_found() {
        for (count, width) in [(1, 2), (2, 2), (3, 2), (64, 4), (65, 4), (1000, 10), (77, 100)] {
            let sorted: Vec<i32> = (0..count).map(|index| index * 2).collect();
            let tree = Tree::new(&sorted, width);
            for (place, key) in sorted.iter().enumerate() {
                let mut node = 0;
                for level in 0..=tree.height {
                    let keys = &tree.keys[node * width..][..width];
                    let slot = keys.iter().rposition(|found| found <= key).unwrap();
                    let child = tree.children[node * width + slot] as usize;
                    if level == tree.height {
                        assert_eq!((keys[slot], child), (*key, place), "{count} keys, width {width}");
                    }
                    node = child;
                }
            }
        }
    }
}
