#!/usr/bin/env python3
"""Which architectures of timm and transformers Vitrine computes as they do, and what it says of the others.

  coverage.py SCRATCH --vitrine build/release/vitrine [--library timm,transformers] [--only PATTERN,...]
              [--columns HEADING,...] [--table docs/coverage.md]

Each is made with random weights (of timm's with two blocks), saved as its library saves it, computed by the library in
float64 and by `vitrine run` in f32 and in f16, and compared: right (at most 2e-5 of the largest number, 5e-3 in f16), wrong, or
refused, with Vitrine's sentence. timm's are opened once more by their weights alone, where nothing says the architecture: those
are right, asked about, or refused. Nothing is downloaded; SCRATCH is emptied after each model. The table keeps its rows of what
--library and --only leave out, and of timm's the cells that --columns leaves out; it is written after each model, so
that whoever stops may go on.
"""

import argparse
import fnmatch
import json
import pathlib
import shutil
import sys

import numpy as np
import timm
import torch
import transformers
from safetensors.torch import save_file

import coverage_transformers
from coverage_run import F16_LIMIT, IN_F16, judge, randomised, run

MOST_PARAMETERS = 1_000_000_000
TIMM_MODULES = ("beit cait deit eva naflexvit vision_transformer vision_transformer_hybrid vision_transformer_relpos "
                "vision_transformer_sam").split()


def timm_models(only):
    for module in TIMM_MODULES:
        for name in timm.list_models(module=module):
            if fits(name, only):
                yield name


def fits(name, only):
    return any(fnmatch.fnmatch(name, pattern) for pattern in only.split(","))


def too_large(model, program, scratch):
    """One that can't be cut: the names of two of its blocks, which is all that a refusal looks at."""
    def is_kept(key):
        parts = key.split(".")
        return parts[0] != "blocks" or int(parts[1]) < 2
    tensors = {key: torch.zeros(tensor.shape) for key, tensor in model.state_dict().items() if is_kept(key)}
    save_file(tensors, scratch / "model.safetensors")
    np.save(scratch / "image.npy", np.zeros((1, 3, 224, 224), np.float32))
    got = run(program, scratch / "model.safetensors", scratch / "image.npy", scratch / "output.npy")
    verdict = ("not made", "too large to compare") if got[0] is not None else judge(got, np.zeros(0))
    return verdict, verdict, verdict


def cover_timm(name, program, scratch, columns):
    arguments = {"depth": 2}
    if name.startswith("cait"):
        arguments["depth_token_only"] = 1
    torch.manual_seed(0)
    kept = {}
    if name.endswith("sapiens2"):  # its blocks differ in this, which shapes tell
        with torch.device("meta"):
            kept["num_kv_heads"] = [block.attn.num_kv_heads for block in timm.create_model(name).blocks[:2]]
    with torch.device("meta"):
        try:
            model = timm.create_model(name, **arguments, **kept)
        except (TypeError, AssertionError):
            model, arguments = timm.create_model(name), {}
    if sum(parameter.numel() for parameter in model.parameters()) > MOST_PARAMETERS:
        return too_large(model, program, scratch)
    model = randomised(timm.create_model(name, **arguments, **kept))
    folder = scratch / "model"
    folder.mkdir()
    tensors = {key: tensor.contiguous() for key, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    cfg = model.pretrained_cfg
    config = {"architecture": name, "num_classes": model.num_classes, "num_features": model.num_features, "model_args": arguments,
              "global_pool": getattr(model, "global_pool", "token") or "",
              "pretrained_cfg": {"input_size": list(cfg["input_size"]), "num_classes": model.num_classes}}
    (folder / "config.json").write_text(json.dumps(config))
    image = scratch / "image.npy"
    np.save(image, np.random.default_rng(0).standard_normal((1, *cfg["input_size"])).astype(np.float32))
    output = scratch / "output.npy"
    run_of = lambda heading, *options, **more: run(program, *options, output, **more) if heading in columns else None
    got = run_of("with config.json", folder, image)
    half = run_of("in f16", folder, image, extra=IN_F16)
    bare = run_of("weights alone", folder / "model.safetensors", image)
    if bare and bare[0] is None and "--image-size" in bare[2]:  # which no tensor of a model without a position table shows
        bare = run(program, folder / "model.safetensors", image, output, extra=("--image-size", "x".join(map(str, cfg["input_size"][1:]))))
    wanted = None
    if any(given and given[0] is not None for given in (got, bare, half)):
        with torch.no_grad():
            wanted = model.double()(torch.from_numpy(np.load(image)).double()).numpy()
    return judge(got, wanted), judge(bare, wanted), judge(half, wanted, F16_LIMIT)


def covered(function, name, columns, arguments, scratch):
    for old in scratch.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    try:
        return function(name, arguments.vitrine, scratch, *([columns] if function is cover_timm else []))
    except Exception as error:  # the library's own; said in the table
        return (("not made", f"{type(error).__name__}: {error}".splitlines()[0][:120]),)


def cell(verdict):
    state, words = verdict
    return f"{state} ({words})" if words else state


LIBRARIES = {
    "timm": (timm, cover_timm, ["with config.json", "weights alone", "in f16"]),
    "transformers": (transformers, coverage_transformers.cover, ["as saved", "in f16"]),
}
HEAD = ("# Which architectures are computed as their libraries do\n\nMade by `tests/parity/coverage.py`, which says how; an error is "
        "the largest difference over the largest number.\n\n")


class Table:
    """What is known of each library's architectures: rows of cells, by name."""

    def __init__(self, path):
        self.path = path
        self.rows = {library: {} for library in LIBRARIES}
        library = None
        for line in path.read_text().splitlines() if path and path.exists() else ():
            if line.startswith("## "):
                library = line.split()[1]
            elif line.startswith("| ") and not line.startswith("| architecture"):
                name, *cells = line.strip("| ").split(" | ")
                columns = LIBRARIES[library][2]
                self.rows[library][name] = (cells + ["not run"] * len(columns))[:len(columns)]

    def counts(self, library):
        for column, heading in enumerate(LIBRARIES[library][2]):
            cells = [cells[column] for cells in self.rows[library].values()]
            states = {state: sum(cell.startswith(state) for cell in cells)
                      for state in ("right", "asked", "refused", "wrong", "not made", "not run")}
            yield f"{heading}: " + ", ".join(f"{count} {state}" for state, count in states.items() if count)

    def write(self):
        parts = []
        for library, rows in self.rows.items():
            module, _, columns = LIBRARIES[library]
            title = f"## {library} {module.__version__}: {len(rows)} architectures"
            lines = [f"| {name} | " + " | ".join(cells) + " |" for name, cells in sorted(rows.items())]
            parts.append("\n".join([title, "", *(f"- {count}" for count in self.counts(library)), "",
                                    "| architecture | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|", *lines]))
        if self.path:
            self.path.write_text(HEAD + "\n\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--vitrine", type=pathlib.Path, required=True)
    parser.add_argument("--library", default="timm,transformers")
    parser.add_argument("--only", default="*")
    parser.add_argument("--columns", default=",".join(LIBRARIES["timm"][2]), help="of timm's; transformers' are all computed")
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.vitrine = arguments.vitrine.resolve()
    scratch = arguments.scratch / "coverage"
    shutil.rmtree(scratch, ignore_errors=True)  # of one that was stopped
    scratch.mkdir(parents=True)
    table, wrong = Table(arguments.table), 0
    for library in arguments.library.split(","):
        if library == "timm":
            names = list(timm_models(arguments.only))
        else:
            names = [name for name in coverage_transformers.NAMES if fits(name, arguments.only)]
        _, function, columns = LIBRARIES[library]
        for name in names:
            verdicts = (covered(function, name, arguments.columns.split(","), arguments, scratch) * len(columns))[:len(columns)]
            before = table.rows[library].get(name, ["not run"] * len(columns))
            cells = [cell(verdict) if verdict else old for verdict, old in zip(verdicts, before)]
            print(name, *cells, sep="\t", flush=True)
            wrong += any(verdict and verdict[0] == "wrong" for verdict in verdicts)
            table.rows[library][name] = cells
            table.write()
        print(*table.counts(library), sep="\n", file=sys.stderr)
    shutil.rmtree(scratch)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
