#!/usr/bin/env python3
"""The systematic mutator: draws small edits of kernels, launchers and the CPU device, and asks the tests for each.

All edits of a draw are compiled in at once, each behind a switch that reads the environment (sweep_switch.hpp), so that
there is one build for all. What it finds is written to docs/results/. tests/mutants/README.md says more.

    tests/mutants/sweep.py --count 300 --seed 7            draw, build, run; two mutants at a time
    tests/mutants/sweep.py --count 300 --seed 7 --resume   go on where it was stopped
    tests/mutants/sweep.py --seed 7 --mutant 17            run one mutant of that draw again and show what the test said
    tests/mutants/sweep.py --seed 7 --list                 what is drawn, without a build
    tests/mutants/sweep.py --report docs/results/X.json    the totals of a result
"""

import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

try:
    import tomllib
except ImportError:  # before Python 3.11; the package python3-tomli is the same
    import tomli as tomllib

import sweep_operators as operators
from sweep_operators import Mutant

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
EQUIVALENT = HERE / "sweep_equivalent.toml"
KERNELS = ("steps/*/*.cuh", "common/kernel/*.hpp", "common/kernel/*.cuh")
DEVICE = ("common/cpu_device/*.hpp", "common/cpu_device/*.cpp", "cpu_device/*.hpp", "cpu_device/*.cpp")
LEFT_OUT = {"steps/01_vector_add/without_mask.cuh": "wrong on purpose",
            "common/kernel/cuda_device.cuh": "compiled by nvcc alone"}
VERDICTS = ("equivalent", "slower", "unpromised")
KERNELS_SHARE = 2 / 3
SPARE = 1.08  # edits that do not compile are left out of the build: so many more are drawn
MOST = 4000  # switches that sweep_switch.cpp has room for
JOBS = 2
ROUNDS = 20  # of dropping what does not compile


class SweepError(Exception):
    """Said in one line; exit status 2."""


@dataclass
class Test:
    name: str
    command: list[str]
    environment: dict[str, str]
    labels: list[str]
    expected: str  # a regular expression for its output, or "": then its exit status must be 0
    seconds: float = 0.0
    reached: frozenset[int] = frozenset()


def say(text: str):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def run(command, **options):
    return subprocess.run([str(c) for c in command], text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


# Which mutants there are, and which are drawn.

def files() -> dict[str, str]:
    """Each file to mutate, and its stratum."""
    found = {}
    for stratum, patterns in (("kernels", KERNELS), ("device", DEVICE)):
        for pattern in patterns:
            for path in sorted(ROOT.glob(pattern)):
                name = path.relative_to(ROOT).as_posix()
                if name not in LEFT_OUT:
                    found[name] = stratum
    return found


def candidates_of(file: str) -> list[Mutant]:
    includes = "" if file.endswith(".cpp") else '#include "common/kernel/gpu.cuh"'
    return operators.candidates(str(ROOT / file), file, includes, [f"-I{ROOT}", "-DLADDER_CHECKED"])


def all_candidates(names: list[str]) -> dict[str, list[Mutant]]:
    with concurrent.futures.ProcessPoolExecutor(JOBS) as pool:
        return dict(zip(names, pool.map(candidates_of, names)))


def take_turns(mutants: list[Mutant], draw: random.Random) -> list[Mutant]:
    """In the order of the draw: operators take turns, so that the frequent ones do not crowd out the rare."""
    by_operator = collections.defaultdict(list)
    for mutant in mutants:
        by_operator[mutant.operator].append(mutant)
    queues = [by_operator[name] for name in sorted(by_operator)]
    for queue in queues:
        draw.shuffle(queue)
    order = []
    while any(queues):
        draw.shuffle(queues)
        order += [queue.pop() for queue in queues if queue]
    return order


def draw_mutants(found: dict[str, list[Mutant]], count: int, seed: int) -> list[Mutant]:
    """`count` mutants, two thirds of them in kernels and launchers, spread over the files by what each has to offer."""
    draw = random.Random(seed)
    drawn = []
    strata = {files()[f] for f in found}
    shares = {"kernels": KERNELS_SHARE, "device": 1 - KERNELS_SHARE} if len(strata) > 1 else {min(strata): 1}
    for stratum, share in shares.items():
        queues = {f: take_turns([m for m in found[f] if not m.compile_time], draw)
                  for f in sorted(found) if files()[f] == stratum}
        total = sum(len(q) for q in queues.values())
        wanted = min(round(count * share), total)
        taken = {f: int(wanted * len(q) / total) for f, q in queues.items()}
        short = [f for f in queues if taken[f] < len(queues[f])]
        draw.shuffle(short)
        for f in short[:wanted - sum(taken.values())]:
            taken[f] += 1
        drawn += [m for f, q in queues.items() for m in q[:taken[f]]]
    draw.shuffle(drawn)  # so that any first part of it is such a draw too
    return drawn


# The build: a copy of the tree in which each drawn edit stands behind its switch.

def tracked() -> list[str]:
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT).stdout.split("\n")
    return [f for f in listed if f and (ROOT / f).is_file()]


def put(path: Path, data: bytes):
    """Writes only what differs, so that a second build compiles only that."""
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def copy_tree(folder: Path):
    names = tracked()
    for name in names:
        put(folder / name, (ROOT / name).read_bytes())
        shutil.copymode(ROOT / name, folder / name)
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in names:
            path.unlink()


class Build:
    def __init__(self, work: Path):
        self.work, self.tree, self.plain, self.build = work, work / "tree", work / "plain", work / "build"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LADDER_")}
        self.environment.pop("CCACHE_BASEDIR", None)  # would make paths in reports relative to the build's folder
        self.places: dict[str, tuple[str, list]] = {}

    def write(self, mutants: dict[int, Mutant]):
        """Instruments all files; those without a mutant get their own text back."""
        for file in files():
            own = {n: m for n, m in mutants.items() if m.file == file}
            text, places = operators.instrument((ROOT / file).read_bytes().decode("latin-1"), own)
            self.places[file] = (text, places)
            put(self.tree / file, text.encode("latin-1"))

    def blamed(self, output: str) -> set[int]:
        """The mutants in which the compiler's errors stand: the innermost at that place, or all of that line."""
        numbers = set()
        for name, line, column in re.findall(r"^([^\s:]+):(\d+):(\d+): (?:fatal )?error", output, flags=re.M):
            file = name.removeprefix(f"{self.tree}/").removeprefix("./")
            if file not in self.places:
                continue
            text, places = self.places[file]
            lines = text.split("\n")
            begin = sum(len(part) + 1 for part in lines[:int(line) - 1])
            at, end = begin + int(column) - 1, begin + len(lines[int(line) - 1])
            around = [(stop - start, n) for start, stop, n in places if start <= at <= stop]
            of_line = {n for start, stop, n in places if start < end and stop > begin}
            numbers |= {min(around)[1]} if around else of_line
        return numbers

    def check_syntax(self, mutants: dict[int, Mutant]) -> set[int]:
        """Drops what does not compile, seen file by file: that is quicker than to find out by the whole build."""
        flags = ["g++", "-std=c++20", "-fsyntax-only", "-w", "-DLADDER_CHECKED", f"-I{self.tree}", "-include",
                 HERE / "sweep_switch.hpp", "-xc++", "-"]

        def errors(file: str) -> str:
            unit = "" if file.endswith(".cpp") else '#include "common/kernel/gpu.cuh"\n'
            done = run(flags, input=f'{unit}#include "{file}"\n', cwd=self.work, env=self.environment)
            return done.stdout if done.returncode != 0 else ""

        gone: set[int] = set()
        red = sorted({m.file for m in mutants.values()})
        for _ in range(ROUNDS):
            with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
                outputs = dict(zip(red, pool.map(errors, red)))
            red = [file for file in red if outputs[file]]
            if not red:
                return gone
            now = self.blamed("".join(outputs.values())) - gone
            if not now:
                raise SweepError(f"{red[0]}: errors that belong to no mutant:\n{outputs[red[0]][:1000]}")
            gone |= now
            self.write({n: m for n, m in mutants.items() if n not in gone})
        raise SweepError(f"{red[0]}: still does not compile")

    def configure(self):
        switch = self.work / "sweep_switch.o"
        for command in (["g++", "-std=c++20", "-O2", "-fPIC", "-c", HERE / "sweep_switch.cpp", "-o", switch],
                        ["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                         "-DLADDER_DEVICE=cpu", "-DLADDER_CHECKED=ON", "-DCMAKE_CXX_COMPILER=g++",
                         f"-DCMAKE_CXX_FLAGS=-include {HERE / 'sweep_switch.hpp'}",
                         f"-DCMAKE_EXE_LINKER_FLAGS={switch}"]):
            done = run(command, env=self.environment)
            if done.returncode != 0:
                raise SweepError(f"{command[0]} failed:\n{done.stdout[-3000:]}")

    def tests(self) -> list[Test]:
        """ctest's list, as far as it runs programs of this build; `shift_` only asks whether tests can fail."""
        listed = json.loads(run(["ctest", "--test-dir", self.build, "--show-only=json-v1"]).stdout)
        found = []
        for test in listed["tests"]:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            command = test.get("command", [""])
            labels = properties.get("LABELS", [])
            if not command[0].startswith(f"{self.build}/") or {"shift", "mutants", "docs"} & set(labels):
                continue
            expected = "|".join(f"(?:{e})" for e in properties.get("PASS_REGULAR_EXPRESSION", []))
            if Path(command[0]).name.startswith("test_"):
                command = [*command, "--abort-after=1"]
            environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
            found.append(Test(test["name"], command, environment, labels, expected))
        return found

    def targets(self) -> list[str]:
        """The programs of the tests, from ctest's files: its list names no program that is not built."""
        commands = {c for file in self.build.rglob("CTestTestfile.cmake")
                    for c in re.findall(r'^add_test\(\S+ "([^"]+)"', file.read_text(), flags=re.M)}
        return sorted(str(Path(c).relative_to(self.build)) for c in commands if c.startswith(f"{self.build}/"))

    def compile(self, mutants: dict[int, Mutant]) -> set[int]:
        """Builds the programs of all tests; drops what does not compile there, where templates are instantiated."""
        gone: set[int] = set()
        for _ in range(ROUNDS):
            done = run(["ninja", "-C", self.build, "-j", JOBS, "-k", "0", *self.targets()], env=self.environment)
            if done.returncode == 0:
                return gone
            now = self.blamed(done.stdout) - gone
            if not now:
                raise SweepError(f"the build fails, and not because of a mutant:\n{done.stdout[-3000:]}")
            gone |= now
            say(f"  {len(now)} do not compile where they are instantiated; building again")
            self.write({n: m for n, m in mutants.items() if n not in gone})
        raise SweepError("the build still fails")

    # Running.

    def call(self, test: Test, mutant: int, limit: float, reached: Path | None = None) -> tuple[str, str]:
        """How the test ended, "" when it passed, and its output."""
        scratch = self.work / "scratch" / threading.current_thread().name
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        environment = {**self.environment, **test.environment, "TMPDIR": str(scratch),
                       "LADDER_SWEEP_MUTANT": str(mutant)}
        # RapidCheck is not to spend time on a smaller example.
        environment["RC_PARAMS"] = test.environment.get("RC_PARAMS", "") + " noshrink=1"
        if reached is not None:
            environment["LADDER_SWEEP_REACHED"] = str(reached)

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (200 << 20, 200 << 20))
            Path("/proc/self/oom_score_adj").write_text("1000")  # when memory runs out, the mutant goes first

        with open(scratch / "output", "w+b") as out:
            process = subprocess.Popen(test.command, cwd=self.plain, env=environment, stdout=out,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=limits,
                                       start_new_session=True)
            try:
                status = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                status = None
            out.seek(0)
            output = out.read(4 << 20).decode(errors="replace")
        if status is None:
            return f"no end within {limit:.0f} s", output
        if test.expected:
            return ("" if re.search(test.expected, output) else "another output"), output
        return ("" if status == 0 else f"signal {-status}" if status < 0 else f"exit status {status}"), output

    def baseline(self, tests: list[Test]) -> tuple[list[Test], list[str]]:
        """Runs all tests unmutated: their seconds, and which mutants each reaches. Returns also those that fail."""
        failing = []

        def first(test: Test) -> bool:
            file = self.work / f"reached-{test.name}"
            file.unlink(missing_ok=True)
            start = time.monotonic()
            ended, output = self.call(test, -1, 600, file)
            test.seconds = time.monotonic() - start
            test.reached = frozenset(n for n, seen in enumerate(file.read_bytes()) if seen)
            if ended:
                failing.append(test.name)
                say(f"  {test.name} fails without a mutant ({ended}) and is left out: {failed_case(output)}")
            return not ended

        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            passed = [test for test, good in zip(tests, pool.map(first, tests)) if good]
        return passed, failing

    def judge(self, number: int, mutant: Mutant, tests: list[Test], show: bool = False) -> dict:
        """Runs the tests that reach the mutant, those of its own folder first, quick ones first, until one fails."""
        folders = Path(mutant.file).parts
        label = "cpu_device" if "cpu_device" in folders else folders[1][:2] if folders[0] == "steps" else "common"
        reaching = sorted((t for t in tests if number in t.reached), key=lambda t: (label not in t.labels, t.seconds))
        start = time.monotonic()
        verdict = {"killed_by": None, "case": None, "how": "survived" if reaching else "not reached"}
        for test in reaching:
            ended, output = self.call(test, number, 8 + 6 * test.seconds)
            if ended:
                verdict = {"killed_by": test.name, "case": failed_case(output), "how": ended}
                if show:
                    print(output)
                break
        verdict["seconds"] = round(time.monotonic() - start, 1)
        return verdict


def failed_case(output: str) -> str | None:
    """The doctest case in which the output ends, without what follows the first error."""
    error = re.search(r"(?:ERROR|FATAL|exception|Falsifiable)", output)
    cases = re.findall(r"^TEST CASE:\s+(.*)$", output[:error.end()] if error else output, flags=re.M)
    return cases[-1].strip() if cases else None


# Results.

def known_survivors() -> dict[tuple, dict]:
    if not EQUIVALENT.exists():
        return {}
    entries = tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])
    for e in entries:
        if e["verdict"] not in VERDICTS or not e["reason"]:
            raise SweepError(f"{EQUIVALENT.name}: {e['original']}: needs a verdict of {VERDICTS} and a reason")
    return {(e["file"], e["line"], e["operator"], e["original"], e["mutated"]): e for e in entries}


VERDICT_FIELDS = ("killed_by", "case", "how", "seconds")


def entry(number: int, mutant: Mutant, verdict: dict) -> dict:
    verdict = {k: verdict[k] for k in VERDICT_FIELDS}
    known = known_survivors().get(mutant.key) if verdict["killed_by"] is None else None
    line = {"id": number, "at": f"{mutant.file}:{mutant.line}", "operator": mutant.operator,
            "original": mutant.original, "mutated": mutant.mutated, "line": mutant.line_text, **verdict}
    return line | ({"known": known["verdict"], "reason": known["reason"]} if known else {})


def one_line(e: dict) -> str:
    end = f"killed by {e['killed_by']}: {e['case'] or e['how']}" if e["killed_by"] else e["how"]
    if "known" in e:
        end += f" ({e['known']}: {e['reason']})"
    return f"{e['id']:4} {e['at']}  {e['operator']}: {e['original']}  ->  {e['mutated']}  |  {end}"


def report(result: dict) -> str:
    rows = []
    for title, group in (("directory", lambda e: str(Path(e["at"]).parent)), ("operator", lambda e: e["operator"])):
        table = collections.defaultdict(collections.Counter)
        for e in result["mutants"]:
            state = "killed" if e["killed_by"] else "known" if "known" in e else "open"
            table[group(e)][state] += 1
            table["all"][state] += 1
        rows.append(f"{title:26} {'mutants':>8} {'killed':>8} {'survived, known':>16} {'survived, open':>15}")
        rows += [f"{name:26} {sum(c.values()):8} {c['killed']:8} {c['known']:16} {c['open']:15}"
                 for name, c in sorted(table.items(), key=lambda item: (item[0] == "all", item[0]))]
        rows.append("")
    rows += [one_line(e) for e in result["mutants"] if not e["killed_by"]]
    return "\n".join(rows)


def skeletons(result: dict) -> str:
    """An entry of sweep_equivalent.toml for each open survivor; a person writes its verdict and its reason."""
    entries = []
    for e in result["mutants"]:
        if not e["killed_by"] and "known" not in e:
            values = {"file": e["at"].rsplit(":", 1)[0], "line": e["line"], "operator": e["operator"],
                      "original": e["original"], "mutated": e["mutated"], "verdict": "", "reason": ""}
            entries.append("\n[[mutant]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in values.items()))
    return "".join(entries)


def write_result(path: Path, head: dict, entries: list[dict]):
    lines = ",\n".join("  " + json.dumps(e) for e in sorted(entries, key=lambda e: e["id"]))
    path.write_text(json.dumps(head, indent=1)[:-2] + ',\n "mutants": [\n' + lines + "\n]}\n")


def commit() -> str:
    head = run(["git", "rev-parse", "HEAD"], cwd=ROOT).stdout.strip()
    return head + (" and edits" if run(["git", "status", "--porcelain", "-uno"], cwd=ROOT).stdout.strip() else "")


def sweep(options) -> dict:
    work = (ROOT / "build" / f"sweep-{options.seed}").resolve()
    work.mkdir(parents=True, exist_ok=True)
    build, seconds, start = Build(work), {}, time.monotonic()

    def stage(name: str):
        nonlocal start
        seconds[name] = round(time.monotonic() - start)
        start = time.monotonic()
        say(f"{name}: {seconds[name]} s")

    state, journal = work / "state.json", work / "journal.jsonl"
    if options.resume or options.mutant:
        if not state.exists():
            raise SweepError(f"nothing to go on with: {state} is missing")
        saved = json.loads(state.read_text())
        head, seconds = saved["head"], saved["head"]["seconds"]
        mutants = {int(n): Mutant(**{**m, "edits": tuple(operators.Edit(**e) for e in m["edits"])})
                   for n, m in saved["mutants"].items()}
        tests = [Test(**{**t, "reached": frozenset(t["reached"])}) for t in saved["tests"]]
    else:
        found = all_candidates([options.only] if options.only else list(files()))
        drawn = draw_mutants(found, min(round(options.count * SPARE), MOST), options.seed)
        mutants = dict(enumerate(drawn, start=1))
        stage("candidates")
        if options.list:
            for number, m in mutants.items():
                print(f"{number:4} {m.file}:{m.line}  {m.operator}: {m.original}  ->  {m.mutated}")
            return {}
        journal.unlink(missing_ok=True)
        state.unlink(missing_ok=True)
        copy_tree(build.plain)
        copy_tree(build.tree)
        build.write(mutants)
        gone = build.check_syntax(mutants)
        stage("syntax")
        say(f"  {len(mutants)} drawn, {len(gone)} do not compile")
        build.configure()
        gone |= build.compile({n: m for n, m in mutants.items() if n not in gone})
        stage("build")
        tests, failing = build.baseline(build.tests())
        stage("tests, unmutated")
        mutants = dict([(n, m) for n, m in mutants.items() if n not in gone][:options.count])
        switched = [not m.compile_time for of_file in found.values() for m in of_file]
        head = {"commit": commit(), "seed": options.seed, "count": len(mutants), "only": options.only,
                "seconds": seconds, "tests": len(tests), "tests_left_out": failing, "do_not_compile": len(gone),
                "candidates": sum(switched), "left_out_compile_time": len(switched) - sum(switched),
                "left_out_files": LEFT_OUT}
        state.write_text(json.dumps({"head": head, "mutants": {n: asdict(m) for n, m in mutants.items()},
                                     "tests": [{**vars(t), "reached": sorted(t.reached)} for t in tests]}))
    if options.mutant:
        if options.mutant not in mutants:
            raise SweepError(f"--mutant is {options.mutant}: not of this draw, or it does not compile")
        verdict = build.judge(options.mutant, mutants[options.mutant], tests, show=True)
        print(one_line(entry(options.mutant, mutants[options.mutant], verdict)))
        return {}
    lines = map(json.loads, journal.read_text().splitlines() if journal.exists() else [])
    verdicts = {v["id"]: entry(v["id"], mutants[v["id"]], v) for v in lines}  # with reasons that were written since
    lock = threading.Lock()

    def work_on(number: int):
        e = entry(number, mutants[number], build.judge(number, mutants[number], tests))
        with lock:
            verdicts[number] = e
            with journal.open("a") as out:
                out.write(json.dumps(e) + "\n")
            print(f"{len(verdicts)}/{len(mutants)} {one_line(e)}"[:220], flush=True)

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(work_on, [n for n in mutants if n not in verdicts]))
    stage("mutants")
    name = f"{datetime.date.today()}-mutation-sweep-seed{options.seed}.json"
    path = work / name if head["only"] else ROOT / "docs" / "results" / name
    write_result(path, head, list(verdicts.values()))
    say(f"written: {path}")
    return {**head, "mutants": sorted(verdicts.values(), key=lambda e: e["id"])}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="mutants to run")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--only", metavar="FILE", help="draw from this file; the result stays in the build folder")
    parser.add_argument("--mutant", type=int, metavar="ID", help="run this one again and show the test's output")
    parser.add_argument("--list", action="store_true", help="show the draw and stop")
    parser.add_argument("--resume", action="store_true", help="go on where this sweep was stopped")
    parser.add_argument("--report", metavar="RESULT", help="print the totals of a result and stop")
    parser.add_argument("--skeletons", action="store_true",
                        help="with --report: entries of sweep_equivalent.toml for the survivors that are open")
    options = parser.parse_args()
    try:
        if options.only and options.only not in files():
            raise SweepError(f"--only is {options.only}: not a file that is mutated")
        result = json.loads(Path(options.report).read_text()) if options.report else sweep(options)
        if result:
            print(skeletons(result) if options.skeletons else report(result))
    except (SweepError, ValueError, OSError) as error:
        print(f"sweep.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
