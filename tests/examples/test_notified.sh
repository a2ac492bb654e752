#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/notified: a callback tells of each sum, among the ranks and through a tribd.
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"

says() { # WHAT, command...
    "${@:2}" timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- "$build/examples/notified" >"$said" 2>&1
    [ "$(sed 's/^\[0\] *//' "$said" | tr '\n' ' ')" = "step 1: 6 step 2: 12 step 3: 18 " ]
    result $? "each sum is told of, $1"
}

says "over shared memory" env TRIB_TRANSPORT=shm
says "over sockets" env TRIB_TRANSPORT=tcp
start_daemon one || finish
says "through a tribd" service "one" env TRIB_ALGORITHM=service
finish
