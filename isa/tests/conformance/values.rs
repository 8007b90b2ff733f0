//! Values that go wrong, and integers of a width as mathematics has them.

/// The low bits.
pub fn low(value: i128, bits: u32) -> u64 {
    (value as u128 & ((1u128 << bits) - 1)) as u64
}

/// What the low bits mean.
pub fn meaning(value: u64, bits: u32, signed: bool) -> i128 {
    let value = i128::from(value) & ((1 << bits) - 1);
    if signed && value >> (bits - 1) != 0 { value - (1 << bits) } else { value }
}

/// The least and the greatest value of a type.
pub fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Edge values of a width: around zero, around the sign, around half the width, alternating, and some of no pattern.
pub fn edges(bits: u32) -> Vec<u64> {
    let top = 1i128 << (bits - 1);
    let half = 1i128 << (bits / 2);
    let alternating = 0x5555_5555_5555_5555;
    let mixed = 0x1234_5678_9abc_def0i128 >> (64 - bits);
    [0, 1, 2, 7, -1, -2, top, top - 1, top + 1, half, half - 1, alternating, alternating << 1, mixed, -mixed]
        .into_iter()
        .map(|value| low(value, bits))
        .collect()
}

/// A few of the edge values, where there are many operands.
pub fn few(bits: u32) -> Vec<u64> {
    let top = 1i128 << (bits - 1);
    [0, 1, -1, top, top - 1, 0x5555_5555_5555_5555, 0x1234_5678_9abc_def0i128 >> (64 - bits)]
        .into_iter()
        .map(|value| low(value, bits))
        .collect()
}

/// The name of an integer type.
pub fn name(bits: u32, signed: bool) -> String {
    format!("{}{bits}", if signed { 's' } else { 'u' })
}

/// Bits and signs of the integer types.
pub const INTEGERS: [(u32, bool); 6] = [(16, false), (16, true), (32, false), (32, true), (64, false), (64, true)];

/// The types of registers, predicates aside, and their bits.
pub const REGISTER_TYPES: [(&str, u32); 11] = [
    ("b16", 16),
    ("u16", 16),
    ("s16", 16),
    ("b32", 32),
    ("u32", 32),
    ("s32", 32),
    ("f32", 32),
    ("b64", 64),
    ("u64", 64),
    ("s64", 64),
    ("f64", 64),
];
