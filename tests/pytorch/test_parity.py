"""The rungs against PyTorch, and against Triton where it and a GPU are there: test_parity.py PATH_OF_LIBLADDER_C.SO

Exit status 77, with the reason, where PyTorch or the device of the library is missing. README.md says more.
"""
import sys

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {sys.executable} has no PyTorch: {error}")
    sys.exit(77)

import itertools
import unittest

import ladder
import philox
import torch_reference
from torch.nn import functional

try:
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:  # PyTorch before 2.3
    sdpa_kernel = None

RANDOM_CASES = 500  # of each launcher
SEED = 20260907
NAN = float("nan")

RUNGS = None  # the library under test
DEVICE = None  # "cpu" or "cuda"
SENTENCES = []  # printed at the end

# Absolute and relative, against float64. Softmax: x - max rounds to half an ulp of at most 16, and exp passes that on;
# the sum and the division come on top. Attention: averages of values near 1.
SOFTMAX = (2.0**-149, 2e-6)  # 2^-149: an ulp of a denormal
ATTENTION = (2e-6, 1e-5)


def double(tolerance):
    """Two float32 results may be off to either side."""
    return tuple(2 * part for part in tolerance)


def difference(actual, expected, tolerance):
    """What differs by more than absolute + relative |expected|, in words; None when nothing does. A NaN and an infinity
    match themselves and nothing else."""
    actual, expected = actual.detach().cpu().double(), expected.detach().cpu().double()
    if actual.shape != expected.shape:
        return f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    absolute, relative = tolerance
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    close = (actual - expected).abs() <= absolute + relative * expected.abs()
    matches = same | (close & actual.isfinite() & expected.isfinite())
    if matches.all():
        return None
    where = tuple((~matches).nonzero()[0].tolist())
    return (f"{int((~matches).sum())} of {actual.numel()} differ; first at {where}: {actual[where].item()!r}, "
            f"expected {expected[where].item()!r}")


def max_abs_diff(actual, expected):
    return (actual.cpu().double() - expected.cpu().double()).abs().max().item()


def say(claim, holds, detail):
    """A sentence as the article and the rungs' programs print it."""
    SENTENCES.append(f"{claim}?  {holds}   {detail}")


class Parity(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(SEED)

    def check(self, actual, expected, tolerance, what):
        text = difference(actual, expected, tolerance)
        self.assertIsNone(text, f"{what}: {text}")

    def check_bits(self, actual, expected, what):
        """Bit by bit, and any NaN for any other."""
        self.check(actual, expected, (0, 0), what)
        signs = torch.signbit(actual) == torch.signbit(expected)
        self.assertTrue(bool((signs | expected.isnan()).all()), f"{what}: 0 and -0 differ")

    def normal(self, *shape, mean=0.0):
        values = torch.from_numpy(self.random.normal(mean, 1, shape))
        return torch.empty(shape, device=DEVICE).copy_(values)  # of numpy's empty arrays all strides are 0

    def size(self, largest):
        """From 1 to `largest`, small ones as often as large ones."""
        return int(round(float(largest) ** self.random.random()))

    def gapped(self, rows, columns, gap, fill=NAN):
        """A (rows, columns) view with `gap` cells of `fill` behind each row, and the memory it lies in."""
        memory = torch.full((rows, columns + gap), fill, device=DEVICE)
        return memory[:, :columns], memory


def poison(*shape):
    return torch.full(shape, NAN, device=DEVICE)


class TheComparison(unittest.TestCase):
    """A comparison that accepts what it should not makes all the others worthless."""

    def test_it_refuses(self):
        expected = torch.softmax(torch.arange(2000.0).double() / 1000, dim=0)
        self.assertIsNone(difference(expected.float(), expected, SOFTMAX))
        for name, actual in (("zeros", torch.zeros(2000)), ("NaN", torch.full((2000,), NAN)), ("shape", expected[:-1]),
                             ("infinity", torch.full((2000,), float("inf"))),
                             ("three tolerances", expected * (1 + 3 * SOFTMAX[1])),
                             ("a zeroed tail", torch.cat([expected[:1999], torch.zeros(1)]))):
            self.assertIsNotNone(difference(actual, expected, SOFTMAX), name)
        self.assertIsNotNone(difference(torch.ones(1), torch.full((1,), NAN), SOFTMAX))
        self.assertIsNotNone(difference(torch.ones(1), torch.full((1,), float("inf")), SOFTMAX))

    def test_philox_gives_the_published_words(self):  # Random123, kat_vectors
        pi = ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0))
        for (counter, key), words in ((((0,) * 4, (0, 0)), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
                                      (pi, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))):
            self.assertEqual(tuple(int(word) for word in philox.philox4x32_10(counter, key)), words)


class VectorAdd(Parity):
    LAUNCHERS = ("vector_add", "vector_add_vectorized")

    def both(self, x, y, what):
        for name in self.LAUNCHERS:
            out = poison(len(x))
            self.assertIs(getattr(RUNGS, name)(x, y, out=out), out)
            self.check_bits(out, x + y, f"{name}, {what}")

    def test_article(self):
        x, y = self.normal(1_000_003), self.normal(1_000_003)
        self.both(x, y, "n=1000003")
        say("Vector add matches x + y (n=1000003)", torch.equal(RUNGS.vector_add(x, y), x + y), "bit for bit")

    def test_bug_cases(self):
        for n in (0, 1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025):  # BC-001, BC-002
            self.both(self.normal(n), self.normal(n), f"n={n}")
        for n, *shifts in itertools.product((*range(1, 10), 1023), (0, 1), (0, 1), (0, 1)):  # BC-003: misaligned
            x, y, out = (self.normal(n + 1)[shift:shift + n] for shift in shifts)
            expected = x + y
            for name in self.LAUNCHERS:
                getattr(RUNGS, name)(x, y, out=out)
                self.check_bits(out, expected, f"{name}, n={n}, shifted by {shifts}")
        x = torch.tensor([1.4e-45, 1e-40, float("inf"), 3e38, -0.0], device=DEVICE)  # BC-008
        y = torch.tensor([1.4e-45, 1e-40, -float("inf"), 3e38, -0.0], device=DEVICE)
        self.both(x, y, "denormals, inf - inf, overflow, -0")
        for name in self.LAUNCHERS:  # BC-010: in place
            x, y = self.normal(1025), self.normal(1025)
            expected = x + y
            getattr(RUNGS, name)(x, y, out=x)
            self.check_bits(x, expected, f"{name}, out is x")

    def test_random(self):
        for case in range(RANDOM_CASES):
            n, start = self.size(3000), int(self.random.integers(0, 4))
            self.both(self.normal(n + start)[start:], self.normal(n), f"case {case}, n={n}, x from {start}")


class ReluDropout(Parity):
    LAUNCHERS = (("relu_dropout", philox.uniforms), ("relu_dropout_four_per_call", philox.uniforms_four_per_call))

    def both(self, x, p, seed, first):
        for name, uniforms in self.LAUNCHERS:
            out = poison(len(x))
            getattr(RUNGS, name)(x, p, seed, first, out=out)
            u = torch.from_numpy(uniforms(seed, first, len(x))).to(DEVICE)
            self.check(out, torch_reference.relu_dropout(x, u, p), (0, 0),
                       f"{name}, n={len(x)}, p={p}, seed={seed}, first_counter={first}")

    def test_article(self):
        for p in (0.1, 0.5, 0.9):
            x = torch.ones(100_000, device=DEVICE)
            self.both(x, p, 0, 0)
            rate = (RUNGS.relu_dropout(x, p, 0) == 0).double().mean().item()
            sigma = (p * (1 - p) / len(x)) ** 0.5
            self.assertLessEqual(abs(rate - p), 5 * sigma)
            say(f"Mask is that of Philox by hand (size=100000, p={p})", True, f"empirical rate {rate:.4f}")

    def test_bug_cases(self):
        special = torch.tensor([NAN, -1, 0, 1, -float("inf"), float("inf")], device=DEVICE)
        for p in (0.0, 0.5, 1.0):  # BC-012, BC-013, BC-014
            self.both(special, p, 1, 0)
        for n in (1, 5, 1025, 4097):  # BC-014, BC-020
            for p in (0.0, 0.3, 1.0):
                self.both(self.normal(n), p, 7, 0)
        for n in range(1, 10):  # BC-021: the tail of a call
            self.both(self.normal(n), 0.5, 3, n)
        for first in (4099, 2**20 - 50, 2**31 - 50, 2**32 - 50, 2**63 - 50, 2**64 - 101):  # BC-019, and 64 bits
            self.both(self.normal(100), 0.5, 2**64 - 1, first)

    def test_random(self):
        for _ in range(RANDOM_CASES):
            n, p = self.size(3000), float(self.random.random())
            seed, first = (int(self.random.integers(0, 2**63)) for _ in range(2))
            self.both(self.normal(n), p, seed, first)


class Softmax(Parity):
    FIXED = 1024  # columns that rung 03 looks at

    def both(self, x, gap=0):
        rows, columns = x.shape
        for name, reach in (("softmax", columns), ("softmax_buggy", min(columns, self.FIXED))):
            what = f"{name} of {(rows, columns)}, row stride {x.stride(0)}"
            out, memory = self.gapped(rows, columns, gap)
            getattr(RUNGS, name)(x, out=out)
            seen = x[:, :reach]
            self.check(out[:, :reach], torch.softmax(seen.double(), dim=-1), SOFTMAX, f"{what}, against float64")
            self.check(out[:, :reach], torch.softmax(seen, dim=-1), double(SOFTMAX), f"{what}, against float32")
            self.assertTrue(bool(memory[:, reach:].isnan().all()), f"{what}: written past column {reach}")

    def test_article(self):
        x = self.normal(4, 5)
        self.both(x)
        off = max_abs_diff(RUNGS.softmax(x), torch.softmax(x, dim=-1))
        say("Softmax matches PyTorch (4, 5)", True, f"max abs diff {off:.3g}")
        x = self.normal(4, 2000)
        self.both(x)
        reference = torch.softmax(x, dim=-1)
        for name, launcher, right in (("Buggy", RUNGS.softmax_buggy, False), ("Corrected", RUNGS.softmax, True)):
            out = launcher(x, out=torch.zeros_like(x))  # what is never written counts as 0
            matches = difference(out, reference, double(SOFTMAX)) is None
            say(f"{name} softmax matches PyTorch (n_cols=2000)", matches,
                f"max abs diff {max_abs_diff(out, reference):.3g}")
            self.assertEqual(matches, right)

    def test_widths(self):
        for columns in (1, 2, 31, 32, 33, 1000, 1023, 1024, 1025, 1537, 2047, 2048, 4097, 10000, 16385, 32767, 32768):
            self.both(self.normal(2, columns), gap=1)

    def test_bug_cases(self):
        inf = float("inf")
        rows = [[0, 0, 0], [-inf, -inf, -inf], [0, inf, 0], [1, NAN, 2], [-inf, 0, -inf],  # BC-033 to BC-036
                [-10000, -10000, -10000], [-10200, -10201, -10200], [88.72284, 0, 0], [1000, 1000, -1000],
                [3e38, 3e38, 0], [0, -100, -104], [-3, -3, -3], [-90, -90, -90]]  # BC-037 to BC-039, BC-031, BC-052
        self.both(torch.tensor(rows, dtype=torch.float32, device=DEVICE))
        wide = torch.zeros(2, 1025, device=DEVICE)
        wide[:, 1024] = 100  # BC-026
        self.both(wide)
        for columns in (3, 5, 513, 1025):  # BC-030, BC-032: rows that begin anywhere
            self.both(torch.arange(float(columns), device=DEVICE).remainder(16).repeat(3, 1))
        many = self.normal(70_000, 3)  # BC-029
        self.check(RUNGS.softmax(many), torch.softmax(many.double(), dim=-1), SOFTMAX, "70000 rows")
        x, memory = self.gapped(4, 5, 3)  # BC-040
        x.copy_(torch.arange(5.0, device=DEVICE).expand(4, 5))
        self.both(x, gap=2)
        x = self.normal(4, 1537)  # BC-042: in place
        apart = RUNGS.softmax(x)
        self.check_bits(RUNGS.softmax(x, out=x), apart, "softmax in place")
        for shape in ((0, 5), (4, 0)):  # BC-027
            self.assertEqual(RUNGS.softmax(torch.empty(shape, device=DEVICE)).shape, shape)

    def test_random(self):
        for _ in range(RANDOM_CASES):
            rows, columns = self.size(8), self.size(3000)
            x, _memory = self.gapped(rows, columns, int(self.random.integers(0, 4)))
            x.copy_(self.normal(rows, columns))
            self.both(x, gap=int(self.random.integers(0, 4)))


class Attention(Parity):
    def one(self, q, k, v, causal=False, scale=None):
        what = (f"attention, Q {tuple(q.shape)} strides {q.stride()}, K {tuple(k.shape)} strides {k.stride()}, "
                f"causal={causal}, scale={scale}")
        out = RUNGS.attention(q, k, v, causal, scale, out=poison(*q.shape))
        expected = torch_reference.attention(q.double(), k.double(), v.double(), causal, scale)
        self.check(out, expected, ATTENTION, f"{what}, against float64")
        if hasattr(functional, "scaled_dot_product_attention"):
            self.against_pytorchs_own(out, q, k, v, causal, scale, what)
        return max_abs_diff(out, expected) if out.numel() else 0.0

    def against_pytorchs_own(self, out, q, k, v, causal, scale, what):
        mask = torch_reference.visible(q.shape[2], k.shape[2], causal, q.device)
        sees = mask.any(dim=-1)  # for a query that sees no key, versions of PyTorch differ
        # The scale goes in through Q: older versions have no argument for it.
        factor = 1.0 if scale is None else scale * q.shape[-1] ** 0.5
        if not sees.any() or not out.numel():
            return
        for dtype, tolerance in ((torch.float64, ATTENTION), (torch.float32, double(ATTENTION))):
            with math_backend():
                peer = functional.scaled_dot_product_attention(factor * q.to(dtype), k.to(dtype), v.to(dtype),
                                                               attn_mask=mask)
            self.check(out[:, :, sees], peer[:, :, sees], tolerance, f"{what}, against PyTorch's in {dtype}")

    def random_case(self, batch, heads, q_len, k_len, head_dim, **options):
        return self.one(self.normal(batch, heads, q_len, head_dim), self.normal(batch, heads, k_len, head_dim),
                        self.normal(batch, heads, k_len, head_dim, mean=1), **options)

    def test_article(self):
        for q_len, k_len, head_dim in ((5, 15, 32), (1, 10, 64)):
            off = self.random_case(1, 1, q_len, k_len, head_dim)
            keys = f"({k_len}, {head_dim})"
            say(f"Q: ({q_len}, {head_dim}), K: {keys}, V: {keys}  ->  matches", True, f"max abs diff {off:.3g}")

    def test_bug_cases(self):
        for length in (1, 15, 63, 64, 65, 127, 129, 192):  # BC-053
            self.random_case(1, 1, length, length, 64)
        for q_len, k_len in ((2, 5), (5, 2), (1, 65), (2, 3), (3, 128), (64, 100), (100, 128)):  # BC-054 to BC-060
            for causal in (False, True):
                self.random_case(1, 2, q_len, k_len, 16, causal=causal)
        for causal in (False, True):  # BC-061, BC-062
            self.random_case(1, 1, 3, 0, 8, causal=causal)
            self.random_case(1, 1, 0, 3, 8, causal=causal)
        for head_dim in (1, 7, 20, 33, 40, 72, 80, 96, 112, 128, 160, 192, 224, 256):  # BC-063 to BC-066
            self.random_case(1, 1, 7, 9, head_dim)
        self.random_case(1, 1, 4, 4, 8, causal=True, scale=0.0)  # BC-070
        packed = self.normal(1, 62, 3, 2, 16, mean=0.5)  # BC-071: slices of one projection
        q, k, v = (packed[:, :, part].transpose(1, 2) for part in range(3))
        self.one(q, k, v)
        k, v = self.normal(1, 1, 33, 16), self.normal(1, 1, 33, 16, mean=1)  # BC-072, BC-074: one head of K and V
        self.one(self.normal(1, 4, 5, 16), k.expand(1, 4, 33, 16), v.expand(1, 4, 33, 16))

    def test_random(self):
        for _ in range(RANDOM_CASES):
            causal, own_scale = (bool(self.random.random() < 0.5) for _ in range(2))
            self.random_case(self.size(2), self.size(3), self.size(40), self.size(70), self.size(70), causal=causal,
                             scale=float(self.random.random()) if own_scale else None)


def math_backend():
    """PyTorch's matmul and softmax, so that no float32 product goes through TF32."""
    if sdpa_kernel:
        return sdpa_kernel(SDPBackend.MATH)
    return torch.backends.cuda.sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_math=True)


class Refusals(Parity):
    """What is refused names the argument, its value and the limit, and writes nothing."""

    def refused(self, error, text, call):
        with self.assertRaises(error) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def test_tensors(self):
        x, out = self.normal(4), poison(4)
        add = lambda y: (lambda: RUNGS.vector_add(x, y, out=out))
        self.refused(TypeError, "vector_add: y is a list, must be a torch.Tensor", add([1, 2, 3, 4]))
        self.refused(TypeError, "vector_add: y.dtype is torch.float64, must be torch.float32", add(x.double()))
        self.refused(TypeError, "vector_add: y.layout is torch.sparse_coo, must be torch.strided", add(x.to_sparse()))
        self.refused(ValueError, f"vector_add: y.device is meta, must be of type {DEVICE}, as this build",
                     add(torch.empty(4, device="meta")))
        self.refused(ValueError, "vector_add: y.requires_grad is True, must be False: the ladder computes no gradient "
                     "(detach it)", add(self.normal(4).requires_grad_()))
        self.refused(ValueError, "vector_add: y.shape is (2, 2), must be of 1 axis", add(x.view(2, 2)))
        self.refused(ValueError, "softmax: input.shape is (4,), must be of 2 axes", lambda: RUNGS.softmax(x))
        negative = torch.complex(x, x).conj().imag
        self.refused(ValueError, "vector_add: y.is_neg() is True, must be False (resolve_neg it)", add(negative))
        self.assertTrue(bool(out.isnan().all()))

    def test_launchers(self):
        x, out = self.normal(8), poison(4)
        self.refused(ValueError, "vector_add: y.sizes[0] is 3, must be 4, as of x",
                     lambda: RUNGS.vector_add(x[:4], x[:3], out=out))
        self.refused(ValueError, "vector_add: y.strides[0] is 2, must be 1",
                     lambda: RUNGS.vector_add(x[:4], x[::2], out=out))
        self.refused(ValueError, "vector_add: out.data is inside x, must be apart from it, or the same view",
                     lambda: RUNGS.vector_add(x[:4], x[:4], out=x[1:5]))
        for p, text in ((-0.1, "-0.1"), (2.0, "2"), (NAN, "nan")):
            self.refused(ValueError, f"relu_dropout: p is {text}, must be at least 0 and at most 1",
                         lambda: RUNGS.relu_dropout(x[:4], p, 0, out=out))
        self.refused(ValueError, f"relu_dropout: seed is {2**64}, must be at least 0 and less than 2^64",
                     lambda: RUNGS.relu_dropout(x[:4], 0.5, 2**64, out=out))
        self.refused(ValueError, "softmax: input.strides[1] is 4, must be 1",
                     lambda: RUNGS.softmax(self.normal(5, 4).t()))
        with self.assertRaisesRegex(ValueError, "softmax: n_cols is 32769, must be at most 32768"):
            RUNGS.softmax(self.normal(1, 32769))
        q, k = self.normal(1, 1, 1, 64), self.normal(1, 1, 4096, 64)
        with self.assertRaisesRegex(ValueError, r"K and V of \(4096, 64\) is 2246656 bytes, must be at most"):
            RUNGS.attention(q, k, k)  # BC-076
        self.assertTrue(bool(out.isnan().all()))
        self.check_bits(RUNGS.vector_add(x, x), x + x, "the call after a refusal")


class Streams(Parity):
    def test_work_is_queued_on_the_current_stream(self):
        if DEVICE != "cuda":
            self.skipTest("the CPU device has no streams")
        x, y = torch.zeros(4096, device=DEVICE), self.normal(4096)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)  # a tenth of a second: on any other stream, x would still be 0
            x.fill_(1)
            out = RUNGS.vector_add(x, y)
        stream.synchronize()
        self.check_bits(out, 1 + y, "x was written late, on the same stream")


class AgainstTriton(Parity):
    @classmethod
    def setUpClass(cls):
        if DEVICE != "cuda":
            raise unittest.SkipTest("Triton needs a GPU, and this is the CPU device's build")
        try:
            import triton_kernels
        except ImportError as error:
            raise unittest.SkipTest(f"{sys.executable} has no Triton: {error}")
        cls.triton = triton_kernels

    def test_vector_add(self):
        for n in (1, 1023, 1024, 1025, 1_000_003):
            x, y = self.normal(n), self.normal(n)
            self.check_bits(RUNGS.vector_add(x, y), self.triton.vector_add(x, y), f"n={n}")

    def test_dropout_masks(self):
        n, p = 10_007, 0.3
        ones, x = torch.ones(n, device=DEVICE), self.normal(n)
        masks = at_p = 0
        for seed in (0, 7, 42, 2**31 - 1, 2**40 + 3):
            for first in (0, 2**20 - 5000, 2**31 - n, 2**31 - 5000):  # the last goes past the largest 32-bit integer
                what = f"seed={seed}, first offset {first}"
                u = torch.from_numpy(philox.uniforms(seed, first, n)).to(DEVICE)
                equal_p = u == torch.tensor(p, dtype=torch.float32, device=DEVICE)  # Triton's kernel drops these
                ours = RUNGS.relu_dropout(ones, p, seed, first) != 0
                theirs = self.triton.relu_dropout(ones, p, seed, first) != 0
                self.assertTrue(torch.equal(ours, theirs | equal_p), f"{what}: the masks differ")
                masks, at_p = masks + 1, at_p + int(equal_p.sum())
                # Triton's division is approximate: an ulp is at most 2^-23 of the value.
                values = RUNGS.relu_dropout(x, p, seed, first).masked_fill(equal_p, 0)
                self.check(values, self.triton.relu_dropout(x, p, seed, first), (0, 2.0**-23), what)
        say("Dropout masks are Triton's, bit for bit", True,
            f"{masks} masks of {n}; {at_p} elements have a uniform number equal to p")

    def test_softmax(self):
        for columns in (5, 33, 256, 1000, 1024, 1025, 2000, 4096, 8192, 32768):
            x = self.normal(4, columns)
            peer = self.triton.softmax(x, poison(4, columns))
            self.check(RUNGS.softmax(x), peer, (0, 8e-6), f"{columns} columns")  # its exp is approximate too

    def test_the_same_bug_in_the_same_columns(self):
        x = self.normal(4, 2000)
        ours, theirs = RUNGS.softmax_buggy(x, out=poison(4, 2000)), self.triton.softmax(x, poison(4, 2000), 1024)
        self.assertTrue(torch.equal(ours.isnan(), theirs.isnan()))
        unwritten = theirs.isnan().any(dim=0).nonzero().flatten()
        self.assertEqual((unwritten[0].item(), unwritten[-1].item(), len(unwritten)), (1024, 1999, 976))
        self.check(ours, theirs, (0, 8e-6), "the columns that both write")
        say("Triton's buggy softmax leaves the same columns unwritten (n_cols=2000)", True, "columns 1024 to 1999")

    def test_attention(self):
        for q_len, k_len, head_dim in ((5, 15, 32), (1, 10, 64), (16, 16, 16), (33, 65, 40), (100, 64, 64)):
            q, k, v = self.normal(q_len, head_dim), self.normal(k_len, head_dim), self.normal(k_len, head_dim, mean=1)
            ours = RUNGS.attention(q[None, None], k[None, None], v[None, None])[0, 0]
            self.check(ours, self.triton.attention(q, k, v), double(ATTENTION), f"q {q_len}, k {k_len}, D {head_dim}")


def main():
    global RUNGS, DEVICE
    if len(sys.argv) != 2:
        print(f"usage: {sys.argv[0]} PATH_OF_LIBLADDER_C.SO", file=sys.stderr)
        return 2
    RUNGS = ladder.Library(sys.argv[1])
    DEVICE = RUNGS.device
    if DEVICE == "cuda" and not torch.cuda.is_available():
        print(f"skipped: PyTorch {torch.__version__} sees no CUDA device")
        return 77
    torch.backends.cuda.matmul.allow_tf32 = False
    on = torch.cuda.get_device_name() if DEVICE == "cuda" else "the CPU device"
    print(f"The rungs on {on} against PyTorch {torch.__version__}", flush=True)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    print(*SENTENCES, sep="\n")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
