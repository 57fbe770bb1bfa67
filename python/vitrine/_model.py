"""A model on a device."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from . import _inputs, _progress, _structure, _vitrine
from ._errors import Error, ImageError

if TYPE_CHECKING:
    from PIL.Image import Image

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Answer:
    """One class that a picture may be of."""

    index: int
    label: str
    probability: float


@dataclass(frozen=True)
class Embeddings:
    """A row for each picture that could be read, and what was wrong with the others.

    ``indices`` says of which picture each row is, and ``errors`` has the others' by their place.
    """

    rows: Floats
    indices: NDArray[np.int64]
    errors: dict[int, ImageError]


def _value(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


@contextmanager
def _naming(image: Any) -> Iterator[None]:
    try:
        yield
    except ImageError as error:
        if isinstance(image, str | os.PathLike):
            error.path = os.fsdecode(os.fspath(image))
        raise


class Attention:
    """Where a model looked in one picture.

    ``map`` has a weight for each patch, ``[rows, columns]``. ``weights`` has what it was made of:
    ``[heads, tokens]``, of the token that the result is made of or the one that was named; with
    ``full=True`` each token's, ``[heads, tokens, tokens]``; of a rollout the same without heads.
    """

    def __init__(
        self, model: Model, image: Any, exif: bool | None, weights: Floats, patches: Floats, overlay: NDArray[np.uint8]
    ) -> None:
        self._model, self._image, self._exif, self._overlay = model, image, exif, overlay
        self.weights, self.map = weights, patches

    def overlay(self) -> Image:
        """The map as warmth over the picture, as ``vitrine attention --out`` writes it."""
        from PIL import Image

        return Image.fromarray(self._overlay)

    def rollout(self) -> Attention:
        """The same picture's attention followed through all layers (Abnar & Zuidema)."""
        return self._model.attention(self._image, rollout=True, exif=self._exif)

    def _repr_png_(self) -> bytes:
        from io import BytesIO

        file = BytesIO()
        self.overlay().save(file, "PNG")
        return file.getvalue()


class Model:
    """A Vision Transformer on a device; :func:`vitrine.load` opens one.

    All methods may be called from several threads: a model does one call after the other, and other
    threads of Python go on meanwhile.
    """

    def __init__(self, session: _vitrine.Session) -> None:
        self._session = session

    # What it is.

    @property
    def name(self) -> str:
        """The architecture, or the path as it was given."""
        return self._session.name

    @property
    def device(self) -> str:
        """The name of the device that it is on."""
        return self._session.device

    @property
    def dtype(self) -> str:
        """``"f32"`` or ``"f16"``: how weights and products are stored."""
        return self._session.dtype

    @property
    def config(self) -> dict[str, bool | int | float | str]:
        """What the model is made of, a value for each field of its configuration."""
        return {key: _value(text) for key, text in self._session.fields}

    @property
    def labels(self) -> list[str]:
        """What its classes are called, in order; empty for a model without a classifier."""
        return self._session.labels

    def __repr__(self) -> str:
        c = self.config
        return (
            f"<vitrine.Model {self.name}: {c['depth']} blocks of {c['dim']}, {c['heads']} heads, "
            f"images {c['channels']} x {c['image_height']} x {c['image_width']}, {c['classes']} classes, "
            f"{self._session.parameters:,} parameters, {self.dtype} on {self.device}>"
        )

    def __str__(self) -> str:
        """What it is made of, a part a line."""
        return _structure.text(self)

    def _repr_html_(self) -> str:
        return _structure.html(self)

    # Pictures.

    def _turns(self, exif: bool | None) -> bool:
        return self._session.exif if exif is None else exif

    def _rows(
        self, images: list[Any], what: str, batch_size: int, exif: bool | None, progress: bool = False
    ) -> tuple[Floats, dict[int, ImageError]]:
        if batch_size < 1:
            raise Error(f"batch_size: found {batch_size}, expected 1 or more")
        turn, white = self._turns(exif), self._session.white
        items: list[_inputs.Item] = []
        places: list[int] = []
        errors: dict[int, ImageError] = {}
        for place, image in enumerate(images):
            try:
                items.append(_inputs.item(image, turn, white))
                places.append(place)
            except ImageError as error:
                errors[place] = error
        with _progress.bar(progress, "pictures", len(items)) as bar:
            rows, bad = self._session.pictures(items, what, batch_size, turn, bar.show if progress else None)
        for index, sentence in bad:
            of = items[index]
            errors[places[index]] = ImageError(sentence, of if isinstance(of, str) else None)
        return rows, dict(sorted(errors.items()))

    def classify(
        self, images: Any, *, top: int = 5, batch_size: int = 8, exif: bool | None = None, progress: bool = False
    ) -> list[list[Answer] | ImageError]:
        """What the model sees in pictures: the likeliest classes of each, the best first.

        ``exif`` turns pictures as their files say, or not; left out, as the library does whose preprocessing
        it is: transformers turns them, timm and torchvision don't. ``progress`` shows a bar, where tqdm is installed.

        A picture that can't be read is an :class:`vitrine.ImageError` in its place; the others are done.

        >>> import vitrine
        >>> model = vitrine.load(DIGITS)
        >>> answers = model.classify([SAMPLES + "/7.png", SAMPLES + "/nothing.png"], top=1)
        >>> answers[0][0].label
        '7'
        >>> answers[1].path.endswith("nothing.png")
        True
        """
        if not self.config["classes"]:
            raise Error(f"{self.name}: found a model without a classifier, expected one (embed gives its features)")
        images = _inputs.several(images)
        rows, errors = self._rows(images, "probabilities", batch_size, exif, progress)
        results: list[list[Answer] | ImageError] = []
        row = 0
        for place in range(len(images)):
            if place in errors:
                results.append(errors[place])
            else:
                results.append([Answer(*answer) for answer in self._session.top(rows[row], top)])
                row += 1
        return results

    @overload
    def embed(
        self,
        images: Any,
        *,
        batch_size: int = ...,
        tokens: bool = ...,
        exif: bool | None = ...,
        errors: Literal["raise"] = ...,
        progress: bool = ...,
    ) -> Floats: ...
    @overload
    def embed(
        self,
        images: Any,
        *,
        batch_size: int = ...,
        tokens: bool = ...,
        exif: bool | None = ...,
        errors: Literal["return"],
        progress: bool = ...,
    ) -> Embeddings: ...
    def embed(
        self,
        images: Any,
        *,
        batch_size: int = 8,
        tokens: bool = False,
        exif: bool | None = None,
        errors: Literal["raise", "return"] = "raise",
        progress: bool = False,
    ) -> Floats | Embeddings:
        """The vectors that a classifier sees, ``[N, D]``; all tokens, ``[N, tokens, D]``, with ``tokens``.

        The first picture that can't be read is raised; with ``errors="return"`` the others' rows come back
        as :class:`vitrine.Embeddings`, with each error beside them.

        >>> import vitrine
        >>> vitrine.load(DIGITS).embed(SAMPLES + "/7.png").shape
        (1, 64)
        """
        if errors not in ("raise", "return"):
            raise Error(f"errors: found {errors!r}, expected 'raise' or 'return'")
        images = _inputs.several(images)
        rows, bad = self._rows(images, "tokens" if tokens else "features", batch_size, exif, progress)
        if errors == "return":
            places = np.array([i for i in range(len(images)) if i not in bad], np.int64)
            return Embeddings(rows, places, bad)
        for error in bad.values():
            raise error
        return rows

    def stream(
        self,
        images: Iterable[Any],
        *,
        batch_size: int = 8,
        what: str = "features",
        exif: bool | None = None,
        progress: bool = False,
    ) -> Iterator[Embeddings]:
        """Results of any number of pictures, some batches at a time, in order.

        The next ones are decoded and computed while the caller looks at these. ``indices`` and ``errors``
        count from the first picture of all. ``what`` is features, tokens, logits or probabilities.
        """
        source = enumerate(images)
        total = len(images) if isinstance(images, Sized) else None
        with ThreadPoolExecutor(1) as ahead, _progress.bar(progress, "pictures", total) as bar:

            def begin() -> Any:
                some = list(islice(source, 4 * batch_size))
                if not some:
                    return None
                return some[0][0], len(some), ahead.submit(self._rows, [i for _, i in some], what, batch_size, exif)

            next_one = begin()
            while next_one is not None:
                first, count, job = next_one
                next_one = begin()
                rows, bad = job.result()
                places = np.array([first + i for i in range(count) if i not in bad], np.int64)
                bar.show(first + count)
                yield Embeddings(rows, places, {first + i: error for i, error in bad.items()})

    def preprocess(self, image: Any, *, exif: bool | None = None) -> Floats:
        """What the model would be given of a picture: ``[C, H, W]``, resized, cropped and normalised."""
        with _naming(image):
            turn = self._turns(exif)
            return self._session.preprocess(_inputs.item(image, turn, self._session.white), turn)

    # Numbers.

    def __call__(self, x: Any, *, batch_size: int = 8) -> Floats:
        """What the model itself returns, logits mostly, of ``[B, C, H, W]``, normalised already.

        Contiguous float32 in the host's memory, NumPy's or torch's, goes in without a copy.

        >>> import numpy, vitrine
        >>> vitrine.load(DIGITS)(numpy.zeros((2, 1, 28, 28), numpy.float32)).shape
        (2, 10)
        """
        return self._session.run(x, None, batch_size)

    def forward_features(self, x: Any, *, batch_size: int = 8) -> Floats:
        """All tokens behind the last block and the final norm, ``[B, tokens, D]``, as timm's."""
        return self._session.run(x, "tokens", batch_size)

    def forward_head(self, x: Any, *, pre_logits: bool = False, batch_size: int = 8) -> Floats:
        """Images, not tokens as timm has it, to logits; with ``pre_logits`` to what the head sees."""
        return self._session.run(x, "features" if pre_logits else "logits", batch_size)

    def forward_intermediates(
        self,
        x: Any,
        indices: int | Sequence[int] | None = None,
        *,
        return_prefix_tokens: bool = False,
        norm: bool = False,
        output_fmt: Literal["NCHW", "NLC"] = "NCHW",
    ) -> list[Floats] | list[tuple[Floats, Floats]]:
        """What blocks make of the patches, one array a block: timm's ``intermediates_only=True``.

        ``indices`` are blocks, from the end where negative; a number is so many last ones, none is all.
        ``norm`` puts the model's last norm behind each. With ``return_prefix_tokens`` each comes with the
        class, distillation and register tokens.

        >>> import numpy, vitrine
        >>> maps = vitrine.load(DIGITS).forward_intermediates(numpy.zeros((1, 1, 28, 28), "f"), [-1])
        >>> maps[0].shape
        (1, 64, 4, 4)
        """
        if output_fmt not in ("NCHW", "NLC"):
            raise Error(f"output_fmt: found {output_fmt!r}, expected 'NCHW' or 'NLC'")
        depth = int(self.config["depth"])
        if indices is None:
            indices = range(depth)
        elif isinstance(indices, int):
            if not 0 < indices <= depth:
                raise Error(f"indices: found {indices}, expected 1 to {depth} last blocks, or a list")
            indices = range(depth - indices, depth)
        layers = [self._layer(index) for index in indices]
        maps, prefixes = self._session.maps(_inputs.batch(x), layers, norm, output_fmt == "NLC")
        return list(zip(maps, prefixes, strict=True)) if return_prefix_tokens else maps

    def _layer(self, layer: int) -> int:
        depth = int(self.config["depth"])
        if not -depth <= layer < depth:
            raise Error(f"layer: found {layer}, expected 0 to {depth - 1}, or -1 to -{depth} from the end")
        return layer % depth

    def attention(
        self,
        image: Any,
        layer: int | Literal["pool"] | None = None,
        *,
        head: int | None = None,
        token: int | None = None,
        rollout: bool = False,
        full: bool = False,
        exif: bool | None = None,
    ) -> Attention:
        """Where the model looks in a picture.

        ``layer`` is a block, from the end where negative, or ``"pool"``, attention pooling; left out, what
        comes last. Without ``head`` the map is the mean of all, without ``token`` that of what the result is
        made of.

        >>> import vitrine
        >>> attention = vitrine.load(DIGITS).attention(SAMPLES + "/7.png", layer=-1)
        >>> attention.map.shape
        (4, 4)
        """
        s = self._session
        number: int | None = None
        if rollout:
            if layer is not None or head is not None:
                raise Error("rollout: found together with layer or head, expected alone")
        elif layer == "pool" or (layer is None and s.attention_pool and token is None):
            if not s.attention_pool:
                raise Error(f"layer: found 'pool', and {self.name} has no attention pooling")
            number = int(self.config["depth"])
        else:
            number = self._layer(-1 if layer is None else int(layer))
        heads = 1 if rollout else s.heads_of_maps(number)
        if head is not None and not 0 <= head < heads:
            raise Error(f"head: found {head}, expected 0 to {heads - 1}")
        if token is not None and not 0 <= token < s.tokens:
            raise Error(f"token: found {token}, expected 0 to {s.tokens - 1}")
        with _naming(image):
            turn = self._turns(exif)
            picture = _inputs.item(image, turn, s.white)
            weights, patches, overlay = s.attention(picture, number, head, token, full, turn)
        rows = s.tokens if full and token is None and number != int(self.config["depth"]) else 1
        shape = [rows, -1] if rows > 1 else [-1]
        weights = weights.reshape(shape if rollout else [heads, *shape[:-1], -1])
        return Attention(self, image, exif, weights, patches, overlay)
