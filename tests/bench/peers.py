"""What the rungs are measured against: PyTorch eager, torch.compile, and Triton kernels in the way of the article.

Reads the name of a rung a line from stdin ("01", "02", "04", "05") and answers each with one line of JSON: a list of
{problem, peer, median_us, p10_us, p90_us} or {problem, peer, error}. run.py keeps it running, and asks it in turn with
the rungs' own benchmarks. Times are taken as common/harness/bench.hpp takes them: by CUDA events, with a buffer several
times as large as the L2 cache written before each call, the median of 50. A result is checked before it is timed.
"""
import json
import math
import statistics
import sys

import torch
import torch._dynamo
import torch.nn.attention
import triton
import triton.language as tl

CALLS = 50
N = 1 << 28
WIDTHS = (256, 1000, 1024, 2000, 4096, 8192, 16384, 32768)
P, SEED = 0.5, 20260907


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    block_start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def relu_dropout_kernel(x_ptr, out_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    x = tl.where(x <= 0, 0.0, x)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


@triton.jit
def softmax_kernel(output_ptr, input_ptr, input_row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0).to(tl.int64)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    row = tl.load(input_ptr + row_idx * input_row_stride + col_offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(row - tl.max(row, axis=0))
    softmax_output = numerator / tl.sum(numerator, axis=0)
    tl.store(output_ptr + row_idx * output_row_stride + col_offsets, softmax_output, mask=mask)


flush = torch.empty(8 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.int8, device="cuda")


def times_us(body):
    """p10, median and p90 of the calls, in microseconds."""
    for _ in range(3):
        body()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(CALLS):
        flush.zero_()
        start.record()
        body()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1e3)
    times.sort()
    return times[(CALLS - 1) // 10], statistics.median(times), times[(CALLS - 1) * 9 // 10]


def measure(problem, peer, body, wrong, poison=None):
    """`body` returns its output; `wrong(output)` says what is wrong with it, or nothing. `poison` is an output that
    several peers share: it must not hold the answer of the one before."""
    try:
        if poison is not None:
            poison.fill_(math.nan)
        complaint = wrong(body())
        if complaint:
            return {"problem": problem, "peer": peer, "error": complaint}
        p10, median, p90 = times_us(body)
        return {"problem": problem, "peer": peer, "median_us": median, "p10_us": p10, "p90_us": p90}
    except Exception as error:  # a peer that does not run is a line of the result, not the end of the run
        return {"problem": problem, "peer": peer, "error": f"{type(error).__name__}: {error}".splitlines()[0]}


def differs(output, expected, absolute, relative):
    """NaN-proof: what does not match is counted by the negation."""
    bad = (~((output - expected).abs() <= absolute + relative * expected.abs())).sum().item()
    return f"{bad} of {output.numel()} differ" if bad else ""


def best(results):
    """The fastest of some results of one peer, or the last one where none succeeded."""
    timed = [result for result in results if "median_us" in result]
    return min(timed, key=lambda result: result["median_us"]) if timed else results[-1]


torch._dynamo.config.recompile_limit = 64  # one compiled softmax for each width and type


@torch.compile(dynamic=False)
def compiled_dropout(x):
    return torch.nn.functional.dropout(torch.relu(x), P)


@torch.compile(dynamic=False)
def compiled_softmax(x):
    return torch.softmax(x, dim=1)


def vector_add():
    x, y = torch.randn(N, device="cuda"), torch.randn(N, device="cuda") + 2
    out, expected = torch.empty_like(x), x + y
    problem = f"add n={N}"

    def wrong(output):
        return "" if torch.equal(output, expected) else "differs from x + y"

    def triton_add(block_size, num_warps):
        def body():
            add_kernel[(triton.cdiv(N, block_size),)](x, y, out, N, BLOCK_SIZE=block_size, num_warps=num_warps)
            return out
        return body

    return [
        measure(problem, "PyTorch", lambda: torch.add(x, y, out=out), wrong, out),
        best([measure(problem, "Triton", triton_add(*s), wrong, out) for s in ((1024, 4), (2048, 8), (4096, 8))]),
    ]


def relu_dropout():
    x = torch.randn(N, device="cuda")
    out = torch.empty_like(x)
    problem = f"relu_dropout n={N} p=0.5"

    def wrong(output):
        positive = x > 0
        count = positive.sum().item()
        dropped = (positive & (output == 0)).sum().item()
        if abs(dropped / count - P) > 5 * math.sqrt(P * (1 - P) / count):
            return f"drops {dropped / count:.6f} of the positive elements"
        kept = output != 0
        if not (output[kept] == 2 * x[kept]).all() or (kept & ~positive).any():
            return "survivors are not 2 x"
        return ""

    def eager():
        return torch.nn.functional.dropout(torch.relu(x), P)

    def triton_dropout(block_size, num_warps):
        def body():
            relu_dropout_kernel[(triton.cdiv(N, block_size),)](x, out, N, P, SEED, BLOCK_SIZE=block_size,
                                                               num_warps=num_warps)
            return out
        return body

    return [
        measure(problem, "PyTorch", eager, wrong),
        measure(problem, "torch.compile", lambda: compiled_dropout(x), wrong),
        best([measure(problem, "Triton", triton_dropout(*s), wrong, out) for s in ((1024, 4), (2048, 8))]),
    ]


def softmax():
    results = []
    for columns, dtype in ((columns, dtype) for columns in WIDTHS for dtype in (torch.float32, torch.bfloat16)):
        rows = N // columns
        x = torch.randn(rows, columns, device="cuda").to(dtype)
        out = torch.empty_like(x)
        bf16 = dtype == torch.bfloat16
        problem = f"softmax bf16 columns={columns}" if bf16 else f"softmax columns={columns}"
        some = torch.linspace(0, rows - 1, 64, device="cuda").long()
        expected = torch.softmax(x[some].double(), dim=1)

        def wrong(output):
            if output.isnan().any():
                return "NaN in the output"
            return differs(output[some].double(), expected, 0, 2**-8 + 1e-5 if bf16 else 1e-5)

        def eager():
            return torch.softmax(x, dim=1, out=out)

        def triton_softmax(num_warps):
            def body():
                softmax_kernel[(rows,)](out, x, x.stride(0), out.stride(0), columns,
                                        BLOCK_SIZE=triton.next_power_of_2(columns), num_warps=num_warps)
                return out
            return body

        results.append(measure(problem, "PyTorch", eager, wrong, out))
        results.append(measure(problem, "torch.compile", lambda: compiled_softmax(x), wrong))
        num_warps = (1, 2, 4) if columns <= 256 else (4, 8, 16) if columns <= 4096 else (8, 16, 32)
        results.append(best([measure(problem, "Triton", triton_softmax(w), wrong, out) for w in num_warps]))
        del x, out
    return results


def attention():
    heads, q_len, head_dim = 16, 4096, 64
    results = []
    for k_len in (420, 337):  # the most keys that the rung takes on sm_90, and its variant
        q = torch.randn(1, heads, q_len, head_dim, device="cuda")
        k = torch.randn(1, heads, k_len, head_dim, device="cuda")
        v = torch.randn(1, heads, k_len, head_dim, device="cuda") + 1
        expected = torch.softmax(q.double() @ k.double().mT / math.sqrt(head_dim), dim=-1) @ v.double()
        problem = f"attention heads={heads} q_len={q_len} k_len={k_len} head_dim={head_dim}"
        for peer, backend in (("PyTorch, math", torch.nn.attention.SDPBackend.MATH),
                              ("PyTorch, memory-efficient", torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION)):
            with torch.nn.attention.sdpa_kernel(backend):
                results.append(measure(problem, peer,
                                       lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
                                       lambda output: differs(output.double(), expected, 2e-6, 1e-5)))
    return results


RUNGS = {"01": vector_add, "02": relu_dropout, "04": softmax, "05": attention}


def main():
    for line in sys.stdin:
        print(json.dumps(RUNGS[line.strip()]()), flush=True)
        torch.cuda.empty_cache()  # the rungs' programs need memory too


if __name__ == "__main__":
    main()
