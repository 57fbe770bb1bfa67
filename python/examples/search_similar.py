"""The pictures of a folder that are most like one: embeddings once, then a product in NumPy for each question.

    python3 search_similar.py MODEL FOLDER QUESTION.jpg --index index.npz
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import vitrine
from numpy.typing import NDArray

KINDS = {".jpg", ".jpeg", ".png", ".webp"}


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1, whose products are the cosines of their angles."""
    lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / lengths


def make_index(model: vitrine.Model, folder: Path, index: Path) -> None:
    paths = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in KINDS)
    found = model.embed(paths, batch_size=32, errors="return", progress=True)
    for error in found.errors.values():
        print(f"left out: {error}")
    np.savez(index, rows=unit(found.rows), paths=np.array([paths[i] for i in found.indices]))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a folder, a .safetensors file, or a name in Hugging Face's cache")
    parser.add_argument("folder", type=Path)
    parser.add_argument("question", type=Path, help="a picture")
    parser.add_argument("--index", type=Path, default=Path("index.npz"), help="made where it isn't there yet")
    parser.add_argument("--count", type=int, default=5)
    given = parser.parse_args(arguments)

    model = vitrine.load(given.model)
    if not given.index.exists():
        make_index(model, given.folder, given.index)
    index = np.load(given.index)
    likeness = index["rows"] @ unit(model.embed(given.question))[0]
    for place in np.argsort(-likeness)[: given.count]:
        print(f"{likeness[place]:.4f}  {index['paths'][place]}")


if __name__ == "__main__":
    main()
