"""Charts as SVG, readable on a light and on a dark page: the browser's preference decides."""
import math
from xml.sax.saxutils import escape

# Okabe and Ito's colours, told apart by all eyes; the last for what is no measurement of a kernel.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
STYLE = """<style>
text { font: 12px sans-serif; fill: #222 } .title { font-weight: bold } .small { font-size: 11px }
.paper { fill: #fff } .grid { stroke: #ddd } .limit { stroke: #555; stroke-dasharray: 6 4 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .paper { fill: #1c1e21 } .grid { stroke: #444 } .limit { stroke: #aaa }
}
</style>"""


def head(width, height, title):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{escape(title, {chr(34): "&quot;"})}">', STYLE,
            f'<rect class="paper" width="{width}" height="{height}"/>',
            f'<text class="title" x="12" y="20">{escape(title)}</text>']


def round_steps(top):
    """A step of the axis, so that there are four to ten of them."""
    step = 10 ** math.floor(math.log10(top))
    return step / 2 if top / step < 2 else step / 5 if top / step < 1 else step


def lines(title, series, x_values, x_labels, x_title, y_title, limits=(), log_x=False, marks=(), y_format="{:g}"):
    """`series`: {name: {x: y}}. `limits`: (name, y) drawn across. `marks`: (name, x) drawn upright."""
    width, height, left, right, top, bottom = 760, 400, 66, 190, 52, 52
    least, most = min(x_values), max(x_values)
    highest = max([y for line in series.values() for y in line.values()] + [y for _, y in limits])
    step = round_steps(highest)
    ceiling = step * math.ceil(highest / step - 1e-9)

    def x(value):
        share = math.log(value / least) / math.log(most / least) if log_x else (value - least) / (most - least)
        return left + (width - left - right) * share

    def y(value):
        return height - bottom - (height - top - bottom) * value / ceiling

    out = head(width, height, title)
    out.append(f'<text class="small" x="12" y="{top - 14}">{escape(y_title)}</text>')
    for i in range(round(ceiling / step) + 1):
        at = y(i * step)
        out.append(f'<line class="grid" x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}"/>'
                   f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{y_format.format(i * step)}</text>')
    for value in x_labels:
        out.append(f'<text x="{x(value):.1f}" y="{height - bottom + 18}" text-anchor="middle">{value:g}</text>')
    out.append(f'<text class="small" x="{(left + width - right) / 2}" y="{height - 12}" text-anchor="middle">'
               f'{escape(x_title)}</text>')
    legend = []
    for name, value in limits:
        out.append(f'<line class="limit" x1="{left}" x2="{width - right}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        out.append(f'<text class="small" x="{width - right + 6}" y="{y(value) + 4:.1f}">{escape(name)}</text>')
    for name, value in marks:
        out.append(f'<line class="limit" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{top}" y2="{height - bottom}"/>'
                   f'<text class="small" x="{x(value) + 6:.1f}" y="{top + 12}">{escape(name)}</text>')
    for colour, (name, line) in zip(COLOURS, series.items()):
        legend.append((name, colour))
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in sorted(line.items()))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(at):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>'
                for at, value in sorted(line.items())]
    first = max([top + 10] + [y(value) + 28 for _, value in limits])
    for i, (name, colour) in enumerate(legend):
        out.append(f'<rect x="{width - right + 12}" y="{first + 20 * i - 9}" width="10" height="10" fill="{colour}"/>'
                   f'<text x="{width - right + 28}" y="{first + 20 * i}">{escape(name)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def bars(title, rows, unit, limit=None, digits=0):
    """`rows`: (name, value, colour index), drawn from the top down. `limit`: (name, value), drawn upright."""
    width, left, right, top, bar = 760, 250, 110, 52, 24
    height = top + bar * len(rows) + 34
    most = max([value for _, value, _ in rows] + ([limit[1]] if limit else []))
    out = head(width, height, title)
    for i, (name, value, colour) in enumerate(rows):
        at, long = top + bar * i, (width - left - right) * value / most
        out.append(f'<text x="{left - 8}" y="{at + 15}" text-anchor="end">{escape(name)}</text>'
                   f'<rect x="{left}" y="{at + 3}" width="{long:.1f}" height="{bar - 8}" fill="{COLOURS[colour]}"/>'
                   f'<text x="{left + long + 6:.1f}" y="{at + 15}">{value:.{digits}f}</text>')
    if limit:
        at = left + (width - left - right) * limit[1] / most
        out.append(f'<line class="limit" x1="{at:.1f}" x2="{at:.1f}" y1="{top - 4}" y2="{top + bar * len(rows)}"/>'
                   f'<text class="small" x="{at:.1f}" y="{top - 10}" text-anchor="end">{escape(limit[0])}</text>')
    out.append(f'<text class="small" x="{left}" y="{height - 12}">{escape(unit)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"
