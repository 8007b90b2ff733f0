//! What names a topology, overrides of its parameters, and the subcommands of `topology`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Of `--set`.
pub const OVERRIDE_HELP: &str = "Override one parameter: 'gpu.sm[*].clock=1800 MHz', 'gpu.sm[*].latencies.integer=7'; 'gpu.clock=1500 MHz' sets the \
                             clock of the GPU's CTA scheduler and of all its units with the same clock, 'gpu.l2.count=64' the number of units of a \
                             row (repeatable)";

/// Names the topology of runs that name none.
pub const TOPOLOGY_VARIABLE: &str = "BALAR_TOPOLOGY";

/// The topology where neither an option nor the environment names one.
pub const DEFAULT_TOPOLOGY: &str = "v100_node";

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
        #[arg(short = 'o', long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Format of the picture; without it the name of the file tells it: .svg, .png, .dot or .gv. Standard output gets DOT
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
    /// The same, as pixels
    Png,
}

impl GraphFormat {
    /// The format of a file of this name, SVG where the name has no ending; standard output gets DOT. `None` of an ending that no format
    /// has.
    pub fn of(output: Option<&Path>) -> Option<GraphFormat> {
        let Some(path) = output else { return Some(GraphFormat::Dot) };
        let Some(ending) = path.extension() else { return Some(GraphFormat::Svg) };
        match ending.to_str()?.to_lowercase().as_str() {
            "dot" | "gv" => Some(GraphFormat::Dot),
            "svg" => Some(GraphFormat::Svg),
            "png" => Some(GraphFormat::Png),
            _ => None,
        }
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
