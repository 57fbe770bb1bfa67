"""What goes wrong, as a small tree of exceptions."""

from __future__ import annotations

from . import _vitrine


class Error(Exception):
    """Whatever Vitrine fails with: one sentence that names what was found and what was expected."""


class DeviceError(Error):
    """There is no Vulkan loader, driver or device that can be used here."""


class ModelError(Error):
    """A model's files are missing, or break their format's rules."""


class ImageError(Error):
    """A picture that can't be shown to a model; ``path`` names it where it was a file, else it is None."""

    def __init__(self, sentence: str, path: str | None = None) -> None:
        super().__init__(sentence)
        self.path = path

    def __reduce__(self) -> tuple[type[ImageError], tuple[str, str | None]]:
        return ImageError, (str(self), self.path)


_vitrine.set_errors(Error, DeviceError, ModelError, ImageError)
