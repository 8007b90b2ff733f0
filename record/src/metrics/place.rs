//! Which units a metric is of.

/// The place where a metric is measured. A unit belongs to a place by its counters, so that a user's own unit that counts as ours do has
/// the metrics of the place, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Launches themselves.
    Launch,
    /// SMs, with their L1 and shared memory.
    Sm,
    /// L2 slices.
    L2,
    /// Channels of device memory.
    Dram,
    /// Crossbars.
    Crossbar,
    /// GMMUs.
    Gmmu,
    /// Directions of links that carry commands and data.
    Link,
    /// Copy engines, by direction.
    CopyEngine,
    /// Host CPUs.
    Host,
    /// Drivers of unified memory.
    UnifiedMemory,
    /// Directions of links that pages of unified memory cross.
    MigrationLink,
}

impl Place {
    /// All of them.
    pub const ALL: [Place; 11] = [
        Place::Launch,
        Place::Sm,
        Place::L2,
        Place::Dram,
        Place::Crossbar,
        Place::Gmmu,
        Place::Link,
        Place::CopyEngine,
        Place::Host,
        Place::UnifiedMemory,
        Place::MigrationLink,
    ];

    /// Its name: "SM".
    pub fn name(self) -> &'static str {
        match self {
            Place::Launch => "launch",
            Place::Sm => "SM",
            Place::L2 => "L2 slice",
            Place::Dram => "DRAM channel",
            Place::Crossbar => "crossbar",
            Place::Gmmu => "GMMU",
            Place::Link => "link",
            Place::CopyEngine => "copy engine",
            Place::Host => "host CPU",
            Place::UnifiedMemory => "driver of unified memory",
            Place::MigrationLink => "migration link",
        }
    }

    /// Counters that its units have, and no others.
    pub fn signature(self) -> &'static [&'static str] {
        match self {
            Place::Launch => &["a launch is no unit"],
            Place::Sm => &["warp_cycles_active", "warps_launched"],
            Place::L2 => &["sector_hits_read", "sectors_filled"],
            Place::Dram => &["row_hits", "turnarounds"],
            Place::Crossbar => &["flits_request", "flits_response"],
            Place::Gmmu => &["walks", "walk_cache_hits"],
            Place::Link => &["messages", "queue_time"],
            Place::CopyEngine => &["bytes_filled", "transfers"],
            Place::Host => &["calls", "calls_launch"],
            Place::UnifiedMemory => &["batches", "fault_entries"],
            Place::MigrationLink => &["transfers_to_4_kib", "fault_time"],
        }
    }

    /// Does something that has these counters belong to it?
    pub fn is_signed_by(self, has: impl Fn(&str) -> bool) -> bool {
        self.signature().iter().all(|counter| has(counter))
    }

    /// Does a unit at `location` with these counters belong to the place, on a node with these GPUs?
    pub fn holds(self, location: &str, has: impl Fn(&str) -> bool, gpus: &[&str]) -> bool {
        let of_gpu = || gpus.iter().any(|gpu| is_in(location, gpu));
        // A memory's own row is the sum over its channels, and the host's memory has channels, too.
        let is_one = self != Place::Dram || (location.rsplit('.').next().is_some_and(is_channel) && of_gpu());
        is_one && self.is_signed_by(has)
    }
}

fn is_channel(name: &str) -> bool {
    name.starts_with("channel[")
}

/// Is `location` within `part`?
pub fn is_in(location: &str, part: &str) -> bool {
    location.strip_prefix(part).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_actors::kinds::UNITS;

    #[test]
    fn each_place_is_that_of_one_kind_of_unit() {
        for place in Place::ALL.into_iter().filter(|place| *place != Place::Launch) {
            let has = |kind: &&&balar_actors::catalogue::UnitDefinition| {
                place.is_signed_by(|sign| kind.counters.iter().any(|counter| counter.name == sign))
            };
            let kinds: Vec<&str> = UNITS.iter().filter(has).map(|kind| kind.name).collect();
            // The host's memory is made of channels as the GPU's is.
            let expected = if place == Place::Dram { 2 } else { 1 };
            assert_eq!(kinds.len(), expected, "{place:?}: {kinds:?}");
        }
    }

    #[test]
    fn channels_of_device_memory_alone_are_dram() {
        let has = |counter: &str| counter == "row_hits" || counter == "turnarounds";
        for (location, is_dram) in [
            ("gpu.hbm[1].channel[0]", true),
            ("gpu.hbm[1]", false),
            ("host_memory.channel[0]", false),
            ("gpu2.hbm[1].channel[0]", false),
        ] {
            assert_eq!(Place::Dram.holds(location, has, &["gpu"]), is_dram, "{location}");
        }
    }
}
