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


def iterations_of(row, options):
    """How often the next round runs the row's system."""
    if not options.seconds or "first_guess_ms" not in row:
        return options.iterations
    latest = row["rounds"][-1]["median_ms"] if row["rounds"] else row["first_guess_ms"]
    return max(3, min(10000, int(options.seconds * 1e3 / latest)))


def summarise(rows):
    for row in rows:
        if row["rounds"]:
            on_device = [r["device_ms"] for r in row["rounds"] if "device_ms" in r]
            if on_device:
                row["device_ms"] = statistics.median(on_device)
            row["median_ms"] = statistics.median(r["median_ms"] for r in row["rounds"])
            row["min_ms"] = min(r["min_ms"] for r in row["rounds"])
            row["max_ms"] = max(r["max_ms"] for r in row["rounds"])
            for key in ("configuration", "device", "driver", "versions", "compile_seconds"):
                if key in row["rounds"][0]:
                    row[key] = row["rounds"][0][key]
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
            if "device_ms" in row and "device_ms" in base:
                row["device_times_vitrine"] = row["device_ms"] / base["device_ms"]


def run_round(system, row, model, image, batch, options):
    """One round of one system, into its row. After a failure the others go on without it."""
    if "refused" in row:
        return
    try:
        row["rounds"].append(system.time(model, image, batch, iterations_of(row, options), options.limit))
    except (RuntimeError, ValueError) as error:
        row["refused"], row["rounds"] = str(error), []


def measure(options, systems, batch, folder):
    """All rounds of one batch size: a list with one row a system."""
    try:
        return measure_all(options, systems, batch, folder)
    finally:
        for system in systems:
            system.stop()


def measure_all(options, systems, batch, folder):
    model = folder / f"{options.arch}.safetensors"
    image = next(folder.glob(f"input_*_b{batch}.npy"))
    reference_file = folder / f"reference_b{batch}.npy"
    subprocess.run([sys.executable, str(HERE / "reference.py"), "--model", str(model), "--input", str(image),
                    "--output", str(reference_file), "--device", options.gpu or "cpu"], check=True)
    reference = np.load(reference_file)

    rows = []
    for system in systems:
        row = {"system": system.name, "family": system.family, "dtype": system.dtype, "batch": batch,
               "arch": options.arch, "rounds": []}
        check(system, row, model, image, reference, folder, options.limit)
        rows.append(row)
        say(f"batch {batch}: {system.name} ({system.dtype}): "
            f"{row.get('refused') or 'relative error %.2g' % row['relative_error']}")
    if options.seconds and options.rounds:
        # A few runs that don't count say how many fill the time.
        for system, row in zip(systems, rows):
            run_round(system, row, model, image, batch, options)
            if "refused" not in row:
                row["first_guess_ms"] = row.pop("rounds")[0]["median_ms"]
                row["rounds"] = []
    for turn in range(options.rounds):
        taking_part = [still_in(row, rows, options) for row in rows]
        for system, row, takes_part in zip(systems, rows, taking_part):
            if not takes_part:
                continue
            run_round(system, row, model, image, batch, options)
            if row["rounds"]:
                say(f"batch {batch}: round {turn + 1} of {options.rounds}: {system.name} ({system.dtype}): "
                    f"{row['rounds'][-1]['median_ms']:.2f} ms")
    summarise(rows)
    return rows


def table(rows):
    on_device = any("device_ms" in row for row in rows)
    heads = ["system", "dtype", "batch", "ms a batch (least to most)", "ms an image", "relative error",
             "times Vitrine's time", *(["ms on the device alone", "times Vitrine's there"] if on_device else [])]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in rows:
        name = ", ".join(filter(None, [row["system"], row.get("configuration")]))
        cells = [name, row["dtype"], str(row["batch"]), "–", "–",
                 f"{row['relative_error']:.0e}" if "relative_error" in row else "–", "–"]
        if "refused" in row:
            cells[6] = row["refused"].splitlines()[-1]
        elif row["rounds"]:
            digits = 1 if row["median_ms"] >= 100 else 3
            cells[3] = f"{row['median_ms']:.{digits}f} ({row['min_ms']:.{digits}f} to {row['max_ms']:.{digits}f})"
            cells[4] = f"{row['median_ms'] / row['batch']:.{digits}f}"
            cells[6] = f"{row['times_vitrine']:.2f}" if "times_vitrine" in row else "–"
        if on_device:
            cells.append(f"{row['device_ms']:.3f}" if "device_ms" in row else "–")
            cells.append(f"{row['device_times_vitrine']:.2f}" if "device_times_vitrine" in row else "–")
        lines.append("| " + " | ".join(cells) + " |")
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
    parser.add_argument("--seconds", type=float,
                        help="a system and round take about as long, instead of --iterations; what runs in less than a "
                             "millisecond needs many iterations, what takes a second few")
    parser.add_argument("--gpu", default="", choices=("cuda", "cpu"),
                        help="also the peers that need a CUDA device; cpu has PyTorch's run on the CPU in its place, "
                             "as a rehearsal")
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


def text_of(rows, absent):
    devices = {f"{row['device']} ({row['driver']})" for row in rows if row["system"] == "vitrine" and "device" in row}
    text = "".join(f"Vitrine on {device}, {time.strftime('%-d %B %Y')}.\n\n" for device in devices)
    text += "\n\n".join(f"{arch}:\n\n" + table([r for r in rows if r["arch"] == arch])
                        for arch in dict.fromkeys(r["arch"] for r in rows))
    return text + "".join(f"\n\nNot measured: {one['peer']} ({one['why']}). To install it: {one['install']}."
                          for one in absent)


def save(options, rows, absent):
    """After each batch size, so that whoever is cut off has what was done."""
    if options.json:
        made = {"date": time.strftime("%Y-%m-%d"), "threads": options.threads, "systems": rows, "absent": absent}
        options.json.write_text(json.dumps(made, indent=1) + "\n")
    if options.table:
        options.table.write_text(text_of(rows, absent) + "\n")


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
                save(options, rows, absent)
    print(text_of(rows, absent))
    ours_wrong = [r for r in rows if r["system"] == "vitrine" and "refused" in r]
    return 1 if ours_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
