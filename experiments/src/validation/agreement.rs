//! How well two columns of figures agree.

use std::fmt;

/// How well simulated figures agree with those they are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Mean of the absolute errors, percent.
    pub mean_error_percent: f64,
    /// Geometric mean of simulated over measured.
    pub mean_ratio: f64,
    /// Correlation (Pearson) of the logarithms; `None` of fewer than three pairs, or where a side is the same everywhere.
    pub correlation: Option<f64>,
    /// How many pairs there are.
    pub pairs: usize,
}

impl Agreement {
    /// The agreement of pairs (simulated, measured), without pairs that have a zero; `None` where there are none.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Agreement> {
        let pairs: Vec<_> = pairs.into_iter().filter(|(found, expected)| *found > 0.0 && *expected > 0.0).collect();
        if pairs.is_empty() {
            return None;
        }
        let count = pairs.len() as f64;
        let mean = |value: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(value).sum::<f64>() / count;
        let logarithms: Vec<_> = pairs.iter().map(|(found, expected)| (found.ln(), expected.ln())).collect();
        Some(Agreement {
            mean_error_percent: mean(&|(found, expected)| error_percent(*found, *expected).abs()),
            mean_ratio: mean(&|(found, expected)| (found / expected).ln()).exp(),
            correlation: correlation(&logarithms),
            pairs: pairs.len(),
        })
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Agreement { mean_error_percent, mean_ratio, correlation, .. } = self;
        write!(f, "mean absolute error {mean_error_percent:.1} %, geometric mean ratio {mean_ratio:.3}")?;
        match correlation {
            Some(correlation) => write!(f, ", correlation of logarithms {correlation:.3}"),
            None => Ok(()),
        }
    }
}

/// The error of `found` against `expected`, percent.
pub fn error_percent(found: f64, expected: f64) -> f64 {
    100.0 * (found - expected) / expected
}

/// Pearson's coefficient.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let (mean_x, mean_y) =
        (pairs.iter().map(|p| p.0).sum::<f64>() / count, pairs.iter().map(|p| p.1).sum::<f64>() / count);
    let sum = |value: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|p| value(p.0 - mean_x, p.1 - mean_y)).sum::<f64>();
    let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    // Two points always lie on a line.
    (pairs.len() > 2 && xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::unified_memory::PROGRAMS;

    /// UVMSmart's own agreement with the hardware, as others computed it from the same figures: 16.9 %, and 0.947 without logarithms. The
    /// logarithms of the twelve ratios, added up by hand, are -0.046.
    #[test]
    fn the_agreement_of_uvmsmart_is_the_published_one() {
        let pairs = PROGRAMS.iter().map(|program| (program.uvmsmart_us, program.hardware_us));
        let agreement = Agreement::of(pairs).expect("twelve programs");
        assert_eq!(agreement.pairs, 12);
        assert!((agreement.mean_error_percent - 16.9).abs() < 0.05, "{agreement}");
        assert!((agreement.mean_ratio - (-0.046_f64 / 12.0).exp()).abs() < 0.0005, "{agreement}");
        let plain: Vec<_> = PROGRAMS.iter().map(|program| (program.uvmsmart_us, program.hardware_us)).collect();
        assert!((correlation(&plain).expect("they differ") - 0.947).abs() < 0.0005);
    }

    #[test]
    fn half_and_double_cancel_in_the_ratio_alone() {
        let agreement = Agreement::of([(1.0, 2.0), (4.0, 2.0), (0.0, 7.0)]).expect("two pairs");
        assert_eq!((agreement.mean_error_percent, agreement.correlation, agreement.pairs), (75.0, None, 2));
        assert!((agreement.mean_ratio - 1.0).abs() < 1e-12);
        assert_eq!(Agreement::of([(0.0, 1.0)]), None);
    }

    #[test]
    fn powers_lie_on_a_line_of_logarithms() {
        let agreement = Agreement::of([(1.0, 1.0), (100.0, 10.0), (10_000.0, 100.0)]).expect("three pairs");
        assert!((agreement.correlation.expect("they differ") - 1.0).abs() < 1e-12);
        let falling = Agreement::of([(100.0, 1.0), (10.0, 10.0), (1.0, 100.0)]).expect("three pairs");
        assert!((falling.correlation.expect("they differ") + 1.0).abs() < 1e-12);
    }
}
