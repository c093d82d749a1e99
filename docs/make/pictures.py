#!/usr/bin/env python3
"""Draws the pictures of docs/pictures/ that the READMEs show: what a rung's kernel touched, by its own --picture option.

--write draws them anew, --check compares them with a fresh run, byte for byte, and looks whether each is shown in the
README that is meant to show it. The rungs' programs are looked for in the folder of --build: a build for the CPU device,
with its checks.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/pictures"
SECONDS_FOR_A_RUN = 120

# (picture, program, its options, the READMEs that show it)
DRAWN = (
    ("01_four_blocks", "01_vector_add", "--n 1000", ("steps/01_vector_add",)),
    ("02_one_trip", "02_relu_dropout", "--n 700", ("steps/02_relu_dropout",)),
    ("03_three_rows", "03_softmax_buggy", "--rows 3 --cols 2000", (".", "steps/03_softmax_buggy")),
    ("04_three_rows", "04_softmax_fixed", "--rows 3 --cols 2000", ("steps/04_softmax_fixed",)),
    ("05_two_tiles", "05_attention", "--batch 1 --heads 1 --q-len 64 --k-len 24 --head-dim 32", ("steps/05_attention",)),
)


def draw(build, program, options, scratch):
    """The bytes of the picture, or an exception that says what went wrong."""
    file = scratch / "picture.svg"
    file.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    command = [str(build / program), *options.split(), "--picture", str(file)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_FOR_A_RUN)
    if done.returncode != 0 or not file.exists():
        raise RuntimeError(f"{program} {options} --picture: exit status {done.returncode}: {done.stderr.strip()}")
    return file.read_bytes()


def not_shown(name, folders):
    """The READMEs that have no link to the picture with a text for those who do not see it."""
    for folder in folders:
        readme = ROOT / folder / "README.md"
        link = os.path.relpath(PICTURES / f"{name}.svg", readme.parent)
        if f"]({link})" not in readme.read_text() or f"![]({link})" in readme.read_text():
            yield f"{readme.relative_to(ROOT)} does not show {link}, or gives no text in its place"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the folder with the rungs' programs")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="draw the pictures anew")
    action.add_argument("--check", action="store_true", help="write nothing; exit with 1 when a picture differs")
    arguments = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, program, options, folders in DRAWN:
            committed = PICTURES / f"{name}.svg"
            try:
                fresh = draw(arguments.build.resolve(), program, options, pathlib.Path(scratch))
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                problems.append(str(error))
                continue
            if arguments.write:
                PICTURES.mkdir(exist_ok=True)
                committed.write_bytes(fresh)
                continue
            if not committed.exists():
                problems.append(f"{committed.relative_to(ROOT)} does not exist")
            elif committed.read_bytes() != fresh:
                problems.append(f"{committed.relative_to(ROOT)} differs from what {program} {options} draws now")
            problems += not_shown(name, folders)
    drawn = {f"{name}.svg" for name, *_ in DRAWN}
    problems += [f"docs/pictures/{path.name}: nobody draws it" for path in sorted(PICTURES.glob("*")) if path.name not in drawn]
    print("\n".join(problems) or f"{len(DRAWN)} pictures " + ("drawn" if arguments.write else "equal a fresh run"))
    if problems and arguments.check:
        print("docs/make/pictures.py --write --build FOLDER draws them anew")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
