//! Bulk data through the shared pages, in chunks where it is longer than they are.
//!
//! The sender reports how much it has written; if not everything fits at once, the receiver reports how much it has taken. Both ends
//! are at the same point again when a transfer is over: the next one begins at the start of the ring.

use super::shared::SharedPages;
use super::socket::{Frame, Socket};
use super::wire::malformed;
use std::io;

/// Bytes of several places, one after another.
struct Gather<'a> {
    sources: std::slice::Iter<'a, &'a [u8]>,
    current: &'a [u8],
}

impl Gather<'_> {
    /// Copies the next `bytes` bytes into the ring.
    fn write(&mut self, pages: &SharedPages, mut position: u64, mut bytes: u64) {
        while bytes > 0 {
            if self.current.is_empty() {
                let Some(next) = self.sources.next() else { return };
                self.current = next;
            }
            let now = bytes.min(self.current.len() as u64);
            let (part, rest) = self.current.split_at(now as usize);
            pages.write(position, part);
            self.current = rest;
            position += now;
            bytes -= now;
        }
    }
}

/// Sends a frame with its bulk data. `frame` makes it of the bytes that lie in the shared pages when it goes.
///
/// # Errors
///
/// As [`Socket::send`] and [`Socket::receive`].
pub fn send<Out: Frame, In: Frame>(
    socket: &mut Socket<Out, In>,
    pages: &SharedPages,
    sources: &[&[u8]],
    frame: impl FnOnce(u64) -> Out,
) -> io::Result<()> {
    let total: u64 = sources.iter().map(|source| source.len() as u64).sum();
    let mut gather = Gather { sources: sources.iter(), current: &[] };
    let first = if total <= pages.len() { total } else { pages.chunk() };
    gather.write(pages, 0, first);
    socket.send(&frame(first))?;
    let (mut sent, mut taken) = (first, 0);
    while total > pages.len() && taken < total {
        let next = pages.chunk().min(total - sent);
        if next > 0 && sent + next - taken <= pages.len() {
            gather.write(pages, sent, next);
            sent += next;
            socket.send(&Out::filled(next))?;
            continue;
        }
        match socket.expect()?.as_consumed() {
            Some(bytes) if bytes > 0 && bytes <= sent - taken => taken += bytes,
            _ => return Err(malformed("expected how much of a transfer has been taken")),
        }
    }
    Ok(())
}

/// Receives `total` bytes of bulk data; `filled` of them are in the shared pages already. `take` is told where each piece lies in the ring
/// and how long it is.
///
/// # Errors
///
/// As [`Socket::send`] and [`Socket::receive`].
pub fn receive<Out: Frame, In: Frame>(
    socket: &mut Socket<Out, In>,
    pages: &SharedPages,
    total: u64,
    mut filled: u64,
    mut take: impl FnMut(u64, usize),
) -> io::Result<()> {
    let (mut taken, mut said) = (0, 0);
    loop {
        if filled > total || filled - taken > pages.len() {
            return Err(malformed(format_args!("{filled} bytes in the shared pages of {total} announced")));
        }
        while taken < filled {
            let to_end = pages.len() - taken % pages.len();
            let now = (filled - taken).min(pages.chunk()).min(to_end);
            take(taken, now as usize);
            taken += now;
            // Half of the ring at a time, so that the sender is not woken for every piece.
            if total > pages.len() && (taken - said >= pages.len() / 2 || taken == total) {
                socket.send(&Out::consumed(taken - said))?;
                said = taken;
            }
        }
        if taken == total {
            return Ok(());
        }
        match socket.expect()?.as_filled() {
            Some(more) if more > 0 && more <= pages.len() => filled += more,
            _ => return Err(malformed("expected more of a transfer")),
        }
    }
}
