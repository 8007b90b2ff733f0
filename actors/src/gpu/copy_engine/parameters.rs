//! The parameters of a copy engine, and its counters.

use crate::catalogue::bounds::{CLOCK, ENTRIES, PER_CYCLE, RATE, TIME};
use crate::catalogue::{BuildContext, ParameterProblem, ParameterSet, Problems};
use balar_protocol::{Bandwidth, Bytes, Frequency, SimTime};

crate::parameters! {
    /// The copy engines of a GPU.
    pub struct CopyEngineParameters {
        /// clock of the engines' port into the crossbar
        #[range(CLOCK)]
        clock: Frequency,
        /// bytes of a page, the piece in which a transfer crosses the data link
        #[range(Bytes(1)..=Bytes(1 << 30))]
        page_bytes: Bytes = r#""4 KiB""#,
        /// time from a command to its first page where it crosses the data link (a V100's copies of up to 16 kB take 28 to 34 us, gpu-benches cuda-memcpy; this is the engine's share of it, an estimate)
        #[range(TIME)]
        setup_time: SimTime = r#""20 us""#,
        /// time from a command to its first page where all of it stays within the device: copies and fills (estimate: as long as a kernel without work takes, which is what hardware runs for them)
        #[range(TIME)]
        device_setup_time: SimTime = r#""1.5 us""#,
        /// rate at which an engine moves pages to or from the host (V100 over PCI Express 3 x16: 12.35 GB/s, gpu-benches cuda-memcpy)
        #[range(RATE)]
        host_bandwidth: Bandwidth = r#""12.35 GB/s""#,
        /// pages asked for and not yet done, for each engine (estimate: enough to hide the link's latency)
        #[range(ENTRIES)]
        outstanding_pages: u32 = "8",
        /// line requests sent into the crossbar and not yet answered, for each engine (estimate)
        #[range(1..=1 << 20)]
        outstanding_lines: u32 = "2048",
        /// line requests that an engine sends in a cycle (estimate)
        #[range(PER_CYCLE)]
        lines_per_cycle: u32 = "4",
        /// the same of `outstanding_lines` and `lines_per_cycle` where all of a transfer stays within the device and the port device is wired: requests not yet answered, and requests in a cycle (estimates: the device's memory limits such transfers)
        #[range(1..=1 << 20)]
        device_outstanding_lines: u32 = "8192",
        /// see `device_outstanding_lines`
        #[range(PER_CYCLE)]
        device_lines_per_cycle: u32 = "16",
        /// copied lines pass through the L2; otherwise only their values change
        through_l2: bool = "true",
    }
}

balar_protocol::counters! {
    /// The counters of a copy engine.
    pub struct CopyEngineCounters {
        /// transfers done
        transfers: "transfer",
        /// transfers refused, for their range is not inside an allocation
        transfers_refused: "transfer",
        /// bytes copied from host to device
        bytes_host_to_device: "byte",
        /// bytes copied from device to host
        bytes_device_to_host: "byte",
        /// bytes copied within the device
        bytes_device_to_device: "byte",
        /// bytes set to a value
        bytes_filled: "byte",
        /// pages moved
        pages: "page",
        /// line loads sent to the L2
        line_loads: "request",
        /// line stores sent to the L2
        line_stores: "request",
        /// most line requests unanswered at once
        outstanding_lines_maximum: "request" maximum,
        /// time with a transfer under way
        busy_time: "ps",
    }
}

/// What is wrong with the parameters.
pub(super) fn problems(parameters: &CopyEngineParameters, context: &BuildContext) -> Problems {
    let mut problems = parameters.range_problems();
    if parameters.through_l2 && context.ports.get("memory").is_none() {
        problems.push(ParameterProblem::new("through_l2", "is true, which needs the port memory to be wired"));
    }
    problems
}
