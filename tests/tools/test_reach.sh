#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-info --reach as a user runs it: alone, under trib-run, under mpirun.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
info=$build/tools/trib-info
run=$build/tools/trib-run
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# NAME, expected exit code, extended regular expressions of required lines, an empty word, command
shows() {
    local name=$1 code=$2 lines=() line good=0
    shift 2
    while [ -n "$1" ]; do
        lines+=("$1")
        shift
    done
    shift
    expect "$name" "$code" "" "$@"
    for line in "${lines[@]}"; do
        grep -qE -- "$line" "$said" || good=1
    done
    result $good "$name: its lines"
}

shows "one rank alone" 0 "^  0 +host .*, process [0-9]+$" "run this under trib-run" "" \
    "$info" --reach
shows "ranks of one host" 0 "0 +- +shm +shm" "2 +shm +shm +-" "shm: same host \(0 to 1" "" \
    "$run" -n 3 -- "$info" --reach
! grep ' $' "$said"
result $? "and end without a blank"
TRIB_TRANSPORT=auto:ranks_per_host=2 shows "two hosts, made out to be" 0 \
    "0 +- +shm +tcp +tcp" "3 +tcp +tcp +shm +-" "tcp: another host.* \(0 to 2, and 7 more" "" \
    "$run" -n 4 -- "$info" --reach
TRIB_TRANSPORT=auto:near=tcp shows "why not by shm" 0 "tcp: shm: not selected" "" \
    "$run" -n 2 -- "$info" --reach
TRIB_TRANSPORT=tcp shows "a transport by name" 0 "tcp: asked for by name" "" \
    "$run" -n 2 -- "$info" --reach
TRIB_CODEC=bf16 shows "whatever the codec" 0 "shm: same host" "" \
    "$run" -n 2 -- "$info" --reach
shows "json" 0 '"from": 0' '"transport": "shm"' '"why": "same host"' "" \
    "$run" -n 2 --tag none -- "$info" --reach --json
shows "a job that cannot start" 1 "trib-info: " "" \
    env TRIB_TRANSPORT=shn "$info" --reach
missing mpirun.openmpi "under mpirun" ||
    shows "under mpirun" 0 "0 +- +shm" "" \
        mpirun.openmpi --oversubscribe -n 2 "$info" --reach
finish
