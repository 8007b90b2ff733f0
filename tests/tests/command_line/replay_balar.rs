//! Traces of Balar, in both dialects, by the command line.

use crate::call::{Called, call};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const ELEMENTS: usize = 1000;

fn bytes(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}

fn a() -> impl Iterator<Item = f32> {
    (0..ELEMENTS).map(|index| index as f32 * 0.5)
}

fn b() -> impl Iterator<Item = f32> {
    (0..ELEMENTS).map(|index| 7.0 - index as f32)
}

fn ptx() -> &'static str {
    balar_workloads::find("vectoradd").expect("a workload").ptx_for(70).expect("for the V100")
}

/// Writes the folder of a trace; gives its lines.
fn write_trace(folder: &Path, newer: bool) -> String {
    let size = 4 * ELEMENTS;
    let mut text = String::new();
    for name in ["dptr-0", "dptr-1", "dptr-2"] {
        writeln!(text, "CUDA memalloc: dptr: {name}, size: {size}").expect("a String");
    }
    let inputs = [bytes(a()), bytes(b())];
    for (index, data) in inputs.into_iter().enumerate() {
        let file = format!("cuMemcpyH2D-{index}-{size}.data");
        fs::write(folder.join(&file), data).expect("written");
        let address = if newer { "" } else { ", addr: 0x7f0000000000" };
        writeln!(
            text,
            "CUDA memcpyH2D detected: device_ptr: dptr-{index}, host_ptr: 0x7ffc0010, size: {size}, data_file: {file}{address}"
        )
        .expect("a String");
    }
    writeln!(
        text,
        "CUDA cu kernel launch detected: name: void demo::add<float, 4>, ptx_name: vectorAdd, funcptr: 0x5580, gdx: 8, gdy: 1, \
         gdz: 1, bdx: 128, bdy: 1, bdz: 1, sharedBytes: 0, CUstream: (nil), args: dptr-0/8/dptr-1/8/dptr-2/8/{ELEMENTS}/4/"
    )
    .expect("a String");
    // A free in the middle ends nothing.
    writeln!(text, "CUDA free detected: dptr: dptr-0").expect("a String");
    let sums = bytes(a().zip(b()).map(|(a, b)| a + b));
    for (index, (place, data)) in [("dptr-2", &sums[..]), ("dptr-2+400", &sums[400..])].into_iter().enumerate() {
        let size = data.len();
        let file = format!("cuMemcpyD2H-{index}-{size}.data");
        fs::write(folder.join(&file), data).expect("written");
        writeln!(text, "CUDA memcpyD2H detected: host_ptr: 0x1, device_ptr: {place}, size: {size}, data_file: {file}")
            .expect("a String");
    }
    fs::write(folder.join("cuda_calls.trace"), &text).expect("written");
    text
}

fn replay(folder: &Path, options: &[&str]) -> Called {
    let folder = folder.to_str().expect("UTF-8");
    call(&[&["replay", "--topology", "v100_node", folder], options].concat())
}

fn assert_passes(called: &Called) {
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert!(called.stdout.contains("vectorAdd"), "{}", called.stdout);
}

#[test]
fn both_dialects() {
    for newer in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        write_trace(folder.path(), newer);
        fs::write(folder.path().join("vectorAdd.ptx"), ptx()).expect("written");
        let called = replay(folder.path(), &["--format", "json"]);
        assert_passes(&called);
        let document: serde_json::Value = serde_json::from_str(&called.stdout).expect("JSON");
        assert_eq!((&document["verified"], &document["completed"]), (&true.into(), &true.into()));
        assert_eq!(document["kernels"][0]["block"], serde_json::json!([128, 1, 1]));
    }
}

/// An ELF file whose section `.nv_fatbin` holds the PTX, uncompressed.
fn executable() -> Vec<u8> {
    let mut text = ptx().as_bytes().to_vec();
    text.resize((text.len() + 1).next_multiple_of(8), 0);
    let mut entry = Vec::new();
    entry.extend(1u16.to_le_bytes());
    entry.extend(0x101u16.to_le_bytes());
    entry.extend(80u32.to_le_bytes());
    entry.extend((text.len() as u64).to_le_bytes());
    entry.extend([0; 4]);
    entry.extend(64u32.to_le_bytes());
    entry.extend([4, 0, 7, 0]);
    entry.extend(70u32.to_le_bytes());
    entry.extend([0; 8]);
    entry.extend(0x11u64.to_le_bytes());
    entry.extend([0; 32]);
    assert_eq!(entry.len(), 80);
    entry.extend(text);
    let mut container = 0xba55_ed50u32.to_le_bytes().to_vec();
    container.extend([1, 0, 16, 0]);
    container.extend((entry.len() as u64).to_le_bytes());
    container.extend(entry);

    let names = b"\0.nv_fatbin\0";
    let mut file = vec![0; 64];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file.extend(&container);
    let names_at = file.len();
    file.extend(names);
    let headers_at = file.len();
    for (name, offset, bytes) in [(0u32, 0, 0), (1, 64, container.len()), (0, names_at, names.len())] {
        let mut header = [0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
        file.extend(header);
    }
    file[40..48].copy_from_slice(&(headers_at as u64).to_le_bytes());
    file[58..64].copy_from_slice(&[64, 0, 3, 0, 2, 0]);
    file
}

#[test]
fn code_of_an_executable_or_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    write_trace(folder.path(), true);
    let none = replay(folder.path(), &[]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("has no code: expected the CUDA executable or its PTX"), "{}", none.stderr);

    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("k.ptx");
    fs::write(&file, ptx()).expect("written");
    assert_passes(&replay(folder.path(), &["--ptx", file.to_str().expect("UTF-8")]));
    fs::write(folder.path().join("vectorAdd"), executable()).expect("written");
    assert_passes(&replay(folder.path(), &[]));
    fs::write(folder.path().join("vectorAdd2"), executable()).expect("written");
    let two = replay(folder.path(), &[]);
    assert_eq!(two.code, 2);
    assert!(two.stderr.contains("several executables"), "{}", two.stderr);
}

#[test]
fn other_results_are_said_loudly() {
    let folder = tempfile::tempdir().expect("a folder");
    write_trace(folder.path(), true);
    fs::write(folder.path().join("vectorAdd.ptx"), ptx()).expect("written");
    let file = folder.path().join(format!("cuMemcpyD2H-0-{}.data", 4 * ELEMENTS));
    let mut expected = fs::read(&file).expect("a file");
    expected[1234] ^= 0x40;
    fs::write(&file, expected).expect("written");
    let called = replay(folder.path(), &[]);
    assert_eq!(called.code, 1, "{}", called.stderr);
    for said in ["cuda_calls.trace:8", "cuMemcpyD2H-0-4000.data", "after the kernel vectorAdd", "offset 1234: expected"]
    {
        assert!(called.stderr.contains(said), "{said}: {}", called.stderr);
    }
}

#[test]
fn a_kernel_that_does_not_finish_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = write_trace(folder.path(), true);
    fs::write(folder.path().join("vectorAdd.ptx"), ptx()).expect("written");
    // It reads and writes far behind its buffers and their page, and nothing is copied back.
    let text = text.replace(&format!("/{ELEMENTS}/4/"), "/10000000/4/").replace("gdx: 8", "gdx: 40000");
    let text: String = text
        .lines()
        .filter(|line| !line.contains("D2H") && !line.contains("free"))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(folder.path().join("cuda_calls.trace"), text).expect("written");
    let called = replay(folder.path(), &[]);
    assert_eq!(called.code, 3, "{}", called.stderr);
    assert!(called.stderr.contains("cudaErrorIllegalAddress"), "{}", called.stderr);
}

#[test]
fn lines_that_cannot_be_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = write_trace(folder.path(), true);
    fs::write(folder.path().join("vectorAdd.ptx"), ptx()).expect("written");
    for (from, to, code, said) in [
        ("CUDA free", "CUDA memset", 2, "cuda_calls.trace:7: an unknown kind of line, `CUDA memset detected`"),
        (
            "dptr: dptr-0\n",
            "dptr: dptr-9\n",
            2,
            "cuda_calls.trace:7: expected the name of an allocation, found `dptr-9`",
        ),
        ("dptr-2+400", "dptr-2+800", 2, "cuda_calls.trace:9: 3600 bytes from offset 800 on are not inside `dptr-2`"),
        ("cuMemcpyH2D-1", "cuMemcpyH2D-7", 2, "cuda_calls.trace:5: cannot read"),
        ("/1000/4/", "/1000/", 2, "cuda_calls.trace:6: expected `value/bytes/`"),
        ("/1000/4/", "/1000/8/", 3, "cuda_calls.trace:6: argument 3 of `vectorAdd` has 8 bytes, the parameter 4"),
        ("/1000/4/", "/", 3, "cuda_calls.trace:6: 3 arguments, the kernel `vectorAdd` has 4 parameters"),
        ("ptx_name: vectorAdd", "ptx_name: vectorSub", 3, "cuda_calls.trace:6: the code has no kernel `vectorSub`"),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(folder.path().join("cuda_calls.trace"), good.replace(from, to)).expect("written");
        let called = replay(folder.path(), &[]);
        assert_eq!(called.code, code, "{to}: {}", called.stderr);
        assert!(called.stderr.contains(said), "{to}: {}", called.stderr);
    }
}
