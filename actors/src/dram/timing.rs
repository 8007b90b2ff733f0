//! DRAM timing parameters, in cycles of the memory clock.

use crate::catalogue::ParameterProblem;
use crate::catalogue::bounds::CYCLES;
use crate::interleave::{AddressBits, BitFunction};

/// How a channel is refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum Refresh {
    /// One bank after the other: each bank once every `t_refi`, for `t_rfc`.
    PerBank,
    /// Every bank at once, every `t_refi`.
    AllBank,
    /// Not at all.
    Off,
}

/// Timing, geometry and scheduling of a channel. The names are JEDEC's (JESD235).
///
/// The defaults are one 128-bit HBM2 channel of the V100: the timing set for 850 MHz of Accel-Sim's QV100 configuration
/// (gpgpu-sim_distribution 667834c, `configs/tested-cfgs/SM7_QV100/gpgpusim.config`), where not said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DramTiming {
    /// Banks of the channel.
    pub banks: u32,
    /// Bank groups they form.
    pub bank_groups: u32,
    /// Bytes of a row (HBM2: 2 KiB of a 128-bit channel).
    pub row_bytes: u32,
    /// Cycles a 32-byte sector occupies the data bus (128 bits, two transfers a cycle).
    pub burst: u32,
    /// Activate to read or write of the same bank.
    pub t_rcd: u32,
    /// Precharge to activate of the same bank.
    pub t_rp: u32,
    /// Activate to precharge of the same bank.
    pub t_ras: u32,
    /// Activate to activate of the same bank.
    pub t_rc: u32,
    /// Column command to column command in different bank groups.
    pub t_ccd_s: u32,
    /// Column command to column command in the same bank group.
    pub t_ccd_l: u32,
    /// Activate to activate in different banks.
    pub t_rrd: u32,
    /// Window in which at most four activates fall (cramSim's HBM set: 16 ns).
    pub t_faw: u32,
    /// End of write data to precharge of the same bank.
    pub t_wr: u32,
    /// End of write data to read.
    pub t_wtr: u32,
    /// Read to precharge of the same bank.
    pub t_rtp: u32,
    /// Read to its data.
    pub cl: u32,
    /// Write to its data.
    pub wl: u32,
    /// Cycles the data bus needs between read data and write data (2: one cycle of gap and one of drive).
    pub turnaround: u32,
    /// How it is refreshed (per bank, as HBM2 offers: refreshing all banks at once would cost 9 % of the bandwidth, and 3.5 % in all are missing).
    pub refresh: Refresh,
    /// Interval of refresh (3.9 us).
    pub t_refi: u32,
    /// Time a refresh takes (single-bank refresh: 160 ns, assumed).
    pub t_rfc: u32,
    /// Waiting writes at which the channel begins to write (calibrated: copy bandwidth). Reads wait meanwhile, so that copies are slower than
    /// reads at any occupancy: on a V100, an A100, a GH200 (RRZE gpu-benches, gpu-stream) a load takes 0.3 to 0.6 ns longer for each GB/s
    /// that is written.
    pub write_high: u32,
    /// Waiting writes at which it goes back to waiting reads (calibrated: copy bandwidth).
    pub write_low: u32,
    /// Cycles without a read after which it writes what waits (estimate: the curve of gpu-stream on a V100, where they are 1.2 us, says that
    /// it is more than the time between reads of a channel that is nearly idle, some 500 ns; memory of higher clocks waits for less).
    pub write_idle: u32,
    /// The address bits whose exclusive or is each bit of the bank number. The lowest bits of the number are the group. A row is then the
    /// lines of its channel and bank in an aligned run of as many bytes as a row of each bank of each channel has. None: see `bank_timed`.
    pub bank_bits: AddressBits,
    /// Row hits of a bank that may pass an older request to another row.
    pub row_hit_cap: u32,
    /// Can it write a part of a sector, as HBM2 and GDDR5 do by a data mask? Otherwise the controller reads the sector first.
    pub masked_writes: bool,
}

impl Default for DramTiming {
    fn default() -> DramTiming {
        DramTiming {
            banks: 16,
            bank_groups: 4,
            row_bytes: 2048,
            burst: 1,
            t_rcd: 12,
            t_rp: 12,
            t_ras: 28,
            t_rc: 40,
            t_ccd_s: 1,
            t_ccd_l: 2,
            t_rrd: 3,
            t_faw: 14,
            t_wr: 10,
            t_wtr: 3,
            t_rtp: 3,
            cl: 12,
            wl: 2,
            turnaround: 2,
            refresh: Refresh::PerBank,
            t_refi: 3420,
            t_rfc: 140,
            write_high: 48,
            write_low: 8,
            write_idle: 1000,
            bank_bits: AddressBits::default(),
            row_hit_cap: 32,
            masked_writes: true,
        }
    }
}

impl DramTiming {
    /// The settings that contradict each other.
    pub(super) fn check(&self) -> Result<(), Vec<ParameterProblem>> {
        let mut problems = Vec::new();
        let mut expect = |right: bool, problem: &str| {
            if !right {
                problems.push(ParameterProblem::new("model", format!("timing: expected {problem}")));
            }
        };
        expect(self.banks.is_power_of_two() && self.banks <= 64, "banks to be a power of two up to 64");
        expect(self.bank_groups.is_power_of_two() && self.bank_groups <= self.banks, "bank_groups to divide banks");
        expect(self.row_bytes >= 128 && self.row_bytes.is_multiple_of(128), "row_bytes to be a multiple of 128");
        expect(self.burst > 0 && self.t_ccd_s >= self.burst, "burst of at least 1 and t_ccd_s no less than it");
        expect(self.t_ccd_l >= self.t_ccd_s, "t_ccd_l no less than t_ccd_s");
        expect(self.t_refi > self.t_rfc && self.t_refi >= self.banks, "t_refi above t_rfc");
        expect(self.write_high > self.write_low, "write_high above write_low");
        if let Err(problem) = self.bank_function() {
            expect(false, &format!("bank_bits of the banks: {problem}"));
        }
        expect(self.row_hit_cap > 0, "row_hit_cap of at least 1");
        expect(self.row_bytes <= 1 << 20, "row_bytes of at most 1048576");
        for (key, value) in self.cycles_and_counts() {
            expect(CYCLES.contains(&value), &format!("{key} of at most {}, found {value}", CYCLES.end));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Numbers of cycles, and of requests, by key.
    fn cycles_and_counts(&self) -> [(&'static str, u32); 21] {
        [
            ("burst", self.burst),
            ("t_rcd", self.t_rcd),
            ("t_rp", self.t_rp),
            ("t_ras", self.t_ras),
            ("t_rc", self.t_rc),
            ("t_ccd_s", self.t_ccd_s),
            ("t_ccd_l", self.t_ccd_l),
            ("t_rrd", self.t_rrd),
            ("t_faw", self.t_faw),
            ("t_wr", self.t_wr),
            ("t_wtr", self.t_wtr),
            ("t_rtp", self.t_rtp),
            ("cl", self.cl),
            ("wl", self.wl),
            ("turnaround", self.turnaround),
            ("t_refi", self.t_refi),
            ("t_rfc", self.t_rfc),
            ("write_high", self.write_high),
            ("write_low", self.write_low),
            ("write_idle", self.write_idle),
            ("row_hit_cap", self.row_hit_cap),
        ]
    }

    /// The bank of a line, where `bank_bits` say it.
    pub(super) fn bank_function(&self) -> Result<Option<BitFunction>, String> {
        (self.bank_bits.count() > 0).then(|| self.bank_bits.function(self.banks)).transpose()
    }
}
