#!/usr/bin/env python3
"""Times Vitrine and its peers on the same checkpoint and input, in turns, and shows who is right.

    bench/compare.py --arch vit_base_patch16_224 --batch 1,8 --dtype f32,f16 --json compare.json

Peers that are installed are measured; the others are named, with how to install them. Every system's logits are
first compared with PyTorch's in float64 (reference.py); a system whose logits are wrong gets no time. Then rounds
go over all systems in turn, so that a machine that slows down slows all of them. A markdown table goes to stdout,
everything else that was measured to --json.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from systems import systems_of

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parent / "build" / "release"


def say(text):
    print(f"compare: {text}", file=sys.stderr, flush=True)


def relative_error(out, reference):
    if out.shape != reference.shape:
        raise RuntimeError(f"logits of shape {out.shape}, expected {reference.shape}")
    error = np.linalg.norm(out.astype(np.float64) - reference) / np.linalg.norm(reference)
    return float(error) if np.isfinite(error) else float("inf")


def check(system, row, model, image, reference, folder, limit):
    """Puts the logits' error into the row, and why it gets no time if they are wrong."""
    out = folder / "logits.npy"
    out.unlink(missing_ok=True)
    try:
        system.logits(model, image, out, limit)
        row["relative_error"] = relative_error(np.load(out), reference)
        if row["relative_error"] > system.tolerance:
            row["refused"] = f"wrong logits: relative error {row['relative_error']:.2g} > {system.tolerance:.0e}"
    except (RuntimeError, OSError, ValueError) as error:
        row["refused"] = str(error)


def still_in(row, rows, options):
    """Whether the next round measures this row's system: with --best, only a peer's fastest configuration."""
    if "refused" in row:
        return False
    if not options.best or not row["rounds"]:
        return True
    rivals = [r for r in rows if r["family"] == row["family"] and r["dtype"] == row["dtype"] and r["rounds"]]
    return row is min(rivals, key=lambda r: r["rounds"][0]["median_ms"])


def summarise(rows):
    for row in rows:
        if row["rounds"]:
            row["median_ms"] = statistics.median(r["median_ms"] for r in row["rounds"])
            row["min_ms"] = min(r["min_ms"] for r in row["rounds"])
            row["max_ms"] = max(r["max_ms"] for r in row["rounds"])
            row["configuration"] = row["rounds"][0].get("configuration", "")
    ours = {r["dtype"]: r for r in reversed(rows) if r["system"] == "vitrine" and r["rounds"]}
    if not ours:
        return
    first = next(r for r in rows if r["system"] == "vitrine" and r["rounds"])
    for row in rows:
        # Round by round, so that what both suffered in one round cancels.
        base = first if row["system"] == "vitrine" else ours.get(row["dtype"], first)
        if row["rounds"]:
            row["times_vitrine"] = statistics.median(
                b["median_ms"] / a["median_ms"] for a, b in zip(base["rounds"], row["rounds"]))
            row["compared_with"] = base["dtype"]


def measure(options, systems, batch, folder):
    """All rounds of one batch size: a list with one row a system."""
    model = folder / f"{options.arch}.safetensors"
    image = next(folder.glob(f"input_*_b{batch}.npy"))
    reference_file = folder / f"reference_b{batch}.npy"
    subprocess.run([sys.executable, str(HERE / "reference.py"), "--model", str(model), "--input", str(image),
                    "--output", str(reference_file)], check=True)
    reference = np.load(reference_file)

    rows = []
    for system in systems:
        row = {"system": system.name, "family": system.family, "dtype": system.dtype, "batch": batch,
               "arch": options.arch, "rounds": []}
        check(system, row, model, image, reference, folder, options.limit)
        rows.append(row)
        say(f"batch {batch}: {system.name} ({system.dtype}): "
            f"{row.get('refused') or 'relative error %.2g' % row['relative_error']}")
    for turn in range(options.rounds):
        taking_part = [still_in(row, rows, options) for row in rows]
        for system, row, takes_part in zip(systems, rows, taking_part):
            if not takes_part:
                continue
            try:
                row["rounds"].append(system.time(model, image, batch, options.iterations, options.limit))
            except (RuntimeError, ValueError) as error:  # the others go on
                row["refused"], row["rounds"] = str(error), []
                continue
            say(f"batch {batch}: round {turn + 1} of {options.rounds}: {system.name} ({system.dtype}): "
                f"{row['rounds'][-1]['median_ms']:.1f} ms")
    summarise(rows)
    return rows


def table(rows):
    lines = ["| system | dtype | batch | ms a batch (least to most) | ms an image | relative error | times Vitrine's time |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        name = ", ".join(filter(None, [row["system"], row.get("configuration")]))
        start = f"| {name} | {row['dtype']} | {row['batch']} |"
        if "refused" in row:
            error = f"{row['relative_error']:.0e}" if "relative_error" in row else "–"
            lines.append(f"{start} – | – | {error} | {row['refused'].splitlines()[-1]} |")
        elif row["rounds"]:
            times = f"{row['times_vitrine']:.2f}" if "times_vitrine" in row else "–"
            lines.append(f"{start} {row['median_ms']:.1f} ({row['min_ms']:.1f} to {row['max_ms']:.1f}) | "
                         f"{row['median_ms'] / row['batch']:.1f} | {row['relative_error']:.0e} | {times} |")
        else:
            lines.append(f"{start} – | – | {row['relative_error']:.0e} | – |")
    return "\n".join(lines)


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", default=str(BUILT / "vitrine"))
    parser.add_argument("--ggml", default=str(BUILT / "bench" / "ggml_vit"), help="the program ggml_vit")
    parser.add_argument("--packages", type=pathlib.Path, help="folder that pip --target put Python packages into")
    parser.add_argument("--arch", default="vit_base_patch16_224",
                        help="vit_(tiny|small|base|large)_patchP_SIZE; several with commas")
    parser.add_argument("--batch", default="1", help="comma-separated")
    parser.add_argument("--dtype", default="f32",
                        help="f32, f16 or both with a comma; a peer's time is held against Vitrine's of its dtype")
    parser.add_argument("--device", default="", help="the Vulkan device's number; else each system's own choice")
    parser.add_argument("--threads", type=int, default=2, help="of the systems that run on the CPU")
    parser.add_argument("--rounds", type=int, default=3, help="0: only look whose logits are right")
    parser.add_argument("--iterations", type=int, default=3, help="a system and round")
    parser.add_argument("--best", action="store_true",
                        help="after the first round, go on with the fastest configuration of each peer and dtype only")
    parser.add_argument("--limit", type=float, default=600, help="seconds that one call of a system may take")
    parser.add_argument("--only", default="", help="systems whose names hold one of these words, comma-separated")
    parser.add_argument("--skip", default="", help="not those whose names hold one of these")
    parser.add_argument("--json", type=pathlib.Path, help="file for all that was measured")
    parser.add_argument("--table", type=pathlib.Path, help="file for the table, which goes to stdout as well")
    options = parser.parse_args()
    options.dtypes = options.dtype.split(",")
    for dtype in options.dtypes:
        if dtype not in ("f32", "f16"):
            parser.error(f"--dtype is '{options.dtype}', expected f32, f16 or both with a comma")
    return options


def main():
    options = options_of()
    rows, absent = [], []
    for arch in options.arch.split(","):
        options.arch = arch
        systems, absent = systems_of(options)
        for one in absent:
            say(f"{one['peer']} is left out: {one['why']} ({one['install']})")
        with tempfile.TemporaryDirectory(prefix="vitrine-compare-") as scratch:
            subprocess.run([sys.executable, str(HERE / "make_checkpoint.py"), "--arch", arch,
                            "--batch", options.batch, "--out", scratch], check=True)
            for batch in options.batch.split(","):
                rows += measure(options, systems, int(batch), pathlib.Path(scratch))
    text = "\n\n".join(f"{arch}:\n\n" + table([r for r in rows if r["arch"] == arch])
                       for arch in dict.fromkeys(r["arch"] for r in rows))
    text += "".join(f"\n\nNot measured: {one['peer']} ({one['why']}). To install it: {one['install']}." for one in absent)
    print(text)
    if options.json:
        made = {"date": time.strftime("%Y-%m-%d"), "threads": options.threads, "systems": rows, "absent": absent}
        options.json.write_text(json.dumps(made, indent=1) + "\n")
    if options.table:
        options.table.write_text(text + "\n")
    ours_wrong = [r for r in rows if r["system"] == "vitrine" and "refused" in r]
    return 1 if ours_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
