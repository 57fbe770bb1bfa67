"""Every kind of picture gives the same row, and what is none is said."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vitrine
from PIL import Image


def test_kinds(digits: vitrine.Model, samples: list[Path]) -> None:
    expected = digits.embed(samples[2])
    picture = Image.open(samples[2]).convert("RGB")
    array = np.asarray(picture)
    kinds: dict[str, Any] = {
        "str": str(samples[2]),
        "bytes": samples[2].read_bytes(),
        "PIL": Image.open(samples[2]),
        "HWC": array,
        "CHW": array.transpose(2, 0, 1),
        "not contiguous": np.repeat(array, 2, axis=1)[:, ::2],
        "RGBA": np.asarray(picture.convert("RGBA")),
        "grey": np.asarray(picture.convert("L")),
        "floats": array.astype(np.float32) / 255,
        "doubles": array.astype(np.float64) / 255,
    }
    for name, picture_of_kind in kinds.items():
        assert digits.embed(picture_of_kind).tobytes() == expected.tobytes(), name
    assert digits.embed(list(kinds.values())).shape == (len(kinds), 64)


def test_torch(digits: vitrine.Model, samples: list[Path]) -> None:
    torch = pytest.importorskip("torch")
    array = np.asarray(Image.open(samples[2]).convert("RGB")).copy()
    assert digits.embed(torch.from_numpy(array)).tobytes() == digits.embed(samples[2]).tobytes()
    x = torch.zeros(2, 1, 28, 28, requires_grad=True)
    assert digits(x).tobytes() == digits(x.detach().numpy()).tobytes()


def test_nothing_is_copied(digits: vitrine.Model) -> None:
    x = np.zeros((2000, 1, 28, 28), np.float32)  # 6 MB
    digits(x)
    tracemalloc.start()
    digits(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes / 10


def test_bad_pictures_stand_beside_the_others(digits: vitrine.Model, samples: list[Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(samples[0].read_bytes()[:60])
    missing = tmp_path / "missing.png"
    mixed: list[Any] = [samples[0], broken, b"no picture", missing, Image.open(samples[1]), samples[2]]
    found = digits.classify(mixed, top=1, batch_size=2)
    assert [not isinstance(f, vitrine.ImageError) for f in found] == [True, False, False, False, True, True]
    errors = {i: f for i, f in enumerate(found) if isinstance(f, vitrine.ImageError)}
    assert errors[1].path == str(broken) and "broken.png" in str(errors[1])
    assert errors[2].path is None and "picture 2" in str(errors[2])
    assert errors[3].path == str(missing)

    result = digits.embed(mixed, errors="return")
    assert result.indices.tolist() == [0, 4, 5] and list(result.errors) == [1, 2, 3]
    good = digits.embed([samples[0], samples[1], samples[2]])
    assert result.rows.tobytes() == good.tobytes()
    with pytest.raises(vitrine.ImageError, match="broken.png") as caught:
        digits.embed(mixed)
    assert caught.value.path == str(broken)
    for call in (digits.preprocess, digits.attention):
        with pytest.raises(vitrine.ImageError) as caught:
            call(broken)
        assert caught.value.path == str(broken)


def test_truncated_pil(digits: vitrine.Model, samples: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "cut.jpg"
    Image.effect_noise((200, 200), 60).save(path)
    path.write_bytes(path.read_bytes()[:3000])
    (found,) = digits.classify(Image.open(path))
    assert isinstance(found, vitrine.ImageError) and found.path == str(path)


def test_none_and_nothing(digits: vitrine.Model) -> None:
    assert digits.classify([]) == []
    assert digits.embed([]).shape == (0, 64)
    assert list(digits.stream([])) == []


@pytest.mark.parametrize(
    "picture",
    [7, np.zeros((5, 5, 2), np.uint8), np.zeros((0, 5, 3), np.uint8), np.full((4, 4, 3), 2.0), np.zeros((4, 4), np.int64)],
)
def test_refused(digits: vitrine.Model, picture: Any) -> None:
    with pytest.raises(vitrine.Error, match="found"):
        digits.embed([picture])


def test_numbers_however_they_lie(digits: vitrine.Model) -> None:
    x = np.random.default_rng(5).standard_normal((3, 1, 28, 28)).astype(np.float32)
    expected = digits(x).tobytes()
    read_only = x.copy()
    read_only.flags.writeable = False
    wider = np.zeros((3, 2, 28, 30), np.float32)
    wider[:, :1, :, 1:29] = x
    for other in (read_only, wider[:, :1, :, 1:29], np.asfortranarray(x), x.astype(">f4"), x.astype(np.float64)):
        assert digits(other).tobytes() == expected
    assert digits(x[0]).tobytes() == digits(x[:1]).tobytes()
    assert digits(memoryview(x)).tobytes() == digits(x.tolist()).tobytes() == expected
    assert digits(x, batch_size=2**60).tobytes() == expected


def test_refused_numbers(digits: vitrine.Model) -> None:
    with pytest.raises(vitrine.Error, match=r"\(1, 3, 28, 28\), expected \(B, 1, 28, 28\)"):
        digits(np.zeros((1, 3, 28, 28), np.float32))
    with pytest.raises(vitrine.Error, match="B at least 1"):
        digits(np.zeros((0, 1, 28, 28), np.float32))
    with pytest.raises(vitrine.Error, match="batch_size"):
        digits.embed([], batch_size=0)
    with pytest.raises(vitrine.Error, match="batch_size"):
        digits(np.zeros((1, 1, 28, 28), np.float32), batch_size=0)
    with pytest.raises(vitrine.Error, match="layer: found 99"):
        digits.forward_intermediates(np.zeros((1, 1, 28, 28), np.float32), [99])


def test_stream(digits: vitrine.Model, samples: list[Path]) -> None:
    paths = [samples[i % 10] for i in range(83)]
    paths[40] = Path("missing.png")
    parts = list(digits.stream(iter(paths), batch_size=4))
    assert len(parts) == 6
    assert np.concatenate([part.indices for part in parts]).tolist() == [i for i in range(83) if i != 40]
    assert [i for part in parts for i in part.errors] == [40]
    whole = digits.embed(paths, errors="return", batch_size=4)
    np.testing.assert_allclose(np.concatenate([part.rows for part in parts]), whole.rows, rtol=1e-5, atol=1e-5)
