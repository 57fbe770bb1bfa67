"""Graphs of one's own, of the operators that models are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import _inputs, _vitrine
from ._errors import Error
from ._model import Floats

Activation = Literal["gelu", "gelu_tanh", "gelu_quick", "silu", "tanh", "relu"]


class Value:
    """What a graph computes at one place. ``a + b``, ``a * b`` and ``a * number`` append operators."""

    def __init__(self, graph: Graph, number: int) -> None:
        self.graph, self._number = graph, number

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.graph._graph.shape(self._number))

    def __add__(self, other: Value) -> Value:
        return self.graph.add(self, other)

    def __mul__(self, other: Value | float) -> Value:
        return self.graph.multiply(self, other) if isinstance(other, Value) else self.graph.scale(self, other)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"<vitrine.Value {self._number} {self.shape}>"


class Graph:
    """A computation on a device, put together from operators, of float32.

    Shapes are known while it is built: an operator that can't be raises the sentence why. The first
    :meth:`run` on a device plans, fuses and records; the next ones replay.

    >>> import numpy, vitrine
    >>> graph = vitrine.Graph()
    >>> x = graph.input("x", (2, 3))
    >>> weight = graph.constant(numpy.eye(3, dtype=numpy.float32))
    >>> graph.output(graph.softmax(graph.linear(x, weight)), "y")
    >>> graph.run(x=numpy.zeros((2, 3)))["y"].sum(axis=1)
    array([1., 1.], dtype=float32)
    """

    def __init__(self) -> None:
        self._graph = _vitrine.Graph()
        self._names: set[str] = set()

    # What goes in and comes out.

    def input(self, name: str, shape: Sequence[int]) -> Value:
        """An array that each run is given."""
        return Value(self, self._graph.input(self._new(name), [_extent(name, extent) for extent in shape]))

    def constant(self, values: ArrayLike, name: str | None = None) -> Value:
        """An array that is the same in all runs; it is copied."""
        array = np.asarray(_inputs._on_host(values), np.float32, order="C")
        return Value(self, self._graph.constant(self._named("constant", name), array))

    def output(self, value: Value, name: str) -> None:
        """Marks what an operator computed as a result of the graph."""
        self._graph.output(self._number(value), self._new(name))

    def run(self, arrays: dict[str, Any] | None = None, /, *, device: str | int | None = None, **named: Any) -> dict[str, Floats]:
        """The outputs by name, for an array for each input, by name too. ``device`` as :func:`vitrine.load`'s."""
        given = {**(arrays or {}), **named}
        values = [np.asarray(_inputs._on_host(array), np.float32, order="C") for array in given.values()]
        return dict(self._graph.run(list(given), values, "" if device is None else str(device)))

    # Operators.

    def linear(
        self,
        x: Value,
        weight: Value,
        bias: Value | None = None,
        *,
        activation: Activation | None = None,
        residual: Value | None = None,
        name: str | None = None,
    ) -> Value:
        """``residual + activation(x @ weight.T + bias)`` of x ``[.., K]`` and weight ``[N, K]``, as torch's."""
        numbers = self._number(x), self._number(weight), self._maybe(bias)
        return self._value(self._graph.linear(self._named("linear", name), *numbers, activation, self._maybe(residual)))

    def matmul(self, a: Value, b: Value, *, name: str | None = None) -> Value:
        """``a @ b`` of ``[.., K]`` and a matrix ``[K, N]``."""
        return self.linear(a, self.transpose(b), name=name)

    def attention(
        self, q: Value, k: Value, v: Value, heads: int, *, scale: float = 0, causal: bool = False, name: str | None = None
    ) -> Value:
        """Multi-head attention of ``[B, N, heads * width]``; ``scale`` 0 is one over the root of the width."""
        numbers = self._number(q), self._number(k), self._number(v)
        return self._value(self._graph.attention(self._named("attention", name), *numbers, heads, scale, causal))

    def layer_norm(self, x: Value, gamma: Value, beta: Value, *, eps: float = 1e-6, name: str | None = None) -> Value:
        """Normalises the last dimension."""
        numbers = self._number(x), self._number(gamma), self._number(beta)
        return self._value(self._graph.layer_norm(self._named("layer_norm", name), *numbers, eps, False))

    def rms_norm(self, x: Value, gamma: Value, *, eps: float = 1e-6, name: str | None = None) -> Value:
        """The same without a mean and a bias."""
        numbers = self._number(x), self._number(gamma)
        return self._value(self._graph.layer_norm(self._named("rms_norm", name), *numbers, None, eps, True))

    def softmax(self, x: Value, *, name: str | None = None) -> Value:
        """Over the last dimension."""
        return self._value(self._graph.softmax(self._named("softmax", name), self._number(x)))

    def activate(self, x: Value, activation: Activation, *, name: str | None = None) -> Value:
        """A function of each element."""
        return self._value(self._graph.activate(self._named(activation, name), self._number(x), activation))

    def gelu(self, x: Value, *, name: str | None = None) -> Value:
        """``x`` times the normal distribution's function, exactly."""
        return self.activate(x, "gelu", name=name)

    def scale(self, x: Value, factor: float, *, name: str | None = None) -> Value:
        """``x * factor``."""
        return self._value(self._graph.scale(self._named("scale", name), self._number(x), factor))

    def add(self, a: Value, b: Value, *, name: str | None = None) -> Value:
        """``a + b``, where b has a's shape or the end of it."""
        return self._value(self._graph.add(self._named("add", name), self._number(a), self._number(b)))

    def multiply(self, a: Value, b: Value, *, name: str | None = None) -> Value:
        """``a * b``, where b has a's shape or the end of it."""
        return self._value(self._graph.multiply(self._named("multiply", name), self._number(a), self._number(b)))

    def reshape(self, x: Value, shape: Sequence[int], *, name: str | None = None) -> Value:
        """The same elements under another shape."""
        name = self._named("reshape", name)
        return self._value(self._graph.reshape(name, self._number(x), [_extent(name, extent) for extent in shape]))

    def transpose(self, x: Value, *, name: str | None = None) -> Value:
        """The last two dimensions swapped."""
        return self._value(self._graph.transpose(self._named("transpose", name), self._number(x)))

    def slice(self, x: Value, axis: int, begin: int, end: int, *, name: str | None = None) -> Value:
        """A range of one axis."""
        name = self._named("slice", name)
        if begin < 0 or end < 0:
            raise Error(f"{name}: found the range {begin} to {end}, expected numbers of 0 or more")
        return self._value(self._graph.slice(name, self._number(x), axis, begin, end))

    def concat(self, parts: Sequence[Value], axis: int = -1, *, name: str | None = None) -> Value:
        """Values side by side along one axis."""
        return self._value(self._graph.concat(self._named("concat", name), [self._number(p) for p in parts], axis))

    def __str__(self) -> str:
        return str(self._graph)

    def _value(self, number: int) -> Value:
        return Value(self, number)

    def _number(self, value: Value) -> int:
        if not isinstance(value, Value):
            raise Error(f"found a {type(value).__name__}, expected a value of the graph (graph.constant makes one of an array)")
        if value.graph is not self:
            raise Error("found a value of another graph, expected one of this")
        return value._number

    def _maybe(self, value: Value | None) -> int | None:
        return None if value is None else self._number(value)

    def _new(self, name: str) -> str:
        if name in self._names:
            raise Error(f"found the name {name!r} twice, expected each once")
        self._names.add(name)
        return name

    def _named(self, kind: str, name: str | None) -> str:
        if name is not None:
            return self._new(name)
        number = 0
        while f"{kind}_{number}" in self._names:
            number += 1
        return self._new(f"{kind}_{number}")


def _extent(name: str, extent: int) -> int:
    if extent < 1:
        raise Error(f"{name}: found the extent {extent}, expected 1 or more")
    return int(extent)
