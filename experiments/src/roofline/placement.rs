//! Where a program is below the ceilings: from the counters of one run.

use super::ceilings::Precision;
use balar_protocol::memory::SECTOR_BYTES;

/// The counts of one kernel, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// How long they took, ps.
    pub picoseconds: u64,
    /// Operations in double precision, two for a multiply-add.
    pub double: u64,
    /// Operations in single precision.
    pub single: u64,
    /// Operations in half precision.
    pub half: u64,
    /// Bytes of the sectors that loads and stores asked L1 for.
    pub l1_bytes: f64,
    /// Bytes between L1 and L2: bytes of loads that missed, and of stores.
    pub l2_bytes: f64,
    /// Bytes read from device memory and written to it.
    pub dram_bytes: f64,
}

impl Work {
    /// From counters of kernels by name ([`KernelCounters`](balar_protocol::statistics::KernelCounters)). What was written to device memory
    /// is what their requests had written there: what they leave dirty in the L2 is charged to those whose requests take its place.
    pub fn of(picoseconds: u64, counter: impl Fn(&str) -> u64) -> Work {
        let operations = |precision: &str| {
            counter(&format!("flop_{precision}_add"))
                + counter(&format!("flop_{precision}_mul"))
                + 2 * counter(&format!("flop_{precision}_fma"))
        };
        let bytes = |sectors: u64| (sectors * SECTOR_BYTES) as f64;
        let stored = counter("l1_sectors_store");
        Work {
            picoseconds,
            double: operations("dp"),
            single: operations("sp"),
            half: counter("flop_hp"),
            l1_bytes: bytes(counter("l1_sectors_load") + stored),
            l2_bytes: bytes(counter("l2_sectors_load") + stored),
            dram_bytes: bytes(counter("dram_sectors_read") + counter("dram_sectors_written")),
        }
    }

    /// Both together, one after the other.
    #[must_use]
    pub fn and(self, other: Work) -> Work {
        Work {
            picoseconds: self.picoseconds + other.picoseconds,
            double: self.double + other.double,
            single: self.single + other.single,
            half: self.half + other.half,
            l1_bytes: self.l1_bytes + other.l1_bytes,
            l2_bytes: self.l2_bytes + other.l2_bytes,
            dram_bytes: self.dram_bytes + other.dram_bytes,
        }
    }

    /// Operations of a precision; those of tensor cores are not counted.
    pub fn operations(&self, precision: Precision) -> u64 {
        match precision {
            Precision::Double => self.double,
            Precision::Single => self.single,
            Precision::Half => self.half,
            Precision::Tensor => 0,
        }
    }

    /// The precision of most operations; `None` where there are none.
    pub fn main_precision(&self) -> Option<Precision> {
        let most = Precision::ALL.into_iter().rev().max_by_key(|precision| self.operations(*precision))?;
        (self.operations(most) > 0).then_some(most)
    }

    /// Operations of all precisions a second, GFLOP/s; `None` where no time passed.
    pub fn gigaflops(&self) -> Option<f64> {
        let all = (self.double + self.single + self.half) as f64;
        (self.picoseconds > 0).then(|| all / self.picoseconds as f64 * 1e3)
    }

    /// Bytes of each level: L1, L2, DRAM.
    pub fn bytes(&self) -> [(&'static str, f64); 3] {
        [("L1", self.l1_bytes), ("L2", self.l2_bytes), ("DRAM", self.dram_bytes)]
    }

    /// Operations for each byte of a level: L1, L2, DRAM; `None` where it moved none.
    pub fn intensities(&self) -> [(&'static str, Option<f64>); 3] {
        let all = (self.double + self.single + self.half) as f64;
        self.bytes().map(|(level, bytes)| (level, (bytes > 0.0).then(|| all / bytes)))
    }
}

/// A program or a kernel below the ceilings.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its name.
    pub name: String,
    /// What was counted of it.
    pub work: Work,
}

/// What a roofline cannot show of programs and kernels, and why: a sentence for each reason, with their names.
pub fn left_out(placed: &[Placed]) -> Vec<String> {
    let named = |reason: &str, is_one: &dyn Fn(&Work) -> bool| {
        let names: Vec<&str> = placed.iter().filter(|one| is_one(&one.work)).map(|one| one.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{reason}: {}", names.join(", ")))
    };
    let is_drawn = |work: &Work| work.gigaflops().is_some_and(|rate| rate > 0.0);
    let untimed = named("not drawn, as no launch was timed", &|work| work.gigaflops().is_none());
    let without_operations = named("not drawn, as no floating-point operation was counted", &|work| {
        work.gigaflops().is_some() && !is_drawn(work)
    });
    let unmoved = Work::default().bytes().map(|(level, _)| {
        let moved = |work: &Work| work.bytes().into_iter().any(|(name, bytes)| name == level && bytes > 0.0);
        named(&format!("without a mark by {level} bytes, as none were moved"), &|work| is_drawn(work) && !moved(work))
    });
    [untimed, without_operations].into_iter().chain(unmoved).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_operations_and_bytes() {
        let counter = |name: &str| match name {
            "flop_dp_add" => 10,
            "flop_dp_fma" => 100,
            "flop_sp_mul" => 1,
            "l1_sectors_load" => 8,
            "l1_sectors_store" => 4,
            "l2_sectors_load" => 6,
            "dram_sectors_read" => 3,
            "dram_sectors_written" => 1,
            _ => 0,
        };
        let work = Work::of(1000, counter);
        assert_eq!((work.double, work.single, work.half), (210, 1, 0));
        assert_eq!(work.bytes(), [("L1", 384.0), ("L2", 320.0), ("DRAM", 128.0)]);
        assert_eq!(work.main_precision(), Some(Precision::Double));
        assert_eq!(work.gigaflops(), Some(211.0));
        assert_eq!(work.intensities()[2], ("DRAM", Some(211.0 / 128.0)));
        let twice = work.and(work);
        assert_eq!((twice.gigaflops(), twice.intensities()), (work.gigaflops(), work.intensities()));
        assert_eq!(Work::default().main_precision(), None);
        assert_eq!(Work::default().gigaflops(), None);
    }
    #[test]
    fn what_is_not_drawn_is_said() {
        let placed = |name: &str, picoseconds: u64, single: u64, dram_bytes: f64| {
            let work = Work { picoseconds, single, l1_bytes: 64.0, l2_bytes: 64.0, dram_bytes, ..Work::default() };
            Placed { name: name.to_owned(), work }
        };
        let all = [
            placed("gemm", 10, 100, 0.0),
            placed("vectoradd", 10, 100, 32.0),
            placed("bfs", 10, 0, 32.0),
            placed("copy", 10, 0, 0.0),
            placed("untimed", 0, 0, 0.0),
        ];
        let expected = [
            "not drawn, as no launch was timed: untimed",
            "not drawn, as no floating-point operation was counted: bfs, copy",
            "without a mark by DRAM bytes, as none were moved: gemm",
        ];
        assert_eq!(left_out(&all), expected);
        assert_eq!(left_out(&all[1..2]), Vec::<String>::new());
    }
}
