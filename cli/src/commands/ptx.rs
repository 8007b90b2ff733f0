//! `ptx`: which kernels of PTX files the simulator can run, and why not the others.

use crate::options::format::CatalogueFormat;
use crate::output::table::{add, lines, table};
use balar_isa::module::PtxModule;
use balar_isa::ptx::PtxErrors;
use balar_record::json::to_text;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use balar_record::system::files;
use serde::Serialize;
use std::path::PathBuf;

/// A file, as JSON has it.
#[derive(Serialize)]
struct FileEntry {
    file: String,
    kernels: Vec<KernelEntry>,
    /// Why the file was not read.
    errors: Vec<String>,
}

/// A kernel, as JSON has it. Resources are absent where it was not loaded.
#[derive(Serialize)]
struct KernelEntry {
    name: String,
    instructions: Option<usize>,
    registers_per_thread: Option<u32>,
    shared_bytes: Option<u32>,
    local_bytes: Option<u32>,
    parameter_bytes: Option<u32>,
    /// Why it was not loaded.
    errors: Vec<String>,
}

/// Addresses of a module's variables: any will do, since nothing runs.
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000;

/// Lists the kernels of `files`; gives what goes to stdout. Errors go to stderr, and end with [`ExitStatus::BadInput`].
pub fn check(files: &[PathBuf], format: CatalogueFormat, width: Option<u16>) -> Result<(String, ExitStatus), Failure> {
    let mut entries = Vec::with_capacity(files.len());
    for file in files {
        let name = file.display().to_string();
        let text = files::read(file).map_err(|error| Failure::input(format_args!("cannot read {name}: {error}")))?;
        entries.push(load(name, &text));
    }
    let failed = entries
        .iter()
        .any(|entry| !entry.errors.is_empty() || entry.kernels.iter().any(|kernel| !kernel.errors.is_empty()));
    let text = match format {
        CatalogueFormat::Json => to_text(&entries),
        CatalogueFormat::Table => {
            let errors = entries
                .iter()
                .flat_map(|entry| entry.errors.iter().chain(entry.kernels.iter().flat_map(|kernel| &kernel.errors)));
            errors.for_each(|error| say(format_args!("error: {error}")));
            listing(&entries, width)
        }
    };
    Ok((text, if failed { ExitStatus::BadInput } else { ExitStatus::Done }))
}

fn load(file: String, text: &str) -> FileEntry {
    let module = match PtxModule::parse(&file, text) {
        Ok(module) => module,
        Err(errors) => return FileEntry { file, kernels: Vec::new(), errors: sentences(&errors) },
    };
    let mut address = FIRST_ADDRESS;
    let mut addresses = Vec::with_capacity(module.variables().len());
    for variable in module.variables() {
        address = address.next_multiple_of(variable.alignment.max(1));
        addresses.push(address);
        address = address.saturating_add(variable.bytes);
    }
    let kernels = module.kernels().map(|name| match module.program(name, &addresses) {
        Ok(program) => KernelEntry {
            name: name.to_owned(),
            instructions: Some(program.len()),
            registers_per_thread: Some(program.resources().registers_per_thread),
            shared_bytes: Some(program.resources().shared_bytes),
            local_bytes: Some(program.resources().local_bytes),
            parameter_bytes: Some(program.parameter_bytes()),
            errors: Vec::new(),
        },
        Err(errors) => KernelEntry {
            name: name.to_owned(),
            instructions: None,
            registers_per_thread: None,
            shared_bytes: None,
            local_bytes: None,
            parameter_bytes: None,
            errors: sentences(&errors),
        },
    });
    let kernels = kernels.collect();
    FileEntry { file, kernels, errors: Vec::new() }
}

fn sentences(errors: &PtxErrors) -> Vec<String> {
    errors.errors.iter().map(|error| format!("{error}\n  {}", error.line_text.trim())).collect()
}

fn listing(entries: &[FileEntry], width: Option<u16>) -> String {
    let mut rows = table(
        &["file", "kernel", "instructions", "registers", "shared bytes", "local bytes", "parameter bytes", "state"],
        width,
    );
    for entry in entries {
        if !entry.errors.is_empty() {
            let state =
                if entry.errors.len() == 1 { "1 error".to_owned() } else { format!("{} errors", entry.errors.len()) };
            let nothing = String::new;
            let cells = [entry.file.clone(), nothing(), nothing(), nothing(), nothing(), nothing(), nothing(), state];
            add(&mut rows, cells, &[0, 1, 7]);
        }
        for kernel in &entry.kernels {
            let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
            let cells = [
                entry.file.clone(),
                kernel.name.clone(),
                kernel.instructions.map(|count| count.to_string()).unwrap_or_default(),
                number(kernel.registers_per_thread),
                number(kernel.shared_bytes),
                number(kernel.local_bytes),
                number(kernel.parameter_bytes),
                if kernel.errors.is_empty() { "loads".to_owned() } else { "does not load".to_owned() },
            ];
            add(&mut rows, cells, &[0, 1, 7]);
        }
    }
    lines(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 7.8\n.target sm_70\n.address_size 64\n.global .align 8 .u64 counter;\n\
        .entry good(.param .u64 a) {\n.reg .b64 %rd<3>;\n.shared .b8 tile[48];\nld.param.u64 %rd1, [a];\nret;\n}\n\
        .entry bad() {\ntcgen05.shift.cta_group::1.down [0];\n}\n";

    #[test]
    fn kernels_with_their_resources_and_errors() {
        let entry = load("a.ptx".to_owned(), TEXT);
        assert!(entry.errors.is_empty());
        let [good, bad] = &entry.kernels[..] else { panic!("two kernels") };
        assert_eq!((good.name.as_str(), good.shared_bytes, good.parameter_bytes), ("good", Some(48), Some(8)));
        assert!(good.errors.is_empty());
        assert_eq!((bad.name.as_str(), bad.instructions, bad.errors.len()), ("bad", None, 1));
        assert!(bad.errors[0].starts_with("a.ptx:12:1: ") && bad.errors[0].contains("tcgen05"), "{}", bad.errors[0]);
        let text = listing(&[entry], None);
        assert!(text.contains("good") && text.contains("does not load"), "{text}");
    }

    #[test]
    fn a_file_that_is_not_ptx_has_no_kernels() {
        let entry = load("b.ptx".to_owned(), "int main() {}");
        assert!(entry.kernels.is_empty() && entry.errors[0].starts_with("b.ptx:1:1: "));
    }
}
