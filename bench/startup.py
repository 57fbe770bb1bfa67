#!/usr/bin/env python3
"""Times the way from starting the process to the first logits, by part, with empty caches and with full ones.

    bench/startup.py --vitrine build/release/vitrine --arch vit_base_patch16_224

Cold: Vitrine's pipeline cache and the driver's own shader cache are fresh, empty folders. Warm: the next start
with the same folders. Both take turns. `process` is what the operating system and the dynamic linker need before
the program runs, and what else its own clock doesn't see. The checkpoint lies in the system's file cache, unless
--cold-file has it forgotten before every start.
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

HERE = pathlib.Path(__file__).resolve().parent


def environment(folder):
    """Where every cache that shortens a start lies in this folder: Vitrine's, Mesa's, NVIDIA's, AMD's."""
    caches = {"VITRINE_CACHE_DIR": "vitrine", "MESA_SHADER_CACHE_DIR": "mesa", "__GL_SHADER_DISK_CACHE_PATH": "nvidia",
              "AMD_SHADER_DISK_CACHE_PATH": "amd", "XDG_CACHE_HOME": "xdg"}
    made = {**os.environ, **{name: str(folder / leaf) for name, leaf in caches.items()}}
    for leaf in caches.values():
        (folder / leaf).mkdir(exist_ok=True)
    return made


def forget(path):
    """Drops a file from the system's file cache; it has to be on the disk first."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def start(options, model, folder):
    """One process: its JSON line, with the time until that line came as total_ms."""
    if options.cold_file:
        forget(model)
    command = [options.vitrine, "bench", "--startup", "--json", "--model", str(model), "--batch", str(options.batch),
               "--dtype", options.dtype]
    if options.device:
        command += ["--device", options.device]
    started = time.perf_counter()
    with subprocess.Popen(command, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        first_line = process.stdout.readline()
        total_ms = (time.perf_counter() - started) * 1e3
        error = process.communicate()[1]
    if process.returncode != 0 or not first_line:
        sys.exit(f"startup.py: vitrine ended with status {process.returncode}: {error.strip()[-500:]}")
    line = json.loads(first_line)
    line["parts"].insert(0, {"part": "process", "ms": total_ms - line["total_ms"]})
    line["total_ms"] = total_ms
    return line


def table(rounds):
    kinds = list(rounds)
    lines = ["| part | " + " | ".join(f"{kind}, ms (least to most)" for kind in kinds) + " |", "|---|" + "---|" * len(kinds)]

    def row(name, values_of):
        cells = []
        for kind in kinds:
            values = [values_of(line) for line in rounds[kind]]
            cells.append(f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")

    for index, part in enumerate(rounds[kinds[0]][0]["parts"]):
        row(part["part"], lambda line: line["parts"][index]["ms"])
    row("**all**", lambda line: line["total_ms"])
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vitrine", default=str(HERE.parent / "build" / "release" / "vitrine"))
    parser.add_argument("--arch", default="vit_base_patch16_224", help="vit_(tiny|small|base|large)_patchP_SIZE")
    parser.add_argument("--model", type=pathlib.Path, help="a checkpoint, instead of one with random weights")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--dtype", default="f32", choices=("f32", "f16"))
    parser.add_argument("--device", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold-file", action="store_true", help="the checkpoint comes from the disk every time")
    parser.add_argument("--json", type=pathlib.Path, help="file for all that was measured")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}, expected at least 1")

    rounds = {"cold": [], "warm": []}
    with tempfile.TemporaryDirectory(prefix="vitrine-startup-") as scratch:
        folder = pathlib.Path(scratch)
        model = options.model
        if model is None:
            subprocess.run([sys.executable, str(HERE / "make_checkpoint.py"), "--arch", options.arch, "--out", scratch],
                           check=True)
            model = folder / f"{options.arch}.safetensors"
        for turn in range(options.rounds):
            caches = folder / f"caches {turn}"
            caches.mkdir()
            for kind in rounds:
                rounds[kind].append(start(options, model, caches))
                print(f"startup: {kind}: {rounds[kind][-1]['total_ms']:.0f} ms", file=sys.stderr)
    checksums = {line["checksum"] for lines in rounds.values() for line in lines}
    if len(checksums) != 1:
        sys.exit(f"startup.py: the starts gave {len(checksums)} different results, expected one")
    first = rounds["cold"][0]
    print(f"{options.model or options.arch}, batch {first['batch']}, {first['dtype']}, {first['pipelines']} pipelines, on {first['device']} "
          f"({first['driver']})\n\n{table(rounds)}")
    if options.json:
        options.json.write_text(json.dumps(rounds, indent=1) + "\n")


if __name__ == "__main__":
    main()
