//! The node around its GPUs: the host's units in a column, GPUs beside it, connectors in the gutters between them.

use super::die::{self, Die, Entry};
use super::model::{self, Edge, Model};
use super::scene::{Align, Look, Scene};
use crate::topology::Topology;
use indexmap::IndexMap;

const MARGIN: i32 = 32;
const TITLE: i32 = 84;
const CARD_WIDTH: i32 = 180;
const CARD_GAP: i32 = 48;
/// Room for the label of a connector.
const LABEL: i32 = 176;
const TRACK: i32 = 14;
const DIE_GAP: i32 = 44;
/// Between connectors that meet one side of a card.
const SLOT: i32 = 42;

/// Which side of the host's column something stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// GPUs stand at the right; more than two stand at both sides, so that no connector has to pass one.
fn side(gpu: usize, count: usize) -> Side {
    if count > 2 && gpu.is_multiple_of(2) { Side::Left } else { Side::Right }
}

/// Every connector by what it joins.
#[derive(Default)]
struct Connectors {
    /// (edge, row of the host, GPU).
    to_gpu: Vec<(usize, usize, usize)>,
    /// (edge, GPU, GPU).
    peers: Vec<(usize, usize, usize)>,
    /// (edge, upper card, lower card), as places in the column.
    in_host: Vec<(usize, usize, usize)>,
}

fn connectors(model: &Model, host: &[usize]) -> Connectors {
    let mut connectors = Connectors::default();
    let card = |row: usize| host.iter().position(|other| *other == row).unwrap_or(0);
    for (index, edge) in model.edges.iter().enumerate() {
        match (model.rows[edge.client].gpu, model.rows[edge.server].gpu) {
            (Some(a), Some(b)) if a != b => connectors.peers.push((index, a, b)),
            (Some(_), Some(_)) => {}
            (None, Some(gpu)) => connectors.to_gpu.push((index, card(edge.client), gpu)),
            (Some(gpu), None) => connectors.to_gpu.push((index, card(edge.server), gpu)),
            (None, None) => {
                let (a, b) = (card(edge.client), card(edge.server));
                connectors.in_host.push((index, a.min(b), a.max(b)));
            }
        }
    }
    connectors
}

fn label(edge: &Edge, (x, y): (i32, i32), align: Align, scene: &mut Scene) {
    scene.text_within((x, y - 6), LABEL - 12, align, "fact", &edge.name());
    let class = if edge.rates.is_empty() { "latency" } else { "rate" };
    scene.text_within((x, y + 14), LABEL - 12, align, class, &edge.rate());
}

pub(super) fn svg(topology: &Topology, look: Look) -> String {
    let model = model::model(topology);
    let host: Vec<usize> = (0..model.rows.len()).filter(|row| model.rows[*row].gpu.is_none()).collect();
    let connectors = connectors(&model, &host);
    let count = model.gpus.len();
    let mut dies: Vec<Die> = (0..count)
        .map(|gpu| {
            let from_host =
                connectors.to_gpu.iter().filter(|(_, _, to)| *to == gpu).map(|(edge, ..)| (*edge, Entry::Host));
            let peers = connectors.peers.iter().filter(|(_, a, b)| *a == gpu || *b == gpu);
            let incoming: Vec<_> = from_host.chain(peers.map(|(edge, ..)| (*edge, Entry::Outer))).collect();
            die::die(&model, gpu, &incoming)
        })
        .collect();

    // Gutters: labels of the host's own connectors, tracks, labels of connectors to GPUs.
    let on = |wanted: Side| connectors.to_gpu.iter().filter(move |(_, _, gpu)| side(*gpu, count) == wanted);
    let is_next = |a: usize, b: usize| b == a + 1;
    let mut direct: Vec<(usize, usize)> = Vec::new();
    let mut bent: Vec<(usize, usize, usize)> = Vec::new();
    for &(edge, a, b) in &connectors.in_host {
        if is_next(a, b) && !direct.iter().any(|(_, upper)| *upper == a) {
            direct.push((edge, a));
        } else {
            bent.push((edge, a, b));
        }
    }
    let any_left = (0..count).any(|gpu| side(gpu, count) == Side::Left);
    let left_width =
        (0..count).filter(|gpu| side(*gpu, count) == Side::Left).map(|gpu| dies[gpu].width).max().unwrap_or(0);
    let right_width =
        (0..count).filter(|gpu| side(*gpu, count) == Side::Right).map(|gpu| dies[gpu].width).max().unwrap_or(0);
    let outer = if connectors.peers.is_empty() { 0 } else { LABEL + connectors.peers.len() as i32 * TRACK };
    let left_gutter = if any_left { LABEL + 20 + on(Side::Left).count() as i32 * TRACK } else { 0 };
    let host_labels = if bent.is_empty() { 0 } else { LABEL };
    let right_tracks = (on(Side::Right).count() + bent.len()) as i32 * TRACK;
    let right_gutter = host_labels + 20 + right_tracks + if count > 0 { LABEL } else { 0 };
    let die_left = MARGIN + if any_left { outer } else { 0 };
    let column = die_left + left_width + left_gutter;
    let die_right = column + CARD_WIDTH + right_gutter;
    let width = (die_right + right_width + outer + MARGIN).max(520);
    let band = connectors.peers.iter().filter(|(_, a, b)| side(*a, count) != side(*b, count)).count() as i32 * 30;
    let top = TITLE + band;

    // Heights: the GPUs of each side, then the cards of the host against their middle.
    let mut below = [top, top];
    let mut places = Vec::new();
    for (gpu, die) in dies.iter_mut().enumerate() {
        let (left, below) = match side(gpu, count) {
            Side::Left => {
                die.scene.mirror(die.width);
                (die_left + left_width - die.width, &mut below[0])
            }
            Side::Right => (die_right, &mut below[1]),
        };
        places.push((left, *below));
        *below += die.height + DIE_GAP;
    }
    let entry = |edge: usize, gpu: usize| places[gpu].1 + dies[gpu].entries.get(&edge).copied().unwrap_or(0);
    let cards =
        cards(&model, &host, &connectors, &bent, count, &entry, (top, below[0].max(below[1]) - DIE_GAP), column);
    let height =
        cards.iter().map(|card| card.1 + card.3).chain(below.iter().map(|below| below - DIE_GAP)).max().unwrap_or(top)
            + MARGIN;

    let mut scene = Scene::default();
    scene.text_within((MARGIN, 40), width - 2 * MARGIN, Align::Start, "title", &topology.name);
    let gpus = match count {
        0 => String::new(),
        1 => "1 GPU \u{b7} ".to_owned(),
        _ => format!("{count} GPUs \u{b7} "),
    };
    let contents = format!("{gpus}{} units \u{b7} {} wires", topology.units.len(), topology.wires.len());
    scene.text_within((MARGIN, 62), width - 2 * MARGIN, Align::Start, "subtitle", &contents);
    for (row, block) in host.iter().zip(&cards) {
        die::host_card(&model.rows[*row], *block, &mut scene);
    }
    for &(edge, upper) in &direct {
        let x = column + CARD_WIDTH / 3;
        let (from, to) = (cards[upper].1 + cards[upper].3, cards[upper + 1].1);
        let edge = &model.edges[edge];
        scene.line(&[(x, from), (x, to)], "connector", &edge.name());
        scene.stands_for(&edge.link_paths());
        let (x, y) = (x + 8, (from + to) / 2);
        let room = CARD_WIDTH * 2 / 3 - 8;
        scene.text_within((x, y - 3), room, Align::Start, "fact", &edge.name());
        let class = if edge.rates.is_empty() { "latency" } else { "rate" };
        scene.text_within((x, y + 12), room, Align::Start, class, &edge.rate());
    }

    // Connectors to GPUs.
    for wanted in [Side::Left, Side::Right] {
        let mut all: Vec<(usize, usize, i32)> =
            on(wanted).map(|(edge, card, gpu)| (*edge, *card, entry(*edge, *gpu))).collect();
        all.sort_by_key(|(_, card, y)| (*card, *y));
        let starts = starts(&all, &cards);
        // Those that go up turn the nearer to the host the higher they are, and those that go down the lower they are.
        let mut turns: Vec<usize> = (0..all.len()).collect();
        turns.sort_by_key(|&i| if all[i].2 < starts[i] { (0, all[i].2) } else { (1, -all[i].2) });
        for (turn, &i) in turns.iter().enumerate() {
            let (edge, _, y) = all[i];
            let start = starts[i];
            let edge = &model.edges[edge];
            let offset = 10 + turn as i32 * TRACK;
            let (x1, track, x2, text, align) = match wanted {
                Side::Left => {
                    let gpu = die_left + left_width;
                    (column, column - offset, gpu, gpu + 8, Align::Start)
                }
                Side::Right => {
                    let x = column + CARD_WIDTH;
                    (x, x + host_labels + offset, die_right, die_right - 8, Align::End)
                }
            };
            let points = if start == y {
                vec![(x1, y), (x2, y)]
            } else {
                vec![(x1, start), (track, start), (track, y), (x2, y)]
            };
            scene.line(&points, "connector", &edge.name());
            scene.stands_for(&edge.link_paths());
            label(edge, (text, y), align, &mut scene);
        }
    }
    // Connectors between cards of the host that are not neighbours.
    let mut used: IndexMap<usize, i32> = IndexMap::new();
    let to_right = on(Side::Right).count() as i32;
    for (index, (edge, a, b)) in bent.iter().enumerate() {
        let edge = &model.edges[*edge];
        let mut slot = |card: usize| {
            let slots = on(Side::Right).filter(|(_, own, _)| *own == card).count() as i32;
            let used = used.entry(card).or_insert(slots);
            *used += 1;
            cards[card].1 + *used * SLOT - SLOT / 2
        };
        let (from, to) = (slot(*a), slot(*b));
        let x = column + CARD_WIDTH;
        let track = x + host_labels + 10 + (to_right + index as i32) * TRACK;
        scene.line(&[(x, from), (track, from), (track, to), (x, to)], "connector", &edge.name());
        scene.stands_for(&edge.link_paths());
        label(edge, (x + 8, from), Align::Start, &mut scene);
    }
    draw_peers(
        &model,
        &connectors.peers,
        count,
        &entry,
        (die_left, die_right, width, outer),
        &places,
        &dies,
        &mut scene,
    );
    for (die, place) in dies.into_iter().zip(&places) {
        scene.append(die.scene, *place);
    }
    scene.svg(width, height, &topology.name, look)
}

/// Where the connectors leave their cards: straight across where the GPU's height is that of the card.
fn starts(all: &[(usize, usize, i32)], cards: &[(i32, i32, i32, i32)]) -> Vec<i32> {
    let mut starts = Vec::new();
    for (i, (_, card, y)) in all.iter().enumerate() {
        let (_, top, _, height) = cards[*card];
        let own: Vec<usize> = (0..all.len()).filter(|j| all[*j].1 == *card).collect();
        let fits = own.iter().all(|j| (top + 8..=top + height - 8).contains(&all[*j].2));
        let rank = own.iter().position(|j| *j == i).unwrap_or(0) as i32;
        starts.push(if fits { *y } else { top + rank * SLOT + SLOT / 2 });
    }
    starts
}

/// The boxes of the host's cards, one below the other.
#[expect(clippy::too_many_arguments, reason = "the whole layout bears on the column")]
fn cards(
    model: &Model,
    host: &[usize],
    connectors: &Connectors,
    bent: &[(usize, usize, usize)],
    count: usize,
    entry: &dyn Fn(usize, usize) -> i32,
    (top, bottom): (i32, i32),
    left: i32,
) -> Vec<(i32, i32, i32, i32)> {
    let mut cards = Vec::new();
    for (card, row) in host.iter().enumerate() {
        let own = |wanted: Side| {
            connectors.to_gpu.iter().filter(|(_, from, gpu)| *from == card && side(*gpu, count) == wanted).count()
        };
        let inside = bent.iter().map(|(_, a, b)| usize::from(*a == card) + usize::from(*b == card)).sum::<usize>();
        let slots = own(Side::Left).max(own(Side::Right) + inside) as i32;
        let mut height = (die::card_height(&model.rows[*row]) + 12).max(slots * SLOT);
        // With one GPU the first card that leads to it is as high as its connectors are apart.
        let ends =
            connectors.to_gpu.iter().filter(|(_, from, _)| *from == card).map(|(edge, _, gpu)| entry(*edge, *gpu));
        let (least, most) = (ends.clone().min(), ends.max());
        if let (1, Some(least), Some(most)) = (count, least, most) {
            height = height.max(most - least + 48);
        }
        cards.push((left, 0, CARD_WIDTH, height));
    }
    let total = cards.iter().map(|card| card.3 + CARD_GAP).sum::<i32>() - CARD_GAP;
    let mut next = top + ((bottom - top - total) / 2).max(0);
    if count == 1 {
        let first =
            connectors.to_gpu.iter().filter(|(_, card, _)| *card == 0).map(|(edge, _, gpu)| entry(*edge, *gpu)).min();
        next = first.map_or(next, |y| y - 24);
    }
    for card in &mut cards {
        card.1 = next;
        next += card.3 + CARD_GAP;
    }
    cards
}

/// Connectors between GPUs run outside of them and, from one side to the other, above them.
#[expect(clippy::too_many_arguments, reason = "the whole layout bears on the connectors around it")]
fn draw_peers(
    model: &Model,
    peers: &[(usize, usize, usize)],
    count: usize,
    entry: &dyn Fn(usize, usize) -> i32,
    (_, _, width, outer): (i32, i32, i32, i32),
    places: &[(i32, i32)],
    dies: &[Die],
    scene: &mut Scene,
) {
    let mut above = 0;
    for (index, &(edge, a, b)) in peers.iter().enumerate() {
        let offset = MARGIN + outer - LABEL - index as i32 * TRACK;
        let end = |gpu: usize| match side(gpu, count) {
            Side::Left => (places[gpu].0, offset),
            Side::Right => (places[gpu].0 + dies[gpu].width, width - offset),
        };
        let ((x1, track1), (x2, track2)) = (end(a), end(b));
        let (y1, y2) = (entry(edge, a), entry(edge, b));
        let edge = &model.edges[edge];
        if side(a, count) == side(b, count) {
            scene.line(&[(x1, y1), (track1, y1), (track1, y2), (x2, y2)], "connector", &edge.name());
            scene.stands_for(&edge.link_paths());
            let (x, align) = if side(a, count) == Side::Left { (x1 - 8, Align::End) } else { (x1 + 8, Align::Start) };
            label(edge, (x, y1), align, scene);
        } else {
            let y = TITLE + 6 + above * 30;
            above += 1;
            scene.line(
                &[(x1, y1), (track1, y1), (track1, y), (track2, y), (track2, y2), (x2, y2)],
                "connector",
                &edge.name(),
            );
            scene.stands_for(&edge.link_paths());
            let text = format!("{} \u{b7} {}", edge.name(), edge.rate());
            scene.text((width / 2, y - 6), Align::Middle, "rate", &text);
        }
    }
}
