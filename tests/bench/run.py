#!/usr/bin/env python3
"""Runs the rungs' benchmarks and their peers in turn, several rounds, and writes the raw results as JSON.

`./climb bench` builds and calls this. By hand, after `cmake --build --preset cuda --target benches`:
    tests/bench/run.py --device cuda --commit "$(git rev-parse --short HEAD)"
On the CPU device only the rungs run: its times say nothing about a GPU's, and nothing is written.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import summary

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 3


class Peers:
    """peers.py, kept running: importing PyTorch and compiling for it takes longer than the measurements."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, ROOT / "tests/bench/peers.py"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, rung):
        self.process.stdin.write(rung + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"peers.py ended with status {self.process.wait()} when asked for {rung}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_ours(program):
    """(context, benchmarks) of one program; who ran it, and where, is left out."""
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.json"
        subprocess.run([program, f"--benchmark_out={out}", "--benchmark_out_format=json"], check=True,
                       stdout=subprocess.DEVNULL)
        raw = json.loads(out.read_text())
    context = {key: value for key, value in raw["context"].items() if key not in ("host_name", "executable", "load_avg")}
    keep = re.compile(r"name|label|error_.*|iterations|.*_us|.*_by_model|GBps|TFLOPps|share")
    return context, [{k: v for k, v in entry.items() if keep.fullmatch(k)} for entry in raw["benchmarks"]]


def nvidia_smi():
    fields = "name,driver_version,pstate,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,temperature.gpu,power.draw"
    answer = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "--id=0"],
                            capture_output=True, text=True)
    values = [value.strip() for value in answer.stdout.strip().split(",")]
    return dict(zip(fields.split(","), values)) if answer.returncode == 0 else {}


def versions():
    try:
        import torch
        import triton
        return {"PyTorch": torch.__version__, "Triton": triton.__version__}
    except ImportError:
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--commit", default="unknown", help="the commit that was built")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of rungs and peers ({ROUNDS})")
    parser.add_argument("--rungs", nargs="+", default=summary.RUNGS, choices=summary.RUNGS)
    parser.add_argument("--no-peers", action="store_true", help="only the rungs")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/results", help="where the JSON goes")
    arguments = parser.parse_args()

    gpu = arguments.device == "cuda"
    peers, versions_of_peers = None, versions() if gpu and not arguments.no_peers else {}
    if versions_of_peers:
        peers = Peers()
    elif gpu:
        print("PyTorch and Triton are not here, or not wanted: only the rungs are measured", file=sys.stderr)

    result = {"date": datetime.date.today().isoformat(), "commit": arguments.commit, "peers": versions_of_peers,
              "clocks_before": nvidia_smi() if gpu else {}, "rounds": []}
    for number in range(1 if not gpu else arguments.rounds):
        one = {"context": {}, "ours": {}, "peers": {}}
        result["rounds"].append(one)
        for rung in arguments.rungs:
            print(f"round {number + 1}: {rung}", file=sys.stderr, flush=True)
            one["context"][rung], one["ours"][rung] = run_ours(ROOT / f"build/{arguments.device}/bench_{rung}")
            if peers and rung != "03":  # 04's peers at 1024 columns are its peers too
                one["peers"][rung] = peers.ask(rung)
        if "03" in one["ours"] and "04" in one["peers"]:
            one["peers"]["03"] = one["peers"]["04"]
    result["clocks_after"] = nvidia_smi() if gpu else {}
    if peers:
        peers.close()

    context = result["rounds"][0]["context"]
    device = next(iter(context.values()))["device"]
    result["device"] = device
    print(f"On {device}, commit {arguments.commit}")
    for rung, of_rung in context.items() if gpu else ():
        print(f"  ceilings before {rung}: copy {float(of_rung['copy_GBps_memcpy']):.0f} GB/s (cudaMemcpy), "
              f"{float(of_rung['copy_GBps_kernel']):.0f} GB/s (kernel), "
              f"fp32 {float(of_rung['fp32_TFLOPps']):.1f} TFLOP/s")
    print(summary.text(result))
    if gpu:
        slug = re.sub(r"[^a-z0-9]+", "-", device.partition("(")[0].lower().replace("nvidia", "")).strip("-")
        arguments.out.mkdir(parents=True, exist_ok=True)
        path = arguments.out / f"{result['date']}-{slug}-bench.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"Raw results: {path}")
    else:
        print("These are times of a CPU that plays a GPU. They say nothing about a GPU's, and nothing was written.")
    failed = [row for row in summary.rows(result) if "error" in row]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
