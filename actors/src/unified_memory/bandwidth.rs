//! How long transfers between host and GPU take by their size.

use balar_protocol::{Bandwidth, Bytes, Frequency, SimTime};
use serde::Deserialize;

/// The transfer time as a function of the size. Nothing takes no time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum TransferCurve {
    /// A rate of `asymptote * 2/pi * atan(per_kib * KiB)` (UVMSmart, bafab5d). It runs some 6 % below the unified-memory transfers to the
    /// GPU of the traces, and is no fit of explicit copies.
    Arctangent {
        /// The rate of endless transfers in GiB/s (12 for PCI Express 3.0 x16, 24 for twice and 48 for four times its rate).
        asymptote: f64,
        /// How fast the rate approaches the asymptote (0.07292).
        per_kib: f64,
    },
    /// Measured times. Between two sizes the rate is linear in the logarithm of the size; smaller transfers take as long as the smallest, and
    /// larger ones have the rate of the largest.
    Table(TransferTable),
    /// A latency and a rate.
    Linear {
        /// Latency of each transfer.
        latency: SimTime,
        /// Beyond it.
        bandwidth: Bandwidth,
    },
}

/// Sizes with their times.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<(Bytes, SimTime)>")]
pub struct TransferTable(Vec<(Bytes, SimTime)>);

/// Why a table of transfer times is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferTableError {
    /// It has no row.
    #[error("a table of transfer times needs at least one row")]
    Empty,
    /// A size or a time is zero or not larger than the one before.
    #[error("sizes and times of transfers must grow from row to row, from above zero; row {0} does not")]
    NotAscending(usize),
}

impl TryFrom<Vec<(Bytes, SimTime)>> for TransferTable {
    type Error = TransferTableError;

    fn try_from(rows: Vec<(Bytes, SimTime)>) -> Result<TransferTable, TransferTableError> {
        let mut last = (Bytes(0), SimTime::ZERO);
        for (row, &(size, time)) in rows.iter().enumerate() {
            if size.0 <= last.0.0 || time <= last.1 {
                return Err(TransferTableError::NotAscending(row + 1));
            }
            last = (size, time);
        }
        if rows.is_empty() { Err(TransferTableError::Empty) } else { Ok(TransferTable(rows)) }
    }
}

impl TransferTable {
    /// Picoseconds of a transfer.
    fn picoseconds(&self, bytes: u64) -> f64 {
        let after = self.0.partition_point(|(size, _)| size.0 < bytes);
        let exact = |index: usize| (self.0[index].0.0 as f64, self.0[index].1.0 as f64);
        let Some((last_size, last_time)) = self.0.len().checked_sub(1).map(exact) else { return 0.0 };
        if after == self.0.len() {
            return bytes as f64 * last_time / last_size;
        }
        let (size, time) = exact(after);
        if after == 0 || self.0[after].0.0 == bytes {
            return time;
        }
        let (smaller, shorter) = exact(after - 1);
        let share = libm::log2(bytes as f64 / smaller) / libm::log2(size / smaller);
        let rate = smaller / shorter + share * (size / time - smaller / shorter);
        bytes as f64 / rate
    }
}

const GIB: f64 = (1u64 << 30) as f64;
const PICOSECOND: Frequency = Frequency::from_hertz(1_000_000_000_000);

impl Default for TransferCurve {
    /// The curve of UVMSmart for PCI Express 3.0 x16.
    fn default() -> Self {
        TransferCurve::Arctangent { asymptote: 12.0, per_kib: 0.07292 }
    }
}

impl TransferCurve {
    /// Explicit copies to a GTX 1080 Ti: UVMSmart's microbenchmark of the transfer bandwidth. The study before it prints five of its rows.
    pub fn copy_table() -> TransferCurve {
        let nanoseconds = [1_184, 1_568, 2_368, 3_969, 7_200, 12_673, 23_233, 44_418, 87_011];
        let row = |(power, &time): (usize, &u64)| (Bytes(4096 << power), SimTime::from_nanoseconds(time));
        TransferCurve::Table(TransferTable(nanoseconds.iter().enumerate().map(row).collect()))
    }

    /// A line through the explicit copies of [`TransferCurve::copy_table`], at most 8.5 % off.
    pub fn copy_line() -> TransferCurve {
        TransferCurve::line(870, 11_454)
    }

    /// A line through the unified-memory transfers to the GPU of the traces: good from 60 KiB on, a third too fast at 4 KiB.
    pub fn migration_to_gpu_line() -> TransferCurve {
        TransferCurve::line(880, 12_234)
    }

    /// A line through the unified-memory transfers to the host of the traces, 4 to 124 KiB.
    pub fn migration_to_host_line() -> TransferCurve {
        TransferCurve::line(710, 13_145)
    }

    fn line(nanoseconds: u64, megabytes_per_second: u64) -> TransferCurve {
        let bandwidth = Bandwidth::from_bytes_per_second(megabytes_per_second * 1_000_000);
        TransferCurve::Linear { latency: SimTime::from_nanoseconds(nanoseconds), bandwidth }
    }

    /// The time of a transfer, rounded down to a picosecond.
    pub fn time(&self, bytes: u64) -> SimTime {
        SimTime(self.cycles(bytes, PICOSECOND))
    }

    /// The time of a transfer in cycles of a clock, rounded down: UVMSmart computes this, with the clock of its cores.
    pub fn cycles(&self, bytes: u64, clock: Frequency) -> u64 {
        self.exact_cycles(bytes, clock) as u64
    }

    fn exact_cycles(&self, bytes: u64, clock: Frequency) -> f64 {
        let hertz = clock.hertz() as f64;
        if bytes == 0 {
            return 0.0;
        }
        let picoseconds = match self {
            TransferCurve::Arctangent { .. } => {
                let rate = self.gib_per_second(bytes);
                return bytes as f64 * hertz / rate / GIB;
            }
            TransferCurve::Table(table) => table.picoseconds(bytes),
            TransferCurve::Linear { latency, bandwidth } => (*latency + bandwidth.time_for(bytes)).0 as f64,
        };
        picoseconds * hertz / PICOSECOND.hertz() as f64
    }

    /// The rate of transfers of a size, in GiB/s; 0 for nothing.
    pub fn gib_per_second(&self, bytes: u64) -> f64 {
        match self {
            TransferCurve::Arctangent { asymptote, per_kib } => {
                // Not `f64::atan`, which differs between platforms.
                2.0 * asymptote / std::f64::consts::PI * libm::atan(per_kib * (bytes as f64 / 1024.0))
            }
            _ if bytes == 0 => 0.0,
            _ => bytes as f64 / GIB * PICOSECOND.hertz() as f64 / self.exact_cycles(bytes, PICOSECOND),
        }
    }
}

/// The costs of transfers: migrations by the curve, explicit copies by the same, with a quirk.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransferCosts {
    /// The time of a transfer.
    pub curve: TransferCurve,
    /// Explicit copies from this size on take twice as long. UVMSmart does so from 2 MiB on; hardware does not.
    pub halved_copies_from: Option<Bytes>,
}

impl TransferCosts {
    /// The time of an explicit copy.
    pub fn copy_time(&self, bytes: u64) -> SimTime {
        SimTime(self.copy_cycles(bytes, PICOSECOND))
    }

    /// The time of an explicit copy in cycles of a clock.
    pub fn copy_cycles(&self, bytes: u64, clock: Frequency) -> u64 {
        let halved = self.halved_copies_from.is_some_and(|from| bytes >= from.0);
        (self.curve.exact_cycles(bytes, clock) * if halved { 2.0 } else { 1.0 }) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: Frequency = Frequency::from_hertz(1_481_000_000);

    #[test]
    fn the_curve_of_uvmsmart() {
        // Section 1.4: KiB, GiB/s, cycles at 1481 MHz, us. 4 KiB and 60 KiB are in logs of UVMSmart; the rest is its formula, computed apart.
        let curve = TransferCurve::default();
        for (kib, rate, cycles, us) in [
            (4, "2.1681", 2605, "1.759"),
            (8, "4.0343", 2800, "1.891"),
            (16, "6.5867", 3430, "2.317"),
            (32, "8.9070", 5074, "3.426"),
            (60, "10.2834", 8240, "5.564"),
            (64, "10.3874", 8702, "5.876"),
            (124, "11.1585", 15695, "10.598"),
            (128, "11.1846", 16163, "10.914"),
            (252, "11.5847", 30723, "20.745"),
            (256, "11.5912", 31193, "21.063"),
            (508, "11.7938", 60836, "41.078"),
            (512, "11.7954", 61307, "41.396"),
            (1020, "11.8973", 121_089, "81.762"),
            (1024, "11.8977", 121_560, "82.080"),
            (2048, "11.9488", 242_080, "163.457"),
        ] {
            assert_eq!(curve.cycles(kib << 10, CORE), cycles, "{kib} KiB");
            assert_eq!(format!("{:.4}", curve.gib_per_second(kib << 10)), rate, "{kib} KiB");
            assert_eq!(format!("{:.3}", curve.time(kib << 10).0 as f64 / 1e6), us, "{kib} KiB");
        }
        assert_eq!((curve.time(0), curve.cycles(0, CORE)), (SimTime::ZERO, 0));
    }

    #[test]
    fn the_curve_is_near_migrations_of_the_traces() {
        // Section 1.4: KiB, shortest and longest transfer to the GPU, us.
        let curve = TransferCurve::default();
        for (kib, shortest, longest) in [
            (4, 1.57, 1.95),
            (60, 5.73, 6.08),
            (64, 6.05, 6.11),
            (124, 11.07, 11.30),
            (252, 21.70, 21.95),
            (508, 43.2, 43.6),
            (1020, 86.3, 86.5),
        ] {
            let us = curve.time(kib << 10).0 as f64 / 1e6;
            assert!((shortest * 0.94..=longest).contains(&us), "{kib} KiB: {us} us");
        }
    }

    #[test]
    fn the_table_has_its_rows_and_grows_between_them() {
        let table = TransferCurve::copy_table();
        // Section 1.4: KiB, us, and the rate that the study prints.
        for (kib, us, rate) in [
            (4, 1.184, "3.2219"),
            (8, 1.568, "4.8657"),
            (16, 2.368, "6.4437"),
            (32, 3.969, "7.6890"),
            (64, 7.200, "8.4771"),
            (128, 12.673, "9.6323"),
            (256, 23.233, "10.508"),
            (512, 44.418, "10.993"),
            (1024, 87.011, "11.223"),
        ] {
            assert_eq!(table.time(kib << 10), SimTime((us * 1e6f64).round() as u64), "{kib} KiB");
            let digits = rate.split_once('.').expect("a fraction").1.len();
            let found: f64 = table.gib_per_second(kib << 10);
            let printed: f64 = rate.parse().expect("a number");
            assert!((found - printed).abs() <= 1.5 * 10f64.powi(-(digits as i32)), "{kib} KiB: {found}");
        }
        let times: Vec<_> = (1..600).map(|step| table.time(step * 3000)).collect();
        assert!(times.is_sorted());
        // Half way between 16 and 32 KiB in the logarithm, the rate is the mean of both.
        let bytes = 23_170; // 2^14.5
        let mean = (table.gib_per_second(16 << 10) + table.gib_per_second(32 << 10)) / 2.0;
        assert!((table.gib_per_second(bytes) - mean).abs() < 1e-4);
        assert_eq!(table.time(1), table.time(4096));
        assert_eq!(table.time(4 << 20), SimTime(4 * 87_011_000));
    }

    #[test]
    fn lines_fit_what_they_are_fits_of() {
        /// KiB, us, and how far off a line may be.
        fn check(line: &TransferCurve, rows: &[(u64, f64)], share: f64) {
            for &(kib, us) in rows {
                let found = line.time(kib << 10).0 as f64 / 1e6;
                assert!((found / us - 1.0).abs() <= share, "{kib} KiB: {found} us, not {us}");
            }
        }
        let table = TransferCurve::copy_table();
        let copies: Vec<_> = (0..9).map(|power| (4 << power, table.time(4096 << power).0 as f64 / 1e6)).collect();
        check(&TransferCurve::copy_line(), &copies, 0.085);
        let to_gpu = [(60, 5.90), (64, 6.08), (124, 11.2), (252, 21.8), (508, 43.4), (1020, 86.4)];
        check(&TransferCurve::migration_to_gpu_line(), &to_gpu, 0.03);
        check(&TransferCurve::migration_to_gpu_line(), &[(4, 1.2)], 0.02);
        check(&TransferCurve::migration_to_host_line(), &[(4, 1.056), (60, 5.28), (64, 5.70), (124, 10.45)], 0.035);
        // The rates as section 1.4 prints them.
        for (line, rate) in [
            (TransferCurve::copy_line(), 10.67),
            (TransferCurve::migration_to_gpu_line(), 11.39),
            (TransferCurve::migration_to_host_line(), 12.25),
        ] {
            assert!((line.gib_per_second(1 << 40) - rate).abs() < 0.01, "{line:?}");
        }
    }

    #[test]
    fn large_copies_can_be_halved() {
        let plain = TransferCosts::default();
        let halved = TransferCosts { halved_copies_from: Some(Bytes(2 << 20)), ..TransferCosts::default() };
        let below = (2 << 20) - 1;
        assert_eq!(halved.copy_cycles(below, CORE), plain.copy_cycles(below, CORE));
        assert_eq!((plain.copy_cycles(2 << 20, CORE), halved.copy_cycles(2 << 20, CORE)), (242_080, 484_160));
        assert_eq!(halved.copy_time(2 << 20).0 / 2, plain.copy_time(2 << 20).0);
        assert_eq!(halved.curve.cycles(2 << 20, CORE), 242_080);
    }

    #[test]
    fn ron_names_curves() {
        let read = |text: &str| ron::from_str::<TransferCosts>(text);
        assert_eq!(read("()"), Ok(TransferCosts::default()));
        assert_eq!(read("(curve: Arctangent(asymptote: 12.0, per_kib: 0.07292))"), Ok(TransferCosts::default()));
        let line =
            read(r#"(curve: Linear(latency: "870 ns", bandwidth: "11454 MB/s"), halved_copies_from: Some("2 MiB"))"#);
        let expected = TransferCosts { curve: TransferCurve::copy_line(), halved_copies_from: Some(Bytes(2 << 20)) };
        assert_eq!(line, Ok(expected));
        let table = read(r#"(curve: Table([("4 KiB", "1 us"), ("8 KiB", "1500 ns")]))"#).expect("a table");
        assert_eq!(table.curve.time(8192), SimTime::from_nanoseconds(1500));
        for (rows, error) in [
            ("[]", TransferTableError::Empty),
            (r#"[("4 KiB", "1 us"), ("8 KiB", "1 us")]"#, TransferTableError::NotAscending(2)),
            (r#"[("0 B", "1 us")]"#, TransferTableError::NotAscending(1)),
        ] {
            let found = read(&format!("(curve: Table({rows}))")).expect_err("it is wrong");
            assert!(found.to_string().contains(&error.to_string()), "{found}");
        }
    }
}
