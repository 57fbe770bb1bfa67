"""Vitrine's seeded random numbers (runtime/util/philox.h, model/vit/init_weights.cpp) in NumPy.

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


def words_of(seed, name, count):
    """The first `count` 32-bit words of a name's stream (RandomStream)."""
    stream = fnv1a(name)
    counter = np.zeros(((count + 3) // 4, 4), np.uint64)
    counter[:, 0] = np.arange(len(counter), dtype=np.uint64)
    counter[:, 2], counter[:, 3] = stream & 0xFFFFFFFF, stream >> 32
    return philox(counter, (seed & 0xFFFFFFFF, seed >> 32)).reshape(-1)[:count]


def uniform_of(seed, name, shape):
    """Float64 numbers in (0, 1), one a word (uniform_from)."""
    return ((words_of(seed, name, math.prod(shape)).astype(np.float64) + 0.5) * 2.0**-32).reshape(shape)


def torch_uniform(seed, name, shape, bound):
    """The parameter `name` as InitRule::torch draws it: uniform in ±bound, float32."""
    return (-bound + 2 * bound * uniform_of(seed, name, shape)).astype(np.float32)


# M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988 (PPND16): pairs of
# numerator and denominator for the middle, the tails and the far tails.
_QUANTILE = (
    (
        (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
         4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
        (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
         2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
    ),
    (
        (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
         1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
        (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
         1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
    ),
    (
        (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
         2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
        (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
         7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
    ),
)  # fmt: skip


def normal_quantile(p):
    """The standard normal quantile of an array in (0, 1), as the C++ function of this name."""
    polynomial = np.polynomial.polynomial.polyval
    q = p - 0.5
    tail = np.sqrt(-np.log(np.where(q < 0, p, 1 - p)))
    middle = np.abs(q) <= 0.425
    places = (0.180625 - np.where(middle, q, 0) ** 2, tail - 1.6, tail - 5)
    at_middle, at_tail, far = (polynomial(r, a) / polynomial(r, b) for r, (a, b) in zip(places, _QUANTILE))
    return np.where(middle, q * at_middle, np.copysign(np.where(tail <= 5, at_tail, far), q))


def normal(seed, name, shape, sigma):
    """The parameter `name` as InitRule::vit draws it: normal with this σ, float32."""
    return (sigma * normal_quantile(uniform_of(seed, name, shape))).astype(np.float32)


def _check():
    words = philox(np.zeros((1, 4), np.uint64), (0, 0))[0]
    if [int(word) for word in words] != [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]:
        raise AssertionError("philox() does not give the published test vector")
    # Two of the values that the algorithm was published with, and symmetry.
    if abs(normal_quantile(np.float64(0.25)) + 0.6744897501960817) > 1e-15:
        raise AssertionError("normal_quantile(0.25) is not the published value")
    if abs(normal_quantile(np.float64(1e-20)) + 9.262340089798408) > 1e-14:
        raise AssertionError("normal_quantile(1e-20) is not the published value")


_check()
