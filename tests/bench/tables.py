#!/usr/bin/env python3
"""Writes the tables of times into README.md and the steps' READMEs, and the plot of rung 04, from the newest result in docs/results/.

A table stands between `<!-- bench: 04 -->` (a rung, or `all`) and `<!-- end of bench -->`; what lies between is replaced.
With --check nothing is written, and the exit status is 1 when a page differs: a test calls it so.
"""
import argparse
import json
import pathlib
import re
import sys

import plot
import summary

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(<!-- bench: (all|\d\d) -->\n).*?(<!-- end of bench -->)", re.DOTALL)
UNITS = {"GBps": "GB/s", "TFLOPps": "TFLOP/s"}


def rate(row, microseconds):
    digits = 0 if row["unit"] == "GBps" else 2
    return format(row["work"] / microseconds, f".{digits}f")


def shape(row):
    return row["problem"].partition(" ")[2].replace("268435456", "2^28")


def table(result, path, rung):
    context = next(iter(result["rounds"][0]["context"].values()))
    clocks = result["clocks_before"]
    peers = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    copies = [max(float(c["copy_GBps_memcpy"]), float(c["copy_GBps_kernel"]))
              for one in result["rounds"] for c in one["context"].values()]
    lines = [
        f"{result['device']}, driver {clocks.get('driver_version', 'unknown')}, CUDA {context['cuda_of_the_build']}, "
        f"{peers or 'no peers'}, {result['date']}, commit {result['commit']}; `./climb bench`, medians of "
        f"{len(result['rounds'])} rounds. Ceiling: a copy, {min(copies):.0f} to {max(copies):.0f} GB/s; for 05 fp32 "
        f"multiply-adds, {float(context['fp32_TFLOPps']):.1f} TFLOP/s. Raw: [{path.name}]"
        f"({'docs/results/' if rung == 'all' else '../../docs/results/'}{path.name}).", "",
        "| rung | kernel | shape | | of the ceiling | best peer | its time / ours | target |",
        "|---|---|---|---|---|---|---|---|"]
    for row in summary.rows(result):
        if rung not in ("all", row["rung"]):
            continue
        if "error" in row:
            lines.append(f"| {row['rung']} | {row['kernel']} | {shape(row)} | failed: {row['error']} | | | | |")
            continue
        peer_cell = ratio_cell = met_cell = ""
        if row["peers"]:
            name, peer = summary.best_peer(row)
            peer_cell, ratio_cell = f"{name}: {rate(row, peer['microseconds'])}", f"{peer['ratio']:.3f}"
        if "met" in row:
            met_cell = ("met" if row["met"] else "**not met**") + f": {row['target']}"
            if "factor" in row:
                met_cell += f", measured {row['factor']:.2f}"
        share = f"{row['share']:.3f}" if row["share"] is not None else ""
        lines.append(f"| {row['rung']} | `{row['kernel']}` | {shape(row)} | {rate(row, row['microseconds'])} "
                     f"{UNITS[row['unit']]} | {share} | {peer_cell} | {ratio_cell} | {met_cell} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a page is stale")
    arguments = parser.parse_args()
    results = sorted((ROOT / "docs/results").glob("*-bench.json"))
    if not results:
        print("tables.py: docs/results/ has no *-bench.json")
        return 0
    result = json.loads(results[-1].read_text())
    if not BLOCK.search((ROOT / "README.md").read_text()):
        print("tables.py: README.md has no <!-- bench: all --> ... <!-- end of bench -->")
        return 1
    stale = []
    for page in [ROOT / "README.md", *sorted(ROOT.glob("steps/*/README.md"))]:
        old = page.read_text()
        new = BLOCK.sub(lambda m: m[1] + table(result, results[-1], m[2]) + m[3], old)
        if new != old:
            stale.append(str(page.relative_to(ROOT)))
            if not arguments.check:
                page.write_text(new)
    plotted = ROOT / "docs/results/softmax.svg"
    drawing = plot.softmax_svg(result)
    if not plotted.exists() or plotted.read_text() != drawing:
        stale.append(str(plotted.relative_to(ROOT)))
        if not arguments.check:
            plotted.write_text(drawing)
    if stale:
        print(("stale, run tests/bench/tables.py: " if arguments.check else "rewritten: ") + ", ".join(stale))
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
