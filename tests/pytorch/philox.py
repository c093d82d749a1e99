"""Philox 4x32-10 in numpy, from the paper: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
SC 2011. It shares nothing with steps/02_relu_dropout/philox.cuh, so that each can find a slip in the other.
"""
import numpy as np

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_32_BITS = np.uint64(0xFFFFFFFF)


def philox4x32_10(counter, key):
    """The four words for each counter: `counter` is four arrays of uint32, `key` two integers of 32 bits."""
    c0, c1, c2, c3 = (np.asarray(word, dtype=np.uint32) for word in counter)
    k0, k1 = key
    for _ in range(10):
        product_0 = np.uint64(_MULTIPLIERS[0]) * c0.astype(np.uint64)
        product_1 = np.uint64(_MULTIPLIERS[1]) * c2.astype(np.uint64)
        high_0, low_0 = (product_0 >> np.uint64(32)).astype(np.uint32), (product_0 & _32_BITS).astype(np.uint32)
        high_1, low_1 = (product_1 >> np.uint64(32)).astype(np.uint32), (product_1 & _32_BITS).astype(np.uint32)
        c0, c1, c2, c3 = high_1 ^ c1 ^ np.uint32(k0), low_1, high_0 ^ c3 ^ np.uint32(k1), low_0
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def _words(seed, counters):
    zeros = np.zeros(len(counters), dtype=np.uint32)
    low, high = (counters & _32_BITS).astype(np.uint32), (counters >> np.uint64(32)).astype(np.uint32)
    return philox4x32_10((low, high, zeros, zeros), (seed & 0xFFFFFFFF, seed >> 32))


def _uniforms_of(words):
    """Triton's rule: the word as a signed integer, negative ones mapped by -1 - w, times the float below 2^-31."""
    signed = words.astype(np.int64)
    signed = np.where(signed >= 2**31, signed - 2**32, signed)
    magnitude = np.where(signed < 0, -1 - signed, signed)
    return magnitude.astype(np.float32) * np.float32(4.6566127342e-10)


def uniforms(seed, first, n):
    """What tl.rand(seed, offset) gives for the n offsets from `first` on: word 0 of the counter `offset`."""
    return _uniforms_of(_words(seed, np.uint64(first) + np.arange(n, dtype=np.uint64))[0])


def uniforms_four_per_call(seed, first, n):
    """For element i of the stream, word i % 4 of the counter i / 4."""
    elements = np.uint64(first) + np.arange(n, dtype=np.uint64)
    words = np.stack(_words(seed, elements // np.uint64(4)))
    return _uniforms_of(words[(elements % np.uint64(4)).astype(np.int64), np.arange(n)])
