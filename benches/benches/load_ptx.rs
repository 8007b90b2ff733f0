//! The cost of reading PTX: a text of 10 MB, parsed and decoded. The target is 2 s of one processor.
//!
//! Half of the text are kernels as compilers write them (the workloads of this repository, under other names), half are long
//! straight-line kernels with branches now and then.

use balar_isa::module::PtxModule;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;
use std::path::PathBuf;

const BYTES: usize = 10_000_000;
const HEADER: &str = ".version 8.8\n.target sm_75\n.address_size 64\n";

/// The kernels of the workloads: every text that needs nothing from outside itself.
fn workloads() -> Vec<String> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../workloads"));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root)
        .expect("the workloads")
        .filter_map(|folder| std::fs::read_dir(folder.ok()?.path()).ok())
        .flat_map(|files| files.flatten().map(|file| file.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    paths.sort();
    let texts = paths.iter().map(|path| std::fs::read_to_string(path).expect("a text"));
    // What is declared outside kernels would be declared once a copy.
    let declares = |line: &str| {
        [".extern", ".func", ".global", ".const", ".weak .", ".shared"].iter().any(|word| line.starts_with(word))
    };
    texts.filter(|text| !text.contains(".func") && !text.lines().any(declares)).collect()
}

/// One text with all kernels under names of their own.
fn text() -> String {
    let sources = workloads();
    let mut text = HEADER.to_owned();
    for (copy, source) in sources.iter().cycle().enumerate() {
        if text.len() > BYTES / 2 {
            break;
        }
        for line in source.lines().filter(|line| {
            ![".version", ".target", ".address_size", ".file"].iter().any(|directive| line.starts_with(directive))
        }) {
            let (before, name) = line.split_once(".entry ").unwrap_or((line, ""));
            text.push_str(before);
            if !name.is_empty() {
                write!(text, ".entry copy{copy}_{name}").expect("a String takes every byte");
            }
            text.push('\n');
        }
    }
    for kernel in 0.. {
        if text.len() > BYTES {
            break;
        }
        long_kernel(&mut text, kernel);
    }
    text
}

fn long_kernel(text: &mut String, kernel: usize) {
    const STEPS: usize = 9000;
    write!(
        text,
        ".visible .entry long{kernel}(.param .u64 a)\n{{\n.reg .pred %p<{STEPS}>;\n.reg .b32 %r<{STEPS}>;\n.reg .b64 %rd<2>;\n\
         .reg .f32 %f<{STEPS}>;\nld.param.u64 %rd1, [a];\nmov.u32 %r0, %tid.x;\nmov.f32 %f0, 0f3F800000;\n"
    )
    .expect("a String takes every byte");
    for step in 1..STEPS {
        let (before, other) = (step - 1, step - 1 - (step * 7) % step.min(20));
        write!(
            text,
            "\tadd.s32 \t%r{step}, %r{other}, {step};\n\tfma.rn.f32 \t%f{step}, %f{other}, %f{before}, 0f40000000;\n"
        )
        .expect("a String takes every byte");
        if step % 37 == 0 {
            write!(
                text,
                "\tsetp.lt.s32 \t%p{step}, %r{step}, 5;\n\t@%p{step} bra \t$L{step};\n\
                 \tst.global.f32 \t[%rd1+{}], %f{step};\n$L{step}:\n",
                4 * step
            )
            .expect("a String takes every byte");
        }
    }
    text.push_str("\tret;\n}\n");
}

fn load(criterion: &mut Criterion) {
    let text = text();
    let mut group = criterion.benchmark_group("ptx");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);
    group.bench_function("parse", |bencher| bencher.iter(|| PtxModule::parse("long.ptx", black_box(&text)).map(drop)));
    group.bench_function("parse_and_decode", |bencher| {
        bencher.iter(|| {
            let module = PtxModule::parse("long.ptx", black_box(&text)).unwrap_or_else(|errors| panic!("{errors}"));
            let addresses = vec![1 << 32; module.variables().len()];
            let decoded = module.kernels().filter(|name| module.program(name, &addresses).is_ok()).count();
            assert_eq!(decoded, module.kernels().count());
            decoded
        });
    });
    group.finish();
}

criterion_group!(benches, load);
criterion_main!(benches);
