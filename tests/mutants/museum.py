#!/usr/bin/env python3
"""The museum of broken kernels: what ./climb break and ./climb repair call, and what ctest calls to verify it.

A mutant is a file tests/mutants/NN/name.toml; README.md beside this file says what stands in it. CMakeLists.txt
applies each to a copy of its kernel and builds the rung's own tests over that copy. This program shows, runs and
judges them. It needs Python 3.11 and no package, or 3.10 and python3-tomli.
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

try:
    import tomllib
except ImportError:  # before Python 3.11; the package python3-tomli is the same
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
MUSEUM = ROOT / "tests" / "mutants"
TABLE = ROOT / "docs" / "mutants.md"
WIDTH = 96  # of a line of output, without its indentation
SECONDS = 240  # for one test case: a broken kernel may run for ever
NOTHING = "nothing"


class MuseumError(Exception):
    """Said in one line; exit status 2."""


@dataclass(frozen=True)
class Edit:
    file: str  # from the root of the repository
    before: str
    after: str


@dataclass(frozen=True)
class Mutant:
    rung: str  # "04"
    name: str  # "no-max-subtraction"
    title: str  # what is wrong, in a few words
    edits: tuple[Edit, ...]  # all in one file
    tests: tuple[str, ...]  # the files of tests/ that are compiled over the broken kernel
    naive: str  # the test case of naive.cu that passes
    caught_by: str  # the test case of `tests` that fails
    device: str  # what the first line of the CPU device's report contains, or NOTHING
    device_case: str  # the test case during which it is said: caught_by, unless its inputs hide the access
    why: str
    hint: str

    @property
    def file(self) -> str:
        return self.edits[0].file

    @property
    def label(self) -> str:
        return f"{self.rung} {self.name}"

    def program(self, build: Path, kind: str = "mutant") -> Path:
        return build / "tests" / "mutants" / f"{kind}_{self.rung}_{self.name}"

    def control(self, build: Path) -> Path:
        return build / "tests" / "mutants" / f"mended_{self.rung}"

    def observed(self, build: Path) -> Path:
        return build / "tests" / "mutants" / f"observed_{self.rung}_{self.name}.json"

    def workpiece(self) -> Path:
        return ROOT / "repair" / f"{self.rung}_{self.name}" / Path(self.file).name


# --- The data ---

FIELDS = {"title", "edit", "tests", "naive", "caught_by", "device", "why", "hint"}


def read_mutant(path: Path) -> Mutant:
    where = path.relative_to(ROOT)
    try:
        data = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise MuseumError(f"{where}: {error}") from None
    if data.keys() - {"device_case"} != FIELDS:
        wrong = ", ".join(sorted((data.keys() - {"device_case"}) ^ FIELDS))
        raise MuseumError(f"{where}: missing or unknown: {wrong}; it takes {', '.join(sorted(FIELDS))}")
    edits = []
    for edit in data["edit"]:
        if edit.keys() != {"file", "before", "after"}:
            raise MuseumError(f"{where}: an [[edit]] takes file, before and after, not {', '.join(sorted(edit))}")
        edits.append(Edit(edit["file"], edit["before"], edit["after"]))
    if len({edit.file for edit in edits}) != 1:
        raise MuseumError(f"{where}: its edits are in {len({e.file for e in edits})} files, must be in one")
    return Mutant(
        rung=path.parent.name, name=path.stem, title=data["title"], edits=tuple(edits), tests=tuple(data["tests"]),
        naive=data["naive"], caught_by=data["caught_by"], device=data["device"],
        device_case=data.get("device_case", data["caught_by"]), why=" ".join(data["why"].split()), hint=" ".join(data["hint"].split()))


def all_mutants() -> list[Mutant]:
    return [read_mutant(path) for path in sorted(MUSEUM.glob("[0-9][0-9]/*.toml"))]


def of_rung(rung: str) -> list[Mutant]:
    """`rung` as a person writes it: 4, 04 or 04_softmax_fixed."""
    number = rung[:2] if re.match(r"\d\d_", rung) else rung.zfill(2)
    mutants = all_mutants()
    found = [mutant for mutant in mutants if mutant.rung == number]
    if not found:
        rungs = ", ".join(sorted({mutant.rung for mutant in mutants}))
        raise MuseumError(f"there is no rung {rung} with broken kernels; there are {rungs}")
    return found


def find(rung: str, name: str) -> Mutant:
    mutants = of_rung(rung)
    for mutant in mutants:
        if mutant.name == name:
            return mutant
    raise MuseumError(f"rung {mutants[0].rung} has no broken kernel {name}; it has "
                      + ", ".join(mutant.name for mutant in mutants))


def source_of(mutant: Mutant) -> str:
    return (ROOT / mutant.file).read_text()


def broken(mutant: Mutant) -> str:
    """The kernel's text with the edits applied; each must apply exactly once."""
    text = source_of(mutant)
    for edit in mutant.edits:
        count = text.count(edit.before)
        if count != 1:
            raise MuseumError(f"mutant {mutant.label} does not apply: its `before` occurs {count} times in {edit.file}, "
                              f"must occur once: {edit.before.strip().splitlines()[0]}")
        text = text.replace(edit.before, edit.after)
    return text


def test_case(files: list[Path], name: str) -> tuple[Path, int, str]:
    """Where the test case of this name stands: its file, its line, and its text with the comment above it."""
    for path in files:
        lines = path.read_text().splitlines()
        text = "\n".join(lines)
        for match in re.finditer(r'^TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', text, re.MULTILINE):
            literal = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[1])).replace('\\"', '"')
            if literal != name:
                continue
            first = text[: match.start()].count("\n")
            last = next(i for i in range(first, len(lines)) if lines[i].startswith("}") or lines[i].endswith("}")
                        and lines[i].count("{") == lines[i].count("}") > 0)
            top = first  # of the paragraph, whose comment may stand above several test cases
            while top > 0 and lines[top - 1].strip():
                top -= 1
            comment = [line for line in lines[top: first] if line.startswith("//")]
            return path, first + 1, "\n".join(comment + lines[first: last + 1])
    raise MuseumError(f"there is no test case \"{name}\" in {', '.join(str(p.relative_to(ROOT)) for p in files)}")


def naive_case(mutant: Mutant) -> tuple[Path, int, str]:
    return test_case([MUSEUM / mutant.rung / "naive.cu"], mutant.naive)


def real_case(mutant: Mutant, name: str = "") -> tuple[Path, int, str]:
    return test_case([ROOT / "tests" / file for file in mutant.tests], name or mutant.caught_by)


# --- Running ---

@dataclass(frozen=True)
class Run:
    passed: bool
    output: str
    ended: str  # how it ended, when it was neither of doctest's two exit statuses

    def failures(self) -> list[list[str]]:
        """doctest's paragraphs, one for each failed check."""
        blocks, block = [], None
        for line in self.output.splitlines():
            if re.search(r": (FATAL )?ERROR: ", line):
                block = [line]
                blocks.append(block)
            elif line.startswith("====") or line.startswith("[doctest]"):
                block = None
            elif block is not None:
                block.append(line)
        return [[line for line in block if line.strip()] for block in blocks]

    def report(self) -> str:
        """What the CPU device said: the text of a KernelFault, which ends in the kernel's name; else nothing."""
        for block in self.failures():
            _, threw, first = block[0].partition("THREW exception: ")
            last = next((i for i, line in enumerate(block) if line.startswith("  in kernel ")), 0)
            if threw and last:
                return "\n".join([first.strip(), *block[1: last + 1]])
        return ""


def run(program: Path, case: str, *, checks: str = "all") -> Run:
    """Runs one test case, in a process of its own: a broken kernel may crash, or never end. The naive tests run with
    checks="none", without the device's watch over races and uninitialised memory: who wrote them had none."""
    if not program.exists():
        raise MuseumError(f"{program} is not built: ./climb break builds and runs it")
    environment = dict(os.environ, RC_PARAMS="seed=20260907", LADDER_CHECKS=checks)
    command = [str(program), "--no-intro", "--no-version"]
    if not case:  # all, but those that count bytes: at -O0 g++ copies a float4 where the device does not see it
        command.append("--test-case-exclude=*bytes*")
    else:
        command.append("--test-case=" + case.replace(",", "?"))  # a comma would end the name; ? is any character
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, timeout=SECONDS, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired as timeout:
        partial = timeout.stdout or b""
        return Run(False, partial.decode(errors="replace") if isinstance(partial, bytes) else partial,
                   f"it did not end within {SECONDS} s")
    ran = re.search(r"test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed", done.stdout)
    if ran and case and int(ran[1]) != 1:
        raise MuseumError(f"{program.name} has {ran[1]} test cases that match \"{case}\", must have one")
    if not ran:
        return Run(False, done.stdout, f"it ended with status {done.returncode}")
    return Run(done.returncode == 0, done.stdout, "")


@dataclass(frozen=True)
class Verdict:
    naive: Run
    real: Run
    device: Run

    def report(self) -> str:
        return self.device.report()

    def complaints(self, mutant: Mutant) -> list[str]:
        """What is not as the mutant's file says; empty when it is."""
        said = self.report().splitlines()[0] if self.report() else NOTHING
        wrong = []
        if not self.naive.passed:
            wrong.append(f"the naive test \"{mutant.naive}\" fails over it, and must pass")
        if self.naive.report():
            wrong.append(f"the CPU device reports something in the naive test: {self.naive.report().splitlines()[0]}")
        if self.real.passed:
            wrong.append(f"it SURVIVES: \"{mutant.caught_by}\" passes over it, and must fail")
        if (mutant.device == NOTHING) != (said == NOTHING) or mutant.device not in said:
            wrong.append(f"the CPU device says \"{said}\", and not what is recorded, \"{mutant.device}\"")
        return wrong


def judge(mutant: Mutant, build: Path) -> Verdict:
    program = mutant.program(build)
    naive = run(program, mutant.naive, checks="none")
    real = run(program, mutant.caught_by)
    same = mutant.device_case == mutant.caught_by
    return Verdict(naive, real, real if same else run(program, mutant.device_case))


# --- Output ---

def styled(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


def heading(text: str, detail: str = "") -> None:
    print("\n" + styled("1", text) + (f"  {detail}" if detail else ""))


def paragraph(text: str, indent: str = "  ") -> None:
    print(textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent))


def quote(lines: list[str], indent: str = "  ") -> None:
    for line in lines:
        for piece in textwrap.wrap(line, WIDTH, subsequent_indent="      ", replace_whitespace=False,
                                   break_on_hyphens=False) or [""]:
            print(indent + piece)


def print_diff(before: str, after: str, context: int = 1) -> None:
    for line in list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context))[2:]:
        if line.startswith("@@"):
            continue
        colour = {"-": "31", "+": "32"}.get(line[:1], "0")
        print(("  " + (styled(colour, line) if colour != "0" else line)).rstrip())


def first_line_of(before: str, after: str) -> int:
    pairs = zip(before.splitlines(), after.splitlines() + [""] * before.count("\n"))
    return next((i for i, (a, b) in enumerate(pairs, 1) if a != b), 1)


def essential(run_of_test: Run) -> list[str]:
    """The first failed check, without the path of doctest's page, and no more than a few lines."""
    failures = run_of_test.failures()
    if not failures:
        return [run_of_test.ended or "no check failed"]
    first = failures[0]
    first[0] = re.sub(r"^(\S+?:\d+): (FATAL )?ERROR: ", r"\1: ", first[0])
    lines = [line.rstrip() for line in first if "test case THREW" not in line or len(first) == 1]
    if len(first) > 1 and "test case THREW" in first[0]:
        lines = [first[0].split("THREW exception: ")[-1].strip(), *first[1:]]
        lines[0] = "the test case threw: " + lines[0]
    lines = [line[: 3 * WIDTH] + (" ..." if len(line) > 3 * WIDTH else "") for line in lines]
    kept = lines[:9]
    if len(lines) > len(kept):
        kept.append("...")
    return kept


def where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


# --- Commands ---

def command_list(rung: str | None) -> int:
    mutants = all_mutants() if rung is None else of_rung(rung)
    width = max(len(mutant.name) for mutant in mutants)
    previous = ""
    for mutant in mutants:
        if mutant.rung != previous:
            print()
        print(f"{mutant.rung if mutant.rung != previous else '  '}  {mutant.name:{width}}  {mutant.title}")
        previous = mutant.rung
    example = next((mutant for mutant in mutants if mutant.name == "no-max-subtraction"), mutants[0])
    print(f"\n{len(mutants)} broken kernels. Over each of them passes a test of the article's, or one made from a bug report.")
    print(f"  ./climb break {example.label:28} the edit, both tests, the device's report, why")
    print(f"  ./climb repair {example.label:27} mend it yourself")
    return 0


def command_show(mutant: Mutant, build: Path) -> int:
    text, edited = source_of(mutant), broken(mutant)
    print(styled("1", f"\n{mutant.label}: {mutant.title}"))
    heading("The edit", f"{mutant.file}:{first_line_of(text, edited)}")
    print_diff(text, edited)

    verdict = judge(mutant, build)
    path, line, case = naive_case(mutant)
    heading("A test that somebody used", where(path, line))
    quote(case.splitlines())
    print("  " + (styled("32", "passes") if verdict.naive.passed else styled("31", "FAILS, and should pass")))

    path, line, _ = real_case(mutant)
    heading("The test that sees it", where(path, line))
    paragraph(f'"{mutant.caught_by}"')
    said = verdict.report()
    if verdict.real.report():
        paragraph("stopped by the CPU device, whose report is below")
    else:
        quote(essential(verdict.real), "    ")
    print("  " + (styled("31", "passes, and must fail: the mutant SURVIVES") if verdict.real.passed
                  else styled("32", "fails, as it must")))

    heading("The CPU device's report")
    if said:
        quote(said.splitlines())
    else:
        paragraph("Nothing. Only the numbers are wrong.")
    heading("Why")
    paragraph(mutant.why)
    print(f"\nMend it yourself: ./climb repair {mutant.label}")
    complaints = verdict.complaints(mutant)
    for complaint in complaints:
        print(f"NOT AS RECORDED in tests/mutants/{mutant.rung}/{mutant.name}.toml: {complaint}")
    return 1 if complaints else 0


def command_mended(rung: str, build: Path) -> int:
    """Each test case that this rung's mutants name passes over the mended kernel, in the same kind of program."""
    failures = 0
    cases = {case: mutant for mutant in of_rung(rung) for case in (mutant.naive, mutant.caught_by, mutant.device_case)}
    for case, mutant in cases.items():
        done = run(mutant.control(build), case)
        if not done.passed:
            failures += 1
            print(f"rung {mutant.rung}: \"{case}\" fails over the mended kernel too:\n" + "\n".join(essential(done)))
    print(f"rung {rung}: {len(cases) - failures} of {len(cases)} test cases pass over the mended kernel")
    return 1 if failures else 0


def command_verify(mutant: Mutant, build: Path) -> int:
    """Everything that the mutant's file claims."""
    verdict = judge(mutant, build)
    complaints = verdict.complaints(mutant)
    said = verdict.report().splitlines()
    mutant.observed(build).write_text(json.dumps({
        "naive": "passes" if verdict.naive.passed else "fails", "real": "passes" if verdict.real.passed else "fails",
        "device": said[0] if said else NOTHING}))
    for complaint in complaints:
        print(f"{mutant.label}: {complaint}")
    if complaints:
        print("What the real test printed:\n" + verdict.real.output[-3000:])
        return 1
    print(f"{mutant.label}: \"{mutant.naive}\" passes, \"{mutant.caught_by}\" fails, "
          f"the CPU device: {said[0] if said else NOTHING}")
    return 0


def command_check() -> int:
    """Without building anything: each edit applies, each test case exists, no two mutants are alike."""
    mutants = all_mutants()
    seen: dict[str, Mutant] = {}
    for mutant in mutants:
        text = broken(mutant)
        if text == source_of(mutant):
            raise MuseumError(f"mutant {mutant.label} changes nothing")
        if text in seen:
            raise MuseumError(f"mutants {seen[text].label} and {mutant.label} are the same kernel")
        seen[text] = mutant
        naive_case(mutant)
        real_case(mutant)
        real_case(mutant, mutant.device_case)
        sentences = re.findall(r"[.?!](?=\s|$)", mutant.why)
        if len(sentences) != 2:
            raise MuseumError(f"mutant {mutant.label}: `why` has {len(sentences)} sentences, must have two")
    print(f"{len(mutants)} mutants apply")
    return 0


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")


def table(build: Path) -> str:
    mutants = all_mutants()
    lines = [
        "# The museum of broken kernels", "",
        "Written by `tests/mutants/museum.py table` from the mutants' files and from a run of each; CI runs them all again",
        "and fails when a line here is no longer true. `./climb break 04 no-max-subtraction` shows one of them.", "",
        f"{len(mutants)} small edits, each of the real kernel. Over each of them passes a test of the article's, or one made from a report in",
        "[bug_cases.md](bug_cases.md); each is caught by a test case of the rung. The last column is what the CPU",
        "device reported while that test case ran. \"nothing\" is a finding too: the access was allowed, only the numbers were",
        "wrong, and no tool that watches memory could have told.", "",
        "| rung | mutant | the edit | a test that passes over it | our test that fails | the CPU device says |",
        "|---|---|---|---|---|---|"]
    silent = 0
    for mutant in mutants:
        path = mutant.observed(build)
        if not path.exists():
            raise MuseumError(f"mutant {mutant.label} has not been run: ./climb break all runs them")
        observed = json.loads(path.read_text())
        if (observed["naive"], observed["real"]) != ("passes", "fails"):
            raise MuseumError(f"mutant {mutant.label}: the naive test {observed['naive']}, ours {observed['real']}")
        silent += observed["device"] == NOTHING
        lines.append(f"| {mutant.rung} | {mutant.name} | {cell(mutant.title)} | {cell(mutant.naive)} "
                     f"| {cell(mutant.caught_by)} | {cell(observed['device'].split(' (elements of ')[0])} |")
    lines += ["", f"Over {silent} of the {len(mutants)} the device says nothing."]
    return "\n".join(lines) + "\n"


def command_table(build: Path, write: bool) -> int:
    text = table(build)
    if write:
        TABLE.write_text(text)
        print(f"wrote {TABLE.relative_to(ROOT)}")
        return 0
    if not TABLE.exists() or TABLE.read_text() != text:
        print("docs/mutants.md is stale: ./climb break all, then "
              "python3 tests/mutants/museum.py table --write, and look at the difference")
        have = TABLE.read_text().splitlines() if TABLE.exists() else []
        for line in list(difflib.unified_diff(have, text.splitlines(), "docs/mutants.md", "as run", lineterm=""))[:40]:
            print(line)
        return 1
    print("docs/mutants.md is what the runs say")
    return 0


def command_copy(name: str, text: str, destination: Path) -> int:
    """A kernel for the include path in front of the rung's own; messages name `name`, the file that a person edits.
    Left as it is when nothing changed: then nothing is compiled again."""
    text = f'#line 1 "{name}"\n{text}'
    destination.parent.mkdir(parents=True, exist_ok=True)
    if not destination.exists() or destination.read_text() != text:
        destination.write_text(text)
    return 0


def command_lay_out(mutant: Mutant, restart: bool) -> int:
    workpiece = mutant.workpiece()
    shown = workpiece.relative_to(ROOT)
    if workpiece.exists() and not restart:
        return 0
    workpiece.parent.mkdir(parents=True, exist_ok=True)
    workpiece.write_text(broken(mutant))
    print(f"The broken kernel is in {shown}. Mend it there and call ./climb repair {mutant.label} again.")
    return 0


def command_hint(mutant: Mutant) -> int:
    paragraph(mutant.hint, "")
    return 0


def command_solution(mutant: Mutant) -> int:
    print(f"From the broken kernel to the rung's own lines ({mutant.file}):")
    print_diff(broken(mutant), source_of(mutant))
    return 0


def command_repair(mutant: Mutant, build: Path) -> int:
    program = mutant.program(build, "repair")
    print(styled("1", f"\n{mutant.workpiece().relative_to(ROOT)}, against the tests of rung {mutant.rung}"))
    for what, case in (("a test that somebody used", mutant.naive), ("the test that sees it", mutant.caught_by),
                       ("all tests but the byte counts", "")):
        done = run(program, case)
        print(f"  {what + ':':31}" + (styled("32", "passes") if done.passed else styled("31", "fails")))
        if not done.passed:
            report = done.report()
            quote(report.splitlines() if report else essential(done), "    ")
            print(f"\nNot mended yet. ./climb repair {mutant.label} --hint, or --solution, or --restart")
            return 1
    same = mutant.workpiece().read_text() == source_of(mutant)
    print("\nMended" + (": these are the rung's own lines." if same else
                        f". Compare with the rung's own lines: ./climb repair {mutant.label} --solution"))
    return 0


def command_cmake() -> int:
    """For CMakeLists.txt: one line for each mutant, its fields separated by |."""
    for mutant in all_mutants():
        print("|".join((mutant.rung, mutant.name, mutant.file, *mutant.tests)))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "cpu", help="build folder; build/cpu")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="all mutants, a line each").add_argument("rung", nargs="?")
    commands.add_parser("mended", help="that a rung's test cases pass over its mended kernel").add_argument("rung")
    commands.add_parser("cmake", help="the mutants, for CMakeLists.txt")
    commands.add_parser("check", help="that each edit applies and each test case exists; builds nothing")
    commands.add_parser("table", help="docs/mutants.md against the runs").add_argument("--write", action="store_true")
    for name, text in (("show", "one mutant, and what its tests make of it"), ("verify", "that all is as recorded"),
                       ("apply", "write the broken kernel to a file"), ("workpiece", "copy the reader's kernel to a file"),
                       ("lay-out", "the broken kernel for a reader to mend"), ("hint", "a hint"),
                       ("solution", "the rung's own lines"), ("repair", "run the tests on the reader's kernel"),
                       ("name", "its rung and name, as targets have them")):
        one = commands.add_parser(name, help=text)
        one.add_argument("rung")
        one.add_argument("mutant")
        if name in ("apply", "workpiece"):
            one.add_argument("destination", type=Path)
        if name == "lay-out":
            one.add_argument("--restart", action="store_true")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    match arguments.command:
        case "list":
            return command_list(arguments.rung)
        case "cmake":
            return command_cmake()
        case "mended":
            return command_mended(arguments.rung, build)
        case "check":
            return command_check()
        case "table":
            return command_table(build, arguments.write)
    mutant = find(arguments.rung, arguments.mutant)
    match arguments.command:
        case "show":
            return command_show(mutant, build)
        case "verify":
            return command_verify(mutant, build)
        case "apply":
            return command_copy(mutant.file, broken(mutant), arguments.destination)
        case "workpiece":
            name = str(mutant.workpiece().relative_to(ROOT))
            return command_copy(name, mutant.workpiece().read_text(), arguments.destination)
        case "lay-out":
            return command_lay_out(mutant, arguments.restart)
        case "hint":
            return command_hint(mutant)
        case "solution":
            return command_solution(mutant)
        case "repair":
            return command_repair(mutant, build)
        case "name":
            print(f"{mutant.rung}_{mutant.name}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MuseumError as error:
        print(f"climb: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)
