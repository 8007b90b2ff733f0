//! Programs reach the simulator by whatever way they find their CUDA libraries: by name, by a path, by a library's own rpath, from
//! Python.

use assert_cmd::Command;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Loads the libraries that its arguments name, one after another, and prints how many devices each knows of: through
/// `count_devices`, where a library has that, or else through the runtime's function.
const LOADER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
typedef int count(int *);
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            puts(dlerror());
            continue;
        }
        count *function = (count *)dlsym(library, "count_devices");
        if (!function)
            function = (count *)dlsym(library, "cudaGetDeviceCount");
        int devices = -1, code = function(&devices);
        printf("%s: code %d, %d devices\n", argv[i], code, devices);
    }
}
"#;

/// A runtime that is not the simulator's, with the version that its symbols have in NVIDIA's.
const OTHER_RUNTIME: &str = "int cudaGetDeviceCount(int *devices) { *devices = 99; return 0; }";
const VERSIONS: &str = "libcudart.so.12 { global: cudaGetDeviceCount; };";

/// A library of a program, which needs the runtime.
const USER: &str =
    "int cudaGetDeviceCount(int *); int count_devices(int *devices) { return cudaGetDeviceCount(devices); }";

/// What a C compiler makes of these texts in `folder`: `loader`, `lib/libcudart.so.12` (with a link to it) and `libuser.so`, which looks
/// in `lib` before anywhere else.
fn build(folder: &Path) {
    let library = folder.join("lib");
    fs::create_dir(&library).expect("made");
    for (name, text) in [("loader.c", LOADER), ("runtime.c", OTHER_RUNTIME), ("user.c", USER), ("versions", VERSIONS)] {
        fs::write(folder.join(name), text).expect("written");
    }
    let compile = |arguments: &[&str]| {
        Command::new("cc").current_dir(folder).args(arguments).timeout(Duration::from_secs(60)).assert().success();
    };
    compile(&["loader.c", "-o", "loader", "-ldl"]);
    let options = ["-Wl,-soname,libcudart.so.12", "-Wl,--version-script=versions", "-o", "lib/libcudart.so.12"];
    compile(&[&["-shared", "-fPIC", "runtime.c"], &options[..]].concat());
    let path = format!("-Wl,-rpath,{}", library.display());
    let options = [&path, "-Wl,--disable-new-dtags", "-o", "libuser.so"];
    compile(&[&["-shared", "-fPIC", "user.c", "lib/libcudart.so.12"], &options[..]].concat());
    std::os::unix::fs::symlink("libcudart.so.12", library.join("libcudart.so")).expect("linked");
}

/// A run of `program` in `folder`: its standard output.
fn run(folder: &Path, program: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--quiet", "--topology", "v100_node", "--"]).args(program).current_dir(folder);
    let output = command.timeout(Duration::from_secs(120)).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?}: {said}");
    assert!(!said.contains("ld.so"), "{program:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn libraries_by_name_by_path_and_by_rpath_are_the_simulators() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().canonicalize().expect("a folder");
    build(&folder);
    // Without the simulator they find the other runtime: the test can fail.
    let alone = Command::new(folder.join("loader")).current_dir(&folder).arg("./libuser.so").output().expect("runs");
    assert_eq!(alone.stdout, b"./libuser.so: code 0, 99 devices\n");

    let path = |name: &str| folder.join("lib").join(name).to_str().expect("text").to_owned();
    let (versioned, link, missing) = (path("libcudart.so.12"), path("libcudart.so"), path("libcudart.so.11.8.89"));
    let processes = [
        &["libcudart.so"][..],
        &["libcudart.so.11.0"],
        &["libcudart.so.12"],
        &["libcudart.so.13"],
        &[&versioned],
        &[&link],
        // There is no such file, as where a program has the path of an installation that the machine lacks.
        &[&missing],
        &["./libuser.so"],
        // A library that is there already under another name.
        &["libcudart.so.12", "./libuser.so", &versioned, &link, "libcudart.so"],
        &[&versioned, "./libuser.so"],
        &["libcudart.so.12.6.77", "libcudart.so", "./libuser.so"],
        &["./libuser.so", "libcudart.so.11.0", "libcudart.so.13"],
    ];
    // Each in a process of its own, all of them children of a script.
    let script = folder.join("script");
    let lines = processes.map(|requests| format!("true | ./loader {} | cat\n", requests.join(" ")));
    fs::write(&script, format!("#!/bin/sh\n{}exec ./loader libcudart.so\n", lines.concat())).expect("written");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let requests = processes.iter().copied().flatten().chain(&["libcudart.so"]);
    let expected: String = requests.map(|request| format!("{request}: code 0, 1 devices\n")).collect();
    assert_eq!(run(&folder, &["./script"]), expected);
    // Libraries other than the simulator's stay as they are.
    assert!(
        run(&folder, &["./loader", "libcudart.so.10.2"]).contains("libcudart.so.10.2: cannot open shared object file")
    );
}

#[test]
#[ignore = "needs python3"]
fn python_loads_the_simulators_libraries() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"#!/usr/bin/env python3
import ctypes
for name in ["libcudart.so", "/no/such/folder/libcudart.so.12", "libcuda.so"]:
    library = ctypes.CDLL(name)
    devices = ctypes.c_int(-1)
    if "cudart" in name:
        print(library.cudaGetDeviceCount(ctypes.byref(devices)), devices.value)
    else:
        print(library.cuInit(0), library.cuDeviceGetCount(ctypes.byref(devices)), devices.value)
"#;
    let script = folder.path().join("script.py");
    fs::write(&script, text).expect("written");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    for program in [&["./script.py"][..], &["python3", "script.py"], &["sh", "-c", "python3 -B ./script.py"]] {
        assert_eq!(run(folder.path(), program), "0 1\n0 1\n0 0 1\n", "{program:?}");
    }
}

/// A user's own audit library stays, after the simulator's.
#[test]
fn audit_libraries_of_the_user_are_kept() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--quiet", "--topology", "v100_node", "--", "sh", "-c", "echo $LD_AUDIT"]);
    let output =
        command.env("LD_AUDIT", "/no/such/library.so").timeout(Duration::from_secs(60)).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with("/libbalar_audit.so:/no/such/library.so\n"), "{text}");
}
