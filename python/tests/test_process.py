"""Threads, signals, processes, and what goes wrong with devices and files."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import vitrine
from conftest import DIGITS

ARCH = "vit_tiny_patch16_224"


def run_python(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=240, env={**os.environ, **environment}
    )


def test_threads(digits: vitrine.Model) -> None:
    other = vitrine.load(arch=ARCH, overrides=["depth=1", "image_size=32"])
    rng = np.random.default_rng(1)
    inputs = [
        (digits, rng.standard_normal((3, 1, 28, 28)).astype(np.float32)),
        (other, rng.standard_normal((2, 3, 32, 32)).astype(np.float32)),
    ] * 4
    expected = [model(x).tobytes() for model, x in inputs]

    def work(place: int) -> bool:
        model, x = inputs[place]
        return all(model(x).tobytes() == expected[place] for _ in range(25))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_threads_that_load_call_and_let_go(samples: list[Path]) -> None:
    """Whatever is called beside whatever else, on models that all share and on one's own: nothing differs."""
    models = [vitrine.load(DIGITS), vitrine.load(DIGITS, dtype="f32")]
    encoded = [path.read_bytes() for path in samples]
    calls: list[Callable[[vitrine.Model], bytes]] = [
        lambda model: model.embed(encoded).tobytes(),
        lambda model: model.embed([*samples, "missing.png"], errors="return").rows.tobytes(),
        lambda model: repr(model.classify(samples[:3])).encode(),
        lambda model: model.attention(samples[4], layer=-1).map.tobytes(),
        lambda model: b"".join(part.rows.tobytes() for part in model.stream(samples, batch_size=3)),
        lambda model: model.preprocess(samples[1]).tobytes(),
        lambda model: model.forward_features(np.ones((2, 1, 28, 28), np.float32)).tobytes(),
        lambda _: vitrine.load(DIGITS).embed(encoded[:2]).tobytes(),
    ]
    expected = [[call(model) for call in calls] for model in models]

    def work(place: int) -> bool:
        found = []
        for turn in range(24):
            which, call = (place + turn) % 2, (place + turn // 2) % len(calls)
            found.append(calls[call](models[which]) == expected[which][call])
        return all(found)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_the_gil_is_free_meanwhile() -> None:
    model = vitrine.load(arch=ARCH)
    x = np.zeros((8, 3, 224, 224), np.float32)
    model(x)
    done = threading.Event()

    def compute() -> None:
        model(x)
        done.set()

    thread = threading.Thread(target=compute)
    ticks, longest, last = 0, 0.0, time.perf_counter()
    start = last
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        now = time.perf_counter()
        ticks, longest, last = ticks + 1, max(longest, now - last), now
    took = time.perf_counter() - start
    thread.join()
    assert ticks > 3 and longest < max(took / 2, 0.05)


def test_arrays_outlive_their_model() -> None:
    model = vitrine.load(DIGITS)
    # NumPy's own memory, and memory of the library's that goes with the array.
    arrays = [model(np.ones((4, 1, 28, 28), np.float32)), model.preprocess(np.ones((9, 9), np.uint8))]
    copies = [y.copy() for y in arrays]
    del model
    gc.collect()
    assert [y.tobytes() for y in arrays] == [copy.tobytes() for copy in copies]
    assert arrays[0].flags.owndata
    assert not arrays[1].flags.owndata and arrays[1].base is not None


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="POSIX's signals")
def test_interrupt() -> None:
    model = vitrine.load(arch=ARCH, overrides=["depth=2", "image_size=64"])
    x = np.zeros((6000, 3, 64, 64), np.float32)
    expected = model(x[:1]).tobytes()
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            model(x, batch_size=1)
    timer.join()
    assert model(x[:1]).tobytes() == expected  # and it goes on


def test_interrupt_among_pictures(digits: vitrine.Model, samples: list[Path]) -> None:
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            digits.embed(samples * 100)
    timer.join()
    assert digits.embed(samples).shape == (10, 64)


def test_fork() -> None:
    done = run_python(f"""
import os, numpy, vitrine
model = vitrine.load({str(DIGITS)!r})
x = numpy.zeros((1, 1, 28, 28), numpy.float32)
model(x)
graph = vitrine.Graph()
value = graph.input("x", (2, 3))
graph.output(value * 2, "y")
graph.run(x=numpy.zeros((2, 3)))
child = os.fork()
if child == 0:
    said = []
    for call in (
        lambda: model(x),
        lambda: vitrine.load({str(DIGITS)!r}),
        vitrine.devices,
        lambda: graph.run(x=numpy.zeros((2, 3))),
        lambda: value * 3,
    ):
        try:
            call()
        except vitrine.DeviceError as error:
            said.append("forked" in str(error))
    del model, graph, value
    os._exit(0 if said == [True] * 5 else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
model(x)
print("child", status)
""")
    assert done.stdout == "child 0\n", done.stderr
    assert done.returncode == 0, done.stderr


def test_no_driver() -> None:
    done = run_python(
        "import vitrine\ntry:\n    vitrine.devices()\nexcept vitrine.DeviceError as error:\n    print(error)",
        VK_DRIVER_FILES="/nowhere.json",
    )
    assert "install a Vulkan driver" in done.stdout, done.stderr


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(vitrine.ModelError, match="nothing-here"):
        vitrine.load(tmp_path / "nothing-here")
    with pytest.raises(vitrine.Error, match="neither model nor arch"):
        vitrine.load()
    with pytest.raises(vitrine.DeviceError):
        vitrine.load(DIGITS, device="no such card")
    assert issubclass(vitrine.ImageError, vitrine.Error) and not issubclass(vitrine.ImageError, vitrine.ModelError)


def test_what_a_model_is(digits: vitrine.Model) -> None:
    assert digits.labels == list("0123456789")
    assert digits.config["dim"] == 64 and digits.config["class_token"] is True
    assert "blocks of 64" in repr(digits)
