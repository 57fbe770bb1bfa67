"""Graphs of one's own, against NumPy in float64."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import vitrine
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
rng = np.random.default_rng(7)


def numbers(*shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def softmax(x: Doubles) -> Doubles:
    raised = np.exp(x - x.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def gelu(x: Doubles) -> Doubles:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def norm(x: Doubles, gamma: Any, beta: Any, eps: float) -> Doubles:
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + eps) * gamma + beta


def attend(q: Doubles, k: Doubles, v: Doubles, heads: int, scale: float = 0, causal: bool = False) -> Doubles:
    def split(x: Doubles) -> Doubles:
        return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)

    q, k, v = split(q), split(k), split(v)
    scores = q @ k.swapaxes(2, 3) * (scale or q.shape[-1] ** -0.5)
    if causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    out = softmax(scores) @ v
    return out.swapaxes(1, 2).reshape(out.shape[0], out.shape[2], -1)


def close(found: NDArray[np.float32], expected: Doubles) -> None:
    assert found.shape == expected.shape and found.dtype == np.float32 and np.ptp(expected) > 0
    # Sums of some hundred products of numbers around 1 in f32: some hundred roundings of 2^-24.
    np.testing.assert_allclose(found, expected, rtol=3e-5, atol=3e-5)


X, Y, W, B = numbers(3, 5, 12), numbers(3, 5, 12), numbers(7, 12), numbers(7)
G, S = numbers(12), numbers(12)
ONES = {
    "linear": (lambda g, x, y: g.linear(x, g.constant(W)), X @ W.T.astype(np.float64)),
    "linear, all of it": (
        lambda g, x, y: g.linear(x, g.constant(W), g.constant(B), activation="gelu", residual=g.constant(X[:, :, :7])),
        X[:, :, :7] + gelu(X @ W.T.astype(np.float64) + B),
    ),
    "matmul": (lambda g, x, y: g.matmul(x, g.constant(W.T)), X @ W.T.astype(np.float64)),
    "add": (lambda g, x, y: x + y, X + Y.astype(np.float64)),
    "add a row": (lambda g, x, y: g.add(x, g.constant(G)), X + G.astype(np.float64)),
    "multiply": (lambda g, x, y: x * y, X * Y.astype(np.float64)),
    "scale": (lambda g, x, y: 2.5 * x, 2.5 * X.astype(np.float64)),
    "gelu": (lambda g, x, y: g.gelu(x), gelu(X.astype(np.float64))),
    "silu": (lambda g, x, y: g.activate(x, "silu"), X / (1 + np.exp(-X.astype(np.float64)))),
    "softmax": (lambda g, x, y: g.softmax(x), softmax(X.astype(np.float64))),
    "layer_norm": (lambda g, x, y: g.layer_norm(x, g.constant(G), g.constant(S), eps=1e-3), norm(X.astype(np.float64), G, S, 1e-3)),
    "rms_norm": (
        lambda g, x, y: g.rms_norm(x, g.constant(G)),
        X.astype(np.float64) / np.sqrt((X.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * G,
    ),
    "attention": (lambda g, x, y: g.attention(x, y, y, 3), attend(*(a.astype(np.float64) for a in (X, Y, Y)), 3)),
    "attention, causal": (
        lambda g, x, y: g.attention(x, x, y, 2, scale=0.7, causal=True),
        attend(*(a.astype(np.float64) for a in (X, X, Y)), 2, 0.7, True),
    ),
    "reshape": (lambda g, x, y: g.reshape(x, (15, 12)), X.reshape(15, 12).astype(np.float64)),
    "transpose": (lambda g, x, y: g.transpose(x), X.swapaxes(1, 2).astype(np.float64)),
    "slice": (lambda g, x, y: g.slice(x, 1, 2, 5), X[:, 2:5].astype(np.float64)),
    "concat": (lambda g, x, y: g.concat([x, y], 1), np.concatenate([X, Y], 1).astype(np.float64)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(ONES))
def test_operators(name: str) -> None:
    build, expected = ONES[name]
    graph = vitrine.Graph()
    x, y = graph.input("x", X.shape), graph.input("y", Y.shape)
    value = build(graph, x, y)  # type: ignore[no-untyped-call]
    graph.output(value, "out")
    assert value.shape == expected.shape
    close(graph.run(x=X, y=Y)["out"], expected)


def test_a_block() -> None:
    """A transformer's block, written as in the paper."""
    weights = {"qkv": numbers(36, 12) / 3, "proj": numbers(12, 12) / 3, "fc1": numbers(24, 12) / 3, "fc2": numbers(12, 24) / 5}
    graph = vitrine.Graph()
    x = graph.input("x", X.shape)
    constants = {name: graph.constant(weight, name) for name, weight in weights.items()}
    gamma, beta = graph.constant(G), graph.constant(S)
    qkv = graph.linear(graph.layer_norm(x, gamma, beta), constants["qkv"])
    q, k, v = (graph.slice(qkv, -1, 12 * i, 12 * i + 12) for i in range(3))
    x1 = x + graph.linear(graph.attention(q, k, v, 4), constants["proj"])
    hidden = graph.gelu(graph.linear(graph.layer_norm(x1, gamma, beta), constants["fc1"]))
    graph.output(graph.linear(hidden, constants["fc2"], residual=x1), "tokens")
    graph.output(x1, "behind the attention")

    def expected(given: NDArray[np.float32]) -> tuple[Doubles, Doubles]:
        x = given.astype(np.float64)
        w = {name: weight.astype(np.float64) for name, weight in weights.items()}
        qkv = norm(x, G, S, 1e-6) @ w["qkv"].T
        x1 = x + attend(qkv[..., :12], qkv[..., 12:24], qkv[..., 24:], 4) @ w["proj"].T
        return x1 + gelu(norm(x1, G, S, 1e-6) @ w["fc1"].T) @ w["fc2"].T, x1

    for given in (X, Y, X[::-1]):  # the last as it doesn't lie in memory
        found = graph.run({"x": given})
        assert sorted(found) == ["behind the attention", "tokens"]
        tokens, x1 = expected(given)
        close(found["tokens"], tokens)
        close(found["behind the attention"], x1)
    assert "layer_norm_0" in str(graph) and "attention_0" in str(graph)


def test_it_grows_between_runs() -> None:
    graph = vitrine.Graph()
    x = graph.input("x", (2, 3))
    graph.output(x * 2, "twice")
    given = numbers(2, 3)
    assert list(graph.run(x=given)) == ["twice"]
    graph.output(x * 3, "thrice")
    found = graph.run(x=given)
    close(found["twice"], 2 * given.astype(np.float64))
    close(found["thrice"], 3 * given.astype(np.float64))


def test_threads() -> None:
    graph = vitrine.Graph()
    graph.output(graph.softmax(graph.input("x", (4, 9))), "y")
    inputs = [numbers(4, 9) for _ in range(8)]

    def work(x: NDArray[np.float32]) -> bool:
        return all(np.allclose(graph.run(x=x)["y"], softmax(x.astype(np.float64)), atol=1e-5) for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, inputs))


def test_the_gil_is_free_while_a_graph_grows_beside_a_run() -> None:
    graph = vitrine.Graph()
    x, weight = graph.input("x", (1024, 1024)), graph.constant(np.zeros((1024, 1024), np.float32))
    y = x
    for _ in range(4):
        y = graph.linear(y, weight)
    graph.output(y, "y")
    given = np.zeros((1024, 1024), np.float32)
    graph.run(x=given)

    def turns_of_others() -> int:
        """How often this thread had its turn while another waited to add to a graph that a third one runs."""
        running = threading.Thread(target=lambda: graph.run(x=given))
        growing = threading.Thread(target=lambda: graph.linear(x, weight))
        running.start()
        time.sleep(0.02)
        growing.start()
        turns = 0
        while growing.is_alive():
            time.sleep(0.001)
            turns += 1
        running.join()
        return turns

    # Whoever comes before the run, or behind it, waits for nobody: then it has to be tried again.
    assert any(turns_of_others() > 5 for _ in range(10))


def test_refused() -> None:
    graph = vitrine.Graph()
    x = graph.input("x", (2, 3))
    for work, sentence in (
        (lambda: graph.linear(x, graph.constant(numbers(4, 5)), name="fc"), "fc"),
        (lambda: x + graph.constant(numbers(2, 2)), "expected equal shapes"),
        (lambda: graph.attention(x, x, x, 2), "2 heads for queries of 3"),
        (lambda: graph.reshape(x, (5,)), "reshape_0"),
        (lambda: graph.slice(x, 0, -1, 1), "0 or more"),
        (lambda: graph.input("z", (2, 0)), "found the extent 0"),
        (lambda: graph.input("x", (2, 3)), "'x' twice"),
        (lambda: graph.constant(numbers(1, 1, 1, 1, 1, 1)), "rank 6"),
        (lambda: graph.activate(x, "swish"), '"swish", expected gelu'),  # type: ignore[arg-type]
        (lambda: graph.softmax(numbers(2, 3)), "found a ndarray"),  # type: ignore[arg-type]
        (lambda: graph.softmax(vitrine.Graph().input("x", (2, 3))), "another graph"),
        (lambda: graph.output(x, "y"), "only what a node computed can"),
        (lambda: graph.run(x=numbers(2, 3)), "without outputs"),
    ):
        with pytest.raises(vitrine.Error, match=sentence):
            work()  # type: ignore[no-untyped-call]
    graph.output(graph.softmax(x), "softened")
    for arrays, sentence in (
        ({}, 'no array for the input "x"'),
        ({"x": numbers(3, 2)}, r"found an array of \[3, 2\], expected \[2, 3\]"),
        ({"x": numbers(2, 3), "w": numbers(1)}, '"w", which is no input'),
    ):
        with pytest.raises(vitrine.Error, match=sentence):
            graph.run(arrays)
    with pytest.raises(vitrine.DeviceError):
        graph.run(x=numbers(2, 3), device="no such card")
    assert graph.run(x=numbers(2, 3))["softened"].shape == (2, 3)
