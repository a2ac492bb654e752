#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""known_options.py - check that the options and ./dev commands named in documents exist; prints TAP.

run_pages.py runs the guides and README.md. This script covers the other pages of docs/, whose commands need several
hosts, devices or hours. The programs are found in PATH."""
import pathlib
import re
import subprocess
import sys

# Programs and their commands that have their own --help.
PROGRAMS = {
    "trib-run": (), "trib-info": (), "trib-mpi": (), "tribd": (), "tribctl": (),
    "trib-perf": ("put", "codec", "agg", "groups", "neighbors", "store", "calibrate", "compare", "report"),
    "trib-train": (),
}
SPAN = re.compile(r"`([^`\n]+)`|^(?: {4}|\t)(.+)$|^```[^\n]*\n(.*?)^```", re.M | re.S)
# A command ends before its explanation, which follows several blanks or is a comment.
END = re.compile(r" {3,}|[ \t]#| [|;&]|\n")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")


def options_of(program):
    found = {"--help", "--version", "--completion"}
    for command in ((), *((one,) for one in PROGRAMS[program])):
        said = subprocess.run([program, *command, "--help"], capture_output=True, encoding="utf-8", check=True).stdout
        found.update(OPTION.findall(said))
    return found


def commands(text):
    """Yield the programs that a page names, with their arguments."""
    for match in SPAN.finditer(text):
        for line in re.split(END, match[1] or match[2] or match[3]):
            at = None
            for part in re.split(r"(?<!\S)((?:\S*/)?(?:%s))(?!\S)|\s--\s" % "|".join(PROGRAMS), line):
                if part and part.rsplit("/", 1)[-1] in PROGRAMS:
                    at = part.rsplit("/", 1)[-1]
                elif part and at:
                    yield at, part
                    at = None


def main():
    pages = sorted(pathlib.Path("docs").glob("*.md")) + [pathlib.Path("README.md"), pathlib.Path("CONTRIBUTING.md")]
    known = {program: options_of(program) for program in PROGRAMS}
    words = {path.stem for path in pathlib.Path("scripts/dev").glob("*.bash") if "\n#: " in path.read_text()}
    wrong, seen = [], 0
    for page in pages:
        text = page.read_text()
        for program, arguments in commands(text):
            seen += 1
            wrong += [f"{page}: {program} has no {option}" for option in OPTION.findall(arguments) if option not in known[program]]
        for word in re.findall(r"\./dev ([a-z][a-z-]*)", text):
            seen += 1
            wrong += [f"{page}: ./dev has no {word}"] * (word not in words)
    print("".join(f"# {line}\n" for line in wrong), end="")
    print(f"{'not ok' if wrong else 'ok'} 1 - options of {seen} commands that pages name")
    print(f"{'ok' if seen > 100 else 'not ok'} 2 - pages name commands")
    print("1..2")
    return bool(wrong) or seen <= 100


sys.exit(main())
