"""transformers' pipelines for pictures, computed by Vitrine: the same words in, the same results out.

>>> from vitrine.transformers import pipeline
>>> classifier = pipeline("image-classification", model=DIGITS)
>>> classifier(SAMPLES + "/7.png", top_k=1)[0]["label"]
'7'

transformers itself isn't needed. Pictures are paths, PIL's, bytes or arrays; nothing is fetched from the web.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypedDict, overload

import numpy as np
from numpy.typing import NDArray

from . import _inputs, _vitrine, load
from ._errors import Error
from ._model import Floats, Model

__all__ = ["ImageClassificationPipeline", "ImageFeatureExtractionPipeline", "Score", "pipeline"]

Backend = Literal["torchvision", "pil"]
Function = Literal["sigmoid", "softmax", "none"]


class Score(TypedDict):
    """One class that a picture may be of."""

    label: str
    score: float


def _sigmoid(logits: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)), np.float32)


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), np.float32)


_FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "sigmoid": _sigmoid,
    "softmax": _softmax,
    "none": lambda logits: logits,
}

# What transformers' AutoModel gives of a folder with this model_type as `pooler_output`: the first token, what
# Vitrine calls features, what a linear layer of the file makes of the first token, or nothing.
_POOLED: dict[str, Literal["first", "features", "dense"] | None] = {
    "beit": "features",
    "chinese_clip_vision_model": "features",
    "clip_vision_model": "features",
    "data2vec-vision": None,
    "deit": "dense",
    "dinov2": "first",
    "dinov2_with_registers": "first",
    "dinov3_vit": "first",
    "ijepa": None,
    "internvl_vision": None,
    "siglip_vision_model": "features",
    "vit": "dense",
    "vit_msn": None,
}
# Why AutoModel makes nothing of pictures alone.
_WITHOUT_FEATURES = {
    "clip": "CLIPModel asks for words besides pictures",
    "siglip": "SiglipModel asks for words besides pictures",
    "vit_mae": "ViTMAEModel hides patches by chance",
}


def _settings_of(folder: str) -> dict[str, Any]:
    """A model's config.json; nothing where there is none, or it isn't transformers'."""
    file = Path(folder) / "config.json"
    if not file.is_file():
        return {}
    settings = json.loads(file.read_text("utf-8"))
    return settings if isinstance(settings, dict) and "model_type" in settings else {}


def _source(image: Any) -> Any:
    if isinstance(image, str) and image.startswith(("http://", "https://")):
        raise Error(f"found the address {image!r}, expected a file's path: nothing is fetched from the web")
    if isinstance(image, str) and image.startswith("data:image/"):
        try:
            return base64.b64decode(image.partition(",")[2], validate=True)
        except binascii.Error as error:
            raise Error(f"found a data: address that isn't base64 ({error})") from error
    return image


class _Pipeline:
    """A model, and what is done with its results where a call doesn't say otherwise."""

    task = ""

    def __init__(self, model: Model, settings: dict[str, Any], batch_size: int) -> None:
        self.model = model
        self._settings = settings
        self._batch_size = batch_size

    def _results(self, inputs: Any, what: str, make: Callable[[Floats], Any], batch_size: int | None) -> Any:
        batch = self._batch_size if batch_size is None else batch_size
        if _inputs.is_one(inputs):
            return make(self._rows([inputs], what, batch)[0])
        if isinstance(inputs, list | tuple | np.ndarray):
            return [make(row) for row in self._rows(list(inputs), what, batch)]
        return self._lazily(iter(inputs), what, make, batch)

    def _rows(self, images: list[Any], what: str, batch_size: int) -> Floats:
        rows, bad = self.model._rows([_source(image) for image in images], what, batch_size, True)
        for error in bad.values():
            raise error
        return rows

    def _lazily(self, images: Iterator[Any], what: str, make: Callable[[Floats], Any], batch: int) -> Iterator[Any]:
        for part in self.model.stream(map(_source, images), batch_size=batch, what=what, exif=True):
            for error in part.errors.values():
                raise error
            yield from (make(part.rows[row]) for row in range(len(part.rows)))


class ImageClassificationPipeline(_Pipeline):
    """Names of what is in pictures, with a score each; :func:`pipeline` makes one."""

    task = "image-classification"

    def __init__(
        self, model: Model, settings: dict[str, Any], batch_size: int, top_k: int | None, function: str | None
    ) -> None:
        super().__init__(model, settings, batch_size)
        classes = int(model.config["classes"])
        if not classes:
            raise Error(f"{model.name}: found a model without a classifier, expected one for image-classification")
        self._top_k, self._function = top_k, function
        # transformers leaves names out of the file that are its own.
        named = not settings or "id2label" in settings
        self._labels = model.labels if named else [f"LABEL_{i}" for i in range(classes)]

    def __call__(
        self,
        inputs: Any,
        *,
        top_k: int | None = None,
        function_to_apply: str | None = None,
        batch_size: int | None = None,
        timeout: float | None = None,
    ) -> Any:
        """The likeliest classes of a picture, ``[{"label": ..., "score": ...}, ...]``; a list of such for a list.

        ``function_to_apply`` is ``"softmax"``, ``"sigmoid"`` or ``"none"``; left out, what the model's
        ``problem_type`` asks for. Of anything else that gives pictures, a generator say, the results come one
        by one. ``timeout`` is for addresses, and does nothing.
        """
        count = top_k if top_k is not None else self._top_k if self._top_k is not None else 5
        function = self._function_for(function_to_apply if function_to_apply is not None else self._function)

        def make(logits: Floats) -> list[Score]:
            scores: list[Score] = [
                {"label": label, "score": float(score)}
                for label, score in zip(self._labels, function(logits), strict=True)
            ]
            return sorted(scores, key=lambda one: one["score"], reverse=True)[:count]

        return self._results(inputs, "logits", make, batch_size)

    def _function_for(self, name: str | None) -> Callable[[Floats], Floats]:
        if name is None:
            kind = self._settings.get("problem_type")
            one = len(self._labels) == 1
            name = "none" if kind == "regression" else "sigmoid" if one or kind == "multi_label_classification" else "softmax"
        if name.lower() not in _FUNCTIONS:
            raise Error(f"function_to_apply: found {name!r}, expected 'sigmoid', 'softmax' or 'none'")
        return _FUNCTIONS[name.lower()]


class ImageFeatureExtractionPipeline(_Pipeline):
    """What a model makes of pictures in front of any head; :func:`pipeline` makes one."""

    task = "image-feature-extraction"

    def __init__(
        self, model: Model, settings: dict[str, Any], batch_size: int, pool: bool, return_tensors: bool | str
    ) -> None:
        super().__init__(model, settings, batch_size)
        kind = settings.get("model_type", "")
        if kind not in _POOLED:
            why = _WITHOUT_FEATURES.get(kind, f"found {kind!r} as model_type" if kind else "found no config.json of transformers")
            raise Error(f"{model.name}: {why}, expected a model of {', '.join(_POOLED)} for image-feature-extraction")
        self._pool, self._return_tensors = pool, return_tensors
        self._pooler: tuple[Floats, Floats] | None = None

    def __call__(
        self,
        inputs: Any,
        *,
        pool: bool | None = None,
        return_tensors: bool | str | None = None,
        batch_size: int | None = None,
        timeout: float | None = None,
    ) -> Any:
        """``last_hidden_state`` of a picture, ``[1, tokens, D]`` as nested lists; a list of such for a list.

        With ``pool`` it is ``pooler_output``, ``[1, D]``. ``return_tensors`` gives torch's tensors, which
        need torch, or with ``"np"`` arrays.
        """
        wanted = self._return_tensors if return_tensors is None else return_tensors
        if wanted not in (False, True, "pt", "np"):
            raise Error(f"return_tensors: found {wanted!r}, expected True, False, 'pt' or 'np'")
        pooled = self._pool if pool is None else pool
        what, of_row = self._pooling() if pooled else ("tokens", lambda row: row)

        def make(row: Floats) -> Any:
            features = np.array(of_row(row), np.float32)[None]
            if wanted == "np":
                return features
            if not wanted:
                return features.tolist()
            return _torch().from_numpy(features)

        return self._results(inputs, what, make, batch_size)

    def _pooling(self) -> tuple[str, Callable[[Floats], Floats]]:
        """Which of the model's results pooler_output is made of, and how."""
        config, kind = self.model.config, _POOLED[self._settings["model_type"]]
        missing = Error(f"{self.model.name}: found no pooler, expected a model with one for pool=True")
        if kind == "first":
            return "tokens", lambda tokens: tokens[0]
        if kind == "features":
            # Means that no norm follows, and SigLIP's without its head, are nothing that transformers pools.
            if config["pool"] == "mean" and not config["fc_norm"]:
                raise missing
            return "features", lambda features: features
        if kind == "dense":
            if self._settings.get("pooler_act", "tanh") != "tanh":
                raise Error(f"{self.model.name}: found the pooler_act {self._settings['pooler_act']!r}, expected 'tanh'")
            if self._pooler is None:
                weight, bias = (self.model._session.file_tensor(f"pooler.dense.{part}") for part in ("weight", "bias"))
                if weight is None or bias is None:
                    raise missing
                self._pooler = weight, bias
            weight, bias = self._pooler
            return "tokens", lambda tokens: np.tanh(weight @ tokens[0] + bias)
        raise missing


def _torch() -> Any:
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise Error("return_tensors: found no torch, expected it to be installed, or return_tensors='np'") from error
    return torch


def _dtype_name(dtype: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    return {"float32": "f32", "float16": "f16"}.get(name, name)


def _opened(model: Any, device: str | int | None, dtype: Any, backend: Backend | None) -> tuple[Model, dict[str, Any]]:
    if backend not in (None, "torchvision", "pil"):
        raise Error(f"backend: found {backend!r}, expected 'torchvision' or 'pil'")
    if isinstance(model, Model):
        if device is not None or backend is not None or dtype != "auto":
            raise Error("found a vitrine.Model together with device, dtype or backend, expected those where it is loaded")
        return model, _settings_of(model._session.path)
    settings = _settings_of(_vitrine.find_model(str(model)))
    # timm's own transforms work on PIL's pictures, also within transformers.
    theirs = bool(settings) and "architecture" not in settings
    if backend == "torchvision" and not theirs:
        raise Error(f"backend: found 'torchvision', and {model} isn't a model that transformers wrote")
    # AutoModel leaves the projection of CLIPVisionModelWithProjection away.
    tower = settings.get("model_type") in ("clip_vision_model", "chinese_clip_vision_model")
    opened = load(
        model,
        device=device,
        dtype=_dtype_name(dtype),  # type: ignore[arg-type]
        profile="fast" if theirs and backend != "pil" else None,
        overrides=["embedding_size=0"] if tower else [],
    )
    return opened, settings


@overload
def pipeline(
    task: Literal["image-classification"],
    model: Any,
    *,
    device: str | int | None = ...,
    dtype: Any = ...,
    backend: Backend | None = ...,
    batch_size: int = ...,
    top_k: int | None = ...,
    function_to_apply: str | None = ...,
) -> ImageClassificationPipeline: ...
@overload
def pipeline(
    task: Literal["image-feature-extraction"],
    model: Any,
    *,
    device: str | int | None = ...,
    dtype: Any = ...,
    backend: Backend | None = ...,
    batch_size: int = ...,
    pool: bool | None = ...,
    return_tensors: bool | str | None = ...,
) -> ImageFeatureExtractionPipeline: ...
def pipeline(
    task: str,
    model: Any,
    *,
    device: str | int | None = None,
    dtype: Any = "auto",
    backend: Backend | None = None,
    batch_size: int = 8,
    **defaults: Any,
) -> ImageClassificationPipeline | ImageFeatureExtractionPipeline:
    """Opens ``"image-classification"`` or ``"image-feature-extraction"`` with a model.

    ``model`` and ``device`` are as :func:`vitrine.load` has them, or ``model`` is an open
    :class:`vitrine.Model`. ``backend`` is that of transformers' image processors: ``"torchvision"``, which it
    takes where torchvision is installed and this always, or ``"pil"``, as Pillow was before version 13. What calls may be given, ``top_k`` say,
    may be given here for all of them.

    >>> from vitrine.transformers import pipeline
    >>> classifier = pipeline("image-classification", model=DIGITS, top_k=2)
    >>> [len(scores) for scores in classifier([SAMPLES + "/1.png", SAMPLES + "/2.png"])]
    [2, 2]
    """
    names = {
        "image-classification": ("top_k", "function_to_apply"),
        "image-feature-extraction": ("pool", "return_tensors"),
    }
    if task not in names:
        raise Error(f"task: found {task!r}, expected 'image-classification' or 'image-feature-extraction'")
    for name in defaults:
        if name not in names[task]:
            raise Error(f"{task}: found the argument {name}, expected device, dtype, backend, batch_size, {' or '.join(names[task])}")
    opened, settings = _opened(model, device, dtype, backend)
    if task == "image-classification":
        return ImageClassificationPipeline(
            opened, settings, batch_size, defaults.get("top_k"), defaults.get("function_to_apply")
        )
    return ImageFeatureExtractionPipeline(
        opened, settings, batch_size, bool(defaults.get("pool")), defaults.get("return_tensors") or False
    )
