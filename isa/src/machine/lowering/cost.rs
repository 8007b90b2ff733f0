//! Which pipe an instruction takes, and the class of its latency.
//!
//! Integer multiply-adds run in the pipe of single precision, in one half of it where it has two; other integer operations, moves,
//! selections and comparisons have one of their own. Source: the smallest distances that ptxas keeps between dependent instructions, 4
//! cycles inside either group and 5 between them; and the metrics of NVIDIA's profiler (`sm__inst_executed_pipe_fma`: "FP32 and integer multiply-add").

use crate::program::timing::{CTA_FENCE, CountClass, FENCE, GROUP_PRODUCT, LatencyClass, Pipe, SharedCost, VOTE};
use crate::sass::{self, Aspect, Opcode};

/// The pipe, the latency and the class of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub pipe: Pipe,
    pub latency: LatencyClass,
    pub count: CountClass,
}

const fn cost(pipe: Pipe, latency: LatencyClass, count: CountClass) -> Cost {
    Cost { pipe, latency, count }
}

/// What PTX has, too.
const fn shared((pipe, latency, count): SharedCost) -> Cost {
    cost(pipe, latency, count)
}

pub(super) const BRANCH: Cost = cost(Pipe::Branch, LatencyClass::Branch, CountClass::Control);
pub(super) const CALL: Cost = cost(Pipe::Branch, LatencyClass::Branch, CountClass::Control);

/// The cost of an instruction.
pub(super) fn of(instruction: &sass::Instruction) -> Cost {
    use CountClass as C;
    use LatencyClass as L;
    use Opcode as O;
    match instruction.opcode() {
        // The scheduling table of sm_90 has the additions of `VIADD` in the pipe of `IMAD`.
        O::Imad | O::ImadWide | O::ImadHigh | O::Idp | O::Viadd => cost(Pipe::Multiply, L::IntegerMultiply, C::Integer),
        O::Uimad | O::UimadWide => cost(Pipe::Int, L::IntegerMultiply, C::Integer),
        O::Ffma => cost(Pipe::Fp32, L::Single, C::SingleFma),
        O::Fadd => cost(Pipe::Fp32, L::Single, C::SingleAdd),
        O::Fmul => cost(Pipe::Fp32, L::Single, C::SingleMultiply),
        O::Fswzadd => cost(Pipe::Fp32, L::Single, C::SingleAdd),
        O::Dfma => cost(Pipe::Fp64, L::Double, C::DoubleFma),
        O::Dadd => cost(Pipe::Fp64, L::Double, C::DoubleAdd),
        O::Dmul => cost(Pipe::Fp64, L::Double, C::DoubleMultiply),
        O::Dsetp => cost(Pipe::Fp64, L::Double, C::Other),
        O::Hadd2 | O::Hmul2 | O::Hfma2 | O::Hfma2Mma => cost(Pipe::Fp16, L::Half, C::Half),
        O::Hsetp2 | O::Hset2 | O::Hmnmx2 => cost(Pipe::Fp16, L::Half, C::Other),
        O::HmmaStep if instruction.text(Aspect::Type).starts_with(".F32") => {
            cost(Pipe::Tensor, L::TensorStep, C::Other)
        }
        O::HmmaStep => cost(Pipe::Tensor, L::TensorHalfStep, C::Other),
        O::Hmma => cost(Pipe::Tensor, L::TensorProduct, C::Other),
        // Where doubles have a full pipe, these products go at twice its rate: 64 multiply-adds of an A100's SM, 128 of an H100's.
        O::Dmma => cost(Pipe::Fp64, L::TensorProduct, C::Other),
        O::Qmma => cost(Pipe::Tensor, L::TensorProduct, C::Other),
        O::Imma | O::Bmma => cost(Pipe::Tensor, L::TensorNarrowProduct, C::Other),
        O::Hgmma | O::Igmma | O::Bgmma | O::Qgmma => shared(GROUP_PRODUCT),
        O::Mufu => cost(Pipe::Sfu, L::Special, C::Other),
        O::Popc | O::Flo | O::Brev => cost(Pipe::Sfu, L::Conversion, C::Integer),
        // Code for sm_75 lets two cycles pass between two of them, and eight before a store of the result, without a scoreboard.
        O::F2fp => cost(Pipe::Fp16, L::Half, C::Conversion),
        O::I2f | O::F2i | O::F2f | O::Frnd => cost(Pipe::Sfu, L::Conversion, C::Conversion),
        O::I2i | O::I2ip | O::F2ip => cost(Pipe::Int, L::Integer, C::Conversion),
        O::Fsetp | O::Fset | O::Fsel | O::Fmnmx => cost(Pipe::Int, L::Predicate, C::Other),
        O::Fchk => cost(Pipe::Sfu, L::Conversion, C::Other),
        O::Isetp | O::Uisetp => cost(Pipe::Int, L::Predicate, C::Integer),
        O::Plop3 | O::Uplop3 | O::P2r | O::R2p | O::Up2ur | O::Ur2up => cost(Pipe::Int, L::Predicate, C::Other),
        O::Umov => cost(Pipe::Int, L::UniformMove, C::Other),
        O::Mov | O::Sel | O::Usel | O::Prmt | O::Uprmt | O::Cs2r | O::Lepc | O::Ulepc | O::Rpcmov => {
            cost(Pipe::Int, L::Integer, C::Other)
        }
        O::S2r | O::S2ur | O::B2r => cost(Pipe::Sfu, L::Conversion, C::Other),
        O::Ldc | O::Uldc if instruction.names_index() => cost(Pipe::Memory, L::Variable, C::Memory),
        O::Ldc | O::Uldc => cost(Pipe::Int, L::UniformMove, C::Memory),
        O::I2fp => cost(Pipe::Int, L::Integer, C::Conversion),
        O::Redux => cost(Pipe::Memory, L::Exchange, C::Integer),
        O::Ldgsts => cost(Pipe::Load, L::Variable, C::Memory),
        O::Ldgdepbar => cost(Pipe::Branch, L::Branch, C::Other),
        O::Syncs | O::Ublkcp | O::Ublkred | O::Ublkpf | O::Utmaldg | O::Utmastg | O::Utmaredg | O::Utmapf => {
            cost(Pipe::Memory, L::Variable, C::Memory)
        }
        O::Utmacctl | O::Utmacmdflush | O::Usetmaxreg | O::Usetshmsz => cost(Pipe::Branch, L::Branch, C::Other),
        O::Arrives => cost(Pipe::Memory, L::Variable, C::Memory),
        O::Shfl | O::Match | O::Movm => cost(Pipe::Memory, L::Exchange, C::Other),
        O::Voteu | O::R2ur => cost(Pipe::Int, L::UniformMove, C::Other),
        O::Vote => shared(VOTE),
        O::Lds | O::Sts | O::Atoms | O::Ldsm | O::Stsm | O::Stas | O::Redas => {
            cost(Pipe::Memory, L::Variable, C::Memory)
        }
        O::Ldg | O::Ld | O::Ldl | O::Tex | O::Tld | O::Tld4 | O::Txd | O::Txq | O::Suld => {
            cost(Pipe::Load, L::Variable, C::Memory)
        }
        O::Stg | O::St | O::Stl | O::Atomg | O::Atom | O::Red | O::Redg | O::Sust | O::Sured => {
            cost(Pipe::Store, L::Variable, C::Memory)
        }
        O::Qspc => cost(Pipe::Memory, L::Exchange, C::Other),
        O::Membar if is_fence_of_device(instruction) => shared(FENCE),
        // Fences of a CTA, and instructions that empty caches: values are coherent.
        O::Membar | O::Errbar | O::Cctl | O::Cctll => shared(CTA_FENCE),
        O::Bar | O::UcgabarArv | O::UcgabarWait => cost(Pipe::Memory, L::Variable, C::Barrier),
        O::Bra | O::Brx | O::Jmx | O::Brxu | O::Jmxu | O::Call | O::Ret | O::Exit | O::Bpt => BRANCH,
        O::Bssy | O::Bsync | O::Break | O::Warpsync | O::Yield | O::Nanosleep | O::Bmov => {
            cost(Pipe::Branch, L::Branch, C::Control)
        }
        O::Elect => cost(Pipe::Int, L::UniformMove, C::Other),
        O::Cgaerrbar | O::Fence => shared(CTA_FENCE),
        // Three in a row after a product of matrices take an H100 no cycle more than their stalls (mma.sync m16n8k8 of Johnsonms).
        O::Nop => cost(Pipe::Branch, L::Zero, C::Other),
        O::Depbar | O::Warpgroup | O::Pmtrig | O::Preexit | O::Acqbulk | O::Endcollective => {
            cost(Pipe::Branch, L::Branch, C::Other)
        }
        _ => cost(Pipe::Int, L::Integer, C::Integer),
    }
}

/// Whether a fence orders accesses for more than the SM.
pub(super) fn is_fence_of_device(fence: &sass::Instruction) -> bool {
    !matches!(fence.text(Aspect::Scope), ".CTA" | ".SM")
}
