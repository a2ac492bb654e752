# SPDX-License-Identifier: BSD-3-Clause
"""Check the arrays of a collective: lengths and element types of input and result.

Every array whose address the library gets passes through Call.check_arguments: in a blocking call,
when a plan is created, and in each start of a plan.
"""
from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple

from ._buffers import Buffer, buffer_of, dtype_name

# Blocks of `count` elements in the input and in the result: one, or one per rank.
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
    """Return value as an int from `least` to `most`, which fits the C type. Raise ValueError
    if it is outside, because ctypes would truncate it silently."""
    number = operator.index(value)
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}; it must be from {least} to {most}")
    return number


@dataclass(frozen=True)
class Arguments:
    """Arrays that the library uses until a call returns or a start of a plan ends."""

    send: Optional[Buffer]
    recv: Optional[Buffer]
    count: int
    dtype: int

    @property
    def addresses(self) -> Tuple[Optional[int], Optional[int]]:
        """Addresses of send and recv; None for NULL."""
        return (self.send.address if self.send else None,
                self.recv.address if self.recv else None)

    def begin(self, pinned: bool = False) -> None:
        """Prepare the arrays for the library. pinned: it uses them after the call returns."""
        if self.recv:
            self.recv.write()
        for b in (self.send, self.recv) if pinned else ():
            if b:
                b.pin()


@dataclass(frozen=True)
class Call:
    """A collective as one rank calls it."""

    name: str
    rank: int
    size: int
    root: int = 0
    send_counts: Counts = None  # elements of each rank's block; None: all of one length
    recv_counts: Counts = None
    count: Optional[int] = None  # of an existing plan; None: derived from the arrays
    dtype: int = 0

    @property
    def sends(self) -> bool:
        return self.name not in _ROOT_SENDS or self.rank == self.root

    @property
    def receives(self) -> bool:
        return self.name not in _ROOT_RECEIVES or self.rank == self.root

    def check_counts(self) -> None:
        """Raise ValueError if the collective does not take these counts, one per rank."""
        has = [self.send_counts is not None, self.recv_counts is not None]
        takes = {"allgather": [False, True], "gather": [False, True],
                 "reduce_scatter": [True, False], "scatter": [True, False],
                 "alltoall": [True, True]}.get(self.name)
        if any(has) and has != takes:
            names = [n for n, t in zip(("send_counts", "recv_counts"), takes or ()) if t]
            raise ValueError(f"{self.name} takes {' and '.join(names) or 'no counts'}")
        for counts in (self.send_counts, self.recv_counts):
            if counts is not None and len(counts) != self.size:
                raise ValueError(f"{self.name} got {len(counts)} counts for {self.size} ranks")

    def _length(self, which: int, count: int) -> int:
        """Return the elements of the input (which=0) or result (1), of blocks of `count`."""
        each = _BLOCKS[self.name][which]
        counts = (self.send_counts, self.recv_counts)[which]
        if counts is not None:
            return sum(counts)
        return count * self.size if each else count

    def input_length(self, count: int) -> int:
        """Return the elements of the input, of blocks of `count` elements."""
        return self._length(0, count)

    def _own_count(self, b: Buffer, which: int) -> int:
        """Return the elements of this rank's block, derived from the length of an array."""
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

    def check_arguments(self, x: Any, out: Any = None) -> Arguments:
        """Check the arrays of a call, and return their memory.

        out None: in place, so x has the length of the longer one of input and result. x or
        out may be None if this rank does not send or does not receive.
        Raise TypeError if the memory of an array cannot be used, and ValueError if a length
        or an element type does not match."""
        send = recv = None
        if out is None and self.receives:
            recv = buffer_of(x, writable=True)
        elif self.sends:
            send = buffer_of(x)
        if out is not None and self.receives:
            recv = buffer_of(out, writable=True)
        if out is None and self.send_counts is not None and self.recv_counts is not None:
            raise ValueError(f"{self.name} with counts cannot be in place: pass out")
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
        return Arguments(send, recv, count, dtype)

    def _check(self, name: str, b: Buffer, length: int, dtype: int) -> None:
        if b.dtype == dtype and b.count == length:
            return
        what = f"{self.name}: {name} has {b.count} elements of {dtype_name(b.dtype)}"
        if b.dtype != dtype:
            raise ValueError(f"{what}; the element type must be {dtype_name(dtype)}")
        raise ValueError(f"{what}; the length must be {length} elements")
