#!/usr/bin/env python3
"""Looks up each measured figure of README.md, the steps' pages and docs/ in the committed results: a hand-typed one fails.

A figure is a number with GB/s, TB/s, TFLOP/s, us or ms behind it, alone or in a list ("3080 to 3903 GB/s"), and a decimal
number in front of "times" or "of the ceiling" (or of a copy, rate, peak); with one "times" in a sentence, also each other number of two decimals in it; and a
share as the tables print it, 0 and three decimals. Figures in code, in tables that a script writes (`<!-- X: ... -->` to
`<!-- end of X -->`) and in comments do not count.

It must be a number of a result in docs/results/: the same text in a .txt, or the rounding to as many digits of a number
in a .json, of what summary.py computes from the newest *-bench.json, or of a `name=number` in a .txt. Its kind must be
the same, so far as the result tells it; in the page of a rung, so must the rung. Where the sentence links to results,
only those count. Of several results that differ only in their date the newest counts, and an older one only for a page
that links to it. What this cannot tell: a wrong figure that happens to be another number of the same kind and rung.

A count or a bound that a page derives from numbers ("3907 * 256 - 1,000,003 = 189") is worked out again.

figures_exempt.txt lists figures that are no measurement, each with a reason; one that exempts nothing is a problem.
Exit status 1 when there is a problem.
"""
import argparse
import collections
import dataclasses
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench"))
import summary  # noqa: E402

PAGES = ("README.md", "steps/*/*.md", "docs/*.md", "docs/pages/*.md", "common/cpu_device/README.md")
EXEMPT = ROOT / "docs/make/figures_exempt.txt"

NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
UNIT = r"GB/s|TB/s|TFLOP/s|TF/s|us|µs|μs|ms"
# Several numbers in front of one unit; the unit itself, or what makes a decimal number a ratio.
LIST = rf"(?<![\w.,^/-])((?:{NUMBER})(?:(?:, and |, | to | and | or | – |–)(?:{NUMBER}))*)"
WITH_UNIT = re.compile(rf"{LIST}\s*({UNIT})(?![\w/])")
AS_RATIO = re.compile(rf"{LIST}(?:\s+(times)\b|\s+(of)\s+(?:\w+\s+){{1,3}}?(?:ceiling|copy|bandwidth|rate|peak)\b|\s*[x×](?![\w.]))")
IN_PLACE_OF = re.compile(rf"(?:{UNIT}) in place of ({NUMBER})(?![\w.,]*\d)")
LINK = re.compile(r"results/([\w.-]+\.(?:txt|json))")
SENTENCE = re.compile(r"(?:[^.:;]|[.:;](?!\s))+")
TWO_DECIMALS = re.compile(r"(?<![\w.,^/-])(\d+\.\d\d)(?![\w]|\.\d)")
# Numbers with operators between them, and what they are said to come to; not the tail of something longer.
EQUATION = re.compile(rf"(?<![\w.^*/+-])(?<![*/+-] )((?:{NUMBER})(?: [*/+-] (?:{NUMBER}))+) = ({NUMBER})(?![\w^]|\.\d)")
SHARE = re.compile(r"(?<![\w.,^/-])(0\.\d{3})(?![\w]|\.\d)")
KINDS = {"GB/s": ("GB/s", 1), "TB/s": ("GB/s", 1000), "TFLOP/s": ("TFLOP/s", 1), "TF/s": ("TFLOP/s", 1),
         "us": ("us", 1), "µs": ("us", 1), "μs": ("us", 1), "ms": ("us", 1000)}
# What a file must say somewhere for a number without a unit in it to be of a kind.
HINTS = {"GB/s": re.compile(r"GB/s|GBps"), "TFLOP/s": re.compile(r"TFLOP/s|TF/s"), "us": re.compile(r"\b(us|ms)\b"),
         "ratio": re.compile(r"\b(ratio|times)|times_"), "share": re.compile(r"\b(share|of the ceiling|of a copy)\b")}
JSON_KINDS = ((re.compile("GBps"), "GB/s"), (re.compile("TFLOPps"), "TFLOP/s"), (re.compile("_us$|^microseconds$"), "us"),
              (re.compile("^(ratio|factor|predicted_factor)$"), "ratio"), (re.compile("^share$"), "share"))


@dataclasses.dataclass(frozen=True)
class Figure:
    line: int
    text: str  # as it stands in the page, with its unit
    number: str
    unit: str
    sources: frozenset = frozenset()  # the results that its sentence links to

    @property
    def kind(self):
        return KINDS[self.unit][0] if self.unit in KINDS else {"times": "ratio", "of": "share"}[self.unit]

    @property
    def value(self):
        return float(self.number.replace(",", "")) * self.scale

    @property
    def scale(self):
        return KINDS[self.unit][1] if self.unit in KINDS else 1

    @property
    def last_digit(self):
        return self.scale * 10.0 ** -len(self.number.partition(".")[2])


@dataclasses.dataclass(frozen=True)
class Known:
    """A number of a result."""
    value: float
    kind: str | None  # None: any of `kinds`
    rung: str | None  # None: of no rung
    exact: bool  # a printed number, which a page may not round further
    kinds: tuple = ()

    def is_of(self, kind):
        return kind in self.kinds if self.kind is None else kind == self.kind


def prose(text):
    """The page with all that is no prose of ours made blank, line by line."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r"<!-- ([\w ]+?)(?::[^\n]*?)? -->\n.*?<!-- end of \1 -->", blank, text, flags=re.DOTALL)
    text = re.sub(r"^( *)(```+|~~~+)[^\n]*\n.*?^ *\2 *$", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"[\\@](code|verbatim)\b.*?[\\@]end\1\b", blank, text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    lines, code, after_empty = [], False, True
    for line in text.split("\n"):
        if line.strip():  # indented code begins behind an empty line, and ends at the first line that is not indented
            code = line.startswith("    ") and (code or after_empty)
        after_empty = not line.strip()
        lines.append(" " * len(line) if code else line)
    text = "\n".join(lines)
    text = re.sub(r"`[^`\n]+`", blank, text)
    return re.sub(r"\]\([^)\s]*\)", blank, text)


def figures(text):
    """The measured figures of a page."""
    links = [(match.start(), match[1]) for match in LINK.finditer(text)]
    text = prose(text)
    joined = text.replace("\n", " ")  # a figure may be broken over two lines; offsets stay
    found = set()

    sentences = [(match.start(), match.end()) for match in SENTENCE.finditer(joined)]

    def add(at, number, unit):
        start, end = next((span for span in sentences if span[0] <= at < span[1]), (at, at))
        sources = frozenset(name for place, name in links if start <= place < end)
        found.add(Figure(text.count("\n", 0, at) + 1, f"{number} {unit}", number, unit, sources))

    for match in WITH_UNIT.finditer(joined):
        for number in re.finditer(NUMBER, match[1]):
            add(match.start() + number.start(), number[0], match[2])
        other = IN_PLACE_OF.match(joined, match.start(2))
        if other:
            add(other.start(1), other[1], match[2])
    measured = {(figure.line, figure.number) for figure in found}
    ratios = [(match.start() + number.start(), number[0], match[3] or "times")
              for match in AS_RATIO.finditer(joined)
              for number in re.finditer(NUMBER, match[1]) if "." in number[0]]  # "3 times", "17 of 20" are counts
    for start, end in sentences:
        if re.search(r"\d\.\d+ times\b", joined[start:end]):
            ratios += [(start + number.start(), number[1], "times") for number in TWO_DECIMALS.finditer(joined[start:end])]
    ratios += [(number.start(), number[1], "of") for number in SHARE.finditer(joined)]
    for at, number, unit in ratios:
        if (text.count("\n", 0, at) + 1, number) not in measured:
            measured.add((text.count("\n", 0, at) + 1, number))
            add(at, number, unit)
    return sorted(found, key=lambda figure: (figure.line, figure.text))


def wrong_equations(text):
    """(line, equation, what its left side comes to), where that is not what stands on the right."""
    joined = prose(text).replace("\n", " ")
    for match in EQUATION.finditer(joined):
        floats = re.sub(NUMBER, lambda number: repr(float(number[0].replace(",", ""))), match[1])
        value = eval(floats)  # numbers and the four operators, nothing else
        half_digit = 0.5000001 * 10.0 ** -len(match[2].partition(".")[2])
        if abs(value - float(match[2].replace(",", ""))) > (half_digit if "." in match[2] else 1e-9):
            yield text.count("\n", 0, match.start()) + 1, match[0], value


# --- Results ---

def from_json(node, rung=None, key=""):
    if isinstance(node, dict):
        rung = node.get("rung", rung)
        for name, child in node.items():
            yield from from_json(child, name if name in summary.RUNGS else rung, name)
    elif isinstance(node, list):
        for child in node:
            yield from from_json(child, rung, key)
    else:
        kind = next((kind for pattern, kind in JSON_KINDS if pattern.search(key)), None)
        try:
            number = float(node)
        except (TypeError, ValueError):
            return
        if kind and not isinstance(node, bool):
            # A ceiling is the same machine's whatever rung it was measured beside.
            ceiling = key.startswith("copy_") or key.startswith("fp32_")
            yield Known(number, kind, None if ceiling else rung, exact=False)


def from_bench(result):
    """What the tables show: ceilings, medians over the rounds, rates of the peers, ratios. Not a single round's numbers."""
    for one in result["rounds"]:
        yield from from_json(one["context"])
    for row in summary.rows(result):
        yield from from_json(row, row["rung"])
        kind = {"GBps": "GB/s", "TFLOPps": "TFLOP/s"}.get(row.get("unit"))
        if kind:
            yield Known(row["rate"], kind, row["rung"], exact=False)
            for peer in row["peers"].values():
                yield Known(row["work"] / peer["microseconds"], kind, row["rung"], exact=False)
                yield Known(peer["ratio"], "share", row["rung"], exact=False)  # three decimals in the tables, as shares


def from_text(text):
    kinds = tuple(kind for kind, hint in HINTS.items() if hint.search(text))
    rung = None
    for line in text.split("\n"):
        section = re.match(r"(?:== )?(0\d)[_,]", line)
        if section:
            rung = section[1]
        for match in re.finditer(rf"(\w+=)?(?<![\w.])({NUMBER})(?:\s*({UNIT})(?![\w/]))?", line):
            number = float(match[2].replace(",", ""))
            kind, scale = KINDS.get(match[3], (None, 1))
            yield Known(number * scale, kind, rung, exact=not match[1], kinds=kinds)


class Results:
    def __init__(self, folder):
        self.of_file = {}
        newest = {}
        for path in sorted(folder.iterdir()):
            if "-mutation-sweep-" in path.name:  # its seconds explain no time of a kernel
                continue
            if path.suffix == ".txt":
                known = list(from_text(path.read_text()))
            elif path.suffix == ".json":
                result = json.loads(path.read_text())
                known = list(from_bench(result) if path.name.endswith("-bench.json") else from_json(result))
            else:
                continue
            self.of_file[path.name] = known
            newest[re.sub(r"^\d{4}-\d\d-\d\d-", "", path.name)] = path.name
        self.newest = set(newest.values())

    def explains(self, figure, rung, linked):
        """Is the figure in a result that counts for a page of this rung with links to these results?"""
        for name, known in self.of_file.items():
            if name not in (figure.sources or self.newest | linked):
                continue
            for number in known:
                if not number.is_of(figure.kind) or (rung and number.rung and number.rung != rung):
                    continue
                if number.exact:
                    near = abs(number.value - figure.value) <= 1e-9 * abs(figure.value)
                else:
                    near = abs(number.value - figure.value) <= 0.5000001 * figure.last_digit
                if near:
                    return True
        return False


def exemptions(text):
    """{(file, figure): line} of the list, and a problem for each line that is none."""
    listed, problems = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            problems.append(f"{EXEMPT.name}:{number}: must be FILE | FIGURE | REASON")
        else:
            listed[parts[0], parts[1]] = number
    return listed, problems


def rung_of(path):
    match = re.search(r"(?:^|/)steps/(\d\d)_|(?:^|/)rung_(\d\d)", path)
    return match and (match[1] or match[2])


def check(pages, results, exempt_text):
    """`pages` is {path in the repository: text}. One text for each problem, and how many figures were looked up."""
    listed, problems = exemptions(exempt_text)
    used = collections.Counter()
    count = 0
    for path, text in pages.items():
        linked = set(LINK.findall(text))
        problems += [f"{path}:{line}: {equation}: it is {value:.10g}" for line, equation, value in wrong_equations(text)]
        for figure in figures(text):
            count += 1
            if results.explains(figure, rung_of(path), linked):
                continue
            if (path, figure.text) in listed:
                used[path, figure.text] += 1
                continue
            problems.append(f"{path}:{figure.line}: {figure.text} ({figure.kind}) is in no committed result that counts here")
    problems += [f"{EXEMPT.name}:{line}: {path} has no figure '{figure}' that needs this"
                 for (path, figure), line in listed.items() if not used[path, figure]]
    return problems, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", required=True, help="exit with 1 when a figure is in no result")
    parser.add_argument("--list", action="store_true", help="print each figure that is looked up")
    arguments = parser.parse_args()
    pages = {str(path.relative_to(ROOT)): path.read_text()
             for path in sorted(path for pattern in PAGES for path in ROOT.glob(pattern))}
    if arguments.list:
        for path, text in pages.items():
            for figure in figures(text):
                print(f"{path}:{figure.line}: {figure.text}")
    problems, count = check(pages, Results(ROOT / "docs/results"), EXEMPT.read_text() if EXEMPT.exists() else "")
    print("\n".join([*problems, f"{count} figures looked up in {len(pages)} pages, {len(problems)} problems"]))
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())
