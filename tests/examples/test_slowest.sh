#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/slowest: the largest value and its rank, among the ranks and through a tribd.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"

says() { # WHAT, command...
    "${@:2}" "$build/tools/trib-run" -n 3 -- "$build/examples/slowest" >"$said" 2>&1
    [ "$(sed 's/^\[0\] *//' "$said" | tr '\n' ' ')" = \
        "load: 0.2 s on rank 2 forward: 0.2 s on rank 1 backward: 0.2 s on rank 0 " ]
    result $? "the slowest ranks, $1"
}

says "over shared memory" env TRIB_TRANSPORT=shm
says "over sockets" env TRIB_TRANSPORT=tcp
start_daemon one || finish
says "through a tribd" service "one" env TRIB_ALGORITHM=service
finish
