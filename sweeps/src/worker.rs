//! Points, several at a time, as long as there are any.

use crate::SweepError;
use crate::collect::figures::RunFigures;
use crate::files;
use crate::folder::{Claim, SweepFolder};
use crate::process;
use crate::summary::{End, PointStatus, PointSummary};
use std::collections::VecDeque;
use std::fs;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks at points that others run.
const PERIOD: Duration = Duration::from_millis(200);
/// The signal that a process gets that writes a longer file than it may.
const SIGXFSZ: i32 = 25;

/// How the points of a sweep are run.
pub trait Runs: Sync {
    /// The process of a point, which writes its run into `folder`.
    ///
    /// # Errors
    ///
    /// Something in the folder cannot be written.
    fn command(&self, index: usize, folder: &Path) -> Result<Command, SweepError>;
    /// A hash of a point's inputs; `None` where a mistake in it keeps it from being known.
    fn input_hash(&self, index: usize) -> Option<String>;
    /// The results of a point's run, read from its folder; `None` where it wrote nothing.
    ///
    /// # Errors
    ///
    /// In words: the files of the run are not as they should be.
    fn figures(&self, folder: &Path) -> Result<Option<RunFigures>, String>;
    /// Do the points run a program, whose exit code is that of the run?
    fn is_program(&self) -> bool;
}

/// The points to run, and how to run them.
pub struct Running<'a> {
    /// Points at the same time.
    pub jobs: usize,
    /// Which points.
    pub points: Range<usize>,
    /// Are points that failed to be run again?
    pub retry_failed: bool,
    /// Ends it when it is set.
    pub interrupt: &'a AtomicBool,
    /// Is told whenever something has changed.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Points that are finished, failed ones included.
    pub finished: usize,
    /// Those that were finished before.
    pub found: usize,
    /// Those that failed.
    pub failed: usize,
    /// Those that run now, in this process.
    pub running: usize,
}

/// A point that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The point.
    pub index: usize,
    /// The event, in words.
    pub what: String,
}

/// The result of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Points that failed, in order.
    pub failed: Vec<Failed>,
    /// How far it came.
    pub progress: Progress,
}

/// The points that are left to run, by who runs them.
#[derive(Default)]
struct Plan {
    /// Points that nobody has looked at.
    open: VecDeque<usize>,
    /// Points that others run.
    elsewhere: VecDeque<usize>,
    outcome: Outcome,
    error: Option<SweepError>,
}

/// Runs the points that are not finished; waits for those that others run. Ends early when it is interrupted.
///
/// # Errors
///
/// The first thing that keeps points from being run or written. Those that run then come to their end.
pub fn run(folder: &SweepFolder, runs: &dyn Runs, running: &Running<'_>) -> Result<Outcome, SweepError> {
    let plan = Mutex::new(Plan { open: running.points.clone().collect(), ..Plan::default() });
    let worker = Worker { folder, runs, running, plan: &plan };
    let jobs = running.jobs.clamp(1, running.points.len().max(1));
    thread::scope(|scope| {
        for number in 0..jobs {
            let spawned = thread::Builder::new().name(format!("points {number}")).spawn_scoped(scope, || worker.work());
            if let Err(cause) = spawned
                && number == 0
            {
                let program = "a thread".to_owned();
                worker.plan().error = Some(SweepError::Process { index: running.points.start, program, cause });
            }
        }
    });
    let mut plan = plan.into_inner().unwrap_or_else(PoisonError::into_inner);
    match plan.error {
        Some(error) => Err(error),
        None => {
            plan.outcome.failed.sort_by_key(|failed| failed.index);
            Ok(plan.outcome)
        }
    }
}

struct Worker<'a> {
    folder: &'a SweepFolder,
    runs: &'a dyn Runs,
    running: &'a Running<'a>,
    plan: &'a Mutex<Plan>,
}

/// The result of looking at a point.
enum Looked {
    /// It was finished before.
    Found(PointSummary),
    /// It has been run.
    Ran(PointSummary),
    /// It has no result: the sweep is interrupted, or something ended the point alone.
    Abandoned(Option<String>),
    /// Another process runs it.
    Elsewhere,
}

impl Worker<'_> {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let (index, waits) = {
                let mut plan = self.plan();
                if plan.error.is_some() || self.running.interrupt.load(Ordering::Relaxed) {
                    return;
                }
                let next = plan.open.pop_front().map(|index| (index, false));
                match next.or_else(|| plan.elsewhere.pop_front().map(|index| (index, true))) {
                    Some(next) => next,
                    None => return,
                }
            };
            if waits {
                thread::sleep(PERIOD);
            }
            // A point that another process was at has just been run.
            match self.look_at(index, self.running.retry_failed && !waits) {
                Ok(looked) => self.note(index, looked),
                Err(error) => {
                    self.plan().error.get_or_insert(error);
                }
            }
        }
    }

    fn note(&self, index: usize, looked: Looked) {
        let mut plan = self.plan();
        let plan = &mut *plan;
        let progress = &mut plan.outcome.progress;
        match looked {
            Looked::Elsewhere => plan.elsewhere.push_back(index),
            Looked::Abandoned(what) => {
                if let Some(what) = what {
                    progress.failed += 1;
                    plan.outcome.failed.push(Failed { index, what });
                }
            }
            Looked::Found(summary) | Looked::Ran(summary) => {
                progress.finished += 1;
                if summary.status != PointStatus::Done {
                    progress.failed += 1;
                    plan.outcome.failed.push(Failed { index, what: what_failed(&summary) });
                }
            }
        }
        (self.running.progress)(plan.outcome.progress);
    }

    /// The summary of a point that need not be run. A failed point has one, unless failed points are to be run again.
    fn finished(&self, index: usize, retry_failed: bool) -> Result<Option<PointSummary>, SweepError> {
        let summary = self.folder.summary(index)?;
        Ok(summary.filter(|summary| !retry_failed || summary.status == PointStatus::Done))
    }

    fn look_at(&self, index: usize, retry_failed: bool) -> Result<Looked, SweepError> {
        if let Some(summary) = self.finished(index, retry_failed)? {
            self.plan().outcome.progress.found += 1;
            return Ok(Looked::Found(summary));
        }
        let Some(claim) = self.folder.claim(index)? else { return Ok(Looked::Elsewhere) };
        // Somebody may have finished it between the two looks.
        if let Some(summary) = self.finished(index, retry_failed)? {
            return Ok(Looked::Found(summary));
        }
        self.change(|progress| progress.running += 1);
        let ran = self.run(&claim);
        self.change(|progress| progress.running -= 1);
        ran
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        let mut plan = self.plan();
        change(&mut plan.outcome.progress);
        (self.running.progress)(plan.outcome.progress);
    }

    #[expect(clippy::disallowed_types, reason = "how long a point took is reported, not simulated")]
    fn run(&self, claim: &Claim<'_>) -> Result<Looked, SweepError> {
        let index = claim.index();
        let partial = claim.begin()?;
        let command = self.runs.command(index, partial.path())?;
        let program = command.get_program().to_string_lossy().into_owned();
        let begun = std::time::Instant::now();
        let ended = process::run(command, self.running.interrupt);
        let ended = ended.map_err(|cause| SweepError::Process { index, program, cause })?;
        if ended.interrupted {
            return Ok(Looked::Abandoned(None));
        }
        let wall_seconds = begun.elapsed().as_secs_f64();
        // The run has named its folder, which is about to have another name.
        let said = ended.said.replace(&*partial.path().to_string_lossy(), &self.folder.point(index).to_string_lossy());
        let problem = last_problem(&said);
        let not_written = |problem: String| SweepError::NotWritten { index, problem };
        if ended.status.signal() == Some(SIGXFSZ) {
            return Err(not_written(format!(
                "cannot write {}: its files are longer than the system lets them be (ulimit -f)",
                self.folder.point(index).display()
            )));
        }
        let figures = self.runs.figures(partial.path()).map_err(not_written)?;
        let ended_by = figures.as_ref().map(|figures| figures.ended_by.as_str());
        let code = ended.status.code();
        let status = End { code, ended_by, is_program: self.runs.is_program() }.meaning();
        let could_not_write = problem.as_ref().filter(|problem| code == Some(2) && problem.contains("cannot write "));
        let status = match (status, could_not_write) {
            (Some(status), None) => status,
            (None, None) if matches!(code, Some(130 | 143)) => {
                return Ok(Looked::Abandoned(Some("ended from outside; it is not finished".to_owned())));
            }
            (_, problem) => {
                let found = match ended_by {
                    Some(_) => "its run ended with exit code",
                    None => "its run wrote no result and ended with exit code",
                };
                return Err(not_written(problem.cloned().unwrap_or_else(|| format!("{found} {}", code.unwrap_or(-1)))));
            }
        };
        if !said.is_empty() {
            files::write(&partial.path().join("stderr.txt"), |file| file.write_all(said.as_bytes()))?;
        }
        let summary = PointSummary {
            index,
            settings: self.folder.settings(index),
            configuration_hash: self.folder.definition.configuration_hash(index),
            input_hash: self.runs.input_hash(index),
            version: self.folder.definition.version.clone(),
            status,
            exit_code: code,
            signal: ended.status.signal(),
            problem: problem.filter(|_| status != PointStatus::Done),
            wall_seconds,
        };
        claim.finish(partial, &summary)?;
        Ok(Looked::Ran(summary))
    }
}

/// The last failure in a run's messages: an error begins with "error: " or the name of the program.
fn last_problem(said: &str) -> Option<String> {
    let lines = || said.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let error = lines().rev().find_map(|line| line.trim_start().strip_prefix("error: ").map(str::to_owned));
    // Reports with places in files have the message after a sign, and below it the text of the file.
    let report = || lines().rev().find_map(|line| line.trim_start().strip_prefix("× ").map(str::to_owned));
    let own = || lines().rev().find_map(|line| line.strip_prefix("balar-actors: ").map(str::to_owned));
    error.or_else(report).or_else(own).or_else(|| lines().next_back().map(str::to_owned))
}

/// The failure of a point, in a line.
pub fn what_failed(summary: &PointSummary) -> String {
    let mut text = summary.status.in_words().to_owned();
    match (summary.exit_code, summary.signal) {
        (Some(code), _) => text += &format!(" (exit code {code})"),
        (None, Some(signal)) => text += &format!(" (signal {signal})"),
        (None, None) => {}
    }
    if let Some(problem) = &summary.problem {
        text += ": ";
        text += problem;
    }
    text
}

/// The file that takes the output of a program, in the folder of its point.
///
/// # Errors
///
/// It cannot be made.
pub fn output_file(folder: &Path) -> Result<fs::File, SweepError> {
    let path = folder.join("stdout.txt");
    fs::File::create(&path).map_err(files::failed("write", &path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::tests::definition;
    use std::sync::atomic::AtomicUsize;

    /// Points that shells run: each value is a script, whose folder is `$1`.
    struct Shells<'a>(&'a SweepFolder, AtomicUsize);

    impl Runs for Shells<'_> {
        fn command(&self, index: usize, folder: &Path) -> Result<Command, SweepError> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let mut command = Command::new("sh");
            let script = self.0.definition.points[index][0].as_deref().unwrap_or_default();
            command.args(["-c", script, "point"]).arg(folder);
            Ok(command)
        }

        fn input_hash(&self, _: usize) -> Option<String> {
            None
        }

        fn figures(&self, folder: &Path) -> Result<Option<RunFigures>, String> {
            let text = fs::read_to_string(folder.join("ended_by")).ok();
            Ok(text.map(|text| RunFigures { ended_by: text.trim().to_owned(), ..RunFigures::default() }))
        }

        fn is_program(&self) -> bool {
            false
        }
    }

    const GOOD: &str = "echo completed > $1/ended_by";

    fn run_scripts(path: &Path, scripts: &[&str], retry_failed: bool) -> (Result<Outcome, SweepError>, usize) {
        let folder = SweepFolder::open(path, definition(scripts), false).expect("opened");
        let shells = Shells(&folder, AtomicUsize::new(0));
        let running = Running {
            jobs: 2,
            points: 0..folder.len(),
            retry_failed,
            interrupt: &AtomicBool::new(false),
            progress: &|_| {},
        };
        let outcome = run(&folder, &shells, &running);
        (outcome, shells.1.into_inner())
    }

    #[test]
    fn points_that_fail_are_told_and_the_others_go_on() {
        let parent = tempfile::tempdir().expect("a folder");
        let bad = "echo 'error: no such thing' >&2; echo 'help: none' >&2; exit 2";
        let killed = "kill -9 $$";
        let other = "echo completed > $1/ended_by; true";
        let scripts = [GOOD, bad, killed, other];
        let (outcome, runs) = run_scripts(parent.path(), &scripts, false);
        let outcome = outcome.expect("it ran");
        let failed = |index, what: &str| Failed { index, what: what.to_owned() };
        let all = [failed(1, "bad configuration (exit code 2): no such thing"), failed(2, "killed (signal 9)")];
        assert_eq!((&outcome.failed[..], outcome.progress.finished, runs), (&all[..], 4, 4));
        let (again, runs) = run_scripts(parent.path(), &scripts, false);
        assert_eq!((again.expect("found").failed, runs), (outcome.failed.clone(), 0));
        let (retried, runs) = run_scripts(parent.path(), &scripts, true);
        assert_eq!((retried.expect("it ran").failed, runs), (outcome.failed, 2));
    }

    #[test]
    fn what_could_not_be_written_ends_the_sweep_and_is_not_finished() {
        for (script, said) in [
            (
                "echo 'error: cannot write /full/stats.json: No space left on device' >&2; exit 2",
                "cannot write /full/stats.json",
            ),
            ("true", "its run wrote no result and ended with exit code 0"),
            ("kill -XFSZ $$", "ulimit -f"),
        ] {
            let parent = tempfile::tempdir().expect("a folder");
            let (outcome, _) = run_scripts(parent.path(), &[script], false);
            let error = outcome.expect_err(script).to_string();
            assert!(error.starts_with("point 0: ") && error.contains(said), "{error}");
            assert_eq!(fs::read_dir(parent.path().join("points")).expect("there").count(), 0, "{script}");
        }
    }

    #[test]
    fn an_interrupt_leaves_what_is_finished() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = SweepFolder::open(parent.path(), definition(&[GOOD, "sleep 60"]), false).expect("opened");
        let interrupt = AtomicBool::new(false);
        let shells = Shells(&folder, AtomicUsize::new(0));
        let progress = |progress: Progress| {
            if (progress.finished, progress.running) == (1, 1) {
                interrupt.store(true, Ordering::Relaxed);
            }
        };
        let running =
            Running { jobs: 1, points: 0..2, retry_failed: false, interrupt: &interrupt, progress: &progress };
        let outcome = run(&folder, &shells, &running).expect("it ends");
        assert_eq!((outcome.progress.finished, outcome.failed.len()), (1, 0));
        assert!(folder.summary(0).expect("read").is_some() && folder.summary(1).expect("read").is_none());
        assert_eq!(fs::read_dir(parent.path().join("points")).expect("there").count(), 1);
    }

    #[test]
    fn two_at_work_share_the_points() {
        let parent = tempfile::tempdir().expect("a folder");
        let scripts: Vec<String> = (0..12).map(|number| format!("sleep 0.0{number}; {GOOD}")).collect();
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let runs: usize = thread::scope(|scope| {
            let workers = [(); 3].map(|()| scope.spawn(|| run_scripts(parent.path(), &scripts, false)));
            let ended = workers.map(|worker| worker.join().expect("it ends"));
            assert!(ended.iter().all(|(outcome, _)| outcome.as_ref().is_ok_and(|it| it.progress.finished == 12)));
            ended.iter().map(|(_, runs)| runs).sum()
        });
        assert_eq!(runs, 12, "each point is run once");
    }

    #[test]
    fn the_message_of_a_run_is_found() {
        for (said, problem) in [
            ("error: first\nerror: second\nhelp: none\n", Some("second")),
            ("topology::bad\n  × no unit `sn`\n   ╭─[--set:1:1]\n", Some("no unit `sn`")),
            ("hello\nbalar-actors: ended by --max-wall\n", Some("ended by --max-wall")),
            ("Segmentation fault\n", Some("Segmentation fault")),
            ("\n", None),
        ] {
            assert_eq!(last_problem(said).as_deref(), problem, "{said}");
        }
    }
}
