#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""terminal.py [--said FILE] [--signal SECONDS] COLUMNS COMMAND… - run a command on a terminal of COLUMNS columns.

Prints the widest line of the output, after its width in columns; FILE receives all output. --signal: type Ctrl-C
after SECONDS. The exit code is the command's.
"""
import argparse
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

parser = argparse.ArgumentParser()
parser.add_argument("--said")
parser.add_argument("--signal", type=float)
parser.add_argument("columns", type=int)
parser.add_argument("command", nargs=argparse.REMAINDER)
args = parser.parse_args()

ready, go = os.pipe()
pid, fd = pty.fork()
if pid == 0:
    os.close(go)
    os.read(ready, 1)  # wait until the terminal has its size
    os.execvp(args.command[0], args.command)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, args.columns, 0, 0))
os.close(go)
began, typed, said = time.monotonic(), args.signal is None, b""
while True:
    if not typed and time.monotonic() - began > args.signal:
        typed = True
        os.write(fd, b"\x03")
    if not select.select([fd], [], [], 0.05)[0]:
        continue
    try:
        part = os.read(fd, 65536)
    except OSError:  # the last process has closed it
        break
    if not part:
        break
    said += part
status = os.waitpid(pid, 0)[1]
text = said.decode("utf-8", "replace")
if args.said:
    with open(args.said, "w", encoding="utf-8") as file:
        file.write(text.replace("\r\n", "\n"))
lines = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text))
widest = max(lines, key=len)
print(len(widest), widest)
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
