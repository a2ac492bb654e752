# SPDX-License-Identifier: BSD-3-Clause
"""ends.py WAY - one rank of a job that does not end by closing its communicator.

interrupt  SIGINT ends a wait in init or for an all-reduce within 200 ms; on a busy machine, in one of several tries
handlers   handlers of other signals, also later ones, end a wait as well, and the caller gets their exception
lost       rank 1 kills itself, and the other ranks get PeerLost, which names it
raised     rank 1 raises an exception in a with block, and the other ranks do not hang
"""
import os
import signal
import sys
import threading
import time

import numpy as np

import tributary as tb


def interrupted(calls):
    """Check that SIGINT interrupts one of several calls within 200 ms."""
    took = []
    for call in calls:
        at = time.monotonic() + 0.1
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            call()
        except KeyboardInterrupt:
            took.append(time.monotonic() - at)
            if took[-1] < 0.2:
                return
            continue
        raise AssertionError("it was not interrupted")
    raise AssertionError(f"it took {took} s")


def interrupt():
    interrupted([lambda: tb.init(0, 2, "127.0.0.1:1")] * 8)


def interrupt_wait():
    """Rank 1 joins no all-reduce before the barrier. Each try uses its own communicator."""
    comm = tb.init()
    parts = [comm.split(0) for _ in range(8)]
    if comm.rank == 0:
        interrupted([lambda part=part: part.allreduce(np.ones(10)) for part in parts])
        comm.barrier()
        print("all right")
    else:
        comm.barrier()
        try:
            while True:  # rank 0 contributed to the first sum before the interrupt
                parts[0].allreduce(np.ones(10))
        except tb.Error as why:
            assert "rank 0" in str(why), why
            print("all right")


def late(*_):
    raise TimeoutError("late")


def handlers():
    comm = tb.init()
    signals = (signal.SIGALRM, signal.SIGTERM, signal.SIGINT)
    parts = [comm.split(0) for _ in signals]
    if comm.rank == 0:
        for number, part in zip(signals, parts):
            before = signal.signal(number, late)
            try:
                threading.Timer(0.1, os.kill, (os.getpid(), number)).start()
                part.allreduce(np.ones(10))
            except TimeoutError as why:
                assert str(why) == "late"
            else:
                raise AssertionError("nothing was raised")
            signal.signal(number, before)
    comm.barrier()
    print("all right")


def lost():
    comm = tb.init()
    x = np.ones(10)
    comm.allreduce(x)
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            comm.allreduce(x)
    except tb.PeerLost as why:
        assert "rank 1" in str(why) and why.status == "TRIB_ERR_PEER_LOST" and why.scope == "comm"
        print("all right")


def raised():
    try:
        with tb.init() as comm:
            comm.allreduce(np.ones(10))  # otherwise a rank in init would get the error there
            if comm.rank == 1:
                raise RuntimeError("mine")
            comm.allreduce(np.ones(10))
    except RuntimeError as why:
        assert comm.rank != 1 or str(why) == "mine"
        print("all right")


{"interrupt": interrupt, "interrupt_wait": interrupt_wait, "handlers": handlers, "lost": lost, "raised": raised}[
    sys.argv[1]
]()
if sys.argv[1] == "interrupt":
    print("all right")
sys.stdout.flush()
os._exit(0)
