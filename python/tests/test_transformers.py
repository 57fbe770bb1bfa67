"""Pipelines beside transformers' own, on random models of its families that it writes itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
import vitrine
from conftest import DIGITS, SAMPLES
from PIL import Image
from vitrine.transformers import pipeline

SIZE = 32
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": SIZE,
    "patch_size": 8,
}
CLASSES = {"id2label": {i: f"thing {i}" for i in range(7)}, "label2id": {f"thing {i}": i for i in range(7)}}


@dataclass(frozen=True)
class Case:
    """A class of transformers, its configuration's, and the class of its image processor."""

    model: str
    config: str
    processor: str
    fields: dict[str, Any] = field(default_factory=dict)
    pools: bool = True  # whether there is a pooler_output
    pictures: dict[str, Any] = field(default_factory=dict)


SQUARE = {"size": {"height": SIZE, "width": SIZE}}
CROP = {"size": {"shortest_edge": SIZE + 4}, "crop_size": {"height": SIZE, "width": SIZE}}
VIT = {"pooler_output_size": 32}
DINO = {"mlp_ratio": 2}
CASES = {
    "vit": Case("ViTModel", "ViTConfig", "ViTImageProcessor", VIT, pictures=SQUARE),
    "vit classifier": Case("ViTForImageClassification", "ViTConfig", "ViTImageProcessor", CLASSES, False, SQUARE),
    "deit": Case("DeiTModel", "DeiTConfig", "DeiTImageProcessor", VIT, pictures={**SQUARE, "crop_size": SQUARE["size"]}),
    "deit classifier": Case("DeiTForImageClassification", "DeiTConfig", "DeiTImageProcessor", CLASSES, False,
                            {"size": {"height": 36, "width": 36}, "crop_size": SQUARE["size"]}),
    "deit with a teacher": Case("DeiTForImageClassificationWithTeacher", "DeiTConfig", "DeiTImageProcessor", CLASSES, False,
                                {"size": {"height": 36, "width": 36}, "crop_size": SQUARE["size"]}),
    "dinov2": Case("Dinov2Model", "Dinov2Config", "BitImageProcessor", DINO, pictures=CROP),
    "dinov2 classifier": Case("Dinov2ForImageClassification", "Dinov2Config", "BitImageProcessor", {**DINO, **CLASSES}, pictures=CROP),
    "registers": Case("Dinov2WithRegistersForImageClassification", "Dinov2WithRegistersConfig", "BitImageProcessor",
                      {**DINO, **CLASSES}, pictures=CROP),
    "beit": Case("BeitForImageClassification", "BeitConfig", "BeitImageProcessor",
                 {**CLASSES, "use_relative_position_bias": True}, pictures={**SQUARE, "do_center_crop": False}),
    "beit with a class token": Case("BeitModel", "BeitConfig", "BeitImageProcessor",
                                    {"use_mean_pooling": False, "use_absolute_position_embeddings": True},
                                    pictures={**SQUARE, "do_center_crop": False}),
    "data2vec": Case("Data2VecVisionForImageClassification", "Data2VecVisionConfig", "BeitImageProcessor",
                     {**CLASSES, "use_shared_relative_position_bias": True}, False, {**SQUARE, "do_center_crop": False}),
    "clip": Case("CLIPVisionModel", "CLIPVisionConfig", "CLIPImageProcessor", pictures=CROP),
    "clip with a projection": Case("CLIPVisionModelWithProjection", "CLIPVisionConfig", "CLIPImageProcessor",
                                   {"projection_dim": 16}, pictures=CROP),
    "siglip": Case("SiglipVisionModel", "SiglipVisionConfig", "SiglipImageProcessor", pictures=SQUARE),
    "dinov3": Case("DINOv3ViTModel", "DINOv3ViTConfig", "DINOv3ViTImageProcessor", {"num_register_tokens": 2}, pictures=SQUARE),
    "msn": Case("ViTMSNModel", "ViTMSNConfig", "ViTImageProcessor", {}, False, SQUARE),
    "ijepa": Case("IJepaForImageClassification", "IJepaConfig", "ViTImageProcessor", CLASSES, False, SQUARE),
}  # fmt: skip
CLASSIFIERS = [name for name, case in CASES.items() if "ForImageClassification" in case.model]


@pytest.fixture(scope="module")
def library() -> Any:
    pytest.importorskip("torch", reason="found no torch")
    pytest.importorskip("torchvision", reason="found no torchvision")
    return pytest.importorskip("transformers", reason="found no transformers")


def spread(model: Any, seed: int) -> None:
    """Weights with which outputs differ: a new model's hardly do."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            drawn = torch.randn(weight.shape, generator=generator)
            if weight.ndim >= 2 and "embeddings" not in name:
                weight.copy_(drawn / weight[0].numel() ** 0.5)
            elif name.endswith("weight") and weight.ndim == 1:
                weight.copy_(1 + 0.2 * drawn)
            else:
                weight.copy_(0.2 * drawn)


@pytest.fixture(scope="module")
def written(library: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def write(name: str) -> Path:
        if name not in made:
            case = CASES[name]
            folder = tmp_path_factory.mktemp("model")
            model = getattr(library, case.model)(getattr(library, case.config)(**{**SMALL, **case.fields}))
            spread(model, sorted(CASES).index(name))
            model.eval().save_pretrained(folder)
            getattr(library, case.processor)(**case.pictures).save_pretrained(folder)
            made[name] = folder
        return made[name]

    return write


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(3)
    paths = []
    for i, size in enumerate([(40, 50), (61, 37), (32, 32), (33, 90)]):
        small = rng.integers(0, 256, (6, 6, 3), np.uint8)
        paths.append(folder / f"{i}.png")
        Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).save(paths[-1])
    # One that lies on its side.
    turned = Image.open(paths[0])
    exif = turned.getexif()
    exif[0x0112] = 6
    paths.append(folder / "turned.jpg")
    turned.save(paths[-1], quality=95, exif=exif)
    return paths


def resizes_bytes() -> bool:
    """Whether torchvision resizes bytes as bytes: 0.21 takes a CPU with AVX-512 for one that can't, and rounds numbers."""
    import torch
    from torchvision.transforms.v2 import functional

    picture = torch.randint(0, 256, (1, 3, 60, 44), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    bilinear = {"size": [SIZE, SIZE], "antialias": True}
    expected = torch.nn.functional.interpolate(picture, mode="bilinear", **bilinear)
    return torch.equal(functional.resize(picture, interpolation=functional.InterpolationMode.BILINEAR, **bilinear), expected)


def theirs(library: Any, task: str, folder: Path, backend: str = "torchvision") -> Any:
    processor = library.AutoImageProcessor.from_pretrained(folder, backend=backend)
    if backend == "torchvision" and processor.resample == Image.Resampling.BILINEAR and not resizes_bytes():
        pytest.skip("found a torchvision that resizes bytes as numbers on this CPU, other than later ones")
    return library.pipeline(task, model=str(folder), image_processor=processor, device="cpu")


def shown(name: str, pictures: list[Path]) -> list[str]:
    # DINOv3's processor resizes numbers, of which Vitrine warns: where nothing is resized there's no difference.
    return [str(pictures[2])] * 2 if name == "dinov3" else [str(path) for path in pictures]


def same_scores(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert [one["label"] for one in found] == [one["label"] for one in expected]
    assert [set(one) for one in found] == [set(one) for one in expected]
    np.testing.assert_allclose([one["score"] for one in found], [one["score"] for one in expected], rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*resized as bytes")
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("backend", ["torchvision", "pil"])
def test_scores(library: Any, written: Any, pictures: list[Path], name: str, backend: Any) -> None:
    if backend == "pil" and int(PIL.__version__.partition(".")[0]) >= 13:
        pytest.skip(f"found Pillow {PIL.__version__}, which resizes otherwise than all before 13")
    folder, paths = written(name), shown(name, pictures)
    expected = theirs(library, "image-classification", folder, backend)(paths)
    ours = pipeline("image-classification", model=folder, backend=backend)
    found = ours(paths)
    assert len(found) == len(paths)
    assert len({one["score"] for one in expected[0]}) > 1  # equal ones prove nothing
    for one, wanted in zip(found, expected, strict=True):
        assert len(one) == 5
        same_scores(one, wanted)
    same_scores(ours(paths[0]), expected[0])


@pytest.mark.filterwarnings("ignore:.*resized as bytes")
@pytest.mark.parametrize("name", list(CASES))
def test_features(library: Any, written: Any, pictures: list[Path], name: str) -> None:
    case, folder, paths = CASES[name], written(name), shown(name, pictures)
    reference = theirs(library, "image-feature-extraction", folder)
    ours = pipeline("image-feature-extraction", model=folder)
    for pool in (False, True) if case.pools else (False,):
        expected, found = reference(paths, pool=pool), ours(paths, pool=pool)
        assert [np.shape(one) for one in found] == [np.shape(one) for one in expected]
        assert isinstance(found[0][0], list)
        for one, wanted in zip(found, expected, strict=True):
            assert np.ptp(wanted) > 0.1
            np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
        np.testing.assert_allclose(ours(paths[0], pool=pool), expected[0], rtol=1e-4, atol=1e-4)
    if not case.pools:
        with pytest.raises(vitrine.Error, match="found no pooler"):
            ours(paths[0], pool=True)


def test_words_of_a_call(library: Any, written: Any, pictures: list[Path]) -> None:
    folder, paths = written("beit"), [str(path) for path in pictures]
    reference, ours = theirs(library, "image-classification", folder), pipeline("image-classification", model=folder)
    for top_k in (1, 3, 100):
        for function in ("sigmoid", "softmax", "none", "SoftMax"):
            same_scores(ours(paths[1], top_k=top_k, function_to_apply=function),
                        reference(paths[1], top_k=top_k, function_to_apply=function))  # fmt: skip
    # What is said once holds for all calls.
    library_says = library.pipeline("image-classification", model=str(folder), top_k=2, function_to_apply="none")
    same_scores(pipeline("image-classification", model=folder, top_k=2, function_to_apply="none")(paths[0]), library_says(paths[0]))


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification", "single_label_classification"])
def test_what_a_model_is_for(library: Any, written: Any, pictures: list[Path], tmp_path: Path, problem: str) -> None:
    source = written("vit classifier")
    for file in source.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, "problem_type": problem}))
    reference = theirs(library, "image-classification", tmp_path)
    same_scores(pipeline("image-classification", model=tmp_path)(str(pictures[0])), reference(str(pictures[0])))


@pytest.mark.parametrize("classes", [1, 2])
def test_classes_without_names(library: Any, pictures: list[Path], tmp_path: Path, classes: int) -> None:
    model = library.ViTForImageClassification(library.ViTConfig(**SMALL, num_labels=classes))
    spread(model, 5)
    model.save_pretrained(tmp_path)
    library.ViTImageProcessor(**SQUARE).save_pretrained(tmp_path)
    reference = theirs(library, "image-classification", tmp_path)
    same_scores(pipeline("image-classification", model=tmp_path)(str(pictures[0])), reference(str(pictures[0])))


def test_kinds_of_pictures(library: Any, written: Any, pictures: list[Path]) -> None:
    folder = written("siglip")
    reference, ours = theirs(library, "image-feature-extraction", folder), pipeline("image-feature-extraction", model=folder)
    turned = pictures[-1]
    expected = reference(str(turned))
    address = "data:image/jpeg;base64," + base64.b64encode(turned.read_bytes()).decode()
    np.testing.assert_allclose(reference(address), expected, rtol=0, atol=1e-6)
    for picture in (str(turned), turned, turned.read_bytes(), Image.open(turned), address):
        np.testing.assert_allclose(ours(picture), expected, rtol=1e-4, atol=1e-4)
    tensors = ours([turned, turned], return_tensors=True, batch_size=1)
    assert type(tensors[0]) is type(reference(str(turned), return_tensors=True))
    assert tensors[0].shape == reference(str(turned), return_tensors=True).shape
    array = ours(turned, return_tensors="np")
    assert array.dtype == np.float32 and array.tolist() == ours(turned)
    # One by one, as many as come.
    several = ours(picture for picture in [turned] * 3)
    assert not isinstance(several, list) and len(list(several)) == 3
    assert ours([]) == []


def test_an_array_is_a_picture(library: Any, written: Any, pictures: list[Path]) -> None:
    folder = written("deit classifier")
    reference, ours = theirs(library, "image-classification", folder), pipeline("image-classification", model=folder)
    array = np.array(Image.open(pictures[1]))
    same_scores(ours(array), reference(array))
    assert len(ours(np.stack([array, array]))) == 2


def test_without_transformers(digits: vitrine.Model) -> None:
    classifier = pipeline("image-classification", model=digits, top_k=2)
    (first, second), other = classifier([SAMPLES / "7.png"])[0], classifier(str(SAMPLES / "3.png"))
    assert first["label"] == "7" and other[0]["label"] == "3"
    assert first["score"] > second["score"]
    expected = digits.classify(SAMPLES / "7.png", top=2)[0]
    assert not isinstance(expected, vitrine.ImageError)
    np.testing.assert_allclose([first["score"], second["score"]], [a.probability for a in expected], atol=1e-6)


def test_refused(digits: vitrine.Model, tmp_path: Path) -> None:
    classifier = pipeline("image-classification", model=DIGITS)
    with pytest.raises(vitrine.Error, match="nothing is fetched"):
        classifier("https://example.org/cat.jpg")
    with pytest.raises(vitrine.Error, match="isn't base64"):
        classifier("data:image/png;base64,?")
    with pytest.raises(vitrine.ImageError, match=r"nothing\.png"):
        classifier([SAMPLES / "7.png", tmp_path / "nothing.png"])
    with pytest.raises(vitrine.ImageError, match=r"nothing\.png"):
        list(classifier(iter([SAMPLES / "7.png", tmp_path / "nothing.png"])))
    with pytest.raises(vitrine.Error, match="function_to_apply: found 'tanh'"):
        classifier(SAMPLES / "7.png", function_to_apply="tanh")
    any_pipeline: Any = pipeline
    with pytest.raises(vitrine.Error, match="task: found 'object-detection'"):
        any_pipeline("object-detection", model=DIGITS)
    with pytest.raises(vitrine.Error, match="found the argument image_processor_kwargs"):
        any_pipeline("image-feature-extraction", model=DIGITS, image_processor_kwargs={})
    with pytest.raises(vitrine.Error, match="found no config.json of transformers"):
        pipeline("image-feature-extraction", model=DIGITS)
    with pytest.raises(vitrine.Error, match="isn't a model that transformers wrote"):
        pipeline("image-classification", model=DIGITS, backend="torchvision")
    with pytest.raises(vitrine.Error, match="bfloat16"):
        pipeline("image-classification", model=DIGITS, dtype="bfloat16")


def test_towers_with_words_are_refused(library: Any, tmp_path: Path) -> None:
    vision = {**SMALL, "projection_dim": 16}
    config = library.CLIPConfig(vision_config=vision, num_labels=3)
    library.CLIPForImageClassification(config).save_pretrained(tmp_path)
    library.CLIPImageProcessor(**CROP).save_pretrained(tmp_path)
    with pytest.raises(vitrine.Error, match="CLIPModel asks for words besides pictures"):
        pipeline("image-feature-extraction", model=tmp_path)
