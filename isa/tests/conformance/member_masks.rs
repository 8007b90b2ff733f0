//! Collectives whose lanes name other member masks: a warp's lanes are divided at random, and each group's answer is its own.

use crate::cases::run_all;
use crate::reference::Random;

const LANES: usize = 32;

/// A warp whose lanes are divided into groups.
struct Division {
    /// The member mask that each lane names: the lanes of its group.
    masks: [u32; LANES],
    /// Lanes that take no part.
    absent: u32,
    /// Lanes that come to the collective of the other branch; groups are on one side.
    aside: u32,
    values: [u32; LANES],
}

impl Division {
    fn new(random: &mut Random) -> Self {
        let groups = 1 + random.next() % 9;
        let absent = if random.next().is_multiple_of(2) { 0 } else { (random.next() & random.next()) as u32 };
        // Groups are neighbours, as tiles are, or anywhere.
        let tiles = random.next().is_multiple_of(3);
        let group_of: [u64; LANES] =
            std::array::from_fn(
                |lane| {
                    if tiles { lane as u64 * groups / LANES as u64 } else { random.next() % groups }
                },
            );
        let sides = random.next();
        let lanes_where =
            |holds: &dyn Fn(usize) -> bool| (0..LANES).fold(0, |mask, lane| mask | u32::from(holds(lane)) << lane);
        Division {
            masks: std::array::from_fn(|lane| lanes_where(&|other| group_of[other] == group_of[lane]) & !absent),
            absent,
            aside: lanes_where(&|lane| sides >> group_of[lane] & 1 != 0),
            // Few values, so that lanes match.
            values: std::array::from_fn(|_| (random.next() % 4) as u32 | ((random.next() % 2) as u32) << 31),
        }
    }

    /// The lanes of a group whose values are as asked.
    fn those(&self, mask: u32, asked: impl Fn(u32) -> bool) -> u32 {
        (0..LANES)
            .filter(|lane| mask >> lane & 1 != 0 && asked(self.values[*lane]))
            .fold(0, |found, lane| found | 1 << lane)
    }

    /// The values of a group, the lowest lane's first.
    fn of_group(&self, mask: u32) -> impl Iterator<Item = u32> + Clone {
        (0..LANES).filter(move |lane| mask >> lane & 1 != 0).map(|lane| self.values[lane])
    }
}

/// A collective: its text, how wide its result is, and the result of a lane.
type Collective = (String, u32, fn(&Division, usize) -> u32);

/// Is the value one for which the votes below are?
fn is_odd(value: u32) -> bool {
    value % 2 == 1
}

fn collectives() -> Vec<Collective> {
    let vote = |mode: &str, kind: &str| format!("vote.sync.{mode}.{kind} $d, %n0, $c");
    let reduction = |operation: &str| format!("redux.sync.{operation} $d, $a, $c");
    vec![
        (vote("all", "pred"), 1, |warp, lane| u32::from(warp.those(warp.masks[lane], is_odd) == warp.masks[lane])),
        (vote("any", "pred"), 1, |warp, lane| u32::from(warp.those(warp.masks[lane], is_odd) != 0)),
        (vote("uni", "pred"), 1, |warp, lane| {
            let odd = warp.those(warp.masks[lane], is_odd);
            u32::from(odd == 0 || odd == warp.masks[lane])
        }),
        (vote("ballot", "b32"), 32, |warp, lane| warp.those(warp.masks[lane], is_odd)),
        ("match.any.sync.b32 $d, $a, $c".into(), 32, |warp, lane| {
            warp.those(warp.masks[lane], |value| value == warp.values[lane])
        }),
        ("match.all.sync.b32 $d, $a, $c".into(), 32, |warp, lane| {
            let mask = warp.masks[lane];
            if warp.those(mask, |value| value == warp.values[lane]) == mask { mask } else { 0 }
        }),
        (reduction("add.u32"), 32, |warp, lane| warp.of_group(warp.masks[lane]).fold(0, u32::wrapping_add)),
        (reduction("min.s32"), 32, |warp, lane| {
            warp.of_group(warp.masks[lane]).map(|value| value as i32).min().unwrap_or(0) as u32
        }),
        (reduction("max.u32"), 32, |warp, lane| warp.of_group(warp.masks[lane]).max().unwrap_or(0)),
        (reduction("xor.b32"), 32, |warp, lane| warp.of_group(warp.masks[lane]).fold(0, |a, b| a ^ b)),
        // From the lane behind it in the warp; 0 if that lane is not of the group.
        ("shfl.sync.idx.b32 $d, $a, %y0, 31, $c".into(), 32, |warp, lane| {
            let from = (lane + 1) % LANES;
            if warp.masks[lane] >> from & 1 != 0 { warp.values[from] } else { 0 }
        }),
        ("elect.sync $d|%n1, $c".into(), 32, |warp, lane| warp.masks[lane].trailing_zeros()),
    ]
}

const BEFORE: &str =
    "and.b32 %y1, $a, 1; setp.ne.u32 %n0, %y1, 0; mov.u32 %y0, %laneid; add.u32 %y0, %y0, 1; and.b32 %y0, %y0, 31";

#[test]
fn each_group_of_lanes_has_its_own_answer() {
    let mut random = Random(0x23);
    for (collective, width, expected) in collectives() {
        let together = format!("{BEFORE}; @$b {collective}");
        let apart = format!(
            "{BEFORE}; @$e bra other; @$b {collective}; bra done; other: @$b {collective}; done: mov.b32 %y2, %y0"
        );
        for round in 0..40 {
            let warp = Division::new(&mut random);
            let rows: Vec<Vec<u64>> = (0..LANES)
                .map(|lane| {
                    let is_in = |mask: u32| u64::from(mask >> lane & 1);
                    vec![warp.values[lane].into(), is_in(!warp.absent), warp.masks[lane].into(), is_in(warp.aside)]
                })
                .collect();
            for text in [&together, &apart] {
                let results = run_all(text, &[32, 1, 32, 1], &[width], &rows);
                for lane in (0..LANES).filter(|lane| warp.absent >> lane & 1 == 0) {
                    let right = expected(&warp, lane);
                    assert_eq!(
                        results[lane][0],
                        right.into(),
                        "{text}: round {round}, lane {lane} of {:x?}",
                        warp.masks
                    );
                }
            }
        }
    }
}
