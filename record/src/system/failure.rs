//! Failures that end the program without a result, and how they are reported on stderr.

use crate::system::exit::ExitStatus;
use crate::system::printable::printable;
use crate::system::terminal;
use balar_actors::engine::EngineError;
use balar_actors::simulation::SimulationError;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use std::fmt;
use std::io::{self, IsTerminal, Write};

/// A reason to end without a result.
#[derive(Debug)]
pub struct Failure {
    /// The exit code it has.
    pub status: ExitStatus,
    report: Box<dyn Diagnostic + Send + Sync>,
}

/// A sentence, with a remedy if there is one.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Sentence {
    message: String,
    help: Option<String>,
}

impl Diagnostic for Sentence {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.fmt(f)
    }
}

impl Failure {
    /// A mistake of the user, as a sentence.
    pub fn input(message: impl fmt::Display) -> Failure {
        Failure::sentence(ExitStatus::BadInput, message, None)
    }

    /// A mistake of the user with a remedy.
    pub fn mistake(message: impl fmt::Display, help: impl Into<String>) -> Failure {
        Failure::sentence(ExitStatus::BadInput, message, Some(help.into()))
    }

    /// A mistake of the user with places in files.
    pub fn diagnosed(report: impl Diagnostic + Send + Sync + 'static) -> Failure {
        Failure { status: ExitStatus::BadInput, report: Box::new(report) }
    }

    /// A bug in balar-actors.
    pub fn bug(message: impl fmt::Display) -> Failure {
        Failure::sentence(ExitStatus::Bug, message, Some(BUG.to_owned()))
    }

    /// A sentence with the exit code it has.
    pub fn sentence(status: ExitStatus, message: impl fmt::Display, help: Option<String>) -> Failure {
        let message = printable(&message.to_string()).into_owned();
        Failure { status, report: Box::new(Sentence { message, help }) }
    }

    /// The message, without a remedy and places in files.
    pub fn message(&self) -> String {
        self.report.to_string()
    }

    /// Reports it on stderr, with colours if that is a terminal.
    pub fn show(&self) {
        let mut stderr = io::stderr().lock();
        let theme = if stderr.is_terminal() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let width = terminal::width(&stderr).map_or(PIPE_WIDTH, usize::from);
        // If stderr is closed, nobody can be told.
        let _ = stderr.write_all(self.text(theme, width).as_bytes());
    }

    fn text(&self, theme: GraphicalTheme, width: usize) -> String {
        let located = self.report.related().is_some() || self.report.labels().is_some();
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(theme).with_width(width).without_cause_chain();
        if located && handler.render_report(&mut text, &Uncoded::of(&*self.report)).is_ok() {
            return text;
        }
        sentences(&*self.report)
    }
}

/// A report without the codes of its mistakes: they are names of ours, and tell a user nothing that the sentences do not.
#[derive(Debug)]
struct Uncoded<'a> {
    report: &'a dyn Diagnostic,
    related: Vec<Uncoded<'a>>,
}

impl<'a> Uncoded<'a> {
    fn of(report: &'a dyn Diagnostic) -> Uncoded<'a> {
        let related = report.related().into_iter().flatten().map(Uncoded::of).collect();
        Uncoded { report, related }
    }
}

impl fmt::Display for Uncoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.fmt(f)
    }
}

impl std::error::Error for Uncoded<'_> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.report.source()
    }
}

impl Diagnostic for Uncoded<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        self.report.severity()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.report.help()
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.report.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        self.report.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let related = self.related.iter().map(|related| related as &dyn Diagnostic);
        if self.related.is_empty() { None } else { Some(Box::new(related)) }
    }
}

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Failure {
        match error {
            SimulationError::Topology(errors) => Failure::diagnosed(*errors),
            SimulationError::Ptx(errors) => Failure::diagnosed(*errors),
            SimulationError::Engine(EngineError::Threads(_)) => Failure::input(error),
            SimulationError::Engine(_) => Failure::bug(error),
            _ => Failure::input(error),
        }
    }
}

/// Columns of a report that does not go to a terminal.
const PIPE_WIDTH: usize = 120;

/// The remedy for a bug.
pub const BUG: &str =
    "this is a bug in balar-actors: please report it with the command line, the topology and this text";

/// The remedy for a unit of the user's own that broke a rule.
pub const UNIT_BROKEN: &str = "help: this unit does not come with balar-actors: a test on balar_actors::prototyping::MemoryBench shows which \
     message leads to it (docs/prototyping.md)";

/// A report without places in files as plain lines.
fn sentences(report: &dyn Diagnostic) -> String {
    let mut text = format!("error: {report}\n");
    let mut source = report.source();
    while let Some(cause) = source {
        text.push_str(&format!("cause: {cause}\n"));
        source = cause.source();
    }
    if let Some(help) = report.help() {
        text.push_str(&format!("help: {help}\n"));
    }
    text
}

/// Prints `text` on stderr.
pub fn say(text: impl fmt::Display) {
    // If stderr is closed, nobody can be told.
    let _ = writeln!(io::stderr(), "{}", printable(&text.to_string()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_plain_lines() {
        let failure = Failure::bug("the coordinator ended without a report");
        assert_eq!(failure.status, ExitStatus::Bug);
        let text = failure.text(GraphicalTheme::unicode_nocolor(), PIPE_WIDTH);
        assert!(text.starts_with("error: the coordinator ended without a report\nhelp: this is a bug"), "{text}");
    }

    /// A mistake with a place, and the list of such, as topologies have them.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Coded(&'static str, Vec<Coded>);

    impl Diagnostic for Coded {
        fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
            Some(Box::new("topology::UnknownParameter"))
        }

        fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
            Some(Box::new("the nearest name is `clock`"))
        }

        fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
            Some(Box::new(self.1.iter().map(|coded| coded as &dyn Diagnostic)))
        }
    }

    #[test]
    fn codes_of_mistakes_are_not_shown() {
        let failure = Failure::diagnosed(Coded("1 error", vec![Coded("there is no parameter `clok`", Vec::new())]));
        let text = failure.text(GraphicalTheme::unicode_nocolor(), PIPE_WIDTH);
        for said in ["1 error", "there is no parameter `clok`", "help: the nearest name is `clock`"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert!(!text.contains("topology::"), "{text}");
    }
}
