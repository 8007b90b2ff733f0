//! The pipe of an instruction, the class of its latency, and the class that counts it.
//!
//! Passes of sequences are from measured latencies of a TITAN V (NMSU-PEARL GPUs-ISA-Latencies, HPEC 2019) over the latency of one
//! pass of the class: div.s32 71 cycles of 4 to 5, rcp.rn.f32 60, sqrt.rn.f32 60, rcp.rn.f64 57 of 8, sqrt.rn.f64 106. Divisions of
//! floats were measured on slow paths (504 and 606 cycles); the common path's instruction count is taken instead (8 and 12).

use crate::matrix::{Element, Family, MatrixForm};
use crate::program::timing::{CTA_FENCE, CountClass, FENCE, LatencyClass, MATRIX_PASS, Pipe, SharedCost, VOTE};
use crate::ptx::ast::Instruction;
use crate::ptx::modifier::Modifier as M;
use crate::ptx::opcode::Opcode as O;
use crate::ptx::types::ScalarType as T;

pub(super) type Cost = (Pipe, LatencyClass, CountClass, u8);

/// The cost of an instruction.
pub(super) fn cost(instruction: &Instruction) -> Cost {
    use CountClass as C;
    use LatencyClass as L;
    let data_type = instruction.types.first().copied().unwrap_or(T::B32);
    let integer_passes = if data_type.bits() == 64 { 2 } else { 1 };
    let integer = (Pipe::Int, L::Integer, C::Integer, integer_passes);
    let half = matches!(data_type, T::F16 | T::F16x2 | T::Bf16 | T::Bf16x2);
    match instruction.opcode {
        O::Add | O::Sub | O::Mul | O::Fma | O::Mad if half => (Pipe::Fp16, L::Half, C::Half, 1),
        // Two singles, one after the other.
        O::Add | O::Sub if data_type == T::F32x2 => (Pipe::Fp32, L::Single, C::SingleAdd, 2),
        O::Mul if data_type == T::F32x2 => (Pipe::Fp32, L::Single, C::SingleMultiply, 2),
        O::Fma if data_type == T::F32x2 => (Pipe::Fp32, L::Single, C::SingleFma, 2),
        O::Add | O::Sub if data_type == T::F32 => (Pipe::Fp32, L::Single, C::SingleAdd, 1),
        O::Add | O::Sub if data_type == T::F64 => (Pipe::Fp64, L::Double, C::DoubleAdd, 1),
        O::Mul if data_type == T::F32 => (Pipe::Fp32, L::Single, C::SingleMultiply, 1),
        O::Mul if data_type == T::F64 => (Pipe::Fp64, L::Double, C::DoubleMultiply, 1),
        O::Fma | O::Mad if data_type == T::F32 => (Pipe::Fp32, L::Single, C::SingleFma, 1),
        O::Fma | O::Mad if data_type == T::F64 => (Pipe::Fp64, L::Double, C::DoubleFma, 1),
        O::Min | O::Max | O::Abs | O::Neg if data_type == T::F32 => (Pipe::Int, L::Integer, C::Other, 1),
        O::Min | O::Max | O::Abs | O::Neg if data_type == T::F64 => (Pipe::Fp64, L::Double, C::Other, 1),
        O::Mul | O::Mad | O::Madc if data_type.bits() == 64 && !instruction.has(M::Wide) => {
            (Pipe::Int, L::IntegerMultiply, C::Integer, if instruction.has(M::Hi) { 8 } else { 4 })
        }
        O::Mul | O::Mad | O::Madc | O::Dp4a | O::Dp2a => (Pipe::Int, L::IntegerMultiply, C::Integer, 1),
        O::Mul24 | O::Mad24 => (Pipe::Int, L::IntegerMultiply, C::Integer, 2),
        O::Div if data_type == T::F32 => {
            if instruction.has(M::Approx) || instruction.has(M::Full) {
                (Pipe::Sfu, L::Special, C::Other, 2)
            } else {
                (Pipe::Fp32, L::Single, C::Other, 10)
            }
        }
        O::Div if data_type == T::F64 => (Pipe::Fp64, L::Double, C::Other, 12),
        O::Div | O::Rem => (Pipe::Int, L::IntegerMultiply, C::Integer, if data_type.bits() == 64 { 40 } else { 14 }),
        O::Rcp | O::Sqrt | O::Rsqrt if data_type == T::F64 => {
            let passes = match instruction.opcode {
                _ if instruction.has(M::Approx) => 1,
                O::Sqrt => 13,
                _ => 7,
            };
            (Pipe::Fp64, L::Double, C::Other, passes)
        }
        O::Rcp | O::Sqrt if !instruction.has(M::Approx) => (Pipe::Sfu, L::Special, C::Other, 3),
        O::Sin | O::Cos | O::Ex2 => (Pipe::Sfu, L::Special, C::Other, 2),
        O::Rcp | O::Sqrt | O::Rsqrt | O::Lg2 | O::Tanh => (Pipe::Sfu, L::Special, C::Other, 1),
        O::Setp | O::Set if data_type_of_comparison(instruction) == T::F64 => (Pipe::Fp64, L::Double, C::Other, 1),
        O::Setp => (Pipe::Int, L::Predicate, C::Integer, integer_passes),
        O::Testp => (Pipe::Int, L::Predicate, C::Other, integer_passes),
        O::And | O::Or | O::Xor | O::Not if data_type == T::Pred => (Pipe::Int, L::Predicate, C::Integer, 1),
        O::Cvt => conversion(instruction),
        O::Popc | O::Clz | O::Bfind | O::Brev => (Pipe::Sfu, L::Conversion, C::Integer, 1),
        O::Cvta => (Pipe::Free, L::Zero, C::Other, 1),
        O::Mov => (Pipe::Int, L::Integer, C::Other, 1),
        O::Ld if instruction.has(M::Param) || instruction.has(M::ParamEntry) => (Pipe::Free, L::Zero, C::Memory, 1),
        O::Mbarrier => access(true, true),
        O::Ld | O::Ldu | O::St | O::Atom | O::Red => {
            access(is_shared(instruction), matches!(instruction.opcode, O::Ld | O::Ldu))
        }
        O::Shfl | O::Match | O::Redux | O::Movmatrix => (Pipe::Memory, L::Exchange, C::Other, 1),
        O::Vote | O::Activemask => once(VOTE),
        O::Bar | O::Barrier if instruction.has(M::Warp) => (Pipe::Branch, L::Branch, C::Other, 1),
        O::Bar | O::Barrier => (Pipe::Memory, L::Variable, C::Barrier, 1),
        O::Membar | O::Fence if is_of_cta(instruction) => once(CTA_FENCE),
        O::Membar | O::Fence => once(FENCE),
        O::Bra | O::Brx | O::Exit | O::Ret | O::Trap | O::Brkpt | O::Call => (Pipe::Branch, L::Branch, C::Control, 1),
        O::Nanosleep => (Pipe::Branch, L::Branch, C::Other, 1),
        _ => integer,
    }
}

/// The cost of a load, or of any other access, by whether it stays in shared memory.
pub(super) fn access(is_shared: bool, is_load: bool) -> Cost {
    let pipe = match (is_shared, is_load) {
        (true, _) => Pipe::Memory,
        (false, true) => Pipe::Load,
        (false, false) => Pipe::Store,
    };
    (pipe, LatencyClass::Variable, CountClass::Memory, 1)
}

/// One pass of what machine code has, too.
fn once((pipe, latency, count): SharedCost) -> Cost {
    (pipe, latency, count, 1)
}

/// Whether a fence is of a CTA alone: its threads share an L1, and values are coherent, so that it waits for nothing.
pub(super) fn is_of_cta(fence: &Instruction) -> bool {
    fence.has(M::Cta)
}

/// Whether an access names shared memory.
fn is_shared(instruction: &Instruction) -> bool {
    [M::Shared, M::SharedCta, M::SharedCluster].into_iter().any(|space| instruction.has(space))
}

/// The cost of a matrix product: as many passes as its multiply-adds fill. Types that V100 does not have go at their rate on A100 relative
/// to half precision there (NVIDIA A100 whitepaper, table of peak rates: TF32 156, FP16 and BF16 312, FP64 19.5 Tflop/s; INT8 624, INT4
/// 1248, binary 4992 Tops), 8-bit floats at the rate of H100 (twice), but where they are computed as halves. Products with a sparse matrix take
/// half as long (the same tables).
pub(super) fn matrix_product(form: &MatrixForm) -> Cost {
    let matrices = if form.family == Family::QuadPairs { 4 } else { 1 };
    let products = form.m * form.n * form.k * matrices / if form.family == Family::Sparse { 2 } else { 1 };
    let passes = match form.a {
        _ if form.multiplies_bytes_as_halves() => products / MATRIX_PASS,
        Element::F16 | Element::Bf16 | Element::F32 | Element::S32 => products / MATRIX_PASS,
        Element::Tf32 => products * 2 / MATRIX_PASS,
        Element::F64 => products * 16 / MATRIX_PASS,
        Element::S8 | Element::U8 | Element::E4m3 | Element::E5m2 => products / 2 / MATRIX_PASS,
        Element::S4 | Element::U4 => products / 4 / MATRIX_PASS,
        // Elements of 32 bits.
        Element::Bits => products * 32 / 16 / MATRIX_PASS,
    };
    (Pipe::Tensor, LatencyClass::Tensor, CountClass::Other, passes.clamp(1, 255) as u8)
}

fn data_type_of_comparison(instruction: &Instruction) -> T {
    instruction.types.last().copied().unwrap_or(T::B32)
}

fn conversion(instruction: &Instruction) -> Cost {
    let [to, from] = [0, 1].map(|index| instruction.types.get(index).copied().unwrap_or(T::B32));
    if !to.is_float() && !from.is_float() {
        return (Pipe::Int, LatencyClass::Integer, CountClass::Conversion, 1);
    }
    if to.bits() == 64 || from.bits() == 64 {
        return (Pipe::Sfu, LatencyClass::WideConversion, CountClass::Conversion, 2);
    }
    (Pipe::Sfu, LatencyClass::Conversion, CountClass::Conversion, 1)
}
