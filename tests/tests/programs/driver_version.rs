//! A node whose driver is older than the newest: the version that programs are told, and the functions and runtimes that there are.

use assert_cmd::Command;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Asks the driver and the runtimes for their versions, for a function of CUDA 13.0 and one of CUDA 12.0, and for devices.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
typedef int of_version(int *);
typedef int find(const char *, void **, int, unsigned long long, int *);
int main() {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int version = 0, found = -1;
    ((of_version *)dlsym(driver, "cuDriverGetVersion"))(&version);
    printf("driver %d, in the library %d %d", version, dlsym(driver, "cuCtxGetDevice_v2") != 0, dlsym(driver, "cuCtxGetId") != 0);
    void *function = 0;
    ((find *)dlsym(driver, "cuGetProcAddress_v2"))("cuCtxGetDevice", &function, 13000, 0, &found);
    printf(", found %d %d", found, function != 0);
    ((find *)dlsym(driver, "cuGetProcAddress_v2"))("cuMemPrefetchBatchAsync", &function, 13000, 0, &found);
    printf(" %d %d\n", found, function != 0);
    const char *runtimes[] = {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"};
    for (int i = 0; i < 3; i++) {
        void *runtime = dlopen(runtimes[i], RTLD_NOW);
        int devices = -1;
        int code = ((of_version *)dlsym(runtime, "cudaGetDeviceCount"))(&devices);
        int last = ((int (*)(void))dlsym(runtime, "cudaGetLastError"))();
        ((of_version *)dlsym(runtime, "cudaDriverGetVersion"))(&version);
        printf("%s %d %d %d\n", runtimes[i], code, last, version);
    }
}
"#;

/// The output of the program on a node with these settings, and the messages on stderr.
fn run(folder: &Path, settings: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--quiet", "--topology", "v100_node"]).args(settings).args(["--", "./program"]);
    let output = command.current_dir(folder).timeout(Duration::from_secs(120)).output().expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// `cuda.h`: `cuCtxGetDevice_v2` is of CUDA 13.0, `cuMemPrefetchBatchAsync` of 12.8, `cuCtxGetId` of 12.0. Results of a search: 0 found,
/// 1 no such function. 35 is `cudaErrorInsufficientDriver`: a runtime runs on drivers of its major version and of newer ones.
#[test]
fn a_driver_has_the_functions_and_runs_the_runtimes_of_its_version() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("program.c"), PROGRAM).expect("written");
    let mut compiler = Command::new("cc");
    compiler.current_dir(folder.path()).args(["program.c", "-o", "program", "-ldl"]);
    compiler.timeout(Duration::from_secs(60)).assert().success();
    let (said, _) = run(folder.path(), &[]);
    let newest = "driver 13050, in the library 1 1, found 0 1 0 1\n\
                  libcudart.so.11.0 0 0 13050\nlibcudart.so.12 0 0 13050\nlibcudart.so.13 0 0 13050\n";
    assert_eq!(said, newest);
    let (said, errors) = run(folder.path(), &["--set", "cpu.driver_version=\"12.4\""]);
    let older = "driver 12040, in the library 0 1, found 0 1 1 0\n\
                 libcudart.so.11.0 0 0 12040\nlibcudart.so.12 0 0 12040\nlibcudart.so.13 35 35 12040\n";
    assert_eq!(said, older, "{errors}");
    assert!(errors.contains("newer than the driver of the node, of CUDA 12.4"), "{errors}");
    let (said, errors) = run(folder.path(), &["--set", "cpu.driver_version=\"12.10\""]);
    assert_eq!(said, "");
    assert!(errors.contains("expected a version of CUDA whose driver is modelled"), "{errors}");
}
