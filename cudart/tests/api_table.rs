//! docs/cuda-api.md says of every function of NVIDIA's libraries whether it is implemented, and says the truth.
//!
//! `BALAR_WRITE_DOCS=1 cargo test -p balar-cudart --test api_table` writes it anew.

use balar_cudart::abi::exports::{DRIVER, LIBRARIES, Library, MANAGEMENT, PROFILING, driver_functions};
use balar_cudart::stub_library::Implementations;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Functions that exist but can never do what they are asked, and what they return.
const REFUSED: &str = include_str!("../exports/refused.txt");

const HEAD: &str = "\
# CUDA functions

This page lists the functions that a program finds in the CUDA libraries of the simulator: the runtime of CUDA 11 (`libcudart.so.11.0`), 12
(`libcudart.so.12`) and 13 (`libcudart.so.13`), the driver library (`libcuda.so.1`), the management library (`libnvidia-ml.so.1`), and the
profiling libraries (`libcupti.so`). They export every function that NVIDIA's libraries export, so that every program loads.

- **yes**: the function is implemented.
- *no*: the function is not implemented. A call returns `cudaErrorNotSupported` (driver: `CUDA_ERROR_NOT_SUPPORTED`), and the first call
  says so on stderr; the statistics count these calls.
- a code: the function is refused with that code, because it asks for something that does not exist on a simulated node.
- nothing: that version of the library does not export the function.

The last column is about the function's twin for `--default-stream per-thread` (`_ptsz`, `_ptds`): its default stream is the stream of the
calling thread.

NVRTC is the program's own. Where the program asks it for the machine code of a GPU (`nvrtcGetCUBIN`), it gets the PTX of the same
compilation, which the simulated driver loads.

A test makes this page from the tables in `cudart/exports/` and the symbols of `libbalar_cudart.so`:
`BALAR_WRITE_DOCS=1 cargo test -p balar-cudart --test api_table` writes it anew.
";

const MANAGEMENT_HEAD: &str = "
## Management library (NVML)

A question to NVML (by `pynvml`, `torch.cuda.utilization`, JAX, NCCL, gpustat) is no call of CUDA: it makes no context, takes no simulated
time and changes no statistics. The devices of NVML are all GPUs of the node, whatever `CUDA_VISIBLE_DEVICES` says, with the attributes that
`cuDeviceGetAttribute` tells. Memory in use is the memory that the node has allocated for all processes. `nvmlDeviceGetUtilizationRates`
tells percentages of the simulated time since the process last asked: `gpu` is the share in which kernels were under way, `memory` the share
in which kernels, copies or fills were. Where no time has passed, it repeats its last answer. The calling process alone is listed as a
process. These functions are implemented; all others return `NVML_ERROR_NOT_SUPPORTED`, for a simulated board has no sensors, no fans, no
serial number, no NVLink and no MIG.

";

const PROFILING_HEAD: &str = "
## Profiling library (CUPTI)

This is the part of the Activity API that PyTorch's profiler (Kineto) uses. Records have the layouts of CUDA 11.8, 12.9 and 13.5. There are
records of kernels (`CONCURRENT_KERNEL`, `KERNEL`), copies, fills, calls of the runtime (calls of the driver count as the runtime's), waits
(`SYNCHRONIZATION`) and the program's own numbers (`EXTERNAL_CORRELATION`). Other kinds may be enabled and have no records. Calls have the
times at which the program made them. Kernels, copies and fills have their simulated duration, and their simulated delay after the call.
With `--detail none` no record has a duration. Callbacks may be subscribed to, and are never called. These functions are implemented; all
others (events, metrics, samples) return `CUPTI_ERROR_NOT_SUPPORTED`.

";

/// The name without the ending of its twin.
fn plain(name: &str) -> &str {
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name)
}

struct Document {
    implementations: Implementations,
    refused: BTreeMap<&'static str, &'static str>,
}

impl Document {
    fn new() -> Self {
        let tests = std::env::current_exe().unwrap();
        let implementations = Implementations::read(&tests.with_file_name("libbalar_cudart.so")).unwrap();
        let lines = REFUSED.lines().filter(|line| !line.starts_with('#'));
        let refused = lines.filter_map(|line| line.split_once(' ')).collect();
        Self { implementations, refused }
    }

    fn state(&self, library: &Library, name: &str) -> String {
        match (self.implementations.of(library, name), self.refused.get(plain(name))) {
            (Some(_), None) => "**yes**".to_owned(),
            (Some(_), Some(code)) => format!("`{code}`"),
            (None, _) => "*no*".to_owned(),
        }
    }

    /// How many functions of `library` are implemented, twins included, and how many there are.
    fn count(&self, library: &Library) -> (usize, usize) {
        let implemented = library.names().filter(|name| self.state(library, name) == "**yes**").count();
        (implemented, library.names().count())
    }

    /// What is known of one function: its state in each of `libraries`, and that of its twin in the newest that has one.
    fn rows(&self, libraries: &[Library]) -> BTreeMap<&'static str, Vec<String>> {
        let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (column, library) in libraries.iter().enumerate() {
            for name in library.names() {
                let cells = rows.entry(plain(name)).or_insert_with(|| vec![String::new(); libraries.len() + 1]);
                let cell = if plain(name) == name { column } else { libraries.len() };
                cells[cell] = self.state(library, name);
            }
        }
        rows
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        text.push_str("\n| library | functions | implemented |\n|---|---|---|\n");
        for library in LIBRARIES.iter().chain([&MANAGEMENT]).chain(&PROFILING) {
            let (implemented, all) = self.count(library);
            writeln!(text, "| `{}` | {all} | {implemented} |", library.soname).unwrap();
        }
        text.push_str("\n## Runtime\n\n| function | 11 | 12 | 13 | per-thread twin |\n|---|---|---|---|---|\n");
        for (name, cells) in self.rows(&LIBRARIES[..3]) {
            writeln!(text, "| `{name}` | {} |", cells.join(" | ")).unwrap();
        }
        text.push_str("\n## Driver\n\nThe headers map most names to a newer version of the function (`cuMemAlloc` to `cuMemAlloc_v2`).\n");
        text.push_str("\n| function | since CUDA | state | per-thread twin |\n|---|---|---|---|\n");
        let since: BTreeMap<&str, u32> = driver_functions().map(|function| (function.symbol, function.since)).collect();
        for (name, cells) in self.rows(&[DRIVER]) {
            let since =
                since.get(name).map_or(String::new(), |since| format!("{}.{}", since / 1000, since % 1000 / 10));
            writeln!(text, "| `{name}` | {since} | {} |", cells.join(" | ")).unwrap();
        }
        text.push_str(MANAGEMENT_HEAD);
        for name in MANAGEMENT.names().filter(|name| self.state(&MANAGEMENT, name) == "**yes**") {
            writeln!(text, "- `{name}`").unwrap();
        }
        text.push_str(PROFILING_HEAD);
        let newest = &PROFILING[PROFILING.len() - 1];
        for name in newest.names().filter(|name| self.state(newest, name) == "**yes**") {
            writeln!(text, "- `{name}`").unwrap();
        }
        text
    }
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cuda-api.md")
}

#[test]
fn the_page_is_up_to_date() {
    let expected = Document::new().text();
    if std::env::var_os("BALAR_WRITE_DOCS").is_some() {
        std::fs::write(page(), &expected).unwrap();
    }
    let actual = std::fs::read_to_string(page()).unwrap_or_default();
    let difference = expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
    assert!(
        actual == expected,
        "docs/cuda-api.md is not up to date: `BALAR_WRITE_DOCS=1 cargo test -p balar-cudart --test api_table` writes it anew; \
         first difference (expected, found): {difference:?}"
    );
}

/// What is refused is refused by a function that exists, with the code said.
#[test]
fn what_is_refused_is_implemented() {
    let document = Document::new();
    for (name, code) in &document.refused {
        let of = |library: &Library| library.names().any(|own| own == *name);
        let libraries: Vec<_> = LIBRARIES.iter().filter(|library| of(library)).collect();
        assert!(!libraries.is_empty(), "{name} is exported by no library");
        let found = |library: &&Library| document.implementations.of(library, name).is_some();
        assert!(libraries.iter().all(found), "{name} should return {code}: it has no implementation");
    }
}
