"""The kernels of the article that this ladder starts from, written anew in Triton with its operations: one program per
block of elements, per row, or per tile of queries; offsets, a mask, a fixed BLOCK_SIZE in the softmax. They are peers:
what the ladder's own kernels give is held against them. float32, on a GPU.

What differs from the article: dropout takes a first offset; the softmax forms a row's offset in 64 bits; attention takes
contiguous tensors, masks head dimensions that are no power of two, and asks tl.dot for fp32 in place of TF32.
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = i < n
    tl.store(out + i, tl.load(x + i, mask=exists) + tl.load(y + i, mask=exists), mask=exists)


def vector_add(x, y):
    out = torch.empty_like(x)
    _add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def _relu_dropout(x, out, n, p, seed, first, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = i < n
    value = tl.load(x + i, mask=exists)
    value = tl.maximum(value, 0.0)  # as the article: by default it passes over a NaN, and gives 0
    # Keeps where the number is above p, as the article does. The ladder also keeps where it is p.
    survives = tl.rand(seed, first + i) > p
    tl.store(out + i, tl.where(survives, value / (1 - p), 0.0), mask=exists)


def relu_dropout(x, p, seed, first=0):
    """Offsets are of 32 bits, and past 2^31 - 1 they go on at -2^31: the same 32 bits for Philox."""
    out = torch.empty_like(x)
    _relu_dropout[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, seed, first, BLOCK=1024)
    return out


@triton.jit
def _softmax(out, x, out_row_stride, x_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK_SIZE)
    exists = columns < n_cols
    values = tl.load(x + row * x_row_stride + columns, mask=exists, other=float("-inf"))
    numerator = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * out_row_stride + columns, numerator / tl.sum(numerator, axis=0), mask=exists)


def softmax(x, out, block_size=None):
    """`block_size` None: sized to the row. 1024: the article's bug, which leaves columns from 1024 on unwritten."""
    block_size = block_size or triton.next_power_of_2(x.shape[1])
    warps = min(max(block_size // 1024, 4), 16)
    _softmax[(x.shape[0],)](out, x, out.stride(0), x.stride(0), x.shape[1], BLOCK_SIZE=block_size, num_warps=warps)
    return out


@triton.jit
def _attention(q, k, v, out, q_len, k_len, head_dim, scale, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
               BLOCK_D: tl.constexpr):
    i = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    j = tl.arange(0, BLOCK_K)
    d = tl.arange(0, BLOCK_D)
    exists_i, exists_j, exists_d = i < q_len, j < k_len, d < head_dim
    mask_i, mask_j = exists_i[:, None] & exists_d[None, :], exists_j[:, None] & exists_d[None, :]
    cells_i, cells_j = i[:, None] * head_dim + d[None, :], j[:, None] * head_dim + d[None, :]
    Q = tl.load(q + cells_i, mask=mask_i, other=0.0)
    K = tl.load(k + cells_j, mask=mask_j, other=0.0)  # all of K, and below all of V: as the article's kernel
    S = tl.dot(Q, tl.trans(K), input_precision="ieee") * scale  # fp32 goes through TF32 unless told otherwise
    S = tl.where(exists_j[None, :], S, float("-inf"))
    P = tl.exp(S - tl.max(S, axis=1)[:, None])
    P = P / tl.sum(P, axis=1)[:, None]
    V = tl.load(v + cells_j, mask=mask_j, other=0.0)
    tl.store(out + cells_i, tl.dot(P, V, input_precision="ieee"), mask=mask_i)


def attention(q, k, v):
    """q: (q_len, head_dim), k and v: (k_len, head_dim), contiguous. tl.dot takes blocks of powers of two from 16 on."""
    out = torch.empty_like(q)
    q_len, head_dim = q.shape
    block_k, block_d = (max(16, triton.next_power_of_2(size)) for size in (k.shape[0], head_dim))
    _attention[(triton.cdiv(q_len, 16),)](q, k, v, out, q_len, k.shape[0], head_dim, head_dim**-0.5, BLOCK_Q=16,
                                         BLOCK_K=block_k, BLOCK_D=block_d)
    return out
