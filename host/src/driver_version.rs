//! The version of the CUDA driver of a node.

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// CUDA versions, each with the first version of the driver's package that has it.
///
/// Packages up to CUDA 13.3 are those of the table of drivers in the release notes of the CUDA Toolkit; no toolkit is 12.7, which
/// drivers 565 report. Those of 13.4 and 13.5 are of branch 615 (nvidia-ml-py 13.615.71).
const VERSIONS: [(u32, u32, &str); 25] = [
    (11, 0, "450.51.05"),
    (11, 1, "455.23.05"),
    (11, 2, "460.27.03"),
    (11, 3, "465.19.01"),
    (11, 4, "470.42.01"),
    (11, 5, "495.29.05"),
    (11, 6, "510.39.01"),
    (11, 7, "515.43.04"),
    (11, 8, "520.61.05"),
    (12, 0, "525.60.13"),
    (12, 1, "530.30.02"),
    (12, 2, "535.54.03"),
    (12, 3, "545.23.06"),
    (12, 4, "550.54.14"),
    (12, 5, "555.42.02"),
    (12, 6, "560.28.03"),
    (12, 7, "565.57.01"),
    (12, 8, "570.26"),
    (12, 9, "575.51.03"),
    (13, 0, "580.65.06"),
    (13, 1, "590.44.01"),
    (13, 2, "595.45.04"),
    (13, 3, "610.43.02"),
    (13, 4, "615.00"),
    (13, 5, "615.71"),
];

/// The version of CUDA that a node's driver has, as `cuDriverGetVersion` tells it: functions that are newer are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverVersion {
    major: u32,
    minor: u32,
}

impl DriverVersion {
    /// The newest one, which has all functions.
    pub const NEWEST: DriverVersion = DriverVersion { major: VERSIONS[24].0, minor: VERSIONS[24].1 };

    /// The major version, which all runtimes of it run on (CUDA's minor version compatibility).
    pub const fn major(self) -> u32 {
        self.major
    }

    /// 1000 * major + 10 * minor, as CUDA writes versions.
    pub const fn number(self) -> u32 {
        1000 * self.major + 10 * self.minor
    }

    /// The version of the driver's package: "535.54.03".
    pub fn package(self) -> &'static str {
        let found = VERSIONS.iter().find(|(major, minor, _)| (*major, *minor) == (self.major, self.minor));
        found.map_or(VERSIONS[24].2, |(.., package)| *package)
    }
}

impl Default for DriverVersion {
    fn default() -> Self {
        DriverVersion::NEWEST
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Not the version of a driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a version of CUDA whose driver is modelled, 11.0 to 11.8, 12.0 to 12.9 or 13.0 to {}, such as \"12.4\", found \"{found}\"",
    DriverVersion::NEWEST
)]
pub struct NoDriverVersion {
    /// The text as given.
    found: String,
}

impl FromStr for DriverVersion {
    type Err = NoDriverVersion;

    fn from_str(text: &str) -> Result<Self, NoDriverVersion> {
        let mut versions = VERSIONS.iter().map(|&(major, minor, _)| DriverVersion { major, minor });
        versions.find(|version| version.to_string() == text).ok_or_else(|| NoDriverVersion { found: text.to_owned() })
    }
}

impl Serialize for DriverVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DriverVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_drivers_have_had() {
        let twelve: DriverVersion = "12.4".parse().expect("a version");
        // Table of drivers of the CUDA Toolkit's release notes.
        assert_eq!((twelve.number(), twelve.package(), twelve.major()), (12040, "550.54.14", 12));
        assert_eq!(DriverVersion::NEWEST.number(), 13050);
        for text in ["", "12", "12.", "12.10", "11.9", "13.6", "14.0", "10.2", " 12.4", "12.4.1", "-1.0", "12.04"] {
            let error = text.parse::<DriverVersion>().expect_err(text).to_string();
            assert!(error.ends_with(&format!("such as \"12.4\", found \"{text}\"")), "{error}");
        }
        assert!(VERSIONS.is_sorted_by_key(|(major, minor, _)| (*major, *minor)));
    }
}
