"""vitrine.train() beside the tool's `train`: the same files and the same records."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vitrine
from conftest import DIGITS
from PIL import Image

CONFIG: dict[str, Any] = {
    "model": {"image_size": 16, "patch_size": 8, "channels": 3, "dim": 16, "depth": 1, "heads": 2, "classes": 3},
    "epochs": 2,
    "batch_size": 4,
    "lr": 0.01,
    "seed": 3,
    "validate_every": "epoch",
}
TIMES = ("seconds", "images_per_second", "waited_seconds")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures whose colour tells their class, a little."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    for part, count in (("train", 7), ("val", 3), ("test", 4)):
        for number, name in enumerate(("red", "green", "blue")):
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                picture = rng.integers(0, 180, (20, 18, 3), np.uint8)
                picture[:, :, number] += 60
                Image.fromarray(picture).save(folder / part / name / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def tool() -> Callable[..., list[dict[str, Any]]]:
    program = os.environ.get("VITRINE_PROGRAM")
    if not program:
        pytest.skip("VITRINE_PROGRAM doesn't say where the tool is")

    def run(*arguments: object) -> list[dict[str, Any]]:
        done = subprocess.run([program, "train", *map(str, arguments)], capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def without_times(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in record.items() if key not in TIMES} for record in records]


def files_of(folder: Path) -> dict[str, bytes]:
    """What doesn't say how long it took."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("log.csv", "checkpoint.safetensors")
    }


def tensors_of(folder: Path) -> bytes:
    """A checkpoint behind its header, which has seconds in it."""
    stored = (folder / "checkpoint.safetensors").read_bytes()
    return stored[8 + int.from_bytes(stored[:8], "little") :]


def same_folders(a: Path, b: Path) -> None:
    files = files_of(a)
    assert {"training.json", "best/model.safetensors", "last/config.json"} <= set(files)
    assert files == files_of(b)
    assert tensors_of(a) == tensors_of(b)


def test_the_tool_does_the_same(data: Path, tool: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    lines = tool("--config", tmp_path / "config.json", "--data", data, "--out", tmp_path / "tool")
    records: list[dict[str, Any]] = []
    result = vitrine.train(CONFIG, data, tmp_path / "python", callbacks=[records.append])
    assert [set(line) for line in lines] == [set(record) for record in records]
    assert without_times(records) == without_times(lines)
    assert result == records[-1] and set(result) == {"test_loss", "test_accuracy", "test_top5"}
    assert [record.get("epoch") for record in records] == [1, 2, None]
    same_folders(tmp_path / "tool", tmp_path / "python")
    # From a file, too; and what comes of it is a model.
    vitrine.train(tmp_path / "config.json", data, tmp_path / "file")
    same_folders(tmp_path / "tool", tmp_path / "file")
    assert vitrine.load(tmp_path / "python").labels == ["blue", "green", "red"]


def test_fine_tuning(data: Path, tool: Any, tmp_path: Path) -> None:
    vitrine.train(CONFIG, data, tmp_path / "first")
    options = {**{key: CONFIG[key] for key in ("epochs", "batch_size", "lr", "validate_every")}, "train": "head"}
    (tmp_path / "config.json").write_text(json.dumps(options))
    lines = tool("--model", tmp_path / "first", "--config", tmp_path / "config.json", "--data", data, "--out", tmp_path / "tool")
    records: list[dict[str, Any]] = []
    vitrine.train(options, data, tmp_path / "python", model=tmp_path / "first", callbacks=[records.append])
    assert without_times(records) == without_times(lines)
    same_folders(tmp_path / "tool", tmp_path / "python")


def test_a_callback_that_raises_leaves_what_goes_on(data: Path, tmp_path: Path) -> None:
    vitrine.train(CONFIG, data, tmp_path / "whole")

    class Enough(Exception):
        pass

    def enough(record: dict[str, Any]) -> None:
        if record.get("epoch") == 1:
            raise Enough

    with pytest.raises(Enough):
        vitrine.train(CONFIG, data, tmp_path / "stopped", callbacks=[enough])
    assert (tmp_path / "stopped" / "checkpoint.safetensors").exists()
    with pytest.raises(vitrine.Error, match="holds a training already"):
        vitrine.train(CONFIG, data, tmp_path / "stopped")
    records: list[dict[str, Any]] = []
    vitrine.train(CONFIG, data, tmp_path / "stopped", resume=True, callbacks=[records.append])
    assert [record.get("epoch") for record in records] == [2, None]
    same_folders(tmp_path / "whole", tmp_path / "stopped")


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="POSIX's signals")
def test_interrupt(data: Path, tmp_path: Path) -> None:
    config = {**CONFIG, "epochs": 400}
    epochs = []

    def soon(record: dict[str, Any]) -> None:
        epochs.append(record)
        if len(epochs) == 1:  # in the middle of what follows
            threading.Timer(0.05, lambda: signal.raise_signal(signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        vitrine.train(config, data, tmp_path / "out", callbacks=[soon])
    assert 1 <= len(epochs) < 400
    seen: list[dict[str, Any]] = []

    def stop_then(record: dict[str, Any]) -> None:
        seen.append(record)
        raise RuntimeError("that is enough")

    with pytest.raises(RuntimeError, match="that is enough"):
        vitrine.train(config, data, tmp_path / "out", resume=True, callbacks=[stop_then])
    # One whose record was being taken when it came is not told again.
    assert seen[0]["epoch"] in (len(epochs) + 1, len(epochs) + 2)


def test_warnings_and_progress(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vitrine.train(CONFIG, data, tmp_path / "quiet")
    assert capsys.readouterr().err == ""
    pytest.importorskip("tqdm", reason="found no tqdm")
    vitrine.train(CONFIG, data, tmp_path / "shown", progress=True)
    assert "12/12" in capsys.readouterr().err  # batches: 21 pictures by 4, twice


def test_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(vitrine.Error, match="neither config nor model"):
        vitrine.train(None, data, tmp_path / "out")
    with pytest.raises(vitrine.Error, match="device and devices"):
        vitrine.train(CONFIG, data, tmp_path / "out", device=0, devices=[0])
    with pytest.raises(vitrine.Error, match="which is among them already"):
        vitrine.train(CONFIG, data, tmp_path / "out", devices=[0, 0])
    with pytest.raises(vitrine.ModelError, match='config: "epoch" is not'):
        vitrine.train({**CONFIG, "epoch": 3}, data, tmp_path / "out")
    with pytest.raises(vitrine.Error, match="what JSON can't hold"):
        vitrine.train({**CONFIG, "lr": float("nan")}, data, tmp_path / "out")
    with pytest.raises(vitrine.ModelError, match="nothing-here"):
        vitrine.train(CONFIG, tmp_path / "nothing-here", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(vitrine.DeviceError):
        vitrine.train(CONFIG, data, tmp_path / "out", device="no such card")


def test_one_device_that_shares(data: Path, tool: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    tool("--config", tmp_path / "config.json", "--data", data, "--out", tmp_path / "tool", "--devices", "0")
    vitrine.train(CONFIG, data, tmp_path / "python", devices=[0])
    same_folders(tmp_path / "tool", tmp_path / "python")


def test_digits_are_taught_further(tool: Any, tmp_path: Path) -> None:
    """A model that was published, on folders, as the recipe has it."""
    rng = np.random.default_rng(2)
    for part in ("train", "test"):
        for name in ("dark", "light"):
            (tmp_path / part / name).mkdir(parents=True)
            for i in range(4):
                low = 0 if name == "dark" else 160
                Image.fromarray(rng.integers(low, low + 90, (28, 28), np.uint8)).save(tmp_path / part / name / f"{i}.png")
    options = {"epochs": 3, "batch_size": 4, "lr": 0.05, "train": "head"}
    result = vitrine.train(options, tmp_path, tmp_path / "out", model=DIGITS)
    assert result["test_accuracy"] == 1
    assert vitrine.load(tmp_path / "out").labels == ["dark", "light"]
