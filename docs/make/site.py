#!/usr/bin/env python3
"""Makes the site: what the target `docs` calls.

The pages are made by pages.py, the site by Doxygen with the theme doxygen-awesome-css; then the parts of MathJax that
a page loads are copied into it. Debian and Ubuntu have all three as packages. Elsewhere the environment says where
they are: LADDER_THEME, the folder of doxygen-awesome.css, and LADDER_MATHJAX, that of MathJax.js (of version 2.7).
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]

# Of 54 MB those parts that a formula of a page loads: TeX with the AMS's commands in, SVG out, in one font, and the menu
# of a formula. What is missing here would be seen as a 404 when a page is opened.
MATHJAX_PARTS = [
    "MathJax.js",
    "extensions/tex2jax.js",
    "extensions/MathEvents.js",
    "extensions/MathMenu.js",
    "extensions/MathZoom.js",
    "extensions/toMathML.js",
    "extensions/TeX",
    "jax/input/TeX",
    "jax/element/mml",
    "jax/output/SVG/autoload",
    "jax/output/SVG/config.js",
    "jax/output/SVG/jax.js",
    "jax/output/SVG/fonts/TeX",
]


def fail(text: str) -> None:
    print(f"docs: {text}", file=sys.stderr)
    sys.exit(1)


def look_for(theme: Path, mathjax: Path) -> None:
    missing = []
    if shutil.which("doxygen") is None:
        missing.append("doxygen")
    if not (theme / "doxygen-awesome.css").exists():
        missing.append("doxygen-awesome-css")
    if not (mathjax / "MathJax.js").exists():
        missing.append("libjs-mathjax")
    if missing:
        fail(f"missing packages, by the names of Debian and Ubuntu: {' '.join(missing)}; ./climb docs installs them")


def write_header(folder: Path) -> None:
    """Doxygen's own header of this version, with the theme's switch between light and dark."""
    header = folder / "header.html"
    subprocess.run(["doxygen", "-w", "html", header, folder / "footer.html", folder / "doxygen.css"], check=True,
                   stdout=subprocess.DEVNULL)
    text = header.read_text()
    if text.count("</head>") != 1:
        fail("Doxygen's header has no </head>, so that the theme's switch has no place in it")
    header.write_text(text.replace(
        "</head>",
        '<script type="text/javascript" src="$relpath^doxygen-awesome-darkmode-toggle.js"></script>\n'
        '<script type="text/javascript">DoxygenAwesomeDarkModeToggle.init()</script>\n</head>'))


def write_filter(folder: Path) -> Path:
    """What Doxygen reads headers through, by a name without a space, wherever the checkout lies. Doxygen asks for no
    filter's exit status: a failure is a line in the file that is returned."""
    failures, script = folder / "filter_failures.txt", folder / "filter"
    failures.unlink(missing_ok=True)
    command = shlex.join([sys.executable, "-B", str(DOCS / "make" / "header.py")])
    script.write_text(f'#!/bin/sh\n{command} "$@" || echo "$1" >>filter_failures.txt\n')
    script.chmod(0o755)
    return failures


def settings(doxyfile: Path) -> str:
    """The Doxyfile, and what not every version knows: since 1.9.5 Doxygen has a dark mode, where the theme has its own."""
    version = subprocess.run(["doxygen", "--version"], check=True, capture_output=True, text=True).stdout.split()[0]
    dark = tuple(int(number) for number in version.split(".")[:3]) >= (1, 9, 5)
    return doxyfile.read_text() + ("HTML_COLORSTYLE = LIGHT\n" if dark else "")


def copy_mathjax(source: Path, target: Path) -> None:
    for part in MATHJAX_PARTS:
        to = target / part
        to.parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, to, dirs_exist_ok=True)
        else:
            shutil.copyfile(source / part, to)


def mend_links(site: Path) -> None:
    """Doxygen 1.9.4 links to a list of nested classes also where all of them are private, and there is no list."""
    link = '<a href="#nested-classes">Classes</a> &#124;'
    for page in site.glob("*.html"):
        text = page.read_text()
        if link in text and 'id="nested-classes"' not in text:
            page.write_text(text.replace(link, ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, required=True, help="build folder")
    build = parser.parse_args().build.resolve()
    theme = Path(os.environ.get("LADDER_THEME", "/usr/share/doxygen-awesome-css"))
    mathjax = Path(os.environ.get("LADDER_MATHJAX", "/usr/share/javascript/mathjax"))
    look_for(theme, mathjax)

    folder = build / "docs"
    for old in ("pages", "html"):  # a page that is no longer made must not stay
        shutil.rmtree(folder / old, ignore_errors=True)
    if subprocess.run([sys.executable, "-B", DOCS / "make" / "pages.py", "--build", build, "--out",
                       folder / "pages"]).returncode:
        sys.exit(1)
    write_header(folder)
    failures = write_filter(folder)
    if subprocess.run(["doxygen", "-"], input=settings(folder / "Doxyfile"), text=True, cwd=folder,
                      env=os.environ | {"LADDER_THEME": str(theme)}).returncode:
        fail("Doxygen warns, and its warnings are errors: see the lines above")
    if failures.exists():
        fail(f"header.py failed for {', '.join(failures.read_text().split(chr(10))[:-1])}: see the lines above")
    names = [f"{page.stem}.html" for page in (folder / "pages").glob("*.md")]
    (folder / "html" / "book_pages.txt").write_text("\n".join(sorted(names)) + "\n")
    mend_links(folder / "html")
    for picture in (folder / "pages").glob("*.svg"):  # named in HTML that Doxygen passes on as it is
        shutil.copyfile(picture, folder / "html" / picture.name)
    copy_mathjax(mathjax, folder / "html" / "mathjax")
    print(f"docs: {folder / 'html' / 'index.html'}")


if __name__ == "__main__":
    main()
