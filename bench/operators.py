#!/usr/bin/env python3
"""Times single operators of Vitrine beside PyTorch's, in turns, on data that lies on the device.

    bench/operators.py --gpu cuda                                    # what a ViT's largest layers need, in f16
    bench/operators.py matmul:197x3072x768 attention:1x197x12x64 --dtype f32

matmul:MxNxK is torch.matmul's x @ w.T, attention:IMAGESxTOKENSxHEADSxWIDTH is scaled_dot_product_attention, both as
`vitrine bench --op` has them. Both sides compare a few rows of their results with float64; who is wrong gets no time.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from systems import Server, ending, openblas

HERE = pathlib.Path(__file__).resolve().parent
# ViT-B/16's first MLP product at batch 256, and DINOv2-L/14's attention at 518 px.
LARGEST = ["matmul:50432x3072x768", "attention:8x1370x16x64"]
ALLOWED = {"f32": 5e-6, "f16": 2e-3}


def vitrine(options, op, shape, dtype):
    command = [options.vitrine, "bench", "--op", op, "--shape", shape, "--dtype", dtype, "--seconds",
               str(options.seconds), "--json", *(["--device", options.device] if options.device else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"took longer than {options.limit:.0f} s") from None
    if done.returncode != 0:
        raise RuntimeError(ending(done.returncode, done.stderr))
    return json.loads(done.stdout.splitlines()[-1])


def summary(name, rounds, why):
    row = {"system": name}
    if why:
        return {**row, "refused": why}
    median = statistics.median(r["median_ms"] for r in rounds)
    row.update(median_ms=median, min_ms=min(r["min_ms"] for r in rounds), max_ms=max(r["max_ms"] for r in rounds),
               gflops=rounds[0]["gflops"] * rounds[0]["median_ms"] / median,
               relative_error=max(r["relative_error"] for r in rounds), rounds=rounds)
    if row["relative_error"] > ALLOWED[rounds[0]["dtype"]]:
        row["refused"] = f"wrong: relative error {row['relative_error']:.2g}, expected {ALLOWED[rounds[0]['dtype']]:.0e}"
    return row


def measure(options, op, shape, dtype):
    """Both systems' summaries of one operator at one size."""
    rounds, why = {"vitrine": [], "pytorch": []}, {}
    server = None
    try:
        server = Server([sys.executable, str(HERE / "peers" / "pytorch_operator.py"), "--op", op, "--shape", shape,
                         "--dtype", dtype, "--device", options.gpu, "--threads", str(options.threads)],
                        {**os.environ, **next(iter(openblas().values()))}, options.limit)
    except RuntimeError as error:
        why["pytorch"] = str(error)
    calls = {"vitrine": lambda: vitrine(options, op, shape, dtype),
             "pytorch": lambda: server.ask({"time": options.seconds}, options.limit)}
    for _ in range(options.rounds):
        for name, call in calls.items():
            if name in why:
                continue
            try:
                rounds[name].append(call())
            except RuntimeError as error:
                why[name] = str(error)
    if server:
        server.stop()
    return [summary(name, rounds[name], why.get(name)) for name in calls]


def table(results):
    lines = ["| operator | shape | dtype | system | ms (least to most) | GFLOP/s | relative error | Vitrine's rate / this |",
             "|---|---|---|---|---|---|---|---|"]
    for result in results:
        ours = result["systems"][0]
        for row in result["systems"]:
            start = f"| {result['op']} | {result['shape']} | {result['dtype']} | {row['system']} |"
            if "refused" in row:
                lines.append(f"{start} – | – | – | {row['refused']} |")
                continue
            ratio = f"{ours['gflops'] / row['gflops']:.2f}" if "refused" not in ours else "–"
            lines.append(f"{start} {row['median_ms']:.3f} ({row['min_ms']:.3f} to {row['max_ms']:.3f}) | "
                         f"{row['gflops']:.0f} | {row['relative_error']:.0e} | {ratio} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", default=LARGEST, metavar="OP:SHAPE")
    parser.add_argument("--vitrine", default=str(HERE.parent / "build" / "release" / "vitrine"))
    parser.add_argument("--device", default="", help="Vitrine's")
    parser.add_argument("--gpu", choices=("cuda", "cpu"), default="cpu", help="where PyTorch computes")
    parser.add_argument("--dtype", default="f16", help="f32, f16 or both with a comma")
    parser.add_argument("--threads", type=int, default=2, help="of PyTorch on the CPU")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="that a system and round take about")
    parser.add_argument("--limit", type=float, default=300, help="seconds that one call may take")
    parser.add_argument("--json", type=pathlib.Path, help="file for all that was measured")
    options = parser.parse_args()

    results = []
    for dtype in options.dtype.split(","):
        for operator in options.operators:
            op, _, shape = operator.partition(":")
            if op not in ("matmul", "attention", "add") or not shape or dtype not in ALLOWED:
                parser.error(f"found {operator} in {dtype}, expected matmul:MxNxK, attention:IMAGESxTOKENSxHEADSxWIDTH or "
                             "add:ROWSxCOLUMNS in f32 or f16")
            results.append({"op": op, "shape": shape, "dtype": dtype, "systems": measure(options, op, shape, dtype)})
            if options.json:  # now, so that whoever is cut off has what was done
                made = {"date": time.strftime("%Y-%m-%d"), "threads": options.threads, "operators": results}
                options.json.write_text(json.dumps(made, indent=1) + "\n")
    devices = {f"{r['system']} on {r['rounds'][0]['device']}" + (f" ({r['rounds'][0]['driver']})"
               if "driver" in r["rounds"][0] else "") for result in results for r in result["systems"] if "rounds" in r}
    print(", ".join(sorted(devices, reverse=True)) + f", {time.strftime('%-d %B %Y')}\n\n{table(results)}")
    return 1 if any("refused" in result["systems"][0] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
