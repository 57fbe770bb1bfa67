#!/usr/bin/env python3
"""How libraries resample learned position tables, and small tables for testing that alone.

  positions.py    writes positions/: tables, what PyTorch makes of them in float64, and cases.json

check_against_libraries.py compares resample() with each library's own function.
"""

import itertools
import pathlib

import numpy as np
import torch

# The names are ViTConfig's position_resize.
RULES = {
    "bicubic": {"mode": "bicubic", "align_corners": False},
    "bicubic_antialias": {"mode": "bicubic", "align_corners": False, "antialias": True},
    "bicubic_corners": {"mode": "bicubic", "align_corners": True},
    "bilinear": {"mode": "bilinear", "align_corners": False},
    "bilinear_corners": {"mode": "bilinear", "align_corners": True},
    "bilinear_antialias": {"mode": "bilinear", "align_corners": False, "antialias": True},
    "nearest": {"mode": "nearest"},
}


def is_single(naming):
    """What interpolates in float32 whatever the model's type; the others do in the model's own."""
    return naming == "timm" or naming.startswith("hf_dinov2")


def rule_of(naming):
    """The rule of the library that publishes checkpoints under these names."""
    if naming == "timm" or naming.startswith("hf_dinov2_registers"):
        return "bicubic_antialias"
    return "bicubic_corners" if naming == "torchvision" else "bicubic"


def resample(table, old, new, rule, offset=0.0, single=False):
    """A table [1, rows, dim] for the grid `new` instead of `old`; rows in front of the patches stay."""
    others = table.shape[1] - old[0] * old[1]
    patches = table[:, others:].reshape(1, *old, -1).permute(0, 3, 1, 2)
    if offset:  # Meta's DINOv2 hands the factor over, and that decides where the samples lie
        extent = {"scale_factor": tuple((n + offset) / o for n, o in zip(new, old))}
    else:
        extent = {"size": tuple(new)}
    patches = patches.float() if single else patches
    patches = torch.nn.functional.interpolate(patches, **extent, **RULES[rule])
    if tuple(patches.shape[2:]) != tuple(new):
        raise ValueError(f"PyTorch made {tuple(patches.shape[2:])} patches instead of {new}")
    return torch.cat([table[:, :others], patches.permute(0, 2, 3, 1).flatten(1, 2).to(table)], dim=1)


# (other rows, old grid, new grid): larger, smaller, both at once, one row, one patch, and real ones.
SHAPES = (
    (1, (5, 5), (8, 8)),
    (0, (7, 7), (4, 4)),
    (2, (5, 7), (11, 3)),
    (3, (6, 4), (1, 9)),
    (1, (1, 3), (2, 5)),
    (0, (1, 1), (3, 2)),
    (1, (14, 14), (24, 24)),
    (5, (37, 37), (16, 16)),
)


def main():
    folder = pathlib.Path(__file__).parent / "positions"
    folder.mkdir(exist_ok=True)
    import cases

    rows = []
    for number, (others, old, new) in enumerate(SHAPES):
        normal = np.random.default_rng([7, number]).standard_normal((others + old[0] * old[1], 2))
        table = normal.astype(np.float32)
        np.save(folder / f"{number}.npy", table)
        for rule, offset in itertools.chain(((rule, 0.0) for rule in RULES), [("bicubic", 0.1)]):
            out = resample(torch.from_numpy(table)[None].double(), old, new, rule, offset)[0]
            name = f"{number}_{rule}{'_offset' if offset else ''}.npy"
            np.save(folder / name, out.numpy())
            row = {"table": f"{number}.npy", "result": name, "rule": rule, "offset": offset}
            rows.append({**row, "from": list(old), "to": list(new)})
    cases.write_json(folder / "cases.json", rows)


if __name__ == "__main__":
    main()
