//! One end of a connection's socket: frames out, frames in.

use super::wire::{ClientFrame, FrameBuffer, ServerFrame, encode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// How often an end that may give up looks whether it should.
pub const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Descriptors that come with a frame, at most.
const MAXIMUM_DESCRIPTORS: usize = 4;

/// A frame of one direction.
pub trait Frame: Serialize + DeserializeOwned {
    /// More bytes lie in the shared pages.
    fn filled(bytes: u64) -> Self;
    /// Bytes have been taken from the shared pages.
    fn consumed(bytes: u64) -> Self;
    /// The bytes that `filled` made it of.
    fn as_filled(&self) -> Option<u64>;
    /// The bytes that `consumed` made it of.
    fn as_consumed(&self) -> Option<u64>;
    /// Does it come between others, to be looked at later?
    fn is_aside(&self) -> bool {
        false
    }
    /// Why the connection ends, if the frame says that it does.
    fn ends(&self) -> Option<io::Error> {
        None
    }
}

impl Frame for ClientFrame {
    fn filled(bytes: u64) -> Self {
        ClientFrame::Filled(bytes)
    }

    fn consumed(bytes: u64) -> Self {
        ClientFrame::Consumed(bytes)
    }

    fn as_filled(&self) -> Option<u64> {
        if let ClientFrame::Filled(bytes) = self { Some(*bytes) } else { None }
    }

    fn as_consumed(&self) -> Option<u64> {
        if let ClientFrame::Consumed(bytes) = self { Some(*bytes) } else { None }
    }
}

impl Frame for ServerFrame {
    fn filled(bytes: u64) -> Self {
        ServerFrame::Filled(bytes)
    }

    fn consumed(bytes: u64) -> Self {
        ServerFrame::Consumed(bytes)
    }

    fn as_filled(&self) -> Option<u64> {
        if let ServerFrame::Filled(bytes) = self { Some(*bytes) } else { None }
    }

    fn as_consumed(&self) -> Option<u64> {
        if let ServerFrame::Consumed(bytes) = self { Some(*bytes) } else { None }
    }

    fn is_aside(&self) -> bool {
        matches!(self, ServerFrame::Callback(_))
    }

    fn ends(&self) -> Option<io::Error> {
        let (kind, text) = match self {
            ServerFrame::Refused(text) => (io::ErrorKind::ResourceBusy, text),
            ServerFrame::Ended(text) => (io::ErrorKind::ConnectionAborted, text),
            ServerFrame::Failed(text) => (io::ErrorKind::Other, text),
            _ => return None,
        };
        Some(io::Error::new(kind, text.clone()))
    }
}

/// Returns whether to stop waiting; it gets how long one wait has taken so far, in steps of [`LOOK_PERIOD`].
pub type GiveUp = Arc<dyn Fn(Duration) -> bool + Send + Sync>;

/// One end. `Out` are the frames that it sends, `In` those that it receives.
pub struct Socket<Out, In> {
    descriptor: OwnedFd,
    buffer: FrameBuffer,
    scratch: Box<[u8]>,
    give_up: Option<GiveUp>,
    /// Frames that came between others.
    pub aside: VecDeque<In>,
    /// Descriptors that have come.
    pub descriptors: Vec<OwnedFd>,
    frames: PhantomData<fn(Out)>,
}

impl<Out: Frame, In: Frame> Socket<Out, In> {
    /// An end that waits for ever, or until `give_up` says no.
    pub fn new(descriptor: OwnedFd, give_up: Option<GiveUp>) -> Socket<Out, In> {
        Socket {
            descriptor,
            buffer: FrameBuffer::default(),
            scratch: vec![0; 16 << 10].into(),
            give_up,
            aside: VecDeque::new(),
            descriptors: Vec::new(),
            frames: PhantomData,
        }
    }

    /// For `poll`.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Sends a frame.
    ///
    /// # Errors
    ///
    /// Where the other end is gone, or this one has given up.
    pub fn send(&mut self, frame: &Out) -> io::Result<()> {
        self.send_bytes(&encode(frame)?, &[])
    }

    /// Sends bytes, with descriptors at their start.
    ///
    /// # Errors
    ///
    /// As [`Socket::send`].
    pub fn send_bytes(&mut self, mut bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut descriptors = descriptors;
        let flags = if self.give_up.is_some() { SendFlags::DONTWAIT } else { SendFlags::empty() };
        while !bytes.is_empty() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAXIMUM_DESCRIPTORS))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let parts = [IoSlice::new(bytes)];
            match rustix::net::sendmsg(&self.descriptor, &parts, &mut control, flags | SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    bytes = &bytes[sent..];
                    descriptors = &[];
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The next frame that is not aside; `None` at the end of the connection.
    ///
    /// # Errors
    ///
    /// Where a frame is malformed, the other end says why it has ended, or this one has given up.
    pub fn receive(&mut self) -> io::Result<Option<In>> {
        loop {
            if let Some(frame) = self.buffer.frame::<In>()? {
                if let Some(error) = frame.ends() {
                    return Err(error);
                }
                if !frame.is_aside() {
                    return Ok(Some(frame));
                }
                self.aside.push_back(frame);
            } else if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// As [`Socket::receive`], where the connection must not end here.
    ///
    /// # Errors
    ///
    /// Also at the end of the connection.
    pub fn expect(&mut self) -> io::Result<In> {
        self.receive()?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Waits for more bytes; `false` at the end of the connection.
    ///
    /// # Errors
    ///
    /// Where the system says so, or this end has given up.
    pub fn fill(&mut self) -> io::Result<bool> {
        loop {
            match self.fill_now() {
                Ok(more) => return Ok(more),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::IN)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the bytes that have come; `false` at the end of the connection. An end that never gives up waits for them.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where there are none.
    pub fn fill_now(&mut self) -> io::Result<bool> {
        let wait = if self.give_up.is_some() { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAXIMUM_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        loop {
            let mut parts = [IoSliceMut::new(&mut self.scratch)];
            let flags = wait | RecvFlags::CMSG_CLOEXEC;
            match rustix::net::recvmsg(&self.descriptor, &mut parts, &mut control, flags) {
                Ok(message) => {
                    // Programs never send descriptors: those of a misbehaving one are closed.
                    for message in control.drain() {
                        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                            self.descriptors.extend(descriptors);
                        }
                    }
                    self.buffer.push(&self.scratch[..message.bytes]);
                    return Ok(message.bytes > 0);
                }
                Err(Errno::INTR) => {}
                // The other process died with bytes of ours unread.
                Err(Errno::CONNRESET) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The bytes that have come and are not yet taken as frames.
    pub fn buffer(&mut self) -> &mut FrameBuffer {
        &mut self.buffer
    }

    /// Waits until the socket is ready.
    fn wait(&self, events: PollFlags) -> io::Result<()> {
        let period = Timespec { tv_sec: 0, tv_nsec: LOOK_PERIOD.as_nanos() as i64 };
        let period = self.give_up.as_ref().map(|_| &period);
        let mut waited = Duration::ZERO;
        loop {
            if self.give_up.as_ref().is_some_and(|give_up| give_up(waited)) {
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the simulation ends"));
            }
            match poll(&mut [PollFd::new(&self.descriptor, events)], period) {
                Ok(0) => waited += LOOK_PERIOD,
                Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<Out, In> std::fmt::Debug for Socket<Out, In> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").field("descriptor", &self.descriptor).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::sync::Mutex;

    #[test]
    fn who_gives_up_knows_how_long_the_wait_has_taken() {
        let (here, _there) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("sockets");
        let waits = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&waits);
        let give_up: GiveUp = Arc::new(move |waited| {
            seen.lock().expect("no panic").push(waited);
            waited >= 3 * LOOK_PERIOD
        });
        let mut socket: Socket<ServerFrame, ClientFrame> = Socket::new(here, Some(give_up));
        let error = socket.receive().expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        let steps: Vec<Duration> = (0..=3).map(|step| step * LOOK_PERIOD).collect();
        assert_eq!(*waits.lock().expect("no panic"), steps);
    }
}
