"""Vitrine's seeded random numbers (runtime/util/philox.h, model/init_weights.cpp) in NumPy.

So that a test can compare large layers without their weights being stored: both sides draw them.
"""

import math

import numpy as np

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(counter, key):
    """Philox 4x32 with 10 rounds: counter [.., 4] and key (2 words) to [.., 4] words."""
    words = [counter[..., i].astype(np.uint64) for i in range(4)]
    key = [np.uint64(key[0]), np.uint64(key[1])]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * words[0], np.uint64(0xCD9E8D57) * words[2]
        words = [(b >> _HALF) ^ words[1] ^ key[0], b & _MASK, (a >> _HALF) ^ words[3] ^ key[1], a & _MASK]
        key = [(key[0] + np.uint64(0x9E3779B9)) & _MASK, (key[1] + np.uint64(0xBB67AE85)) & _MASK]
    return np.stack(words, axis=-1)


def fnv1a(name):
    """Which stream of random numbers belongs to a name."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def torch_uniform(seed, name, shape, bound):
    """The parameter `name` as InitRule::torch draws it: uniform in ±bound, float32."""
    count = math.prod(shape)
    stream = fnv1a(name)
    counter = np.zeros(((count + 3) // 4, 4), np.uint64)
    counter[:, 0] = np.arange(len(counter), dtype=np.uint64)
    counter[:, 2], counter[:, 3] = stream & 0xFFFFFFFF, stream >> 32
    words = philox(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:count]
    uniform = (words.astype(np.float64) + 0.5) * 2.0**-32
    return (-bound + 2 * bound * uniform).astype(np.float32).reshape(shape)


def _check():
    words = philox(np.zeros((1, 4), np.uint64), (0, 0))[0]
    if [int(word) for word in words] != [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]:
        raise AssertionError("philox() does not give the published test vector")


_check()
