#!/usr/bin/env python3
"""What Python costs beside the tool: a call of a model, a folder of JPEGs, and memory under many threads.

    PYTHONPATH=build/release/python bench/python_overhead.py --vitrine build/release/vitrine

`call` puts the median and the least time of model(x) at batch 1 beside those that `vitrine bench` gives, which copies
neither image nor logits; and the CPU time of the calling thread beside that of a run with the copies and what is inside
the driver (`--host-time`), both without what reading the clocks takes: what differs is the way through Python, and it shows
on a busy machine too. `embed` puts a Python process that
embeds a folder and saves the rows beside `vitrine embed`: each from its start to its end, on the same pictures, with
a check that both wrote the same bytes. Both are measured in turns. `threads` has eight threads call two models for so
many seconds and says how the process has grown meanwhile. Needs numpy and pillow.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

CALLS = """
import sys, time, numpy, vitrine
arch, overrides, runs = sys.argv[1], sys.argv[2].split(), int(sys.argv[3])
model = vitrine.load(arch=arch, overrides=overrides)
c = model.config
x = numpy.random.default_rng(1).standard_normal((1, c["channels"], c["image_height"], c["image_width"])).astype("float32")
for _ in range(5):
    model(x)
times, cpu, clock = [], [], []
for _ in range(runs):
    cpu_start, start = time.thread_time(), time.perf_counter()
    model(x)
    cpu_end, end = time.thread_time(), time.perf_counter()
    times.append(end - start)
    cpu.append(cpu_end - cpu_start)
    model(x)
    cpu_start, start = time.thread_time(), time.perf_counter()
    cpu_end, end = time.thread_time(), time.perf_counter()
    clock.append(cpu_end - cpu_start)
median = lambda values: sorted(values)[runs // 2]
print(median(times) * 1e3, min(times) * 1e3, (median(cpu) - median(clock)) * 1e3)
"""
EMBED = """
import pathlib, sys, numpy, vitrine
arch, overrides, folder, out = sys.argv[1], sys.argv[2].split(), pathlib.Path(sys.argv[3]), sys.argv[4]
numpy.save(out, vitrine.load(arch=arch, overrides=overrides).embed(sorted(folder.glob("*.jpg"))))
"""
THREADS = """
import pathlib, re, sys, threading, time, numpy, vitrine
seconds = float(sys.argv[1])
models = [vitrine.load(arch="vit_tiny_patch16_224", overrides=["depth=1", f"image_size={size}"]) for size in (32, 48)]
inputs = [numpy.random.default_rng(i).standard_normal((2, 3, size, size)).astype("float32") for i, size in enumerate((32, 48))]
expected = [model(x).tobytes() for model, x in zip(models, inputs)]
picture = numpy.random.default_rng(3).integers(0, 256, (60, 60, 3), numpy.uint8)
def kilobytes():
    return int(re.search(r"VmRSS:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
counts, wrong = [0] * 8, []
until = [0.0]
def work(place):
    model, x, wanted = models[place % 2], inputs[place % 2], expected[place % 2]
    while time.perf_counter() < until[0]:
        if model(x).tobytes() != wanted:
            wrong.append(place)
        if counts[place] % 8 == 0:
            model.embed([picture])
        counts[place] += 1
def go(length):
    until[0] = time.perf_counter() + length
    threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
go(seconds / 10)  # what a process takes once
before = kilobytes()
counts[:] = [0] * 8
go(seconds)
print(sum(counts), before, kilobytes(), len(wrong), min(counts))
"""


def python(program, *arguments):
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"python_overhead.py: Python's side failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def tool(options, *arguments):
    done = subprocess.run([options.vitrine, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"python_overhead.py: vitrine ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def model_flags(options):
    return ["--arch", options.arch, *(word for field in options.set for word in ("--set", field))]


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def call(options):
    ours, theirs = [], []
    for _ in range(options.rounds):
        line = tool(options, "bench", *model_flags(options), "--batch", 1, "--runs", options.runs, "--host-time", "--json")
        found = json.loads(line.splitlines()[-1])
        host = found["host"]
        cpu = sum(host[part] for part in ("median_us", "driver_us", "copy_in_us", "copy_out_us"))
        theirs.append((found["median_ms"], found["min_ms"], cpu / 1e3))
        ours.append(tuple(map(float, python(CALLS, options.arch, " ".join(options.set), options.runs).split())))
    for i, name in enumerate(("median", "least", "CPU time of the calling thread, median")):
        a, b = [one[i] for one in ours], [one[i] for one in theirs]
        more = [1e3 * (x - y) for x, y in zip(a, b)]
        print(f"call, {name} of {options.runs}: model(x) {spread(a)} ms, vitrine bench {spread(b)} ms, "
              f"more by {statistics.median(more):.0f} us ({min(more):.0f} to {max(more):.0f})")


def embed(options, folder):
    from PIL import Image
    import numpy

    rng = numpy.random.default_rng(1)
    pictures = folder / "pictures"
    pictures.mkdir()
    for i in range(options.pictures):
        small = Image.fromarray(rng.integers(0, 256, (9, 12, 3), numpy.uint8))
        small.resize((500, 375), Image.Resampling.BICUBIC).save(pictures / f"{i:05}.jpg", quality=90)
    paths = sorted(pictures.glob("*.jpg"))
    ours, theirs = [], []
    for _ in range(options.rounds):
        start = time.perf_counter()
        tool(options, "embed", *paths, *model_flags(options), "--out", folder / "tool.npy")
        middle = time.perf_counter()
        python(EMBED, options.arch, " ".join(options.set), pictures, folder / "python.npy")
        ours.append(time.perf_counter() - middle)
        theirs.append(middle - start)
    same = (folder / "tool.npy").read_bytes() == (folder / "python.npy").read_bytes()
    if not same:
        sys.exit("python_overhead.py: the two wrote different rows")
    ratios = [a / b for a, b in zip(ours, theirs)]
    print(f"embed of {options.pictures} JPEGs: Python {spread(ours)} s, vitrine embed {spread(theirs)} s, "
          f"{statistics.median(ratios):.3f} times as long ({min(ratios):.3f} to {max(ratios):.3f}), the same bytes")


def threads(options):
    calls, before, after, wrong, least = map(int, python(THREADS, options.seconds).split())
    if wrong:
        sys.exit(f"python_overhead.py: {wrong} results of threads were wrong")
    print(f"threads: {calls} calls by 8 threads of 2 models in {options.seconds:g} s (at least {least} each), all right; "
          f"resident {before / 1024:.1f} MiB before, {after / 1024:.1f} MiB after")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", default="build/release/vitrine")
    parser.add_argument("--only", choices=["call", "embed", "threads"])
    parser.add_argument("--arch", default="vit_tiny_patch16_224")
    parser.add_argument("--set", action="append", default=[], help="fields of the configuration, KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=100, help="calls a round")
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    if not os.access(options.vitrine, os.X_OK):
        sys.exit(f"python_overhead.py: found no program {options.vitrine}, expected the built tool (--vitrine)")
    if options.only in (None, "call"):
        call(options)
    if options.only in (None, "embed"):
        with tempfile.TemporaryDirectory() as folder:
            embed(options, pathlib.Path(folder))
    if options.only in (None, "threads"):
        threads(options)


if __name__ == "__main__":
    main()
