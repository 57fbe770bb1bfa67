#!/usr/bin/env python3
"""Puts our kernels beside ggml's and ncnn's on every vendor's compiler: FLOPs per cycle of the main loop, spills, occupancy.

    bench/zoo_peers.py --devices navi31,turing     prints the table
    bench/zoo_peers.py --write                     writes it into docs/zoo_peers.md, which also says how it is made
    bench/zoo_peers.py --both-ways                 our products by this measure, and by zoo.py's

All programs run on make-believe GPUs (tests/zoo/with_device), where nothing executes, under a Vulkan layer
(bench/capture) that compiles each of their pipelines once more with one and with two passes through its main loop:
what two cost more than one is the cost of a pass, whoever wrote the shader. Of what each system's own heuristics choose for
ViT-B/16, batch 1 and 8, the best kernel stands in the table. Needs a build with -DVITRINE_BUILD_BENCH=ON and
ggml (Debian: libggml-dev libggml0-backend-vulkan); ncnn (PyPI) where --packages names the folder that it is in.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from zoo import NOT_INSTALLED, ROOT, text_of
from zoo_figures import (DEVICES, HALVED, Work, attention_work, coopmat_work, figures_of, peak_of, rate_of, statistics_of,
                         tiled_work, waves_of)

TABLE = ROOT / "docs/zoo_peers.md"
MARK = "<!-- bench/zoo_peers.py --write makes all that follows -->"
SHOWN = ["vega10", "navi21", "navi31", "gfx1201", "turing", "ampere-174", "tgl", "dg2", "bmg", "adreno740", "m1"]
HEADS = 12
COLUMNS = ["device", "work", "system", "kernel", "tile", "threads", "registers", "spilled", "shared", "waves",
           "FLOP/cycle", "of peak", "bound by", "ours / theirs"]
REGISTERS = ["VGPRs", "Number of GPRs", "Registers used", "GPRs", "Max live registers"]
SPILLS = ["Spilled VGPRs", "Scratch size", "Spills to memory", "Fills from memory", "SLM size", "STP Count", "LDP Count",
          "Spills", "Fills", "Scratch", "Spill Count", "Fill Count"]
# How often compilers take a loop inside the main loop, and one inside that, to be walked when the main loop is unrolled.
INNER_PASSES = {"radv": (8, 32), "nvk": (10, 38), "turnip": (1, 1), "honeykrisp": (1, 1), "anv": (10, 100)}
OFF = {"GGML_VK_DISABLE_F16": "1", "GGML_VK_DISABLE_COOPMAT": "1"}
# What ggml is asked for: the work it is compared in, the types, and how.
GGML = [("f32", "ggml", ["--dtype", "f32", "--sums", "f32"], OFF),
        ("f32", "ggml, operands in f16", ["--dtype", "f32", "--sums", "f32"], {}),
        ("f16", "ggml", ["--dtype", "f16", "--sums", "f32"], {}),
        ("f16", "ggml, sums in f16", ["--dtype", "f16"], {})]

# Of ncnn likewise: a model's type is nothing to it.
NCNN = [("f32", "ncnn", ["--plain"]),
        ("f16", "ncnn", ["--options", "use_fp16_arithmetic=0"]),
        ("f16", "ncnn, sums in f16", [])]
SYSTEMS = ["Vitrine", "ggml", "ggml, operands in f16", "ggml, sums in f16", "ncnn", "ncnn, sums in f16"]
OWN_CONSTANTS = 233  # ncnn's shaders have the workgroup's size from here on
# Constant 9 is the length of a product's loop; at these places of the push constants stands how the operands are packed, which
# is asked inside. Compilers are told that they aren't, as all but proj's are that way (proj's is left out).
NCNN_KNOWN = "+constant9=0+push10=1+push11=1+push12=1"
NCNN_PACKED = {15: (11, 12), 18: (11, 12), 27: (10, 11)}  # by the number of a product's constants


def run_captured(device, command, environment, more=""):
    """A program's stdout, and what the layer wrote of its pipelines, with the names that it gave them. `more` is of
    bench/capture/layer.cpp."""
    with tempfile.TemporaryDirectory() as folder:
        capture = pathlib.Path(folder) / "pipelines"
        layer = {"VK_LAYER_PATH": str(ROOT / "build/release/bench"), "VK_INSTANCE_LAYERS": "VK_LAYER_VITRINE_capture",
                 "VITRINE_CAPTURE": f"{capture}{more}", "VITRINE_CACHE_DIR": folder, "VITRINE_DEVICE": ""}
        if DEVICES[device].driver == "anv":
            layer["VITRINE_CAPTURE"] += "+code"
        done = subprocess.run([ROOT / "tests/zoo/with_device", device, *command], capture_output=True, text=True,
                              env={**os.environ, **layer, **environment})
        if done.returncode == NOT_INSTALLED:
            sys.exit(f"zoo_peers.py: {done.stderr.strip()}")
        lines = [json.loads(line) for line in capture.read_text().splitlines()] if capture.exists() else []
    if not done.stdout.strip() or not lines:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} on '{device}' exited with {done.returncode}: "
                           f"{(done.stderr.strip().splitlines() or ['nothing on stderr'])[-1]}")
    names = {line["pipeline"]: line["name"] for line in lines if "name" in line}
    launched = {line["pipeline"]: line["pushed"] for line in lines if "groups" in line}
    for line in lines:
        if "error" in line:
            raise RuntimeError(f"{names.get(line['pipeline'], 'a pipeline')} on '{device}': {line['error']}")
    return done.stdout, [{**line, "name": names.get(line["pipeline"], ""), "pushed": launched.get(line["pipeline"])}
                         for line in lines if "constants" in line]


def statistics(figures):
    return statistics_of({i: one["statistics"] for i, one in enumerate(figures)})


def without_hashes(statistics):
    return {word: value for word, value in statistics.items() if "hash" not in word.lower()}


def doctor(device, *more):
    """What `vitrine doctor` says of ViT-B/16's kernels, line by line, and what the layer wrote meanwhile."""
    stdout, pipelines = run_captured(device, [ROOT / "build/release/vitrine", "doctor", "--compile-only", "--json",
                                              "--arch", "vit_base_patch16_224", *more], {})
    return [json.loads(line) for line in stdout.splitlines() if line.startswith("{")], pipelines


def vitrine_kernels(device, lines, pipelines):
    """Each product and attention of ours that ViT-B/16 runs: what it is, its precision, name and tile, the work of a
    pass, 1 or, where loops are left inside the main loop, 0, and the pipeline."""
    inner, innermost = INNER_PASSES[DEVICES[device].driver]
    out = []
    for kernel in (line for line in lines if "shader" in line):
        # A pipeline is known by all that its compiler says of it.
        own = without_hashes(statistics_of(kernel["statistics"]))
        found = [one for one in pipelines
                 if one["workgroup"] == kernel["workgroup"] and without_hashes(statistics(one["figures"])) == own]
        shader, c, precision = kernel["shader"], kernel.get("constants"), kernel["variant"].split("_")[0]
        if not found or not found[0].get("passes"):
            continue
        name = f"{shader}/{kernel['variant']}"
        if shader == "matmul_tiled":
            precision = "f16" if "f16" in kernel["variant"] else "f32"
            out.append(("product", precision, name, kernel["note"], tiled_work(c), 1, found[0]))
        elif shader == "matmul_coopmat":
            out.append(("product", "f16", name, kernel["note"], coopmat_work(c), 1, found[0]))
        elif shader == "attention_tiled" and c["key_width"] == c["value_width"] == 64:
            out.append(("attention", precision, name, kernel["note"], attention_work(c, inner, innermost), 0, found[0]))
        elif shader == "attention_coopmat" and c["key_width"] == c["value_width"] == 64:
            scores = 2 * c["subgroups"] * c["blocks_m"] * c["matrix_m"] * c["block_k"] * 64 / c["local_size"]
            kept = c["keep_queries"]
            work = Work(scores * (2 if kept else 1 + inner), matrix=True)
            out.append(("attention", "f16", name, kernel["note"], work, int(kept), found[0]))
        elif shader == "attention_coopmat_columns" and c["key_width"] == c["value_width"] == 64:
            scores = 2 * c["subgroups"] * c["blocks_n"] * c["matrix_n"] * c["block_k"] * 64 / c["local_size"]
            out.append(("attention", "f16", name, kernel["note"], Work(2 * scores, matrix=True), 1, found[0]))
    return out


def ggml_product(c, shared_bytes, name, halves):
    """ggml's mul_mm: a pass brings BK of K, which is no constant of the pipeline. But shared memory is BM + BN rows
    of BK / 2 pairs and a padding of one pair; with matrices of f16 and four pairs, and a stage for each subgroup behind."""
    threads, m, n = c["0"], c["1"], c["2"]
    matrices = c.get("9", 1) > 1
    if matrices:
        stages = {c["7"] * c["8"] * threads // c["10"] * size for size in (2, 4)}
        fitting = [(k, 2) for k in (16, 32, 64) for stage in stages if (m + n) * (k + 8) * 2 + stage == shared_bytes]
    else:
        fitting = [(k, size) for k in (16, 32, 64) for size in (2, 4) if (m + n) * (k + 2) * size == shared_bytes]
    if len(fitting) != 1:
        raise RuntimeError(f"{name}: {shared_bytes} bytes of shared memory for tiles of {m} x {n} fit {len(fitting)} steps of K")
    k, size = fitting[0]
    work = Work(2 * m * n * k / threads, matrix=matrices, halves=halves)
    if matrices:
        return work, f"{m}x{n} step {k} of {c['7']}x{c['8']}x{c['9']}"
    # For each of K an invocation reads a column of its block and a row.
    rows = c["6"] * c["7"]
    columns = m * n // threads // rows
    work.shared_read = k * (rows + columns) * size
    return work, f"{m}x{n} step {k}, {rows}x{columns} a thread"


def ggml_attention(c, name, halves):
    """ggml's flash_attn: a pass takes Bc keys for Br queries."""
    threads, rows, keys, key_width, value_width = (c[str(i)] for i in range(5))
    work = Work(2 * rows * keys * (key_width + value_width) / threads, matrix="_cm" in name, halves=halves)
    return work, f"{rows}x{keys}"


def ggml_kernels(device):
    """The same of ggml, with the system's name before the kernel's; and its version."""
    out, version, seen = [], "", set()
    for precision, system, arguments, switches in GGML:
        for batch in ("1", "8"):
            command = [ROOT / "build/release/bench/ggml_operators", "--device", "0", "--batch", batch, *arguments]
            stdout, pipelines = run_captured(device, command, {"GGML_VK_DEBUG_MARKERS": "1", **switches})
            version = json.loads(stdout.splitlines()[-1])["version"]
            for one in pipelines:
                name, c = one["name"], one["constants"]
                key = (system, precision, name, json.dumps(c))
                if key in seen or not one.get("passes"):
                    continue
                seen.add(key)
                halves = "f16acc" in name or (name.startswith("flash_attn") and system.endswith("sums in f16"))
                if name.startswith("matmul_f"):
                    work, tile = ggml_product(c, one["shared_bytes"], name, halves)
                    out.append(("product", precision, system, name, tile, work, 1, one))
                elif name.startswith("flash_attn_f"):
                    work, tile = ggml_attention(c, name, halves)
                    out.append(("attention", precision, system, name, tile, work, 1, one))
    return out, version


def ncnn_kernel(one, number_size, halves):
    """What a pipeline of ncnn's is: the kind of work, the shader's name, its tile and the work of a pass. They have no names, but
    each shader has a number of constants of its own. Nothing for what copies, packs and adds."""
    c = {int(i): value for i, value in one["constants"].items() if int(i) < OWN_CONSTANTS}
    threads = one["workgroup"][0] * one["workgroup"][1] * one["workgroup"][2]
    if sorted(c) != list(range(len(c))) or one["pushed"] is None:
        return None
    if any(one["pushed"][i] != 1 for i in NCNN_PACKED.get(len(c), ())):
        return None
    if len(c) == 15 and one["workgroup"] == [8, 8, 1]:  # 4 x 4 sums an invocation, rows of 8 of K and one of padding
        size = one["shared_bytes"] // (2 * 8 * (8 + 1) * 4)
        work = Work(2 * 8 * 4 * 4, 8 * (4 + 4) * size, halves=halves)
        return "product", "gemm", "32x32 step 8, 4x4 a thread", work
    if len(c) == 18:  # the same without shared memory: a subgroup's invocations hand each other what they loaded
        m, n, k = (c[i] for i in (15, 16, 17))
        return "product", "gemm_sg", f"{4 * m}x{4 * n} step {k}, 4x4 a thread", Work(2 * k * 4 * 4, halves=halves)
    if len(c) == 27:
        m, n, k, subgroup, blocks_m, blocks_n, blocks_k, groups_m, groups_n = (c[i] for i in range(18, 27))
        work = Work(2 * m * n * k * blocks_m * blocks_n * blocks_k / subgroup, matrix=True, halves=halves)
        tile = f"{m * blocks_m * groups_m}x{n * blocks_n * groups_n} step {k * blocks_k} of {m}x{n}x{k}"
        return "product", "gemm_cm", tile, work
    # Attention is two products, without tiles: a score, and four of the values, an invocation. A pass reads four of Q
    # and of K, or a score and four of V, which caches give no faster than shared memory would.
    if len(c) in (4, 6) and one.get("shared_bytes") == 0 and threads >= 64 and c[len(c) - 1 if len(c) == 4 else 4] == HEADS:
        scores = len(c) == 6
        work = Work(2 * 4, (8 if scores else 5) * number_size, halves=halves)
        return ("scores", "qk_cross", "none", work) if scores else ("values", "qkv_cross", "none", work)
    return None


def ncnn_kernels(device, packages):
    """The same as of ggml, of what ncnn launches; attention in its two halves."""
    out, version = [], ""
    for precision, system, arguments in NCNN:
        command = [sys.executable, ROOT / "bench/peers/ncnn_operators.py", *arguments]
        stdout, pipelines = run_captured(device, command, {"PYTHONPATH": str(packages.resolve())}, NCNN_KNOWN)
        version = json.loads(stdout.splitlines()[-1])["version"]
        for one in pipelines:
            found = ncnn_kernel(one, 4 if precision == "f32" else 2, system.endswith("sums in f16"))
            if not found or not one.get("passes"):
                continue
            kind, name, tile, work = found
            out.append((kind, precision, system, name, tile, work, 1, one))
    missing = {(kind, precision, system) for precision, system, _ in NCNN for kind in ("product", "scores", "values")}
    missing -= {kernel[:3] for kernel in out}
    if missing:
        raise RuntimeError(f"ncnn on '{device}': no kernel found for {sorted(missing)}; is it another version than the table's?")
    return out, version


def one_after_the_other(scores, values):
    """A row of ncnn's attention from those of its two halves, which are as much work."""
    slower, other = sorted((scores, values), key=lambda row: row[1])
    row = list(slower[0])
    row[1], row[3] = row[1].replace("scores", "attention").replace("values", "attention"), f"{scores[0][3]}, {values[0][3]}"
    for i in (COLUMNS.index("registers"), COLUMNS.index("spilled")):
        row[i] = max(row[i], other[0][i], key=float)
    i = COLUMNS.index("waves")
    row[i] = min(row[i], other[0][i], key=float)
    if not slower[1]:
        return row, 0
    flops = 2 / (1 / slower[1] + 1 / other[1])
    share = float(row[11].removesuffix(" %")) * flops / slower[1]
    row[10], row[11] = text_of_rate(flops), f"{share:.0f} %"
    return row, flops


def issue_cycles(assembly, lanes):
    """Cycles in which Intel's engine issues a pass through the main loop, read from its assembly: an instruction takes
    as many as it has lanes over the engine's, and loops inside are walked as often as the compiler assumes. And the
    number of those."""
    lines = assembly.splitlines()
    labels = {line.rstrip(":"): i for i, line in enumerate(lines) if re.fullmatch(r"LABEL\d+:", line)}
    loops = [(labels[found[1]], i) for i, line in enumerate(lines) if (found := re.match(r".*while\(.*JIP:\s+(LABEL\d+)", line))]
    begin, end = max(loops, key=lambda loop: (any("barrier" in line for line in lines[slice(*loop)]), loop[1] - loop[0]))
    inside = [(first, last) for first, last in loops if begin < first and last < end]
    cycles = 0
    for i in range(begin, end):
        found = re.match(r"(?:\(.*?\) )?[a-z][\w.]*(?: \w+)?\((\d+)\)", lines[i])
        depth = sum(first <= i < last for first, last in inside)
        cycles += -(-int(found[1]) // lanes) * (1, *INNER_PASSES["anv"])[min(depth, 2)] if found else 0
    return cycles, len(inside)


def pass_of(driver, s, passes):
    """The statistics between which one pass through the main loop lies, and how many loops are left inside it."""
    none, one, two = passes
    if driver not in ("turnip", "honeykrisp"):
        return two, one, 0
    inside = s["Loops"] - none["Loops"] - 1
    # Where the compiler hasn't unrolled two passes, it counts those that are left once.
    unrolled = two["Loops"] - one["Loops"] == inside
    return (two, one, inside) if unrolled else (s, none, inside)


def text_of_rate(flops):
    return "-" if not flops else f"{flops:.2f}" if flops < 10 else text_of(flops)


def row_of(device_name, kind, precision, system, name, tile, work, times, pipeline):
    """A row of the table, and its FLOPs per cycle."""
    device = DEVICES[device_name]
    subgroup = max(pipeline["figures"][0]["subgroup"], 1)
    threads = pipeline["workgroup"][0] * pipeline["workgroup"][1] * pipeline["workgroup"][2]
    s = statistics(pipeline["figures"])
    # Of what the reader of SPIR-V can't tell, Intel's compiler says it.
    shared = pipeline.get("shared_bytes") or s.get("Workgroup Memory Size", 0)
    waves = waves_of(device, s, subgroup, threads, shared)
    if device.driver == "anv":
        assembly = pipeline.get("known", pipeline["figures"])[0]["code"]["GEN Assembly"]
        cycles, inside = issue_cycles(assembly, device.f32_lanes)
        rate = work.flops * subgroup / max(cycles, work.flops * subgroup / peak_of(device, work))
        bound = "issue" if rate < 0.9 * peak_of(device, work) else "arithmetic"
    else:
        # AMD's compiler takes what stands in a branch, or behind a return, for half as likely.
        if device.driver == "radv":
            half = 0.5 ** pipeline["loop"]["selections"]
            work = Work(work.flops * half, work.shared_read * half, work.matrix, work.halves)
        more, less, inside = pass_of(device.driver, s, [statistics(passes) for passes in pipeline["passes"]])
        rate, bound = rate_of(device, work, more, less, waves, subgroup, times)
    if bound == "shared memory" and not shared:
        bound = "cache"
    # How often a loop is walked that should have been unrolled, the compiler doesn't know.
    if times and inside > 0:
        rate, bound = None, "an inner loop"
    registers = next((s[word] for word in REGISTERS if word in s), None)
    spilled = max((s[word] for word in SPILLS if word in s), default=0)
    flops = rate * device.units if rate else None
    share = f"{100 * rate / peak_of(device, work):.0f} %" if rate else "-"
    return [device_name, f"{kind} {precision}", system, name, tile.replace(" ", "_"), *map(text_of, [
        threads, registers, spilled, shared, waves]), text_of_rate(flops), share, bound], flops or 0


def rows_of(device, packages):
    """The best kernel of each system and work; ncnn's where there is a folder of packages."""
    lines, pipelines = doctor(device)
    ours = vitrine_kernels(device, lines, pipelines)
    theirs, version = ggml_kernels(device)
    if packages:
        more, ncnn_version = ncnn_kernels(device, packages)
        theirs, version = theirs + more, f"{version}; {ncnn_version}"
    best = {}
    every = [(kind, precision, "Vitrine", *rest) for kind, precision, *rest in ours] + theirs
    for kernel in every:
        row, flops = row_of(device, *kernel)
        key = (row[1], row[2])
        if key not in best or flops > best[key][1]:
            best[key] = row, flops
    for precision, system, _ in NCNN if packages else []:
        halves = [best.pop((f"{half} {precision}", system)) for half in ("scores", "values")]
        best[f"attention {precision}", system] = one_after_the_other(*halves)
    works = [f"{kind} {precision}" for kind in ("product", "attention") for precision in ("f32", "f16")]
    out = []
    for work in works:
        own = best.get((work, "Vitrine"), (None, 0))[1]
        for system in SYSTEMS:
            if (work, system) not in best:
                continue
            row, flops = best[work, system]
            out.append(row + ["" if system == "Vitrine" or not flops else f"{own / flops:.2f}"])
    return out, lines[-1]["driver_info"], version


def both_ways(device):
    """Our products' tiles, with FLOPs per cycle by passes through the main loop, and by half a step of K."""
    lines, pipelines = doctor(device, "--halve", "step_k")
    known = {json.dumps(without_hashes(statistics_of(line["statistics"]))): line for line in lines if "shader" in line}
    for kernel in vitrine_kernels(device, lines, pipelines):
        line = known[json.dumps(without_hashes(statistics(kernel[-1]["figures"])))]
        if line["shader"] not in HALVED:
            continue
        row, flops = row_of(device, *kernel[:2], "Vitrine", *kernel[2:])
        halved = figures_of(device, line)
        yield [device, row[3], row[4], f"{flops:.1f}", row[-1], text_of(halved.flops_per_cycle), halved.bound]


def lines_of(answers):
    drivers = sorted({driver for _, driver, _ in answers})
    versions = sorted({version for _, _, version in answers})
    yield f"Compilers of {', '.join(drivers)}; {', '.join(versions)}; {datetime.date.today().strftime('%-d %B %Y')}."
    yield ""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|" + "---|" * len(COLUMNS)
    for rows, _, _ in answers:
        for row in rows:
            yield "| " + " | ".join(row) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", help=f"by tests/zoo/with_device's names, which these are of: {','.join(SHOWN)}")
    parser.add_argument("--write", action="store_true", help="write the document")
    parser.add_argument("--both-ways", action="store_true", help="our products by passes, and by half a step of K")
    parser.add_argument("--packages", type=pathlib.Path, help="folder that pip install --target put ncnn into")
    options = parser.parse_args()
    devices = options.devices.split(",") if options.devices else SHOWN
    unknown = [device for device in devices if device not in DEVICES]
    if unknown:
        parser.error(f"--devices has '{unknown[0]}', there are: {', '.join(DEVICES)}")
    if options.write and devices != SHOWN:
        parser.error("--write needs all devices: it writes the whole table")
    if options.packages and not (options.packages / "ncnn").is_dir():
        parser.error(f"--packages: there is no ncnn in '{options.packages}'; pip install --no-deps --target FOLDER ncnn")
    for needed in ("vitrine", "bench/libvitrine_capture.so", "bench/ggml_operators"):
        if not (ROOT / "build/release" / needed).exists():
            parser.error(f"there is no build/release/{needed}; build it, with -DVITRINE_BUILD_BENCH=ON and ggml installed")
    if options.both_ways:
        for device in devices:
            for row in both_ways(device):
                print("  ".join(row))
        return 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda device: rows_of(device, options.packages), devices))
    text = "\n".join(lines_of(answers)) + "\n"
    if options.write:
        above = TABLE.read_text().split(MARK, 1)[0]
        TABLE.write_text(f"{above}{MARK}\n\n{text}")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
