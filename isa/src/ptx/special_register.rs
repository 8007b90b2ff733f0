//! The read-only registers that every thread has (PTX ISA, chapter 10).

use super::types::{ScalarType, spelled_enum};

/// One component of a vector special register such as `%tid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Component {
    /// `.x`, or `.r`.
    X,
    /// `.y`, or `.g`.
    Y,
    /// `.z`, or `.b`.
    Z,
    /// `.w`, or `.a`.
    W,
}

impl Component {
    /// The component that `.name` selects.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "x" | "r" => Self::X,
            "y" | "g" => Self::Y,
            "z" | "b" => Self::Z,
            "w" | "a" => Self::W,
            _ => return None,
        })
    }

    /// Its place, from 0.
    pub const fn index(self) -> u32 {
        self as u32
    }
}

spelled_enum! {
    /// The special registers by name; `%envreg<n>`, `%pm<n>` and the like are in [`SpecialRegister`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    SpecialRegisterName {
        ThreadIndex = "%tid",
        ThreadCount = "%ntid",
        LaneIndex = "%laneid",
        WarpIndex = "%warpid",
        WarpCount = "%nwarpid",
        CtaIndex = "%ctaid",
        CtaCount = "%nctaid",
        SmIndex = "%smid",
        SmCount = "%nsmid",
        GridIndex = "%gridid",
        IsExplicitCluster = "%is_explicit_cluster",
        ClusterIndex = "%clusterid",
        ClusterCount = "%nclusterid",
        ClusterCtaIndex = "%cluster_ctaid",
        ClusterCtaCount = "%cluster_nctaid",
        ClusterCtaRank = "%cluster_ctarank",
        ClusterCtaRankCount = "%cluster_nctarank",
        LaneMaskEqual = "%lanemask_eq",
        LaneMaskLessEqual = "%lanemask_le",
        LaneMaskLess = "%lanemask_lt",
        LaneMaskGreaterEqual = "%lanemask_ge",
        LaneMaskGreater = "%lanemask_gt",
        Clock = "%clock",
        ClockHigh = "%clock_hi",
        Clock64 = "%clock64",
        PerformanceMonitor = "%pm",
        PerformanceMonitor64 = "%pm64",
        Environment = "%envreg",
        GlobalTimer = "%globaltimer",
        GlobalTimerLow = "%globaltimer_lo",
        GlobalTimerHigh = "%globaltimer_hi",
        ReservedSharedBegin = "%reserved_smem_offset_begin",
        ReservedSharedEnd = "%reserved_smem_offset_end",
        ReservedSharedCapacity = "%reserved_smem_offset_cap",
        ReservedSharedOffset = "%reserved_smem_offset_",
        TotalSharedSize = "%total_smem_size",
        AggregateSharedSize = "%aggr_smem_size",
        DynamicSharedSize = "%dynamic_smem_size",
        CurrentGraphExec = "%current_graph_exec",
        WarpSize = "WARP_SZ",
    }
}

impl SpecialRegisterName {
    /// Whether it has components `.x .y .z .w`.
    pub const fn is_vector(self) -> bool {
        matches!(
            self,
            Self::ThreadIndex
                | Self::ThreadCount
                | Self::CtaIndex
                | Self::CtaCount
                | Self::ClusterIndex
                | Self::ClusterCount
                | Self::ClusterCtaIndex
                | Self::ClusterCtaCount
        )
    }

    /// How many numbered registers share the name; 0 where it is not numbered.
    const fn numbered(self) -> u8 {
        match self {
            Self::PerformanceMonitor | Self::PerformanceMonitor64 => 8,
            Self::Environment => 32,
            Self::ReservedSharedOffset => 2,
            _ => 0,
        }
    }

    /// The type that a read gives.
    pub const fn scalar_type(self) -> ScalarType {
        match self {
            Self::GridIndex
            | Self::Clock64
            | Self::PerformanceMonitor64
            | Self::GlobalTimer
            | Self::CurrentGraphExec => ScalarType::U64,
            Self::Environment => ScalarType::B32,
            Self::IsExplicitCluster => ScalarType::Pred,
            _ => ScalarType::U32,
        }
    }
}

/// One special register as an operand names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecialRegister {
    /// Which one.
    pub name: SpecialRegisterName,
    /// The component of a vector register; `X` for the others.
    pub component: Component,
    /// The number in names such as `%envreg7`; 0 for the others.
    pub number: u8,
}

impl SpecialRegister {
    /// The register that an identifier names; its component is still `X`.
    pub fn from_name(text: &str) -> Option<Self> {
        let plain = |name| Some(Self { name, component: Component::X, number: 0 });
        if let Some(name) = SpecialRegisterName::ALL.iter().find(|name| name.name() == text) {
            return if name.numbered() == 0 { plain(*name) } else { None };
        }
        let stem = text.trim_end_matches(|character: char| character.is_ascii_digit());
        let digits = &text[stem.len()..];
        let find = |stem: &str, digits: &str| {
            let name = SpecialRegisterName::ALL.iter().find(|name| name.name() == stem)?;
            let number: u8 = digits.parse().ok()?;
            let canonical = digits.len() == 1 || !digits.starts_with('0');
            (canonical && number < name.numbered()).then_some(Self { name: *name, component: Component::X, number })
        };
        find(stem, digits).or_else(|| {
            let digits = text.strip_prefix("%pm")?.strip_suffix("_64")?;
            find("%pm64", digits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, expected) in [
            ("%tid", Some((SpecialRegisterName::ThreadIndex, 0))),
            ("%clock64", Some((SpecialRegisterName::Clock64, 0))),
            ("%envreg31", Some((SpecialRegisterName::Environment, 31))),
            ("%envreg32", None),
            ("%envreg", None),
            ("%pm3", Some((SpecialRegisterName::PerformanceMonitor, 3))),
            ("%pm3_64", Some((SpecialRegisterName::PerformanceMonitor64, 3))),
            ("%lanemask_lt", Some((SpecialRegisterName::LaneMaskLess, 0))),
            ("WARP_SZ", Some((SpecialRegisterName::WarpSize, 0))),
            ("%r1", None),
        ] {
            let found = SpecialRegister::from_name(text).map(|register| (register.name, register.number));
            assert_eq!(found, expected, "{text}");
        }
    }
}
