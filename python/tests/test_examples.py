"""The recipes of docs/python.md, on small inputs."""

from __future__ import annotations

import csv
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import vitrine
from conftest import DIGITS, SAMPLES, TREE
from PIL import Image

Recipe = Callable[..., None]


def recipe(name: str) -> Recipe:
    main = runpy.run_path(str(TREE / "python" / "examples" / f"{name}.py"))["main"]
    return lambda *arguments: main([str(argument) for argument in arguments])


def test_every_recipe_is_run_here() -> None:
    """Whatever lies in the folder is in a test of this package, and in a document."""
    tests = "".join(path.read_text() for path in sorted((TREE / "python" / "tests").rglob("test_*.py")))
    documents = "".join((TREE / "docs" / name).read_text() for name in ("python.md", "python_batch.md"))
    for path in (TREE / "python" / "examples").glob("*.py"):
        assert f'"{path.stem}"' in tests or f'"{path.name}"' in tests, path.name
        assert path.name in documents, path.name


def test_labels_for_a_folder(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES, tmp_path / "pictures")
    (tmp_path / "pictures" / "broken.png").write_bytes(b"no picture")
    recipe("label_folder")(DIGITS, tmp_path / "pictures", tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 11
    labelled = {Path(row["path"]).stem: row["label"] for row in rows if not row["error"]}
    model = vitrine.load(DIGITS)
    for stem, label in labelled.items():
        answers = model.classify(SAMPLES / f"{stem}.png", top=1)[0]
        assert not isinstance(answers, vitrine.ImageError) and answers[0].label == label
    (bad,) = (row for row in rows if row["error"])
    assert "broken.png" in bad["error"]


def test_search_by_similarity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = tmp_path / "index.npz"
    search = recipe("search_similar")
    for _ in range(2):  # the second goes by what the first has left
        search(DIGITS, SAMPLES, SAMPLES / "4.png", "--index", index, "--count", 3)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 3
        likeness, path = lines[0].split()
        assert float(likeness) == pytest.approx(1, abs=1e-3) and Path(path).name == "4.png"
    assert np.load(index)["rows"].shape == (10, 64)


def test_attention_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe("attention_pictures")(DIGITS, tmp_path / "out", SAMPLES / "7.png", SAMPLES / "3.png")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "3_last.png", "3_rollout.png", "7_last.png", "7_rollout.png"]  # fmt: skip
    assert len(capsys.readouterr().out.splitlines()) == 2
    expected = np.asarray(vitrine.load(DIGITS).attention(SAMPLES / "7.png").overlay())
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "out" / "7_last.png")), expected)


def test_fine_tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    for part in ("train", "test"):
        for name, low in (("dark", 0), ("light", 160)):
            (tmp_path / part / name).mkdir(parents=True)
            for i in range(4):
                Image.fromarray(rng.integers(low, low + 90, (28, 28), np.uint8)).save(tmp_path / part / name / f"{i}.png")
    recipe("fine_tune")(DIGITS, tmp_path, tmp_path / "out", "--epochs", 20)
    said = capsys.readouterr().out
    assert "epoch 20: loss" in said and "100.0 % of the test part" in said and "dark/0.png dark" in said
