//! Each rule, broken and kept, by hand.

use super::*;
use crate::prototyping::{load, reduction, store};
use balar_protocol::memory::ServedBy;

const UP: PortId = PortId(0);
const AT: SimTime = SimTime(5);

/// Plays steps and gives the first rule that is broken.
#[derive(Default)]
struct Play {
    order: MemoryOrder,
    broken: Option<String>,
}

impl Play {
    fn updating_copies() -> Play {
        Play { order: MemoryOrder::new(true), broken: None }
    }

    fn note(mut self, result: Result<(), String>) -> Play {
        self.broken = self.broken.or(result.err());
        self
    }

    /// A client asks.
    fn asks(mut self, request: MemoryRequest) -> Play {
        self.order.arrived(UP, request, SimTime(1));
        self
    }

    /// The unit sends downstream.
    fn sends(mut self, request: MemoryRequest) -> Play {
        let sent = self.order.sent(&request, AT);
        self.note(sent)
    }

    /// The memory answers.
    fn gets(mut self, request: MemoryRequest) -> Play {
        self.order.answered_below(&request.response(0, ServedBy::L2));
        self
    }

    /// The unit answers its client.
    fn answers(mut self, request: MemoryRequest) -> Play {
        let answered = self.order.answered(UP, &request.response(0, ServedBy::Intermediate), AT);
        self.note(answered)
    }

    /// Sends it on, gets the answer and passes that on.
    fn passes(self, request: MemoryRequest) -> Play {
        self.sends(request).gets(request).answers(request)
    }

    #[track_caller]
    fn keeps_all(self) {
        assert_eq!(self.broken, None);
    }

    #[track_caller]
    fn breaks_one(self, texts: &[&str]) {
        let broken = self.broken.expect("a rule is broken");
        assert!(texts.iter().all(|text| broken.contains(text)), "{broken}");
    }
}

fn of_launch(launch: u32, request: MemoryRequest) -> MemoryRequest {
    MemoryRequest { launch, ..request }
}

fn for_all(request: MemoryRequest) -> MemoryRequest {
    MemoryRequest { scope: Scope::Device, ..request }
}

#[test]
fn a_load_may_not_overtake_a_store_of_its_sectors() {
    let asked = || Play::default().asks(store(1, 0x100, 64)).asks(load(2, 0x120, 4));
    asked().sends(load(9, 0x120, 4)).breaks_one(&["load 2 of line 0x100", "kept the store 1"]);
    asked().sends(store(8, 0x100, 128)).sends(load(9, 0x120, 4)).keeps_all();
}

#[test]
fn other_sectors_other_lines_and_earlier_loads_are_free() {
    let play = Play::default().asks(load(2, 0x100, 4)).asks(store(1, 0x100, 64)).asks(load(3, 0x140, 4));
    let play = play.asks(load(4, 0x200, 4)).sends(load(9, 0x100, 4)).sends(load(9, 0x140, 4)).sends(load(9, 0x200, 4));
    // One of the unit's own: nobody waits for it.
    play.sends(load(9, 0x100, 128)).keeps_all();
}

#[test]
fn a_store_is_acknowledged_when_what_it_wrote_is() {
    let own = store(1, 0x100, 64);
    Play::default().asks(own).passes(own).keeps_all();
    Play::default()
        .asks(own)
        .answers(own)
        .breaks_one(&["acknowledged the store 1 of line 0x100", "was sent downstream"]);
    Play::default().asks(own).sends(own).answers(own).breaks_one(&["before what it wrote was acknowledged downstream"]);
    // Half of it is down.
    let half = store(7, 0x100, 32);
    Play::default().asks(own).sends(half).gets(half).answers(own).breaks_one(&["store 1", "was sent downstream"]);
}

#[test]
fn combined_stores_are_acknowledged_by_the_one_that_carries_them() {
    let (first, second, both) = (store(1, 0x100, 32), store(2, 0x120, 32), store(7, 0x100, 64));
    let play = || Play::default().asks(first).asks(second).sends(both);
    play().gets(both).answers(first).answers(second).keeps_all();
    play().answers(first).breaks_one(&["store 1"]);
    // A request that was sent before a store arrived is not for that store.
    Play::default().asks(first).sends(both).asks(second).gets(both).answers(second).breaks_one(&["store 2"]);
}

#[test]
fn stores_of_two_launches_are_not_combined() {
    let (first, second) = (of_launch(1, store(1, 0x100, 32)), of_launch(2, store(2, 0x120, 32)));
    let both = of_launch(1, store(7, 0x100, 64));
    Play::default()
        .asks(first)
        .asks(second)
        .sends(both)
        .breaks_one(&["put the store 2 of line 0x100 into it", "launch 1"]);
    Play::default().asks(first).asks(second).passes(first).passes(second).keeps_all();
    // The same words of two launches are two stores.
    let again = of_launch(2, store(2, 0x100, 32));
    Play::default().asks(first).asks(again).passes(first).answers(again).breaks_one(&["store 2"]);
}

#[test]
fn what_others_must_see_is_not_combined() {
    let (first, second) = (for_all(store(1, 0x100, 32)), for_all(store(2, 0x100, 32)));
    Play::default().asks(first).asks(second).passes(first).passes(second).keeps_all();
    Play::default().asks(first).asks(second).passes(first).answers(second).breaks_one(&["store 2", "Device"]);
    let weak = store(2, 0x120, 32);
    let both = store(7, 0x100, 64);
    Play::default().asks(first).asks(weak).sends(both).gets(both).answers(first).breaks_one(&["store 1", "Device"]);
}

#[test]
fn weak_reductions_may_be_combined_and_are_acknowledged_by_the_sum() {
    let (first, second, sum) = (reduction(1, 0x100, 4), reduction(2, 0x100, 4), reduction(7, 0x100, 4));
    let play = || Play::default().asks(first).asks(second).sends(sum);
    play().gets(sum).answers(first).answers(second).keeps_all();
    play().answers(first).breaks_one(&["reduction 1"]);
}

#[test]
fn an_atomic_has_a_request_of_its_own() {
    let atomic = |id| MemoryRequest { kind: MemoryKind::Atomic, ..reduction(id, 0x100, 4) };
    Play::default().asks(atomic(1)).asks(atomic(2)).passes(atomic(1)).passes(atomic(2)).keeps_all();
    Play::default().asks(atomic(1)).asks(atomic(2)).passes(atomic(1)).answers(atomic(2)).breaks_one(&["atomic 2"]);
    Play::default().asks(atomic(1)).answers(atomic(1)).breaks_one(&["atomic 1"]);
}

#[test]
fn a_copy_comes_from_the_memory() {
    let (own, prefetch) = (load(2, 0x100, 32), load(9, 0x100, 128));
    Play::default().sends(prefetch).gets(prefetch).asks(own).answers(own).breaks_one(&["before launch 1 began"]);
    Play::default().asks(own).sends(prefetch).gets(prefetch).answers(own).keeps_all();
    Play::default().asks(own).answers(own).breaks_one(&["nothing that it has asked for", "load 2"]);
    let other = load(9, 0x120, 32);
    Play::default().asks(own).sends(other).gets(other).answers(own).breaks_one(&["brought sector 0"]);
}

#[test]
fn a_copy_is_of_one_launch() {
    let (before, after) = (of_launch(1, load(1, 0x100, 32)), of_launch(2, load(2, 0x100, 32)));
    let play = || Play::default().asks(before).passes(before);
    play().asks(of_launch(1, load(3, 0x100, 32))).answers(of_launch(1, load(3, 0x100, 32))).keeps_all();
    play().asks(after).answers(after).breaks_one(&["before launch 2 began"]);
    play().asks(after).passes(after).keeps_all();
}

#[test]
fn a_copy_is_no_older_than_a_store_of_the_client() {
    let (read, write, again) = (load(1, 0x100, 32), store(2, 0x100, 32), load(3, 0x100, 32));
    let play = || Play::default().asks(read).passes(read).asks(write);
    play().passes(write).asks(again).answers(again).breaks_one(&["older than a store", "UPDATES_COPIES"]);
    play().passes(write).asks(again).passes(again).keeps_all();
    // The store is still in the unit.
    play().asks(again).answers(again).breaks_one(&["older than a store"]);
    // A load that came before the store may have the old values.
    Play::default().asks(read).passes(read).asks(again).asks(write).passes(write).answers(again).keeps_all();
    let updating = Play::updating_copies().asks(read).passes(read).asks(write).passes(write);
    updating.asks(again).answers(again).keeps_all();
}

#[test]
fn a_volatile_load_is_answered_by_the_memory() {
    let (before, volatile) = (load(1, 0x100, 4), for_all(load(2, 0x100, 4)));
    let play = || Play::default().asks(before).passes(before).asks(volatile);
    play().answers(volatile).breaks_one(&["load 2", "Device", "only accesses of the scope Weak"]);
    play().passes(volatile).keeps_all();
    Play::updating_copies().asks(volatile).answers(volatile).breaks_one(&["load 2"]);
}

#[test]
fn what_others_must_see_is_not_slept_on() {
    let own = for_all(store(1, 0x100, 32));
    assert!(Play::default().asks(own).order.held().is_some_and(|text| text.contains("holds the store 1")));
    assert_eq!(Play::default().asks(own).sends(own).order.held(), None);
    assert_eq!(Play::default().asks(store(1, 0x100, 32)).order.held(), None);
    // It waits for an answer: it may have no room.
    let read = load(5, 0x200, 4);
    assert_eq!(Play::default().asks(read).sends(read).asks(own).order.held(), None);
}
