#!/usr/bin/env python3
"""Makes the book's pages for Doxygen from docs/pages/ and from documents that read well by themselves.

    docs/make/pages.py --build build/cpu --out build/cpu/docs/pages

A directive is an HTML comment on a line of its own; what it shows is made anew each time:

    <!-- code: FILE "FROM" "TO" -->         the lines of FILE from the first that contains FROM to the next with TO;
                                           ^TEXT stands for a line that begins with TEXT
    <!-- diff: FILE "FROM" "TO" FILE "FROM" "TO" -->    what changed between two such pieces
    <!-- run: ./climb 3 --cols 2000 -->     what the rung's program prints on the CPU device; then, where only a part
                                            is wanted, a bar and "FROM" "TO", or only "FROM" for the rest from there
    <!-- picture: ./climb 3 --cols 2000 | CAPTION -->   what its kernel touched
    <!-- bench: 04 -->                      the newest measurements of a rung; of one kernel: <!-- bench: 04 softmax -->
    <!-- plot: 04 | CAPTION -->             the same as a picture; 04-bf16 too
    <!-- width plot | CAPTION -->           rung 03: the difference from the reference over the width of a row
    <!-- mutants: 04 -->                    the rung's broken kernels, with hint and solution folded away
    <!-- ladder -->                        the rungs, each with its idea and its traffic, as a picture

A piece that is not found, a program that fails, a directive that does not exist: an error, and exit status 2.
"""
import argparse
import difflib
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench"))
sys.path.insert(0, str(ROOT / "tests/mutants"))
sys.dont_write_bytecode = True
import chart  # noqa: E402
import museum  # noqa: E402
import plot  # noqa: E402
import tables  # noqa: E402

DIRECTIVE = re.compile(r"^<!-- (code|diff|run|picture|bench|plot|width plot|mutants|ladder)(?::| \|)? ?(.*?) ?-->$")
PROGRAMS = {"1": "01_vector_add", "2": "02_relu_dropout", "3": "03_softmax_buggy", "4": "04_softmax_fixed",
            "5": "05_attention"}
# From the top down: name, idea, traffic, whether it is built.
RUNGS = [("07 tiled attention", "FlashAttention: a tile of K and V at a time", "", False),
         ("06 online softmax", "a running maximum and a running sum", "", False),
         ("05 attention", "all of K and V on chip; S and P never leave it", "Q, K, V once or more, O once", True),
         ("04 softmax, fixed", "the block is made for the row: one line", "8 MN bytes", True),
         ("03 softmax, buggy", "a row in one trip; and a bug that no small test sees", "8 MN bytes", True),
         ("02 ReLU and dropout", "two operations in one trip; a random number for an index", "8 n bytes, not 16 n", True),
         ("01 vector add", "block, offsets, mask", "12 n bytes", True)]
# Documents that are pages by themselves, with the name of the page.
DOCUMENTS = {"docs/mutants.md": "mutants", "docs/bug_cases.md": "bug_cases", "docs/gpu.md": "gpu", "docs/gdb.md": "gdb",
             "steps/01_vector_add/instructions.md": "instructions", "tests/README.md": "tests_readme",
             "common/cpu_device/README.md": "cpu_device_readme", "tests/bench/README.md": "bench_readme",
             "tests/mutants/README.md": "mutants_readme", "tests/pytorch/README.md": "pytorch_readme",
             "common/README.md": "common_readme"}
# Links to a rung's README lead to its page of the book.
PAGES = DOCUMENTS | {f"steps/{name}/README.md": f"rung_0{number}" for number, name in PROGRAMS.items()} | {
    "README.md": "index"}


class PageError(Exception):
    """Said in one line; exit status 2."""


def between(lines, start, end, who):
    """The numbers, from 0, of the first line with `start` and the next one with `end`."""
    def has(line, text):
        return line.startswith(text[1:]) if text.startswith("^") else text in line

    first = next((i for i, line in enumerate(lines) if has(line, start)), None)
    if first is None:
        raise PageError(f"{who} no line with {start!r}")
    last = next((i for i in range(first, len(lines)) if has(lines[i], end)), None)
    if last is None:
        raise PageError(f"{who} no line with {end!r} after {start!r}")
    return first, last


def piece(file, start, end):
    """(number of the first line, lines) from the first line that contains `start` to the next one with `end`."""
    path = ROOT / file
    if not path.exists():
        raise PageError(f"{file} does not exist")
    lines = path.read_text().splitlines()
    first, last = between(lines, start, end, f"{file} has")
    cut = lines[first:last + 1]
    indentation = min(len(line) - len(line.lstrip()) for line in cut if line.strip() and not line.startswith("#"))
    return first + 1, [line[indentation:] if line[:indentation].isspace() else line for line in cut]


def code(arguments):
    file, start, end = shlex.split(arguments)
    number, lines = piece(file, start, end)
    return ["```{.cpp}", *lines, "```", "", f"<div class=\"source\">{file}, line {number}</div>", ""]


def diff(arguments):
    file, start, end, other, other_start, other_end = shlex.split(arguments)
    changed = difflib.unified_diff(piece(file, start, end)[1], piece(other, other_start, other_end)[1], file, other,
                                   lineterm="", n=2)
    return [*coloured(changed), ""]


def coloured(changed):
    """The lines of a diff, as HTML."""
    out = []
    for line in changed:
        escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        kind = {"+": "added", "-": "removed", "@": "where"}.get(line[:1], "same")
        out.append(f"<span class=\"{kind}\">{escaped}</span>")
    return html(["<pre class=\"diff\">" + "\n".join(out) + "</pre>"])


def html(lines):
    """Passed on by Doxygen as it is."""
    return ["\\htmlonly", *lines, "\\endhtmlonly"]


class Maker:
    def __init__(self, build, out):
        self.build, self.out, self.printed = build, out, {}
        results = sorted((ROOT / "docs/results").glob("*-bench.json"))
        if not results:
            raise PageError("docs/results/ has no *-bench.json")
        self.newest = results[-1]
        self.result = json.loads(self.newest.read_text())

    def program(self, command):
        words = shlex.split(command)
        if len(words) < 2 or words[0] != "./climb" or words[1] not in PROGRAMS:
            raise PageError(f"{command!r} is not a ./climb N")
        return [str(self.build / PROGRAMS[words[1]]), *words[2:]]

    def output(self, command):
        """The lines that the command prints; a refusal's one line too."""
        if command not in self.printed:
            done = subprocess.run(self.program(command), capture_output=True, text=True, cwd=ROOT)
            if done.returncode not in (0, 2):
                raise PageError(f"{command} ended with status {done.returncode}: {done.stderr.strip()}")
            text = done.stdout if done.returncode == 0 else done.stderr
            # How many workers a machine has is not the reader's business.
            self.printed[command] = re.sub(r", \d+ workers?,", ",", text).splitlines()
        return self.printed[command]

    def run(self, arguments):
        command, _, wanted = (part.strip() for part in arguments.partition("|"))
        lines = self.output(command)
        if wanted:
            start, *end = shlex.split(wanted)
            first, last = between(lines, start, end[0] if end else start, f"{command} printed")
            lines = lines[first:last + 1] if end else lines[first:]
        while lines and not lines[-1].strip():
            lines = lines[:-1]
        return ["```{.unparsed}", f"$ {command}", *lines, "```", ""]

    def figure(self, name, drawing, caption):
        """An <img> that no formatter touches."""
        if drawing is not None:
            (self.out / name).write_text(drawing)
        title = caption.replace('"', "&quot;")
        return [*html([f"<figure><img src=\"{name}\" alt=\"{title}\"/><figcaption>{caption}</figcaption></figure>"]), ""]

    def picture(self, arguments):
        command, _, caption = (part.strip() for part in arguments.partition("|"))
        name = re.sub(r"[^a-z0-9]+", "_", command.removeprefix("./climb").lower()).strip("_")
        name = f"picture_{name}.svg"
        done = subprocess.run([*self.program(command), "--picture", str(self.out / name)], capture_output=True, text=True)
        if done.returncode != 0:
            raise PageError(f"{command} --picture ended with status {done.returncode}: {done.stderr.strip()}")
        return self.figure(name, None, caption)

    def bench(self, arguments):
        rung, *kernels = arguments.split()
        lines = tables.table(self.result, self.newest, rung).splitlines()
        lines[0] = re.sub(r" Raw: \[([^]]*)\]\([^)]*\)", r" Raw: `docs/results/\1`", lines[0])
        kept = [line for line in lines[4:] if not kernels or any(f"`{kernel}`" in line for kernel in kernels)]
        if not kept:
            raise PageError(f"bench: {arguments}: nothing was measured")
        # The rung is the page's own.
        rows = [re.sub(r"^\| [^|]* ", "", line) for line in [lines[2], lines[3].replace("|---", "", 1), *kept]]
        return [*rows, "", f"<div class=\"source\">{lines[0].replace('`', '')}</div>", ""]

    def plot(self, arguments):
        which, _, caption = (part.strip() for part in arguments.partition("|"))
        if which.startswith("04"):
            drawing = plot.softmax_svg(self.result, bf16=which.endswith("bf16"))
        else:
            drawing = plot.bars_svg(self.result, which)
        return self.figure(f"plot_{which.replace('-', '_')}.svg", drawing, caption)

    def width_plot(self, caption):
        widths = sorted({*range(100, 3001, 100), 1000, 1020, 1024, 1025, 1030, 1050, 1075, 1150, 1250})
        differences = {}
        for width in widths:
            for line in self.output(f"./climb 3 --cols {width}"):
                if f"(n_cols={width})" in line:
                    differences[width] = float(line.split("max abs diff")[1])
        if set(differences) != set(widths):
            raise PageError("./climb 3 did not print a difference for each width")
        drawing = chart.lines("Rung 03, 4 rows: the largest difference from the reference", {"softmax": differences},
                              widths, [100, 500, 1024, 1500, 2000, 2500, 3000], "columns of a row", "max abs diff",
                              marks=[("BLOCK_SIZE = 1024", 1024)])
        return self.figure("plot_03_widths.svg", drawing, caption)

    def ladder(self, _):
        width, rung_height, top = 760, 64, 20
        height = top + rung_height * len(RUNGS)
        out = chart.head(width, height, "")
        out.append("<style>.rail { stroke: #0072b2; stroke-width: 5 } .away { opacity: 0.5 }</style>")
        first = top + rung_height * sum(not RUNG[3] for RUNG in RUNGS) - 12
        out += [f'<line class="rail" x1="{x}" x2="{x}" y1="{first}" y2="{height - 4}"/>' for x in (20, 740)]
        for i, (name, idea, traffic, climbed) in enumerate(RUNGS):
            y = top + rung_height * i + 44
            dashes = "" if climbed else ' stroke-dasharray="4 8"'
            out.append(f'<g{"" if climbed else " class=" + chr(34) + "away" + chr(34)}>'
                       f'<line class="rail" x1="20" x2="740" y1="{y}" y2="{y}"{dashes}/>'
                       f'<text class="title" x="36" y="{y - 28}">{name}</text>'
                       f'<text x="36" y="{y - 10}">{idea}</text>'
                       f'<text x="724" y="{y - 28}" text-anchor="end">{traffic}</text></g>')
        drawing = "\n".join(out + ["</svg>"]) + "\n"
        return self.figure("ladder.svg", drawing, "The ladder, climbed from below. At the right the bytes that a rung "
                           "moves, for n elements, or M rows of N columns; two rungs are not built yet.")

    def mutants(self, rung):
        found = museum.of_rung(rung)
        if not found:
            raise PageError(f"mutants: {rung}: there are none")
        out = ["The test that still passes ran as its author would have run it: without the device's watch over races and over "
               "memory that nobody wrote. Ours ran with it.", ""]
        for mutant in found:
            before = "\n".join(edit.before.strip("\n") for edit in mutant.edits)
            after = "\n".join(edit.after.strip("\n") for edit in mutant.edits)
            edit = diff_of(before, after)
            out += [f"### {mutant.title} {{#mutant_{rung}_{mutant.name.replace('-', '_')}}}", "",
                    f"`./climb break {rung} {mutant.name}`, in `{mutant.file}`:", "", *edit, "",
                    f"- a test that still passes: {mutant.naive}", f"- a test of ours that fails: {mutant.caught_by}",
                    f"- the CPU device: {mutant.device}", "",
                    *html(["<details><summary>Hint</summary>"]), "", " ".join(mutant.hint.split()), "",
                    *html(["</details><details><summary>Solution, and why</summary>"]), "",
                    *diff_of(after, before), "", " ".join(mutant.why.split()), "", *html(["</details>"]), ""]
        return out

    def page(self, path):
        out = []
        for line in path.read_text().splitlines():
            match = DIRECTIVE.match(line)
            if not match:
                if line.startswith("<!--") and not line.startswith("<!-- note:"):
                    raise PageError(f"{path.name}: no such directive: {line}")
                out.append(line)
                continue
            name, arguments = match[1], match[2]
            try:
                make = {"code": code, "diff": diff}.get(name) or getattr(self, name.replace(" ", "_"))
                out += make(arguments)
            except (PageError, ValueError) as error:
                raise PageError(f"{path.name}: {line}: {error}") from None
        return "\n".join(out) + "\n"


def diff_of(before, after):
    changed = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return coloured([line for line in list(changed)[2:] if not line.startswith("@@")])


def relink(lines, folder):
    """Relative links: to a page of the book where there is one, else the text and the file's name."""
    def link(match):
        text, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        file, _, _ = target.partition("#")
        path = []
        for part in (folder / file).parts:
            if part == "..":
                path.pop()
            else:
                path.append(part)
        path = "/".join(path)
        page = PAGES.get(path) or PAGES.get(path + "/README.md")
        if not (ROOT / path).exists():
            raise PageError(f"a link to {target}, which does not exist")
        if page:
            return f"[{text}](@ref {page})"
        return text if path in text or text.strip("`") == pathlib.PurePosixPath(path).name else f"{text} (`{path}`)"

    out, inside = [], False
    for line in lines:
        if line.lstrip().startswith("```"):
            inside = not inside
        if not inside and line.startswith("<!--"):
            continue
        out.append(line if inside else re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", link, line))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where the rungs' programs of the CPU device are")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder that Doxygen reads; emptied first")
    arguments = parser.parse_args()
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
        for old in arguments.out.iterdir():
            old.unlink()
        maker = Maker(arguments.build, arguments.out)
        pages = sorted((ROOT / "docs/pages").glob("*.md"))
        for path in pages:
            (arguments.out / path.name).write_text(maker.page(path))
        for file, name in DOCUMENTS.items():
            if not (ROOT / file).exists():
                raise PageError(f"{file} does not exist")
            title, *rest = relink((ROOT / file).read_text().splitlines(), pathlib.PurePosixPath(file).parent)
            (arguments.out / f"{name}.md").write_text("\n".join([f"{title} {{#{name}}}", *rest]) + "\n")
    except (PageError, OSError, museum.MuseumError) as error:
        print(f"pages.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
