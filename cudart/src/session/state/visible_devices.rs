//! Which devices of the node the program sees, and in which order (`CUDA_VISIBLE_DEVICES`).

use std::fmt::Write;

/// The environment variable with the list.
pub const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";
/// How the name of a device by its identity begins; enough of it to tell the devices apart follows.
const IDENTITY: &str = "GPU-";

/// The identity of a device, by the node's number, which no other of the node has.
pub fn uuid(number: u32) -> [u8; 16] {
    let mut uuid = *b"balar-actors \0\0\0";
    uuid[12..].copy_from_slice(&number.to_be_bytes());
    uuid
}

/// An identity as `CUDA_VISIBLE_DEVICES` has it.
pub fn identity(number: u32) -> String {
    let mut text = IDENTITY.to_owned();
    for (index, byte) in uuid(number).into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The node's numbers of the devices that a list names. Its first invalid entry ends it; one that is there twice makes it empty.
pub fn visible(list: &str, count: u32) -> Vec<u32> {
    let mut devices = Vec::new();
    for entry in list.split(',') {
        let Some(device) = named(entry.trim(), count) else { break };
        if devices.contains(&device) {
            return Vec::new();
        }
        devices.push(device);
    }
    devices
}

/// The device that an entry names, if it is one.
fn named(entry: &str, count: u32) -> Option<u32> {
    if entry.starts_with(IDENTITY) {
        let entry = entry.to_ascii_lowercase();
        let mut found = (0..count).filter(|device| identity(*device).to_ascii_lowercase().starts_with(&entry));
        let first = found.next()?;
        return found.next().is_none().then_some(first);
    }
    // Anything after the digits is ignored.
    let number = entry.strip_prefix('+').unwrap_or(entry);
    let digits = number.find(|character: char| !character.is_ascii_digit()).unwrap_or(number.len());
    number[..digits].parse().ok().filter(|device| *device < count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_which_devices_and_in_which_order() {
        for (list, expected) in [
            ("0", &[0][..]),
            ("2,0", &[2, 0]),
            (" 1 , 3", &[1, 3]),
            ("+1,2x", &[1, 2]),
            ("", &[]),
            ("-1", &[]),
            ("none", &[]),
            ("NoDevFiles", &[]),
            ("1,-1,2", &[1]),
            ("0,4,1", &[0]),
            ("3,,1", &[3]),
            ("99999999999999999999", &[]),
            ("1,0,1", &[]),
        ] {
            assert_eq!(visible(list, 4), expected, "{list:?}");
        }
    }

    #[test]
    fn devices_can_be_named_by_identity() {
        // "balar-actors" and the number, in hexadecimal digits.
        assert_eq!(identity(1), "GPU-62616c61-722d-6163-746f-727300000001");
        assert_eq!(visible(&format!("{},{}", identity(1), identity(0)), 2), [1, 0]);
        assert_eq!(visible(&identity(1).to_ascii_uppercase(), 2), [1]);
        // As much as tells the devices apart: anything for one device, all of it for two.
        assert_eq!(visible("GPU-6261", 1), [0]);
        assert_eq!(visible("GPU-6261", 2), []);
        assert_eq!(visible(&format!("0,{}", identity(7)), 2), [0]);
    }
}
