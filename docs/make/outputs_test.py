#!/usr/bin/env python3
"""outputs.py accepts an excerpt as it was printed, and refuses each way in which one goes stale."""
import pathlib
import tempfile
import unittest

import outputs

PROGRAM = """#!/bin/sh
echo "first line, 2 workers"
echo
echo "second   line: $#"
echo "third line in 0.52 s"
echo "to the other stream" >&2
exit 2
"""


class OutputsTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        program = pathlib.Path(self.scratch.name) / "05_attention"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        self.programs = outputs.Programs(pathlib.Path(self.scratch.name))

    def problems(self, text):
        return [problem for _, problem in outputs.check_page(text, self.programs)[0]]

    def fenced(self, body, marker="<!-- output of: ./climb 5 -->\n"):
        return self.problems(f"Text.\n\n{marker}```\n{body}\n```\n\nMore.\n")

    def test_what_was_printed_passes(self):
        self.assertEqual(self.fenced("first line, 2 workers\n\nsecond line: 0"), [])
        self.assertEqual(self.fenced("first line, 16 workers"), [])  # masked
        self.assertEqual(self.fenced("third line in 1.9 s\nto the other stream"), [])
        self.assertEqual(self.fenced("first line, 2 workers\n[...]\nthird line in 0.52 s"), [])
        self.assertEqual(self.problems("- A list:\n\n  <!-- output of: ./climb 5 a b -->\n\n      second line: 2\n\n  more\n"), [])

    def test_what_was_not_printed_fails(self):
        self.assertIn("third line", self.fenced("first line, 2 workers\nthird line in 0.52 s")[0])  # a line left out, unsaid
        self.assertIn("second line: 1", self.fenced("second line: 1")[0])
        self.assertIn("first line", self.fenced("third line in 0.52 s\n...\nfirst line, 2 workers")[0])  # another order
        self.assertIn("second line: 3", self.problems("<!-- output of: ./climb 5 a b -->\n\n    second line: 3\n")[0])
        self.assertEqual(len(self.fenced("")), 1)

    def test_an_output_without_a_marker_fails(self):
        self.assertIn("no marker", self.fenced("first line, 2 workers", "")[0])
        self.assertIn("no marker", self.problems("Text:\n\n    first line, 2 workers\n")[0])
        self.assertIn("no marker", self.problems("Text:\n\n    ./climb 5\n    first line\n")[0])

    def test_commands_and_code_need_none(self):
        self.assertEqual(self.problems("Run\n\n    ./climb 5      # text\n    A=\"b c\" tests/gpu/check.sh\n"), [])
        self.assertEqual(self.problems("```sh\nanything\n```\n```cpp\nint i;\n```\n"), [])
        self.assertEqual(self.problems("- an item\n    that goes on, which is no code\n"), [])

    def test_not_checked_needs_a_reason(self):
        self.assertEqual(self.fenced("anything", "<!-- not checked: a GPU printed it -->\n"), [])
        self.assertIn("for no reason", self.fenced("anything", "<!-- not checked: -->\n")[0])

    def test_markers_and_commands_that_lead_nowhere(self):
        self.assertIn("no code block", self.problems("<!-- output of: ./climb 5 -->\n\nText.\n")[0])
        self.assertIn("only ./climb N", self.fenced("a", "<!-- output of: ls -->\n")[0])
        self.assertIn("0 programs of rung 4", self.fenced("a", "<!-- output of: ./climb 4 -->\n")[0])


if __name__ == "__main__":
    unittest.main()
