//! The run's side of the shared memory.

use super::super::state::LiveState;
use super::layout::{
    DESCRIPTOR_WORDS, FOLDER, HEADER_BYTES, Header, MAGIC, TEXT_BYTES, TOKEN_BYTES, VERSION, name_of, remove,
};
use super::mapping::{WORD, Words};
use super::{contents, sequence};
use balar_actors::engine::SampleLayout;
use balar_record::system::janitor::Janitor;
use rustix::fs::{FallocateFlags, Mode};
use rustix::io::Errno;
use rustix::shm::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The shared memory of a run. Dropped, it is removed.
pub struct SharedBoard {
    name: String,
    file: File,
    words: Words,
    /// Where cells and texts begin, in words, once they are laid out.
    laid_out: Option<(usize, usize)>,
    _janitor: Janitor,
}

impl SharedBoard {
    /// Makes the object of this process, with the port and the token that a watcher needs to reach it.
    ///
    /// # Errors
    ///
    /// If the system has no shared memory, or no process for the janitor, or somebody else has taken the name.
    pub fn create(port: u16, token: &str) -> io::Result<SharedBoard> {
        let pid = std::process::id();
        let name = name_of(pid);
        // An object with this number is of a process that has ended.
        remove(&name);
        let janitor = Janitor::of_memory(&name)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR;
        let file = match rustix::shm::open(name.as_str(), flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::EXIST) => return Err(taken(&name)),
            opened => File::from(opened?),
        };
        allocate(&file, HEADER_BYTES)?;
        let words = Words::map(&file, HEADER_BYTES, true)?;
        for (at, value) in [
            (Header::Version, VERSION),
            (Header::Bytes, HEADER_BYTES as u64),
            (Header::Pid, pid.into()),
            (Header::Port, port.into()),
            (Header::TextBytes, TEXT_BYTES as u64),
        ] {
            words.all()[at as usize].store(value, Ordering::Relaxed);
        }
        store_text(&words.all()[Header::Token as usize..][..TOKEN_BYTES / WORD], token);
        // Whoever sees it sees the rest.
        words.all()[Header::Magic as usize].store(MAGIC, Ordering::Release);
        Ok(SharedBoard { name, file, words, laid_out: None, _janitor: janitor })
    }

    /// Publishes how the run is. The layout of its samples is that of the first call.
    ///
    /// # Errors
    ///
    /// If the system has no room for the object.
    pub fn publish(&mut self, state: &LiveState, layout: &SampleLayout, values: &[u64]) -> io::Result<()> {
        let (cells_at, texts_at) = match self.laid_out {
            Some(laid_out) => laid_out,
            None => self.lay_out(state, layout, values)?,
        };
        let words = self.words.all();
        sequence::write(&words[Header::Sequence as usize], || {
            let mut at = cells_at;
            let texts = contents(state, layout, values, |_, _, number| {
                // The layout does not change; a cell too many would be of a mistake of ours, and is not written over texts.
                if at < texts_at {
                    words[at].store(number.bits(), Ordering::Relaxed);
                    at += 1;
                }
            });
            for (slot, (_, text)) in words[texts_at..].chunks(TEXT_BYTES / WORD).zip(&texts) {
                store_text(slot, text);
            }
        });
        Ok(())
    }

    /// Grows the object, and writes all that does not change any more.
    fn lay_out(&mut self, state: &LiveState, layout: &SampleLayout, values: &[u64]) -> io::Result<(usize, usize)> {
        let mut names = Names::default();
        let mut cells = Vec::new();
        let texts = contents(state, layout, values, |name, unit, number| {
            cells.push([names.add(&name()), names.add(unit), number.kind() as usize]);
        });
        let texts: Vec<[usize; 2]> = texts.iter().map(|(name, _)| [names.add(name), names.add("")]).collect();
        let cell_descriptors_at = HEADER_BYTES / WORD;
        let text_descriptors_at = cell_descriptors_at + cells.len() * DESCRIPTOR_WORDS;
        let names_at = text_descriptors_at + texts.len() * DESCRIPTOR_WORDS;
        let cells_at = names_at + names.bytes.len().div_ceil(WORD);
        let texts_at = cells_at + cells.len();
        let bytes = (texts_at * WORD + texts.len() * TEXT_BYTES).next_multiple_of(HEADER_BYTES);
        allocate(&self.file, bytes)?;
        self.words = Words::map(&self.file, bytes, true)?;
        let words = self.words.all();
        let place = |name: usize| (names_at * WORD + name) as u64;
        let kinds = cells.iter().map(|[name, unit, kind]| [place(*name), place(*unit), *kind as u64]);
        let texts_kinds = texts.iter().map(|[name, unit]| [place(*name), place(*unit), 2]);
        for (at, value) in kinds.chain(texts_kinds).flatten().enumerate() {
            words[cell_descriptors_at + at].store(value, Ordering::Relaxed);
        }
        for (word, bytes) in words[names_at..].iter().zip(names.bytes.chunks(WORD)) {
            word.store(word_of(bytes), Ordering::Relaxed);
        }
        for (at, value) in [
            (Header::Bytes, bytes),
            (Header::Cells, cells.len()),
            (Header::CellsAt, cells_at * WORD),
            (Header::CellDescriptorsAt, cell_descriptors_at * WORD),
            (Header::Texts, texts.len()),
            (Header::TextsAt, texts_at * WORD),
            (Header::TextDescriptorsAt, text_descriptors_at * WORD),
        ] {
            words[at as usize].store(value as u64, Ordering::Relaxed);
        }
        words[Header::IsLaidOut as usize].store(1, Ordering::Release);
        self.laid_out = Some((cells_at, texts_at));
        Ok((cells_at, texts_at))
    }
}

impl Drop for SharedBoard {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// What has the name could not be removed.
fn taken(name: &str) -> io::Error {
    let path = format!("{FOLDER}{name}");
    let owner = std::fs::symlink_metadata(&path).map(|found| format!(" of the user with number {}", found.uid()));
    let owner = owner.unwrap_or_default();
    io::Error::other(format!("{path}{owner} is in its place and cannot be removed; the page shows the run as ever"))
}

/// Gives an object so many bytes. Its pages are there from then on: a write to a page that the system has no room for would end the process.
fn allocate(file: &File, bytes: usize) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes as u64)?)
}

/// Names one after another, each with a zero at its end; a name has one place.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    known: std::collections::BTreeMap<String, usize>,
}

impl Names {
    fn add(&mut self, name: &str) -> usize {
        if let Some(&at) = self.known.get(name) {
            return at;
        }
        let at = self.bytes.len();
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.known.insert(name.to_owned(), at);
        at
    }
}

/// Up to eight bytes as a word, in the order in which they lie in memory.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// Stores a text with a zero at its end, cut to the room for it.
fn store_text(words: &[AtomicU64], text: &str) {
    let room = words.len() * WORD - 1;
    let mut end = text.len().min(room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = &text.as_bytes()[..end];
    for (at, word) in words.iter().enumerate() {
        let own = bytes.get(at * WORD..).unwrap_or_default();
        word.store(word_of(&own[..own.len().min(WORD)]), Ordering::Relaxed);
    }
}
