//! A watcher's side of the shared memory.

use super::contents::Number;
use super::layout::{DESCRIPTOR_WORDS, FOLDER, HEADER_BYTES, Header, MAGIC, TEXT_BYTES, TOKEN_BYTES, VERSION, name_of};
use super::mapping::{WORD, Words};
use super::sequence;
use rustix::fs::Mode;
use rustix::shm::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why the shared memory of a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error("no run with --live has process number {0}")]
    Absent(u32),
    /// The system refuses.
    #[error("cannot read the shared memory of process {pid}: {cause}")]
    Refused {
        /// The process.
        pid: u32,
        /// Why.
        cause: io::Error,
    },
    /// Something else has its name, or it is damaged.
    #[error("the shared memory {} does not belong to a run", name_of(*.0))]
    NotARun(u32),
    /// Another version of balar-actors has made it.
    #[error(
        "process {pid} is of another version of balar-actors: its shared memory has layout {found}, and this program reads {VERSION}"
    )]
    OtherVersion {
        /// The process.
        pid: u32,
        /// The version of its layout.
        found: u64,
    },
}

/// The shared memory of a run, to look at.
#[derive(Debug)]
pub struct BoardReader {
    pid: u32,
    file: File,
    header: Words,
}

/// The values that a run has published.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    /// Name, unit of measure and number.
    pub cells: Vec<(String, String, Number)>,
    /// Name and text.
    pub texts: Vec<(String, String)>,
}

impl BoardReader {
    /// Opens the object of a process.
    ///
    /// # Errors
    ///
    /// If there is none that can be read.
    pub fn open(pid: u32) -> Result<BoardReader, OpenError> {
        let refused = |cause: io::Error| OpenError::Refused { pid, cause };
        let file = match rustix::shm::open(name_of(pid).as_str(), OFlags::RDONLY, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Err(OpenError::Absent(pid)),
            Err(cause) => return Err(refused(cause.into())),
        };
        // Files of another user are not looked at.
        if file.metadata().map_err(refused)?.uid() != rustix::process::geteuid().as_raw() {
            return Err(OpenError::NotARun(pid));
        }
        let header = Words::map(&file, HEADER_BYTES, false).map_err(|_| OpenError::NotARun(pid))?;
        if header.all()[Header::Magic as usize].load(Ordering::Acquire) != MAGIC {
            return Err(OpenError::NotARun(pid));
        }
        let reader = BoardReader { pid, file, header };
        match reader.word(Header::Version) {
            VERSION => Ok(reader),
            found => Err(OpenError::OtherVersion { pid, found }),
        }
    }

    fn word(&self, at: Header) -> u64 {
        self.header.all()[at as usize].load(Ordering::Relaxed)
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The port of 127.0.0.1 on which the run is asked.
    pub fn port(&self) -> u16 {
        self.word(Header::Port) as u16
    }

    /// The token that a request must show.
    pub fn token(&self) -> String {
        text(&self.header.all()[Header::Token as usize..][..TOKEN_BYTES / WORD])
    }

    /// The values that the run has published last. `None` where it has published nothing yet, or was killed as it wrote.
    ///
    /// # Errors
    ///
    /// If the header contradicts the object.
    pub fn board(&self) -> Result<Option<Board>, OpenError> {
        if self.header.all()[Header::IsLaidOut as usize].load(Ordering::Acquire) == 0 {
            return Ok(None);
        }
        let damaged = || OpenError::NotARun(self.pid);
        let words = Words::map(&self.file, self.word(Header::Bytes) as usize, false).map_err(|_| damaged())?;
        let words = words.all();
        let slice = |at: Header, count: Header, each: usize| -> Option<&[AtomicU64]> {
            let first = self.word(at) as usize / WORD;
            let length = (self.word(count) as usize).checked_mul(each)?;
            words.get(first..first.checked_add(length)?)
        };
        let cells = slice(Header::CellsAt, Header::Cells, 1).ok_or_else(damaged)?;
        let texts = slice(Header::TextsAt, Header::Texts, TEXT_BYTES / WORD).ok_or_else(damaged)?;
        let of_cells = slice(Header::CellDescriptorsAt, Header::Cells, DESCRIPTOR_WORDS).ok_or_else(damaged)?;
        let of_texts = slice(Header::TextDescriptorsAt, Header::Texts, DESCRIPTOR_WORDS).ok_or_else(damaged)?;
        let taken = sequence::read(&words[Header::Sequence as usize], || {
            let numbers: Vec<u64> = cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect();
            let slots: Vec<String> = texts.chunks(TEXT_BYTES / WORD).map(text).collect();
            (numbers, slots)
        });
        let Some((numbers, slots)) = taken else { return Ok(None) };
        let name = |place: &AtomicU64| text_at(words, place.load(Ordering::Relaxed) as usize);
        let cells = of_cells.chunks(DESCRIPTOR_WORDS).zip(numbers).map(|(descriptor, bits)| {
            (name(&descriptor[0]), name(&descriptor[1]), Number::of(descriptor[2].load(Ordering::Relaxed), bits))
        });
        let texts = of_texts.chunks(DESCRIPTOR_WORDS).zip(slots).map(|(descriptor, text)| (name(&descriptor[0]), text));
        Ok(Some(Board { cells: cells.collect(), texts: texts.collect() }))
    }
}

/// The bytes of words up to the first zero, as a text.
fn text(words: &[AtomicU64]) -> String {
    let bytes = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text that begins at a byte.
fn text_at(words: &[AtomicU64], at: usize) -> String {
    let bytes = words.get(at / WORD..).unwrap_or_default().iter();
    let bytes = bytes.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).skip(at % WORD);
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Processes that have shared memory and are there, the lowest number first.
pub fn running() -> Vec<u32> {
    let entries = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("balar-actors.")?.parse().ok());
    let mut pids: Vec<u32> = numbers.filter(|pid: &u32| Path::new(&format!("/proc/{pid}")).exists()).collect();
    pids.sort_unstable();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_memory::SharedBoard;
    use crate::state::{LiveState, Measured};
    use balar_actors::engine::SampleLayout;
    use balar_protocol::statistics::StatisticRow;

    #[test]
    fn what_is_published_is_read() {
        let row = StatisticRow {
            location: "gpu.sm[0]".to_owned(),
            what: "inst_executed",
            value: 0,
            unit: "x",
            maximum: false,
        };
        let layout = SampleLayout { rows: vec![row], units: vec![("gpu.sm[0]".to_owned(), 0..1)] };
        let mut state = LiveState { sim_ps: 42, ..LiveState::default() };
        state.run.topology = "v100_node".to_owned();
        state.node.push(Measured {
            name: "link_bytes".to_owned(),
            is_count: true,
            value: Some(5.0),
            ..Measured::default()
        });
        state.waiting = vec!["\u{e9}".repeat(400)];
        let pid = std::process::id();
        let mut writer = SharedBoard::create(8123, "s3cret").expect("made");
        let reader = BoardReader::open(pid).expect("it is there");
        assert_eq!((reader.port(), reader.token().as_str(), reader.pid()), (8123, "s3cret", pid));
        assert_eq!(reader.board().expect("intact"), None, "nothing has been published");
        assert!(running().contains(&pid));
        let mode = std::fs::metadata(format!("{FOLDER}/balar-actors.{pid}")).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600, "the token is in it");

        for (time, count) in [(42, 7), (43, 9)] {
            state.sim_ps = time;
            writer.publish(&state, &layout, &[count]).expect("published");
            let board = reader.board().expect("intact").expect("published");
            let cell = |name: &str| board.cells.iter().find(|cell| cell.0 == name).cloned();
            let expected = |name: &str, unit: &str, number| Some((name.to_owned(), unit.to_owned(), number));
            assert_eq!(cell("sim_time"), expected("sim_time", "ps", Number::Count(time)));
            let counter = "counter gpu.sm[0] inst_executed";
            assert_eq!(cell(counter), expected(counter, "x", Number::Count(count)));
            let metric = "metric node link_bytes";
            assert_eq!(cell(metric), expected(metric, "", Number::Count(5)));
            assert!(matches!(cell("time_left"), Some((_, _, Number::Real(real))) if real.is_nan()));
            let text = |name: &str| board.texts.iter().find(|text| text.0 == name).map(|text| text.1.clone());
            assert_eq!(text("topology").as_deref(), Some("v100_node"));
            assert_eq!(text("waiting"), Some("\u{e9}".repeat(127)), "a text is cut between characters");
        }
        // Another version, and something else, are told apart.
        let words = Words::map(&writer_file(pid), HEADER_BYTES, true).expect("mapped");
        words.all()[Header::Version as usize].store(2, Ordering::Relaxed);
        assert!(matches!(BoardReader::open(pid), Err(OpenError::OtherVersion { found: 2, .. })));
        words.all()[Header::Magic as usize].store(2, Ordering::Relaxed);
        assert!(matches!(BoardReader::open(pid), Err(OpenError::NotARun(_))));
        drop(writer);
        assert!(matches!(BoardReader::open(pid), Err(OpenError::Absent(_))), "it goes with the run");
    }

    fn writer_file(pid: u32) -> File {
        File::from(rustix::shm::open(name_of(pid).as_str(), OFlags::RDWR, Mode::empty()).expect("there"))
    }
}
