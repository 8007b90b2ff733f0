//! A child process with a time limit, whose standard streams are files without names.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::Duration;

/// Bytes of messages that are read.
const MESSAGE_BYTES: u64 = 64 << 10;
/// Between two looks at a child.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// How a child has ended, and what it wrote.
#[derive(Debug)]
pub struct Ended {
    /// With exit code 0?
    pub succeeded: bool,
    /// To its standard output.
    pub output: Vec<u8>,
    /// To its standard error.
    pub messages: Vec<u8>,
}

/// Runs a command that reads `input` from its standard input to its end. It may open its standard streams by name (`/dev/stdin`), and
/// seek in them.
///
/// # Errors
///
/// It does not start, or has not ended within the limit; then it is killed.
pub fn run(command: &mut Command, input: &[u8], limit: Duration) -> io::Result<Ended> {
    let mut streams = [tempfile::tempfile()?, tempfile::tempfile()?, tempfile::tempfile()?];
    streams[0].write_all(input)?;
    streams[0].rewind()?;
    let [stdin, stdout, stderr] = &streams;
    command.stdin(stdin.try_clone()?).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let status = wait(&mut command.spawn()?, limit)?;
    let [_, stdout, stderr] = streams;
    Ok(Ended {
        succeeded: status.success(),
        output: written(stdout, u64::MAX)?,
        messages: written(stderr, MESSAGE_BYTES)?,
    })
}

#[expect(clippy::disallowed_types, reason = "the limit is of the real time of another process")]
fn wait(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    let begun = std::time::Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begun.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            let message = format!("it took longer than {} seconds, and was stopped", limit.as_secs_f64());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

fn written(mut file: File, most: u64) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
