//! Options of `run`.

use super::headings;
use super::simulation::{LaunchLimitOptions, SimulationOptions};
use balar_protocol::Bytes;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

/// What `run --help` adds.
pub const RUN_HELP: &str = "\
The program must contain PTX, or machine code for the simulated GPU; its CUDA runtime may be linked statically or shared. This command
returns its exit code (128 + N if signal N kills it); 2, 4, 5 and 70 are this command's own. The statistics follow on stderr, or are
written into the folder of --output. At --stop-at, --max-wall and the second Ctrl-C, the program's CUDA calls fail, and it is terminated;
so it is where SIGTERM, which is passed on to it, has not ended it after 1.5 s.

Examples:
  balar-actors run ./app --size 512                      # on v100_node, or the node of BALAR_TOPOLOGY
  balar-actors run -t t4_node -o out -- ./app --size 512
  balar-actors run -t v100_node --detail kernel=solve --live --progress -- ./app";

/// A CUDA program to run on the simulated node.
#[derive(Args, Clone, Debug)]
pub struct ProgramOptions {
    /// Options of every run.
    #[command(flatten)]
    pub simulation: SimulationOptions,
    /// How many launches are made.
    #[command(flatten)]
    pub launch_limit: LaunchLimitOptions,
    /// Give a kernel of the program the code of this file, PTX or a cubin, in place of its own (repeatable)
    ///
    /// The kernel is named as in the code or as in C++, and the file has a kernel of the same name in code with the same parameters. It uses
    /// the variables of the program's code.
    #[arg(long = "code", value_name = "KERNEL=FILE", help_heading = headings::WHAT_RUNS)]
    pub kernel_code: Vec<KernelCode>,
    /// Show progress even though the program writes to the same terminal
    #[arg(long, help_heading = headings::LOOKING_ON)]
    pub progress: bool,
    /// Size of the pages of shared memory through which the program's data is transferred
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "4 KiB",
        value_parser = page_bytes,
        help_heading = headings::WHAT_RUNS
    )]
    pub tunnel_page: Bytes,
    /// On a node that moves managed memory: how the program's own accesses to it are known
    #[arg(long, value_enum, default_value_t = HostAccesses::Seen, help_heading = headings::WHAT_RUNS)]
    pub host_accesses: HostAccesses,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        help_heading = headings::ARGUMENTS
    )]
    pub command: Vec<OsString>,
}

/// `--code KERNEL=FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCode {
    /// The kernel, as its code or C++ has it.
    pub kernel: String,
    /// The file.
    pub file: PathBuf,
}

impl FromStr for KernelCode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<KernelCode, Self::Err> {
        // Names of C++ may hold `=`, as operators do.
        let (kernel, file) = text.rsplit_once('=').ok_or("expected KERNEL=FILE, such as vectorAdd=mine.ptx")?;
        if kernel.is_empty() || file.is_empty() {
            return Err("expected KERNEL=FILE, such as vectorAdd=mine.ptx");
        }
        Ok(KernelCode { kernel: kernel.to_owned(), file: file.into() })
    }
}

/// How a program's own accesses to managed memory are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostAccesses {
    /// The system tells of each as it happens (userfaultfd); where it refuses to, as `assumed`
    Seen,
    /// All of it is taken to be used by the host before each launch and after each synchronisation
    Assumed,
}

/// The size of the pages of a tunnel.
pub fn page_bytes(text: &str) -> Result<Bytes, String> {
    let range = balar_host::tunnel::PAGE_BYTES;
    let bytes = text.parse::<u64>().ok().or_else(|| text.parse::<Bytes>().ok().map(|bytes| bytes.0));
    let fits = |bytes: &u64| bytes.is_power_of_two() && range.contains(bytes);
    bytes.filter(fits).map(Bytes).ok_or_else(|| {
        format!(
            "expected a power of two from {} to {} bytes, such as 64 KiB, found '{text}'",
            range.start(),
            range.end()
        )
    })
}
