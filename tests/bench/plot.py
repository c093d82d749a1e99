"""The softmax of rung 04 over the width of a row, as an SVG: ours, the peers, and the copy ceiling."""
import math
import statistics

import summary

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 60, 190, 40, 45
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")  # Okabe and Ito's: told apart by all eyes


def series(result):
    """{name: {width: GB/s}}, by the model's bytes: one read and one write of each element."""
    lines = {}
    for row in summary.rows(result):
        if row["rung"] != "04" or "error" in row or row["kernel"] == "softmax_unfused":
            continue
        width = int(row["problem"].split("=")[1])
        lines.setdefault(row["kernel"], {})[width] = row["rate"]
        for name, peer in row["peers"].items():
            lines.setdefault(name, {})[width] = row["work"] / peer["microseconds"]
    return lines


def softmax_svg(result):
    lines = series(result)
    ceiling = statistics.median(max(float(c["copy_GBps_memcpy"]), float(c["copy_GBps_kernel"]))
                                for one in result["rounds"] for c in one["context"].values())
    widths = sorted({width for line in lines.values() for width in line})
    top = 1000 * math.ceil(max([ceiling] + [v for line in lines.values() for v in line.values()]) / 1000)

    def x(width):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(width / widths[0]) / math.log(widths[-1] / widths[0])

    def y(value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
           'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="20">Softmax, fp32, 2^28 elements: GB/s over columns. {result["device"]}, '
           f'{result["date"]}</text>']
    for value in range(0, top + 1, 1000):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value}</text>')
    for width in widths:
        if width & (width - 1) == 0:
            out.append(f'<text x="{x(width):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{width}</text>')
    out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ceiling):.1f}" y2="{y(ceiling):.1f}" stroke="#555" '
               'stroke-dasharray="6 4"/>')
    names = {f"a copy: {ceiling:.0f}": "#555"}
    for colour, (name, line) in zip(COLOURS, lines.items()):
        names[name] = colour
        points = " ".join(f"{x(width):.1f},{y(value):.1f}" for width, value in sorted(line.items()))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(width):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>'
                for width, value in sorted(line.items())]
    for i, (name, colour) in enumerate(names.items()):
        out.append(f'<text x="{WIDTH - RIGHT + 12}" y="{TOP + 20 * i + 10}" fill="{colour}">{name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"
