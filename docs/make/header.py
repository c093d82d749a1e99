#!/usr/bin/env python3
"""What Doxygen reads of a header: its text, with the comment at its top as the file's documentation, and all that
it declares in the group of the reference that its folder stands for (docs/reference.dox). No line moves.
"""

import re
import sys
from pathlib import Path

GROUPS = {"kernel": "kernel_layer", "harness": "harness", "cpu_device": "cpu_device_reference"}


def for_doxygen(text: str, group: str) -> str:
    lines = text.split("\n")
    end = lines.index("#pragma once")  # the comment at the top ends here, and a blank line follows
    if lines[end + 1] or not all(line.startswith("//") for line in lines[:end]):
        raise ValueError("a header begins with a comment, #pragma once and a blank line")
    begin_group, end_group = rf"/** \addtogroup {group} */ /** @{{ */", "/** @} */"
    lines[:end] = [line[2:] for line in lines[:end]]
    lines[0] = "/**" + lines[0]
    lines[end] = r"\file"
    lines[end + 1] = rf"\ingroup {group} */ {begin_group}"
    lines[-1] = end_group
    for i, line in enumerate(lines):  # a group ends where a namespace begins
        if re.fullmatch(r"namespace [\w:]+ \{", line) and f"}}  // {line[:-2]}" in lines:
            lines[i] = f"{line} {begin_group}"
        elif line.startswith("}  // namespace"):
            lines[i] = f"{end_group} {line}"
    return "\n".join(lines) + "\n"


def main() -> None:
    path = Path(sys.argv[1])
    group = GROUPS.get(path.parent.name) or "rung_" + path.parent.name[:2] + "_reference"
    sys.stdout.write(for_doxygen(path.read_text(), group))


if __name__ == "__main__":
    main()
