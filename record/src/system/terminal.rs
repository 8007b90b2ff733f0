//! The terminal that a stream may be.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Columns of the terminal that `stream` is; `None` where it is none.
pub fn width(stream: &(impl AsFd + IsTerminal)) -> Option<u16> {
    let size = if stream.is_terminal() { rustix::termios::tcgetwinsize(stream).ok()? } else { return None };
    // A terminal that does not know its size has zero.
    Some(size.ws_col).filter(|columns| *columns > 0)
}
