"""Teaches a trained model the classes of your own pictures, data/train/CLASS/x.jpg and data/test/CLASS/x.jpg.

    python3 fine_tune.py MODEL data out --epochs 5
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import vitrine


def tell(record: dict[str, Any]) -> None:
    if "epoch" in record:
        print(f"epoch {record['epoch']}: loss {record['loss']:.4f}, {record['images_per_second']:.0f} pictures a second")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a folder, a .safetensors file, or a name in Hugging Face's cache")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--train", default="head", help="all, head, last:N blocks, lora[:RANK]")
    parser.add_argument("--resume", action="store_true", help="go on with what Ctrl-C stopped")
    given = parser.parse_args(arguments)

    config = {"train": given.train, "epochs": given.epochs, "batch_size": 32, "lr": 5e-3, "schedule": "cosine"}
    result = vitrine.train(config, given.data, given.out, model=given.model, callbacks=[tell], resume=given.resume)
    print(f"{100 * result['test_accuracy']:.1f} % of the test part")

    # What came out is a model as any other.
    pictures = sorted((given.data / "test").rglob("*.*"))[:3]
    for path, answers in zip(pictures, vitrine.load(given.out).classify(pictures, top=1), strict=True):
        print(path, answers if isinstance(answers, vitrine.ImageError) else answers[0].label)


if __name__ == "__main__":
    main()
