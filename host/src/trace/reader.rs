//! Reads the folder of a trace, and checks all of it.

use super::CodeFile;
use super::error::TraceError;
use super::event::{EVENT_KINDS, Event};
use super::header::Header;
use super::payloads::{PayloadId, PayloadReader};
use super::writer::{FILE, MAGIC, RECORD_HEADER_BYTES, checksum};
use crate::call::{Call, CallResult};
use crate::memory::MAXIMUM_GPUS;
use crate::program::ThreadId;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A trace in memory, but for its payloads.
#[derive(Debug)]
pub struct Trace {
    /// Its header.
    pub header: Header,
    /// All its events.
    pub events: Vec<Event>,
    payloads: PayloadReader,
}

impl Trace {
    /// Is `folder` the folder of a trace, whole or damaged?
    pub fn is_at(folder: &Path) -> bool {
        Header::path(folder).exists()
    }

    /// Reads a trace; with `partial`, also an unfinished one, up to its last whole event.
    ///
    /// # Errors
    ///
    /// Everything in which the files are not as they were written.
    pub fn open(folder: &Path, partial: bool) -> Result<Trace, TraceError> {
        let header = Header::read(folder)?;
        let unfinished = header.finished.is_none();
        if unfinished && !partial {
            return Err(TraceError::Unfinished { path: folder.to_owned(), cause: header.interrupted });
        }
        let payloads = PayloadReader::open(folder, unfinished)?;
        let path = folder.join(FILE);
        let bytes = fs::read(&path).map_err(TraceError::system("read", &path))?;
        if !bytes.starts_with(MAGIC) {
            return Err(TraceError::damaged(&path, 0, "expected the events of a trace"));
        }
        if let Some((_, expected)) = header.finished
            && bytes.len() as u64 != expected
        {
            let cause = format!("the file has {} bytes, {} says {expected}", bytes.len(), super::header::FILE);
            return Err(TraceError::damaged(&path, bytes.len().min(expected as usize) as u64, cause));
        }
        let mut events = Vec::new();
        let mut order = Order::default();
        let mut offset = MAGIC.len();
        while offset < bytes.len() {
            let damaged = |cause: String| TraceError::damaged(&path, offset as u64, cause);
            let (event, next) = match read_event(&bytes, offset) {
                Ok(found) => found,
                Err(Broken::CutOff) if unfinished => break,
                Err(Broken::CutOff) => return Err(damaged("the file ends inside an event".to_owned())),
                Err(Broken::Wrong(cause)) => return Err(damaged(cause)),
            };
            if let Some(id) = event.payloads().into_iter().find(|&id| !payloads.contains(id)) {
                if unfinished {
                    break;
                }
                let missing = format!(
                    "payload {:032x} of {} bytes is missing from {}",
                    id.hash,
                    id.length,
                    super::payloads::FILE
                );
                return Err(damaged(missing));
            }
            check_payloads(&event).map_err(damaged)?;
            order.check(&event).map_err(damaged)?;
            events.push(event);
            offset = next;
        }
        if let Some((expected, _)) = header.finished
            && events.len() as u64 != expected
        {
            let cause = format!("{} events, {} says {expected}", events.len(), super::header::FILE);
            return Err(TraceError::damaged(&path, offset as u64, cause));
        }
        Ok(Trace { header, events, payloads })
    }

    /// The bytes of a payload.
    ///
    /// # Errors
    ///
    /// Where the file has changed since it was opened.
    pub fn payload(&self, id: PayloadId) -> Result<Arc<[u8]>, TraceError> {
        self.payloads.read(id)
    }

    /// The code that is loaded from the start: for each device that has some, files of PTX and cubins with their names.
    ///
    /// # Errors
    ///
    /// Where the file has changed since it was opened.
    pub fn code(&self) -> Result<Vec<Vec<CodeFile>>, TraceError> {
        let mut code: Vec<Vec<CodeFile>> = Vec::new();
        for event in &self.events {
            let Event::Code { device, name, text } = event else { break };
            let bytes = self.payload(*text)?;
            let device = *device as usize;
            if code.len() <= device {
                code.resize_with(device + 1, Vec::new);
            }
            code[device].push((name.clone(), bytes));
        }
        Ok(code)
    }
}

enum Broken {
    CutOff,
    Wrong(String),
}

/// The event at an offset, and where the next one begins.
fn read_event(bytes: &[u8], offset: usize) -> Result<(Event, usize), Broken> {
    let (header, rest) = bytes[offset..].split_first_chunk::<RECORD_HEADER_BYTES>().ok_or(Broken::CutOff)?;
    let [a, b, c, d, e, f, g, h] = *header;
    let (length, sum) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]));
    let event = rest.get(..length).ok_or(Broken::CutOff)?;
    if checksum(event) != sum {
        return Err(Broken::Wrong("an event is not the recorded one: its checksum differs".to_owned()));
    }
    let next = offset + RECORD_HEADER_BYTES + length;
    match event.first() {
        Some(&kind) if kind < EVENT_KINDS => {}
        Some(kind) => {
            return Err(Broken::Wrong(format!("unknown kind of event {kind}, expected 0 to {}", EVENT_KINDS - 1)));
        }
        None => return Err(Broken::Wrong("an empty event".to_owned())),
    }
    match postcard::take_from_bytes::<Event>(event) {
        Ok((event, [])) => Ok((event, next)),
        Ok((_, rest)) => Err(Broken::Wrong(format!("an event has {} bytes too many", rest.len()))),
        Err(error) => Err(Broken::Wrong(format!("an event cannot be decoded: {error}"))),
    }
}

/// Do the payloads of an event fit the lengths that it announces?
fn check_payloads(event: &Event) -> Result<(), String> {
    let (announced, given): (Vec<u64>, Vec<u64>) = match event {
        Event::Request { request, payloads } => (
            request.call.payloads().iter().map(|bytes| bytes.len()).collect(),
            payloads.iter().map(|id| id.length).collect(),
        ),
        Event::Result { result, data, .. } => {
            let announced = if let CallResult::Data(bytes) = result { vec![bytes.len()] } else { Vec::new() };
            (announced, data.iter().map(|id| id.length).collect())
        }
        Event::HostWrite { ranges, data } => {
            let bytes = ranges.iter().try_fold(0u64, |sum, &(address, length)| {
                address.checked_add(length)?;
                sum.checked_add(length)
            });
            (vec![bytes.ok_or("the ranges of a write are out of bounds")?], vec![data.length])
        }
        _ => return Ok(()),
    };
    if announced == given {
        return Ok(());
    }
    Err(format!("an event announces payloads of {announced:?} bytes, and has {given:?}"))
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its call returns before it makes another.
    InCall,
    /// Its call may return, or not.
    MayReturn,
    /// Its last call has returned.
    Out,
}

/// The events that can come next.
#[derive(Default)]
struct Order {
    threads: BTreeMap<ThreadId, Standing>,
    started: bool,
}

impl Order {
    fn check(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Code { device, .. } => {
                if self.started {
                    return Err("code after the first call: expected it before".to_owned());
                }
                if u64::from(*device) >= MAXIMUM_GPUS {
                    return Err(format!("code of device {device}: a node has at most {MAXIMUM_GPUS}"));
                }
                return Ok(());
            }
            Event::Request { request, .. } => {
                // The end of a thread has no result, and that of a host function need not have one.
                let standing = match request.call {
                    Call::Exit { .. } | Call::CallbackDone { .. } => Standing::MayReturn,
                    _ => Standing::InCall,
                };
                if self.threads.insert(request.thread, standing) == Some(Standing::InCall) {
                    return Err(format!("thread {} makes a call before its last one has returned", request.thread.0));
                }
            }
            Event::Result { thread, .. } => match self.threads.insert(*thread, Standing::Out) {
                Some(Standing::InCall | Standing::MayReturn) => {}
                Some(Standing::Out) | None => {
                    return Err(format!("a call of thread {} returns, which is in none", thread.0));
                }
            },
            _ => {}
        }
        self.started = true;
        Ok(())
    }
}
