# SPDX-License-Identifier: BSD-3-Clause
"""layouts.py INCLUDE_DIR - each struct of tributary._ffi has the same size and offsets as in C;
a difference would corrupt memory."""
import ctypes
import os
import subprocess
import sys
import tempfile

from tributary import _ffi

HEADERS = ["tributary.h", "tributary/elastic.h", "tributary/store.h"]


def source():
    yield "#include <stdio.h>\n#include <stddef.h>"
    for h in HEADERS:
        yield f"#include <{h}>"
    yield "int main(void)\n{"
    for s in _ffi.STRUCTS:
        yield f'    printf("{s.__name__} %zu\\n", sizeof({s.__name__}));'
        for name, *_ in s._fields_:
            yield f'    printf("{s.__name__}.{name} %zu\\n", offsetof({s.__name__}, {name}));'
    yield "    return 0;\n}"


def ours():
    for s in _ffi.STRUCTS:
        yield f"{s.__name__} {ctypes.sizeof(s)}"
        for name, *_ in s._fields_:
            yield f"{s.__name__}.{name} {getattr(s, name).offset}"


with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "layouts")
    subprocess.run(
        ["cc", "-x", "c", "-", f"-I{sys.argv[1]}", "-o", program],
        input="\n".join(source()), text=True, check=True,
    )
    theirs = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split("\n")
wrong = [f"{a} in Python, {b} in C" for a, b in zip(ours(), theirs) if a != b]
print("\n".join(wrong) or f"{len(_ffi.STRUCTS)} structs alike")
sys.exit(bool(wrong))
