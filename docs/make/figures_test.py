#!/usr/bin/env python3
"""figures.py notices a planted figure of each kind, and finds the right ones in the results that it should."""
import json
import pathlib
import tempfile
import unittest

import figures

TEXT = """NVIDIA H200
== 02_relu_dropout
  kernel                       predicted    measured   ratio
  relu_dropout                  125.9 us    423.7 us    3.37
  plain, in GB/s:  3983 1,517
== 04_softmax_fixed
  softmax                       126.0 us    182.6 us    1.45   times_the_loop=2.08768
"""
SETTINGS = {"benchmarks": [{"rung": "02", "median_us": 558.11, "GBps": 3847.76, "share": 0.9018}], "count": 77}
CLEAN = """A kernel took 423.7 us and 3.37 times as long; at 3983 GB/s in place of 1517, or 3848 GB/s: 0.902 of a copy.
"""


class FiguresTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        (folder / "2026-01-01-programs.txt").write_text("softmax 190.1 us")
        (folder / "2026-01-02-programs.txt").write_text(TEXT)
        (folder / "2026-01-02-settings.json").write_text(json.dumps(SETTINGS))
        self.results = figures.Results(folder)

    def problems(self, text, path="README.md", exempt=""):
        return figures.check({path: text}, self.results, exempt)[0]

    def test_a_derivation_is_worked_out_again(self):
        right = "It has 3907 * 256 - 1,000,003 = 189 of them, and 1 - 1.48 / 4 = 0.63; n + 2 * 3 = 7.\n"
        self.assertEqual(self.problems(right), [])
        self.assertEqual(self.problems("One,\nand (3907 * 256 -\n1,000,003 = 253).\n"),
                         ["README.md:2: 3907 * 256 - 1,000,003 = 253: it is 189"])
        self.assertEqual(len(self.problems("A part of 1 - 1.48 / 4 = 0.64.\n")), 1)

    def test_measured_figures_pass(self):
        self.assertEqual(figures.check({"README.md": CLEAN}, self.results, ""), ([], 6))
        self.assertEqual(self.problems("It took 0.5581 ms, at 3.848 TB/s.\n"), [])
        self.assertEqual(self.problems("From 1517 to\n3983 GB/s, and 2.1 times the loop.\n"), [])

    def test_each_figure_changed_by_one_digit_fails(self):
        for right, wrong in (("423.7", "423.8"), ("3.37", "3.38"), ("3983", "3984"), ("1517", "1518"), ("3848", "3849"),
                             ("0.902", "0.903")):
            planted = self.problems(CLEAN.replace(right, wrong))
            self.assertEqual(len(planted), 1, planted)
            self.assertIn(f"README.md:1: {wrong}", planted[0])

    def test_a_printed_number_is_not_rounded_further(self):
        self.assertEqual(len(self.problems("It took 424 us.\n")), 1)

    def test_the_kind_counts(self):
        self.assertEqual(len(self.problems("It reached 423.7 GB/s.\n")), 1)  # those were microseconds
        self.assertEqual(len(self.problems("It took 3848 us.\n")), 1)  # that was GB/s
        self.assertEqual(len(self.problems("It took 77 us.\n")), 1)  # that was a count

    def test_the_rung_counts(self):
        self.assertEqual(self.problems("It took 182.6 us.\n", "steps/04_softmax_fixed/README.md"), [])
        self.assertEqual(len(self.problems("It took 182.6 us.\n", "steps/02_relu_dropout/README.md")), 1)
        self.assertEqual(len(self.problems("At 3848 GB/s.\n", "docs/pages/rung_04.md")), 1)

    def test_a_second_ratio_of_a_sentence_counts(self):
        self.assertEqual(len(self.problems("It took 3.37 times the prediction, the variant 1.23.\n")), 1)
        self.assertEqual(self.problems("It took 3.37 times the prediction, the variant 1.45.\n"), [])

    def test_an_older_result_counts_where_it_is_linked(self):
        self.assertEqual(len(self.problems("It took 190.1 us.\n")), 1)
        self.assertEqual(self.problems("It took 190.1 us ([then](docs/results/2026-01-01-programs.txt)).\n"), [])

    def test_the_result_that_a_sentence_names_counts(self):
        link = "([settings](docs/results/2026-01-02-settings.json))"
        self.assertEqual(self.problems(f"At 3848 GB/s {link}. It took 423.7 us.\n"), [])
        self.assertEqual(len(self.problems(f"It took 423.7 us {link}.\n")), 1)

    def test_what_is_no_prose_does_not_count(self):
        self.assertEqual(self.problems("```\n9 us\n```\n\n    9 us\n\n<!-- 9 us -->\n`9 us`\n"
                                       "<!-- bench: all -->\n9 us\n<!-- end of bench -->\n"), [])
        self.assertEqual(len(self.problems("`code` and then\n9 us, in a line that begins with code.\n\n`code` takes 8 us.\n")), 2)

    def test_exemptions(self):
        line = "README.md | 9 us | by definition\n"
        self.assertEqual(self.problems("It is 9 us.\n", exempt=line), [])
        self.assertIn("has no figure '9 us'", self.problems("Nothing.\n", exempt=line)[0])
        self.assertIn("has no figure", self.problems("It took 423.7 us.\n", exempt="README.md | 423.7 us | needless\n")[0])
        self.assertEqual(len(self.problems("It is 9 us.\n", exempt="README.md | 9 us |\n")), 2)


if __name__ == "__main__":
    unittest.main()
