#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""snippets.py SOURCE FOLDER PROGRAM... - insert the C snippets of headers and documents into test programs.

A program has comment lines such as

    /* snippet include/tributary/elastic.h: while (step < steps) */

Each is replaced by the unchanged snippet of that file whose first line begins with the text. Programs are
written to FOLDER under their own names. A snippet that is not found or not used by any program is an error."""
import pathlib
import re
import sys

CALL = re.compile(r"\btrib_\w+\([^)]*.*;|\btrib_\w+_t \w+", re.S)
MARK = re.compile(r"^([ ]*)/\* snippet (\S+): (.*?) \*/\n", re.M)


def blocks(lines, begins, goes_on):
    """Return the blocks of code lines that follow an empty line, unindented. A block may contain empty lines."""
    out, last_was_empty, block = [], True, None
    for line in [*lines, None]:
        code = line is not None and (begins if block is None else goes_on).match(line)
        if code and (block is not None or last_was_empty):
            block = [*(block or []), code[1]]
        elif line is not None and block is not None and line.strip(" *") == "":
            block.append("")
        elif block is not None:
            out.append("\n".join(block).rstrip() + "\n")
            block = None
        last_was_empty = line is not None and line.strip(" *") == ""
    return [text for text in out if CALL.search(text)]


def of_header(path):
    return blocks(path.read_text().splitlines(), re.compile(r" \*     (\S.*)$"), re.compile(r" \*     (.*\S.*)$"))


def of_page(path):
    """Return the indented blocks of a page; run_pages.py runs the fenced ones."""
    text = re.sub(r"^```.*?^```$", lambda match: "\n" * match[0].count("\n"), path.read_text(), flags=re.M | re.S)
    return [block for block in blocks(text.splitlines(), re.compile(r"    (\S.*)$"), re.compile(r"    (.*\S.*)$")) if ";" in block]


def main():
    source, folder = map(pathlib.Path, sys.argv[1:3])
    found = {str(path.relative_to(source)): of_header(path) for path in sorted((source / "include/tributary").glob("*.h"))}
    found.update({str(path.relative_to(source)): of_page(path) for path in sorted((source / "docs").glob("*.md"))})
    used, wrong = set(), []

    def snippet(match):
        indent, name, first = match.groups()
        texts = [text for text in found.get(name, []) if text.startswith(first)]
        if len(texts) != 1:
            wrong.append(f"{program.name}: {len(texts)} snippets of {name} begin with \"{first}\"")
            return ""
        used.add((name, texts[0]))
        return re.sub(r"^(?=.)", indent, texts[0], flags=re.M)

    for program in map(pathlib.Path, sys.argv[3:]):
        (folder / program.name).write_text(MARK.sub(snippet, program.read_text()))
    for name, texts in found.items():
        wrong += [f"{name}: no program of tests/examples/snippets runs the snippet \"{text.splitlines()[0]}\""
                  for text in texts if (name, text) not in used]
    print("\n".join(wrong))
    return bool(wrong)


sys.exit(main())
