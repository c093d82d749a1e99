#!/usr/bin/env python3
"""What became of each kernel: registers, spills, shared memory, occupancy, and the instructions that matter.

    cmake --build --preset cuda --target kernel_record
    tests/gpu/kernels.py --out docs/results/DATE-DEVICE-kernels.txt

runs build/cuda/tests/kernel_record, which lists the kernels of steps/, and cuobjdump over it, and prints a table for each.
Exit status 1 when a kernel spills, 2 when the record could not be made. With --check-list nothing is run: the exit status
is 1 when a kernel of steps/ is missing in kernels.cu, or one there is missing in steps/. A test calls that.
"""
import argparse
import collections
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = "tests/gpu/kernels.cu"
FIELDS = ("mangled", "shape", "threads", "registers", "local", "static", "dynamic", "blocks", "warps", "most_warps")


class NoRecord(Exception):
    """Why there is no record, in a line."""


# --- The list: every kernel of steps/, by name ---

def without_comments(source):
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)


def kernel_names(source):
    """The names after __global__, whatever attributes stand between: __launch_bounds__(...) can hold parentheses."""
    names = []
    source = without_comments(source)
    for start in re.finditer(r"\b__global__\b", source):
        rest = source[start.end():]
        while True:
            word = re.match(r"\s*(\w+)\s*", rest)
            if not word:
                raise NoRecord(f"cannot read what follows __global__: {rest[:60]!r}")
            rest = rest[word.end():]
            is_attribute = word[1].startswith("__")
            if rest.startswith("(") and not is_attribute:
                names.append(word[1])
                break
            if rest.startswith("("):
                depth = 0
                for end, character in enumerate(rest):
                    depth += {"(": 1, ")": -1}.get(character, 0)
                    if depth == 0:
                        break
                rest = rest[end + 1:]
    return names


def check_list(root=ROOT):
    """What is wrong with the list of kernels.cu, a line for each."""
    there = set()
    for path in sorted(root.glob("steps/*/**/*.cu*")):
        if path.name == "bench.cu":  # its kernels are not the rung's
            continue
        number = path.relative_to(root / "steps").parts[0][:2]
        there |= {f"step{number}::{name}" for name in kernel_names(path.read_text())}
    listed = set(re.findall(r"\bstep\d\d::\w+_kernel\b", without_comments((root / LIST).read_text())))
    if not there:
        return ["steps/ has no kernel at all: this script does not read it right"]
    return ([f"{name} of steps/ is not in {LIST}" for name in sorted(there - listed)] +
            [f"{name} of {LIST} is not in steps/" for name in sorted(listed - there)])


# --- What cuobjdump says ---

def of_architecture(text, architecture):
    """The parts of cuobjdump's output that are about one architecture; all of it where it names none (a cubin)."""
    parts = re.split(r"^(?=Fatbin (?:elf|ptx) code:)", text, flags=re.MULTILINE)
    def wanted(part):
        named = re.search(r"^arch = (\w+)", part, flags=re.MULTILINE)
        return not named or re.fullmatch(architecture + "[af]?", named[1])
    return "".join(part for part in parts if wanted(part))


def resource_usage(text):
    """{mangled name: {"REG": 20, "STACK": 0, ...}} of `cuobjdump -res-usage`."""
    usage = {}
    for name, line in re.findall(r"^\s*Function\s+(\S+?):\s*\n\s*(\S[^\n]*)$", text, flags=re.MULTILINE):
        usage[name] = {key: int(value) for key, value in re.findall(r"([A-Z]+(?:\[\d+\])?):(\d+)", line)}
    return usage


INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)")


def opcodes(text):
    """{mangled name: Counter of opcodes} of `cuobjdump -sass`."""
    functions, current = {}, None
    for line in text.splitlines():
        head = re.match(r"\s*Function\s*:\s*(\S+)", line)
        if head:
            current = functions.setdefault(head[1], collections.Counter())
        elif current is not None and (instruction := INSTRUCTION.match(line)):
            current[instruction[1]] += 1
    return functions


MEMORY = {"LDG": "global", "STG": "global", "LDGSTS": "global to shared", "ATOMG": "global", "RED": "global",
          "LDS": "shared", "STS": "shared", "LDSM": "shared", "ATOMS": "shared", "LDL": "local", "STL": "local"}
WIDTHS = ("128", "64", "U16", "S16", "U8", "S8")


def kind_of(opcode):
    """The row of the table that an opcode counts in, and the name it counts under; None for the others."""
    first, *rest = opcode.split(".")
    if first in MEMORY:
        width = next((w for w in WIDTHS if w in rest), "32")
        return MEMORY[first], ".".join([first] + (["E"] if "E" in rest else []) + ([] if width == "32" else [width]))
    if first in ("SHFL", "BAR", "WARPSYNC", "VOTE", "REDUX"):
        return "threads", first
    if first == "MUFU":
        return "arithmetic", ".".join([first] + rest[:1])
    if first in ("FFMA", "FADD", "FMUL", "FMNMX", "HMMA", "HGMMA"):
        return "arithmetic", first
    if first == "IMAD" and rest[:1] in (["WIDE"], ["HI"]):  # the products of Philox; addresses too
        return "arithmetic", f"IMAD.{rest[0]}"
    if first == "CALL":  # the slow path of a division
        return "control", first
    return None


ROWS = ("global", "global to shared", "shared", "local", "threads", "arithmetic", "control")


def instructions(counter):
    """{row: "LDG.E.128 2, STG.E.128 1"}, in the order of ROWS; rows without any are left out."""
    rows = {row: collections.Counter() for row in ROWS}
    for opcode, count in counter.items():
        if kind := kind_of(opcode):
            rows[kind[0]][kind[1]] += count
    return {row: ", ".join(f"{name} {count}" for name, count in sorted(names.items()))
            for row, names in rows.items() if names}


# --- The record ---

def parse_list(text):
    """(facts, kernels) of what kernel_record prints."""
    facts, kernels = {}, []
    for line in text.splitlines():
        kind, *fields = line.split("\t")
        if kind == "fact" and len(fields) == 2:
            facts[fields[0]] = fields[1]
        elif kind == "kernel" and len(fields) == len(FIELDS):
            kernel = dict(zip(FIELDS, fields))
            kernels.append(kernel | {key: int(kernel[key]) for key in FIELDS[2:]})
        else:
            raise NoRecord(f"kernel_record printed what is no record: {line!r}")
    if not kernels:
        raise NoRecord("kernel_record listed no kernel")
    return facts, kernels


def spills(kernel, usage, counter):
    local = [opcode for opcode in counter if opcode.split(".")[0] in ("LDL", "STL")]
    return kernel["local"] > 0 or usage.get("LOCAL", 0) > 0 or bool(local)


def table(kernel, name, usage, counter):
    """The lines about one kernel."""
    def count(opcode):
        return sum(n for each, n in counter.items() if each.split(".")[0] == opcode)
    by_cuobjdump = usage.get("REG", kernel["registers"])
    lines = [
        name,
        f"  {'shape':17} {kernel['shape']}; blocks of {kernel['threads']} threads",
        f"  {'registers':17} {kernel['registers']}" + (f" ({by_cuobjdump} by cuobjdump)" if by_cuobjdump != kernel["registers"] else ""),
        f"  {'spills':17} {'YES' if spills(kernel, usage, counter) else 'none'}: stack {usage.get('STACK', 0)}, local "
        f"{kernel['local']} bytes; LDL {count('LDL')}, STL {count('STL')}",
        f"  {'shared memory':17} {kernel['static']} bytes static, {kernel['dynamic']} dynamic",
        f"  {'occupancy':17} {kernel['warps'] / kernel['most_warps']:.2f}: {kernel['blocks']} blocks of a multiprocessor, "
        f"{kernel['warps']} of {kernel['most_warps']} warps"]
    lines += [f"  {row:17} {text}" for row, text in instructions(counter).items()]
    return "\n".join(lines) + f"\n  {'in all':17} {sum(counter.values())} instructions\n"


def record(facts, kernels, usage, sass, names):
    """(the text of all tables, the names of kernels that spill)."""
    tables, spilling = [], []
    for kernel in kernels:
        mangled = kernel["mangled"]
        if mangled not in usage or not sass.get(mangled):
            raise NoRecord(f"cuobjdump says nothing of {mangled}")
        name = names.get(mangled, mangled)
        tables.append(table(kernel, name, usage[mangled], sass[mangled]))
        if spills(kernel, usage[mangled], sass[mangled]):
            spilling.append(name)
    return "\n".join(tables), spilling


def tool(name):
    for folder in (None, os.path.dirname(os.environ.get("CUDACXX", "")), "/usr/local/cuda/bin"):
        if found := shutil.which(name, path=folder or None):
            return found
    return None


def output_of(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        raise NoRecord(f"{shlex.join(map(str, command))} ended with {error.returncode}: {error.stderr.strip()}") from None
    except OSError as error:
        raise NoRecord(f"{command[0]}: {error.strerror}") from None


def demangled(mangled):
    filt = tool("cu++filt") or tool("c++filt")
    if not filt:
        return {}
    names = output_of(filt, *mangled).splitlines()
    # "void step01::vector_add_kernel<256>(float const*, ...)" -> "step01::vector_add_kernel<256>"
    short = [re.sub(r"\((?:int|bool)\)", "", name).removeprefix("void ").partition("(")[0] for name in names]
    return dict(zip(mangled, short)) if len(short) == len(mangled) else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check-list", action="store_true", help="only compare the list with steps/")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/cuda/tests/kernel_record")
    parser.add_argument("--out", type=pathlib.Path, help="where the record goes too")
    arguments = parser.parse_args()
    try:
        complaints = check_list()
        if complaints or arguments.check_list:
            print("\n".join(complaints) or f"{LIST} lists every kernel of steps/")
            return 1 if complaints else 0
        cuobjdump = tool("cuobjdump")
        if not cuobjdump:
            raise NoRecord("cuobjdump not found: it is part of the CUDA toolkit")
        facts, kernels = parse_list(output_of(arguments.program))
        architecture = re.search(r"\bsm_\d+", facts.get("device", ""))
        if not architecture:
            raise NoRecord("kernel_record does not say which architecture the device has")
        usage = resource_usage(of_architecture(output_of(cuobjdump, "-res-usage", arguments.program), architecture[0]))
        sass = opcodes(of_architecture(output_of(cuobjdump, "-sass", arguments.program), architecture[0]))
        names = demangled([kernel["mangled"] for kernel in kernels])
        version = re.search(r"V[\d.]+", output_of(cuobjdump, "--version"))
        text, spilling = record(facts, kernels, usage, sass, names)
    except NoRecord as error:
        print(f"kernels.py: error: {error}", file=sys.stderr)
        return 2
    verdict = f"{len(kernels)} kernels, {len(spilling)} of them spill" + "".join(f"\n  {name}" for name in spilling)
    text = (f"{datetime.date.today().isoformat()}, {facts['device']}, CUDA {facts.get('cuda_of_the_build', 'unknown')}, "
            f"cuobjdump {version[0] if version else 'unknown'}\ntests/gpu/kernels.py\n\n{text}\n{verdict}\n")
    print(text, end="")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text)
    return 1 if spilling else 0


if __name__ == "__main__":
    sys.exit(main())
