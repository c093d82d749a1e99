"""The launchers of rungs 01 to 05 on PyTorch tensors, in place, through the C interface in ladder_c.h.

    rungs = ladder.Library("build/cuda/tests/pytorch/libladder_c.so")
    out = rungs.softmax(x)                  # x: (rows, columns), float32
    rungs.vector_add(x, y, out=x)           # into memory that is there already

Nothing is copied: kernels read and write the tensors' own memory, with their strides, on the stream that is current for
their device. CUDA tensors go with the CUDA build, CPU tensors with the CPU build. Anything else is refused with a
TypeError or a ValueError that names the argument, its value and what it must be.

There is no gradient: PyTorch does not learn that `out` was written.
"""
import ctypes

import torch


def _view_type(rank):
    class View(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank),
                    ("extent", ctypes.c_int64)]
    return View


_VIEWS = {rank: _view_type(rank) for rank in (1, 2, 4)}

_STREAM = ctypes.c_void_p
_SIGNATURES = {
    "vector_add": [_VIEWS[1]] * 3 + [_STREAM],
    "vector_add_vectorized": [_VIEWS[1]] * 3 + [_STREAM],
    "relu_dropout": [_VIEWS[1]] * 2 + [ctypes.c_float, ctypes.c_uint64, ctypes.c_uint64, _STREAM],
    "relu_dropout_four_per_call": [_VIEWS[1]] * 2 + [ctypes.c_float, ctypes.c_uint64, ctypes.c_uint64, _STREAM],
    "softmax_buggy": [_VIEWS[2]] * 2 + [_STREAM],
    "softmax": [_VIEWS[2]] * 2 + [_STREAM],
    "attention": [_VIEWS[4]] * 4 + [ctypes.c_int32, ctypes.POINTER(ctypes.c_float), _STREAM],
}


def _elements_to_end_of_storage(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.nbytes() // tensor.element_size() - tensor.storage_offset()


class Library:
    """One build of libladder_c.so. `device` is the type of tensors that it takes: "cpu" or "cuda"."""

    def __init__(self, path):
        self._c = ctypes.CDLL(str(path))
        self._c.ladder_device.restype = ctypes.c_char_p
        self._c.ladder_last_error.restype = ctypes.c_char_p
        for name, argument_types in _SIGNATURES.items():
            getattr(self._c, "ladder_" + name).argtypes = argument_types
        self.device = self._c.ladder_device().decode()

    def vector_add(self, x, y, out=None):
        """x + y; all are (n), contiguous. `out` may be x or y."""
        return self._add("vector_add", x, y, out)

    def vector_add_vectorized(self, x, y, out=None):
        """vector_add by 16-byte accesses."""
        return self._add("vector_add_vectorized", x, y, out)

    def relu_dropout(self, x, p, seed, first_counter=0, out=None):
        """max(x, 0) / (1 - p) where the uniform number of (seed, first_counter + i) is at least p, else 0.

        Both are (n), contiguous; `out` may be x; p is in [0, 1]; seed and first_counter in [0, 2^64).
        """
        return self._dropout("relu_dropout", x, p, seed, first_counter, out)

    def relu_dropout_four_per_call(self, x, p, seed, first_counter=0, out=None):
        """relu_dropout with one call of Philox for four elements: another mask."""
        return self._dropout("relu_dropout_four_per_call", x, p, seed, first_counter, out)

    def softmax_buggy(self, input, out=None):
        """Rung 03, WRONG past 1024 columns: those are never written. Shapes as for softmax."""
        return self._softmax("softmax_buggy", input, out)

    def softmax(self, input, out=None):
        """The softmax of each row of (rows, columns), up to 32768 columns; `out` may be `input`."""
        return self._softmax("softmax", input, out)

    def attention(self, q, k, v, causal=False, scale=None, out=None):
        """softmax(scale Q K^T) V for (batch, heads, sequence, head_dim); scale is 1 / sqrt(head_dim) unless given.

        Causal: query i sees the keys up to i + (k_len - q_len). A query that sees no key gives 0.
        """
        factor = None if scale is None else ctypes.c_float(scale)
        return self._call("attention", 4, {"q": q, "k": k, "v": v}, out, int(causal), factor)

    def _add(self, name, x, y, out):
        return self._call(name, 1, {"x": x, "y": y}, out)

    def _dropout(self, name, x, p, seed, first_counter, out):
        for argument, value in (("seed", seed), ("first_counter", first_counter)):
            if not 0 <= value < 2**64:  # ctypes would cut it to 64 bits
                raise ValueError(f"{name}: {argument} is {value}, must be at least 0 and less than 2^64")
        return self._call(name, 1, {"x": x}, out, p, seed, first_counter)

    def _softmax(self, name, input, out):
        return self._call(name, 2, {"input": input}, out)

    def _call(self, function, rank, inputs, out, *arguments):
        first_name, first = next(iter(inputs.items()))
        for name, tensor in inputs.items():
            self._require(function, rank, name, tensor, first_name, first)
        if out is None:
            out = torch.empty(first.shape, dtype=first.dtype, device=first.device)
        self._require(function, rank, "out", out, first_name, first)
        views = [_VIEWS[rank](tensor.data_ptr(), tuple(tensor.shape), tensor.stride(),
                              _elements_to_end_of_storage(tensor)) for tensor in (*inputs.values(), out)]
        c_function = getattr(self._c, "ladder_" + function)
        if self.device == "cuda":
            with torch.cuda.device(first.device):
                self._check(function, self._c.ladder_use_device(first.device.index))
                stream = torch.cuda.current_stream(first.device).cuda_stream
                self._check(function, c_function(*views, *arguments, stream))
        else:
            self._check(function, c_function(*views, *arguments, None))
        return out

    def _require(self, function, rank, name, tensor, first_name, first):
        def text(argument, value, limit):
            return f"{function}: {argument} is {value}, must be {limit}"

        if not isinstance(tensor, torch.Tensor):
            raise TypeError(text(name, f"a {type(tensor).__name__}", "a torch.Tensor"))
        if tensor.dtype != torch.float32:
            raise TypeError(text(f"{name}.dtype", tensor.dtype, "torch.float32"))
        if tensor.layout != torch.strided:
            raise TypeError(text(f"{name}.layout", tensor.layout, "torch.strided"))
        if tensor.device.type != self.device:
            raise ValueError(text(f"{name}.device", tensor.device, f"of type {self.device}, as this build"))
        if tensor.device != first.device:
            raise ValueError(text(f"{name}.device", tensor.device, f"{first.device}, as of {first_name}"))
        if tensor.requires_grad:
            raise ValueError(text(f"{name}.requires_grad", True, "False: the ladder computes no gradient (detach it)"))
        if tensor.is_neg():  # memory holds the values with the other sign
            raise ValueError(text(f"{name}.is_neg()", True, "False (resolve_neg it)"))
        if tensor.dim() != rank:
            raise ValueError(text(f"{name}.shape", tuple(tensor.shape), f"of {rank} {'axis' if rank == 1 else 'axes'}"))

    def _check(self, function, code):
        if code == 0:
            return
        text = self._c.ladder_last_error().decode()
        raise ValueError(text) if code == 1 else RuntimeError(f"{function}: {text}")
