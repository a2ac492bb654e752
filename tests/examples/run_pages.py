#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_pages.py SOURCE FOLDER PAGE... - run the commands of documents exactly as printed; prints TAP.

Each page is run by one shell in an empty folder. Each fenced block has a language; blocks of sh are executed. A
comment before a block gives its properties:

    not run: WHY              do not execute this sh block
    file: NAME                write the block to this file
    into: NAME before: TEXT   insert the block into this file, before the line that contains TEXT
    prints                    output of the sh block before, in this order; … matches any text
    prints in any order       the same for stdout and stderr together, whose order mpirun does not keep
    as in: PAGE [NAME]        the block is a copy from that page, where it is executed or written to file NAME
    with: PAGE NAME           copy the file NAME of that page first
    with: PATH                copy this file of the sources first
    first: COMMAND            execute this command first, which the reader is assumed to have done
    needs: NAME...            skip the sh block if this program, module or path is missing
    tree: PATH...             copy these files of the sources, because the page changes them"""
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

LIMIT = 90 * int(os.environ.get("TRIBTEST_SLOWNESS", "1"))
FENCE = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```(\S*)\n(.*?)^```$", re.M | re.S)
MARKS = ("not run", "file", "into", "prints", "prints in any order", "as in", "with", "first", "needs", "tree")


class Block:
    def __init__(self, page, match):
        self.marks, self.language, self.text = [], match[2], match[3]
        self.where = f"{page}:{page.read_text().count(chr(10), 0, match.start(2)) + 1}"
        for line in match[1].splitlines():
            name, _, value = line[5:-4].partition(":")
            self.marks.append((name.strip(), value.strip()))

    def get(self, name):
        return next((value for mark, value in self.marks if mark == name), None)

    def runs(self):
        return self.language == "sh" and self.get("not run") is None and self.get("as in") is None


class Page:
    def __init__(self, path):
        self.path = path
        self.blocks = [Block(path, match) for match in FENCE.finditer(path.read_text())]

    def complaints(self):
        """Yield blocks that would silently not be executed."""
        for number, line in enumerate(FENCE.sub(lambda match: "\n" * match[0].count("\n"), self.path.read_text()).splitlines(), 1):
            if re.match(r"    \S|```", line):
                yield f"{self.path}:{number}: a block without a fence: {line.strip()}"
        for block in self.blocks:
            if block.language in ("", "shell", "bash", "console"):
                yield f"{block.where}: a block without a language, or with another name for sh"
            for mark, _ in block.marks:
                if mark not in MARKS:
                    yield f"{block.where}: there is no mark {mark}"
            if block.get("not run") == "":
                yield f"{block.where}: not run, and no reason"

    def file(self, name):
        return next(block.text for block in self.blocks if block.get("file") == name)

    def same(self, block):
        other, _, name = block.get("as in").partition(" ")
        there = Page(pathlib.Path(other))
        return any(one.text == block.text and (one.get("file") == name if name else one.runs()) for one in there.blocks)


def lacking(needs):
    """Return the first of these programs, modules or paths that is missing."""
    for name in (needs or "").split():
        if name.startswith("/"):
            found = os.path.exists(name)
        elif name in ("torch", "numpy"):
            found = importlib.util.find_spec(name)
        elif name == "cmocka":
            found = subprocess.run(["pkg-config", "--exists", name], check=False).returncode == 0
        else:
            found = shutil.which(name)
        if not found:
            return name
    return None


def place(name, text):
    """Return shell code that writes a file."""
    folder = os.path.dirname(name)
    make = f"mkdir -p {shlex.quote(folder)}\n" if folder else ""
    return f"{make}cat >{shlex.quote(name)} <<'END_OF_THE_FILE'\n{text}END_OF_THE_FILE\n"


def insert(value, text):
    name, _, before = value.partition(" before: ")
    program = ("import sys; n, b, t = sys.argv[1:]; s = open(n).read(); "
               "i = s.rindex(chr(10), 0, s.index(b)) + 1; open(n, 'w').write(s[:i] + t + s[i:])")
    return f"python3 -c {shlex.quote(program)} {shlex.quote(name)} {shlex.quote(before)} {shlex.quote(text)}\n"


def script_of(page, source, missing):
    """Return the page as one shell script. N.out receives the output of block N, N.rc its exit code."""
    out = ["set -e -o pipefail\n"]
    for number, block in enumerate(page.blocks):
        for mark, value in block.marks:
            if mark == "tree":
                for name in value.split():
                    out.append(place(name, (source / name).read_text()))
                out.append(place("dev", (source / "tests/examples/stand_in_dev.sh").read_text()) + "chmod +x dev\n./dev tree\n")
            elif mark == "with":
                path, _, name = value.partition(" ")
                text = Page(source / path).file(name) if name else (source / path).read_text()
                out.append(place(name or os.path.basename(path), text))
            elif mark == "first" and number not in missing:
                out.append(value + "\n")
            elif mark == "file":
                out.append(place(value, block.text))
            elif mark == "into":
                out.append(insert(value, block.text))
        if number in missing:
            continue
        if block.runs():
            out.append(f"{{\n{block.text}\n}} >.{number}.out 2>&1\necho 0 >.{number}.rc\n")
    return "".join(out)


def printed(wanted, said, ordered):
    """Return the first wanted line that is missing, or if `ordered` does not follow the one before."""
    at = 0
    lines = [line.rstrip() for line in said.splitlines()]
    for line in wanted.splitlines():
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split("…"))) + "$")
        at = next((i + 1 for i in range(at if ordered else 0, len(lines)) if pattern.match(lines[i])), None)
        if at is None:
            return line
    return None


class Tap:
    def __init__(self):
        self.number, self.failed = 0, False

    def say(self, good, name, why=""):
        self.number += 1
        self.failed |= not good
        print("".join(f"# {line}\n" for line in why.splitlines()[-40:] if not good), end="")
        print(f"{'ok' if good else 'not ok'} {self.number} - {name}", flush=True)

    def skip(self, name, why):
        self.number += 1
        print(f"ok {self.number} # SKIP {name}: {why}", flush=True)


def run(page, source, folder, tap):
    complaints = list(page.complaints())
    tap.say(not complaints, f"{page.path}: each block has a language, and marks that there are", "\n".join(complaints))
    missing = {}
    for number, block in enumerate(page.blocks):
        lacks = lacking(block.get("needs"))
        if lacks:
            missing[number] = lacks
    folder.mkdir()
    script = script_of(page, source, missing)
    process = subprocess.Popen(["bash", "-c", script], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said = process.communicate(timeout=LIMIT)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        said = f"no end in {LIMIT} s"
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    judge(page, folder, missing, said, tap)


def judge(page, folder, missing, said, tap):
    last = ""
    for number, block in enumerate(page.blocks):
        out = folder / f".{number}.out"
        if block.runs() or number in missing:
            name = f"{block.where}: {block.text.splitlines()[0]}"
            last = out.read_text(errors="replace") if out.exists() else None
            if number in missing:
                tap.skip(name, f"there is no {missing[number]}")
            else:
                tap.say((folder / f".{number}.rc").exists(), name, f"{last or 'not reached'}\n{said}")
        elif block.get("as in") is not None:
            tap.say(page.same(block), f"{block.where}: the same as in {block.get('as in')}")
        elif last is not None and (block.get("prints") is not None or block.get("prints in any order") is not None):
            lacks = printed(block.text, last, block.get("prints") is not None)
            tap.say(lacks is None, f"{block.where}: that is what it prints", f"not printed: {lacks}\n{last}")
    if not any(block.runs() for block in page.blocks):
        tap.say(False, f"{page.path}: nothing is run")


def main():
    source, folder = map(pathlib.Path, sys.argv[1:3])
    os.chdir(source)
    tap = Tap()
    for number, name in enumerate(sys.argv[3:]):
        run(Page(pathlib.Path(name)), source, folder / str(number), tap)
    print(f"1..{tap.number}")
    return tap.failed


sys.exit(main())
