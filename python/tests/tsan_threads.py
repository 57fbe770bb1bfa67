"""For run_tsan: eight threads that load, call and let go of models and graphs, and train, for so many seconds, and compare.

python3 tsan_threads.py SECONDS
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import vitrine
from PIL import Image

ASSETS = Path(__file__).resolve().parents[2] / "assets"
DIGITS = ASSETS / "digits"
SAMPLES = sorted((ASSETS / "samples").glob("*.png"))
X = np.random.default_rng(1).standard_normal((3, 1, 28, 28)).astype(np.float32)
W = np.random.default_rng(2).standard_normal((9, 9)).astype(np.float32)


def new_graph() -> vitrine.Graph:
    graph = vitrine.Graph()
    graph.output(graph.softmax(graph.linear(graph.input("x", (4, 9)), graph.constant(W))), "y")
    return graph


def growing(graph: vitrine.Graph) -> bytes:
    graph.constant(W)
    str(graph)
    return graph.run(x=W[:4])["y"].tobytes()


def trained(data: Path) -> bytes:
    model = {"image_size": 16, "patch_size": 8, "channels": 3, "dim": 16, "depth": 1, "heads": 2, "classes": 3}
    config = {"model": model, "epochs": 1, "batch_size": 4, "lr": 0.01, "seed": 3, "validate_every": "epoch"}
    with tempfile.TemporaryDirectory() as out:
        vitrine.train(config, data, out, callbacks=[repr])
        return (Path(out) / "last" / "model.safetensors").read_bytes()


def draw_pictures(folder: Path) -> None:
    rng = np.random.default_rng(1)
    for part, name, i in itertools.product(("train", "val", "test"), ("red", "green", "blue"), range(4)):
        (folder / part / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 18, 3), np.uint8)).save(folder / part / name / f"{i}.png")


def run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(data: Path) -> int:
    draw_pictures(data)
    seconds = float(sys.argv[1])
    warnings.simplefilter("ignore")
    shared = [vitrine.load(DIGITS), vitrine.load(arch="vit_tiny_patch16_224", overrides=["depth=1", "image_size=32"])]
    other = np.ones((2, 3, 32, 32), np.float32)
    encoded = [path.read_bytes() for path in SAMPLES]
    graph = new_graph()
    calls: list[Callable[[], bytes]] = [
        lambda: shared[0](X).tobytes(),
        lambda: shared[1](other).tobytes(),
        lambda: shared[0].embed(encoded).tobytes(),
        lambda: repr(shared[0].classify([*SAMPLES, "missing.png"])).encode(),
        lambda: shared[0].attention(SAMPLES[4], layer=-1).map.tobytes(),
        lambda: np.asarray(shared[0].forward_intermediates(X, [-1])[0]).tobytes(),
        lambda: b"".join(part.rows.tobytes() for part in shared[0].stream(SAMPLES, batch_size=3)),
        lambda: shared[0].preprocess(SAMPLES[1]).tobytes(),
        lambda: (str(shared[0]) + repr(shared[1]) + str(shared[0].labels)).encode(),
        lambda: vitrine.load(DIGITS)(X).tobytes(),
        lambda: vitrine.load(arch="vit_tiny_patch16_224", overrides=["depth=1", "image_size=32"])(other).tobytes(),
        lambda: repr(vitrine.devices()).encode(),
        lambda: new_graph().run(x=W[:4])["y"].tobytes(),
        lambda: growing(graph),
        lambda: trained(data),
    ]
    expected = [call() for call in calls]
    wrong: list[int] = []
    counts = [0] * 8
    until = time.monotonic() + seconds

    def work(place: int) -> None:
        for which in itertools.islice(itertools.cycle(range(len(calls))), place * len(calls) // 8, None):
            if time.monotonic() > until:
                return
            if calls[which]() != expected[which]:
                wrong.append(which)
            counts[place] += 1

    run_all([threading.Thread(target=work, args=(place,)) for place in range(8)])
    # Models of which no thread holds the last one: a device is closed while others open it.
    shared.clear()

    def reopen(_: int) -> None:
        for _ in range(3):
            if vitrine.load(DIGITS)(X).tobytes() != expected[0]:
                wrong.append(0)

    run_all([threading.Thread(target=reopen, args=(place,)) for place in range(4)])
    print(f"{sum(counts)} calls, at least {min(counts)} of each thread; wrong: {sorted(set(wrong)) or 'none'}")
    return 1 if wrong or not min(counts) else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(Path(folder)))
