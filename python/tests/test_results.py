"""What comes out equals what the tool writes, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vitrine
from conftest import DIGITS, TREE
from numpy.typing import NDArray
from PIL import Image

Tool = Callable[..., list[dict[str, Any]]]
ARCH = "vit_tiny_patch16_224"
SMALL = ["depth=3", "image_size=64", "classes=7"]


@pytest.fixture(scope="module")
def tiny() -> vitrine.Model:
    return vitrine.load(arch=ARCH, seed=3, overrides=SMALL)


@pytest.fixture(scope="module")
def tiny_options() -> list[str]:
    return ["--arch", ARCH, "--seed", "3", *(word for field in SMALL for word in ("--set", field))]


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    assert np.ptp(b) > 0  # a constant proves nothing
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("what", ["logits", "probabilities", "features", "tokens"])
def test_numbers(tiny: vitrine.Model, tiny_options: list[str], tool: Tool, tmp_path: Path, what: str) -> None:
    x = numbers(11, 3, 64, 64)
    np.save(tmp_path / "x.npy", x)
    tool("run", *tiny_options, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", "--what", what)
    call = {
        "logits": lambda: tiny(x),
        "probabilities": lambda: tiny._session.run(x, "probabilities", 8),
        "features": lambda: tiny.forward_head(x, pre_logits=True),
        "tokens": lambda: tiny.forward_features(x),
    }[what]
    assert same(call(), np.load(tmp_path / "y.npy"))


def test_parts_of_a_large_array(tiny: vitrine.Model) -> None:
    # 16 batches of 2 are done at once, so 37 images take two parts.
    x = numbers(37, 3, 64, 64)
    whole = tiny(x, batch_size=2)
    assert same(np.concatenate([tiny(x[i : i + 2], batch_size=2) for i in range(0, 37, 2)]), whole)


@pytest.mark.parametrize("output_fmt", ["NCHW", "NLC"])
@pytest.mark.parametrize("norm", [False, True])
def test_intermediates(
    tiny: vitrine.Model, tiny_options: list[str], tool: Tool, tmp_path: Path, output_fmt: Any, norm: bool
) -> None:
    x = numbers(1, 3, 64, 64)
    np.save(tmp_path / "x.npy", x)
    options = ["--norm"] if norm else []
    tool("features", tmp_path / "x.npy", *tiny_options, "--layer", "0,-1", "--layout", output_fmt, *options,
         "--out", tmp_path / "maps.npy", "--prefix", tmp_path / "prefix.npy")  # fmt: skip
    found = tiny.forward_intermediates(x, [0, -1], norm=norm, output_fmt=output_fmt, return_prefix_tokens=True)
    assert same(np.stack([map for map, _ in found]), np.load(tmp_path / "maps.npy"))
    assert same(np.stack([prefix for _, prefix in found]), np.load(tmp_path / "prefix.npy"))


def test_intermediates_of_a_batch(tiny: vitrine.Model) -> None:
    x = numbers(3, 3, 64, 64)
    (maps,) = tiny.forward_intermediates(x, 1)
    single = np.concatenate([tiny.forward_intermediates(x[i], [-1])[0] for i in range(3)])
    assert maps.shape == (3, 192, 4, 4)
    np.testing.assert_allclose(maps, single, rtol=1e-4, atol=1e-4)
    # and the last block's, normalised, are forward_features' patches
    (rows,) = tiny.forward_intermediates(x, [-1], norm=True, output_fmt="NLC")
    np.testing.assert_allclose(rows, tiny.forward_features(x)[:, 1:], rtol=1e-4, atol=1e-4)


def test_classes(digits: vitrine.Model, tool: Tool, samples: list[Path]) -> None:
    lines = tool("classify", *samples, "--model", DIGITS, "--top", 3)
    answers = digits.classify(samples, top=3)
    assert len(answers) == 10
    for line, found in zip(lines, answers, strict=True):
        assert not isinstance(found, vitrine.ImageError)
        assert [(a.index, a.label) for a in found] == [(t["index"], t["label"]) for t in line["top"]]
        assert [np.float32(a.probability) for a in found] == [np.float32(t["probability"]) for t in line["top"]]


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("batch", [3, 8])
def test_features(
    digits: vitrine.Model, tool: Tool, samples: list[Path], tmp_path: Path, tokens: bool, batch: int
) -> None:
    options = ["--tokens"] if tokens else []
    tool("embed", *samples, "--model", DIGITS, "--out", tmp_path / "f.npy", "--batch", batch, *options)
    assert same(digits.embed(samples, tokens=tokens, batch_size=batch), np.load(tmp_path / "f.npy"))


def test_preprocessing(digits: vitrine.Model, tool: Tool, samples: list[Path], tmp_path: Path) -> None:
    tool("preprocess", samples[3], "--model", DIGITS, "--out", tmp_path / "x.npy")
    assert same(digits.preprocess(samples[3])[None], np.load(tmp_path / "x.npy"))


@pytest.mark.parametrize("layer", [0, -1, None])
def test_attention(digits: vitrine.Model, tool: Tool, samples: list[Path], tmp_path: Path, layer: int | None) -> None:
    options = [] if layer is None else ["--layer", layer % int(digits.config["depth"])]
    tool("attention", samples[7], "--model", DIGITS, *options, "--out", tmp_path / "a.png",
         "--raw", tmp_path / "a.npy")  # fmt: skip
    found = digits.attention(samples[7], layer, full=True)
    assert same(found.weights, np.load(tmp_path / "a.npy"))
    assert same(np.asarray(found.overlay()), np.asarray(Image.open(tmp_path / "a.png")))
    pooled = digits.attention(samples[7], layer)
    np.testing.assert_allclose(pooled.map, found.map, atol=1e-6)
    np.testing.assert_allclose(found.map.sum(), found.weights.mean(0)[0, 1:].sum(), rtol=1e-4)


def test_rollout(digits: vitrine.Model, tool: Tool, samples: list[Path], tmp_path: Path) -> None:
    tool("attention", samples[7], "--model", DIGITS, "--rollout", "--raw", tmp_path / "r.npy")
    assert same(digits.attention(samples[7], rollout=True, full=True).weights, np.load(tmp_path / "r.npy"))
    assert digits.attention(samples[7]).rollout().map.shape == (4, 4)


def test_half(tool: Tool, tmp_path: Path) -> None:
    chosen = next(device for device in vitrine.devices() if device.chosen)
    if not chosen.f16:
        pytest.skip(f"{chosen.name} stores no 16 bits")
    x = numbers(2, 3, 64, 64)
    np.save(tmp_path / "x.npy", x)
    model = vitrine.load(arch=ARCH, seed=3, overrides=SMALL, dtype="f16")
    options = ["--arch", ARCH, "--seed", 3, *(word for field in SMALL for word in ("--set", field))]
    tool("run", *options, "--dtype", "f16", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    assert same(model(x), np.load(tmp_path / "y.npy"))
    assert model.dtype == "f16"


def test_a_neck_gives_fewer_columns() -> None:
    model = vitrine.load(TREE / "tests" / "parity" / "fixtures" / "timm_sam")
    x = np.random.default_rng(1).standard_normal((2, 3, 32, 32), np.float32)
    tokens = model.forward_features(x)
    assert tokens.shape == (2, 16, 16)
    assert model.forward_intermediates(x, [-1])[0].shape == (2, 24, 4, 4)
    (behind,) = model.forward_intermediates(x, [-1], norm=True)
    np.testing.assert_array_equal(behind.reshape(2, 16, 16).transpose(0, 2, 1), tokens)


def test_results_stay_as_they_are_for_whoever_has_any_part_of_them() -> None:
    model = vitrine.load(DIGITS)
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal((1, 1, 28, 28)).astype(np.float32) for _ in range(6)]
    expected = [model(x).copy() for x in inputs]
    kept = [model(x) for x in inputs]
    rows = [model(x)[0] for x in inputs]
    seen = [memoryview(model(x)) for x in inputs]  # type: ignore[arg-type]
    for x in inputs:
        # What is let go of in another shape, of another type or read-only is nobody's either.
        model(x).shape = (10, 1)
        model(x).setflags(write=False)
        model(x).dtype = np.int32
        assert model(x).dtype == np.float32 and model(x).flags.writeable and model(x).shape == (1, 10)
    for want, whole, row, view in zip(expected, kept, rows, seen, strict=True):
        assert np.array_equal(whole, want) and np.array_equal(row, want[0]) and np.array_equal(np.asarray(view), want)
