# SPDX-License-Identifier: BSD-3-Clause
"""python3 -m tributary - print the package's version, library, torch backend and transports."""
from __future__ import annotations

import os
from typing import Any, Iterator, List, Tuple

from . import _ffi
from ._library import backend, lib, path


def transports() -> List[Tuple[str, str]]:
    """Return the name of each transport, and its findings on this host or why it is unusable."""
    found: List[Tuple[str, str]] = []

    def take(_: Any, item: Any) -> None:
        it = item.contents
        text: bytes = it.fault or it.value or it.detail or b""
        found.append((it.name.decode(), text.decode(errors="replace")))

    lib.trib_list_each(_ffi.TRIB_LIST_TRANSPORTS, _ffi.trib_item_fn(take), None)
    return found


def lines() -> Iterator[str]:
    version: bytes = lib.trib_version()
    yield f"tributary {version.decode()}"
    yield f"package     {os.path.dirname(os.path.abspath(__file__))}"
    yield f"library     {path()}"
    file, why = backend()
    yield f"torch       {file or why}"
    for at, (name, text) in enumerate(transports()):
        yield f"{'transports' if at == 0 else '':11} {name:5}  {text}".rstrip()


if __name__ == "__main__":
    print("\n".join(lines()))
