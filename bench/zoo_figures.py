"""What compilers' figures mean, for zoo.py: from a driver's words to waves, cycles and FLOPs per cycle.

Each compiler estimates one walk through the code, with a number of passes through a loop that it assumes:

 RADV (AMD)           8 passes, 8 * 4 for a loop inside a loop, 8 * 4 * 2 inside that; half of all that stands in a
                      uniform branch (Mesa, src/amd/compiler/aco_statistics.cpp), and behind
                      `if (group >= count) return;` everything does.
                      "Latency" is one wave alone; "Inverse Throughput" is what a wave of 64 costs a SIMD when
                      as many waves run as fit: the busiest unit, or the latency divided by the waves.
 NVK (NVIDIA)         10 passes, 38 and 100 nested: 10^log2(1 + depth) (src/nouveau/compiler/nak/,
                      estimate_block_weight).
                      "Static cycle count" is one warp alone, an issue slot an instruction, and latencies.
 Turnip (Qualcomm)    counts each instruction once, with its repeats and the nops behind it: issue cycles.
 Honeykrisp (Apple)   counts each once (src/asahi/compiler/agx_performance.c); "ALU" is the busier of the two
                      pipes, loads and stores are not in it.
 ANV (Intel)          10 passes, 100 and 1000 nested (src/intel/compiler, the scheduler's model of latencies).
                      "Cycles" is one thread alone.
 PanVK (Arm)          counts each once; "Cycles" is what an invocation costs a core in its busiest unit, which is
                      loads and stores for all that reads shared memory.

So the FLOPs of the main loop over its cycles come from a difference, where a kernel has a constant that says how
much a pass does (HALVED): the same pipeline with half of it does half the work in as many passes. Attention's
figure is of the whole kernel, with the passes that the compiler assumes on both sides. Half of a loop may be compiled in
another way than all of it, and the difference too small: what shared memory can feed bounds every rate besides.
"""
import dataclasses

# Kernels whose loop does half the work when this constant is halved.
HALVED = {"matmul_tiled": "step_k", "matmul_coopmat": "step_k"}


@dataclasses.dataclass(frozen=True)
class Device:
    driver: str
    units: int           # SIMDs of a compute unit, schedulers of a multiprocessor
    f32: float           # FLOPs a cycle and unit, at the vendor's published rate
    matrix: float = 0    # the same of f16 matrices with f32 sums
    shared_rate: float = 0   # bytes that a compute unit reads from shared memory a cycle; 0: not published
    shared_bytes: int = 0    # of a multiprocessor or core, for NVK, which counts registers only, and ANV
    f32_lanes: int = 32      # of a scheduler, for NVK, which counts issue slots only
    threads: int = 0         # of a vector engine, for ANV
    halves: float = 2        # FLOPs with f16 sums against f32's; 1 where f32 is issued twice a cycle


# f32 rates: AMD "Vega ISA" and "RDNA Shader ISA" guides and the RDNA architecture white paper: 4 SIMDs of 16 lanes
# (GCN), 2 of 32 (RDNA), dual issue in RDNA 3; LDS 128 bytes a cycle and compute unit. Matrices: AMD's GPUOpen page
# on WMMA: 512 FLOPs a cycle and compute unit, and twice as many in RDNA 4. NVIDIA: the white papers of Volta (V100), Turing (TU102) and GA102:
# FP32 lanes of an SM 64, 64, 128; FP16 tensor FLOPs with FP32 sums, on GeForce, 512 an SM and cycle; shared
# memory's size from the CUDA C++ Programming Guide's table by compute capability, 128 bytes a cycle. Apple M1:
# 2.6 TFLOPS (Apple's announcement) of 8 cores at 1.278 GHz: 128 lanes a core. Qualcomm publishes no such rate:
# a multiply-add an instruction and lane is the best that its instruction set has. Intel: the Programmer's Reference
# Manuals and the oneAPI optimization guide's tables of GPU architectures: 8 EUs of 8 lanes and 7 threads a subslice
# (Gen9, Gen11), 16 of them (Xe-LP), 16 engines of 8 lanes and 8 threads a core (Xe-HPG, Xe-LPG), 8 of 16 lanes (Xe2,
# Xe3); 64 KiB of shared memory, 128 from Xe-HPG on; XMX 128 FLOPs of f16 an engine and cycle, 256 in Xe2.
GCN = Device("radv", 4, 32, shared_rate=128)
RDNA = Device("radv", 2, 64, shared_rate=128)
RDNA3 = Device("radv", 2, 128, matrix=256, shared_rate=128, halves=1)
RDNA4 = Device("radv", 2, 128, matrix=512, shared_rate=128, halves=1)
ADRENO = Device("turnip", 1, 2)
GEN9 = Device("anv", 8, 16, shared_bytes=64 << 10, f32_lanes=8, threads=7)
XE_LP = Device("anv", 16, 16, shared_bytes=64 << 10, f32_lanes=8, threads=7)
XE_LPG = Device("anv", 16, 16, shared_bytes=128 << 10, f32_lanes=8, threads=8)
XE_HPG = Device("anv", 16, 16, matrix=128, shared_bytes=128 << 10, f32_lanes=8, threads=8)
XE2 = Device("anv", 8, 32, matrix=256, shared_bytes=128 << 10, f32_lanes=16, threads=8)
DEVICES = {
    "polaris10": GCN, "vega10": GCN, "vega20": GCN, "raven": GCN, "renoir": GCN,
    "navi10": RDNA, "navi21": RDNA, "rembrandt": RDNA, "navi31": RDNA3, "navi33": RDNA3, "phoenix": RDNA3,
    "strix1": RDNA3, "gfx1201": RDNA4,
    "volta": Device("nvk", 4, 32, shared_rate=128, shared_bytes=96 << 10, f32_lanes=16),
    "turing": Device("nvk", 4, 32, matrix=128, shared_rate=128, shared_bytes=64 << 10, f32_lanes=16),
    "ampere-172": Device("nvk", 4, 64, matrix=128, shared_rate=128, shared_bytes=100 << 10, halves=1),
    "ampere-174": Device("nvk", 4, 64, matrix=128, shared_rate=128, shared_bytes=100 << 10, halves=1),
    "adreno630": ADRENO, "adreno660": ADRENO, "adreno730": ADRENO, "adreno740": ADRENO, "adreno750": ADRENO,
    "adreno830": ADRENO,
    "m1": Device("honeykrisp", 4, 64),
    "skl": GEN9, "icl": GEN9, "tgl": XE_LP, "adl": XE_LP, "dg2": XE_HPG, "mtl": XE_LPG, "lnl": XE2, "bmg": XE2, "ptl": XE2,
}
# Whose drivers are made for arm64 alone. A core's multiply-adds a cycle are those that the compiler counts with, and so are
# the 16 bytes a cycle: a load, of four floats at most, is one.
ARM64_DEVICES = {"mali-g310": Device("panvk", 1, 32, shared_rate=16), "mali-g610": Device("panvk", 1, 128, shared_rate=16),
                 "mali-g720": Device("panvk", 1, 256, shared_rate=16), "mali-g725": Device("panvk", 1, 256, shared_rate=16)}
# Of a loop, of one inside, and of one inside that.
PASSES = {"radv": (4, 16, 32), "nvk": (10, 38, 100), "turnip": (1, 1, 1), "honeykrisp": (1, 1, 1),
          "anv": (10, 100, 1000), "panvk": (1, 1, 1)}


@dataclasses.dataclass
class Work:
    """Of one invocation."""
    flops: float
    shared_read: float = 0  # bytes
    matrix: bool = False
    halves: bool = False  # sums in f16, which is what peers do unless asked not to


@dataclasses.dataclass
class Figures:
    spilled: float
    waves: float = None
    cycles: float = None
    flops_per_cycle: float = None  # of a compute unit, a multiprocessor or a core; Qualcomm: of a lane
    share: float = None            # of the published peak
    bound: str = "-"


def ceil_div(a, b):
    return -(-a // b)


def peak_of(device, work):
    """FLOPs a cycle and unit."""
    if work.matrix:
        return device.matrix * (2 if work.halves and device.driver == "nvk" else 1)
    return device.f32 * (device.halves if work.halves else 1)


def tiled_work(c):
    """One pass of matmul_tiled: for a step of K thread_m values and thread_n others make as many products as both. With loads
    two steps ahead a pass is two steps."""
    k = c["step_k"] * max(1, c["ahead"])
    return Work(2 * k * c["thread_m"] * c["thread_n"], 4 * k * (c["thread_m"] + c["thread_n"]))


def coopmat_work(c):
    matrices = c["matrices_m"] * c["matrices_n"]
    k = c["step_k"] * c["ahead"]
    return Work(2 * matrices * c["matrix_m"] * c["matrix_n"] * k / c["subgroup_size"], matrix=True)


def attention_work(c, nested, innermost):
    """attention_tiled: the scores' loop is inside that over blocks of keys, the values' inside that over slices."""
    rows = c["threads"] // c["columns"]
    i, j = c["block_q"] // rows, c["block_k"] // c["columns"]
    value_j = ceil_div(ceil_div(c["value_width"], 4), c["columns"])
    scores = Work(8 * i * j * c["chunk4"], 16 * (i + j) * c["chunk4"])
    values = Work(32 * i * value_j, 16 * (i + 4 * value_j))
    return Work(nested * scores.flops + innermost * values.flops,
                nested * scores.shared_read + innermost * values.shared_read)


def statistics_of(executables):
    out = {}
    for values in executables.values():
        out.update(values)
    return out


def radv_cycles(s, waves, subgroup):
    """Of a wave of 64 on a SIMD, with `waves` of them: half a step may let more of them in."""
    return max(s["Inverse Throughput"], s["Latency"] / waves * (64 / subgroup))


def waves_of(device, s, subgroup, threads, shared_bytes):
    """Subgroups that are at home on a unit at once (NVIDIA: on a multiprocessor)."""
    if device.driver == "radv":
        # RDNA's are counted in waves of 32.
        return s["Subgroups per SIMD"] / (subgroup / 32 if device is not GCN else 1)
    if device.driver == "nvk":
        groups = s["Max warps/SM"]
        if shared_bytes:
            groups = device.shared_bytes // (shared_bytes + 1024) * ceil_div(threads, 32)
        return min(s["Max warps/SM"], groups)
    if device.driver == "anv":
        groups = device.threads
        if shared_bytes:
            groups = device.shared_bytes // shared_bytes * ceil_div(threads, subgroup) / device.units
        return min(device.threads, groups)
    if device.driver == "turnip":
        return s["Max Waves Per Core"]
    return s["Threads"] if device.driver == "panvk" else s["Threads"] / 32


# Each driver's word for what its compiler estimates of a whole walk.
CYCLES = {"radv": "Inverse Throughput", "nvk": "Static cycle count", "anv": "Cycles", "turnip": "Instruction Count",
          "panvk": "Cycles", "honeykrisp": "ALU"}


def rate_of(device, work, more, less, waves, subgroup, times):
    """FLOPs a cycle of a unit, and what bounds them, where `work` is what `more` does and `less` doesn't.

    Some compilers say how many instructions there are, not how many are issued: `times` is how often those are that
    `more` has and `less` hasn't, 0 where that isn't known.
    """
    def difference(word):
        return more[word] - less[word]
    bound = "issue"
    lanes = subgroup
    if device.driver == "radv":
        cycles = radv_cycles(more, waves, subgroup) - (radv_cycles(less, waves, subgroup) if less["Latency"] else 0)
        cycles *= subgroup / 64  # of one subgroup
        if more["Latency"] / waves * (64 / subgroup) > 0.98 * more["Inverse Throughput"]:
            bound = "latency"
    elif device.driver in ("nvk", "anv"):
        nvk = device.driver == "nvk"
        # An engine of Intel's issues an instruction for its lanes a cycle.
        slots = times * difference("Instruction count" if nvk else "Instructions")
        slots *= 1 if nvk or work.matrix else ceil_div(subgroup, device.f32_lanes)
        lanes = 32 if nvk else subgroup
        pipe = work.flops * lanes / peak_of(device, work)
        waiting = difference(CYCLES[device.driver]) / max(waves / (device.units if nvk else 1), 1)
        cycles = max(slots, pipe, waiting)
        if cycles == waiting:
            bound = "latency"
    else:
        cycles = difference(CYCLES[device.driver])
        if device.driver in ("turnip", "panvk"):
            lanes = 1
        if device.driver == "panvk" and more["Load/store"] == more["Cycles"]:
            bound = "loads and stores"
    if cycles <= 0:
        return None, "-"
    peak = peak_of(device, work)
    rate = work.flops * lanes / cycles
    if rate > 0.9 * peak:
        rate, bound = min(rate, peak), "arithmetic"
    if device.shared_rate and work.shared_read:
        fed = device.shared_rate / device.units * work.flops / work.shared_read
        if fed < rate:
            rate, bound = fed, "loads and stores" if device.driver == "panvk" else "shared memory"
    return rate, bound


def figures_of(device_name, kernel):
    """Figures of a line of `vitrine doctor --json`."""
    device = {**DEVICES, **ARM64_DEVICES}[device_name]
    s = statistics_of(kernel["statistics"])
    half = statistics_of(kernel["halved"]["statistics"]) if "halved" in kernel else None
    shader, subgroup = kernel["shader"], max(kernel["subgroup"], 1)
    threads = kernel["workgroup"][0] * kernel["workgroup"][1] * kernel["workgroup"][2]
    once, nested, innermost = PASSES[device.driver]
    waves = waves_of(device, s, subgroup, threads, kernel["shared_bytes"])
    figures = Figures(max(kernel["spills"] or 0, kernel["scratch_bytes"] or 0), waves, s[CYCLES[device.driver]])

    # Work of an invocation, in as many passes as the compiler assumes.
    work, less, times = None, dict.fromkeys(s, 0), 0
    if shader in HALVED and half is not None:
        one = tiled_work(kernel["constants"]) if shader == "matmul_tiled" else coopmat_work(kernel["constants"])
        work = Work(once * one.flops / 2, once * one.shared_read / 2, one.matrix)
        less, times = half, once
    elif shader == "attention_tiled":
        work = attention_work(kernel["constants"], nested, innermost)
    if work:
        rate, figures.bound = rate_of(device, work, s, less, waves, subgroup, times)
        if rate:
            figures.flops_per_cycle = rate * device.units
            figures.share = rate / peak_of(device, work)
    return figures
