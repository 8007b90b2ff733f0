//! What names a topology, overrides of its parameters, and the subcommands of `topology`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Of `--set`.
pub const OVERRIDE_HELP: &str = "Override one parameter: 'gpu.sm[*].clock=1800 MHz', 'gpu.sm[*].latencies.integer=7'; 'gpu.clock=1500 MHz' sets the \
                             clock of the GPU's CTA scheduler and of all its units with the same clock, 'gpu.l2.count=64' the number of units of a \
                             row (repeatable)";

/// Subcommands on a topology.
#[derive(Debug, Subcommand)]
pub enum TopologyCommand {
    /// Report every error of a topology
    Check(TopologyOptions),
    /// Print a topology with its parts, ranges and defaults written out
    Show(TopologyOptions),
    /// Draw a topology
    Graph {
        /// The topology.
        #[command(flatten)]
        topology: TopologyOptions,
        /// Write the picture to this file instead of standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Format of the picture; the default is DOT for files that end in .dot or .gv and for standard output, SVG for other files
        #[arg(long, value_enum)]
        format: Option<GraphFormat>,
    },
}

/// A topology with overrides.
#[derive(Args, Debug)]
pub struct TopologyOptions {
    /// File, or name of a built-in topology
    #[arg(value_name = "FILE|NAME")]
    pub topology: String,
    /// Overrides of single parameters.
    #[arg(long = "set", value_name = "PATH=VALUE", help = OVERRIDE_HELP)]
    pub set: Vec<Override>,
}

/// Format of a picture of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// A graph of the rows of units, for Graphviz
    Dot,
    /// A picture of the node: the host, and each GPU as a die
    Svg,
}

impl GraphFormat {
    /// The format of a file of this name; standard output gets DOT.
    pub fn of(output: Option<&Path>) -> GraphFormat {
        let is_dot = |path: &Path| path.extension().is_some_and(|extension| extension == "dot" || extension == "gv");
        if output.is_none_or(is_dot) { GraphFormat::Dot } else { GraphFormat::Svg }
    }
}

/// `--set PATH=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Units and parameter: "gpu.sm\[*\].clock".
    pub path: String,
    /// The value, as RON or as bare text.
    pub value: String,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) = text.split_once('=').ok_or("expected PATH=VALUE, such as 'gpu.sm[*].clock=1800 MHz'")?;
        let (path, value) = (path.trim(), value.trim());
        if path.is_empty() || value.is_empty() {
            return Err("expected PATH=VALUE, such as 'gpu.sm[*].clock=1800 MHz'".to_owned());
        }
        Ok(Override { path: path.to_owned(), value: value.to_owned() })
    }
}
