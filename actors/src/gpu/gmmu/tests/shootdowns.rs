//! Pages that are unmapped, and the messages to TLBs then.

use super::managed::Fixture;
use balar_protocol::migration::MigrationMessage;

#[test]
fn pages_are_unmapped_when_every_sm_has_dropped_them() {
    for (parameters, invalidations) in [
        (
            "",
            &["511 sm0: invalidate 1: 4 from 2", "511 sm1: invalidate 1: 4 from 2", "515 driver: Unmapped { id: 9 }"][..],
        ),
        (
            "shootdown_scope: All, shootdown_latency: 7",
            &["518 sm0: invalidate 1: all", "518 sm1: invalidate 1: all", "522 driver: Unmapped { id: 9 }"],
        ),
        (
            // Two of the four are mapped.
            "shootdown_scope: Entry, shootdown_latency: 7",
            &[
                "518 sm0: invalidate 1: 1 from 2",
                "518 sm1: invalidate 1: 1 from 2",
                "525 sm0: invalidate 1: 1 from 3",
                "525 sm1: invalidate 1: 1 from 3",
                "529 driver: Unmapped { id: 9 }",
            ],
        ),
    ] {
        let mut fixture = Fixture::new(parameters);
        fixture.map(30, 0, 4, false);
        fixture.read(100, 0, 2, 1);
        assert_eq!(fixture.run(500), ["206 sm0: answer 1: 2 of 2^12 Device"]);
        fixture.unmap(510, 2, 4, 9);
        assert_eq!(fixture.run(600), invalidations, "{parameters}");
        // The own TLB does not have it either.
        fixture.read(600, 0, 2, 2);
        assert_eq!(fixture.run(800), ["706 sm0: fault 2: 2 NotResident", "706 driver: Pending"]);
        let counters = fixture.counters(["pages_mapped", "pages_unmapped", "shootdowns", "shootdown_messages"]);
        assert_eq!(counters, [4, 2, 2, 2 + invalidations.len() as u64 - 1], "{parameters}");
    }
}

#[test]
fn nothing_is_invalidated_where_nothing_is_mapped() {
    let mut fixture = Fixture::new("shootdown_scope: Entry");
    fixture.unmap(510, 2, 4, 9);
    assert_eq!(fixture.run(600), ["511 driver: Unmapped { id: 9 }"]);
}

#[test]
fn the_page_table_is_looked_up_when_a_walk_or_a_lookup_ends() {
    let mut fixture = Fixture::new("");
    fixture.map(30, 0, 4, false);
    fixture.read(40, 0, 1, 1);
    fixture.unmap(50, 0, 4, 9);
    let sent = fixture.run(300);
    assert_eq!(sent.last().map(String::as_str), Some("146 driver: Pending"), "the walk began before: {sent:?}");
    fixture.map(310, 0, 4, true);
    // Known by the TLB after this.
    fixture.read(320, 1, 1, 2);
    fixture.run(500);
    fixture.read(500, 1, 1, 3);
    fixture.unmap(503, 0, 4, 9);
    let sent = fixture.run(700);
    assert_eq!(sent[3..], ["606 sm1: fault 3: 1 NotResident"], "{sent:?}");
}

#[test]
fn an_unmapping_does_not_wait_for_who_waits() {
    let mut fixture = Fixture::new("");
    fixture.read(10, 0, 2, 1);
    fixture.run(200);
    fixture.unmap(210, 0, 512, 4);
    assert_eq!(fixture.run(300).last().map(String::as_str), Some("215 driver: Unmapped { id: 4 }"));
    assert!(fixture.outstanding().is_some());
}

#[test]
fn each_update_invalidates_before_anybody_is_answered() {
    for scope in ["Range", "Entry", "All"] {
        let parameters = format!("shootdown_when: EachUpdate, shootdown_scope: {scope}, faults: EachCycle");
        let mut fixture = Fixture::new(&parameters);
        fixture.read(10, 0, 2, 1);
        fixture.read(95, 1, 3, 2);
        fixture.run(190);
        fixture.map(198, 2, 2, true);
        let sent = fixture.run(300);
        let count = if scope == "Entry" { 4 } else { 2 };
        assert!(sent[..count + 1].iter().filter(|text| text.starts_with("199 sm")).count() == count, "{sent:?}");
        // The second request's walk ends at 200, when its page is in the table, but not yet to be given out.
        let answers = ["203 sm0: answer 1: 2 of 2^12 Device", "203 sm1: answer 2: 3 of 2^12 Device"];
        assert_eq!(sent[count..], answers, "{scope}");
        assert_eq!(fixture.counters(["far_faults"]), [1]);
        assert_eq!(fixture.outstanding(), None);
    }
}

#[test]
fn a_page_that_is_unmapped_while_it_is_being_mapped_faults() {
    let mut fixture = Fixture::new("shootdown_when: EachUpdate, faults: EachCycle");
    fixture.read(10, 0, 2, 1);
    fixture.run(190);
    fixture.map(200, 2, 2, true);
    fixture.unmap(202, 2, 2, 5);
    let sent = fixture.run(300);
    assert_eq!(
        sent[4..],
        ["205 driver: faults [2 Read of 0], 0 overflows", "207 driver: Unmapped { id: 5 }"],
        "{sent:?}"
    );
    fixture.tell(310, MigrationMessage::Replay { flush: false });
    assert_eq!(fixture.run(500), ["416 driver: faults [2 Read of 0], 0 overflows"]);
}
