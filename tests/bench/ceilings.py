#!/usr/bin/env python3
"""Compares the H200 ceilings in common/harness/measure.hpp with the newest result in docs/results/: a test calls it.

Exit status 1 when one of them is more than 1% off the median of that result, or the file that the header names is missing.
"""
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "common/harness/measure.hpp"
TOLERANCE = 0.01
KEYS = {"memcpy_bytes": ("copy_GBps_memcpy", 1e9), "kernel_bytes": ("copy_GBps_kernel", 1e9),
        "operations": ("fp32_TFLOPps", 1e12)}


def main():
    text = HEADER.read_text()
    constants = re.search(r"H200_CEILINGS\{([^}]*)\}", text)
    source = re.search(r'H200_CEILINGS_SOURCE\s*=\s*"([^"]*)"', text)
    if not constants or not source:
        print(f"{HEADER.name} has no H200_CEILINGS{{...}}, or no H200_CEILINGS_SOURCE")
        return 1
    values = {name: float(value) for name, value in re.findall(r"\.(\w+)\s*=\s*([0-9.e+]+)", constants[1])}
    failed = False
    if not (ROOT / source[1]).is_file():
        print(f"{source[1]}, which H200_CEILINGS_SOURCE names, does not exist")
        failed = True
    results = sorted((ROOT / "docs/results").glob("*-h200-bench.json"))
    if not results:
        print("docs/results/ has no *-h200-bench.json to compare with")
        return 1
    contexts = [c for one in json.loads(results[-1].read_text())["rounds"] for c in one["context"].values()]
    for name, (key, unit) in KEYS.items():
        measured = statistics.median(float(context[key]) for context in contexts) * unit
        off = abs(values.get(name, float("nan")) / measured - 1)
        right = off <= TOLERANCE  # false for a NaN
        failed |= not right
        print(f"{name}: {values.get(name, float('nan')):.4g}, measured {measured:.4g}: "
              f"{'within 1%' if right else 'NOT within 1%'} of {results[-1].name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
