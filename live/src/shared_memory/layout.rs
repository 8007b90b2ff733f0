//! The layout of the object, and its name.

/// Where Linux shows the objects of POSIX shared memory.
pub(super) const FOLDER: &str = "/dev/shm";
/// First word: "BALARLIV" as bytes.
pub(super) const MAGIC: u64 = u64::from_ne_bytes(*b"BALARLIV");
/// The version of the layout.
pub const VERSION: u64 = 1;
/// Bytes of the header: all of the object until the rest is laid out.
pub(super) const HEADER_BYTES: usize = 4096;
/// Bytes that a text has at most, with the zero at its end.
pub(super) const TEXT_BYTES: usize = 256;
/// Bytes that the token has at most, with the zero at its end.
pub(super) const TOKEN_BYTES: usize = 64;

/// Words of the header.
#[derive(Clone, Copy, Debug)]
pub(super) enum Header {
    Magic = 0,
    Version = 1,
    /// Bytes of the object.
    Bytes = 2,
    Pid = 3,
    /// Where the run is asked to pause: a port of 127.0.0.1.
    Port = 4,
    /// The counter of the sequence lock.
    Sequence = 5,
    /// 1 once the descriptors are there.
    IsLaidOut = 6,
    Cells = 7,
    CellsAt = 8,
    CellDescriptorsAt = 9,
    Texts = 10,
    TextsAt = 11,
    TextDescriptorsAt = 12,
    TextBytes = 13,
    /// Eight words: the token, in letters and digits.
    Token = 16,
}

/// Words of a descriptor: where its name is, where its unit of measure is, its kind.
pub(super) const DESCRIPTOR_WORDS: usize = 3;

/// The name of the object of a process.
pub fn name_of(pid: u32) -> String {
    format!("/balar-actors.{pid}")
}

/// Removes an object of that name; nothing else is touched.
pub fn remove(name: &str) {
    let pid = name.strip_prefix("/balar-actors.").and_then(|pid| pid.parse::<u32>().ok());
    if pid.is_some_and(|pid| name_of(pid) == name) {
        // It may have been removed already.
        let _ = rustix::shm::unlink(name);
    }
}
