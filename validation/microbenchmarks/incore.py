"""Instructions in double precision over parallelism within a warp and of warps: cuda-incore on a V100."""

import struct

from .simulator import PREDICTED, V100, Row, cycles_of_last, kernel_text

SOURCE = "RRZE gpu-benches, cuda-incore, V100 PCIe 16GB"
WARPS = (1, 2, 4, 8, 16, 32)
# Instructions of an iteration that are counted; iterations of the launches whose difference is measured.
COUNTED, MANY, FEW = 128, 12, 4

# Cycles an instruction, a row for each number of warps, a column for each number of chains.
DFMA_CHAINS = (1, 2, 3, 4, 5, 6, 7, 8)
DFMA = [(8.67, 4.63, 4.57, 4.66, 4.63, 4.72, 4.79, 4.97),
        (4.29, 2.32, 2.29, 2.33, 2.32, 2.36, 2.39, 2.48),
        (2.14, 1.16, 1.14, 1.17, 1.16, 1.18, 1.20, 1.24),
        (1.08, 1.05, 1.05, 1.08, 1.08, 1.10, 1.12, 1.14),
        (1.03, 1.04, 1.04, 1.08, 1.07, 1.10, 1.11, 1.14),
        (1.03, 1.04, 1.04, 1.08, 1.07, 1.10, 1.10, 1.14)]
# Columns 1 to 5 are one program (all chains but the last are overwritten, and the compiler drops them), and columns 6 to 8 run their chains
# one behind the other and count one of them: 1 and 8 stand for all.
SLOW_CHAINS = (1, 8)
DDIV = [(111.55, 891.05), (55.76, 445.51), (27.88, 222.82), (14.11, 113.00), (8.48, 67.84), (7.51, 59.97)]
DSQRT = [(101.26, 816.83), (50.63, 408.40), (25.31, 204.19), (13.56, 110.29), (9.80, 80.62), (9.61, 78.53)]

# What a chain goes on with: t = 0.9 t + 0.5; t = 0.1 / (t + 0.2); t = sqrt(t + 0.2).
STEPS = {
    "DFMA": ["fma.rn.f64 {t}, {t}, 0d3FECCCCCCCCCCCCD, 0d3FE0000000000000;"],
    # Division as the measured code must have had it: 7.51 cycles leave room for 7 instructions in double precision, and ptxas of today
    # makes 9 of `div`, for it refines the reciprocal twice. The branch goes to the case of very small and very large numbers.
    "DDIV": ["add.f64 {t}, {t}, 0d3FC999999999999A;", "rcp.approx.ftz.f64 %fd7, {t};", "neg.f64 %fd8, {t};",
             "fma.rn.f64 %fd9, %fd8, %fd7, 0d3FF0000000000000;", "fma.rn.f64 %fd9, %fd9, %fd9, %fd9;",
             "fma.rn.f64 %fd7, %fd7, %fd9, %fd7;", "mul.f64 %fd9, %fd7, 0d3FB999999999999A;",
             "fma.rn.f64 %fd10, %fd8, %fd9, 0d3FB999999999999A;", "fma.rn.f64 %fd9, %fd7, %fd10, %fd9;",
             "mov.b64 {{%r7, %r8}}, %fd9;", "mov.b64 {{%r9, %r10}}, {t};", "mov.b32 %f1, %r8;", "mov.b32 %f2, %r10;",
             "fma.rn.f32 %f1, 0f00000000, %f2, %f1;", "abs.f32 %f1, %f1;", "setp.gt.f32 %p23, %f1, 0f00100000;", "@%p23 bra $divided;",
             "div.rn.f64 %fd9, 0d3FB999999999999A, {t};", "$divided:", "mov.f64 {t}, %fd9;"],
    "DSQRT": ["add.f64 {t}, {t}, 0d3FC999999999999A;", "sqrt.rn.f64 {t}, {t};"],
}


def double(number):
    return "0d" + struct.pack(">d", number).hex().upper()


def interleaved(operation, chains):
    """Chains side by side in registers of their own, which no loop divides; each ends with a store that no thread makes."""
    ts = [f"%t{chain}" for chain in range(chains)]
    begin = [f"add.f64 {t}, %fd5, {double(chain)};" for chain, t in enumerate(ts)]
    steps = [line.format(t=t) for _ in range(COUNTED // chains) for t in ts for line in STEPS[operation]]
    end = [line for chain, t in enumerate(ts)
           for line in (f"setp.gt.f64 %p{chain}, {t}, {double(22313)};", f"@%p{chain} st.global.f64 [%rd1], {t};")]
    return begin + steps + end


def one_by_one(operation, chains):
    """A loop over chains, and in it one over the steps of a chain, which ends with a store."""
    steps = [line.format(t="%t0") for line in STEPS[operation]]
    return ["mov.u32 %r5, 0;", "$chain:", "cvt.rn.f64.s32 %fd6, %r5;", "add.f64 %t0, %fd5, %fd6;", "mov.u32 %r6, 0;", "$step:",
            *steps, "add.s32 %r6, %r6, 1;", f"setp.lt.s32 %p21, %r6, {COUNTED};", "@%p21 bra $step;",
            "st.global.f64 [%rd3], %t0;", "add.s32 %r5, %r5, 1;", f"setp.lt.s32 %p22, %r5, {chains};", "@%p22 bra $chain;"]


def point(operation, chains, warps, hardware):
    text = kernel_text("incore", chains="\n\t".join((interleaved if operation == "DFMA" else one_by_one)(operation, chains)))

    def measure(simulator):
        def cycles(iterations):
            arguments = ["buffer:65536", "f64:0.32", f"u32:{iterations}"]
            return cycles_of_last(simulator.launch(text, "incore", 1, 32 * warps, arguments, launches=2)[0])

        return (cycles(MANY) - cycles(FEW)) / ((MANY - FEW) * COUNTED * warps)

    name = f"{operation}, {chains} chain{'s' if chains > 1 else ''}, {warps} warp{'s' if warps > 1 else ''}"
    return Row(name, V100, f"incore.ptx: {MANY} iterations less {FEW}", "cycle", hardware, SOURCE, PREDICTED, measure, assembled=True)


def rows():
    for operation, columns, table in (("DFMA", DFMA_CHAINS, DFMA), ("DDIV", SLOW_CHAINS, DDIV), ("DSQRT", SLOW_CHAINS, DSQRT)):
        for warps, figures in zip(WARPS, table):
            for chains, hardware in zip(columns, figures):
                yield point(operation, chains, warps, hardware)
