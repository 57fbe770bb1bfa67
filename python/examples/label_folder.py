"""Labels for every picture of a folder, as a CSV file.

    python3 label_folder.py MODEL FOLDER labels.csv
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import vitrine

KINDS = {".jpg", ".jpeg", ".png", ".webp"}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a folder, a .safetensors file, or a name in Hugging Face's cache")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--top", type=int, default=1)
    given = parser.parse_args(arguments)

    model = vitrine.load(given.model)
    paths = sorted(path for path in given.folder.rglob("*") if path.suffix.lower() in KINDS)
    with given.out.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["path", "label", "probability", "error"])
        for path, found in zip(paths, model.classify(paths, top=given.top, progress=True), strict=True):
            if isinstance(found, vitrine.ImageError):
                table.writerow([path, "", "", found])
                continue
            for answer in found:
                table.writerow([path, answer.label, f"{answer.probability:.6f}", ""])


if __name__ == "__main__":
    main()
