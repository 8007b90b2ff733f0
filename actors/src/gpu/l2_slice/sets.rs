//! Tags, sector masks and replacement order of a slice.

use crate::interleave::{BitFunction, fold};
use crate::slab::chains::Chain;
use balar_protocol::cuda::LaunchId;
use balar_protocol::memory::LINE_BYTES;
use balar_protocol::prefetch::prefetch;
use balar_protocol::residency::{AccessProperty, L2Policy, Residency};
use serde::{Deserialize, Serialize};

/// A line and its sectors, one mask bit each.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Line {
    /// Its address in device memory.
    pub address: u64,
    /// Requests that wait for sectors of it.
    pub waiters: Chain,
    pub waiting: u16,
    /// Words that stores have written: they tell which bytes of sectors that are not valid are here.
    pub words: u32,
    /// Sectors whose data is here.
    pub valid: u8,
    /// Sectors that memory has not got yet; those written in part are not valid.
    pub dirty: u8,
    /// Sectors being fetched.
    pub pending: u8,
    /// Sectors that the slice of the other partition may have copies of.
    pub copied: u8,
    /// It belongs to the other partition.
    is_far: bool,
    /// How long it is to stay.
    property: AccessProperty,
}

/// Where a line would be: its set, and the tag it has there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    set: u32,
    tag: u32,
}

/// The ways of a set that were used before and after one, a ring through the set's least recently used: small, because the sets of
/// all slices are to fit the processor's cache.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Order {
    older: u16,
    newer: u16,
}

/// The most ways of a set.
pub(super) const MOST_WAYS: u32 = u16::MAX as u32;

/// The contents of the sets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SetsState {
    /// Low bits of each line's number within the slice, to be compared many at once; `Line::address` decides.
    tags: Vec<u32>,
    lines: Vec<Line>,
    order: Vec<Order>,
    /// The least recently used way of each set.
    oldest: Vec<u16>,
    /// Lines of each set with dirty sectors.
    dirty: Vec<u16>,
    /// Lines that are streaming or persisting.
    special: u32,
    resets: Resets,
}

/// The last time that a program made all lines normal, as far as requests have told. It is told by a bit that changes with each time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Resets {
    is_odd: bool,
    /// The first launch known after it. Launches before it may still run.
    since: u32,
}

/// The sets of a slice.
#[derive(Debug)]
pub(super) struct Sets {
    sets: u32,
    set_bits: u32,
    ways: u32,
    slices: u64,
    /// Lines of a run that lies in one slice, where the sets are not told apart by bits.
    lines_of_run: u64,
    /// The set of a group that a line is in, where the topology says so, and how many sets a group has.
    function: Option<(BitFunction, u32)>,
    pub state: SetsState,
}

/// The address of a way that holds nothing: no multiple of the line size.
const EMPTY: u64 = u64::MAX;

/// Tags compared at once.
const TAGS_AT_ONCE: usize = 8;

impl Sets {
    /// Empty sets of a slice of so many, in each of which runs of so many lines lie together.
    pub fn new(sets: u32, ways: u32, (slices, lines_of_run): (u32, u64), function: Option<(BitFunction, u32)>) -> Sets {
        let count = sets * ways;
        let empty = Line {
            address: EMPTY,
            waiters: Chain::default(),
            waiting: 0,
            words: 0,
            valid: 0,
            dirty: 0,
            pending: 0,
            copied: 0,
            is_far: false,
            property: AccessProperty::Normal,
        };
        // The ways of a set are used first in their order.
        let order = |index: u32| {
            let way = index % ways;
            Order { older: ((way + ways - 1) % ways) as u16, newer: ((way + 1) % ways) as u16 }
        };
        Sets {
            sets,
            set_bits: sets.next_power_of_two().trailing_zeros().max(1),
            ways,
            slices: u64::from(slices),
            lines_of_run,
            function,
            state: SetsState {
                tags: vec![u32::MAX; count as usize],
                lines: vec![empty; count as usize],
                order: (0..count).map(order).collect(),
                oldest: vec![0; sets as usize],
                dirty: vec![0; sets as usize],
                special: 0,
                resets: Resets::default(),
            },
        }
    }

    /// Is `state` of sets of this shape?
    pub fn fits(&self, state: &SetsState) -> bool {
        let count = self.state.lines.len();
        state.tags.len() == count
            && state.lines.len() == count
            && state.order.len() == count
            && state.order.iter().all(|order| u32::from(order.older.max(order.newer)) < self.ways)
            && state.oldest.len() == self.state.oldest.len()
            && state.dirty.len() == self.state.dirty.len()
            && state.oldest.iter().all(|&oldest| u32::from(oldest) < self.ways)
    }

    /// Where the line at `address` would be. The lines of a slice follow each other in the sets, and higher bits are
    /// folded in: any run of lines fills the sets evenly, and power-of-two strides do not share one. Or as the topology says.
    #[inline]
    pub fn place(&self, address: u64) -> Place {
        let number = address / LINE_BYTES;
        if let Some((function, counted)) = &self.function {
            let run = number / (self.slices * u64::from(*counted));
            let group = run % u64::from(self.sets / counted);
            return Place { set: function.of(address) + group as u32 * counted, tag: number as u32 };
        }
        let local = if self.slices.is_power_of_two() && self.lines_of_run == 1 {
            number >> self.slices.trailing_zeros()
        } else {
            number / (self.lines_of_run * self.slices) * self.lines_of_run + number % self.lines_of_run
        };
        let count = u64::from(self.sets);
        let set = if self.sets.is_power_of_two() {
            (local ^ fold(local >> count.trailing_zeros(), self.set_bits)) & (count - 1)
        } else {
            let high = fold(local / count, self.set_bits) & ((1 << self.set_bits) - 1);
            (local % count + high) % count
        };
        Place { set: set as u32, tag: local as u32 }
    }

    /// The first way of a set.
    #[inline]
    fn first(&self, place: Place) -> usize {
        place.set as usize * self.ways as usize
    }

    /// Prefetches into the host's cache the entries that a look-up will need: the tags, and the entry that a missing line will replace.
    #[inline]
    pub fn prefetch(&self, place: Place) {
        let first = self.first(place);
        let SetsState { tags, lines, order, oldest, .. } = &self.state;
        for way in (0..self.ways as usize).step_by(16) {
            prefetch(&tags[first + way]);
            prefetch(&order[first + way]);
        }
        prefetch(&lines[first + usize::from(oldest[place.set as usize])]);
    }

    /// The way that holds the line at `address`, whose place is `place`.
    #[inline]
    pub fn find(&self, place: Place, address: u64) -> Option<u32> {
        let first = self.first(place);
        let tags = &self.state.tags[first..first + self.ways as usize];
        for (chunk, tags) in tags.chunks(TAGS_AT_ONCE).enumerate() {
            // Without an early end, so that all are compared by few instructions.
            if tags.iter().fold(false, |any, &tag| any | (tag == place.tag)) {
                let first = first + chunk * TAGS_AT_ONCE;
                let mut matches = (0..tags.len()).filter(|&way| tags[way] == place.tag).map(|way| first + way);
                if let Some(index) = matches.find(|&index| self.state.lines[index].address == address) {
                    return Some(index as u32);
                }
            }
        }
        None
    }

    /// The way of the set that a line takes, one without a fill under way. Where it is wanted for a line of the other partition, which may
    /// wait for this one, a way more is left for lines of this one.
    #[inline]
    pub fn victim(&self, place: Place, is_far: bool, residency: Residency) -> Option<u32> {
        let victim = if self.state.special == 0 {
            self.oldest_of(place, |line| line.pending == 0)?
        } else {
            self.victim_by_property(place, is_far, residency)?
        };
        if is_far {
            self.ways_of(place).iter().filter(|line| line.pending == 0).nth(1)?;
        }
        Some(victim)
    }

    /// An empty way, or the least recently used of those that are to go first. A persisting line takes the way of another one where they have
    /// all ways that are set aside for them. Any other line takes a streaming line's, then a normal line's, and waits for such a one. It takes
    /// a persisting line's where it would wait for the other partition, which may wait for this one, or where there is nothing else.
    fn victim_by_property(&self, place: Place, is_far: bool, residency: Residency) -> Option<u32> {
        let empty = self.oldest_of(place, |line| line.address == EMPTY);
        if empty.is_some() {
            return empty;
        }
        let oldest = |property| self.oldest_of(place, |line| line.pending == 0 && line.property == property);
        let (streaming, normal) = (AccessProperty::Streaming, AccessProperty::Normal);
        let persisting = AccessProperty::Persisting;
        if residency.property() == Some(persisting) {
            let order = if self.has_room_to_persist(place, residency) {
                [streaming, normal, persisting]
            } else {
                [persisting, streaming, normal]
            };
            return order.into_iter().find_map(oldest);
        }
        let free = oldest(streaming).or_else(|| oldest(normal));
        let will_be_free = |line: &Line| line.property != persisting && (is_far || !line.is_far);
        free.or_else(|| if self.ways_of(place).iter().any(will_be_free) { None } else { oldest(persisting) })
    }

    /// Are fewer lines of the set persisting than it has ways set aside for them?
    fn has_room_to_persist(&self, place: Place, residency: Residency) -> bool {
        let set_aside = self.ways * u32::from(residency.set_aside()) / u32::from(L2Policy::PARTS);
        let persisting = self.ways_of(place).iter().filter(|line| line.property == AccessProperty::Persisting);
        (persisting.count() as u32) < set_aside
    }

    fn ways_of(&self, place: Place) -> &[Line] {
        let first = self.first(place);
        &self.state.lines[first..first + self.ways as usize]
    }

    /// The line of way `index` of the set gets the property of an access to it. A line persists only within what is set aside.
    pub fn keep(&mut self, index: u32, place: Place, residency: Residency) {
        let Some(mut property) = residency.property() else { return };
        let old = self.state.lines[index as usize].property;
        if property == AccessProperty::Persisting && old != property && !self.has_room_to_persist(place, residency) {
            property = old;
        }
        self.set_property(index, property);
    }

    fn set_property(&mut self, index: u32, property: AccessProperty) {
        let old = &mut self.state.lines[index as usize].property;
        self.state.special += u32::from(property != AccessProperty::Normal);
        self.state.special -= u32::from(*old != AccessProperty::Normal);
        *old = property;
    }

    /// Persisting lines are normal where a program has said so before the launch whose request comes.
    #[inline]
    pub fn follow_resets(&mut self, launch: u32, residency: Residency) {
        let Resets { is_odd, since } = self.state.resets;
        // The numbers of launches by kernels are not in the order of the launches by programs.
        if residency.is_after_odd_resets() != is_odd && launch > since && !LaunchId(launch).is_of_device() {
            self.state.resets = Resets { is_odd: !is_odd, since: launch };
            self.forget_persisting();
        }
    }

    #[cold]
    fn forget_persisting(&mut self) {
        for index in 0..self.state.lines.len() as u32 {
            if self.state.lines[index as usize].property == AccessProperty::Persisting {
                self.set_property(index, AccessProperty::Normal);
            }
        }
    }

    /// These sectors of way `index` of the set are dirty from now on.
    #[inline]
    pub fn make_dirty(&mut self, index: u32, place: Place, sectors: u8) {
        let line = &mut self.state.lines[index as usize];
        self.state.dirty[place.set as usize] += u16::from(line.dirty == 0 && sectors != 0);
        line.dirty |= sectors;
    }

    /// Memory gets the dirty sectors of way `index` of the set.
    pub fn clean(&mut self, index: u32, place: Place) {
        let line = &mut self.state.lines[index as usize];
        self.state.dirty[place.set as usize] -= u16::from(line.dirty != 0);
        line.dirty = 0;
    }

    /// The least recently used way of the set that is dirty and has no fill under way, where more than `most` are dirty.
    #[inline]
    pub fn too_dirty(&self, place: Place, most: u32) -> Option<u32> {
        if u32::from(self.state.dirty[place.set as usize]) <= most {
            return None;
        }
        self.oldest_of(place, |line| line.dirty != 0 && line.pending == 0)
    }

    /// The least recently used way of the set whose line is such a one.
    #[inline]
    fn oldest_of(&self, place: Place, is_such: impl Fn(&Line) -> bool) -> Option<u32> {
        let first = self.first(place);
        let oldest = self.state.oldest[place.set as usize];
        let mut way = oldest;
        while !is_such(&self.state.lines[first + usize::from(way)]) {
            way = self.state.order[first + usize::from(way)].newer;
            if way == oldest {
                return None;
            }
        }
        Some((first + usize::from(way)) as u32)
    }

    /// Gives way `index` of the set, which is clean, to the line at `address`, with no sector valid.
    pub fn install(&mut self, index: u32, place: Place, (address, is_far): (u64, bool)) {
        self.set_property(index, AccessProperty::Normal);
        self.state.tags[index as usize] = place.tag;
        let line = &mut self.state.lines[index as usize];
        debug_assert_eq!(line.dirty, 0, "dirty sectors go to memory before their line is replaced");
        (line.address, line.words, line.valid, line.copied, line.is_far) = (address, 0, 0, 0, is_far);
    }

    /// Empties every way that has no fill under way, without a word to memory.
    pub fn flush(&mut self) {
        let SetsState { tags, lines, dirty, special, .. } = &mut self.state;
        let ways = self.ways as usize;
        for (index, (tag, line)) in tags.iter_mut().zip(lines).enumerate().filter(|(_, (_, line))| line.pending == 0) {
            *tag = u32::MAX;
            dirty[index / ways] -= u16::from(line.dirty != 0);
            (line.address, line.words, line.valid, line.dirty, line.copied) = (EMPTY, 0, 0, 0, 0);
            *special -= u32::from(line.property != AccessProperty::Normal);
            line.property = AccessProperty::Normal;
        }
    }

    /// Makes way `index` of the set the most recently used.
    #[inline]
    pub fn touch(&mut self, index: u32, place: Place) {
        let first = self.first(place);
        let SetsState { order, oldest, .. } = &mut self.state;
        let order = &mut order[first..first + self.ways as usize];
        let oldest = &mut oldest[place.set as usize];
        let way = index as usize - first;
        let Order { older, newer } = order[way];
        if usize::from(*oldest) == way {
            // The ring stays: what was used next after it is now the oldest.
            *oldest = newer;
            return;
        }
        let newest = order[usize::from(*oldest)].older;
        if usize::from(newest) == way {
            return;
        }
        order[usize::from(older)].newer = newer;
        order[usize::from(newer)].older = older;
        order[usize::from(newest)].newer = way as u16;
        order[usize::from(*oldest)].older = way as u16;
        order[way] = Order { older: newest, newer: *oldest };
    }

    #[inline]
    pub fn line(&self, index: u32) -> &Line {
        &self.state.lines[index as usize]
    }

    #[inline]
    pub fn line_mut(&mut self, index: u32) -> &mut Line {
        &mut self.state.lines[index as usize]
    }

    pub fn len(&self) -> usize {
        self.state.lines.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::residency::AccessPolicyWindow;

    /// The lines of one slice of 24 fill its sets evenly, whatever the length of the runs that lie in it.
    #[test]
    fn runs_of_lines_fill_the_sets() {
        for lines_of_run in [1, 8] {
            let sets = Sets::new(96, 16, (24, lines_of_run), None);
            let mut counts = vec![0; 96];
            for run in 0..96 * 16 / lines_of_run {
                for line in 0..lines_of_run {
                    let address = (run * 24 * lines_of_run + line) * LINE_BYTES;
                    counts[sets.place(address).set as usize] += 1;
                }
            }
            assert_eq!(counts, vec![16; 96], "runs of {lines_of_run}");
        }
    }

    /// The ring names the same victim as the times of last use would.
    #[test]
    fn the_victim_is_the_least_recently_used_way_without_a_fill() {
        const WAYS: u32 = 5;
        let mut sets = Sets::new(3, WAYS, (1, 1), None);
        let mut used = [0u32; 3 * WAYS as usize];
        let mut random = 1u32;
        for time in 1..2000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = (random >> 8) % (3 * WAYS);
            let place = Place { set: index / WAYS, tag: 0 };
            if random >> 24 & 3 == 0 {
                sets.line_mut(index).pending ^= 1;
            } else {
                sets.touch(index, place);
                used[index as usize] = time;
            }
            let ways = place.set * WAYS..(place.set + 1) * WAYS;
            let free = ways.filter(|&way| sets.line(way).pending == 0);
            assert_eq!(
                sets.victim(place, false, Residency::default()),
                free.min_by_key(|&way| (used[way as usize], way)),
                "after {time} steps"
            );
        }
    }

    /// Requests of a launch for which half of the L2 is set aside.
    fn residency(property: Option<AccessProperty>, is_after_odd_resets: bool) -> Residency {
        let window = property.map(|hit| AccessPolicyWindow {
            base: 0,
            bytes: u64::MAX,
            hits: AccessPolicyWindow::ALL,
            hit,
            miss: AccessProperty::Normal,
        });
        L2Policy { window, set_aside: L2Policy::PARTS / 2, is_after_odd_resets }.residency(0)
    }

    /// The way that a line of the set takes, by an access with this property.
    fn take(sets: &mut Sets, property: Option<AccessProperty>) -> u32 {
        let (place, residency) = (Place::default(), residency(property, false));
        let way = sets.victim(place, false, residency).expect("no fill is under way");
        sets.install(way, place, (128, false));
        sets.touch(way, place);
        sets.keep(way, place, residency);
        way
    }

    /// Of four ways, persisting lines keep two. Streaming lines go first, in their order.
    #[test]
    fn properties_choose_the_victim() {
        use AccessProperty::{Normal, Persisting, Streaming};
        let mut sets = Sets::new(1, 4, (1, 1), None);
        let order = [
            Some(Persisting),
            None,
            Some(Streaming),
            Some(Persisting),
            None,
            Some(Normal),
            Some(Persisting),
            Some(Persisting),
            None,
        ];
        let ways = order.map(|property| take(&mut sets, property));
        // 0 and 3 persist; the streaming 2 goes before the normal 1, which is older; the third persisting line takes 0, the fourth 3.
        assert_eq!(ways, [0, 1, 2, 3, 2, 1, 0, 3, 2]);
        // Where the others have fills under way, a normal line waits for them; if all of these are of the other partition, it does not.
        for way in [1, 2] {
            sets.line_mut(way).pending = 1;
        }
        let victim = |sets: &Sets, is_far| sets.victim(Place::default(), is_far, residency(None, false));
        assert_eq!((victim(&sets, false), victim(&sets, true)), (None, None));
        for way in [1, 2] {
            sets.line_mut(way).is_far = true;
        }
        assert_eq!((victim(&sets, false), victim(&sets, true)), (Some(0), None));
    }

    #[test]
    fn launches_before_the_reset_do_not_undo_it() {
        let mut sets = Sets::new(1, 4, (1, 1), None);
        for _ in 0..2 {
            take(&mut sets, Some(AccessProperty::Persisting));
        }
        let odd = residency(None, true);
        sets.follow_resets(5, odd);
        assert_eq!((sets.state.special, sets.state.resets.is_odd), (0, true));
        sets.follow_resets(4, residency(None, false));
        sets.follow_resets(LaunchId::of_device(0, 1).0, residency(None, false));
        assert!(sets.state.resets.is_odd);
        sets.follow_resets(6, residency(None, false));
        assert!(!sets.state.resets.is_odd);
    }
}
