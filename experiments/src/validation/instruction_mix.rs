//! The classes of instructions, as NVIDIA's profiler tells them apart: the shares of thread slots that each class takes.
//!
//! nvprof's metrics `inst_fp_32`, `inst_fp_64`, `inst_integer`, `inst_control`, `inst_compute_ld_st`, `inst_misc`, `inst_bit_convert` and
//! `inst_inter_thread_communication` count instructions of threads that are not predicated off. A warp instruction has 32 slots; the rest
//! of them is inactive: threads that are elsewhere, have ended, or are predicated off. NVIDIA does not publish the class of each
//! instruction. They are grouped here as NVIDIA's *CUDA Binary Utilities* groups the instructions of Volta (floating point, integer,
//! conversion, movement, predicate, load/store, control, miscellaneous). Movements, predicate instructions, barriers and no-operations have
//! no metric but `inst_misc`.

use balar_actors::catalogue::KernelProfile;
use std::collections::BTreeMap;

/// A class of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum InstructionClass {
    /// Single precision: arithmetic, comparisons, selections, special functions.
    Single,
    /// Double precision.
    Double,
    /// Integers: arithmetic, logic, shifts, comparisons; moves by the multiply-add are multiply-adds.
    Integer,
    /// Branches, calls, exits, convergence barriers.
    Control,
    /// Loads, stores, atomics.
    LoadStore,
    /// Moves, predicates, special registers, barriers, no-operations.
    Miscellaneous,
    /// Conversions, half precision, tensor cores, textures, exchanges between lanes: those that have a metric of their own.
    Other,
}

/// How many classes there are.
pub const CLASSES: usize = InstructionClass::Other as usize + 1;

/// The counts of a kernel's instructions by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstructionMix {
    slots: u64,
    threads: [u64; CLASSES],
}

impl InstructionMix {
    /// Adds an instruction of `isa` ("sass", else PTX) that so many warps executed, and so many threads that were not predicated off.
    pub fn add(&mut self, isa: &str, text: &str, warps: u64, threads: u64) {
        let class = if isa == "sass" { of_machine_code(text) } else { of_ptx(text) };
        self.slots += 32 * warps;
        self.threads[class as usize] += threads;
    }

    /// The share of a class of all thread slots, percent.
    pub fn share(&self, class: InstructionClass) -> f64 {
        self.percent(self.threads[class as usize])
    }

    /// The share of thread slots without a thread that did something, percent.
    pub fn inactive(&self) -> f64 {
        self.percent(self.slots.saturating_sub(self.threads.iter().sum()))
    }

    fn percent(&self, slots: u64) -> f64 {
        if self.slots == 0 { 0.0 } else { 100.0 * slots as f64 / self.slots as f64 }
    }

    /// The mixes of a run's kernels.
    pub fn of_profiles(profiles: &[KernelProfile]) -> BTreeMap<String, InstructionMix> {
        let mut mixes: BTreeMap<String, InstructionMix> = BTreeMap::new();
        for profile in profiles {
            let column = |name| profile.columns.iter().position(|column| column.name == name);
            let (Some(warps), Some(threads)) = (column("inst_executed"), column("thread_inst_executed_pred_on")) else {
                continue;
            };
            let isa = if profile.program.is_machine_code() { "sass" } else { "ptx" };
            let mix = mixes.entry(profile.program.name().to_string()).or_default();
            for (pc, location) in profile.program.locations() {
                let counts = profile.counts(pc);
                mix.add(isa, &location.text, counts[warps], counts[threads]);
            }
        }
        mixes
    }
}

/// The opcode of an instruction behind its guard, with its modifiers.
fn opcode(text: &str) -> &str {
    let text = text.trim_start();
    let rest = if text.starts_with('@') { text.split_once(' ').map_or("", |(_, rest)| rest) } else { text };
    rest.split_whitespace().next().unwrap_or("").trim_end_matches(';')
}

fn of_machine_code(text: &str) -> InstructionClass {
    use InstructionClass as C;
    match opcode(text).split('.').next().unwrap_or("") {
        "FADD" | "FMUL" | "FFMA" | "FSETP" | "FSET" | "FSEL" | "FMNMX" | "FCHK" | "FSWZADD" | "MUFU" | "FADD32I"
        | "FMUL32I" | "FFMA32I" => C::Single,
        "DADD" | "DMUL" | "DFMA" | "DSETP" => C::Double,
        "BMOV" | "BPT" | "BRA" | "BREAK" | "BRX" | "BRXU" | "BSSY" | "BSYNC" | "CALL" | "EXIT" | "JMP" | "JMX"
        | "JMXU" | "KILL" | "NANOSLEEP" | "RET" | "RPCMOV" | "RTT" | "WARPSYNC" | "YIELD" => C::Control,
        "LD" | "LDC" | "LDG" | "LDL" | "LDS" | "LDSM" | "ST" | "STG" | "STL" | "STS" | "ATOM" | "ATOMS" | "ATOMG"
        | "RED" | "ULDC" => C::LoadStore,
        "MOV" | "MOV32I" | "UMOV" | "PRMT" | "UPRMT" | "SEL" | "USEL" | "SGXT" | "USGXT" | "PLOP3" | "UPLOP3"
        | "PSETP" | "P2R" | "R2P" | "UP2UR" | "UR2UP" | "R2UR" | "B2R" | "R2B" | "BAR" | "CS2R" | "S2R" | "S2UR"
        | "DEPBAR" | "LEPC" | "NOP" | "PMTRIG" | "MEMBAR" | "ERRBAR" | "CCTL" | "CCTLL" | "QSPC" => C::Miscellaneous,
        "F2F" | "F2I" | "I2F" | "I2I" | "I2IP" | "FRND" | "HADD2" | "HMUL2" | "HFMA2" | "HSET2" | "HSETP2" | "HMMA"
        | "IMMA" | "BMMA" | "SHFL" | "VOTE" | "VOTEU" | "MATCH" | "MOVM" | "TEX" | "TLD" | "TLD4" | "TXD" | "TXQ"
        | "SULD" | "SUST" | "SURED" => C::Other,
        _ => C::Integer,
    }
}

fn of_ptx(text: &str) -> InstructionClass {
    use InstructionClass as C;
    let opcode = opcode(text);
    let is_of = |name: &str| opcode.split('.').any(|modifier| modifier == name);
    match opcode.split('.').next().unwrap_or("") {
        "bra" | "brx" | "ret" | "exit" | "call" | "trap" | "brkpt" | "nanosleep" => C::Control,
        "ld" | "ldu" | "st" | "atom" | "red" => C::LoadStore,
        "mov" | "cvta" | "isspacep" | "bar" | "barrier" | "membar" | "fence" | "prmt" | "prefetch" => C::Miscellaneous,
        "cvt" | "shfl" | "vote" | "match" | "redux" | "activemask" | "wmma" | "mma" | "tex" | "tld4" | "txq" => {
            C::Other
        }
        _ if is_of("f64") => C::Double,
        _ if is_of("f32") => C::Single,
        "selp" => C::Miscellaneous,
        _ if is_of("f16") || is_of("f16x2") || is_of("bf16") || is_of("bf16x2") => C::Other,
        _ => C::Integer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use InstructionClass as C;

    /// The groups of NVIDIA's reference of Volta's instructions.
    #[test]
    fn instructions_are_grouped_as_the_reference_groups_them() {
        for (text, class) in [
            ("DFMA R12, -R10, R8, 1", C::Double),
            ("@P0 FSETP.GEU.AND P0, PT, |R8|, 5.8, PT", C::Single),
            ("MUFU.RCP64H R9, R11", C::Single),
            ("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]", C::Integer),
            ("ISETP.GE.U32.AND P0, PT, R4, c[0x0][0x1a0], PT", C::Integer),
            ("@!P1 LDS.U.64 R26, [R2]", C::LoadStore),
            ("LDC R2, c[0x0][R3]", C::LoadStore),
            ("@P0 BRA 0x1f0", C::Control),
            ("BMOV.32.CLEAR RZ, B0", C::Control),
            ("WARPSYNC 0xffffffff", C::Control),
            ("NOP", C::Miscellaneous),
            ("BAR.SYNC 0x0", C::Miscellaneous),
            ("MOV R0, 0x1d0", C::Miscellaneous),
            ("@!PT SHFL.IDX PT, RZ, RZ, RZ, RZ", C::Other),
            ("F2F.F32.F64 R2, R4", C::Other),
        ] {
            assert_eq!(of_machine_code(text), class, "{text}");
        }
        for (text, class) in [
            ("@%p1 fma.rn.f64 %fd1, %fd2, %fd3, %fd4;", C::Double),
            ("setp.lt.f32 %p1, %f1, %f2;", C::Single),
            ("mad.lo.s32 %r1, %r2, %r3, %r4;", C::Integer),
            ("ld.global.f64 %fd1, [%rd1];", C::LoadStore),
            ("bar.sync 0;", C::Miscellaneous),
            ("ret;", C::Control),
        ] {
            assert_eq!(of_ptx(text), class, "{text}");
        }
    }

    #[test]
    fn what_no_thread_does_is_inactive() {
        let mut mix = InstructionMix::default();
        assert_eq!((mix.share(C::Double), mix.inactive()), (0.0, 0.0));
        mix.add("sass", "DADD R0, R2, R4", 3, 96);
        mix.add("sass", "@P0 STS.64 [R2], R0", 1, 8);
        assert_eq!((mix.share(C::Double), mix.share(C::LoadStore), mix.inactive()), (75.0, 6.25, 18.75));
    }
}
