"""The plots of the benchmarks: rung 04 over the width of a row, and the other rungs as bars beside their peers."""
import statistics

import chart
import summary


def ceiling(result):
    """The copy's GB/s, or None where no GPU measured one."""
    return statistics.median(max(float(c["copy_GBps_memcpy"]), float(c["copy_GBps_kernel"]))
                             for one in result["rounds"] for c in one["context"].values())


def softmax_svg(result, bf16=False):
    """GB/s by the model's bytes: one read and one write of each element."""
    series = {}
    for row in summary.rows(result):
        if row["rung"] != "04" or "error" in row or row["kernel"] == "softmax_unfused":
            continue
        if (" bf16 " in row["problem"]) != bf16:
            continue
        width = int(row["problem"].split("=")[1])
        series.setdefault(row["kernel"], {})[width] = row["rate"]
        for name, peer in row["peers"].items():
            series.setdefault(name, {})[width] = row["work"] / peer["microseconds"]
    widths = sorted({width for line in series.values() for width in line})
    return chart.lines(
        f"Softmax, {'bf16' if bf16 else 'fp32'}, 2^28 elements. {result['device']}, {result['date']}", series, widths,
        [width for width in widths if width & (width - 1) == 0], "columns of a row", "GB/s",
        limits=[(f"a copy: {ceiling(result):.0f}", ceiling(result))], log_x=True)


def bars_svg(result, rung):
    """The kernels of a rung, fastest peers below them, at the shape that most of them share."""
    rows, peers = [], {}
    of_rung = [row for row in summary.rows(result) if row["rung"] == rung and "error" not in row]
    for row in of_rung:
        rows.append((row["kernel"], row["rate"], 0))
        for name, peer in row["peers"].items():
            peers.setdefault(name, row["work"] / peer["microseconds"])
    rows += [(name, value, 1) for name, value in peers.items()]
    arithmetic = of_rung[0]["unit"] == "TFLOPps"
    limit = None if arithmetic else (f"a copy: {ceiling(result):.0f}", ceiling(result))
    return chart.bars(f"Rung {rung}. {result['device']}, {result['date']}", rows,
                      "TFLOP/s; the peers at the first kernel's shape" if arithmetic else "GB/s, by the bytes of the model",
                      limit, 2 if arithmetic else 0)
