//! Dependences that the scheduler keeps, and instructions that it moves.

use super::*;
use crate::control_flow::Flow;
use crate::liveness::liveness;
use smallvec::smallvec;

const FREE: Node = Node { order: Order::Free, access: None, carries: false, latency: 4 };

fn load(spaces: u8) -> Node {
    Node { access: Some(Access { spaces, writes: false }), latency: 27, ..FREE }
}

fn store(spaces: u8) -> Node {
    Node { order: Order::Chained, access: Some(Access { spaces, writes: true }), latency: 1, ..FREE }
}

const PINNED: Node = Node { order: Order::Pinned, ..FREE };

/// Schedules one block of (node, reads, writes) of 32-bit registers, with an exit behind it that is left out of the result.
fn scheduled(text: &[(Node, &[u32], &[u32])]) -> Vec<u32> {
    let mut nodes: Vec<Node> = text.iter().map(|(node, ..)| *node).collect();
    let mut uses: Vec<Uses> = text
        .iter()
        .map(|&(_, reads, writes)| Uses { reads: reads.into(), writes: writes.into(), guarded: false })
        .collect();
    let mut flows = vec![Flow::Next; text.len()];
    nodes.push(PINNED);
    uses.push(Uses::default());
    flows.push(Flow::Exit { conditional: false });
    let graph = Graph::new(&flows, &[]);
    let mut order = schedule(&graph, &liveness(&graph, &uses, 200), &uses, &nodes, &[Width::One; 200]);
    assert_eq!(order.pop(), Some(text.len() as u32), "the exit stays last");
    order
}

#[test]
fn loads_move_above_the_use_of_earlier_loads() {
    let order = scheduled(&[
        (load(2), &[0], &[1]),
        (FREE, &[1, 9], &[9]),
        (load(2), &[0], &[2]),
        (FREE, &[2, 9], &[9]),
        (load(2), &[0], &[3]),
        (FREE, &[3, 9], &[9]),
        (store(2), &[0, 9], &[]),
    ]);
    assert_eq!(order, [0, 2, 4, 1, 3, 5, 6]);
}

#[test]
fn a_load_passes_stores_of_another_space_only() {
    let block =
        |stored, loaded| scheduled(&[(FREE, &[0], &[1]), (store(stored), &[0, 1], &[]), (load(loaded), &[0], &[2])]);
    assert_eq!(block(1, 2), [2, 0, 1]);
    assert_eq!(block(2, 1), [2, 0, 1]);
    assert_eq!(block(2, 2), [0, 1, 2]);
    assert_eq!(block(2, 7), [0, 1, 2]);
    assert_eq!(block(7, 4), [0, 1, 2]);
}

#[test]
fn nothing_crosses_a_pinned_instruction() {
    let order = scheduled(&[
        (FREE, &[0], &[1]),
        (FREE, &[0], &[6]),
        (load(2), &[0], &[2]),
        (PINNED, &[], &[]),
        (FREE, &[1], &[3]),
        (FREE, &[3], &[5]),
        (load(1), &[0], &[4]),
    ]);
    assert_eq!(order, [2, 0, 1, 3, 6, 4, 5]);
}

#[test]
fn chains_keep_their_order() {
    // Two stores and a volatile load of different spaces. The load would have the longest path.
    let volatile = Node { latency: 200, ..store(1) };
    let order = scheduled(&[(store(2), &[0], &[]), (store(4), &[0], &[]), (volatile, &[0], &[1]), (FREE, &[1], &[2])]);
    assert_eq!(order, [0, 1, 2, 3]);
    let carry = Node { carries: true, ..FREE };
    let slow = Node { carries: true, latency: 40, ..FREE };
    let order = scheduled(&[(carry, &[0], &[1]), (carry, &[0], &[2]), (slow, &[0], &[3]), (FREE, &[3], &[4])]);
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn registers_in_flight_are_bounded() {
    let mut text: Vec<(Node, Vec<u32>, Vec<u32>)> = Vec::new();
    for pair in 0..90 {
        text.push((load(2), vec![0], vec![2 + pair]));
        text.push((FREE, vec![1, 2 + pair], vec![1]));
    }
    let text: Vec<(Node, &[u32], &[u32])> =
        text.iter().map(|(node, reads, writes)| (*node, &reads[..], &writes[..])).collect();
    let order = scheduled(&text);
    let mut in_flight = 0;
    let mut most = 0;
    for index in &order {
        in_flight += if index % 2 == 0 { 1 } else { -1 };
        most = most.max(in_flight);
    }
    assert!((8..=MOST_WORDS_AT_FULL_OCCUPANCY).contains(&most), "{most} loads in flight");
}

#[test]
fn a_guarded_write_follows_the_write_that_it_may_leave() {
    let uses = [
        Uses { reads: smallvec![0], writes: smallvec![1], guarded: false },
        Uses { reads: smallvec![2], writes: smallvec![1], guarded: true },
        Uses { reads: smallvec![1], writes: smallvec![3], guarded: false },
        Uses::default(),
    ];
    let nodes = [FREE, load(1), load(1), PINNED];
    let flows = [Flow::Next, Flow::Next, Flow::Next, Flow::Exit { conditional: false }];
    let graph = Graph::new(&flows, &[]);
    let order = schedule(&graph, &liveness(&graph, &uses, 4), &uses, &nodes, &[Width::One; 4]);
    assert_eq!(order, [0, 1, 2, 3]);
}
