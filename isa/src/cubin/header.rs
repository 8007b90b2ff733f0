//! The ELF header of a cubin: the GPU that it is for, and the version of the format.
//!
//! Source: own findings from the output of ptxas 11.8, 12.9 and 13.5 for sm_70, sm_72 and sm_75.

/// The first version of the format that has the architecture in the second byte of the flags.
pub(super) const SHIFTED_ARCHITECTURE_ABI: u8 = 8;

/// The ELF machine number of CUDA code.
const ELF_MACHINE_CUDA: u16 = 190;

/// The ELF type of a file that is to be linked.
const ELF_TYPE_RELOCATABLE: u16 = 1;

/// The facts in the header of a cubin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubinHeader {
    /// The architecture that the code is for: 75.
    pub architecture: u32,
    /// The architecture of the PTX that it was made from, where the header has it (before the eighth version of the format).
    pub virtual_architecture: Option<u32>,
    /// The operating system field: 0x33 up to version 7 of the format, 0x41 from version 8 on.
    pub os_abi: u8,
    /// The version of the format: 7 or 8.
    pub abi_version: u8,
    /// The release of the tools that wrote the file, ten times the major number plus the minor one (129), where the header has it
    /// (before the eighth version of the format).
    pub toolkit: Option<u32>,
    /// Whether it is to be linked with others before it is loaded.
    pub is_relocatable: bool,
}

impl CubinHeader {
    /// Reads the header that an image begins with; `None` where it is not the ELF header of CUDA code. Nothing after it is looked at.
    pub fn read(image: &[u8]) -> Option<Self> {
        let header: &[u8; 64] = image.first_chunk()?;
        let machine = u16::from_le_bytes([header[18], header[19]]);
        if header[..4] != *b"\x7fELF" || machine != ELF_MACHINE_CUDA {
            return None;
        }
        let is_relocatable = u16::from_le_bytes([header[16], header[17]]) == ELF_TYPE_RELOCATABLE;
        let (os_abi, abi_version) = (header[7], header[8]);
        let version = u32::from_le_bytes([header[20], header[21], header[22], header[23]]);
        // Bytes 48 to 51 are the flags.
        Some(if abi_version >= SHIFTED_ARCHITECTURE_ABI {
            let architecture = u32::from(header[49]);
            Self { architecture, virtual_architecture: None, os_abi, abi_version, toolkit: None, is_relocatable }
        } else {
            let (architecture, virtual_architecture) = (u32::from(header[48]), Some(u32::from(header[50])));
            Self { architecture, virtual_architecture, os_abi, abi_version, toolkit: Some(version), is_relocatable }
        })
    }
}
