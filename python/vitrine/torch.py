"""A model as a torch.nn.Module, for evaluation code that was written for timm's.

>>> import torch, vitrine, vitrine.torch
>>> model = vitrine.torch.Module(vitrine.load(DIGITS)).eval()
>>> with torch.no_grad():
...     logits = model(torch.zeros(2, 1, 28, 28))
>>> logits.shape
torch.Size([2, 10])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch  # type: ignore[import-not-found, unused-ignore]
from torch import Tensor, nn  # type: ignore[import-not-found, unused-ignore]

from ._errors import Error
from ._model import Floats, Model

__all__ = ["Module"]


class Module(nn.Module):  # type: ignore[misc, unused-ignore]
    """Inference alone: images ``[B, C, H, W]``, normalised, to what the model returns, as torch's tensors.

    Images may be on any device and of any float type; contiguous float32 in the host's memory goes in without
    a copy. Results are on the images' device and of their type. It is in evaluation mode, has no parameters
    that torch could train, and refuses images that ask for gradients.
    """

    def __init__(self, model: Model, *, batch_size: int = 8) -> None:
        super().__init__()
        self.model, self.batch_size = model, batch_size
        config = model.config
        # Where timm's code looks for them.
        self.num_classes = int(config["classes"])
        self.num_features = self.embed_dim = int(config["dim"])
        self.num_prefix_tokens = model._session.prefix_tokens
        self.eval()

    def train(self, mode: bool = True) -> Module:
        """Refused, but for ``train(False)``, which is ``eval()``."""
        if mode:
            raise Error("train: found a model for inference, expected eval() (vitrine.train teaches models)")
        super().train(False)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """What the model itself returns: logits, or features where it has no classifier."""
        return self._back(self.model(self._given(x), batch_size=self.batch_size), x)

    def forward_features(self, x: Tensor) -> Tensor:
        """All tokens behind the last block and the final norm, ``[B, tokens, D]``."""
        return self._back(self.model.forward_features(self._given(x), batch_size=self.batch_size), x)

    def forward_intermediates(
        self,
        x: Tensor,
        indices: int | Sequence[int] | None = None,
        return_prefix_tokens: bool = False,
        norm: bool = False,
        stop_early: bool = False,
        output_fmt: Literal["NCHW", "NLC"] = "NCHW",
        intermediates_only: bool = False,
    ) -> Any:
        """What blocks make of the patches, and the tokens behind the last, as timm's method has them.

        The result is ``(tokens, intermediates)``, or the intermediates with ``intermediates_only``.
        ``stop_early`` changes nothing: no block behind the last one that is asked for is computed for them.
        """
        given = self._given(x)
        found = self.model.forward_intermediates(
            given, indices, return_prefix_tokens=return_prefix_tokens, norm=norm, output_fmt=output_fmt
        )
        intermediates = [
            tuple(self._back(part, x) for part in one) if isinstance(one, tuple) else self._back(one, x)
            for one in found
        ]
        return intermediates if intermediates_only else (self.forward_features(x), intermediates)

    def extra_repr(self) -> str:
        return repr(self.model)

    def __reduce__(self) -> Any:
        raise Error("found a model on a device, which can't be copied or pickled, expected one that is loaded where it is needed")

    def _given(self, x: Tensor) -> Tensor:
        if x.requires_grad and torch.is_grad_enabled():
            raise Error("found images that ask for gradients, expected torch.no_grad() around, or x.detach()")
        if not x.is_floating_point():
            raise Error(f"found images of {x.dtype}, expected floats, normalised")
        return x.detach().to("cpu", torch.float32)

    def _back(self, values: Floats, x: Tensor) -> Tensor:
        return torch.from_numpy(values).to(x.device, x.dtype)
