#!/usr/bin/env python3
"""Watches every kernel on every vendor's compiler: registers, spills, occupancy, cycles, FLOPs per cycle.

    bench/zoo.py                   prints the table
    bench/zoo.py --write           writes it into docs/zoo.md, which also says what the columns mean
    bench/zoo.py --check           compares with docs/zoo.md; 1 when a chosen kernel became worse by more than 5 %
    bench/zoo.py --arm64 ...       the same of GPUs whose drivers are made for arm64 alone, and of docs/zoo_arm64.md

Mesa's drivers for AMD, NVIDIA, Intel, Qualcomm and Apple GPUs compile the pipelines behind make-believe kernel
drivers (tests/zoo/with_device; Debian's mesa-drm-shim, version 26 or newer, and tests/zoo/build_intel_shim), for Arm's
in programs that tests/zoo/build_arm64 builds and qemu runs. Nothing executes: these are the compilers' own figures, and
they depend on Mesa's version, which the table names.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from zoo_figures import ARM64_DEVICES, DEVICES, HALVED, figures_of

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Zoo:
    devices: list
    table: pathlib.Path
    vitrine: pathlib.Path


OWN = Zoo(list(DEVICES), ROOT / "docs/zoo.md", ROOT / "build/release/vitrine")
ARM64 = Zoo(list(ARM64_DEVICES), ROOT / "docs/zoo_arm64.md", ROOT / "build/arm64/vitrine")
MARK = "<!-- bench/zoo.py --write makes all that follows -->"
COLUMNS = ["device", "shader", "tile", "constants", "chosen", "threads", "registers", "spilled", "shared", "waves",
           "cycles", "FLOP/cycle", "of peak", "bound by"]
WORSE = 0.05
NOT_INSTALLED = 77


def doctor(device, vitrine):
    """The lines of `vitrine doctor` on a make-believe device: (kernels, summary)."""
    with tempfile.TemporaryDirectory() as cache:
        command = [ROOT / "tests/zoo/with_device", device, vitrine,
                   "doctor", "--compile-only", "--json", "--candidates", "--halve", ",".join(sorted(set(HALVED.values())))]
        done = subprocess.run(command, capture_output=True, text=True,
                              env={**os.environ, "VITRINE_CACHE_DIR": cache, "VITRINE_DEVICE": ""})
    if done.returncode == NOT_INSTALLED:
        sys.exit(f"zoo.py: {done.stderr.strip()}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    # Status 1 with all lines there: chosen kernels spill, which the table shows.
    if not lines or "pipelines" not in lines[-1]:
        sys.exit(f"zoo.py: vitrine doctor on '{device}' exited with {done.returncode}: {done.stderr.strip()}")
    return [line for line in lines if "shader" in line], lines[-1]


def text_of(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)


def row_of(device, kernel):
    figures = figures_of(device, kernel)
    name = f"{kernel['shader']}/{kernel['variant']}"
    constants = ",".join(str(value) for value in (kernel.get("constants") or {}).values())
    threads = kernel["workgroup"][0] * kernel["workgroup"][1] * kernel["workgroup"][2]
    share = None if figures.share is None else f"{100 * figures.share:.0f} %"
    return [device, name, kernel["note"].replace(" ", "_") or "-", constants or "-", "yes" if kernel["chosen"] else "no",
            *map(text_of, [threads, kernel["registers"], figures.spilled, kernel["shared_bytes"], figures.waves,
                           figures.cycles, figures.flops_per_cycle, share, figures.bound])]


def measure(vitrine, devices):
    """All rows, sorted by device as they are given, then by name; and Mesa's version."""
    order = {name: i for i, name in enumerate(devices)}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = dict(zip(devices, pool.map(lambda device: doctor(device, vitrine), devices)))
    rows = [row_of(device, kernel) for device, (kernels, _) in answers.items() for kernel in kernels]
    rows.sort(key=lambda row: (order[row[0]], row[1:5]))
    versions = sorted({summary["driver_info"] for _, summary in answers.values()})
    return rows, ", ".join(versions)


def lines_of(rows, version):
    yield f"Compilers of {version}."
    yield ""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|" + "---|" * len(COLUMNS)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def committed(zoo):
    rows, version = [], "nothing"
    for line in zoo.table.read_text().split(MARK, 1)[-1].splitlines():
        if line.startswith("Compilers of "):
            version = line.removeprefix("Compilers of ").removesuffix(".")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) and cells[0] in zoo.devices:
            rows.append(cells)
    return rows, version


def number(row, column):
    text = row[COLUMNS.index(column)].removesuffix(" %")
    return None if text == "-" else float(text)


def complaints_of(name, old, new):
    """Sentences about what became worse by more than WORSE between two rows."""
    def compare(column, more_is_worse):
        before, after = number(old, column), number(new, column)
        if before is None or after is None:
            return
        if (after > before * (1 + WORSE)) if more_is_worse else (after < before * (1 - WORSE)):
            yield f"{name}: {column} {text_of(before)} -> {text_of(after)}"
    yield from compare("spilled", True)
    yield from compare("waves", False)
    # The whole kernel's cycles grow with what its loop does in one pass; then only the rate tells.
    if number(old, "FLOP/cycle") is not None and number(new, "FLOP/cycle") is not None:
        yield from compare("FLOP/cycle", False)
    else:
        yield from compare("cycles", True)


def slowest(rows):
    """The slowest chosen kernel of each device and shader: where another tile is chosen, this is compared."""
    out = {}
    for row in rows:
        if row[4] == "yes" and number(row, "FLOP/cycle") is not None:
            key = (row[0], row[1])
            if key not in out or number(row, "FLOP/cycle") < number(out[key], "FLOP/cycle"):
                out[key] = row
    return out


def check(zoo, rows, version, devices):
    before, before_version = committed(zoo)
    if not before:
        sys.exit(f"zoo.py: {zoo.table.relative_to(ROOT)} holds no table; make it with bench/zoo.py --write")
    before = [row for row in before if row[0] in devices]
    if version != before_version:
        print(f"zoo.py: the table is of {before_version}, this is {version}: other compilers, other figures", file=sys.stderr)
    old = {tuple(row[:4]): row for row in before if row[4] == "yes"}
    new = {tuple(row[:4]): row for row in rows if row[4] == "yes"}
    complaints = []
    for key in sorted(old.keys() & new.keys()):
        complaints += complaints_of(" ".join(key), old[key], new[key])
    for key, row in sorted(slowest(rows).items()):
        was = slowest(before).get(key)
        if was and tuple(row[:4]) not in old:
            complaints += complaints_of(f"{' '.join(key)}, {was[2]} -> {row[2]}", was, row)
    for key in sorted(new.keys() - old.keys()):
        if number(new[key], "spilled"):
            complaints.append(f"{' '.join(key)}: new, and spills")
    changed = len(old.keys() ^ new.keys())
    print(f"{len(old.keys() & new.keys())} chosen kernels compared, {len(complaints)} became worse"
          + (f"; {changed} are only in one of the two: bench/zoo.py --write makes the table anew" if changed else ""))
    for complaint in complaints:
        print(f"  {complaint}")
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", type=pathlib.Path, help="the program; build/release/vitrine unless told")
    parser.add_argument("--devices", help="some of them only, by tests/zoo/with_device's names")
    parser.add_argument("--arm64", action="store_const", const=ARM64, default=OWN, dest="zoo",
                        help="GPUs whose drivers are made for arm64 alone")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="write the document")
    action.add_argument("--check", action="store_true", help="compare with the document")
    options = parser.parse_args()
    zoo = options.zoo
    vitrine = options.vitrine or zoo.vitrine
    devices = options.devices.split(",") if options.devices else zoo.devices
    unknown = [device for device in devices if device not in zoo.devices]
    if unknown:
        parser.error(f"--devices has '{unknown[0]}', there are: {', '.join(zoo.devices)}")
    if options.write and len(devices) != len(zoo.devices):
        parser.error("--write needs all devices: it writes the whole table")
    if not vitrine.exists():
        parser.error(f"--vitrine: there is no '{vitrine}'; build it, or name it")
    rows, version = measure(vitrine, devices)
    if options.check:
        return check(zoo, rows, version, devices)
    text = "\n".join(lines_of(rows, version)) + "\n"
    if options.write:
        above = zoo.table.read_text().split(MARK, 1)[0]
        zoo.table.write_text(f"{above}{MARK}\n\n{text}")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
