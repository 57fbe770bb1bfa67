#!/usr/bin/env python3
"""Which architectures of timm and transformers Vitrine computes as they do, and what it says of the others.

  coverage.py SCRATCH --vitrine build/release/vitrine [--library timm,transformers] [--only PATTERN] [--table docs/coverage.md]

Each is made with random weights (of timm's with two blocks), saved as its library saves it, computed by the library in
float64 and by `vitrine run` in f32, and compared: right (at most 2e-5 of the largest number), wrong, or refused, with
Vitrine's sentence. timm's are opened a second time by their weights alone, where nothing says the architecture: those
are right, asked about, or refused. Nothing is downloaded; SCRATCH is emptied after each model.
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
from coverage_run import judge, randomised, run

MOST_PARAMETERS = 1_000_000_000
TIMM_MODULES = ("beit cait deit eva naflexvit vision_transformer vision_transformer_hybrid vision_transformer_relpos "
                "vision_transformer_sam").split()


def timm_models(only):
    for module in TIMM_MODULES:
        for name in timm.list_models(module=module):
            if fnmatch.fnmatch(name, only):
                yield name


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
    return verdict, verdict


def cover_timm(name, program, scratch):
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
    got = run(program, folder, image, output)
    bare = run(program, folder / "model.safetensors", image, output)
    if bare[0] is None and "--image-size" in bare[2]:  # which no tensor of a model without a position table shows
        bare = run(program, folder / "model.safetensors", image, output, extra=("--image-size", "x".join(map(str, cfg["input_size"][1:]))))
    wanted = None
    if got[0] is not None or bare[0] is not None:
        with torch.no_grad():
            wanted = model.double()(torch.from_numpy(np.load(image)).double()).numpy()
    return judge(got, wanted), judge(bare, wanted)


def covered(function, name, arguments, scratch):
    for old in scratch.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    try:
        return function(name, arguments.vitrine, scratch)
    except Exception as error:  # the library's own; said in the table
        return (("not made", f"{type(error).__name__}: {error}".splitlines()[0][:120]),)


def cell(verdict):
    state, words = verdict
    return f"{state} ({words})" if words else state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("--vitrine", type=pathlib.Path, required=True)
    parser.add_argument("--library", default="timm,transformers")
    parser.add_argument("--only", default="*")
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.vitrine = arguments.vitrine.resolve()
    scratch = arguments.scratch / "coverage"
    scratch.mkdir(parents=True, exist_ok=True)
    parts, wrong = [], 0
    for library in arguments.library.split(","):
        if library == "timm":
            title, function, names = f"timm {timm.__version__}", cover_timm, list(timm_models(arguments.only))
            columns = ["with config.json", "weights alone"]
        else:
            title, function = f"transformers {transformers.__version__}", coverage_transformers.cover
            names = [name for name in coverage_transformers.NAMES if fnmatch.fnmatch(name, arguments.only)]
            columns = ["as saved"]
        rows = []
        for name in names:
            verdicts = covered(function, name, arguments, scratch)
            print(name, *(cell(verdict) for verdict in verdicts), sep="\t", flush=True)
            rows.append((name, verdicts))
        counts = []
        for column, heading in enumerate(columns):
            states = [verdicts[min(column, len(verdicts) - 1)][0] for _, verdicts in rows]
            wrong += states.count("wrong")
            found = ", ".join(f"{states.count(state)} {state}" for state in ("right", "asked", "refused", "wrong", "not made")
                              if state in states)
            counts.append(f"{heading}: {found}")
        lines = [f"| {name} | " + " | ".join(cell(verdict) for verdict in verdicts) + " |" for name, verdicts in rows]
        parts.append("\n".join([f"## {title}: {len(rows)} architectures", "", *(f"- {count}" for count in counts), "",
                                "| architecture | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|", *lines]))
        print(*counts, sep="\n", file=sys.stderr)
    shutil.rmtree(scratch)
    if arguments.table:
        head = ("# Which architectures are computed as their libraries do\n\nMade by `tests/parity/coverage.py`, which says how; an error is "
                "the largest difference in f32 over the largest number.\n\n")
        arguments.table.write_text(head + "\n\n".join(parts) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
