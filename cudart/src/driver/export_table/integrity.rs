//! The answer by which the runtime knows that it speaks with the driver it was made for.
//!
//! It is HMAC (RFC 2104) with MD2 (RFC 1319) of facts about the process, the tables that it was given, and the devices, under a fixed key.

use super::interface;
use super::table::{ExportTable, NAMES, Slot};
use crate::abi::arguments::Out;
use crate::abi::device_attribute as attribute;
use crate::driver::early;
use crate::export_slots;
use crate::session::connection::description;
use crate::session::connection::management::driver_version;
use crate::session::devices::device;
use balar_host::CudaError;
use hmac::{KeyInit, Mac, SimpleHmac};
use md2::Md2;
use std::ffi::c_int;

const NUMBER: usize = 3;
const SLOTS: usize = 3;
/// The slot of [`check`].
const CHECK: usize = 1;

/// The table.
pub static TABLE: ExportTable = ExportTable {
    name: NAMES[NUMBER],
    identifier: 0xd4082055_bde6_704b_8d34_ba123c66e1f2,
    slots: &const {
        export_slots![NUMBER; SLOTS;
            0 => Slot::number(SLOTS * size_of::<Slot>()),
            1 => Slot::function(check as *const ()),
        ]
    },
};

/// The key of the runtime, as published with it.
const KEY: [u8; 16] = [0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52, 0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f];
/// The answers to versions that end with 0 and with 1.
const FIXED: [[u64; 2]; 2] =
    [[0x3341_181c_03cb_675c, 0x8ed3_83aa_1f4c_d1e8], [0x1841_181c_03cb_675c, 0x8ed3_83aa_1f4c_d1e8]];

/// The inputs of the answer.
#[derive(Clone, Debug, Default)]
struct Facts {
    driver_version: u32,
    /// The version of the question.
    version: u32,
    process: u32,
    /// The lower half of the thread's number in the C library.
    thread: u32,
    interface_table: u64,
    integrity_table: u64,
    check: u64,
    seconds: u64,
    devices: Vec<DeviceFacts>,
}

#[derive(Clone, Copy, Debug)]
struct DeviceFacts {
    uuid: [u8; 16],
    /// PCI domain, bus and device.
    place: [i32; 3],
}

impl Facts {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [self.driver_version, self.version, self.process, self.thread] {
            bytes.extend(word.to_le_bytes());
        }
        for word in [self.interface_table, self.integrity_table, self.check, self.seconds] {
            bytes.extend(word.to_le_bytes());
        }
        for device in &self.devices {
            bytes.extend(device.uuid);
            bytes.extend(device.place.iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes
    }

    fn answer(&self) -> [u64; 2] {
        if let Some(fixed) = FIXED.get((self.version % 10) as usize) {
            return *fixed;
        }
        let digest = authentication_code(&self.bytes());
        [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| digest[at + byte])))
    }
}

fn authentication_code(message: &[u8]) -> [u8; 16] {
    // A key of 16 bytes is one block of MD2, which HMAC takes as it is; it takes keys of every length.
    let Ok(mut code) = SimpleHmac::<Md2>::new_from_slice(&KEY) else { return [0; 16] };
    code.update(message);
    code.finalize().into_bytes().into()
}

fn devices() -> Result<Vec<DeviceFacts>, CudaError> {
    let facts = |number: u32| {
        let number = number as c_int;
        let of = |attribute| device::driver_attribute(attribute, number);
        let place = [of(attribute::PCI_DOMAIN_ID)?, of(attribute::PCI_BUS_ID)?, of(attribute::PCI_DEVICE_ID)?];
        Ok(DeviceFacts { uuid: device::described(number)?.uuid, place })
    };
    (0..description::device_count()?).map(facts).collect()
}

/// Answers a question of this version, at a time in seconds since 1970.
unsafe extern "C" fn check(version: u32, seconds: u64, answer: Out<[u64; 2]>) -> c_int {
    early(&mut || {
        answer.check()?;
        let facts = Facts {
            driver_version: driver_version().number(),
            version,
            process: std::process::id(),
            // SAFETY: gives a number, and has no conditions.
            thread: unsafe { libc::pthread_self() } as u32,
            interface_table: interface::TABLE.address() as u64,
            integrity_table: TABLE.address() as u64,
            check: TABLE.slots[CHECK].address(),
            seconds,
            devices: devices()?,
        };
        answer.set(facts.answer())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use md2::Digest;

    /// RFC 1319's test vector, so that the message digest is the one meant.
    #[test]
    fn the_digest_is_md2() {
        let digest: [u8; 16] = Md2::digest(b"abc").into();
        assert_eq!(u128::from_be_bytes(digest), 0xda85_3b0d_3f88_d99b_3028_3a69_e6de_d6bb);
    }

    /// RFC 2104: the digest of the outer key and the digest of the inner key and the message.
    #[test]
    fn the_code_is_that_of_the_standard() {
        for length in [0, 1, 16, 76, 200] {
            let message: Vec<u8> = (0..length).map(|at| (at * 37 % 251) as u8).collect();
            let padded = |pad: u8| KEY.map(|byte| byte ^ pad);
            let inner = Md2::digest([&padded(0x36)[..], &message].concat());
            let outer: [u8; 16] = Md2::digest([&padded(0x5c)[..], &inner].concat()).into();
            assert_eq!(authentication_code(&message), outer, "{length} bytes");
        }
    }

    #[test]
    fn facts_are_told_in_order_and_two_versions_have_fixed_answers() {
        let device = DeviceFacts { uuid: [9; 16], place: [1, 2, 3] };
        let facts =
            Facts { driver_version: 12_090, version: 12_042, seconds: 5, devices: vec![device], ..Facts::default() };
        let bytes = facts.bytes();
        assert_eq!(bytes.len(), 48 + 28);
        assert_eq!(
            (&bytes[..8], &bytes[40..48]),
            (&[0x3a, 0x2f, 0, 0, 0x0a, 0x2f, 0, 0][..], &[5, 0, 0, 0, 0, 0, 0, 0][..])
        );
        assert_eq!(bytes[64..], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
        for (version, answer) in [(12_040, FIXED[0]), (13_051, FIXED[1])] {
            assert_eq!(Facts { version, ..facts.clone() }.answer(), answer);
        }
        let code = authentication_code(&bytes);
        assert_eq!(facts.answer()[1].to_le_bytes(), code[8..]);
    }
}
