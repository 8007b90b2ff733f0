//! The header of a trace: a text of lines `key value`, written again as the recorded run ends.

use super::error::TraceError;
use std::fs;
use std::path::{Path, PathBuf};

/// Version of the format: of the files, the events, and the vocabulary of calls. Every change of these raises it.
pub const FORMAT_VERSION: u32 = 13;

/// Name of the file in the folder of a trace.
pub(super) const FILE: &str = "trace.txt";
/// The first line.
const TITLE: &str = "balar-actors trace";

/// The facts about a trace in its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The program, or the built-in workload.
    pub program: String,
    /// The topology that it was recorded on.
    pub topology: String,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// The parameters of a built-in workload.
    pub parameters: Vec<(String, String)>,
    /// Number and bytes of the events; `None` while the run goes on, and for ever where it does not come to its end.
    pub finished: Option<(u64, u64)>,
    /// The cause of the recorded run's early end; `None` also where it was killed, and had no time to say so.
    pub interrupted: Option<String>,
}

/// The cause in an unfinished trace where none was written.
const UNKNOWN_END: &str = "the run goes on, or was killed";

impl Header {
    /// The file of a folder.
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    fn text(&self) -> String {
        let mut text = format!("{TITLE}\nversion {FORMAT_VERSION}\n");
        let mut line = |key: &str, value: &str| text.push_str(&format!("{key} {}\n", escaped(value)));
        line("program", &self.program);
        line("topology", &self.topology);
        for argument in &self.arguments {
            line("argument", argument);
        }
        for (key, value) in &self.parameters {
            line("parameter", &format!("{key}={value}"));
        }
        match self.finished {
            Some((events, bytes)) => line("finished", &format!("{events} events, {bytes} bytes")),
            None => line("unfinished", self.interrupted.as_deref().unwrap_or(UNKNOWN_END)),
        }
        text
    }

    /// Writes the header; a reader sees the old one or the new one, never half of it.
    pub(super) fn write(&self, folder: &Path) -> Result<(), TraceError> {
        let path = Header::path(folder);
        let new = folder.join(format!("{FILE}.new"));
        fs::write(&new, self.text()).map_err(TraceError::system("write", &new))?;
        fs::rename(&new, &path).map_err(TraceError::system("write", &path))
    }

    /// Writes the cause of the recorded run's end into the trace of a folder, unless the trace is complete.
    ///
    /// # Errors
    ///
    /// Where there is no trace, or it cannot be written.
    pub fn interrupt(folder: &Path, cause: &str) -> Result<(), TraceError> {
        let mut header = Header::read(folder)?;
        if header.finished.is_none() {
            header.interrupted = Some(cause.to_owned());
            header.write(folder)?;
        }
        Ok(())
    }

    /// Reads the header of a folder.
    pub(super) fn read(folder: &Path) -> Result<Header, TraceError> {
        let path = Header::path(folder);
        let bytes = fs::read(&path).map_err(TraceError::system("read", &path))?;
        let not_a_trace = |reason: String| TraceError::NotATrace { path: path.clone(), reason };
        let text = String::from_utf8(bytes).map_err(|_| not_a_trace("expected text in UTF-8".to_owned()))?;
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, title)| title != TITLE) {
            return Err(not_a_trace(format!("its first line is not `{TITLE}`")));
        }
        match lines.next().and_then(|(_, line)| line.strip_prefix("version ")) {
            Some(version) if version == FORMAT_VERSION.to_string() => {}
            version => {
                let found = version.unwrap_or("(none)").to_owned();
                return Err(TraceError::Version { path, found, expected: FORMAT_VERSION });
            }
        }
        let mut header = Header::default();
        let mut ended = false;
        for (index, line) in lines {
            let wrong = |problem: String| TraceError::Line {
                path: path.clone(),
                line: index + 1,
                text: line.to_owned(),
                problem,
            };
            let (key, value) = line.split_once(' ').ok_or_else(|| wrong("expected `key value`".to_owned()))?;
            let value = unescaped(value).ok_or_else(|| wrong("an unknown escape sequence".to_owned()))?;
            match key {
                _ if ended => {
                    return Err(wrong("expected nothing after the line that says how the run ended".to_owned()));
                }
                "program" => header.program = value,
                "topology" => header.topology = value,
                "argument" => header.arguments.push(value),
                "parameter" => {
                    let (key, value) =
                        value.split_once('=').ok_or_else(|| wrong("expected `parameter key=value`".to_owned()))?;
                    header.parameters.push((key.to_owned(), value.to_owned()));
                }
                "finished" => {
                    let counts = value.strip_suffix(" bytes").and_then(|value| value.split_once(" events, "));
                    let counts = counts.and_then(|(events, bytes)| Some((events.parse().ok()?, bytes.parse().ok()?)));
                    header.finished =
                        Some(counts.ok_or_else(|| wrong("expected `finished N events, N bytes`".to_owned()))?);
                    ended = true;
                }
                "unfinished" => {
                    header.interrupted = Some(value).filter(|value| value != UNKNOWN_END);
                    ended = true;
                }
                _ => return Err(wrong(format!("unknown key `{key}`"))),
            }
        }
        if !ended {
            return Err(not_a_trace("it has no line `finished` or `unfinished`: it is cut off".to_owned()));
        }
        Ok(header)
    }
}

/// A value on one line.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescaped(value: &str) -> Option<String> {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next()? {
                '\\' => '\\',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_as_they_were_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut header = Header {
            program: "a program\nof two lines\\n".to_owned(),
            topology: "v100_node".to_owned(),
            arguments: vec![String::new(), "-n 5".to_owned(), "\r".to_owned()],
            parameters: vec![("seed".to_owned(), "1=2".to_owned())],
            finished: None,
            interrupted: None,
        };
        for finished in [None, Some((12, 3456))] {
            header.finished = finished;
            header.write(folder.path()).expect("written");
            assert_eq!(Header::read(folder.path()).expect("read"), header);
        }
    }

    #[test]
    fn only_an_unfinished_trace_can_be_interrupted() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut header = Header { program: "a".to_owned(), ..Header::default() };
        for (finished, said) in [(None, Some("Ctrl-C\nat 5 ps".to_owned())), (Some((1, 20)), None)] {
            header.finished = finished;
            header.write(folder.path()).expect("written");
            Header::interrupt(folder.path(), "Ctrl-C\nat 5 ps").expect("written");
            let read = Header::read(folder.path()).expect("read");
            assert_eq!((read.finished, read.interrupted), (finished, said));
        }
    }

    #[test]
    fn mistakes_in_headers_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        for (text, said) in [
            ("", "first line"),
            ("balar-actors trace\n", "format version (none), expected version"),
            ("balar-actors trace\nversion 0\n", "format version 0, expected version"),
            ("balar-actors trace\nversion NOW\nprogram a\n", "cut off"),
            ("balar-actors trace\nversion NOW\nprogram\n", ":3: expected `key value`"),
            ("balar-actors trace\nversion NOW\nprogram \\x\n", ":3: an unknown escape"),
            ("balar-actors trace\nversion NOW\ncolour red\n", ":3: unknown key `colour`"),
            ("balar-actors trace\nversion NOW\nfinished 3 events\n", "expected `finished N events, N bytes`"),
            ("balar-actors trace\nversion NOW\nunfinished x\nprogram a\n", ":4: expected nothing after"),
        ] {
            let now = text.replace("NOW", &FORMAT_VERSION.to_string());
            fs::write(Header::path(folder.path()), now).expect("written");
            let error = Header::read(folder.path()).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
