# SPDX-License-Identifier: BSD-3-Clause
"""What the two buffers of a collective hold on a rank, and whether arrays are that.

All arrays of which the library gets an address pass through Call.lend: those of blocking
calls, of plans when they are made, and of each of their starts.
"""
from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

from ._buffers import Buffer, buffer_of, dtype_name

# Blocks of the input and of the result, in units of count: 1, or one for each rank.
_ONE, _EACH = False, True
_BLOCKS = {
    "allreduce": (_ONE, _ONE),
    "reduce": (_ONE, _ONE),
    "broadcast": (_ONE, _ONE),
    "allgather": (_ONE, _EACH),
    "reduce_scatter": (_EACH, _ONE),
    "gather": (_ONE, _EACH),
    "scatter": (_EACH, _ONE),
    "alltoall": (_EACH, _EACH),
    "scan": (_ONE, _ONE),
    "exscan": (_ONE, _ONE),
}
_ROOT_SENDS = ("broadcast", "scatter")
_ROOT_RECEIVES = ("reduce", "gather")

Counts = Optional[Sequence[int]]


def whole(name: str, value: Any, most: int, least: int = 0) -> int:
    """An integer that C's type can hold, so that it gets no other one."""
    number = operator.index(value)
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, it must be {least} to {most}")
    return number


@dataclass(frozen=True)
class Lent:
    """Arrays that are the library's until a call, or a start, is over."""

    send: Optional[Buffer]
    recv: Optional[Buffer]
    count: int
    dtype: int

    @property
    def addresses(self) -> Tuple[Optional[int], Optional[int]]:
        """Of send and recv; None is NULL."""
        return (self.send.address if self.send else None,
                self.recv.address if self.recv else None)

    def begin(self, pinned: bool = False) -> None:
        """The library gets them now. pinned: and keeps them when the call has returned."""
        if self.recv:
            self.recv.write()
        for b in (self.send, self.recv) if pinned else ():
            if b:
                b.pin()


@dataclass(frozen=True)
class Call:
    """A collective on one rank."""

    name: str
    rank: int
    size: int
    root: int = 0
    send_counts: Counts = None  # blocks of these lengths; None: of one length each
    recv_counts: Counts = None
    count: Optional[int] = None  # what a plan was made for; None: what the arrays have
    dtype: int = 0

    @property
    def sends(self) -> bool:
        return self.name not in _ROOT_SENDS or self.rank == self.root

    @property
    def receives(self) -> bool:
        return self.name not in _ROOT_RECEIVES or self.rank == self.root

    def check_counts(self) -> None:
        """ValueError for counts that the collective does not take."""
        has = [self.send_counts is not None, self.recv_counts is not None]
        takes = {"allgather": [False, True], "gather": [False, True],
                 "reduce_scatter": [True, False], "scatter": [True, False],
                 "alltoall": [True, True]}.get(self.name)
        if any(has) and has != takes:
            names = [n for n, t in zip(("send_counts", "recv_counts"), takes or ()) if t]
            raise ValueError(f"{self.name} takes {' and '.join(names) or 'no counts'}")
        for counts in (self.send_counts, self.recv_counts):
            if counts is not None and len(counts) != self.size:
                raise ValueError(f"there are {len(counts)} counts, and {self.size} ranks")

    def _length(self, which: int, count: int) -> int:
        """Elements of the input (0) or the result (1) for `count` of a block."""
        each = _BLOCKS[self.name][which]
        counts = (self.send_counts, self.recv_counts)[which]
        if counts is not None:
            return sum(counts)
        return count * self.size if each else count

    def input_length(self, count: int) -> int:
        """Elements of the input."""
        return self._length(0, count)

    def _own_count(self, b: Buffer, which: int) -> int:
        """Elements of a block, as this array says."""
        counts = self.send_counts or self.recv_counts
        if self.count is not None:
            return self.count
        if counts is not None:
            return counts[self.rank]
        if not _BLOCKS[self.name][which]:
            return b.count
        if b.count % self.size:
            raise ValueError(f"{self.name}: an array of {b.count} elements cannot be cut into "
                             f"{self.size} blocks")
        return b.count // self.size

    def lend(self, x: Any, out: Any = None) -> Lent:
        """Checks the arrays of a call. out None: in place, so x holds the longer one of
        input and result. What a rank does not need may be None.

        TypeError says which array has no memory that can be used; ValueError that lengths
        or types do not fit."""
        send = recv = None
        if out is None and self.receives:
            recv = buffer_of(x, writable=True)
        elif self.sends:
            send = buffer_of(x)
        if out is not None and self.receives:
            recv = buffer_of(out, writable=True)
        if out is None and self.send_counts is not None and self.recv_counts is not None:
            raise ValueError(f"{self.name} with counts is not in place: give out")
        longer = int(out is not None or not self.sends or not _BLOCKS[self.name][0])
        given: List[Tuple[str, Buffer, int]] = []
        if send:
            given.append(("x", send, 0))
        if recv:
            given.append(("x" if out is None else "out", recv, longer))
        _, first, which = given[-1]
        count = self._own_count(first, which)
        dtype = first.dtype if self.count is None else self.dtype
        for name, b, which in given:
            self._check(name, b, self._length(which, count), dtype)
        return Lent(send, recv, count, dtype)

    def _check(self, name: str, b: Buffer, length: int, dtype: int) -> None:
        if b.dtype == dtype and b.count == length:
            return
        what = f"{self.name}: {name} has {b.count} elements of {dtype_name(b.dtype)}"
        if b.dtype != dtype:
            raise ValueError(f"{what}, and {dtype_name(dtype)} is wanted, another type")
        raise ValueError(f"{what}, and {length} elements are wanted")
