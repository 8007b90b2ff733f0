//! Copies at once: calls with the bytes of the program's own memory.

use crate::session::addresses::copy::{Copy, Side, linear};
use crate::session::addresses::ranges;
use crate::session::connection;
use crate::session::connection::host_rows::HostRows;
use crate::session::order::staging;
use balar_host::call::CopyEnd;
use balar_host::{Bytes, Call, CudaError};

/// Makes the copy.
pub fn run(copy: &Copy, device: u32, stream: u32, asynchronous: bool) -> Result<(), CudaError> {
    if copy.shape.bytes() == 0 {
        return Ok(());
    }
    // Checked before the program's bytes are read: there may be fewer than it says.
    for end in [&copy.destination, &copy.source] {
        end.check(copy.shape)?;
    }
    match copy.sides() {
        (Side::Host(destination), Side::Host(source)) => {
            connection::call_on(device, &Call::StreamSynchronize { stream })?;
            // The ranges may overlap: the bytes are taken first.
            let bytes = source.bytes().into_owned();
            destination.write(0, &bytes);
            Ok(())
        }
        (Side::Node(destination), Side::Host(source)) => {
            if let CopyEnd::Memory { address, row_pitch, slice_pitch } = destination {
                let rows = HostRows { address, row_pitch, slice_pitch, ..source };
                ranges::check_room(address, rows.extent())?;
            }
            let bytes = source.bytes();
            let has_room = asynchronous && staging::admit(device, stream, bytes.len() as u64);
            let Some(destination) = linear(&destination, copy.shape) else {
                let source = CopyEnd::Bytes(Bytes::absent(bytes.len() as u64));
                let call =
                    Call::Copy { destination, source, shape: copy.shape, transfer: 0, stream, asynchronous: has_room };
                return connection::call_with(device, &call, &[&bytes], &mut |_, _| {}).map(|_| ());
            };
            // An asynchronous copy for which there is no room is sent in pieces.
            let piece = if asynchronous && !has_room { staging::PIECE } else { bytes.len().max(1) };
            let mut destination = destination;
            for bytes in bytes.chunks(piece) {
                let data = Bytes::absent(bytes.len() as u64);
                let call = Call::copy_to_device(destination, data, stream, has_room);
                connection::call_with(device, &call, &[bytes], &mut |_, _| {})?;
                destination += bytes.len() as u64;
            }
            Ok(())
        }
        (Side::Host(destination), Side::Node(source)) => {
            let bytes = copy.shape.bytes();
            let call = match linear(&source, copy.shape) {
                Some(source) => Call::copy_from_device(source, bytes, 0, stream, false),
                None => {
                    let destination = CopyEnd::Bytes(Bytes::absent(bytes));
                    Call::Copy { destination, source, shape: copy.shape, transfer: 0, stream, asynchronous: false }
                }
            };
            // A copy that fails gives an error and no bytes: the sink only ever has what arrives.
            connection::call_with(device, &call, &[], &mut |offset, data| destination.write(offset, data)).map(|_| ())
        }
        (Side::Node(destination), Side::Node(source)) => {
            let bytes = copy.shape.bytes();
            let call = match (linear(&destination, copy.shape), linear(&source, copy.shape)) {
                (Some(destination), Some(source)) => {
                    Call::copy_within(destination, source, bytes, stream, asynchronous)
                }
                _ => Call::Copy { destination, source, shape: copy.shape, transfer: 0, stream, asynchronous },
            };
            connection::call_on(device, &call).map(|_| ())
        }
    }
}
