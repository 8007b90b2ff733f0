//! The control-flow graph of a kernel or function: basic blocks, and where diverged lanes meet again.

use crate::operation::NEVER;

/// How an instruction passes control on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// To the next instruction.
    Next,
    /// To another one; a conditional one to the next as well.
    Branch { target: u32, conditional: bool },
    /// To one of a table; a conditional one to the next as well.
    Table { table: u32, conditional: bool },
    /// Ends the thread, or returns from the function; a conditional one goes to the next otherwise.
    Exit { conditional: bool },
}

/// Basic blocks, in the order of the text. The block after the last stands for the end of all threads.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// First instruction of each block, and the instruction count at last.
    pub starts: Vec<u32>,
    /// Blocks that follow each block.
    pub successors: Vec<Vec<usize>>,
}

impl Graph {
    /// Blocks, the end not counted.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Cuts code whose last instruction does not go to a next one into blocks. The tables are those that [`Flow::Table`] names.
    pub fn new(flows: &[Flow], tables: &[Vec<u32>]) -> Self {
        let mut leads = vec![false; flows.len() + 1];
        leads[0] = true;
        for (pc, flow) in flows.iter().enumerate() {
            match *flow {
                Flow::Next => continue,
                Flow::Branch { target, .. } => leads[target as usize] = true,
                Flow::Table { table, .. } => {
                    tables[table as usize].iter().for_each(|target| leads[*target as usize] = true)
                }
                Flow::Exit { .. } => {}
            }
            leads[pc + 1] = true;
        }
        leads[flows.len()] = true;
        let starts: Vec<u32> = (0..=flows.len()).filter(|pc| leads[*pc]).map(|pc| pc as u32).collect();
        let block_of = |pc: u32| starts.partition_point(|start| *start <= pc) - 1;
        let end = starts.len() - 1;
        let successors = (0..end)
            .map(|block| {
                let next = block + 1;
                match flows[starts[next] as usize - 1] {
                    Flow::Next => vec![next],
                    Flow::Branch { target, conditional: false } => vec![block_of(target)],
                    Flow::Branch { target, conditional: true } => {
                        let target = block_of(target);
                        if target == next { vec![next] } else { vec![next, target] }
                    }
                    Flow::Table { table, conditional } => {
                        let mut blocks: Vec<usize> =
                            tables[table as usize].iter().map(|target| block_of(*target)).collect();
                        blocks.extend(conditional.then_some(next));
                        blocks.sort_unstable();
                        blocks.dedup();
                        blocks
                    }
                    Flow::Exit { conditional: false } => vec![end],
                    Flow::Exit { conditional: true } => vec![next, end],
                }
            })
            .collect();
        Graph { starts, successors }
    }

    /// For each block, the block where all its paths to the end meet first: its immediate post-dominator. A loop that never ends
    /// is taken to leave for the end from its last block, so that the answer exists for any graph.
    fn post_dominators(&self) -> Vec<usize> {
        let end = self.len();
        let mut predecessors = vec![Vec::new(); end + 1];
        for (block, successors) in self.successors.iter().enumerate() {
            for successor in successors {
                predecessors[*successor].push(block);
            }
        }
        // Post-order of the reversed graph, depth first from the end.
        let mut visited = vec![false; end + 1];
        let mut order = Vec::with_capacity(end + 1);
        let mut forward: Vec<Vec<usize>> = self.successors.clone();
        forward.push(Vec::new());
        loop {
            visited.fill(false);
            order.clear();
            depth_first(end, &predecessors, &mut visited, &mut order);
            // `rposition`: the last block of a loop is where its backward branch is.
            let Some(stuck) = (0..end).rposition(|block| !visited[block]) else { break };
            forward[stuck].push(end);
            predecessors[end].push(stuck);
            // One more edge may free many blocks; those of the same loop at least.
            let mut more = Vec::new();
            depth_first(stuck, &predecessors, &mut visited, &mut more);
            while let Some(stuck) = (0..end).rposition(|block| !visited[block]) {
                forward[stuck].push(end);
                predecessors[end].push(stuck);
                depth_first(stuck, &predecessors, &mut visited, &mut more);
            }
        }
        // Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm".
        let mut number = vec![0; end + 1];
        for (place, block) in order.iter().enumerate() {
            number[*block] = place;
        }
        let mut dominator: Vec<Option<usize>> = vec![None; end + 1];
        dominator[end] = Some(end);
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().rev().filter(|block| **block != end) {
                let mut meet = None;
                for &successor in &forward[block] {
                    if dominator[successor].is_none() {
                        continue;
                    }
                    meet = Some(match meet {
                        None => successor,
                        Some(other) => intersect(&dominator, &number, other, successor),
                    });
                }
                if meet.is_some() && dominator[block] != meet {
                    dominator[block] = meet;
                    changed = true;
                }
            }
        }
        dominator.into_iter().map(|block| block.unwrap_or(end)).collect()
    }

    /// For each block, the instruction where lanes that part at its end meet, or [`NEVER`].
    pub fn reconvergence(&self) -> Vec<u32> {
        let end = self.len();
        let dominators = self.post_dominators();
        (0..end).map(|block| if dominators[block] == end { NEVER } else { self.starts[dominators[block]] }).collect()
    }
}

fn depth_first(from: usize, edges: &[Vec<usize>], visited: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut visited[from], true) {
        return;
    }
    let mut stack = vec![(from, 0)];
    while let Some((node, edge)) = stack.last_mut() {
        if let Some(&next) = edges[*node].get(*edge) {
            *edge += 1;
            if !std::mem::replace(&mut visited[next], true) {
                stack.push((next, 0));
            }
        } else {
            order.push(*node);
            stack.pop();
        }
    }
}

fn intersect(dominator: &[Option<usize>], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = dominator[a].unwrap_or(b);
        }
        while number[b] < number[a] {
            b = dominator[b].unwrap_or(a);
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(target: u32, conditional: bool) -> Flow {
        Flow::Branch { target, conditional }
    }

    #[test]
    fn lanes_meet_at_the_immediate_post_dominator() {
        let exit = Flow::Exit { conditional: false };
        let cases = [
            ("if", vec![branch(2, true), Flow::Next, exit], vec![(0, 2)]),
            ("if and else", vec![branch(3, true), Flow::Next, branch(4, false), Flow::Next, exit], vec![(0, 4)]),
            ("loop", vec![Flow::Next, branch(0, true), exit], vec![(0, 2)]),
            ("early exit", vec![branch(2, true), exit, Flow::Next, exit], vec![(0, NEVER)]),
            ("endless loop", vec![branch(2, true), branch(1, false), exit], vec![(0, NEVER)]),
            // Two entries into the cycle 2-3.
            ("irreducible", vec![branch(3, true), Flow::Next, Flow::Next, branch(2, true), exit], vec![(0, 3), (3, 4)]),
        ];
        for (name, flows, expected) in cases {
            let graph = Graph::new(&flows, &[]);
            let meets = graph.reconvergence();
            for (pc, meet) in expected {
                let block = graph.starts.partition_point(|start| *start <= pc) - 1;
                assert_eq!(meets[block], meet, "{name}: branch at {pc}");
            }
        }
    }
}
