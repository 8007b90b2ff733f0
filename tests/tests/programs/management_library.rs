//! The answers of NVML to programs: the same facts as by CUDA, and the simulation's own figures.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Asks NVML before and after work of CUDA's, which a first argument asks for. Handles and results are checked in C.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static void *nvml, *runtime;
#define N(name, ...) ((int (*)())dlsym(nvml, "nvml" #name))(__VA_ARGS__)
#define C(name, ...) ((int (*)())dlsym(runtime, "cuda" #name))(__VA_ARGS__)
struct memory { unsigned long long total, free, used; };
int main(int argc, char **argv) {
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    unsigned count = 0;
    printf("before init %d", N(DeviceGetCount_v2, &count));
    printf(", init %d", N(Init_v2));
    printf(", count %d", (N(DeviceGetCount_v2, &count), count));
    void *device = 0, *same = 0, *none = 0;
    printf(", handle %d", N(DeviceGetHandleByIndex_v2, 1, &device));
    printf(" %d\n", N(DeviceGetHandleByIndex_v2, 2, &none));
    char name[96], uuid[96], version[96];
    N(DeviceGetName, device, name, 96), N(DeviceGetUUID, device, uuid, 96), N(SystemGetDriverVersion, version, 96);
    printf("%s, %s, %s\n", name, uuid, version);
    printf("by uuid %d", N(DeviceGetHandleByUUID, uuid, &same));
    printf(" %d", same == device);
    printf(", by bus %d", N(DeviceGetHandleByPciBusId_v2, "00000000:02:00.0", &same));
    printf(" %d", same == device);
    printf(", none there %d\n", N(DeviceGetHandleByPciBusId_v2, "00000000:09:00.0", &same));
    int major = 0, minor = 0;
    unsigned cores = 0, clock = 0, bits = 0, status = 9;
    N(DeviceGetCudaComputeCapability, device, &major, &minor), N(DeviceGetNumGpuCores, device, &cores);
    N(DeviceGetClockInfo, device, 1, &clock), N(DeviceGetMemoryBusWidth, device, &bits);
    printf("capability %d.%d, %u cores, %u MHz, %u bits", major, minor, cores, clock, bits);
    void *first = 0;
    N(DeviceGetHandleByIndex_v2, 0, &first);
    printf(", peer %d", N(DeviceGetP2PStatus, first, device, 0, &status));
    printf(" %u", status);
    printf(", temperature %d, serial %d\n", N(DeviceGetTemperature, device, 0, &status), N(DeviceGetSerial, device, name, 96));
    struct memory before, after;
    unsigned used[2] = {9, 9};
    printf("memory %d", N(DeviceGetMemoryInfo, device, &before));
    printf(", use %d", N(DeviceGetUtilizationRates, device, used));
    printf(" %u %u\n", used[0], used[1]);
    // A child of a process that has asked NVML alone may use CUDA.
    runtime = dlopen("libcudart.so.12", RTLD_NOW);
    fflush(stdout);
    if (fork() == 0) {
        int devices = -1;
        printf("in the child %d", C(GetDeviceCount, &devices));
        printf(" %d\n", devices);
        return 0;
    }
    wait(0);
    if (argc > 1) {
        void *memory = 0;
        C(SetDevice, 1), C(Malloc, &memory, (size_t)64 << 20), C(Memset, memory, 0, (size_t)64 << 20), C(DeviceSynchronize);
    }
    N(DeviceGetMemoryInfo, device, &after), N(DeviceGetUtilizationRates, device, used);
    printf("%llu MiB more, use %u %d\n", (after.used - before.used) >> 20, used[0], used[1] > 0);
    printf("shutdown %d", N(Shutdown));
    printf(" %d\n", N(DeviceGetCount_v2, &count));
}
"#;

fn build(folder: &Path) {
    fs::write(folder.join("program.c"), PROGRAM).expect("written");
    let mut compiler = Command::new("cc");
    compiler.current_dir(folder).args(["-w", "program.c", "-o", "program", "-ldl"]);
    compiler.timeout(Duration::from_secs(60)).assert().success();
}

fn run(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--quiet", "--topology", "two_v100_node", "--output", "run", "--", "./program"]);
    let output = command.args(arguments).current_dir(folder).timeout(Duration::from_secs(120)).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The node's GPUs have 84 SMs of 64 cores, and 4096 bits of HBM2 (`topologies/parts/v100.ron`). 1 is `NVML_ERROR_UNINITIALIZED`, 2 `NVML_ERROR_INVALID_ARGUMENT`, 3
/// `NVML_ERROR_NOT_SUPPORTED`, 6 `NVML_ERROR_NOT_FOUND`.
const FACTS: &str = "before init 1, init 0, count 2, handle 0 2
Simulated two_v100_node (gpu[1]), GPU-62616c61-722d-6163-746f-727300000001, 615.71
by uuid 0 1, by bus 0 1, none there 6
capability 7.0, 5376 cores, 1312 MHz, 4096 bits, peer 0 0, temperature 3, serial 3
memory 0, use 0 0 0
in the child 0 2
";

#[test]
fn the_management_library_tells_facts_and_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let said = run(folder.path(), &["work"]);
    // A fill is no kernel.
    assert_eq!(said, format!("{FACTS}64 MiB more, use 0 1\nshutdown 0 1\n"));
}

#[test]
fn questions_are_no_calls_of_cuda_and_take_no_time() {
    let folder = tempfile::tempdir().expect("a folder");
    build(folder.path());
    let said = run(folder.path(), &[]);
    assert_eq!(said, format!("{FACTS}0 MiB more, use 0 0\nshutdown 0 1\n"));
    let text = fs::read_to_string(folder.path().join("run/stats.json")).expect("a document");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["sim_time_ps"], 0, "{document}");
}
