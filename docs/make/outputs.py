#!/usr/bin/env python3
"""Compares the outputs that README.md, the steps' pages, docs/ and the CPU device's README show with fresh runs.

A code block behind a line `<!-- output of: ./climb 5 --wall -->` is an excerpt of what that command prints, to both of
its streams: its lines follow one another in the fresh output, white space aside, empty lines left out. A line `[...]` or
`...` stands for what was left out. What differs from run to run is masked on both sides: addresses, the number of
workers, seconds, the numbers of OS threads.

A block that shows an output and cannot be checked so says why: `<!-- not checked: reason -->`. A block that has neither
is a problem, unless it shows commands (indented lines that begin with one) or code (fenced, and with a language).
Exit status 1 when there is a problem. The rungs' programs are looked for in the folder of --build.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("README.md", "steps/*/*.md", "docs/*.md", "common/cpu_device/README.md")
SECONDS_FOR_A_RUN = 240

MARKER = re.compile(r"^\s*<!-- (output of|not checked): *(.*?) *-->\s*$")
FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([\w+-]*)")
OUTPUT_LANGUAGES = ("", "text", "console", "output", "plain")
COMMAND = re.compile(r"^\s*(\w+=(\"[^\"]*\"|\S*) )*(\./climb|tests/\S+\.sh|nvcc|cmake|ctest|python3|gdb|build/\S+)(\s|$)")
ELLIPSES = ("...", "[...]")
MASKS = (
    (re.compile(r"\b0x[0-9a-f]{9,}\b"), "ADDRESS"),
    (re.compile(r"\b\d+ workers?\b"), "N workers"),
    (re.compile(r"\b\d+(\.\d+)? (s|sec|seconds)\b"), "N seconds"),
    (re.compile(r"\b(OS thread|Thread|LWP) \d+\b"), r"\1 N"),
)


@dataclasses.dataclass
class Block:
    line: int  # of its first line in the page, from 1
    language: str | None  # None: indented
    lines: list
    marker: tuple | None  # ("output of", command) or ("not checked", reason)


def blocks(text):
    """The code blocks of a page, and the lines of markers that stand before none."""
    lines = text.splitlines()
    found, stray = [], []
    marker, marker_line = None, 0
    at, after_empty = 0, True

    def close(block_line, language, content):
        nonlocal marker
        found.append(Block(block_line, language, content, marker))
        marker = None

    while at < len(lines):
        line = lines[at]
        fence = FENCE.match(line)
        if fence:
            start = at + 1
            at = start
            while at < len(lines) and not re.match(rf"^\s*{fence[1]}\s*$", lines[at]):
                at += 1
            close(start + 1, fence[2], lines[start:at])
            at += 1
            after_empty = True
            continue
        if line.startswith("    ") and line.strip() and after_empty:
            start = at
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            content = lines[start:at]
            while not content[-1].strip():
                content.pop()
            close(start + 1, None, content)
            after_empty = True
            continue
        match = MARKER.match(line)
        if match or line.strip():
            if marker:
                stray.append(marker_line)
            marker, marker_line = ((match[1], match[2]), at + 1) if match else (None, 0)
        after_empty = not line.strip() or bool(match)
        at += 1
    if marker:
        stray.append(marker_line)
    return found, stray


def shows_output(block):
    if block.language is None:
        return not all(COMMAND.match(line) for line in block.lines if line.strip())
    return block.language in OUTPUT_LANGUAGES


def lines_of(text):
    """What is compared: no empty lines, runs of white space as one blank, and masked."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for pattern, name in MASKS:
        lines = [pattern.sub(name, line) for line in lines]
    return [line for line in lines if line]


def first_missing(excerpt, output):
    """The first line of the excerpt that does not stand where it should in the output, or None."""
    parts, fresh = [[]], lines_of(output)
    for line in lines_of("\n".join(excerpt)):
        if line in ELLIPSES:
            parts.append([])
        else:
            parts[-1].append(line)
    if not any(parts):
        return "(the block is empty)"
    begin = 0
    for part in parts:
        longest = 0
        for at in range(begin, len(fresh) + 1):
            same = 0
            while same < len(part) and at + same < len(fresh) and fresh[at + same] == part[same]:
                same += 1
            longest = max(longest, same)
            if same == len(part):
                begin = at + same
                break
        else:
            return part[longest]
    return None


class Programs:
    """Runs each command once."""

    def __init__(self, build):
        self.build = build.resolve()
        self.outputs = {}

    def output(self, command):
        if command not in self.outputs:
            self.outputs[command] = self._run(command)
        return self.outputs[command]

    def _run(self, command):
        words = shlex.split(command)
        if len(words) < 2 or words[0] != "./climb" or not re.fullmatch(r"\d", words[1]):
            raise ValueError(f"only ./climb N can be run, with options, not '{command}'")
        programs = [path for path in self.build.glob(f"0{words[1]}_*") if path.is_file()]
        if len(programs) != 1:
            raise ValueError(f"{self.build} has {len(programs)} programs of rung {words[1]}")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
        try:
            done = subprocess.run([str(programs[0]), *words[2:]], env=environment, cwd=ROOT, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=SECONDS_FOR_A_RUN)
        except subprocess.TimeoutExpired:
            raise ValueError(f"'{command}' took more than {SECONDS_FOR_A_RUN} seconds") from None
        if done.returncode < 0 or done.returncode > 2:  # 0, 1 and 2 are the programs' own
            raise ValueError(f"'{command}' ended with status {done.returncode}: {done.stdout[-300:]}")
        return done.stdout


def check_page(text, programs):
    """(line, what is wrong) of each problem, and how many blocks were compared and how many are marked as unchecked."""
    found, stray = blocks(text)
    problems = [(line, "a marker with no code block behind it") for line in stray]
    compared = unchecked = 0
    for block in found:
        if not block.marker:
            if shows_output(block):
                problems.append((block.line, "shows an output, and no marker says of which command or why it is not checked"))
            continue
        kind, value = block.marker
        if kind == "not checked":
            unchecked += 1
            if not value:
                problems.append((block.line, "not checked, and for no reason"))
            continue
        compared += 1
        try:
            missing = first_missing(block.lines, programs.output(value))
        except ValueError as error:
            problems.append((block.line, str(error)))
            continue
        if missing:
            problems.append((block.line, f"'{value}' does not print, or not there: {missing}"))
    return problems, compared, unchecked


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", required=True, help="exit with 1 when a page differs")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the folder with the rungs' programs")
    arguments = parser.parse_args()
    programs = Programs(arguments.build)
    failed = compared = unchecked = 0
    for page in sorted(path for pattern in PAGES for path in ROOT.glob(pattern)):
        problems, of_page, not_of_page = check_page(page.read_text(), programs)
        compared += of_page
        unchecked += not_of_page
        failed += len(problems)
        for line, text in sorted(problems):
            print(f"{page.relative_to(ROOT)}:{line}: {text}")
    print(f"{compared} outputs compared with {len(programs.outputs)} runs, {unchecked} marked as not checked, {failed} problems")
    if not compared:
        print("nothing was compared")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
