//! Loads PTX files: parses each and decodes all of its kernels; tells which ones it cannot decode.
#![expect(clippy::print_stdout, reason = "a command line")]
#![expect(clippy::disallowed_types, reason = "how long reading takes is what it tells")]
use balar_isa::module::PtxModule;
use std::time::Instant;

fn main() {
    for file in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).expect("a file")).into_owned();
        let start = Instant::now();
        let module = match PtxModule::parse(&file, &text) {
            Ok(module) => module,
            Err(errors) => {
                for error in &errors.errors {
                    println!("PARSE\t{file}\t{error}\t{}", error.line_text.trim());
                }
                continue;
            }
        };
        let parsed = start.elapsed();
        let addresses: Vec<u64> =
            (0..module.variables().len() as u64).map(|index| 0x7f00_0000_0000 + index * 0x10000).collect();
        for kernel in module.kernels() {
            match module.program(kernel, &addresses) {
                Ok(_) => println!("OK\t{file}\t{kernel}"),
                Err(errors) => {
                    let error = &errors.errors[0];
                    for error in &errors.errors {
                        println!("WHY\t{file}\t{kernel}\t{}\t{}", error.message, error.line_text.trim());
                    }
                    println!("BAD\t{file}\t{kernel}\t{}\t{}", error.message, error.line_text.trim());
                }
            }
        }
        println!("FILE\t{file}\t{} bytes\tparse {parsed:?}\tall {:?}", text.len(), start.elapsed());
    }
}
