//! Which dotted words, how many types and which operands each instruction takes.
//!
//! The table says which instructions PTX (ISA 9.x) allows; the decoder says which of them the simulator can run.

use std::sync::LazyLock;

use super::modifier::Modifier as M;
use super::opcode::Opcode as O;

/// Words of 64 bits that have a bit for each modifier.
const MODIFIER_WORDS: usize = 7;

/// A set of modifiers.
#[derive(Clone, Copy, Debug)]
pub struct ModifierSet {
    bits: [u64; MODIFIER_WORDS],
}

impl ModifierSet {
    const fn of(groups: &[&[M]]) -> Self {
        let mut bits = [0; MODIFIER_WORDS];
        let mut group = 0;
        while group < groups.len() {
            let mut index = 0;
            while index < groups[group].len() {
                let number = groups[group][index] as usize;
                bits[number / 64] |= 1 << (number % 64);
                index += 1;
            }
            group += 1;
        }
        Self { bits }
    }

    /// The modifiers from one up to another.
    const fn between(first: M, last: M) -> Self {
        let mut bits = [0; MODIFIER_WORDS];
        let mut number = first as usize;
        while number <= last as usize {
            bits[number / 64] |= 1 << (number % 64);
            number += 1;
        }
        Self { bits }
    }

    /// Those of either set.
    const fn or(self, other: Self) -> Self {
        let mut bits = self.bits;
        let mut index = 0;
        while index < MODIFIER_WORDS {
            bits[index] |= other.bits[index];
            index += 1;
        }
        Self { bits }
    }

    /// Whether a modifier is among them.
    pub const fn contains(&self, modifier: M) -> bool {
        let number = modifier as usize;
        self.bits[number / 64] >> (number % 64) & 1 != 0
    }
}

/// The operands that may stand in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandSlot {
    /// A register, a vector of them, or `_`.
    Destination,
    /// A destination that may be a pair `p|q`.
    DestinationPair,
    /// A destination that may have a predicate after it: `{...}|p`.
    DestinationResident,
    /// A register, literal, special register, symbol or vector.
    Source,
    /// A predicate register, `!` allowed.
    Predicate,
    /// A predicate as above, or any other source: `bar.red`, where the count may be left out.
    SourceOrPredicate,
    /// `[...]`
    Address,
    /// `[...]`, lists allowed: textures, surfaces, tensors.
    AddressList,
    /// A label.
    Label,
    /// A source of a video instruction: negated or part of a register.
    Video,
    /// Anything, for instructions whose operands are not checked.
    Any,
}

impl OperandSlot {
    /// The expected operand, in the words of a message.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Destination => "a destination register, a vector of them, or `_`",
            Self::DestinationPair => "a destination register, or a pair `p|q`",
            Self::DestinationResident => "a vector of destination registers, a predicate after `|` allowed",
            Self::Source => "a register, a literal or a symbol",
            Self::Predicate => "a predicate register, `!` before it allowed",
            Self::SourceOrPredicate => "a register, a literal or a predicate",
            Self::Address => "an address in brackets",
            Self::AddressList => "an address in brackets, coordinates allowed",
            Self::Label => "a label",
            Self::Video => "a register, part of a register, or a literal",
            Self::Any => "an operand",
        }
    }

    const fn from_letter(letter: u8) -> Self {
        match letter {
            b'd' => Self::Destination,
            b'p' => Self::DestinationPair,
            b'r' => Self::DestinationResident,
            b's' => Self::Source,
            b'q' => Self::Predicate,
            b'o' => Self::SourceOrPredicate,
            b'a' => Self::Address,
            b't' => Self::AddressList,
            b'l' => Self::Label,
            b'v' => Self::Video,
            _ => Self::Any,
        }
    }
}

/// One form of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The instruction.
    pub opcode: O,
    /// The form applies where all of these are among the dotted words.
    pub required: &'static [M],
    /// The dotted words that it takes besides types.
    pub modifiers: ModifierSet,
    /// Fewest types.
    pub minimum_types: u8,
    /// Most types.
    pub maximum_types: u8,
    /// A letter for each operand, `|` before the first that may be left out; see [`Form::slot`].
    operands: &'static str,
    /// Its words and operands are not checked: instructions after Ampere that are refused by name later.
    pub is_open: bool,
}

impl Form {
    /// The operands that may stand at a place; `None` past the last.
    pub fn slot(&self, index: usize) -> Option<OperandSlot> {
        if self.is_open {
            return Some(OperandSlot::Any);
        }
        let mut letters = self.operands.bytes().filter(|letter| *letter != b'|');
        letters.nth(index).map(OperandSlot::from_letter)
    }

    /// Fewest operands.
    pub fn minimum_operands(&self) -> usize {
        self.operands.bytes().position(|letter| letter == b'|').unwrap_or(self.operands.len())
    }

    /// Most operands.
    pub fn maximum_operands(&self) -> usize {
        if self.is_open {
            return usize::MAX;
        }
        self.operands.bytes().filter(|letter| *letter != b'|').count()
    }
}

/// The forms of an instruction; the first that applies counts.
pub fn forms(opcode: O) -> &'static [Form] {
    static RANGES: LazyLock<Vec<(usize, usize)>> = LazyLock::new(|| {
        let range = |opcode: &O| {
            let first = FORMS.iter().position(|form| form.opcode == *opcode).unwrap_or(FORMS.len());
            let count = FORMS[first..].iter().take_while(|form| form.opcode == *opcode).count();
            (first, first + count)
        };
        O::ALL.iter().map(range).collect()
    });
    let (first, end) = RANGES[opcode as usize];
    &FORMS[first..end]
}

/// The form that an instruction's dotted words choose.
pub fn form(opcode: O, modifiers: &[M]) -> Option<&'static Form> {
    forms(opcode).iter().find(|form| form.required.iter().all(|required| modifiers.contains(required)))
}

/// `operands`: d destination, p destination or pair, r destination with residency, s source, q predicate, o source or predicate, a address,
/// t address list, l label, v video source; `|` before the optional ones.
const fn row(opcode: O, required: &'static [M], groups: &[&[M]], types: (u8, u8), operands: &'static str) -> Form {
    let modifiers = ModifierSet::of(groups).or(ModifierSet::of(&[required]));
    Form { opcode, required, modifiers, minimum_types: types.0, maximum_types: types.1, operands, is_open: false }
}

/// A product by a group of warps.
const fn group(required: &'static [M], operands: &'static str) -> Form {
    let form = row(O::Wgmma, required, &[&[M::Sync, M::Aligned, M::Satfinite, M::And, M::Popc]], (3, 3), operands);
    Form { modifiers: form.modifiers.or(GROUP_SHAPE), ..form }
}

const fn open(opcode: O, required: &'static [M]) -> Form {
    let modifiers = ModifierSet { bits: [u64::MAX; MODIFIER_WORDS] };
    Form { opcode, required, modifiers, minimum_types: 0, maximum_types: u8::MAX, operands: "|", is_open: true }
}

const SPACE: &[M] =
    &[M::Const, M::Global, M::Local, M::Param, M::ParamEntry, M::ParamFunc, M::Shared, M::SharedCta, M::SharedCluster];
const FLOAT_ROUNDING: &[M] = &[M::Rn, M::Rz, M::Rm, M::Rp];
const ALL_ROUNDING: &[M] = &[M::Rn, M::Rna, M::Rz, M::Rm, M::Rp, M::Rs, M::Rni, M::Rzi, M::Rmi, M::Rpi];
const FTZ_SAT: &[M] = &[M::Ftz, M::Sat];
const HI_LO: &[M] = &[M::Hi, M::Lo];
const COMPARE: &[M] = &[
    M::Eq,
    M::Ne,
    M::Lt,
    M::Le,
    M::Gt,
    M::Ge,
    M::Lo,
    M::Ls,
    M::Hi,
    M::Hs,
    M::Equ,
    M::Neu,
    M::Ltu,
    M::Leu,
    M::Gtu,
    M::Geu,
    M::Num,
    M::Nan,
];
const BOOLEAN: &[M] = &[M::And, M::Or, M::Xor];
const CACHE: &[M] = &[
    M::Ca,
    M::Cg,
    M::Cs,
    M::Lu,
    M::Cv,
    M::Wb,
    M::Wt,
    M::Nc,
    M::L1EvictNormal,
    M::L1EvictUnchanged,
    M::L1EvictFirst,
    M::L1EvictLast,
    M::L1NoAllocate,
    M::L2EvictNormal,
    M::L2EvictFirst,
    M::L2EvictLast,
    M::L2CacheHint,
    M::L2Prefetch64,
    M::L2Prefetch128,
    M::L2Prefetch256,
    M::Unified,
];
const ORDER: &[M] =
    &[M::Weak, M::Relaxed, M::Acquire, M::Release, M::AcquireRelease, M::SequentiallyConsistent, M::Volatile, M::Mmio];
const SCOPE: &[M] = &[M::Cta, M::Cluster, M::Gpu, M::Sys];
const VECTOR: &[M] = &[M::V2, M::V4, M::V8];
const ATOMIC: &[M] = &[M::Add, M::Inc, M::Dec, M::Min, M::Max, M::And, M::Or, M::Xor, M::Exch, M::Cas, M::Noftz];
const MINMAX: &[M] = &[M::Ftz, M::NaN, M::XorSign, M::AbsoluteValue, M::Relu];
const VIDEO: &[M] = &[M::Sat, M::Add, M::Min, M::Max];
const GEOMETRY: &[M] =
    &[M::D1, M::D2, M::D3, M::A1d, M::A2d, M::Cube, M::Acube, M::D2ms, M::A2dms, M::Base, M::Level, M::Grad];
const OUT_OF_BOUNDS: &[M] = &[M::Trap, M::Clamp, M::Zero];
const QUERY: &[M] = &[
    M::Width,
    M::Height,
    M::Depth,
    M::ChannelDataType,
    M::ChannelOrder,
    M::NormalizedCoords,
    M::ArraySize,
    M::NumMipmapLevels,
    M::NumSamples,
    M::ForceUnnormalizedCoords,
    M::FilterMode,
    M::AddrMode0,
    M::AddrMode1,
    M::AddrMode2,
    M::MemoryLayout,
    M::Level,
];
const SHAPE: &[M] = &[
    M::M8n8,
    M::M8n16,
    M::M16n8,
    M::M16n16,
    M::M8n8k4,
    M::M8n8k16,
    M::M8n8k32,
    M::M8n8k64,
    M::M8n8k128,
    M::M16n8k4,
    M::M16n8k8,
    M::M16n8k16,
    M::M16n8k32,
    M::M16n8k64,
    M::M16n8k128,
    M::M16n8k256,
    M::M16n16k8,
    M::M16n16k16,
    M::M8n32k16,
    M::M32n8k16,
];
/// The shapes of products by groups of warps: all modifiers that name one, which stand together in the list of modifiers.
const GROUP_SHAPE: ModifierSet = ModifierSet::between(M::M64n8k8, M::M64n256k256);
const MATRIX: &[M] = &[M::Sync, M::Aligned, M::Row, M::Col, M::Satfinite, M::A, M::B, M::C, M::D];
const SPARSE: &[M] = &[
    M::Sp,
    M::SpOrderedMetadata,
    M::BlockScale,
    M::KindF8f6f4,
    M::KindMxf8f6f4,
    M::KindMxf4,
    M::KindMxf4nvf4,
    M::ScaleVec1x,
    M::ScaleVec2x,
    M::ScaleVec4x,
    M::Xor,
    M::And,
    M::Popc,
];
const NONE: &[&[M]] = &[];

/// The table, rows of an opcode together, special forms first.
#[rustfmt::skip]
static FORMS: &[Form] = &[
    // Integer and floating-point arithmetic.
    row(O::Add, &[], &[FLOAT_ROUNDING, FTZ_SAT, &[M::Cc]], (1, 2), "dss"),
    row(O::Sub, &[], &[FLOAT_ROUNDING, FTZ_SAT, &[M::Cc]], (1, 2), "dss"),
    row(O::Mul, &[], &[FLOAT_ROUNDING, FTZ_SAT, HI_LO, &[M::Wide]], (1, 1), "dss"),
    row(O::Mad, &[], &[FLOAT_ROUNDING, FTZ_SAT, HI_LO, &[M::Wide, M::Cc]], (1, 1), "dsss"),
    row(O::Fma, &[], &[FLOAT_ROUNDING, FTZ_SAT, &[M::Relu]], (1, 2), "dsss"),
    row(O::Addc, &[], &[&[M::Cc]], (1, 1), "dss"),
    row(O::Subc, &[], &[&[M::Cc]], (1, 1), "dss"),
    row(O::Madc, &[], &[HI_LO, &[M::Cc]], (1, 1), "dsss"),
    row(O::Mul24, &[], &[HI_LO], (1, 1), "dss"),
    row(O::Mad24, &[], &[HI_LO, &[M::Sat]], (1, 1), "dsss"),
    row(O::Sad, &[], NONE, (1, 1), "dsss"),
    row(O::Clmad, &[], &[HI_LO], (1, 1), "dsss"),
    row(O::Div, &[], &[FLOAT_ROUNDING, FTZ_SAT, &[M::Approx, M::Full]], (1, 1), "dss"),
    row(O::Rem, &[], NONE, (1, 1), "dss"),
    row(O::Abs, &[], &[&[M::Ftz]], (1, 1), "ds"),
    row(O::Neg, &[], &[&[M::Ftz]], (1, 1), "ds"),
    row(O::Min, &[], &[MINMAX], (1, 1), "dss|s"),
    row(O::Max, &[], &[MINMAX], (1, 1), "dss|s"),
    row(O::Popc, &[], NONE, (1, 1), "ds"),
    row(O::Clz, &[], NONE, (1, 1), "ds"),
    row(O::Bfind, &[], &[&[M::ShiftAmount]], (1, 1), "ds"),
    row(O::Fns, &[], NONE, (1, 1), "dsss"),
    row(O::Brev, &[], NONE, (1, 1), "ds"),
    row(O::Bfe, &[], NONE, (1, 1), "dsss"),
    row(O::Bfi, &[], NONE, (1, 1), "dssss"),
    row(O::Szext, &[], &[&[M::Wrap, M::Clamp]], (1, 1), "dss"),
    row(O::Bmsk, &[], &[&[M::Wrap, M::Clamp]], (1, 1), "dss"),
    row(O::Dp4a, &[], NONE, (2, 2), "dsss"),
    row(O::Dp2a, &[], &[HI_LO], (2, 2), "dsss"),
    row(O::Rcp, &[], &[FLOAT_ROUNDING, &[M::Ftz, M::Approx]], (1, 1), "ds"),
    row(O::Sqrt, &[], &[FLOAT_ROUNDING, &[M::Ftz, M::Approx]], (1, 1), "ds"),
    row(O::Rsqrt, &[], &[&[M::Ftz, M::Approx]], (1, 1), "ds"),
    row(O::Sin, &[], &[&[M::Ftz, M::Approx]], (1, 1), "ds"),
    row(O::Cos, &[], &[&[M::Ftz, M::Approx]], (1, 1), "ds"),
    row(O::Lg2, &[], &[&[M::Ftz, M::Approx]], (1, 1), "ds"),
    row(O::Ex2, &[], &[&[M::Ftz, M::Approx]], (1, 1), "ds"),
    row(O::Tanh, &[], &[&[M::Approx]], (1, 1), "ds"),
    row(O::Testp, &[], &[&[M::Finite, M::Infinite, M::Number, M::NotANumber, M::Normal, M::Subnormal]], (1, 1), "ds"),
    row(O::Copysign, &[], NONE, (1, 1), "dss"),
    // Comparison and selection.
    row(O::Setp, &[], &[COMPARE, BOOLEAN, &[M::Ftz]], (1, 1), "pss|q"),
    row(O::Set, &[], &[COMPARE, BOOLEAN, &[M::Ftz]], (2, 2), "dss|q"),
    row(O::Selp, &[], NONE, (1, 1), "dssq"),
    row(O::Slct, &[], &[&[M::Ftz]], (2, 2), "dsss"),
    // Logic and shifts.
    row(O::And, &[], NONE, (1, 1), "dss"),
    row(O::Or, &[], NONE, (1, 1), "dss"),
    row(O::Xor, &[], NONE, (1, 1), "dss"),
    row(O::Not, &[], NONE, (1, 1), "ds"),
    row(O::Cnot, &[], NONE, (1, 1), "ds"),
    row(O::Lop3, &[], &[&[M::And, M::Or]], (1, 1), "pssss|q"),
    row(O::Shf, &[], &[&[M::L, M::R, M::Wrap, M::Clamp]], (1, 1), "dsss"),
    row(O::Shl, &[], NONE, (1, 1), "dss"),
    row(O::Shr, &[], NONE, (1, 1), "dss"),
    row(O::Prmt, &[], &[&[M::F4e, M::B4e, M::Rc8, M::Ecl, M::Ecr, M::Rc16]], (1, 1), "dsss"),
    // Data movement.
    row(O::Mov, &[], &[VECTOR], (1, 1), "ds"),
    row(O::Ld, &[], &[SPACE, CACHE, ORDER, SCOPE, VECTOR], (1, 1), "da|s"),
    row(O::Ldu, &[], &[SPACE, VECTOR], (1, 1), "da"),
    row(O::St, &[M::Async], &[SPACE, ORDER, SCOPE, VECTOR, &[M::CompleteTxBytes]], (1, 1), "as|a"),
    open(O::St, &[M::Bulk]),
    row(O::St, &[], &[SPACE, CACHE, ORDER, SCOPE, VECTOR], (1, 1), "as|s"),
    row(O::Prefetch, &[], &[SPACE, &[M::L1, M::L2, M::L2EvictLast, M::L2EvictNormal, M::Tensormap]], (0, 0), "a"),
    row(O::Prefetchu, &[], &[&[M::L1]], (0, 0), "a"),
    row(O::Applypriority, &[], &[&[M::Global, M::L2EvictNormal]], (0, 0), "as"),
    row(O::Discard, &[], &[&[M::Global, M::L2]], (0, 0), "as"),
    row(O::Createpolicy, &[], &[&[
        M::Fractional, M::Range, M::Global, M::CvtPolicy, M::L2EvictFirst, M::L2EvictLast, M::L2EvictNormal, M::L2EvictUnchanged, M::L2,
    ]], (1, 1), "d|xss"),
    row(O::Isspacep, &[], &[SPACE], (0, 0), "ds"),
    row(O::Istypep, &[], NONE, (1, 1), "ds"),
    row(O::Cvta, &[], &[SPACE, &[M::To]], (1, 1), "ds"),
    row(O::Cvt, &[M::Pack], &[&[M::Sat]], (2, 3), "dss|s"),
    row(O::Cvt, &[], &[ALL_ROUNDING, FTZ_SAT, &[M::Relu, M::Satfinite, M::ScaledN2Ue8m0]], (2, 3), "ds|sss"),
    row(O::Mapa, &[], &[SPACE], (1, 1), "dss"),
    row(O::Getctarank, &[], &[SPACE], (1, 1), "ds"),
    row(O::Alloca, &[], NONE, (1, 1), "ds|s"),
    row(O::Stacksave, &[], NONE, (1, 1), "d"),
    row(O::Stackrestore, &[], NONE, (1, 1), "s"),
    // Exchange between lanes.
    row(O::Shfl, &[M::Sync], &[&[M::Up, M::Down, M::Bfly, M::Idx]], (1, 1), "pssss"),
    row(O::Shfl, &[], &[&[M::Up, M::Down, M::Bfly, M::Idx]], (1, 1), "psss"),
    row(O::Vote, &[M::Sync], &[&[M::All, M::Any, M::Uni, M::Ballot]], (1, 1), "dqs"),
    row(O::Vote, &[], &[&[M::All, M::Any, M::Uni, M::Ballot]], (1, 1), "dq"),
    row(O::Match, &[], &[&[M::Sync, M::All, M::Any]], (1, 1), "pss"),
    row(O::Activemask, &[], NONE, (1, 1), "d"),
    row(O::Redux, &[], &[&[M::Sync, M::Add, M::Min, M::Max, M::AbsoluteValue, M::NaN], BOOLEAN], (1, 1), "dss"),
    row(O::Elect, &[], &[&[M::Sync]], (0, 0), "ps"),
    // Atomics, fences, barriers.
    row(O::Atom, &[M::Cas], &[SPACE, ORDER, SCOPE, &[M::L2CacheHint]], (1, 1), "dass|s"),
    row(O::Atom, &[], &[SPACE, ORDER, SCOPE, ATOMIC, VECTOR, &[M::L2CacheHint]], (1, 1), "das|s"),
    row(O::Red, &[M::Async], &[SPACE, ORDER, SCOPE, ATOMIC, &[M::CompleteTxBytes]], (1, 1), "as|a"),
    row(O::Red, &[], &[SPACE, ORDER, SCOPE, ATOMIC, VECTOR, &[M::L2CacheHint]], (1, 1), "as|s"),
    row(O::Membar, &[], &[SCOPE, &[M::Gl, M::Proxy, M::ProxyAlias, M::Alias]], (0, 0), ""),
    row(O::Fence, &[M::TensormapGeneric], &[ORDER, SCOPE, &[M::Proxy]], (0, 0), "|as"),
    row(O::Fence, &[], &[SPACE, ORDER, SCOPE, &[
        M::Proxy, M::ProxyAlias, M::ProxyAsync, M::Alias, M::Async, M::AsyncGlobal, M::AsyncGeneric, M::GenericAsync,
        M::MbarrierInitFence, M::SyncRestrictSharedCta, M::SyncRestrictSharedCluster,
    ]], (0, 0), ""),
    row(O::Bar, &[M::Warp], &[&[M::Sync]], (0, 0), "s"),
    row(O::Bar, &[M::Red], &[BOOLEAN, &[M::Popc, M::Aligned]], (1, 1), "dso|q"),
    row(O::Bar, &[M::Arrive], &[&[M::Cta, M::Aligned]], (0, 0), "ss"),
    row(O::Bar, &[], &[&[M::Sync, M::Cta, M::Aligned]], (0, 0), "s|s"),
    row(O::Barrier, &[M::Cluster], &[&[M::Arrive, M::Wait, M::Release, M::Relaxed, M::Acquire, M::Aligned]], (0, 0), ""),
    row(O::Barrier, &[M::Red], &[BOOLEAN, &[M::Popc, M::Aligned, M::Cta]], (1, 1), "dso|q"),
    row(O::Barrier, &[M::Arrive], &[&[M::Cta, M::Aligned]], (0, 0), "ss"),
    row(O::Barrier, &[], &[&[M::Sync, M::Cta, M::Aligned]], (0, 0), "s|s"),
    row(O::Mbarrier, &[M::Init], &[SPACE], (1, 1), "as"),
    row(O::Mbarrier, &[M::Inval], &[SPACE], (1, 1), "a"),
    row(O::Mbarrier, &[M::PendingCount], NONE, (1, 1), "ds"),
    row(O::Mbarrier, &[M::TestWait], &[SPACE, ORDER, SCOPE, &[M::Parity]], (1, 1), "das"),
    row(O::Mbarrier, &[M::TryWait], &[SPACE, ORDER, SCOPE, &[M::Parity]], (1, 1), "das|s"),
    row(O::Mbarrier, &[M::Arrive], &[SPACE, ORDER, SCOPE, &[M::ExpectTx, M::NoComplete]], (1, 1), "da|s"),
    row(O::Mbarrier, &[M::ArriveDrop], &[SPACE, ORDER, SCOPE, &[M::ExpectTx, M::NoComplete]], (1, 1), "da|s"),
    row(O::Mbarrier, &[M::ExpectTx], &[SPACE, ORDER, SCOPE], (1, 1), "as"),
    row(O::Mbarrier, &[M::CompleteTx], &[SPACE, ORDER, SCOPE], (1, 1), "as"),
    // Asynchronous copies.
    row(O::Cp, &[M::Async, M::Mbarrier], &[SPACE, &[M::Arrive, M::Noinc]], (1, 1), "a"),
    open(O::Cp, &[M::Bulk]),
    open(O::Cp, &[M::Reduce]),
    row(O::Cp, &[M::Async, M::CommitGroup], NONE, (0, 0), ""),
    row(O::Cp, &[M::Async, M::WaitAll], NONE, (0, 0), ""),
    row(O::Cp, &[M::Async, M::WaitGroup], NONE, (0, 0), "s"),
    row(O::Cp, &[M::Async], &[SPACE, CACHE], (0, 0), "aas|ss"),
    // Control.
    row(O::Bra, &[], &[&[M::Uni]], (0, 0), "l"),
    row(O::Brx, &[], &[&[M::Idx, M::Uni]], (0, 0), "sl"),
    row(O::Call, &[], &[&[M::Uni]], (0, 0), ""),
    row(O::Ret, &[], &[&[M::Uni]], (0, 0), ""),
    row(O::Exit, &[], NONE, (0, 0), ""),
    row(O::Trap, &[], NONE, (0, 0), ""),
    row(O::Brkpt, &[], NONE, (0, 0), ""),
    row(O::Nanosleep, &[], NONE, (1, 1), "s"),
    row(O::Pmevent, &[], &[&[M::Mask]], (0, 0), "s"),
    row(O::Griddepcontrol, &[], &[&[M::LaunchDependents, M::Wait]], (0, 0), ""),
    row(O::Setmaxnreg, &[], &[&[M::Inc, M::Dec, M::Sync, M::Aligned]], (1, 1), "s"),
    // Video.
    row(O::Vadd, &[], &[VIDEO], (3, 3), "vvv|v"),
    row(O::Vsub, &[], &[VIDEO], (3, 3), "vvv|v"),
    row(O::Vabsdiff, &[], &[VIDEO], (3, 3), "vvv|v"),
    row(O::Vmin, &[], &[VIDEO], (3, 3), "vvv|v"),
    row(O::Vmax, &[], &[VIDEO], (3, 3), "vvv|v"),
    row(O::Vshl, &[], &[VIDEO, &[M::Wrap, M::Clamp]], (3, 3), "vvv|v"),
    row(O::Vshr, &[], &[VIDEO, &[M::Wrap, M::Clamp]], (3, 3), "vvv|v"),
    row(O::Vmad, &[], &[&[M::Sat, M::PlusOne, M::Shr7, M::Shr15]], (3, 3), "vvvv"),
    row(O::Vset, &[], &[VIDEO, COMPARE], (2, 2), "vvv|v"),
    row(O::Vadd2, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vsub2, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vavrg2, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vabsdiff2, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vmin2, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vmax2, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vset2, &[], &[VIDEO, COMPARE], (2, 2), "vvvv"),
    row(O::Vadd4, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vsub4, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vavrg4, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vabsdiff4, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vmin4, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vmax4, &[], &[VIDEO], (3, 3), "vvvv"),
    row(O::Vset4, &[], &[VIDEO, COMPARE], (2, 2), "vvvv"),
    // Textures and surfaces.
    row(O::Tex, &[M::Grad], &[GEOMETRY, VECTOR], (2, 2), "rtss|ss"),
    row(O::Tex, &[M::Level], &[GEOMETRY, VECTOR], (2, 2), "rts|ss"),
    row(O::Tex, &[], &[GEOMETRY, VECTOR], (2, 2), "rt|ss"),
    row(O::Tld4, &[], &[GEOMETRY, VECTOR, &[M::R, M::G, M::B, M::A]], (2, 2), "rt|ss"),
    row(O::Txq, &[], &[QUERY], (1, 1), "dt|s"),
    row(O::Suq, &[], &[QUERY], (1, 1), "dt"),
    row(O::Suld, &[], &[GEOMETRY, VECTOR, CACHE, OUT_OF_BOUNDS, &[M::B]], (1, 1), "dt"),
    row(O::Sust, &[], &[GEOMETRY, VECTOR, CACHE, OUT_OF_BOUNDS, &[M::B, M::P]], (1, 1), "ts"),
    row(O::Sured, &[], &[GEOMETRY, ATOMIC, OUT_OF_BOUNDS, &[M::B, M::P]], (1, 1), "ts"),
    // Matrices.
    row(O::Wmma, &[M::Load], &[MATRIX, SHAPE, SPACE], (1, 1), "da|s"),
    row(O::Wmma, &[M::Store], &[MATRIX, SHAPE, SPACE], (1, 1), "as|s"),
    row(O::Wmma, &[M::Mma], &[MATRIX, SHAPE, FLOAT_ROUNDING, &[M::Xor, M::And, M::Popc]], (1, 4), "dsss"),
    row(O::Mma, &[M::BlockScale], &[MATRIX, SHAPE, SPARSE], (4, 5), "dsssss|ssssss"),
    row(O::Mma, &[M::Sp], &[MATRIX, SHAPE, SPARSE], (4, 4), "dsssss"),
    row(O::Mma, &[M::SpOrderedMetadata], &[MATRIX, SHAPE, SPARSE], (4, 4), "dsssss"),
    row(O::Mma, &[], &[MATRIX, SHAPE, SPARSE], (4, 4), "dsss"),
    row(O::Ldmatrix, &[], &[SHAPE, SPACE, &[M::Sync, M::Aligned, M::X1, M::X2, M::X4, M::Trans, M::B8x16, M::B6x16P32, M::B4x16P64]], (1, 1), "da"),
    row(O::Stmatrix, &[], &[SHAPE, SPACE, &[M::Sync, M::Aligned, M::X1, M::X2, M::X4, M::Trans]], (1, 1), "as"),
    row(O::Movmatrix, &[], &[SHAPE, &[M::Sync, M::Aligned, M::Trans]], (1, 1), "ds"),
    group(&[M::MmaAsync, M::Sp], "dssssq|ssss"),
    group(&[M::MmaAsync], "dssq|ssss"),
    row(O::Wgmma, &[M::FenceOfGroup], &[&[M::Sync, M::Aligned]], (0, 0), ""),
    row(O::Wgmma, &[M::CommitGroup], &[&[M::Sync, M::Aligned]], (0, 0), ""),
    row(O::Wgmma, &[M::WaitGroup], &[&[M::Sync, M::Aligned]], (0, 0), "s"),
    // After Ampere: known by name.
    open(O::Tcgen05, &[]),
    open(O::Tensormap, &[]),
    open(O::Multimem, &[]),
    open(O::Clusterlaunchcontrol, &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_has_forms_in_one_place_and_the_last_applies_always_or_says_why() {
        for opcode in O::ALL {
            let count = FORMS.iter().filter(|form| form.opcode == *opcode).count();
            assert_eq!(forms(*opcode).len(), count, "{opcode}: rows apart");
            assert!(count > 0, "{opcode}: no form");
        }
        assert!(M::ALL.len() <= 64 * MODIFIER_WORDS);
    }

    #[test]
    fn the_form_follows_the_modifiers() {
        for (opcode, modifiers, least, most) in [
            (O::Add, &[][..], 3, 3),
            (O::Setp, &[M::Eq], 3, 4),
            (O::Shfl, &[M::Up], 4, 4),
            (O::Shfl, &[M::Sync, M::Up], 5, 5),
            (O::Bar, &[M::Warp, M::Sync], 1, 1),
            (O::Bar, &[M::Sync], 1, 2),
            (O::Ret, &[], 0, 0),
            (O::Atom, &[M::Global, M::Cas], 4, 5),
        ] {
            let form = form(opcode, modifiers).expect("a form");
            assert_eq!((form.minimum_operands(), form.maximum_operands()), (least, most), "{opcode} {modifiers:?}");
        }
        assert!(form(O::Cp, &[M::Ca]).is_none());
    }
}
