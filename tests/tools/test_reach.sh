#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-info --reach as a user runs it: alone, under trib-run, under mpirun.
set -u
info=${abs_top_builddir:-.}/tools/trib-info
run=${abs_top_builddir:-.}/tools/trib-run
said=$(mktemp)
trap 'rm -f "$said"' EXIT
number=0 failed=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# NAME, expected exit code, an extended regular expression for each line that must be
# there and an empty word, command
expect() {
    local name=$1 code=$2 lines=() line well=0
    shift 2
    while [ -n "$1" ]; do
        lines+=("$1")
        shift
    done
    shift
    number=$((number + 1))
    timeout -k 5 60 "$@" >"$said" 2>&1 </dev/null
    [ $? -eq "$code" ] || well=1
    for line in "${lines[@]}"; do
        grep -qE -- "$line" "$said" || well=1
    done
    if [ $well -eq 0 ]; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failed=1
        sed 's/^/# /' "$said"
    fi
}

expect "one rank alone" 0 "^  0 +host .*, process [0-9]+$" "start this under trib-run" "" \
    "$info" --reach
expect "ranks of one host" 0 "0 +- +shm +shm" "2 +shm +shm +-" "shm: same host \(0 to 1" "" \
    "$run" -n 3 -- "$info" --reach
TRIB_TRANSPORT=auto:ranks_per_host=2 expect "two hosts, made out to be" 0 \
    "0 +- +shm +tcp +tcp" "3 +tcp +tcp +shm +-" "tcp: another host.* \(0 to 2, and 7 more" "" \
    "$run" -n 4 -- "$info" --reach
TRIB_TRANSPORT=auto:near=tcp expect "why not by shm" 0 "tcp: shm: not asked for" "" \
    "$run" -n 2 -- "$info" --reach
TRIB_TRANSPORT=tcp expect "a transport by name" 0 "tcp: asked for by name" "" \
    "$run" -n 2 -- "$info" --reach
TRIB_CODEC=bf16 expect "whatever the codec" 0 "shm: same host" "" \
    "$run" -n 2 -- "$info" --reach
expect "json" 0 '"from": 0' '"transport": "shm"' '"why": "same host"' "" \
    "$run" -n 2 --tag none -- "$info" --reach --json
expect "a job that cannot start" 1 "trib-info: " "" \
    env TRIB_TRANSPORT=shn "$info" --reach
if command -v mpirun.openmpi >/dev/null; then
    expect "under mpirun" 0 "0 +- +shm" "" \
        mpirun.openmpi --oversubscribe -n 2 "$info" --reach
else
    number=$((number + 1))
    echo "ok $number # SKIP under mpirun: Open MPI is not installed"
fi
echo "1..$number"
exit "$failed"
