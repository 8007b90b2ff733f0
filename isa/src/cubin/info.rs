//! The records of `.nv.info` sections: attributes of kernels and functions.
//!
//! A record is its form (one byte), the attribute (one byte), and two bytes: a value, or how many bytes of payload follow.
//!
//! Source: own findings. The numbers were given to a disassembler, which printed their names (`EIATTR_...`).

use super::error::CubinError;

pub(super) const CTAID_Z_USED: u8 = 0x04;
pub(super) const MAX_THREADS: u8 = 0x05;
pub(super) const PARAM_CBANK: u8 = 0x0a;
pub(super) const EXTERNS: u8 = 0x0f;
pub(super) const REQNTID: u8 = 0x10;
pub(super) const FRAME_SIZE: u8 = 0x11;
pub(super) const MIN_STACK_SIZE: u8 = 0x12;
pub(super) const KPARAM_INFO: u8 = 0x17;
/// A parameter of a kernel that has more than 4 KiB of them (own finding: its name is not published).
pub(super) const LARGE_KPARAM_INFO: u8 = 0x45;
pub(super) const CBANK_PARAM_SIZE: u8 = 0x19;
pub(super) const MAXREG_COUNT: u8 = 0x1b;
pub(super) const EXIT_INSTR_OFFSETS: u8 = 0x1c;
pub(super) const CRS_STACK_SIZE: u8 = 0x1e;
pub(super) const MAX_STACK_SIZE: u8 = 0x23;
pub(super) const COOP_GROUP_INSTR_OFFSETS: u8 = 0x28;
pub(super) const COOP_GROUP_MASK_REGIDS: u8 = 0x29;
pub(super) const WMMA_USED: u8 = 0x2b;
pub(super) const REGCOUNT: u8 = 0x2f;
pub(super) const INT_WARP_WIDE_INSTR_OFFSETS: u8 = 0x31;
pub(super) const INDIRECT_BRANCH_TARGETS: u8 = 0x34;
pub(super) const CUDA_API_VERSION: u8 = 0x37;
pub(super) const CTA_PER_CLUSTER: u8 = 0x3d;
pub(super) const EXPLICIT_CLUSTER: u8 = 0x3e;
pub(super) const MAX_CLUSTER_RANK: u8 = 0x3f;
pub(super) const SYSCALL_OFFSETS: u8 = 0x46;
pub(super) const NUM_BARRIERS: u8 = 0x4c;

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeValue<'data> {
    /// None: the attribute is there or not (form 1).
    Flag,
    /// A byte (form 2).
    Byte(u8),
    /// Two bytes (form 3).
    Half(u16),
    /// A payload of as many bytes as the record says (form 4).
    Payload(&'data [u8]),
}

impl AttributeValue<'_> {
    /// Its kind, in words.
    fn describe(&self) -> String {
        match self {
            Self::Flag => "no value".to_owned(),
            Self::Byte(value) => format!("the byte {value:#x}"),
            Self::Half(value) => format!("the two bytes {value:#x}"),
            Self::Payload(bytes) => format!("a payload of {} bytes", bytes.len()),
        }
    }
}

/// An attribute, as a record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'data> {
    /// Its number: 0x2f is `EIATTR_REGCOUNT`.
    pub number: u8,
    /// Its value.
    pub value: AttributeValue<'data>,
}

/// A record: an attribute, with its place for messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'data> {
    pub attribute: Attribute<'data>,
    /// The name of the section.
    pub section: &'data str,
    /// Where in it the record begins.
    pub offset: u64,
}

impl<'data> Record<'data> {
    /// An error of this record.
    pub fn error(&self, what: &str) -> CubinError {
        CubinError::section(self.section, self.offset, format!("attribute {:#04x} {what}", self.attribute.number))
    }

    /// Its payload.
    pub fn payload(&self) -> Result<&'data [u8], CubinError> {
        match self.attribute.value {
            AttributeValue::Payload(bytes) => Ok(bytes),
            other => Err(self.error(&format!("with {}, expected a payload", other.describe()))),
        }
    }

    /// Its value of one or two bytes.
    pub fn small(&self) -> Result<u32, CubinError> {
        match self.attribute.value {
            AttributeValue::Byte(value) => Ok(value.into()),
            AttributeValue::Half(value) => Ok(value.into()),
            other => Err(self.error(&format!("with {}, expected one or two bytes", other.describe()))),
        }
    }

    /// Its payload of any number of 32-bit words.
    pub fn words(&self) -> Result<Vec<u32>, CubinError> {
        let payload = self.payload()?;
        let (words, rest) = payload.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(self.error(&format!("of {} bytes, expected words of four", payload.len())));
        }
        Ok(words.iter().map(|&word| u32::from_le_bytes(word)).collect())
    }

    /// Its payload of so many 32-bit words.
    pub fn array<const N: usize>(&self) -> Result<[u32; N], CubinError> {
        let words = self.words()?;
        let count = words.len();
        words.try_into().map_err(|_| self.error(&format!("of {count} words, expected {N}")))
    }
}

/// The records of a section.
pub(super) fn records<'data>(section: &'data str, data: &'data [u8]) -> Result<Vec<Record<'data>>, CubinError> {
    let mut records = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let offset = (data.len() - rest.len()) as u64;
        let error = |what: String| CubinError::section(section, offset, what);
        let Some((&[form, number, low, high], after)) = rest.split_first_chunk::<4>() else {
            return Err(error(format!("{} bytes, expected a record of at least four", rest.len())));
        };
        let small = u16::from_le_bytes([low, high]);
        let (value, after) = match form {
            1 => (AttributeValue::Flag, after),
            2 => (AttributeValue::Byte(low), after),
            3 => (AttributeValue::Half(small), after),
            4 => {
                let Some((payload, after)) = after.split_at_checked(small.into()) else {
                    let there = after.len();
                    let what = format!(
                        "attribute {number:#04x} of {small} bytes, expected no more than the {there} that are there"
                    );
                    return Err(error(what));
                };
                (AttributeValue::Payload(payload), after)
            }
            form => return Err(error(format!("attribute {number:#04x} in form {form}, expected a form from 1 to 4"))),
        };
        records.push(Record { attribute: Attribute { number, value }, section, offset });
        rest = after;
    }
    Ok(records)
}
