#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/strategy: each strategy that needs no service finds the weights; all ranks reject an
# invalid text.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

run() { # STRATEGY
    timeout $((60 * slow)) "$build/tools/trib-run" -n 3 -- "$build/examples/strategy" "$1" >"$said" 2>&1
}

for strategy in sync pipe local:period=8+topk:ratio=0.25 diloco sgp osgp easgd lsgd; do
    run "$strategy" && awk '/squared distance/ { near = $NF < 800 } END { exit !near }' "$said"
    result $? "strategy $strategy"
done
! run pipes && grep -q '^\[0\] .*"pipes".*pipe' "$said"
result $? "a wrong name is answered by the right one"
finish
