//! The levels of memory that a curve of bandwidth over the working set shows, found as the Empirical Roofline Toolkit finds them.
//!
//! From the greatest bandwidth on, bandwidths that many working sets share are plateaus; the last one is device memory, those before it are
//! caches.

/// Places at which the density of bandwidths is looked at, evenly from zero to the greatest.
const BINS: usize = 10_000;
/// How far from a bandwidth others belong to it.
const WIDTH: f64 = 0.05;
/// A plateau has more working sets than these.
const SAMPLES: usize = 6;
/// A level is at least so many times as fast as the next one.
const DISTANCE: f64 = 1.25;

/// A level of memory, and its bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// L1, L2, ..., and DRAM for the last one.
    pub name: String,
    /// GB/s.
    pub gigabytes: f64,
}

/// The levels of a curve: pairs of a working set and its bandwidth, by working set. Points before the first bandwidth that is near the
/// greatest only show the cost of a launch.
pub fn levels(curve: &[(f64, f64)]) -> Vec<Level> {
    let greatest = curve.iter().map(|point| point.1).fold(0.0, f64::max);
    let start = curve.iter().position(|point| point.1 >= (1.0 - WIDTH) * greatest).unwrap_or(0);
    let bandwidths: Vec<f64> = curve[start.min(curve.len())..].iter().map(|point| point.1).collect();
    let mut found: Vec<f64> = plateaus(&bandwidths, greatest);
    // Nothing is flat in a curve of few points: then its ends are the levels.
    if found.is_empty() {
        found.extend([Some(greatest), bandwidths.last().copied()].into_iter().flatten().filter(|one| *one > 0.0));
        found.dedup();
    }
    let last = found.len().saturating_sub(1);
    let name = |index: usize| if index == last { "DRAM".to_owned() } else { format!("L{}", index + 1) };
    found.into_iter().enumerate().map(|(index, gigabytes)| Level { name: name(index), gigabytes }).collect()
}

/// Bandwidths around which many lie, the greatest first.
fn plateaus(bandwidths: &[f64], greatest: f64) -> Vec<f64> {
    let bandwidth = |bin: usize| greatest * bin as f64 / BINS as f64;
    let near = |bin: usize| {
        let at = bandwidth(bin);
        bandwidths.iter().copied().filter(move |one| (*one - at).abs() <= WIDTH * at)
    };
    let mut plateaus: Vec<f64> = Vec::new();
    let mut bin = BINS;
    while bin > 0 {
        if near(bin).count() <= SAMPLES {
            bin -= 1;
            continue;
        }
        // The densest of the bins that follow each other: its samples' mean is the bandwidth.
        let mut densest = bin;
        while bin > 0 && near(bin).count() > SAMPLES {
            if near(bin).count() > near(densest).count() {
                densest = bin;
            }
            bin -= 1;
        }
        let mean = near(densest).sum::<f64>() / near(densest).count() as f64;
        match plateaus.last() {
            Some(before) if *before < DISTANCE * mean => {}
            _ => plateaus.push(mean),
        }
    }
    plateaus
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Working sets from 1 KiB on, each a tenth larger than the one before, with the bandwidths of a machine.
    fn curve(bandwidth: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..120).map(|step| 1024.0 * 1.1f64.powi(step)).map(|set| (set, bandwidth(set))).collect()
    }

    fn rounded(curve: &[(f64, f64)]) -> Vec<(String, f64)> {
        levels(curve).into_iter().map(|level| (level.name, level.gigabytes.round())).collect()
    }

    #[test]
    fn plateaus_are_levels() {
        let found = rounded(&curve(|set| match set {
            set if set < 16_384.0 => set / 16_384.0 * 1000.0,
            set if set < 131_072.0 => 1000.0,
            set if set < 4e6 => 400.0,
            _ => 100.0,
        }));
        let expected = [("L1", 1000.0), ("L2", 400.0), ("DRAM", 100.0)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_plateau_begins_where_it_is_reached() {
        let found = rounded(&curve(|set| match set {
            set if set < 120_000.0 => 1000.0,
            set if set < 131_072.0 => 1040.0,
            _ => 100.0,
        }));
        assert_eq!(found.iter().map(|level| &*level.0).collect::<Vec<_>>(), ["L1", "DRAM"]);
    }

    #[test]
    fn near_plateaus_are_one() {
        let found = rounded(&curve(|set| if set < 131_072.0 { 1000.0 } else { 850.0 }));
        assert_eq!(found, [("DRAM".to_owned(), 1000.0)]);
    }

    #[test]
    fn a_slope_is_no_level() {
        let found = rounded(&curve(|set| if set < 131_072.0 { 1000.0 } else { (1000.0 * 131_072.0 / set).max(100.0) }));
        assert_eq!(found, [("L1".to_owned(), 1000.0), ("DRAM".to_owned(), 100.0)]);
    }

    #[test]
    fn a_curve_of_few_points_has_its_ends() {
        let few = rounded(&[(1.0, 10.0), (2.0, 30.0), (3.0, 5.0)]);
        assert_eq!(few, [("L1".to_owned(), 30.0), ("DRAM".to_owned(), 5.0)]);
        assert_eq!(levels(&[]), []);
        assert_eq!(levels(&[(1.0, 0.0)]), []);
    }
}
