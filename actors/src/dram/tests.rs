use super::bank_timed::BankTimedChannel;
use super::bursts::Requester;
use super::*;
use crate::test_support::{load, store};

/// Values that no two rules share, at 1 GHz: a cycle is a nanosecond.
fn timing() -> DramTiming {
    DramTiming {
        t_rcd: 10,
        t_rp: 20,
        t_ras: 50,
        t_rc: 0,
        t_ccd_s: 1,
        t_ccd_l: 3,
        t_rrd: 5,
        t_faw: 0,
        t_wr: 30,
        t_wtr: 7,
        t_rtp: 8,
        cl: 11,
        wl: 4,
        turnaround: 2,
        refresh: Refresh::Off,
        write_idle: 0,
        ..DramTiming::default()
    }
}

fn channel(timing: &DramTiming) -> BankTimedChannel {
    let clock = Clock::new(Frequency::from_hertz(1_000_000_000));
    BankTimedChannel::new(clock, timing, SimTime::ZERO, 1)
}

/// The address of some line in (bank, row).
fn line_in(channel: &BankTimedChannel, bank: u32, row: u32) -> u64 {
    let mut lines = (0..1u64 << 16).map(|number| number * 128);
    lines.find(|line| channel.place(*line) == (bank, row)).expect("every bank and low row has lines")
}

/// (arrival cycle, "read" or "write", bank, row)
type Access = (u64, &'static str, u32, u32);

/// The cycle of each access's response, in the order of completion: (number of the access, cycle).
fn play(timing: &DramTiming, accesses: &[Access]) -> Vec<(u32, u64)> {
    let mut channel = channel(timing);
    for (id, (cycle, kind, bank, row)) in accesses.iter().enumerate() {
        let line = line_in(&channel, *bank, *row);
        let make = if *kind == "read" { load } else { store };
        channel.arrive(SimTime(cycle * 1000), *cycle, Requester::Port(PortId(0)), make(line, id as u32, 1));
    }
    let mut done = Vec::new();
    let mut limit = 0;
    while channel.waiting() > 0 {
        limit += 16;
        assert!(limit < 1_000_000, "the channel stands still");
        channel.run(limit, |_, time, request| done.push((request.id, time.0 / 1000)));
    }
    done
}

#[test]
fn the_earliest_legal_cycle_of_each_rule() {
    let base = timing();
    let cases: [(&str, DramTiming, &[Access], u64); 11] = [
        // Activate in 0, read in 10, data 11 later, for one cycle.
        ("t_rcd, cl, burst", base.clone(), &[(0, "read", 0, 0)], 22),
        ("wl", base.clone(), &[(0, "write", 0, 0)], 15),
        ("t_ccd_l", base.clone(), &[(0, "read", 0, 0), (0, "read", 0, 0)], 25),
        (
            "t_ccd_s",
            base.clone(),
            &[(0, "read", 0, 0), (0, "read", 1, 0), (100, "read", 0, 0), (100, "read", 1, 0)],
            113,
        ),
        ("t_rrd", base.clone(), &[(0, "read", 0, 0), (0, "read", 1, 0)], 27),
        (
            "t_faw",
            DramTiming { t_faw: 40, ..base.clone() },
            &[(0, "read", 0, 0), (0, "read", 1, 0), (0, "read", 2, 0), (0, "read", 3, 0), (0, "read", 4, 0)],
            40 + 22,
        ),
        // Precharge in 50, activate in 70.
        ("t_ras, t_rp", base.clone(), &[(0, "read", 0, 0), (0, "read", 0, 1)], 92),
        ("t_rc", DramTiming { t_rc: 75, ..base.clone() }, &[(0, "read", 0, 0), (0, "read", 0, 1)], 97),
        // Read in 100, precharge in 108, activate in 128.
        ("t_rtp", base.clone(), &[(0, "read", 0, 0), (100, "read", 0, 0), (100, "read", 0, 1)], 150),
        // Write in 100, its data ends with 105: precharge in 135, activate in 155.
        ("t_wr", base.clone(), &[(0, "read", 0, 0), (100, "write", 0, 0), (101, "read", 0, 1)], 177),
        // Write in 100, its data ends with 105: read in 112.
        (
            "t_wtr",
            base.clone(),
            &[(0, "read", 0, 0), (0, "read", 1, 0), (100, "write", 0, 0), (101, "read", 1, 0)],
            124,
        ),
    ];
    for (rule, timing, accesses, expected) in cases {
        assert_eq!(play(&timing, accesses).last().map(|done| done.1), Some(expected), "{rule}");
    }
    // Read in 100 with data until 112, two cycles of turnaround, write data 4 after its command.
    let turnaround: &[Access] = &[(0, "read", 0, 0), (0, "read", 1, 0), (100, "read", 0, 0), (101, "write", 1, 0)];
    assert_eq!(play(&base, turnaround).last(), Some(&(3, 115)));
}

#[test]
fn row_hits_pass_older_requests_up_to_the_cap() {
    let accesses: Vec<Access> = [0, 1, 0, 0, 0, 0].into_iter().map(|row| (0, "read", 0, row)).collect();
    let order = |cap| -> Vec<u32> {
        let timing = DramTiming { row_hit_cap: cap, ..timing() };
        play(&timing, &accesses).iter().map(|done| done.0).collect()
    };
    assert_eq!(order(32), [0, 2, 3, 4, 5, 1]);
    assert_eq!(order(2), [0, 2, 3, 1, 4, 5]);
}

#[test]
fn writes_wait_for_the_watermark_while_there_are_reads() {
    let timing = DramTiming { write_high: 3, write_low: 1, write_idle: 50, ..timing() };
    let accesses: Vec<Access> =
        vec![(0, "read", 0, 0), (0, "read", 0, 0), (0, "write", 1, 0), (0, "write", 1, 0), (0, "read", 0, 0)];
    let order: Vec<u32> = play(&timing, &accesses).iter().map(|done| done.0).collect();
    assert_eq!(order, [0, 1, 4, 2, 3], "two writes stay below the watermark");
    let accesses = [&accesses[..], &[(0, "write", 1, 0)]].concat();
    let order: Vec<u32> = play(&timing, &accesses).iter().map(|done| done.0).collect();
    assert_eq!(order[..2], [2, 3], "three reach it, and one is left");
    let at_once = DramTiming { write_idle: 0, ..timing.clone() };
    assert_eq!(play(&timing, &[(7, "write", 0, 0)]), play(&at_once, &[(50, "write", 0, 0)]), "no read for 50 cycles");
}

#[test]
fn parts_of_sectors_are_read_before_they_are_written_without_a_mask() {
    // One word of sector 0, and sector 1 in full.
    let part = MemoryRequest { written_words: 0xff01, data_bytes: 36, ..store(0, 0, 0b11) };
    for (masked_writes, request, done, sectors_read) in [
        (true, part, 18, 0),
        // Read in 10, its data end with 22, write then, data 4 later; the second sector t_ccd_l behind the first.
        (false, part, 30, 1),
        (false, store(0, 0, 0b11), 18, 0),
    ] {
        let mut channel = channel(&DramTiming { masked_writes, ..timing() });
        channel.arrive(SimTime::ZERO, 0, Requester::Port(PortId(0)), request);
        let mut ends = Vec::new();
        channel.run(1000, |_, time, request| ends.push((time.0 / 1000, *request)));
        assert_eq!(ends, [(done, request)], "masked writes: {masked_writes}");
        let counters = channel.state().counters;
        assert_eq!((counters.sectors_read, counters.sectors_written), (sectors_read, 2));
        assert_eq!(channel.waiting(), 0);
    }
}

#[test]
fn refresh_takes_its_banks_away() {
    let all = DramTiming { refresh: Refresh::AllBank, t_refi: 1000, t_rfc: 200, ..timing() };
    assert_eq!(play(&all, &[(1010, "read", 5, 0)]), [(0, 1200 + 22)]);
    let one = DramTiming { refresh: Refresh::PerBank, t_refi: 1600, t_rfc: 50, ..timing() };
    assert_eq!(play(&one, &[(110, "read", 0, 0)]), [(0, 150 + 22)], "bank 0 is refreshed in 100");
    assert_eq!(play(&one, &[(110, "read", 1, 0)]), [(0, 110 + 22)], "bank 1 in 200");

    let mut channel = channel(&one);
    channel.arrive(SimTime(1_000_050_000), 1_000_050, Requester::Port(PortId(0)), load(0, 0, 1));
    channel.run(2_000_000, |_, _, _| ());
    assert_eq!(channel.state().counters.refreshes, 10_000, "an idle stretch is made up for: one each 100 cycles");
}

/// Bandwidth of a channel of the V100 as a share of its peak, with `outstanding` line requests in flight;
/// `next` says whether request i writes, and the number of its line.
fn efficiency(outstanding: u32, requests: u32, next: impl Fn(u32) -> (bool, u64)) -> f64 {
    let clock = Clock::new(Frequency::from_hertz(877_000_000));
    let mut channel = BankTimedChannel::new(clock, &DramTiming::default(), SimTime::from_nanoseconds(72), 1);
    let (mut issued, mut end) = (0, 0);
    let mut waiting: Vec<(u64, u32)> = (0..outstanding).map(|id| (0, id)).collect();
    let mut now = 0;
    while issued < requests || channel.waiting() > 0 {
        now += 20_000;
        waiting.sort_unstable();
        let due = waiting.partition_point(|(time, _)| *time < now);
        for (time, _) in waiting.drain(..due) {
            if issued < requests {
                let (write, line) = next(issued);
                let make = if write { store } else { load };
                let time = SimTime(time);
                channel.arrive(
                    time,
                    clock.cycle_at_or_after(time),
                    Requester::Port(PortId(0)),
                    make(line * 128, issued, 0b1111),
                );
                issued += 1;
            }
        }
        channel.run(clock.cycle_at_or_after(SimTime(now)), |_, time, request| {
            end = end.max(time.0);
            waiting.push((time.0.max(now) + 60_000, request.id));
        });
    }
    let peak_bytes = 32.0 * 0.877e9 * end as f64 / 1e12;
    f64::from(requests) * 128.0 / peak_bytes
}

#[test]
fn streams_reach_the_share_of_the_peak_that_was_measured() {
    let read = efficiency(96, 20_000, |i| (false, u64::from(i)));
    // One stream in perfect order is the upper end: 80 SMs out of step meet more row conflicts.
    assert!((0.95..1.0).contains(&read), "read {read:.3}; measured 867 of 898 GB/s = 0.965");
    let write = efficiency(96, 20_000, |i| (true, u64::from(i)));
    assert!((0.93..=1.0).contains(&write), "write {write:.3}; measured 897 of 898 GB/s");
    let copy = efficiency(96, 20_000, |i| (i % 2 == 1, u64::from(i / 2) + u64::from(i % 2) * (1 << 20)));
    assert!((0.84..=0.95).contains(&copy), "copy {copy:.3}; measured 809 of 898 GB/s = 0.901");
}

#[test]
fn bank_bits_say_the_bank_and_a_row_is_what_they_leave_of_an_aligned_run() {
    let timing = DramTiming {
        banks: 4,
        bank_groups: 2,
        row_bytes: 256,
        bank_bits: ron::from_str("[[9, 12], [10, 11]]").expect("bits"),
        ..timing()
    };
    assert_eq!(timing.check(), Ok(()));
    let clock = Clock::new(Frequency::from_hertz(1_000_000_000));
    // Two channels of 4 banks with rows of 256 bytes: a row of each has 2048 bytes.
    let channel = BankTimedChannel::new(clock, &timing, SimTime::ZERO, 2);
    let places = [0, 128, 512, 1024, 1536, 2047 - 127, 2048, 4096].map(|line| channel.place(line));
    assert_eq!(places, [(0, 0), (0, 0), (1, 0), (2, 0), (3, 0), (3, 0), (2, 1), (1, 2)]);

    let wrong = DramTiming { bank_bits: ron::from_str("[[9]]").expect("bits"), ..timing };
    assert!(wrong.check().is_err(), "one bit for four banks");
}

#[test]
fn a_row_conflict_costs_precharge_activate_and_read() {
    let accesses: [Access; 2] = [(0, "read", 0, 0), (1000, "read", 0, 1)];
    let done = play(&DramTiming { refresh: Refresh::Off, ..DramTiming::default() }, &accesses);
    assert_eq!(done[1], (1, 1000 + 12 + 12 + 12 + 1));
}
