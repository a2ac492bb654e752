#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/resume: N ranks save and M ranks continue, either with or without a tribd. The sum of both
# outputs equals the sum of the inputs.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/agg/daemon/daemons.sh
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"

part() { # SERVICE or none, RANKS, FILE...: set `came` to the sum, which all ranks print
    local how=()
    [ "$1" = none ] || how=(service "$1")
    (cd "$dir" && "${how[@]}" timeout $((60 * slow)) "$build/tools/trib-run" --tag none -n "$2" -- \
        "$build/examples/resume" "${@:3}") >"$said" 2>&1 || return 1
    came=$(sed -n 's/ summed $//p; s/ summed$//p' "$said" | sort -u)
    [[ $came =~ ^[0-9]+$ ]]
}

moves() { # BEFORE, AFTER, N, M
    local first all
    rm -f "$dir"/state.*
    part "$1" "$3" || return 1
    first=$came all=$((3 * 31 * $3))
    part "$2" "$4" "$dir"/state.* || return 1
    echo "$first and $came of $all came out" >>"$said"
    [ "$3" = 1 ] || [ "$first" -lt $all ] || return 1 # a single rank has no residual
    [ $((first + came)) = $all ]
}

build=$(cd "$build" && pwd)
for transport in shm tcp; do
    export TRIB_TRANSPORT=$transport
    for move in "3 2" "2 5" "1 3" "4 1"; do
        # shellcheck disable=SC2086 # two numbers
        moves none none $move
        result $? "$transport: ${move/ / ranks save, } go on"
    done
done
expect "a state that is missing is named" 1 "no rank was passed the state of rank 1 of 4" \
    "$build/tools/trib-run" -n 2 -- "$build/examples/resume" "$dir/state.0" "$dir/state.2"
start_daemon one || finish
moves one none 3 2
result $? "3 with a tribd, 2 without"
moves none one 2 3
result $? "2 without a tribd, 3 with one"
moves one one 4 2
result $? "4 and 2 with one"
finish
