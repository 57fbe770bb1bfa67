"""Embeds the pictures of a folder, and shows which are most alike.

    python embed_folder.py PICTURES OUT --model MODEL

PICTURES may be whatever vitrine.batch takes: folders, globs, tars, Parquet files, here or in an object store. The
same command again does what is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import vitrine.batch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--pairs", type=int, default=5, help="how many alike to show (default: 5)")
    options = parser.parse_args()

    done = vitrine.batch.embed(options.pictures, options.out, model=options.model, normalize=True)
    print(f"{done.rows} of {done.pictures} pictures, {done.dim} numbers each")
    for failure in done.failures:
        print(failure.sentence, file=sys.stderr)

    rows = np.concatenate([np.load(file) for file in sorted((options.out / "img_emb").glob("*.npy"))])
    names = [
        str(name)
        for file in sorted((options.out / "metadata").glob("*.parquet"))
        for name in pq.read_table(file)["image_path"].to_pylist()
    ]
    rows = rows.astype(np.float32)
    alike = np.triu(rows @ rows.T, 1)
    for place in np.argsort(alike, axis=None)[::-1][: min(options.pairs, len(names) * (len(names) - 1) // 2)]:
        first, second = np.unravel_index(place, alike.shape)
        print(f"{alike[first, second]:.3f}  {names[first]}  {names[second]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
