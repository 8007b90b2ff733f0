//! The records of CUPTI for a profiler: the calls of a program, and the work of devices with its simulated times.

use assert_cmd::Command;
use std::fs;
use std::time::Duration;

/// Records a fill and a copy with the library that its argument names, and prints all records. A buffer has room for two of them. As PyTorch's
/// profiler it wants no more records before it asks for those that there are, and asks only if it has been asked for a buffer.
const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long u64;
static void *cupti, *runtime;
#define P(name, ...) ((int (*)())dlsym(cupti, "cupti" #name))(__VA_ARGS__)
#define C(name, ...) ((int (*)())dlsym(runtime, "cuda" #name))(__VA_ARGS__)
static int requests;
static void request(unsigned char **buffer, size_t *bytes, size_t *most) {
    requests++, *bytes = 240, *buffer = aligned_alloc(8, 240), *most = 0;
}
static unsigned word(unsigned char *record, int at) { unsigned value; memcpy(&value, record + at, 4); return value; }
static u64 wide(unsigned char *record, int at) { u64 value; memcpy(&value, record + at, 8); return value; }
static unsigned calls[1000], correlated, timed;
static void complete(void *context, unsigned stream, unsigned char *buffer, size_t bytes, size_t valid) {
    unsigned char *record = 0;
    int result;
    while ((result = P(ActivityGetNextRecord, buffer, valid, &record)) == 0) {
        unsigned kind = word(record, 0);
        if (kind == 5)
            calls[word(record, 32)] = word(record, 4), printf(" call %u", word(record, 4));
        if (kind == 39)
            printf(" external %u %llu", word(record, 4), wide(record, 8));
        if (kind == 1 || kind == 2) {
            printf(" kind %u of call %u: %llu bytes", kind, calls[word(record, 44)], wide(record, 8));
            timed += wide(record, 24) > wide(record, 16);
        }
    }
    if (result != 12)
        printf(" end %d", result);
    free(buffer);
}
int main(int count, char **arguments) {
    cupti = dlopen(arguments[1], RTLD_NOW), runtime = dlopen("libcudart.so.12", RTLD_NOW);
    u64 before = 0, after = 0, popped = 0;
    printf("register %d", P(ActivityRegisterCallbacks, request, complete));
    for (unsigned kind = 1; kind < 40; kind++)
        if (kind == 1 || kind == 2 || kind == 5 || kind == 39)
            printf(" %d", P(ActivityEnable, kind));
    void *memory = 0;
    char host[1024];
    P(GetTimestamp, &before);
    C(Malloc, &memory, (size_t)1 << 20);
    P(ActivityPushExternalCorrelationId, 3, (u64)77);
    C(Memset, memory, 1, (size_t)1 << 20);
    printf(" pop %d", P(ActivityPopExternalCorrelationId, 3, &popped));
    C(Memcpy, host, memory, (size_t)1024, 2);
    C(DeviceSynchronize);
    P(GetTimestamp, &after);
    printf(" %llu %d\nrecords", popped, after > before);
    for (unsigned kind = 1; kind < 40; kind++)
        if (kind == 1 || kind == 2 || kind == 5 || kind == 39)
            P(ActivityDisable, kind);
    C(DeviceSynchronize);
    int flushed = requests == 1 ? P(ActivityFlushAll, 0) : -1;
    const char *name = "";
    P(GetCallbackName, 2, 51, &name);
    printf("\nflush %d, %u with times, %s, events %d\n", flushed, timed, name, P(EventGroupSetsCreate, 0));
}
"#;

/// Function numbers of `cupti_runtime_cbid.h`: `cudaMalloc` 20, `cudaMemsetAsync` 51, `cudaMemcpy` 31, `cudaDeviceSynchronize` 165.
/// A fill of device memory by `cudaMemset` does not wait for it, so its call is known by the other name. 27 is
/// `CUPTI_ERROR_NOT_SUPPORTED`.
#[test]
fn calls_and_their_work_are_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("program.c"), PROGRAM).expect("written");
    let mut compiler = Command::new("cc");
    compiler.current_dir(folder.path()).args(["-w", "program.c", "-o", "program", "-ldl"]);
    compiler.timeout(Duration::from_secs(60)).assert().success();
    for library in ["libcupti.so.11.8", "libcupti.so.12", "libcupti.so.13"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
        command.args(["run", "--quiet", "--topology", "v100_node", "--", "./program", library]);
        let output = command.current_dir(folder.path()).timeout(Duration::from_secs(120)).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let expected = "register 0 0 0 0 0 pop 0 77 1\n\
                        records call 20 external 3 77 call 51 call 31 call 165 kind 2 of call 51: 1048576 bytes \
                        kind 1 of call 31: 1024 bytes\nflush 0, 2 with times, cudaMemsetAsync_v3020, events 27\n";
        assert_eq!(said, expected, "{library}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
