#!/usr/bin/env python3
"""Draws a model's layers under the roof that a device's arithmetic and memory make, and says where the time goes.

    bench/roofline.py --arch vit_base_patch16_224 --batch 1 --dtype f32 --out docs/images/roofline.svg

The roof is measured by `vitrine bench --op`: the best rate of the matrix products of --gemm, and the bytes a second
of adding two large tensors (--stream). The points are `vitrine bench`'s: operations and bytes as the plan counts
them, each tensor read or written once, and the time by the device's own clock. The second table takes the best
product's rate for what the whole model could run at, and says which layers lose how much of it.

--from FILE takes what an earlier call kept with --json instead of measuring.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

from roofline_picture import picture

HERE = pathlib.Path(__file__).resolve().parent


def bench(options, *words):
    command = [options.vitrine, "bench", *words, "--dtype", options.dtype, "--seconds", str(options.seconds), "--json",
               *(["--device", options.device] if options.device else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)  # its complaints go to stderr
    if done.returncode != 0:
        sys.exit(f"roofline.py: {' '.join(command)} ended with status {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(options):
    # The ceilings before and after: a machine that slows down shows.
    ceilings = [("matmul", options.gemm), ("add", options.stream)]
    before = [line for op, shapes in ceilings for line in bench(options, "--op", op, "--shape", shapes)]
    model, = bench(options, "--arch", options.arch, "--batch", str(options.batch))
    after = [line for op, shapes in ceilings for line in bench(options, "--op", op, "--shape", shapes)]
    return {"date": time.strftime("%Y-%m-%d"), "model": model, "ceilings": [*before, *after]}


def spread_of(ceilings):
    """The largest difference between a ceiling's first and second measurement, as a part of the larger."""
    by_shape = {}
    for line in ceilings:
        by_shape.setdefault((line["op"], line["shape"]), []).append(line["median_ms"])
    return max(1 - min(times) / max(times) for times in by_shape.values())


def operators_table(model, gemm, bandwidth):
    lines = ["| layer | operator | dispatches | ms | FLOP/byte | GFLOP/s | GB/s | of the roof |", "|---|---|---|---|---|---|---|---|"]
    for row in model["layers"]:
        seconds = row["ms"] / 1e3
        reached = max(row["flops"] / gemm, row["bytes"] / bandwidth) / 1e9 / seconds
        lines.append(f"| `{row['layer']}` | {row['operator']} | {row['dispatches']} | {row['ms']:.3f} | "
                     f"{row['flops'] / row['bytes']:.1f} | {row['gflops']:.1f} | {row['bytes'] / seconds / 1e9:.1f} | "
                     f"{100 * reached:.0f} % |")
    return "\n".join(lines)


def losses(model, gemm):
    """Rows of (what, share of the time, rate, share of the time that is lost against the best product)."""
    all_ms = model["median_ms"]
    rows = []
    for row in model["layers"]:
        ideal = row["flops"] / gemm / 1e6  # ms
        rows.append((f"`{row['layer']}`", row["ms"] / all_ms, row["gflops"], (row["ms"] - ideal) / all_ms))
    rows.sort(key=lambda row: -row[3])
    profiled = sum(row["ms"] for row in model["layers"])
    rows.append(("copies, submission, waiting; less what the profile's own stops cost", (all_ms - profiled) / all_ms, None,
                 (all_ms - profiled) / all_ms))
    return rows


def losses_table(model, gemm):
    lines = ["| layer | of the time | GFLOP/s | lost against the best product |", "|---|---|---|---|"]
    for what, share, rate, lost in losses(model, gemm):
        lines.append(f"| {what} | {100 * share:.1f} % | {'–' if rate is None else f'{rate:.1f}'} | {100 * lost:.1f} % |")
    lines.append(f"| **all** | 100 % | {model['gflops']:.1f} | {100 * (1 - model['gflops'] / gemm):.1f} % |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", default=str(HERE.parent / "build" / "release" / "vitrine"))
    parser.add_argument("--device", default="")
    parser.add_argument("--arch", default="vit_base_patch16_224")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--dtype", default="f32", choices=("f32", "f16"))
    parser.add_argument("--gemm", default="197x768x3072,197x3072x768,1576x3072x768",
                        help="MxNxK of the products that the best rate comes from, with commas")
    parser.add_argument("--stream", default="32768x1024", help="ROWSxCOLUMNS of the tensors that are added")
    parser.add_argument("--seconds", type=float, default=3, help="that each measurement takes")
    parser.add_argument("--from", dest="kept", type=pathlib.Path, help="a file that --json wrote")
    parser.add_argument("--json", type=pathlib.Path, help="file for all that was measured")
    parser.add_argument("--out", type=pathlib.Path, help="file for the picture, an SVG")
    options = parser.parse_args()

    measured = json.loads(options.kept.read_text()) if options.kept else measure(options)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1) + "\n")
    model, ceilings = measured["model"], measured["ceilings"]
    if not model["layers"]:
        sys.exit(f"roofline.py: '{model['device']}' has no timestamps, so no layer has a time")
    best = max((line for line in ceilings if line["op"] == "matmul"), key=lambda line: line["gflops"])
    bandwidth = max(line["gbytes_per_second"] for line in ceilings if line["op"] == "add")
    gemm = best["gflops"]
    title = f"{model['arch']}, batch {model['batch']}, {model['dtype']}"
    print(f"{title}, on {model['device']} ({model['driver']}), {measured['date']}\n")
    print(f"The best product, {best['shape']} by {best['kernel']}: {gemm:.1f} GFLOP/s. Adding two tensors: "
          f"{bandwidth:.1f} GB/s. Both were measured before and after the model and differ by at most "
          f"{100 * spread_of(ceilings):.0f} %. The whole model: {model['gflops']:.1f} GFLOP/s, "
          f"{100 * model['gflops'] / gemm:.0f} % of the best product.\n")
    print(operators_table(model, gemm, bandwidth) + "\n")
    print(losses_table(model, gemm))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(picture(model, gemm, bandwidth, title, f"{model['device']}, {measured['date']}"))


if __name__ == "__main__":
    main()
