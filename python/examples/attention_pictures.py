"""Where a model looks: for each picture one with the last block's attention over it, and one with the rollout.

    python3 attention_pictures.py MODEL OUT_FOLDER cat.jpg dog.jpg
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import vitrine


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a folder, a .safetensors file, or a name in Hugging Face's cache")
    parser.add_argument("out", type=Path)
    parser.add_argument("pictures", type=Path, nargs="+")
    given = parser.parse_args(arguments)

    model = vitrine.load(given.model)
    given.out.mkdir(parents=True, exist_ok=True)
    for path in given.pictures:
        attention = model.attention(path)
        attention.overlay().save(given.out / f"{path.stem}_last.png")
        attention.rollout().overlay().save(given.out / f"{path.stem}_rollout.png")
        row, column = np.unravel_index(attention.map.argmax(), attention.map.shape)
        print(f"{path}: most at patch {row}, {column} of {attention.map.shape[0]} x {attention.map.shape[1]}")


if __name__ == "__main__":
    main()
