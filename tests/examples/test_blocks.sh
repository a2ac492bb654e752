#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/transpose and examples/ragged: all-to-all, exclusive scan, gather with counts.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

says() { # WHAT RANKS PROGRAM TEXT
    got=$("$build/tools/trib-run" -n "$2" -- "$build/examples/$3" 2>&1 | sort | tr -s ' \n' ' ')
    echo "$got" >"$said"
    test "${got% }" = "$4"
    result $? "$1"
}

says "a matrix is transposed" 3 transpose "[0] 0 10 20 [1] 1 11 21 [2] 2 12 22"
says "items of each rank are collected" 4 ragged "[0] 100 201 202"
finish
