#!/usr/bin/env python3
"""Times Vitrine and its peers on the same checkpoint and input, in turns, and shows who is right.

    bench/compare.py --vitrine build/release/vitrine --ggml build/release/bench/ggml_vit

Every system's logits are first compared with PyTorch's in float64 (reference.py); a system whose logits
are wrong gets no time. Then rounds go over all systems in turn, so that a machine that slows down slows all of
them. A markdown table goes to stdout, everything else that was measured to --out.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# Relative errors up to which logits count as right. Vitrine's are its own promises; a peer may round
# more (ggml's Vulkan backend multiplies f32 in f16 where it can, which costs it about 1.5e-3).
OURS = {"f32": 2e-5, "f16": 5e-3}
PEERS = 1e-2


class System:
    """One program that computes the logits of one checkpoint, and how to call it."""

    def __init__(self, name, dtype, command, tolerance, environment=None):
        self.name, self.dtype, self.command, self.tolerance = name, dtype, command, tolerance
        self.environment = {**os.environ, **(environment or {})}

    def call(self, arguments):
        done = subprocess.run([*self.command, *map(str, arguments)], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: exit status {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout


class Vitrine(System):
    def logits(self, model, image, out):
        self.call(["run", "--model", model, "--input", image, "--output", out, "--dtype", self.dtype])

    def time(self, model, image, batch, iterations):
        return json.loads(self.call(["bench", "--model", model, "--batch", batch, "--dtype", self.dtype, "--json",
                                     "--runs", iterations]).splitlines()[-1])


class Peer(System):
    def logits(self, model, image, out):
        self.call(["--model", model, "--input", image, "--dtype", self.dtype, "--output", out, "--iterations", 1])

    def time(self, model, image, batch, iterations):
        return json.loads(self.call(["--model", model, "--input", image, "--dtype", self.dtype,
                                     "--iterations", iterations]).splitlines()[-1])


def systems_of(options):
    torch = [sys.executable, str(HERE / "peers" / "pytorch_vit.py"), "--arch", options.arch,
             "--threads", str(options.threads)]
    systems = [Vitrine("vitrine", dtype, [options.vitrine], OURS[dtype]) for dtype in options.dtype.split(",")]
    if options.ggml:
        # On the software driver ggml wants to be told the device, and its cooperative matrices are wrong.
        vulkan = [options.ggml, "--backend", "vulkan", "--device", options.device]
        no_matrix = {"GGML_VK_DISABLE_COOPMAT": "1", "GGML_VK_DISABLE_COOPMAT2": "1"}
        for attention in ("flash", "plain"):
            for words, environment in (("", {}), (", no cooperative matrix", no_matrix),
                                       (", no cooperative matrix, no f16", {**no_matrix, "GGML_VK_DISABLE_F16": "1"})):
                systems.append(Peer(f"ggml-vulkan, {attention} attention{words}", "f32",
                                    [*vulkan, "--attention", attention], PEERS, environment))
        systems.append(Peer("ggml-cpu", "f32", [options.ggml, "--backend", "cpu", "--threads", str(options.threads)], PEERS))
    if options.pytorch:
        systems.append(Peer("pytorch-cpu", "f32", torch, PEERS))
    chosen = options.only.split(",") if options.only else []
    return [s for s in systems if not chosen or any(word in s.name for word in chosen)]


def relative_error(out, reference):
    if out.shape != reference.shape:
        raise RuntimeError(f"logits of shape {out.shape}, expected {reference.shape}")
    error = np.linalg.norm(out.astype(np.float64) - reference) / np.linalg.norm(reference)
    return float(error) if np.isfinite(error) else float("inf")


def measure(options, batch, folder):
    """All rounds of one batch size: a list with one row a system."""
    model = folder / f"{options.arch}.safetensors"
    image = next(folder.glob(f"input_*_b{batch}.npy"))
    systems = systems_of(options)
    reference_file = folder / f"reference_b{batch}.npy"
    subprocess.run([sys.executable, str(HERE / "reference.py"), "--model", str(model), "--input", str(image),
                    "--output", str(reference_file)], check=True)
    reference = np.load(reference_file)

    rows = []
    for system in systems:
        row = {"system": system.name, "dtype": system.dtype, "batch": batch, "arch": options.arch, "rounds": []}
        try:
            out = folder / "logits.npy"
            system.logits(model, image, out)
            row["relative_error"] = relative_error(np.load(out), reference)
            if row["relative_error"] > system.tolerance:
                row["refused"] = f"wrong logits: relative error {row['relative_error']:.2g} > {system.tolerance:.0e}"
        except (RuntimeError, OSError) as error:
            row["refused"] = str(error)
        rows.append(row)
        print(f"compare: batch {batch}: {system.name} ({system.dtype}): "
              f"{row.get('refused') or 'relative error %.2g' % row['relative_error']}", file=sys.stderr)
    for turn in range(options.rounds):
        for system, row in zip(systems, rows):
            if "refused" in row:
                continue
            try:
                row["rounds"].append(system.time(model, image, batch, options.iterations))
            except RuntimeError as error:  # the others go on
                row["refused"], row["rounds"] = str(error), []
                continue
            print(f"compare: batch {batch}: round {turn + 1} of {options.rounds}: {system.name} ({system.dtype}): "
                  f"{row['rounds'][-1]['median_ms']:.1f} ms", file=sys.stderr)
    for row in rows:
        if row["rounds"]:
            row["median_ms"] = statistics.median(r["median_ms"] for r in row["rounds"])
            row["min_ms"] = min(r["min_ms"] for r in row["rounds"])
            row["max_ms"] = max(r["max_ms"] for r in row["rounds"])
    base = next((r for r in rows if r["system"] == "vitrine" and r["rounds"]), None)
    for row in rows:
        if base and row["rounds"]:
            # Round by round, so that what both suffered in one round cancels.
            row["vitrine_takes"] = statistics.median(
                a["median_ms"] / b["median_ms"] for a, b in zip(base["rounds"], row["rounds"]))
    return rows


def table(rows):
    lines = ["| system | dtype | batch | ms a batch (min–max) | ms an image | relative error | Vitrine's time is |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        start = f"| {row['system']} | {row['dtype']} | {row['batch']} |"
        if "refused" in row:
            lines.append(f"{start} – | – | {row.get('relative_error', float('nan')):.1g} | {row['refused'].splitlines()[-1]} |")
            continue
        share = row.get("vitrine_takes")
        lines.append(f"{start} {row['median_ms']:.1f} ({row['min_ms']:.1f}–{row['max_ms']:.1f}) | "
                     f"{row['median_ms'] / row['batch']:.1f} | {row['relative_error']:.1g} | "
                     f"{'–' if share is None else f'{100 * share:.0f} %'} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", default=str(HERE.parent / "build" / "release" / "vitrine"))
    parser.add_argument("--ggml", default="", help="the program ggml_vit; none: leave ggml out")
    parser.add_argument("--no-pytorch", dest="pytorch", action="store_false", help="don't time PyTorch")
    parser.add_argument("--arch", default="vit_base_patch16_224")
    parser.add_argument("--batch", default="1", help="comma-separated")
    parser.add_argument("--dtype", default="f32", help="Vitrine's, comma-separated; ratios take the first")
    parser.add_argument("--device", default="0", help="the Vulkan device's number")
    parser.add_argument("--threads", type=int, default=2, help="of the systems that run on the CPU")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=3, help="a system and round")
    parser.add_argument("--only", default="", help="systems whose names hold one of these words, comma-separated")
    parser.add_argument("--out", type=pathlib.Path, help="folder for compare.json and compare.md")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="vitrine-compare-") as scratch:
        folder = pathlib.Path(scratch)
        subprocess.run([sys.executable, str(HERE / "make_checkpoint.py"), "--arch", options.arch,
                        "--batch", options.batch, "--out", scratch], check=True)
        rows = [row for batch in options.batch.split(",") for row in measure(options, int(batch), folder)]
    text = table(rows)
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "compare.json").write_text(json.dumps(rows, indent=1) + "\n")
        (options.out / "compare.md").write_text(text + "\n")
    ours_wrong = [r for r in rows if r["system"] == "vitrine" and "refused" in r]
    return 1 if ours_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
