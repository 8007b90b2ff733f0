//! The data of an entry, decompressed.

use super::container::Entry;
use super::error::FatbinError;
use ruzstd::decoding::FrameDecoder;

/// Longer data is refused before any memory is taken for it.
pub const MAXIMUM_PAYLOAD_BYTES: u64 = 1 << 28;

/// Flag of data that is an LZ4 block.
const LZ4: u64 = 0x2000;
/// Flag of data that is a Zstandard frame.
const ZSTANDARD: u64 = 0x8000;

/// The data of an entry.
pub(super) fn data(entry: &Entry) -> Result<Vec<u8>, FatbinError> {
    let error = |what: String| FatbinError { offset: entry.payload_offset, what };
    let compressed = &entry.payload[..entry.compressed_bytes as usize];
    let bytes = entry.uncompressed_bytes;
    let form = match entry.flags & (LZ4 | ZSTANDARD) {
        0 => return Ok(entry.payload.to_vec()),
        LZ4 => "LZ4",
        ZSTANDARD => "Zstandard",
        _ => return Err(error("data compressed in two ways, expected one".to_owned())),
    };
    if bytes > MAXIMUM_PAYLOAD_BYTES {
        return Err(error(format!("{form} data of {bytes} bytes, expected at most {MAXIMUM_PAYLOAD_BYTES}")));
    }
    let mut data = vec![0; bytes as usize];
    let found = if form == "LZ4" {
        lz4_flex::block::decompress_into(compressed, &mut data).map_err(|error| error.to_string())
    } else {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAXIMUM_PAYLOAD_BYTES);
        decoder.decode_all(compressed, &mut data).map_err(|error| error.to_string())
    };
    match found {
        Ok(found) if found as u64 == bytes => Ok(data),
        Ok(found) => Err(error(format!("{form} data of {found} bytes, expected {bytes}"))),
        Err(why) => Err(error(format!("{form} data that does not decompress to {bytes} bytes: {why}"))),
    }
}
