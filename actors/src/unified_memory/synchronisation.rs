//! The eager device synchronisation: all dirty pages go back to the host at once.
//!
//! So does UVMSmart (bafab5d). Hardware moves nothing at a synchronisation; pages follow the host's accesses later.

use super::bandwidth::TransferCurve;
use balar_protocol::{Frequency, SimTime};

/// The transfers of a round of 2 MiB, in KiB: those in which UVMSmart's tree prefetcher would bring back a block accessed in order.
const ROUND_KIB: [u64; 12] = [4, 60, 4, 60, 4, 124, 4, 252, 4, 508, 4, 1020];

/// The bytes of the transfers, one after the other, that bring `dirty` bytes back. The last one is cut short where the bytes end.
pub fn transfers(dirty: u64) -> impl Iterator<Item = u64> {
    let mut rest = dirty;
    ROUND_KIB.into_iter().cycle().map_while(move |kib| {
        let bytes = rest.min(kib << 10);
        rest -= bytes;
        (bytes > 0).then_some(bytes)
    })
}

/// How long a synchronisation with `dirty` bytes takes.
pub fn time(dirty: u64, curve: &TransferCurve) -> SimTime {
    transfers(dirty).fold(SimTime::ZERO, |sum, bytes| sum + curve.time(bytes))
}

/// How long a synchronisation with `dirty` bytes takes, in cycles of a clock; each transfer is rounded down.
pub fn cycles(dirty: u64, curve: &TransferCurve, clock: Frequency) -> u64 {
    transfers(dirty).map(|bytes| curve.cycles(bytes, clock)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const CORE: Frequency = Frequency::from_hertz(1_481_000_000);

    #[test]
    fn rounds_repeat_and_the_last_is_cut_short() {
        let kib = |dirty| transfers(dirty).map(|bytes| bytes >> 10).collect::<Vec<_>>();
        assert_eq!(ROUND_KIB.iter().sum::<u64>(), 2048);
        assert_eq!(kib(2 * MIB), ROUND_KIB);
        assert_eq!(kib(6 * MIB), ROUND_KIB.repeat(3));
        assert_eq!(kib(200 << 10), [4, 60, 4, 60, 4, 68]);
        assert_eq!(kib(0), []);
    }

    #[test]
    fn synchronisations_take_as_long_as_in_logs_of_uvmsmart() {
        let curve = TransferCurve::default();
        assert_eq!(cycles(2 * MIB, &curve, CORE), 260_453);
        // MiB, us: StreamTriad's and hotspot's logs for 4 and 8 MiB.
        for (mib, us) in [(2, "175.863"), (4, "351.726"), (8, "703.452")] {
            let cycles = cycles(mib * MIB, &curve, CORE);
            assert_eq!(format!("{:.3}", cycles as f64 / 1481.0), us, "{mib} MiB");
            // Without the clock's rounding it is a little longer: less than a cycle for each of the transfers.
            let more = time(mib * MIB, &curve).0 as f64 / 1e12 * 1.481e9 - cycles as f64;
            assert!((0.0..6.0 * mib as f64).contains(&more), "{mib} MiB: {more} cycles");
        }
    }
}
