//! `cp.async` and `mbarrier` objects.

use crate::cases::{check, check_by, product, run};

/// Bytes that an array in device memory has at the places that rows of `check` begin at.
const COPY: &str = "cvta.shared.u64 %o, %o; cvta.to.shared.u64 %o, %o;";

#[test]
fn copies_of_every_size() {
    let rows = product(&[&[0, 0x0123_4567_89ab_cdef, u64::MAX], &[0xfedc_ba98_7654_3210, 7]]);
    let rows: Vec<Vec<u64>> = rows.into_iter().map(|row| vec![row[0], row[1], 0]).collect();
    let whole = |row: &[u64]| u128::from(row[0]) | u128::from(row[1]) << 64;
    let low = |value: u128, bytes: u32| value & if bytes == 16 { u128::MAX } else { (1 << (8 * bytes)) - 1 };
    for size in [4u32, 8, 16] {
        for words in ["ca.shared.global", "ca.shared::cta.global.L2::128B", "cg.shared.global"] {
            if words.starts_with("cg") && size != 16 {
                continue;
            }
            for place in [0, 8] {
                // The target is filled with ones first. Rows have 32 bytes, so that addresses are multiples of 16.
                let before = format!("{COPY} st.shared.b64 [%o], -1; st.shared.b64 [%o+8], -1;");
                let after = format!("cp.async.commit_group; cp.async.wait_group 0; ld.shared.b64 $d, [%o+{place}]");
                let expected = |value: u128, kept: u32| {
                    let bytes = low(value, kept) | !low(u128::MAX, size);
                    (bytes >> (8 * place)) as u64
                };
                let widths = [64, 64, 64];
                let text = format!("{before} cp.async.{words} [%o], [%base], {size}; {after}");
                check(&text, &widths, 64, &rows, |row| expected(whole(row), size));
                for read in 0..=size {
                    let text = format!("{before} cp.async.{words} [%o], [%base], {size}, {read}; {after}");
                    check(&text, &widths, 64, &rows, |row| expected(whole(row), read));
                }
                let ignore = format!(
                    "{before} .reg .pred %q; setp.eq.u64 %q, $b, 7; cp.async.{words} [%o], [%base], {size}, %q; {after}"
                );
                check(&ignore, &widths, 64, &rows, |row| expected(whole(row), if row[1] == 7 { 0 } else { size }));
            }
        }
    }
}

#[test]
fn a_copy_that_reads_nothing_does_not_touch_its_source() {
    let text = "st.shared.b32 [%o], 1; cp.async.ca.shared.global [%o], [0x7fffffff00], 4, 0; cp.async.wait_all; ld.shared.b32 $d, [%o]";
    check(text, &[32], 32, &[vec![1], vec![2]], |_| 0);
}

/// Parity of the current phase, arrivals and bytes pending, and arrivals of the next phase: what the ISA says of an object.
#[derive(Clone, Copy)]
struct Model {
    parity: u64,
    pending: i64,
    expected: i64,
    bytes: i64,
}

impl Model {
    fn step(mut self, operation: &str, value: i64) -> Model {
        match operation {
            "arrive" => self.pending -= value,
            "arrive_drop" => (self.pending, self.expected) = (self.pending - value, self.expected - value),
            "arrive.expect_tx" => (self.pending, self.bytes) = (self.pending - 1, self.bytes + value),
            "expect_tx" => self.bytes += value,
            _ => self.bytes -= value,
        }
        if self.pending == 0 && self.bytes == 0 {
            self.parity ^= 1;
            self.pending = self.expected;
        }
        self
    }
}

#[test]
fn phases_of_barriers() {
    // Every sequence of four operations that keeps the counts in range.
    let operations = [
        ("arrive", 1),
        ("arrive", 2),
        ("arrive_drop", 1),
        ("arrive.expect_tx", 16),
        ("expect_tx", 16),
        ("complete_tx", 16),
    ];
    let mut tested = 0;
    for number in 0..6usize.pow(4) {
        let chosen: Vec<(&str, i64)> = (0..4).map(|place| operations[number / 6usize.pow(place) % 6]).collect();
        let mut model = Model { parity: 0, pending: 3, expected: 3, bytes: 0 };
        let mut text = "mbarrier.init.shared.b64 [%o], 3;".to_owned();
        let mut legal = true;
        let mut before = model;
        for &(operation, value) in &chosen {
            before = model;
            model = model.step(operation, value);
            legal &= model.pending >= 0 && model.expected > 0 && model.bytes >= 0;
            text += &match operation {
                "arrive" | "arrive_drop" => format!("mbarrier.{operation}.shared.b64 %s, [%o], {value};"),
                "arrive.expect_tx" => format!("mbarrier.arrive.expect_tx.shared.b64 %s, [%o], {value};"),
                "expect_tx" => format!("mbarrier.expect_tx.relaxed.cta.shared.b64 [%o], {value};"),
                _ => format!("mbarrier.complete_tx.relaxed.cta.shared.b64 [%o], {value};"),
            };
        }
        // A sample keeps the test short: each text is a kernel of its own.
        if !legal || number % 3 != 0 {
            continue;
        }
        tested += 1;
        let arrives = chosen[3].0.starts_with("arrive");
        let text = format!(
            ".reg .b64 %s; .reg .pred %q<3>; .reg .b32 %v<4>; mov.b64 %s, 0; {text} \
             mbarrier.test_wait.parity.shared.b64 %q0, [%o], 0; mbarrier.test_wait.parity.shared.b64 %q1, [%o], 1; \
             mbarrier.test_wait.shared.b64 %q2, [%o], %s; selp.u32 %v0, 1, 0, %q0; selp.u32 %v1, 2, 0, %q1; \
             selp.u32 %v2, 4, 0, %q2; mbarrier.pending_count.b64 %v3, %s; shl.b32 %v3, %v3, 3; or.b32 %v0, %v0, %v1; \
             or.b32 %v0, %v0, %v2; or.b32 $d, %v0, %v3"
        );
        check_by(&text, &[32], 32, &[vec![0]], |_, result| {
            let parities = model.parity | (model.parity ^ 1) << 1;
            if result & 3 != parities {
                return Err(format!("{chosen:?}: the parity is {}", model.parity));
            }
            if arrives && result >> 2 != u64::from(model.parity != before.parity) | (before.pending as u64) << 1 {
                return Err(format!(
                    "{chosen:?}: {} arrivals were pending, in phase {}",
                    before.pending, before.parity
                ));
            }
            Ok(())
        });
    }
    assert!(tested > 50, "{tested} sequences were tried");
}

#[test]
fn forms_of_barrier_instructions() {
    for text in [
        "mbarrier.init.b64 [%g], 1; mbarrier.arrive.b64 _, [%g]; mbarrier.test_wait.parity.b64 %q, [%g], 0",
        "mbarrier.init.shared::cta.b64 [%o], 2; mbarrier.arrive.release.cta.shared::cta.b64 %s, [%o], 2; \
         mbarrier.try_wait.acquire.cta.shared::cta.b64 %q, [%o], %s",
        "mbarrier.init.shared.b64 [%o], 1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%o]; \
         mbarrier.try_wait.parity.shared.b64 %q, [%o], 0, 1000",
        "mbarrier.init.shared.b64 [%o], 2; mbarrier.arrive.noComplete.shared.b64 %s, [%o], 1; \
         mbarrier.arrive_drop.shared.b64 %s, [%o]; mbarrier.test_wait.shared.b64 %q, [%o], %s",
        "mov.u32 %t1, 1; mbarrier.init.shared.b64 [%o], %t1; cp.async.mbarrier.arrive.noinc.shared.b64 [%o]; \
         mbarrier.test_wait.parity.shared.b64 %q, [%o], 0",
        "mbarrier.init.shared.b64 [%o], 1; cp.async.mbarrier.arrive.shared.b64 [%o]; mbarrier.arrive.shared.b64 %s, [%o]; \
         mbarrier.test_wait.shared.b64 %q, [%o], %s",
        "mbarrier.init.shared.b64 [%o], 1; mbarrier.inval.shared.b64 [%o]; mbarrier.init.shared.b64 [%o], 1; \
         mbarrier.arrive.shared.b64 %s, [%o]; mbarrier.test_wait.shared.b64 %q, [%o], %s",
    ] {
        let text =
            format!(".reg .b64 %s; .reg .b64 %g; .reg .pred %q; cvta.shared.u64 %g, %o; {text}; selp.u32 $d, 1, 0, %q");
        check(&text, &[32], 32, &[vec![0], vec![1], vec![2]], |_| 1);
    }
    // An announced arrival keeps the phase open until it happens.
    let text = ".reg .pred %q; mbarrier.init.shared.b64 [%o], 2; cp.async.mbarrier.arrive.shared.b64 [%o]; \
                mbarrier.arrive.shared.b64 _, [%o]; mbarrier.test_wait.parity.shared.b64 %q, [%o], 0; selp.u32 $d, 1, 0, %q";
    check(text, &[32], 32, &[vec![0]], |_| 0);
}

#[test]
fn lanes_that_wait_for_each_other() {
    // Even lanes wait for a phase that odd lanes complete, in both orders of the branch.
    for (waiting, arriving) in [(0, 1), (1, 0)] {
        let text = format!(
            ".reg .pred %q<3>; .reg .b32 %m; mov.u32 %t1, %tid.x; and.b32 %m, %t1, 1; setp.eq.u32 %q0, %t1, 0; \
             @%q0 mbarrier.init.shared.b64 [2048], 16; bar.warp.sync -1; setp.eq.u32 %q1, %m, {arriving}; @%q1 bra A{waiting};\n\
             W{waiting}: mbarrier.try_wait.parity.shared.b64 %q2, [2048], 0; @!%q2 bra W{waiting};\nbra E{waiting};\n\
             A{waiting}: mbarrier.arrive.shared.b64 _, [2048];\nE{waiting}: mov.u32 $d, 1"
        );
        let rows: Vec<Vec<u64>> = (0..32).map(|lane| vec![lane]).collect();
        check(&text, &[32], 32, &rows, |_| 1);
    }
}

#[test]
#[should_panic(expected = "mbarrier")]
fn an_object_outside_shared_memory_faults() {
    run(".reg .pred %q; mbarrier.test_wait.parity.b64 %q, [%base], 0; selp.u32 $d, 1, 0, %q", &[32], 32, &[vec![0]]);
}
