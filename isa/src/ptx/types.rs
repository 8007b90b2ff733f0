//! Scalar types and state spaces of PTX.

/// Declares an enum whose variants each have one spelling in PTX text.
macro_rules! spelled_enum {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        pub enum $name {
            $(#[doc = concat!("Spelled `", $text, "`.")] $variant,)*
        }

        impl $name {
            /// Every value, in order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The spelling in PTX text, without a leading dot.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}
pub(crate) use spelled_enum;

spelled_enum! {
    /// A fundamental, packed or alternate type (PTX ISA, sections 5.2.1 to 5.2.5), or an opaque one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    ScalarType {
        Pred = "pred",
        B1 = "b1", B4 = "b4", B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128",
        U2 = "u2", U4 = "u4", U8 = "u8", U16 = "u16", U32 = "u32", U64 = "u64",
        S2 = "s2", S4 = "s4", S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64",
        U16x2 = "u16x2", S16x2 = "s16x2", U8x4 = "u8x4", S8x4 = "s8x4",
        F16 = "f16", F16x2 = "f16x2", Bf16 = "bf16", Bf16x2 = "bf16x2", Tf32 = "tf32",
        F32 = "f32", F32x2 = "f32x2", F64 = "f64",
        E4m3 = "e4m3", E5m2 = "e5m2", E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2", E4m3x4 = "e4m3x4", E5m2x4 = "e5m2x4",
        E2m3 = "e2m3", E3m2 = "e3m2", E2m1 = "e2m1", E2m3x2 = "e2m3x2", E3m2x2 = "e3m2x2", E2m1x2 = "e2m1x2",
        E2m3x4 = "e2m3x4", E3m2x4 = "e3m2x4", E2m1x4 = "e2m1x4",
        Ue8m0 = "ue8m0", Ue8m0x2 = "ue8m0x2", Ue4m3 = "ue4m3",
        Texref = "texref", Samplerref = "samplerref", Surfref = "surfref",
    }
}

impl ScalarType {
    /// Width of one value in bits; opaque references count as the 64-bit handle that a program sees.
    pub const fn bits(self) -> u32 {
        use ScalarType as T;
        match self {
            T::Pred | T::B1 => 1,
            T::U2 | T::S2 => 2,
            T::B4 | T::U4 | T::S4 | T::E2m1 => 4,
            T::E2m3 | T::E3m2 => 6,
            T::B8 | T::U8 | T::S8 | T::E4m3 | T::E5m2 | T::E2m1x2 | T::Ue8m0 | T::Ue4m3 => 8,
            T::B16
            | T::U16
            | T::S16
            | T::F16
            | T::Bf16
            | T::E4m3x2
            | T::E5m2x2
            | T::E2m3x2
            | T::E3m2x2
            | T::E2m1x4
            | T::Ue8m0x2 => 16,
            T::B32
            | T::U32
            | T::S32
            | T::U16x2
            | T::S16x2
            | T::U8x4
            | T::S8x4
            | T::F16x2
            | T::Bf16x2
            | T::Tf32
            | T::F32
            | T::E4m3x4
            | T::E5m2x4
            | T::E2m3x4
            | T::E3m2x4 => 32,
            T::B64 | T::U64 | T::S64 | T::F32x2 | T::F64 | T::Texref | T::Samplerref | T::Surfref => 64,
            T::B128 => 128,
        }
    }

    /// Bytes that one value takes in memory (1 for a predicate, which has no place in memory).
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether it is a signed integer type (packed ones included).
    pub const fn is_signed_integer(self) -> bool {
        use ScalarType as T;
        matches!(self, T::S2 | T::S4 | T::S8 | T::S16 | T::S32 | T::S64 | T::S16x2 | T::S8x4)
    }

    /// Whether it is an unsigned integer type (packed ones included).
    pub const fn is_unsigned_integer(self) -> bool {
        use ScalarType as T;
        matches!(self, T::U2 | T::U4 | T::U8 | T::U16 | T::U32 | T::U64 | T::U16x2 | T::U8x4)
    }

    /// Whether it is an untyped-bits type.
    pub const fn is_untyped_bits(self) -> bool {
        use ScalarType as T;
        matches!(self, T::B1 | T::B4 | T::B8 | T::B16 | T::B32 | T::B64 | T::B128)
    }

    /// Whether it is a reference to a texture, sampler or surface.
    pub const fn is_opaque(self) -> bool {
        matches!(self, ScalarType::Texref | ScalarType::Samplerref | ScalarType::Surfref)
    }

    /// Whether it is a floating-point type, packed and alternate formats included.
    pub const fn is_float(self) -> bool {
        !(self.is_signed_integer()
            || self.is_unsigned_integer()
            || self.is_untyped_bits()
            || self.is_opaque()
            || matches!(self, ScalarType::Pred))
    }
}

spelled_enum! {
    /// Where a variable lives or an access goes (PTX ISA, section 5.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    StateSpace {
        Register = "reg",
        Special = "sreg",
        Constant = "const",
        Global = "global",
        Local = "local",
        Parameter = "param",
        KernelParameter = "param::entry",
        FunctionParameter = "param::func",
        Shared = "shared",
        SharedCta = "shared::cta",
        SharedCluster = "shared::cluster",
        Texture = "tex",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        for (scalar_type, bytes) in [
            (ScalarType::Pred, 1),
            (ScalarType::U8, 1),
            (ScalarType::F16x2, 4),
            (ScalarType::F64, 8),
            (ScalarType::B128, 16),
        ] {
            assert_eq!(scalar_type.bytes(), bytes, "{scalar_type}");
        }
    }

    #[test]
    fn a_type_is_of_one_class() {
        for scalar_type in ScalarType::ALL {
            let classes = [
                scalar_type.is_signed_integer(),
                scalar_type.is_unsigned_integer(),
                scalar_type.is_untyped_bits(),
                scalar_type.is_opaque(),
                scalar_type.is_float(),
                *scalar_type == ScalarType::Pred,
            ];
            assert_eq!(classes.iter().filter(|class| **class).count(), 1, "{scalar_type}");
        }
    }
}
