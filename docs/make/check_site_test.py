#!/usr/bin/env python3
"""check_site.py finds each kind of problem in a small site made to have it, and none in a clean one.

Exit status 1 when a test fails, 77 when the browser's half could not run.
"""
import pathlib
import sys
import tempfile
import unittest

import check_site

PIXEL = ('<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10" viewBox="0 0 20 10">'
         '<rect width="20" height="10"/></svg>')
# Stands for MathJax: sets \( \) as it does, so far as the check looks.
SETTER = r"""
window.MathJax = {Hub: {Queue: f => setTimeout(f, 0)}};
document.addEventListener('DOMContentLoaded', () => {
  for (const p of document.querySelectorAll('p.formula')) {
    const source = p.textContent.trim().slice(2, -2);
    p.innerHTML = source.includes('\\bad')
      ? '<span class="MathJax_SVG"><span class="merror">Undefined control sequence</span></span><script type="math/tex"><\/script>'
      : '<span class="MathJax_SVG">set</span><script type="math/tex">' + source + '<\/script>';
  }
});
"""


def page(body, head=""):
    return ('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,"><title>t</title>'
            f'<meta name="viewport" content="width=device-width">{head}</head>'
            f'<body><div class="contents">{body}</div></body></html>')


def site_of(folder, body, head="", **others):
    (folder / "index.html").write_text(page(body, head))
    (folder / "other.html").write_text(page('<h2 id="there">There</h2><a name="named"></a>'))
    (folder / "p.svg").write_text(PIXEL)
    (folder / "set.js").write_text(SETTER)
    (folder / "book_pages.txt").write_text("index.html\n")
    for name, text in others.items():
        (folder / name.replace("_dot_", ".")).write_text(text)


CLEAN = ('<p>Text, and <code>\\(</code> in code.</p><a href="other.html#there">a</a><a href="other.html#named">b</a>'
         '<a href="#here">c</a><i id="here"></i><a href="https://example.org/x">d</a><img src="p.svg" alt="a picture">'
         '<p class="formula">\\(x^2\\)</p>')
CLEAN_HEAD = '<script src="set.js"></script>'


class Site(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def problems(self, body, head="", driver=None, **others):
        site_of(self.folder, body, head, **others)
        return check_site.check(self.folder, driver)[0]

    def assert_only(self, problems, *wanted):
        """Each problem has one of these texts in it, and each text is in a problem."""
        for text in wanted:
            self.assertTrue(any(text in problem for problem in problems), f"{text!r} in {problems}")
        for problem in problems:
            self.assertTrue(any(text in problem for text in wanted), f"{problem!r} was not expected")


class LinksTest(Site):
    def test_a_clean_site_passes_and_lists_what_is_elsewhere(self):
        site_of(self.folder, CLEAN, CLEAN_HEAD)
        problems, closing = check_site.check(self.folder)
        self.assertEqual(problems, [])
        self.assertIn("another site, not fetched: https://example.org/x", closing)
        self.assertEqual(closing[-1], "2 pages, 8 links, 1 to other sites: no problem")

    def test_missing_files(self):
        self.assert_only(self.problems('<a href="no.html">a</a>'), "does not exist: no.html")
        self.assert_only(self.problems('<img src="no.svg" alt="">'), "does not exist: no.svg")
        self.assert_only(self.problems('<img srcset="p.svg 1x, no2.svg 2x" alt="">'), "does not exist: no2.svg")
        self.assert_only(self.problems("", '<script src="no.js"></script>'), "does not exist: no.js")
        self.assert_only(self.problems("", s_dot_css="b { background: url('no.png') }"), "does not exist: no.png")

    def test_missing_fragments(self):
        self.assert_only(self.problems('<a href="other.html#nowhere">a</a>'), "other.html has no id or name for #nowhere")
        self.assert_only(self.problems('<a href="#nowhere">a</a>'), "index.html has no id or name for #nowhere")

    def test_links_that_only_this_machine_could_follow(self):
        self.assert_only(self.problems('<a href="file:///etc/hostname">a</a>'), "no link within the site")
        self.assert_only(self.problems('<a href="/other.html">a</a>'), "absolute path")
        self.assert_only(self.problems('<a href="../other.html">a</a>'), "leads out of the site")

    def test_what_needs_the_network(self):
        self.assert_only(self.problems("", '<script src="https://example.org/m.js"></script>'), "needs the network")
        self.assert_only(self.problems('<img src="//example.org/p.png" alt="">'), "needs the network")

    def test_the_list_of_pages(self):
        self.assert_only(self.problems("", book_pages_dot_txt="index.html\nno.html\n"), "book_pages.txt names no.html")
        self.assert_only(self.problems("", book_pages_dot_txt="\n"), "names no page")
        (self.folder / "book_pages.txt").unlink()
        self.assert_only(check_site.check(self.folder)[0], "book_pages.txt does not exist")

    def test_an_empty_folder_is_no_site(self):
        self.assertEqual(len(check_site.check(self.folder)[0]), 1)

    def test_a_group_of_the_reference_has_members(self):
        site_of(self.folder, CLEAN, CLEAN_HEAD)
        group = self.folder / "group__kernel.html"
        group.write_text(page(""))
        self.assert_only(check_site.check(self.folder)[0], "group__kernel.html: a group without members")
        group.write_text(page('<table><tr class="memitem:a1"><td>launch</td></tr></table>'))
        self.assertEqual(check_site.check(self.folder)[0], [])

    def test_listings_of_the_reference_are_no_pages_of_the_book(self):
        for name in ("launch_8hpp_source.html", "structladder_1_1View.html", "rung_01.html", "files.html"):
            (self.folder / name).write_text(page(""))
        self.assertEqual(check_site.book_pages(self.folder)[0], ["rung_01.html"])


class BrowserTest(Site):
    driver = None

    def in_browser(self, body, head="", **others):
        return self.problems(body, head, self.driver, **others)

    def test_a_clean_page_passes(self):
        self.assertEqual(self.in_browser(CLEAN, CLEAN_HEAD), [])

    def test_messages_on_the_console(self):
        self.assert_only(self.in_browser("<script>console.error('trouble')</script>"), "trouble")
        self.assert_only(self.in_browser("<script>nobody_defined_this()</script>"), "nobody_defined_this")

    def test_images(self):
        self.assert_only(self.in_browser('<img src="broken.svg" alt="">', broken_dot_svg="<svg"), "broken image: broken.svg")

    def test_width(self):
        self.assert_only(self.in_browser('<div style="width: 600px">a</div>'), "(390-light): scrolls sideways")
        self.assert_only(self.in_browser('<div style="width: 1400px">a</div>'),
                         "(1280-light, 1280-dark): scrolls sideways", "(390-light): scrolls sideways")
        self.assertEqual(self.in_browser('<div style="overflow-x: auto"><pre style="width: 1400px">a</pre></div>'), [])
        self.assert_only(self.in_browser('<pre style="width: 600px">a</pre>', "<style>html, body { overflow: hidden }</style>"),
                         "(390-light): sticks out of the screen: <pre>")

    def test_formulas(self):
        self.assert_only(self.in_browser("<p>\\(x\\)</p>"), "raw formula in the text", "0 formulas were set, the page has 1")
        self.assert_only(self.in_browser('<p class="formulaDsp">x</p>'), "formula not set: x")
        self.assert_only(self.in_browser("<p>The sum $$x$$</p>"), "raw formula in the text")
        self.assert_only(self.in_browser('<p class="formula">\\(\\bad\\)</p>', CLEAN_HEAD), "MathJax error: Undefined control")

    def test_requests(self):
        self.assert_only(self.in_browser("<script>fetch('http://192.0.2.1:9/x').catch(() => 0)</script>"),
                         "request to the network: http://192.0.2.1:9/x", "console")

    def test_a_theme_that_stays_light_in_the_dark(self):
        theme = '<link rel="stylesheet" href="doxygen-awesome.css">'
        self.assert_only(self.in_browser("", theme, **{"doxygen-awesome_dot_css": "body { background: #fff }"}),
                         "(1280-dark): the background is light, must be dark")
        dark = "body { background: #fff } @media (prefers-color-scheme: dark) { body { background: #111 } }"
        self.assertEqual(self.in_browser("", theme, **{"doxygen-awesome_dot_css": dark}), [])

    def test_screenshots(self):
        site_of(self.folder, '<div style="height: 3000px">a</div>', book_pages_dot_txt="index.html\n")
        shots = self.folder / "shots"
        shots.mkdir()
        self.assertEqual(check_site.check(self.folder, self.driver, shots)[0], [])
        heights = {p.name: int.from_bytes(p.read_bytes()[20:24], "big") for p in shots.iterdir()}  # as PNG says
        self.assertEqual(sorted(heights), [f"{page}-{screen}.png" for page in ("index", "other")
                                            for screen in ("1280-dark", "1280-light", "390-light")])
        self.assertTrue(all(3000 <= height < 3100 for name, height in heights.items() if name.startswith("index")), heights)


def main():
    check_site.selenium_elsewhere()
    skipped = None
    suite = unittest.TestSuite([unittest.defaultTestLoader.loadTestsFromTestCase(LinksTest)])
    try:
        BrowserTest.driver = check_site.start_browser()
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(BrowserTest))
    except check_site.NoBrowser as reason:
        skipped = reason
    try:
        if not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful():
            return 1
    finally:
        if BrowserTest.driver:
            BrowserTest.driver.quit()
    if skipped:
        print(f"skipped the browser's half: {skipped}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
