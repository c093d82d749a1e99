#!/usr/bin/env python3
"""Checks a built site: every link leads somewhere, and with --browser every page of the book opens as it should.

Links: each href, src, srcset and data of each page, and each url() of each style sheet, names a file of the site, and a
fragment an id or a name in it. Each group of the reference has members. Nothing may come from the network or from an absolute path. Links to other sites are
listed, never fetched.

The browser (headless Chromium, through selenium) opens each page at 1280 pixels in light and in dark and at 390 pixels:
no severe console message, no request to the network, no broken image, nothing wider than the screen, every formula set.
Opened is what is no listing of the reference. SITE/book_pages.txt, which site.py writes, names the pages of the book, one
a line: each must be there.

One line for each problem, then a summary. Exit status 1 when there was a problem, 77 when --browser has no browser.
"""
import argparse
import base64
import html.parser
import json
import os
import pathlib
import re
import shutil
import sys
import time
import urllib.parse

LISTINGS = re.compile(
    r"^(annotated|classes|hierarchy|files|functions.*|globals.*|namespaces|namespacemembers.*|dir_.*|class.*|struct.*|union.*"
    r"|namespace.*|graph_legend|.*_8[a-z]+(_source)?)\.html$")
TALLEST_SCREENSHOT = 6000
SECONDS_FOR_A_PAGE = 30
# (name, width, height, mobile, dark)
SCREENS = (("1280-light", 1280, 900, False, False), ("1280-dark", 1280, 900, False, True), ("390-light", 390, 844, True, False))

# Each attribute that names another file; `resource` is what a browser fetches by itself.
LINKS = {("a", "href"): False, ("area", "href"): False, ("link", "href"): True, ("script", "src"): True,
         ("img", "src"): True, ("img", "srcset"): True, ("source", "src"): True, ("source", "srcset"): True,
         ("iframe", "src"): True, ("embed", "src"): True, ("object", "data"): True, ("video", "src"): True,
         ("image", "href"): True, ("image", "xlink:href"): True, ("use", "href"): True, ("use", "xlink:href"): True}


class Page(html.parser.HTMLParser):
    """The links of a page, what may be linked to in it, its images and its formulas."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.links = []  # (line, tag, attribute, address, is it a resource)
        self.targets = set()
        self.images = 0
        self.formulas = 0
        self._verbatim = []  # open elements whose text is no formula
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.targets.add(value)
            if (tag, name) in LINKS and value is not None:
                line = self.getpos()[0]
                for address in addresses(name, value):
                    self.links.append((line, tag, name, address, LINKS[tag, name]))
        self.images += tag == "img"
        if tag in ("pre", "code", "script", "style", "textarea") or ("class", "fragment") in attributes:
            self._verbatim.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if self._verbatim and self._verbatim[-1] == tag:
            self._verbatim.pop()

    def handle_data(self, data):
        if not self._verbatim:
            self.formulas += len(re.findall(r"\\\(|\\\[|\\begin\{(?:align|equation|eqnarray|gather)\*?\}", data))


def addresses(attribute, value):
    if attribute == "srcset":
        return [part.split()[0] for part in value.split(",") if part.split()]
    return [value.strip()]


def empty_groups(site):
    """A group of the reference without a member: its headers were not read."""
    return [f"{page.name}: a group without members" for page in sorted(site.glob("group__*.html"))
            if 'class="memitem:' not in page.read_text(errors="replace")
            and 'id="groups"' not in page.read_text(errors="replace")]


class Links:
    """Follows the links of all pages of a site."""

    def __init__(self, site):
        self.site = site.resolve()
        self.pages = {path.resolve(): Page(path.read_text(errors="replace")) for path in sorted(site.rglob("*.html"))
                      if "mathjax" not in str(path.relative_to(site)).lower()}
        self.problems = []
        self.external = {}
        self.count = 0

    def check(self):
        for path, page in self.pages.items():
            for line, tag, attribute, address, resource in page.links:
                self.count += 1
                self._follow(path, f"{path.relative_to(self.site)}:{line}: <{tag} {attribute}>", address, resource)
        for path in sorted(self.site.rglob("*.css")):
            for address in re.findall(r"""url\(\s*["']?([^"')]+)["']?\s*\)""", path.read_text(errors="replace")):
                self.count += 1
                self._follow(path, f"{path.relative_to(self.site)}: url()", address.strip(), True)
        return self.problems

    def _follow(self, source, where, address, resource):
        parts = urllib.parse.urlsplit(address)
        if parts.scheme in ("http", "https") or address.startswith("//"):
            if resource:
                self.problems.append(f"{where} needs the network: {address}")
            else:
                self.external[address] = self.external.get(address, 0) + 1
            return
        if parts.scheme in ("data", "mailto", "javascript"):
            return
        if parts.scheme:
            self.problems.append(f"{where} is no link within the site: {address}")
            return
        if parts.path.startswith("/"):
            self.problems.append(f"{where} is an absolute path: {address}")
            return
        target = source
        if parts.path:
            target = (source.parent / urllib.parse.unquote(parts.path)).resolve()
            if not target.is_relative_to(self.site):
                self.problems.append(f"{where} leads out of the site: {address}")
                return
            if not target.is_file():
                self.problems.append(f"{where} does not exist: {address}")
                return
        elif address == "":
            if resource:
                self.problems.append(f"{where} is empty")
            return
        fragment = urllib.parse.unquote(parts.fragment)
        if fragment and target in self.pages and fragment not in self.pages[target].targets:
            self.problems.append(f"{where}: {target.name} has no id or name for #{fragment}")


def book_pages(site):
    """The names of the pages to open, and a problem for each page of the book that is not among them."""
    opened = sorted(path.name for path in site.glob("*.html") if not LISTINGS.match(path.name))
    listed = site / "book_pages.txt"
    if not listed.is_file():
        return opened, ["book_pages.txt does not exist"]
    names = listed.read_text().split()
    missing = [f"book_pages.txt names {name}, which does not exist" for name in names if name not in opened]
    if not names:
        missing.append("book_pages.txt names no page")
    return opened, missing


# --- The browser ---

# Runs in the page. What it returns is judged in judge().
INSPECT = r"""
const [width, done] = arguments;  // innerWidth will not do: on a phone it grows with what is too wide
function text_outside_code(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.nodeValue;
  if (node.nodeType !== Node.ELEMENT_NODE) return '';
  if (node.matches('pre, code, script, style, textarea, .fragment, .MathJax, .MathJax_SVG, .MathJax_CHTML, mjx-container'))
    return '';
  return Array.from(node.childNodes).map(text_outside_code).join('');
}
function scrolled_or_cut(element) {
  for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
    if (e.id !== 'doc-content' && ['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(e).overflowX)) return true;
  return false;
}
function luminance() {
  for (const e of [document.body, document.documentElement]) {
    const c = getComputedStyle(e).backgroundColor.match(/[\d.]+/g).map(Number);
    if (c.length < 4 || c[3] > 0) return (0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]) / 255;
  }
  return 1;
}
function look() {
  const content = document.querySelector('#doc-content');
  const wide = [['document', document.scrollingElement.scrollWidth, width]];
  if (content) wide.push(['#doc-content', content.scrollWidth, content.clientWidth]);
  const outputs = '.MathJax_SVG, .MathJax_CHTML, .MathJax, mjx-container';
  const scripts = Array.from(document.querySelectorAll('script[type^="math/tex"]'));
  const formulas = scripts.filter(s => {
    const before = s.previousElementSibling;
    return before && (before.matches(outputs) || before.querySelector(outputs)) && before.getBoundingClientRect().width > 0;
  }).length + document.querySelectorAll('mjx-container').length;
  const holders = Array.from(document.querySelectorAll('.formulaDsp, .formulaInline'));
  const text = text_outside_code(document.body);
  const raw = text.match(/.{0,20}(\\\(|\\\[|\$\$).{0,30}/);
  done({
    wide: wide.filter(w => w[1] > w[2] + 1),
    out: Array.from(document.querySelectorAll('.contents img, .contents svg, .contents table, .contents pre, .contents p, ' +
                                              '.contents .fragment, .contents object'))
      .filter(e => { const r = e.getBoundingClientRect();
                     return r.width > 0 && r.right > width + 1 && !scrolled_or_cut(e); })
      .map(e => '<' + e.tagName.toLowerCase() + '> ' + (e.getAttribute('src') || e.textContent.trim().slice(0, 40))),
    images: document.images.length,
    broken: Array.from(document.images).filter(i => i.complete && i.naturalWidth === 0).map(i => i.getAttribute('src')),
    loading: Array.from(document.images).filter(i => !i.complete).map(i => i.getAttribute('src')),
    formulas: formulas,
    unset: scripts.length - scripts.filter(s => s.previousElementSibling).length,
    empty: holders.filter(h => !h.querySelector(outputs)).map(h => h.textContent.trim().slice(0, 40)),
    errors: Array.from(document.querySelectorAll('.MathJax_Error, .merror, mjx-merror, [data-mjx-error], .noError'))
      .map(e => e.textContent.slice(0, 60)),
    raw: raw ? raw[0] : null,
    luminance: luminance(),
    themed: !!document.querySelector('link[href*="doxygen-awesome"]'),
    height: Math.max(document.documentElement.scrollHeight,
                     content ? content.scrollHeight + content.getBoundingClientRect().top : 0),
  });
}
Promise.race([
  Promise.all(Array.from(document.images).map(i => { i.loading = 'eager'; return i.decode().catch(() => 0); })),
  new Promise(r => setTimeout(r, 10000)),
]).then(() => {
  if (window.MathJax && MathJax.Hub) MathJax.Hub.Queue(look);
  else if (window.MathJax && MathJax.startup && MathJax.startup.promise) MathJax.startup.promise.then(look);
  else look();
});
"""


def judge(seen, expected_formulas, dark):
    """One text for each thing that is wrong with a page as the browser shows it."""
    problems = [f"scrolls sideways: {what} is {width} pixels wide in {room}" for what, width, room in seen["wide"]]
    problems += [f"sticks out of the screen: {what}" for what in seen["out"]]
    problems += [f"broken image: {source}" for source in seen["broken"]]
    problems += [f"image not loaded: {source}" for source in seen["loading"]]
    problems += [f"formula not set: {text}" for text in seen["empty"]]
    problems += [f"MathJax error: {text}" for text in seen["errors"]]
    if seen["raw"]:
        problems.append(f"raw formula in the text: {seen['raw'].strip()}")
    if seen["formulas"] < expected_formulas:
        problems.append(f"{seen['formulas']} formulas were set, the page has {expected_formulas}")
    if seen["themed"] and (seen["luminance"] < 0.5) != dark:
        problems.append(f"the background is {'light' if dark else 'dark'}, must be {'dark' if dark else 'light'}")
    return problems


class NoBrowser(Exception):
    pass


def start_browser():
    try:
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.chrome.service import Service
    except ImportError as error:
        raise NoBrowser(f"python has no selenium (Debian: python3-selenium): {error}") from error
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not driver:
        raise NoBrowser("chromium or chromedriver is missing (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", "--no-proxy-server"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        started = webdriver.Chrome(service=Service(driver), options=options)
    except WebDriverException as error:
        raise NoBrowser(f"chromium does not start: {str(error).splitlines()[0]}") from error
    started.set_page_load_timeout(SECONDS_FOR_A_PAGE)
    started.set_script_timeout(SECONDS_FOR_A_PAGE)
    return started


def requests_to_the_network(driver):
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            url = message["params"].get("request", message["params"])["url"]
            if url.split(":")[0] in ("http", "https", "ws", "wss", "ftp"):
                yield url


def set_screen(driver, width, height, mobile):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})


def open_page(driver, page, screen, expected_formulas, screenshot):
    """Opens a page on one screen. Returns what was seen, or None, and one text for each problem."""
    from selenium.common.exceptions import WebDriverException
    _, width, height, mobile, dark = screen
    set_screen(driver, width, height, mobile)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    try:
        driver.get(page.resolve().as_uri())
        seen = driver.execute_async_script(INSPECT, width)
    except WebDriverException as error:
        return None, [f"does not open: {str(error).splitlines()[0]}"]
    problems = judge(seen, expected_formulas, dark)
    problems += [f"console: {entry['message']}" for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    problems += [f"request to the network: {url}" for url in requests_to_the_network(driver)]
    if screenshot:
        # The theme scrolls within the page, so the screen is made as tall as what is in it.
        tall = max(height, min(TALLEST_SCREENSHOT, int(seen["height"]) + 1))
        set_screen(driver, width, tall, mobile)
        time.sleep(0.3)  # it lays itself out anew
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        screenshot.write_bytes(base64.b64decode(shot["data"]))
    return seen, problems


def check_in_browser(driver, site, parsed, names, screenshots):
    """Opens each page on each screen. Returns the problems, and how many images and formulas were seen."""
    problems, images, formulas = [], 0, 0
    for name in names:
        expected = parsed[(site / name).resolve()].formulas
        of_page = {}  # the same on several screens is one problem
        for screen in SCREENS:
            shot = screenshots / f"{pathlib.Path(name).stem}-{screen[0]}.png" if screenshots else None
            seen, found = open_page(driver, site / name, screen, expected, shot)
            for problem in found:
                of_page.setdefault(problem, []).append(screen[0])
            if seen and screen is SCREENS[0]:
                images += seen["images"]
                formulas += seen["formulas"]
        problems += [f"{name} ({', '.join(where)}): {problem}" for problem, where in of_page.items()]
    return problems, images, formulas


def check(site, driver=None, screenshots=None):
    """(problems, the lines that close the report). Pages are opened where there is a browser's driver."""
    links = Links(site)
    if not links.pages:
        return [f"{site} has no page"], []
    problems = links.check()
    names, missing = book_pages(site)
    problems += missing + empty_groups(site)
    lines = [f"another site, not fetched: {address}" for address in sorted(links.external)]
    summary = f"{len(links.pages)} pages, {links.count} links, {len(links.external)} to other sites"
    if driver:
        found, images, formulas = check_in_browser(driver, site, links.pages, names, screenshots)
        problems += found
        summary += (f"; in the browser {len(names)} pages of the book on {len(SCREENS)} screens, {images} images, "
                    f"{formulas} formulas")
    return problems, lines + [f"{summary}: " + (f"{len(problems)} PROBLEMS" if problems else "no problem")]


def selenium_elsewhere():
    """Runs this script with Debian's python when this one has no selenium: Debian's package is for that one only."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        debian = "/usr/bin/python3"
        if os.path.exists(debian) and "CHECK_SITE_PYTHON" not in os.environ:
            os.environ["CHECK_SITE_PYTHON"] = debian
            sys.stdout.flush()
            os.execv(debian, [debian, *sys.argv])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=pathlib.Path, help="the folder of the built site, with index.html")
    parser.add_argument("--browser", action="store_true", help="open the pages of the book in headless Chromium")
    parser.add_argument("--screenshots", type=pathlib.Path, help="a folder for a picture of each page on each screen")
    arguments = parser.parse_args()
    if arguments.browser:
        selenium_elsewhere()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    driver = None
    try:
        driver = start_browser() if arguments.browser else None
        problems, closing = check(arguments.site, driver, arguments.screenshots)
    except NoBrowser as reason:
        print(f"skipped: {reason}")
        return 77
    finally:
        if driver:
            driver.quit()
    print("\n".join(problems + closing))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
