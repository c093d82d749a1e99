"""What the rungs compute, in PyTorch: test_parity.py holds the rungs against it, tests/golden/make.py stores it.

Each function computes in the type of its arguments, so that float64 arguments give a reference and float32 ones a peer.
"""
import torch


def relu_dropout(x, uniforms, p):
    """0 where uniforms < p, else relu(x) / (1 - p), in float32.

    1 - p is a tensor: by a plain number, PyTorch on CUDA multiplies with its inverse.
    """
    p = torch.tensor(p, dtype=torch.float32, device=x.device)
    survivors = torch.relu(x) / (1 - p).expand(x.shape)
    return torch.where(uniforms >= p, survivors, torch.zeros_like(x))


def visible(q_len, k_len, causal, device=None):
    """True where a query (row) sees a key (column). Causal: the last query sees the last key."""
    mask = torch.ones(q_len, k_len, dtype=torch.bool, device=device)
    return mask.tril(k_len - q_len) if causal else mask


def attention(q, k, v, causal=False, scale=None):
    """softmax(scale Q K^T) V by matmul and softmax; 0 for a query that sees no key."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    mask = visible(q.shape[-2], k.shape[-2], causal, q.device)
    scores = (scale * (q @ k.transpose(-1, -2))).masked_fill(~mask, float("-inf"))
    out = torch.softmax(scores, dim=-1) @ v
    return out.masked_fill(~mask.any(dim=-1)[:, None], 0.0)
