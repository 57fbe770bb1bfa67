"""What notebooks and terminals show."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vitrine
from PIL import Image


def test_structure(digits: vitrine.Model) -> None:
    text, page = str(digits), digits._repr_html_()
    for shown in (text, page):
        for fact in (digits.device, "f32", "1 x 28 x 28", "17: 4 x 4 patches of 7 x 7, 1 in front", "4 of 64, 4 heads",
                     "10 classes", f"{digits._session.parameters:,}", "patch_embed", "block 0", "head"):  # fmt: skip
            assert fact in shown, fact
    assert "block 1" not in text and "block 3" in page
    assert repr(digits).startswith("<vitrine.Model") and "\n" not in repr(digits)
    parts = digits._session.parts()
    assert sum(part[4] for part in parts if part[0] == 0) == digits._session.parameters
    from html.parser import HTMLParser

    class Nesting(HTMLParser):
        open: list[str] = []

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    nesting = Nesting()
    nesting.feed(page)
    assert nesting.open == []


def test_a_name_is_text(tmp_path: Path) -> None:
    folder = tmp_path / "<b>&"
    folder.symlink_to(Path(__file__).resolve().parents[2] / "assets" / "digits")
    assert "&lt;b&gt;&amp;" in vitrine.load(folder)._repr_html_()


def test_attention_is_a_picture(digits: vitrine.Model, samples: list[Path]) -> None:
    shown = digits.attention(samples[7])
    picture = Image.open(io.BytesIO(shown._repr_png_()))
    np.testing.assert_array_equal(np.asarray(picture), np.asarray(shown.overlay()))


def test_exif_stays_with_an_attention(digits: vitrine.Model, tmp_path: Path) -> None:
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, (30, 40, 3), np.uint8))
    exif = picture.getexif()
    exif[0x0112] = 6
    picture.save(tmp_path / "turned.png", exif=exif)
    upright = digits.attention(picture.transpose(Image.Transpose.ROTATE_270))
    # A PIL picture is turned as its file says, too; the digits' preprocessing is of a library that turns.
    for turned in (tmp_path / "turned.png", Image.open(tmp_path / "turned.png")):
        found = digits.attention(turned, exif=True)
        np.testing.assert_array_equal(np.asarray(found.overlay()), np.asarray(upright.overlay()))
        np.testing.assert_array_equal(found.rollout().map, upright.rollout().map)
        np.testing.assert_array_equal(digits.attention(turned).map, upright.map)
        stored = digits.attention(turned, exif=False)
        assert stored.overlay().size != upright.overlay().size


def test_a_transparent_color_is_white_where_a_processor_converts(tmp_path: Path) -> None:
    # A palette whose second entry is transparent: SigLIP's processor makes it white, ViT's leaves its color.
    picture = Image.fromarray(np.random.default_rng(2).integers(0, 3, (32, 32), np.uint8), "P")
    picture.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    picture.save(tmp_path / "clear.png", transparency=1)
    small = ["dim=32", "heads=2", "depth=1", "image_size=32", "patch_size=16"]
    for profile, white in (("siglip", True), ("hf", False)):
        model = vitrine.load(arch="vit_tiny_patch16_224", overrides=small, profile=profile)
        values = model.preprocess(tmp_path / "clear.png")
        assert bool((values.min(axis=0) == 1).any()) == white
        np.testing.assert_array_equal(model.preprocess(Image.open(tmp_path / "clear.png")), values)


def test_progress(digits: vitrine.Model, samples: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm", reason="found no tqdm")
    quiet = digits.embed(samples)
    assert capsys.readouterr().err == ""
    assert digits.embed(samples, progress=True).tobytes() == quiet.tobytes()
    assert "10/10" in capsys.readouterr().err
    digits.classify([samples[0], "missing.png"], progress=True)
    assert "2/2" in capsys.readouterr().err
    assert sum(len(part.rows) for part in digits.stream(samples, batch_size=1, progress=True)) == 10
    assert "10/10" in capsys.readouterr().err
    assert sum(len(part.rows) for part in digits.stream(iter(samples), progress=True)) == 10
    assert "10 pictures" in capsys.readouterr().err


def test_progress_without_tqdm(digits: vitrine.Model, samples: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert digits.embed(samples, progress=True).shape == (10, 64)
