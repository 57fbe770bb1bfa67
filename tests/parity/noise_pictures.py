"""Pictures that C++ makes too, bit for bit (tests/support/noise_picture.cpp), and a hash of pixels."""

import numpy as np


def noise_picture(seed, width, height):
    """uint8 [height, width, 3]: noise, flat black and flat white in turn."""
    with np.errstate(over="ignore"):
        golden = np.uint64(0x9E3779B97F4A7C15)
        i = np.arange(1, width * height + 1, dtype=np.uint64)
        z = np.uint64(seed) * golden + (np.uint64(width) << np.uint64(32)) + np.uint64(height) + i * golden
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    noise = np.stack([(z >> np.uint64(s)) & np.uint64(255) for s in (0, 8, 16)], -1).astype(np.uint8)
    place = np.arange(width * height)
    patch = (place % width // 7 + place // width // 5) % 4
    noise[patch == 0] = 0
    noise[patch == 1] = 255
    return noise.reshape(height, width, 3)


def fnv(data):
    """FNV-1a with 64 bits over the bytes, as sixteen hexadecimal digits."""
    value = 0xCBF29CE484222325
    for byte in bytes(data):
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"
