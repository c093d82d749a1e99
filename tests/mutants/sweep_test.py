#!/usr/bin/env python3
"""The operators find what they should in a small source, and each of their edits does what it says once switched on.

Exit status 77, which ctest reports as skipped, where a sweep cannot be: without g++, libclang's Python bindings or an
x86-64.
"""

import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import sweep_operators
except ImportError:
    print("skipped: Debian's python3-clang is not installed")
    sys.exit(77)
if not shutil.which("g++") or platform.machine() != "x86_64":
    print("skipped: a sweep needs g++ and an x86-64")
    sys.exit(77)
import sweep

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = """#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
template <int N> int same(int x) { return x; }
constexpr int WIDTH = 4;
static_assert(WIDTH + 1 == 5);
inline int log_of(int value, bool loud = false) { return loud ? value + 1 : value; }
inline int minus(int a, int b) { return a - b; }
constexpr int half(int n) { return n / 2; }
static_assert(half(6) == 3);
struct Box { int kept = 5; int take() { return std::exchange(kept, 0); } };

float largest(const float* values, int64_t n) {  // a comment with a < b
  float best = -INFINITY;
  for (int64_t i = 0; i < n;
       ++i)
    best = std::max(best, values[i]);
  return best;
}
int64_t offset(int64_t row, int64_t stride) { return row * stride; }
int64_t many(int n) {
  int64_t total = 0;
  if (n > 2 && n < 8) total += log_of(n, true);
  total = total + minus(n, 1) + same<3>(half(n));
  return total;
}
"""
MAIN = """
#include <cstdio>
#include "source.hpp"
int main() {
  const float values[] = {-4, -2, -3, 5};
  Box box;
  const int taken = box.take() + 10 * box.take();
  std::printf("%g %lld %lld %lld %d", largest(values, 3), (long long)offset(1LL << 31, 2), (long long)many(5),
              (long long)many(8), taken);
}
"""
RIGHT = "-2 4294967296 12 11 5"
# operator, original, mutated, and what the program then prints
EXPECTED = {
    ("identity", "-INFINITY", "0.0f"): "0 4294967296 12 11 5",
    ("identity", "-INFINITY", "-1e30f"): RIGHT,
    ("relation", "i < n", "i <= n"): "5 4294967296 12 11 5",
    ("relation", "n < 8", "n <= 8"): "-2 4294967296 12 20 5",
    ("min/max", "std::max(best, values[i])", "std::min(best, values[i])"): "-inf 4294967296 12 11 5",
    ("width", "row * stride", "static_cast<long>(static_cast<int>(row * stride))"): "-2 0 12 11 5",
    ("arithmetic", "row * stride", "row + stride"): "-2 2147483650 12 11 5",
    ("logic", "n > 2 && n < 8", "(n > 2) || (n < 8)"): "-2 4294967296 12 20 5",
    ("condition deleted", "n > 2 && n < 8", "n > 2"): "-2 4294967296 12 20 5",
    ("statement deleted", "total += log_of(n, true)", "(nothing)"): "-2 4294967296 6 11 5",
    ("default taken", "log_of(n, true)", "log_of(n)"): "-2 4294967296 11 11 5",
    ("argument dropped", "n", "static_cast<int>(0)"): None,
    ("arguments swapped", "n, 1", "1, n"): "-2 4294967296 4 -3 5",
    ("arithmetic", "n / 2", "n * 2"): "-2 4294967296 20 23 5",
    ("state kept", "std::exchange(kept, 0)", "kept"): "-2 4294967296 12 11 55",
    ("constant", "1", "1 + 1"): None,
    ("constant", "true", "false"): "-2 4294967296 11 11 5",
}


class SweepTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        (cls.folder / "source.hpp").write_text(SOURCE)
        (cls.folder / "main.cpp").write_text(MAIN)
        cls.found = sweep_operators.candidates(str(cls.folder / "source.hpp"), "source.hpp", "#include <cstdint>",
                                               [f"-I{cls.folder}"])

    def program(self, mutants):
        text, _ = sweep_operators.instrument(SOURCE, mutants)
        self.assertEqual(text.count("\n"), SOURCE.count("\n"))  # lines keep their numbers
        (self.folder / "source.hpp").write_text(text)
        program = self.folder / "program"
        subprocess.run(["g++", "-std=c++20", "-O1", "-w", "-include", HERE / "sweep_switch.hpp", "-o", program,
                        self.folder / "main.cpp", HERE / "sweep_switch.cpp"], check=True)
        return lambda number, **more: subprocess.run(
            [program], env={"LADDER_SWEEP_MUTANT": str(number), **more}, capture_output=True, text=True).stdout

    def test_each_operator_and_what_its_edit_does(self):
        switched = {(m.operator, m.original, m.mutated): m for m in reversed(self.found) if not m.compile_time}
        self.assertEqual([key for key in EXPECTED if key not in switched], [])
        mutants = {number: switched[key] for number, key in enumerate(EXPECTED, start=1)}
        run = self.program(mutants)
        self.assertEqual(run(0), RIGHT)
        for number, (key, output) in enumerate(EXPECTED.items(), start=1):
            with self.subTest(key):
                if output is None:
                    self.assertNotEqual(run(number), RIGHT)
                else:
                    self.assertEqual(run(number), output)

    def test_what_is_reached_is_noted(self):
        by_line = {m.line_text: m for m in self.found if not m.compile_time and m.operator in ("constant", "width")}
        mutants = {7: by_line["total += log_of(n, true);"]} if "total += log_of(n, true);" in by_line else {}
        mutants[9] = next(m for m in self.found if m.original == "row * stride" and m.operator == "width")
        mutants[11] = next(m for m in self.found if m.original == "value + 1")
        reached = self.folder / "reached"
        self.program(mutants)(-1, LADDER_SWEEP_REACHED=str(reached))
        self.assertEqual([n for n, seen in enumerate(reached.read_bytes()) if seen], sorted(mutants))

    def test_all_edits_compile_or_are_blamed(self):
        """Whatever g++ refuses is found by its place, and the rest gives the right output unmutated."""
        build = sweep.Build(self.folder)
        mutants = {n: m for n, m in enumerate((m for m in self.found if not m.compile_time), start=1)}
        for _ in range(5):
            build.places["source.hpp"] = sweep_operators.instrument(SOURCE, mutants)
            (self.folder / "source.hpp").write_text(build.places["source.hpp"][0])
            done = sweep.run(["g++", "-std=c++20", "-w", "-fsyntax-only", "-include", HERE / "sweep_switch.hpp",
                              "main.cpp"], cwd=self.folder)
            gone = build.blamed(done.stdout)
            if done.returncode == 0:
                break
            self.assertTrue(gone, done.stdout)
            mutants = {n: m for n, m in mutants.items() if n not in gone}
        self.assertGreater(len(mutants), 60)
        self.assertEqual(self.program(mutants)(0), RIGHT)

    def test_what_only_the_compiler_evaluates_is_left_out(self):
        left_out = {m.original for m in self.found if m.compile_time}
        for original in ("4", "WIDTH + 1 == 5", "3", "false", "half(6) == 3"):
            self.assertIn(original, left_out)
        self.assertNotIn("3", {m.original for m in self.found if not m.compile_time})

    def test_a_draw_repeats_and_is_stratified(self):
        names = sorted(sweep.files())
        found = {f: [m for m in self.found] for f in names}
        first, second = (sweep.draw_mutants(found, 90, 3) for _ in range(2))
        self.assertEqual(first, second)
        self.assertEqual(len(first), 90)
        self.assertNotEqual(first, sweep.draw_mutants(found, 90, 4))

    def test_known_survivors_still_stand_in_their_files(self):
        for file, line, _, original, _ in sweep.known_survivors():
            with self.subTest(file=file, original=original):
                self.assertIn(line, [text.strip() for text in (sweep.ROOT / file).read_text().split("\n")])

    def test_the_case_that_failed(self):
        output = "TEST CASE:  first\n\n1: MESSAGE: x\n===\nTEST CASE:  second\n\n2: ERROR: y\nTEST CASE:  z\n"
        self.assertEqual(sweep.failed_case(output), "second")
        self.assertIsNone(sweep.failed_case("nothing"))


if __name__ == "__main__":
    unittest.main()
