#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/uneven: a mean with weights, among the ranks and through a tribd.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"

says() { # WHAT, command...
    "${@:2}" "$build/tools/trib-run" -n 3 -- "$build/examples/uneven" >"$said" 2>&1
    [ "$(sed 's/^\[0\] *//' "$said" | tr '\n' ' ')" = "step 0: 1 4 step 1: 1.66667 4.66667 " ]
    result $? "each sample counts once, $1"
}

says "over shared memory" env TRIB_TRANSPORT=shm
says "over sockets" env TRIB_TRANSPORT=tcp
start_daemon one || finish
says "through a tribd" service "one" env TRIB_ALGORITHM=service
finish
