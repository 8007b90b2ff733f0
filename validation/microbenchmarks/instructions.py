"""Latency and throughput of single instructions on a TITAN V, and what a launch costs on a V100."""

from .simulator import CALIBRATED, ROOT, V100, Row, cycles_of_last, kernel_text, result, simple

TUNER = "Accel-Sim tuner, TITAN V"
PEARL = "GPUs-ISA-Latencies, TITAN V (HPEC 2019): whole cycles"
# Steps of a loop: so many that the rest of the loop does not show, so few that the loop stays in the instruction cache.
UNROLLED, MATRICES_UNROLLED = 64, 16

# What a chain begins from and what keeps its result alive, by type.
DOUBLE = ("cvt.rn.f64.u32 %fd1, %r1; mov.f64 %fd2, %fd1;", "st.global.f64 [%rd1+8], %fd1;")
SINGLE = ("cvt.rn.f32.u32 %f1, %r1; mov.f32 %f2, %f1;", "st.global.f32 [%rd1+8], %f1;")
HALF = ("cvt.rn.f16.u32 %h1, %r1; mov.b16 %h2, %h1;", "st.global.b16 [%rd1+8], %h1;")
PAIR = ("mov.b32 %r3, %r1; mov.b32 %r4, %r1;", "st.global.b32 [%rd1+8], %r3;")


def registers(kind, first, count):
    return "{" + ", ".join(f"%{kind}{register}" for register in range(first, first + count)) + "}"


def matrices(accumulator):
    """One step of a product of 16 x 16 matrices of halves, with sums of the type `accumulator`; its begin and end."""
    a, b = registers("r", 16, 8), registers("r", 24, 8)
    kind, first, count, zero = ("f", 1, 8, "mov.f32 %f{0}, 0f00000000;") if accumulator == "f32" else ("r", 40, 4, "mov.b32 %r{0}, 0;")
    sums = registers(kind, first, count)
    shape = "sync.aligned.row.m16n16k16"
    begin = [f"wmma.load.a.{shape}.global.f16 {a}, [%rd2];", f"wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {b}, [%rd2];"]
    begin += [zero.format(register) for register in range(first, first + count)]
    step = f"wmma.mma.sync.aligned.row.col.m16n16k16.{accumulator}.{accumulator} {sums}, {a}, {b}, {sums};"
    return step, " ".join(begin), f"wmma.store.d.{shape}.global.{accumulator} [%rd1+64], {sums};"


def cycles_of_chain(simulator, step, begin, end, threads, times, unrolled):
    text = kernel_text("chain", begin=begin, steps="\n\t".join([step] * unrolled), times=times, end=end)
    return simulator.launch(text, "chain", 1, threads, ["buffer:65536", "buffer:65536"])[1]


def latency(name, step, parts, hardware, source, times=64, unrolled=UNROLLED):
    """Cycles of a step of one warp whose steps need each other."""
    measure = lambda simulator: cycles_of_chain(simulator, step, *parts, 32, times, unrolled) / (times * unrolled)
    return Row(name, V100, "chain.ptx", "cycle", hardware, source, CALIBRATED, measure, assembled=True)


def throughput(name, step, parts, work, unit, hardware, times, unrolled=UNROLLED):
    """`work` of 1024 threads' steps a cycle."""
    measure = lambda simulator: work * times * unrolled / cycles_of_chain(simulator, step, *parts, 1024, times, unrolled)
    return Row(name, V100, "chain.ptx, 1024 threads", unit, hardware, TUNER, CALIBRATED, measure, assembled=True)


def launch_overhead():
    """Elapsed cycles of MaxIops_int32: its timed loop as measured, the rest simulated. See launch_overhead.md."""
    workload = "stream:operation=triad,elements=1024,block=1024,launches=3"

    def measure(simulator):
        text = (ROOT / "validation/launch_overhead.ptx").read_text()
        # The profiler empties the caches before a kernel, and runs it several times: the TLBs know its pages.
        flushed = [f"gpu.{unit}[*].caches_between_kernels=Flushed" for unit in ("sm", "l2")]
        document = simulator.workload(V100, workload, ptx=text, verify=False, settings=flushed)
        return 66111 + cycles_of_last(document)

    return Row("MaxIops_int32, elapsed cycles", V100, workload + " with launch_overhead.ptx", "cycle", 69792.6,
               "Accel-Sim statistics archive, V100, gpc__cycles_elapsed", CALIBRATED, measure, assembled=True)


def rows():
    cycles = result("cycles_per_instruction")
    yield simple("fp32 fma", "alu_latency:operation=fp32_fma", "cycle", 4.12, TUNER, CALIBRATED, cycles)
    yield simple("fp64 fma", "alu_latency:operation=fp64_fma", "cycle", 8.06, TUNER, CALIBRATED, cycles)
    yield simple("int32 mad", "alu_latency:operation=int_mad", "cycle", 4.31, TUNER, CALIBRATED, cycles)
    yield latency("fp16 fma of pairs", "fma.rn.f16x2 %r3, %r3, %r4, %r3;", PAIR, 6.18, TUNER)
    yield latency("fp32 fma, whole cycles", "fma.rn.f32 %f1, %f1, %f2, %f2;", SINGLE, 4, PEARL)
    for operation, step in (("add", "add.rn.f64 %fd1, %fd1, %fd2;"), ("mul", "mul.rn.f64 %fd1, %fd1, %fd2;"),
                            ("fma, whole cycles", "fma.rn.f64 %fd1, %fd1, %fd2, %fd2;")):
        yield latency(f"fp64 {operation}", step, DOUBLE, 8, PEARL)
    for operation, step in (("add", "add.rn.f16 %h1, %h1, %h2;"), ("mul", "mul.rn.f16 %h1, %h1, %h2;"),
                            ("fma", "fma.rn.f16 %h1, %h1, %h2, %h2;")):
        yield latency(f"fp16 {operation}", step, HALF, 6, PEARL)
    yield throughput("fp16 fma of pairs, throughput", "fma.rn.f16x2 %r3, %r3, %r4, %r3;", PAIR, 1024 * 4, "flop/cycle/SM", 249.33, 16)
    for accumulator, wait, rate in (("f32", 35.35, 478.73), ("f16", 33.00, 509.43)):
        step, *parts = matrices(accumulator)
        yield latency(f"wmma 16x16x16, sums in {accumulator}", step, parts, wait, TUNER, 64, MATRICES_UNROLLED)
        yield throughput(f"wmma 16x16x16, sums in {accumulator}, throughput", step, parts, 32 * 4096, "fma/cycle/SM", rate, 16,
                         MATRICES_UNROLLED)
    yield launch_overhead()
