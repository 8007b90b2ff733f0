//! Deterministic mutations of texts.

/// A small generator of numbers (splitmix64): the same on every machine.
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number below `limit`, which is above zero.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// Words and marks that texts are made of; mutations put them in.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "{", "}", "(", ")", "[", "]", ";", ",", ":", ".", "@", "!", "|", "-", "+", "<", ">", "=", "?", "\"", "/*", "*/", "//", "\\\n", "_",
    "%", "%r1", "%p1", "%rd1", "%f1", "%tid.x", "%laneid", "WARP_SZ", ".b8", ".b16", ".b32", ".b64", ".b128", ".u8", ".s16", ".s32",
    ".u64", ".f16", ".f16x2", ".bf16x2", ".f32", ".f64", ".pred", ".v2", ".v4", ".reg", ".param", ".entry k()", ".func f()", ".global",
    ".const", ".shared", ".local", ".extern", ".align 16", ".branchtargets", ".callprototype", ".section", ".loc 1 2 3", ".pragma",
    ".maxntid", "0x", "0f3F800000", "0d3FF0000000000000", "99999999999999999999", "-1", "0", "31", "4294967295", "1/0", "add", "mov",
    "ld", "st", "atom", "cvt", "setp", "bra", "call", "shfl", "bar.sync 0;", "ret;", "exit;", "tex", "mma", "wmma", "L:", ".sync", ".rn",
    ".sat", ".ftz", ".volatile", ".add", ".cas", ".lo", ".wide", ".hi", "\u{e9}", "\0", "\n", " ", "generic(",
];

/// Changes a text in one place: a byte, a piece put in, a range taken out, repeated or copied from another text.
pub fn mutate(text: &mut Vec<u8>, other: &[u8], numbers: &mut Numbers) {
    let place = numbers.below(text.len() + 1);
    let range = |numbers: &mut Numbers, length: usize, most: usize| {
        let start = numbers.below(length + 1);
        start..(start + 1 + numbers.below(most)).min(length)
    };
    match numbers.below(12) {
        0..=1 => {
            if let Some(byte) = text.get_mut(place) {
                *byte ^= 1 << numbers.below(7);
            }
        }
        2..=5 => {
            let piece = PIECES[numbers.below(PIECES.len())];
            text.splice(place..place, piece.bytes());
        }
        6..=7 => {
            let taken = range(numbers, text.len(), 30);
            text.drain(taken);
        }
        8 => {
            let taken = range(numbers, text.len(), 400);
            let copy = text[taken].to_vec();
            text.splice(place..place, copy);
        }
        9..=10 => {
            // A line of another text, where a line begins.
            let line = other.split_inclusive(|byte| *byte == b'\n').nth(numbers.below(200)).unwrap_or(b"\n").to_vec();
            let start = text[..place].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            text.splice(start..start, line);
        }
        _ => {
            // One number for another.
            if let Some(digit) = text[place..].iter().position(u8::is_ascii_digit) {
                text[place + digit] = b'0' + numbers.below(10) as u8;
            }
        }
    }
}
