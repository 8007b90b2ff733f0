//! Which types each instruction takes, place by place: the PTX ISA (9.x) in one table.
//!
//! Types alone are looked at. Whether a type goes with a modifier (`.relu` with f64) is the decoder's to say.

use super::opcode::Opcode as O;
use super::types::ScalarType as T;

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSet(u64);

impl TypeSet {
    const fn of(types: &[T]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < types.len() {
            bits |= 1 << types[index] as u32;
            index += 1;
        }
        Self(bits)
    }

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a type is among them.
    pub const fn contains(self, scalar_type: T) -> bool {
        self.0 >> scalar_type as u32 & 1 != 0
    }

    /// The types, in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = T> {
        T::ALL.iter().copied().filter(move |scalar_type| self.contains(*scalar_type))
    }
}

const S: TypeSet = TypeSet::of(&[T::S16, T::S32, T::S64]);
const U: TypeSet = TypeSet::of(&[T::U16, T::U32, T::U64]);
const INTEGER: TypeSet = S.or(U);
const WORD: TypeSet = TypeSet::of(&[T::U32, T::S32]);
const WORDS: TypeSet = WORD.or(TypeSet::of(&[T::U64, T::S64]));
const BYTES: TypeSet = TypeSet::of(&[T::U8, T::S8]);
const BITS: TypeSet = TypeSet::of(&[T::B16, T::B32, T::B64]);
const PACKED: TypeSet = TypeSet::of(&[T::U16x2, T::S16x2, T::U8x4, T::S8x4]);
const HALF: TypeSet = TypeSet::of(&[T::F16, T::F16x2, T::Bf16, T::Bf16x2]);
const F32: TypeSet = TypeSet::of(&[T::F32]);
const F64: TypeSet = TypeSet::of(&[T::F64]);
const SINGLE_DOUBLE: TypeSet = F32.or(F64);
const FLOAT: TypeSet = SINGLE_DOUBLE.or(HALF);
const PAIR: TypeSet = TypeSet::of(&[T::F32x2]);
const PREDICATE: TypeSet = TypeSet::of(&[T::Pred]);
const B32: TypeSet = TypeSet::of(&[T::B32]);
const B128: TypeSet = TypeSet::of(&[T::B128]);
const B32_B64: TypeSet = TypeSet::of(&[T::B32, T::B64]);
const U32: TypeSet = TypeSet::of(&[T::U32]);
const POINTER: TypeSet = TypeSet::of(&[T::U32, T::U64]);
const LOGIC: TypeSet = BITS.or(PREDICATE);
/// The types of values in memory, which `mov` moves.
const VALUE: TypeSet = INTEGER.or(BYTES).or(BITS).or(SINGLE_DOUBLE).or(B128).or(TypeSet::of(&[T::B8]));
const ATOMIC: TypeSet = BITS.or(INTEGER).or(FLOAT).or(B128);
const ALL: TypeSet = TypeSet(u64::MAX);

const fn both(set: TypeSet) -> (TypeSet, TypeSet) {
    (set, set)
}

/// The types that an instruction takes first, and those that it takes after that.
#[rustfmt::skip]
const fn places(opcode: O) -> (TypeSet, TypeSet) {
    match opcode {
        O::Add | O::Sub => (INTEGER.or(PACKED).or(FLOAT).or(PAIR), HALF),
        O::Mul => both(INTEGER.or(FLOAT).or(PAIR)),
        O::Mad => both(INTEGER.or(SINGLE_DOUBLE)),
        O::Fma => (FLOAT.or(PAIR), HALF),
        O::Addc | O::Subc | O::Madc | O::Sad | O::Rem => both(INTEGER),
        O::Mul24 | O::Mad24 => both(WORD),
        O::Clmad => both(TypeSet::of(&[T::U64])),
        O::Div => both(INTEGER.or(SINGLE_DOUBLE)),
        O::Abs | O::Neg => both(S.or(PACKED).or(FLOAT).or(PAIR)),
        O::Min | O::Max => both(INTEGER.or(PACKED).or(FLOAT)),
        O::Popc | O::Clz | O::Brev => both(B32_B64),
        O::Bfind | O::Bfe => both(WORDS),
        O::Bfi => both(B32_B64),
        O::Fns | O::Prmt | O::Shf => both(B32),
        O::Lop3 => both(B32),
        O::Szext => both(WORD),
        O::Bmsk => both(B32),
        O::Dp4a | O::Dp2a => both(WORD),
        O::Rcp | O::Sqrt | O::Rsqrt | O::Testp | O::Copysign => both(SINGLE_DOUBLE),
        O::Sin | O::Cos | O::Lg2 => both(F32),
        O::Ex2 | O::Tanh => both(F32.or(HALF)),
        O::Setp => both(BITS.or(INTEGER).or(FLOAT)),
        O::Set => (WORD.or(TypeSet::of(&[T::U16, T::S16])).or(F32).or(HALF), BITS.or(INTEGER).or(FLOAT)),
        O::Selp => both(BITS.or(INTEGER).or(SINGLE_DOUBLE).or(HALF)),
        O::Slct => (BITS.or(INTEGER).or(SINGLE_DOUBLE), TypeSet::of(&[T::S32, T::F32])),
        O::And | O::Or | O::Xor | O::Not => both(LOGIC),
        O::Cnot | O::Shl => both(BITS),
        O::Shr => both(BITS.or(INTEGER)),
        O::Mov => both(BITS.or(INTEGER).or(FLOAT).or(PREDICATE).or(B128)),
        O::Ld | O::St => both(VALUE.or(HALF)),
        O::Ldu => both(VALUE),
        O::Atom | O::Red => both(ATOMIC),
        O::Createpolicy => both(TypeSet::of(&[T::B64])),
        O::Istypep => both(TypeSet::of(&[T::Texref, T::Samplerref, T::Surfref])),
        O::Mapa | O::Getctarank => both(WORDS),
        O::Cvta | O::Alloca | O::Stacksave | O::Stackrestore => both(POINTER),
        O::Nanosleep | O::Setmaxnreg => both(U32),
        O::Shfl | O::Activemask => both(B32),
        O::Vote => both(PREDICATE.or(B32)),
        O::Match => both(B32_B64),
        O::Redux => both(WORD.or(B32).or(F32)),
        O::Bar | O::Barrier => both(PREDICATE.or(U32)),
        O::Mbarrier => both(TypeSet::of(&[T::B64])),
        O::Vadd | O::Vsub | O::Vabsdiff | O::Vmin | O::Vmax | O::Vshl | O::Vshr | O::Vmad | O::Vset | O::Vadd2 | O::Vsub2
        | O::Vavrg2 | O::Vabsdiff2 | O::Vmin2 | O::Vmax2 | O::Vset2 | O::Vadd4 | O::Vsub4 | O::Vavrg4 | O::Vabsdiff4
        | O::Vmin4 | O::Vmax4 | O::Vset4 => both(WORD),
        O::Tex | O::Tld4 => (WORD.or(F32).or(TypeSet::of(&[T::F16, T::F16x2])), TypeSet::of(&[T::S32, T::F32])),
        O::Txq | O::Suq => both(B32_B64),
        O::Suld => both(TypeSet::of(&[T::B8, T::B16, T::B32, T::B64])),
        O::Sust => both(TypeSet::of(&[T::B8, T::B16, T::B32, T::B64, T::U32, T::S32, T::F32])),
        O::Sured => both(TypeSet::of(&[T::U32, T::S32, T::U64, T::S64, T::B32, T::B64])),
        _ => both(ALL),
    }
}

/// The types that an instruction takes at a place, counted from 0 over its dotted words.
pub const fn accepted_types(opcode: O, place: usize) -> TypeSet {
    let (first, others) = places(opcode);
    if place == 0 { first } else { others }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_opcode_and_place() {
        assert!(T::ALL.len() <= 64);
        for (opcode, place, good, bad) in [
            (O::Add, 0, &[T::U16, T::S64, T::U16x2, T::Bf16x2, T::F32x2][..], &[T::B32, T::U8, T::Pred, T::Tf32][..]),
            (O::Popc, 0, &[T::B32, T::B64], &[T::F32, T::U32, T::B16]),
            (O::Slct, 1, &[T::S32, T::F32], &[T::U32, T::F64]),
            (O::Xor, 0, &[T::Pred, T::B16], &[T::U32, T::B8, T::B128]),
            (O::Ld, 0, &[T::B8, T::U8, T::F64, T::B128], &[T::Pred, T::E4m3]),
            (O::Vadd, 2, &[T::U32, T::S32], &[T::F32]),
            (O::Shfl, 0, &[T::B32], &[T::U32, T::B64]),
            (O::Mma, 3, T::ALL, &[]),
        ] {
            let set = accepted_types(opcode, place);
            assert!(good.iter().all(|scalar_type| set.contains(*scalar_type)), "{opcode}: {:?}", set);
            assert!(!bad.iter().any(|scalar_type| set.contains(*scalar_type)), "{opcode}: {:?}", set);
        }
        assert_eq!(accepted_types(O::Bfind, 0).iter().collect::<Vec<_>>(), [T::U32, T::U64, T::S32, T::S64]);
    }
}
