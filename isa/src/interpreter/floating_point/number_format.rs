//! Binary floating-point formats: values taken apart, and exact values rounded to a format.

/// The meaning of a format's largest exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Specials {
    /// Infinities and not-a-numbers.
    Ieee,
    /// Numbers, but for all ones, which is not-a-number; there is no infinity.
    LastIsNan,
    /// Numbers throughout.
    None,
}

/// A binary format of at most 64 bits, with subnormals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the fraction.
    pub fraction: u32,
    /// Bits of the exponent.
    pub exponent: u32,
    pub specials: Specials,
}

/// To which neighbour a value between two numbers goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// The nearest, to even on a tie.
    Nearest,
    /// The nearest, away from zero on a tie.
    NearestAway,
    Zero,
    Down,
    Up,
    /// Up in magnitude where the bits that are lost, as a fraction of 2^bits, plus the random number reach one.
    Stochastic {
        random: u32,
        bits: u32,
    },
}

/// A finite value: plus or minus `magnitude` times 2 to the `exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub negative: bool,
    pub magnitude: u64,
    pub exponent: i32,
}

/// The value of a format's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Finite(Exact),
    Infinite { negative: bool },
    NotANumber,
}

/// The bits of a rounded value, or that it is larger than the format's largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounded {
    Bits(u64),
    Overflow,
}

const fn ieee(exponent: u32, fraction: u32) -> Format {
    Format { fraction, exponent, specials: Specials::Ieee }
}

impl Format {
    pub const F64: Format = ieee(11, 52);
    pub const F32: Format = ieee(8, 23);
    /// TF32, which lies in the upper 19 bits of a register.
    pub const TF32: Format = ieee(8, 10);
    pub const BF16: Format = ieee(8, 7);
    pub const F16: Format = ieee(5, 10);
    pub const E5M2: Format = ieee(5, 2);
    pub const E4M3: Format = Format { fraction: 3, exponent: 4, specials: Specials::LastIsNan };
    pub const E2M3: Format = Format { fraction: 3, exponent: 2, specials: Specials::None };
    pub const E3M2: Format = Format { fraction: 2, exponent: 3, specials: Specials::None };
    pub const E2M1: Format = Format { fraction: 1, exponent: 2, specials: Specials::None };

    pub const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    const fn sign(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    /// The bits of infinity; the bits of the largest number's successor where there is none.
    pub const fn infinity(self) -> u64 {
        match self.specials {
            Specials::Ieee => ((1 << self.exponent) - 1) << self.fraction,
            Specials::LastIsNan => self.sign() - 1,
            Specials::None => self.sign(),
        }
    }

    /// Whether the format has infinities.
    pub const fn has_infinity(self) -> bool {
        matches!(self.specials, Specials::Ieee)
    }

    /// The bits of the largest number.
    pub const fn largest(self) -> u64 {
        self.infinity() - 1
    }

    /// The sign bit where asked for.
    pub const fn signed(self, negative: bool, bits: u64) -> u64 {
        if negative { bits | self.sign() } else { bits }
    }

    /// The value of the bits.
    pub fn value(self, bits: u64) -> Value {
        let negative = bits & self.sign() != 0;
        let magnitude = bits & (self.sign() - 1);
        if magnitude >= self.infinity() {
            return if magnitude == self.infinity() && self.specials == Specials::Ieee {
                Value::Infinite { negative }
            } else {
                Value::NotANumber
            };
        }
        let fraction = magnitude & ((1 << self.fraction) - 1);
        let exponent = (magnitude >> self.fraction) as i32;
        let hidden = u64::from(exponent != 0) << self.fraction;
        let exponent = exponent.max(1) - self.bias() - self.fraction as i32;
        Value::Finite(Exact { negative, magnitude: fraction | hidden, exponent })
    }

    /// Rounds a value. A result beyond the largest number is left to the caller.
    pub fn round(self, value: Exact, rounding: Rounding) -> Rounded {
        let Exact { negative, magnitude, exponent } = value;
        if magnitude == 0 {
            return Rounded::Bits(self.signed(negative, 0));
        }
        let top = 63 - magnitude.leading_zeros() as i32 + exponent;
        let lowest = 1 - self.bias();
        // The exponent of the result's last bit.
        let last = top.max(lowest) - self.fraction as i32;
        let quotient = divide(magnitude, last - exponent, negative, rounding);
        // The hidden bit, where there is one, counts the exponent up; so does a carry out of the fraction.
        let bits = ((top.max(lowest) - lowest) as u64).wrapping_shl(self.fraction) + quotient;
        if bits >= self.infinity() { Rounded::Overflow } else { Rounded::Bits(self.signed(negative, bits)) }
    }
}

/// `magnitude` divided by 2 to the `shift`, rounded to an integer.
pub(crate) fn divide(magnitude: u64, shift: i32, negative: bool, rounding: Rounding) -> u64 {
    if shift <= 0 {
        return magnitude << -shift;
    }
    let (quotient, rest, half) = match shift {
        1..64 => (magnitude >> shift, magnitude & ((1 << shift) - 1), 1 << (shift - 1)),
        // Of a divisor of 2^64 and more only the order of rest and half counts.
        64 => (0, magnitude, 1 << 63),
        _ => (0, u64::from(magnitude != 0), 2),
    };
    let up = match rounding {
        Rounding::Nearest => rest > half || (rest == half && quotient & 1 != 0),
        Rounding::NearestAway => rest >= half,
        Rounding::Zero => false,
        Rounding::Down => negative && rest != 0,
        Rounding::Up => !negative && rest != 0,
        Rounding::Stochastic { random, bits } => {
            let lost = match shift - bits as i32 {
                distance @ 0..64 => rest >> distance,
                64.. => 0,
                distance => rest << -distance,
            };
            lost + u64::from(random) >= 1 << bits
        }
    };
    quotient + u64::from(up)
}
