"""Makes the golden data: what PyTorch and Triton gave, for machines that have neither.

    python3 tests/golden/make.py torch FOLDER     inputs, and PyTorch's results on the CPU, in float64 and float32
    python3 tests/golden/make.py triton FOLDER    Triton's results for the inputs in tests/golden, on a GPU

Writes CASE.NAME.npy files and versions.json into FOLDER. The second takes over what versions.json says of PyTorch, so
that its FOLDER can be copied over tests/golden. tests/golden_test.cu reads them; the cases' parameters stand there too.
"""
import datetime
import json
import pathlib
import platform
import sys

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "pytorch"))
import philox
import torch_reference

P, DROPOUT_SEED, N = 0.3, 7, 1000
FIRST_COUNTERS = {"relu_dropout": 0, "relu_dropout_2e31": 2**31 - 500}
ATTENTION = {"attention_5_15": (1, 5, 15, 32, False), "attention_1_10": (1, 1, 10, 64, False),
             "attention_causal": (2, 4, 7, 8, True), "attention_causal_more_queries": (1, 5, 2, 8, True)}
INF, NAN = float("inf"), float("nan")
SPECIAL_ROWS = [[0, 0, 0], [-INF, -INF, -INF], [0, INF, 0], [1, NAN, 2], [-INF, 0, -INF], [88.72284, 0, 0],
                [-10000, -10000, -10000], [-10200, -10201, -10200], [1000, 1000, -1000], [3e38, 3e38, 0],
                [0, -100, -104], [-90, -90, -90]]


class Folder:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.files = []

    def write(self, name, array):
        np.save(self.path / f"{name}.npy", np.ascontiguousarray(array))
        self.files.append(f"{name}.npy")

    def write_versions(self, versions):
        (self.path / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


def made_with(device, files, **more):
    return {"torch": torch.__version__, **more, "numpy": np.__version__, "python": platform.python_version(),
            "device": device, "date": datetime.date.today().isoformat(), "files": sorted(files)}


def make_torch(folder):
    random = np.random.default_rng(20260907)

    def inputs(case, **shapes):
        arrays = {name: (random.normal(mean, 1, shape)).astype(np.float32) for name, (shape, mean) in shapes.items()}
        for name, array in arrays.items():
            folder.write(f"{case}.{name}", array)
        return [torch.from_numpy(array) for array in arrays.values()]

    def results(case, function, *tensors):
        for dtype in ("float64", "float32"):
            out = function(*(tensor.to(getattr(torch, dtype)) for tensor in tensors))
            folder.write(f"{case}.torch_{dtype}", out.numpy())

    x, y = inputs("vector_add", x=(N, 0), y=(N, 0))
    folder.write("vector_add.torch_float32", (x + y).numpy())

    for case, first in FIRST_COUNTERS.items():
        (x,) = inputs(case, x=(N, 0))
        u = torch.from_numpy(philox.uniforms(DROPOUT_SEED, first, N))
        if (u == torch.tensor(P)).any():
            raise ValueError(f"{case}: a uniform number is p, where Triton's kernel and ours differ: take another seed")
        folder.write(f"{case}.torch_float32", torch_reference.relu_dropout(x, u, P).numpy())

    def softmax(x):
        return torch.softmax(x, dim=-1)

    for case, shape in (("softmax_5", (4, 5)), ("softmax_1000", (1, 1000)), ("softmax_2000", (1, 2000))):
        (x,) = inputs(case, input=(shape, 0))
        results(case, softmax, x)
    # What rung 03 gives at 2000 columns, on an output of zeros.
    results("softmax_2000_bug", lambda x: torch.nn.functional.pad(softmax(x[:, :1024]), (0, 976)), x)
    special = np.array(SPECIAL_ROWS, dtype=np.float32)
    folder.write("softmax_special.input", special)
    results("softmax_special", softmax, torch.from_numpy(special))

    for case, (heads, q_len, k_len, head_dim, causal) in ATTENTION.items():
        keys = (1, heads, k_len, head_dim)
        q, k, v = inputs(case, q=((1, heads, q_len, head_dim), 0), k=(keys, 0), v=(keys, 1))
        results(case, lambda q, k, v: torch_reference.attention(q, k, v, causal), q, k, v)

    folder.write_versions({"torch": made_with(f"CPU ({platform.machine()})", folder.files)})


def make_triton(folder):
    import triton
    import triton_kernels

    def inputs(case, *names):
        return [torch.from_numpy(np.load(HERE / f"{case}.{name}.npy")).cuda() for name in names]

    def write(case, out):
        folder.write(f"{case}.triton", out.cpu().numpy())

    write("vector_add", triton_kernels.vector_add(*inputs("vector_add", "x", "y")))
    for case, first in FIRST_COUNTERS.items():
        write(case, triton_kernels.relu_dropout(*inputs(case, "x"), P, DROPOUT_SEED, first))
    for case in ("softmax_5", "softmax_1000", "softmax_2000"):
        (x,) = inputs(case, "input")
        write(case, triton_kernels.softmax(x, torch.full_like(x, NAN)))
    write("softmax_2000_bug", triton_kernels.softmax(x, torch.zeros_like(x), 1024))
    for case, (heads, _, _, _, causal) in ATTENTION.items():
        if heads == 1 and not causal:  # the article's kernel knows neither
            q, k, v = (tensor[0, 0] for tensor in inputs(case, "q", "k", "v"))
            write(case, triton_kernels.attention(q, k, v)[None, None])

    versions = json.loads((HERE / "versions.json").read_text())
    versions["triton"] = made_with(torch.cuda.get_device_name(), folder.files, triton=triton.__version__)
    folder.write_versions(versions)


if __name__ == "__main__":
    makers = {"torch": make_torch, "triton": make_triton}
    if len(sys.argv) != 3 or sys.argv[1] not in makers:
        sys.exit(f"usage: {sys.argv[0]} torch|triton FOLDER")
    makers[sys.argv[1]](Folder(sys.argv[2]))
