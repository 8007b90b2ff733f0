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
    /// How many GPUs there are.
    gpus: usize,
    /// (edge, row of the host, GPU).
    to_gpu: Vec<(usize, usize, usize)>,
    /// (edge, GPU, GPU).
    peers: Vec<(usize, usize, usize)>,
    /// Straight down from a card of the host to the next: (edge, upper card), as its place in the column.
    direct: Vec<(usize, usize)>,
    /// Other ones between cards of the host: (edge, upper card, lower card).
    bent: Vec<(usize, usize, usize)>,
}

impl Connectors {
    fn of(model: &Model, host: &[usize]) -> Connectors {
        let mut connectors = Connectors { gpus: model.gpus.len(), ..Connectors::default() };
        let card = |row: usize| host.iter().position(|other| *other == row).unwrap_or(0);
        for (index, edge) in model.edges.iter().enumerate() {
            match (model.rows[edge.client].gpu, model.rows[edge.server].gpu) {
                (Some(a), Some(b)) if a != b => connectors.peers.push((index, a, b)),
                (Some(_), Some(_)) => {}
                (None, Some(gpu)) => connectors.to_gpu.push((index, card(edge.client), gpu)),
                (Some(gpu), None) => connectors.to_gpu.push((index, card(edge.server), gpu)),
                (None, None) => {
                    let (a, b) = (card(edge.client), card(edge.server));
                    connectors.add_in_host(index, a.min(b), a.max(b));
                }
            }
        }
        connectors
    }

    fn add_in_host(&mut self, edge: usize, a: usize, b: usize) {
        if b == a + 1 && !self.direct.iter().any(|(_, upper)| *upper == a) {
            self.direct.push((edge, a));
        } else {
            self.bent.push((edge, a, b));
        }
    }

    /// Those that lead to GPUs of a side.
    fn on(&self, wanted: Side) -> impl Iterator<Item = &(usize, usize, usize)> {
        self.to_gpu.iter().filter(move |(_, _, gpu)| side(*gpu, self.gpus) == wanted)
    }

    fn count_on(&self, wanted: Side) -> i32 {
        self.on(wanted).count() as i32
    }

    /// The GPUs, each with the connectors that come in from elsewhere.
    fn dies(&self, model: &Model) -> Vec<Die> {
        let die = |gpu: usize| {
            let from_host = self.to_gpu.iter().filter(|(_, _, to)| *to == gpu).map(|(edge, ..)| (*edge, Entry::Host));
            let peers = self.peers.iter().filter(|(_, a, b)| *a == gpu || *b == gpu);
            let incoming: Vec<_> = from_host.chain(peers.map(|(edge, ..)| (*edge, Entry::Outer))).collect();
            die::die(model, gpu, &incoming)
        };
        (0..self.gpus).map(die).collect()
    }
}

/// What stands where from left to right.
struct Columns {
    /// Labels and tracks of connectors between GPUs, outside of these.
    outer: i32,
    /// Left edge of the GPUs at the left, and width of the widest.
    die_left: i32,
    left_width: i32,
    /// Left edge of the host's cards.
    column: i32,
    /// Labels of connectors between these.
    host_labels: i32,
    /// Left edge of the GPUs at the right.
    die_right: i32,
    width: i32,
}

impl Columns {
    /// Gutters: labels of the host's own connectors, tracks, labels of connectors to GPUs.
    fn of(connectors: &Connectors, dies: &[Die]) -> Columns {
        let widest = |wanted: Side| {
            let gpus = (0..dies.len()).filter(|gpu| side(*gpu, dies.len()) == wanted);
            gpus.map(|gpu| dies[gpu].width).max()
        };
        let any_left = widest(Side::Left).is_some();
        let left_width = widest(Side::Left).unwrap_or(0);
        let right_width = widest(Side::Right).unwrap_or(0);
        let outer = if connectors.peers.is_empty() { 0 } else { LABEL + connectors.peers.len() as i32 * TRACK };
        let left_gutter = if any_left { LABEL + 20 + connectors.count_on(Side::Left) * TRACK } else { 0 };
        let host_labels = if connectors.bent.is_empty() { 0 } else { LABEL };
        let right_tracks = (connectors.count_on(Side::Right) + connectors.bent.len() as i32) * TRACK;
        let right_gutter = host_labels + 20 + right_tracks + if dies.is_empty() { 0 } else { LABEL };
        let die_left = MARGIN + if any_left { outer } else { 0 };
        let column = die_left + left_width + left_gutter;
        let die_right = column + CARD_WIDTH + right_gutter;
        let width = (die_right + right_width + outer + MARGIN).max(520);
        Columns { outer, die_left, left_width, column, host_labels, die_right, width }
    }
}

/// Left, top, width and height.
type Block = (i32, i32, i32, i32);

/// The node with everything in its place.
struct Plan<'a> {
    model: &'a Model<'a>,
    connectors: Connectors,
    columns: Columns,
    dies: Vec<Die>,
    /// Left and top of each GPU.
    places: Vec<(i32, i32)>,
    /// The host's cards.
    cards: Vec<Block>,
    height: i32,
}

impl<'a> Plan<'a> {
    /// Heights: the GPUs of each side, then the cards of the host against their middle.
    fn of(model: &'a Model<'a>, host: &[usize]) -> Plan<'a> {
        let connectors = Connectors::of(model, host);
        let count = connectors.gpus;
        let dies = connectors.dies(model);
        let columns = Columns::of(&connectors, &dies);
        let crossing = connectors.peers.iter().filter(|(_, a, b)| side(*a, count) != side(*b, count));
        let top = TITLE + crossing.count() as i32 * 30;
        let mut plan = Plan { model, connectors, columns, dies, places: Vec::new(), cards: Vec::new(), height: 0 };
        let mut below = [top, top];
        for (gpu, die) in plan.dies.iter_mut().enumerate() {
            let (left, below) = match side(gpu, count) {
                Side::Left => {
                    die.scene.mirror(die.width);
                    (plan.columns.die_left + plan.columns.left_width - die.width, &mut below[0])
                }
                Side::Right => (plan.columns.die_right, &mut below[1]),
            };
            plan.places.push((left, *below));
            *below += die.height + DIE_GAP;
        }
        plan.cards = plan.cards(host, (top, below[0].max(below[1]) - DIE_GAP));
        let ends = plan.cards.iter().map(|card| card.1 + card.3).chain(below.iter().map(|below| below - DIE_GAP));
        plan.height = ends.max().unwrap_or(top) + MARGIN;
        plan
    }

    /// Height at which a connector meets a GPU.
    fn entry(&self, edge: usize, gpu: usize) -> i32 {
        self.places[gpu].1 + self.dies[gpu].entries.get(&edge).copied().unwrap_or(0)
    }

    /// The boxes of the host's cards, one below the other.
    fn cards(&self, host: &[usize], (top, bottom): (i32, i32)) -> Vec<Block> {
        let Connectors { gpus: count, to_gpu, bent, .. } = &self.connectors;
        let mut cards = Vec::new();
        for (card, row) in host.iter().enumerate() {
            let own = |wanted: Side| {
                to_gpu.iter().filter(|(_, from, gpu)| *from == card && side(*gpu, *count) == wanted).count()
            };
            let inside = bent.iter().map(|(_, a, b)| usize::from(*a == card) + usize::from(*b == card)).sum::<usize>();
            let slots = own(Side::Left).max(own(Side::Right) + inside) as i32;
            let mut height = (die::card_height(&self.model.rows[*row]) + 12).max(slots * SLOT);
            // With one GPU the first card that leads to it is as high as its connectors are apart.
            let ends = to_gpu.iter().filter(|(_, from, _)| *from == card).map(|(edge, _, gpu)| self.entry(*edge, *gpu));
            let (least, most) = (ends.clone().min(), ends.max());
            if let (1, Some(least), Some(most)) = (*count, least, most) {
                height = height.max(most - least + 48);
            }
            cards.push((self.columns.column, 0, CARD_WIDTH, height));
        }
        let total = cards.iter().map(|card| card.3 + CARD_GAP).sum::<i32>() - CARD_GAP;
        let mut next = top + ((bottom - top - total) / 2).max(0);
        if *count == 1 {
            let first =
                to_gpu.iter().filter(|(_, card, _)| *card == 0).map(|(edge, _, gpu)| self.entry(*edge, *gpu)).min();
            next = first.map_or(next, |y| y - 24);
        }
        for card in &mut cards {
            card.1 = next;
            next += card.3 + CARD_GAP;
        }
        cards
    }

    /// Connectors from a card of the host to the next.
    fn draw_direct(&self, scene: &mut Scene) {
        let (cards, column) = (&self.cards, self.columns.column);
        for &(edge, upper) in &self.connectors.direct {
            let x = column + CARD_WIDTH / 3;
            let (from, to) = (cards[upper].1 + cards[upper].3, cards[upper + 1].1);
            let edge = &self.model.edges[edge];
            scene.line(&[(x, from), (x, to)], "connector", &edge.name());
            scene.stands_for(&edge.link_paths());
            let (x, y) = (x + 8, (from + to) / 2);
            let room = CARD_WIDTH * 2 / 3 - 8;
            scene.text_within((x, y - 3), room, Align::Start, "fact", &edge.name());
            let class = if edge.rates.is_empty() { "latency" } else { "rate" };
            scene.text_within((x, y + 12), room, Align::Start, class, &edge.rate());
        }
    }

    /// Connectors to the GPUs of a side.
    fn draw_to_gpus(&self, wanted: Side, scene: &mut Scene) {
        let Columns { die_left, left_width, column, host_labels, die_right, .. } = self.columns;
        let mut all: Vec<(usize, usize, i32)> =
            self.connectors.on(wanted).map(|(edge, card, gpu)| (*edge, *card, self.entry(*edge, *gpu))).collect();
        all.sort_by_key(|(_, card, y)| (*card, *y));
        let starts = starts(&all, &self.cards);
        // Those that go up turn the nearer to the host the higher they are, and those that go down the lower they are.
        let mut turns: Vec<usize> = (0..all.len()).collect();
        turns.sort_by_key(|&i| if all[i].2 < starts[i] { (0, all[i].2) } else { (1, -all[i].2) });
        for (turn, &i) in turns.iter().enumerate() {
            let (edge, _, y) = all[i];
            let start = starts[i];
            let edge = &self.model.edges[edge];
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
            label(edge, (text, y), align, scene);
        }
    }

    /// Connectors between cards of the host that are not neighbours.
    fn draw_bent(&self, scene: &mut Scene) {
        let Columns { column, host_labels, .. } = self.columns;
        let mut used: IndexMap<usize, i32> = IndexMap::new();
        let to_right = self.connectors.count_on(Side::Right);
        for (index, (edge, a, b)) in self.connectors.bent.iter().enumerate() {
            let edge = &self.model.edges[*edge];
            let mut slot = |card: usize| {
                let slots = self.connectors.on(Side::Right).filter(|(_, own, _)| *own == card).count() as i32;
                let used = used.entry(card).or_insert(slots);
                *used += 1;
                self.cards[card].1 + *used * SLOT - SLOT / 2
            };
            let (from, to) = (slot(*a), slot(*b));
            let x = column + CARD_WIDTH;
            let track = x + host_labels + 10 + (to_right + index as i32) * TRACK;
            scene.line(&[(x, from), (track, from), (track, to), (x, to)], "connector", &edge.name());
            scene.stands_for(&edge.link_paths());
            label(edge, (x + 8, from), Align::Start, scene);
        }
    }

    /// Connectors between GPUs run outside of them and, from one side to the other, above them.
    fn draw_peers(&self, scene: &mut Scene) {
        let Connectors { gpus: count, peers, .. } = &self.connectors;
        let Columns { outer, width, .. } = self.columns;
        let side = |gpu: usize| side(gpu, *count);
        let mut above = 0;
        for (index, &(edge, a, b)) in peers.iter().enumerate() {
            let offset = MARGIN + outer - LABEL - index as i32 * TRACK;
            let end = |gpu: usize| match side(gpu) {
                Side::Left => (self.places[gpu].0, offset),
                Side::Right => (self.places[gpu].0 + self.dies[gpu].width, width - offset),
            };
            let ((x1, track1), (x2, track2)) = (end(a), end(b));
            let (y1, y2) = (self.entry(edge, a), self.entry(edge, b));
            let edge = &self.model.edges[edge];
            if side(a) == side(b) {
                scene.line(&[(x1, y1), (track1, y1), (track1, y2), (x2, y2)], "connector", &edge.name());
                scene.stands_for(&edge.link_paths());
                let (x, align) = if side(a) == Side::Left { (x1 - 8, Align::End) } else { (x1 + 8, Align::Start) };
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
}

fn label(edge: &Edge, (x, y): (i32, i32), align: Align, scene: &mut Scene) {
    scene.text_within((x, y - 6), LABEL - 12, align, "fact", &edge.name());
    let class = if edge.rates.is_empty() { "latency" } else { "rate" };
    scene.text_within((x, y + 14), LABEL - 12, align, class, &edge.rate());
}

pub(super) fn svg(topology: &Topology, look: Look) -> String {
    let model = model::model(topology);
    let host: Vec<usize> = (0..model.rows.len()).filter(|row| model.rows[*row].gpu.is_none()).collect();
    let plan = Plan::of(&model, &host);
    let width = plan.columns.width;
    let mut scene = Scene::default();
    scene.text_within((MARGIN, 40), width - 2 * MARGIN, Align::Start, "title", &topology.name);
    let gpus = match plan.dies.len() {
        0 => String::new(),
        1 => "1 GPU \u{b7} ".to_owned(),
        count => format!("{count} GPUs \u{b7} "),
    };
    let contents = format!("{gpus}{} units \u{b7} {} wires", topology.units.len(), topology.wires.len());
    scene.text_within((MARGIN, 62), width - 2 * MARGIN, Align::Start, "subtitle", &contents);
    for (row, block) in host.iter().zip(&plan.cards) {
        die::host_card(&model.rows[*row], *block, &mut scene);
    }
    plan.draw_direct(&mut scene);
    plan.draw_to_gpus(Side::Left, &mut scene);
    plan.draw_to_gpus(Side::Right, &mut scene);
    plan.draw_bent(&mut scene);
    plan.draw_peers(&mut scene);
    for (die, place) in plan.dies.into_iter().zip(&plan.places) {
        scene.append(die.scene, *place);
    }
    scene.svg(width, plan.height, &topology.name, look)
}

/// Where the connectors leave their cards: straight across where the GPU's height is that of the card.
fn starts(all: &[(usize, usize, i32)], cards: &[Block]) -> Vec<i32> {
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
