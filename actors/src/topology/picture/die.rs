//! One GPU: its die with the SMs above the crossbar, the L2 and the memory at its edge, and the other units beside them.

use super::facts;
use super::model::{Edge, Model, Row};
use super::scene::{Align, Scene};
use indexmap::IndexMap;

const PAD: i32 = 18;
const SIDE_WIDTH: i32 = 138;
const SIDE_GAP: i32 = 14;
const BAND_WIDTH: i32 = 480;
/// Room for a label between a unit at the side and the tracks.
const LABEL: i32 = 70;
const TRACK: i32 = 10;
/// Between bands, with wires and their label.
const BAND_GAP: i32 = 30;
const HEAD: i32 = 62;
/// From the frame of the package to that of the die.
const RIM: i32 = 12;
/// Between connectors that pass above the die, with room for their labels outside of it.
const PASSAGE: i32 = 36;
const MOST_SQUARES: usize = 1024;
/// Height of the box of a unit among others of its row.
const TICK: i32 = 14;

/// Side of the die at which something comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Host,
    Outer,
}

/// A GPU drawn with the host at its left.
pub(super) struct Die {
    pub(super) scene: Scene,
    pub(super) width: i32,
    pub(super) height: i32,
    /// For each edge that comes in from elsewhere: where it meets the frame, from the top.
    pub(super) entries: IndexMap<usize, i32>,
}

/// Where a row stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    left: i32,
    top: i32,
    width: i32,
    height: i32,
}

impl Place {
    fn block(self) -> (i32, i32, i32, i32) {
        (self.left, self.top, self.width, self.height)
    }
    fn bottom(self) -> i32 {
        self.top + self.height
    }
    fn middle(self) -> i32 {
        self.left + self.width / 2
    }
}

/// The rows on the way from the SMs to memory, by level, and the others.
struct Order {
    bands: Vec<Vec<usize>>,
    side: Vec<usize>,
}

fn reach(start: &[usize], edges: &[&Edge], forward: bool) -> Vec<usize> {
    let mut found = start.to_vec();
    let mut at = 0;
    while at < found.len() {
        for edge in edges {
            let (from, to) = if forward { (edge.client, edge.server) } else { (edge.server, edge.client) };
            if from == found[at] && !found.contains(&to) {
                found.push(to);
            }
        }
        at += 1;
    }
    found
}

fn order(model: &Model, members: &[usize], edges: &[&Edge]) -> Order {
    let of =
        |is: &dyn Fn(&Row) -> bool| members.iter().copied().filter(|row| is(&model.rows[*row])).collect::<Vec<_>>();
    let (sms, memories) = (of(&|row| row.is_sm()), of(&|row| row.is_memory()));
    let (after, before) = (reach(&sms, edges, true), reach(&memories, edges, false));
    let is_core = |row: &Row| row.is_sm() || row.is_l2() || row.is_memory();
    let main: Vec<usize> = members
        .iter()
        .copied()
        .filter(|row| is_core(&model.rows[*row]) || (after.contains(row) && before.contains(row)))
        .collect();
    let mut level: IndexMap<usize, usize> = main.iter().map(|row| (*row, 0)).collect();
    // In a ring, as far as one pass a row takes it.
    for _ in 0..main.len() {
        for edge in edges {
            if let (Some(&from), Some(&to)) = (level.get(&edge.client), level.get(&edge.server))
                && edge.client != edge.server
                && to <= from
                && from + 1 < main.len()
            {
                level.insert(edge.server, from + 1);
            }
        }
    }
    // Device memory stands at the edge, below everything else.
    let last = main.iter().filter(|row| !model.rows[**row].is_memory()).map(|row| level[row]).max().unwrap_or(0);
    for row in &memories {
        level.insert(*row, last + 1);
    }
    let mut bands: Vec<Vec<usize>> = Vec::new();
    for wanted in 0..=last + 1 {
        let band: Vec<usize> = main.iter().copied().filter(|row| level[row] == wanted).collect();
        if !band.is_empty() {
            bands.push(band);
        }
    }
    let mut side: Vec<usize> = members.iter().copied().filter(|row| !main.contains(row)).collect();
    // The units whose wires lead to upper bands stand higher, so that few wires cross.
    let depth = |row: usize| {
        let others = edges.iter().filter_map(|edge| match (edge.client == row, edge.server == row) {
            (true, false) => Some(edge.server),
            (false, true) => Some(edge.client),
            _ => None,
        });
        others.filter_map(|other| bands.iter().position(|band| band.contains(&other))).min().unwrap_or(bands.len())
    };
    side.sort_by_key(|row| depth(*row));
    Order { bands, side }
}

/// SMs in clusters of equal size where their number allows it, two rows of them in each.
fn clusters(count: usize) -> usize {
    let fits = |clusters: &usize| count.is_multiple_of(*clusters) && count >= 3 * clusters;
    let numbers = [6, 8, 4, 5, 7, 3, 2];
    let even = numbers.into_iter().find(|clusters| fits(clusters) && (count / clusters).is_multiple_of(2));
    even.or_else(|| numbers.into_iter().find(fits)).unwrap_or(1)
}

/// Height of a band's row, and with `scene` its drawing.
fn band(row: &Row, at: Place, scene: Option<&mut Scene>) -> i32 {
    let mut unused = Scene::default();
    let scene = scene.unwrap_or(&mut unused);
    let tooltip = &row.name;
    let class = if row.is_own() { "own" } else { "area" };
    let caption = |scene: &mut Scene, text: &str| {
        scene.text_within((at.left + 8, at.top + 17), at.width - 16, Align::Start, "caption", text);
    };
    if row.is_sm() {
        let shown = row.units.len().min(MOST_SQUARES);
        let count = clusters(shown);
        let across = if count > 3 { count.div_ceil(2) } else { count } as i32;
        let down = (count as i32 + across - 1) / across;
        let each = shown.div_ceil(count);
        let cluster_width = (at.width - 8) / across - 8;
        let columns = (each.div_ceil(2) as i32).clamp(1, (cluster_width - 4) / 12);
        let lines = (each as i32 + columns - 1) / columns;
        let step = ((cluster_width - 4) / columns).min(28);
        let cluster_height = lines * step + 6;
        let height = 26 + down * (cluster_height + 8);
        scene.block((at.left, at.top, at.width, height), class, tooltip);
        caption(scene, &facts::sms(row));
        for cluster in 0..count as i32 {
            let left = at.left + 8 + cluster % across * (cluster_width + 8);
            let top = at.top + 26 + cluster / across * (cluster_height + 8);
            scene.block((left, top, cluster_width, cluster_height), "cluster", tooltip);
            let inset = (cluster_width - columns * step + 4) / 2;
            let from = cluster as usize * each;
            for (index, unit) in row.units.iter().take(shown).skip(from).take(each).enumerate() {
                let (x, y) = (index as i32 % columns, index as i32 / columns);
                let square = (left + inset + x * step, top + 5 + y * step, step - 4, step - 4);
                scene.block(square, "sm", &unit.path);
                scene.stands_for(&unit.path);
            }
        }
        return height;
    }
    if row.is_l2() || row.is_memory() {
        let is_memory = row.is_memory();
        let most = if is_memory { 8 } else { 64 };
        let lines = row.units.len().div_ceil(most) as i32;
        let columns = (row.units.len() as i32 + lines - 1) / lines;
        let (gap, each, fill) = if is_memory { (10, 42, "memory") } else { (2, 22, "l2") };
        let height = 26 + lines * (each + gap) + 8 - gap;
        scene.block((at.left, at.top, at.width, height), class, tooltip);
        caption(scene, &if is_memory { facts::memory(row) } else { facts::l2(row) });
        let inner = at.width - 16 + gap;
        for (index, unit) in row.units.iter().enumerate() {
            let (x, y) = (index as i32 % columns, index as i32 / columns);
            let (left, right) = (at.left + 8 + x * inner / columns, at.left + 8 + (x + 1) * inner / columns - gap);
            let top = at.top + 26 + y * (each + gap);
            scene.block((left, top, right - left, each), fill, &unit.path);
            scene.stands_for(&unit.path);
            if is_memory && right - left >= 44 {
                let (size, rate) = facts::stack(unit);
                let (middle, width) = ((left + right) / 2, right - left - 4);
                scene.text_within((middle, top + 17), width, Align::Middle, "caption", &size);
                scene.text_within((middle, top + 33), width, Align::Middle, "rate", &rate);
            }
        }
        return height;
    }
    if row.units.len() > 1 {
        scene.block((at.left, at.top, at.width, 48), class, tooltip);
        caption(scene, &facts::bar(row));
        ticks(row, (at.left, at.top + 26), at.width, scene);
        return 48;
    }
    let (class, text) = if row.is_own() { ("own", "caption") } else { ("bar", "inverse") };
    scene.block((at.left, at.top, at.width, 32), class, tooltip);
    scene.stands_for(&row.paths());
    scene.text_within((at.middle(), at.top + 20), at.width - 12, Align::Middle, text, &facts::bar(row));
    32
}

/// The units of a row as small boxes beside each other.
fn ticks(row: &Row, (left, top): (i32, i32), width: i32, scene: &mut Scene) {
    let shown = row.units.len().min(96);
    let edge = |index: usize| left + 8 + index as i32 * (width - 14) / shown as i32;
    for (index, unit) in row.units.iter().take(shown).enumerate() {
        scene.block((edge(index), top, edge(index + 1) - edge(index) - 2, TICK), "tick", &unit.path);
        scene.stands_for(&unit.path);
    }
}

/// Tracks for wires that do not go straight, one beside the other.
struct Tracks {
    first: i32,
    used: i32,
}

impl Tracks {
    fn next(&mut self) -> i32 {
        self.used += 1;
        self.first + (self.used - 1) * TRACK
    }
}

/// What is drawn of a GPU.
struct Plan<'a> {
    model: &'a Model<'a>,
    gpu: usize,
    /// Its rows.
    members: Vec<usize>,
    /// The edges between them.
    edges: Vec<&'a Edge>,
    order: Order,
    /// The edges that come in from elsewhere, and from which side.
    incoming: &'a [(usize, Entry)],
}

/// Where everything of a GPU stands.
struct Layout {
    width: i32,
    height: i32,
    die_top: i32,
    die_bottom: i32,
    places: IndexMap<usize, Place>,
}

impl<'a> Plan<'a> {
    fn of(model: &'a Model<'a>, gpu: usize, incoming: &'a [(usize, Entry)]) -> Plan<'a> {
        let members: Vec<usize> = (0..model.rows.len()).filter(|row| model.rows[*row].gpu == Some(gpu)).collect();
        let is_inside = |edge: &&Edge| members.contains(&edge.client) && members.contains(&edge.server);
        let edges: Vec<&Edge> = model.edges.iter().filter(is_inside).collect();
        let order = order(model, &members, &edges);
        Plan { model, gpu, members, edges, order, incoming }
    }

    /// The row at which an edge comes in.
    fn end(&self, edge: usize) -> usize {
        let edge = &self.model.edges[edge];
        if self.members.contains(&edge.client) { edge.client } else { edge.server }
    }

    /// What can go straight down from one band to the next does; the rest goes through the channel at the side.
    fn falls(&self, edge: &Edge) -> bool {
        let bands = &self.order.bands;
        let level = |row: usize| bands.iter().position(|band| band.contains(&row));
        match (level(edge.client), level(edge.server)) {
            (Some(from), Some(to)) => from.abs_diff(to) == 1 && (bands[from].len() == 1 || bands[to].len() == 1),
            _ => false,
        }
    }

    fn through(&self) -> impl Iterator<Item = &'a Edge> {
        self.edges.iter().copied().filter(|edge| !self.falls(edge) && edge.client != edge.server)
    }

    /// Whether an edge comes straight in to a unit at the side.
    fn is_straight_in(&self, (edge, from): (usize, Entry)) -> bool {
        from == Entry::Host && self.order.side.contains(&self.end(edge))
    }

    /// How many edges come straight in to a row.
    fn straight_in(&self, row: usize) -> usize {
        let own =
            self.incoming.iter().filter(|(edge, from)| self.is_straight_in((*edge, *from)) && self.end(*edge) == row);
        own.count()
    }

    /// The edges that come in above the die.
    fn passing(&self) -> impl Iterator<Item = (usize, Entry)> {
        self.incoming.iter().copied().filter(|incoming| !self.is_straight_in(*incoming))
    }

    /// Places: the bands first, then the units beside them.
    fn layout(&self) -> Layout {
        let passing = self.passing().count() as i32;
        let channel = LABEL + (self.through().count() as i32 + passing) * TRACK + 14;
        let band_left = PAD + RIM + SIDE_WIDTH + channel;
        let width = band_left + BAND_WIDTH + RIM + PAD;
        let top = HEAD + passing * PASSAGE + RIM + 6;
        let mut places: IndexMap<usize, Place> = IndexMap::new();
        let mut die_bottom = top;
        let mut bottom = top;
        for (index, rows) in self.order.bands.iter().enumerate() {
            let is_memory = rows.iter().all(|row| self.model.rows[*row].is_memory());
            let next = if index == 0 { bottom } else { bottom + BAND_GAP + if is_memory { RIM } else { 0 } };
            let each = (BAND_WIDTH + 10) / rows.len() as i32;
            for (x, row) in rows.iter().enumerate() {
                let mut place = Place { left: band_left + x as i32 * each, top: next, width: each - 10, height: 0 };
                if is_memory {
                    // The stacks stand along the whole edge of the die.
                    let each = (width - 2 * (PAD + RIM) + 10) / rows.len() as i32;
                    (place.left, place.width) = (PAD + RIM + x as i32 * each, each - 10);
                }
                place.height = band(&self.model.rows[*row], place, None);
                bottom = bottom.max(place.bottom());
                places.insert(*row, place);
            }
            if !is_memory {
                die_bottom = bottom;
            }
        }
        die_bottom = die_bottom.max(self.place_side(top, &mut places)) + RIM;
        // Where the units at the side make the die longer, the memory follows its edge.
        for row in self.order.bands.iter().flatten().filter(|row| self.model.rows[**row].is_memory()) {
            if let Some(place) = places.get_mut(row) {
                place.top = place.top.max(die_bottom + BAND_GAP - RIM);
                bottom = bottom.max(place.bottom());
            }
        }
        Layout { width, height: bottom.max(die_bottom) + PAD, die_top: top - RIM, die_bottom, places }
    }

    /// Places the units at the side, one below the other; gives where they end.
    fn place_side(&self, top: i32, places: &mut IndexMap<usize, Place>) -> i32 {
        let mut below = top;
        for row in &self.order.side {
            let slots = self.straight_in(*row) as i32;
            let wires = self.through().filter(|edge| edge.client == *row || edge.server == *row).count() as i32;
            let height = card_height(&self.model.rows[*row]).max(slots * 40 + 10).max(wires * 22 + 6);
            places.insert(*row, Place { left: PAD + RIM, top: below, width: SIDE_WIDTH, height });
            below += height + SIDE_GAP;
        }
        below - SIDE_GAP
    }

    /// Draws what the wires lead between.
    fn draw_rows(&self, layout: &Layout, scene: &mut Scene) {
        let (model, gpu) = (self.model, self.gpu);
        let Layout { width, height, die_top, die_bottom, places } = layout;
        scene.block((0, 0, *width, *height), "package", model.gpus[gpu]);
        let name = model.gpus[gpu];
        scene.text_within((PAD, 30), width - 2 * PAD, Align::Start, "gpu-name", name);
        let rows = model.rows.iter().filter(|row| row.gpu == Some(gpu));
        scene.text_within((PAD, 50), width - 2 * PAD, Align::Start, "subtitle", &facts::gpu(rows, gpu));
        scene.block((PAD, *die_top, width - 2 * PAD, die_bottom - die_top), "die", name);
        for row in self.order.bands.iter().flatten() {
            band(&model.rows[*row], places[row], Some(scene));
        }
        for row in &self.order.side {
            card(&model.rows[*row], places[row], "unit", scene);
        }
    }

    /// Where a wire meets the row, on the side of the channel.
    fn exit(&self, row: usize, layout: &Layout) -> i32 {
        let left = layout.places[&row].left;
        if self.order.side.contains(&row) { left + SIDE_WIDTH } else { left }
    }

    /// Draws a wire through the channel.
    fn draw_through(&self, edge: &Edge, layout: &Layout, wires: &mut Wires, scene: &mut Scene) {
        let is_side = |row: &usize| self.order.side.contains(row);
        let (from, to) = if is_side(&edge.client) || !is_side(&edge.server) {
            (edge.client, edge.server)
        } else {
            (edge.server, edge.client)
        };
        let start = wires.slots.next(from, layout.places[&from], None);
        let finish = wires.slots.next(to, layout.places[&to], Some(start));
        let (x1, x2) = (self.exit(from, layout), self.exit(to, layout));
        let track = wires.tracks.next();
        let points = if start == finish && x1 != x2 {
            vec![(x1, start), (x2, finish)]
        } else {
            vec![(x1, start), (track, start), (track, finish), (x2, finish)]
        };
        scene.line(&points, "wire", &edge.ports());
        scene.stands_for(&edge.link_paths());
        let label_x = PAD + RIM + SIDE_WIDTH + 4;
        if is_side(&from) {
            scene.text_within((label_x, start - 4), LABEL - 4, Align::Start, "latency", &edge.latency());
        }
    }

    /// Draws the edges that come in from elsewhere; gives where each meets the frame, from the top.
    fn draw_incoming(&self, layout: &Layout, wires: &mut Wires, scene: &mut Scene) -> IndexMap<usize, i32> {
        let mut entries = IndexMap::new();
        for (edge, _) in self.incoming.iter().filter(|incoming| self.is_straight_in(**incoming)) {
            let row = self.end(*edge);
            let place = layout.places[&row];
            let y = wires.slots.at_host_side(row, place, self.straight_in(row));
            entries.insert(*edge, y);
            scene.line(&[(0, y), (place.left, y)], "connector", &self.model.edges[*edge].name());
            scene.stands_for(&self.model.edges[*edge].link_paths());
        }
        for (index, (edge, from)) in self.passing().enumerate() {
            let row = self.end(edge);
            let y = HEAD + 4 + index as i32 * PASSAGE;
            let (track, at) = (wires.tracks.next(), wires.slots.next(row, layout.places[&row], None));
            let x = self.exit(row, layout);
            let outside = if from == Entry::Host { 0 } else { layout.width };
            let class = "connector";
            scene.line(&[(outside, y), (track, y), (track, at), (x, at)], class, &self.model.edges[edge].name());
            scene.stands_for(&self.model.edges[edge].link_paths());
            entries.insert(edge, y);
        }
        entries
    }
}

/// The places that wires have taken.
struct Wires {
    slots: Slots,
    tracks: Tracks,
}

/// Draws the GPU `gpu` with the edges that come in from elsewhere: (edge, from which side).
pub(super) fn die(model: &Model, gpu: usize, incoming: &[(usize, Entry)]) -> Die {
    let plan = Plan::of(model, gpu, incoming);
    let layout = plan.layout();
    let mut scene = Scene::default();
    plan.draw_rows(&layout, &mut scene);
    for edge in plan.edges.iter().filter(|edge| plan.falls(edge)) {
        fall(edge, layout.places[&edge.client], layout.places[&edge.server], &mut scene);
    }
    let tracks = Tracks { first: PAD + RIM + SIDE_WIDTH + LABEL, used: 0 };
    let mut wires = Wires { slots: Slots::default(), tracks };
    for edge in plan.through() {
        plan.draw_through(edge, &layout, &mut wires, &mut scene);
    }
    let entries = plan.draw_incoming(&layout, &mut wires, &mut scene);
    Die { scene, width: layout.width, height: layout.height, entries }
}

/// Where wires meet the sides of rows, each at a height of its own.
#[derive(Default)]
struct Slots {
    taken: IndexMap<usize, Vec<i32>>,
    at_host_side: IndexMap<usize, i32>,
}

impl Slots {
    /// A free height at the row, the wanted one where it can be had.
    fn next(&mut self, row: usize, place: Place, wanted: Option<i32>) -> i32 {
        let taken = self.taken.entry(row).or_default();
        let is_free = |y: i32, taken: &[i32]| taken.iter().all(|other| (other - y).abs() >= 8);
        let inside = |y: &i32| (place.top + 5..=place.bottom() - 5).contains(y);
        let mut steps =
            (0..place.height).flat_map(|step| [step, -step]).map(|step| place.top + place.height / 2 + step);
        let y = wanted.filter(inside).filter(|y| is_free(*y, taken));
        let y = y.or_else(|| steps.find(|y| inside(y) && is_free(*y, taken))).unwrap_or(place.top + place.height / 2);
        taken.push(y);
        y
    }

    fn at_host_side(&mut self, row: usize, place: Place, count: usize) -> i32 {
        let index = self.at_host_side.entry(row).or_insert(0);
        *index += 1;
        place.top + place.height * *index / (count as i32 + 1)
    }
}

/// A unit as a card: name, kind, clock, size, rate.
fn card(row: &Row, place: Place, class: &'static str, scene: &mut Scene) {
    let class = if row.is_own() { "own" } else { class };
    scene.block(place.block(), class, &row.name);
    if row.units.len() == 1 {
        scene.stands_for(&row.paths());
    }
    let width = place.width - 8;
    let lines = facts::card(row);
    let first = place.top + (place.height - card_height(row)) / 2 + 18;
    scene.text_within((place.middle(), first), width, Align::Middle, "name", &row.name);
    for (index, line) in lines.iter().enumerate() {
        let y = first + 15 * (index as i32 + 1);
        let class = if line.ends_with("B/s") { "rate" } else { "fact" };
        scene.text_within((place.middle(), y), width, Align::Middle, class, line);
    }
    if row.units.len() > 1 {
        ticks(row, (place.left, first + 15 * lines.len() as i32 + 9), place.width, scene);
    }
}

/// What a card needs: its name, its facts, and the units where it is a row of them.
pub(super) fn card_height(row: &Row) -> i32 {
    let ticks = if row.units.len() > 1 { TICK + 8 } else { 0 };
    22 + 15 * facts::card(row).len() as i32 + ticks
}

/// A card of the host.
pub(super) fn host_card(row: &Row, block: (i32, i32, i32, i32), scene: &mut Scene) {
    let (left, top, width, height) = block;
    card(row, Place { left, top, width, height }, "host", scene);
}

/// Wires from a band straight down to the next, their label in the middle.
fn fall(edge: &Edge, a: Place, b: Place, scene: &mut Scene) {
    let (upper, lower) = if a.top < b.top { (a, b) } else { (b, a) };
    let (left, right) = (upper.left.max(lower.left), (upper.left + upper.width).min(lower.left + lower.width));
    let (width, middle) = (right - left, (left + right) / 2);
    let lines = edge.wires.min(8) as i32;
    let room = 70;
    for line in 0..lines {
        // Half of the wires stand on each side of the label.
        let half = (lines + 1) / 2;
        let step = (width / 2 - room) / (half + 1);
        let x = if line < half { left + (line + 1) * step } else { right - (line - half + 1) * step };
        let x = if lines == 1 { middle - room } else { x };
        scene.line(&[(x, upper.bottom()), (x, lower.top)], "wire", &edge.ports());
        scene.stands_for(&edge.link_paths());
    }
    let y = lower.top - 11;
    scene.text((middle, y), Align::Middle, "latency", &edge.latency());
}
