#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# rxelib.sh - functions for the tests with an RDMA device; source this file.
log=$(mktemp)
number=0
own= # process of a rank

# direct BUILD FOLDER PROGRAM... - make links to the programs in FOLDER, and set build
# to it. libtool's script for a program that is not installed takes 0.4 s per start on
# an emulated machine; the links avoid it.
direct() {
    local from program built

    from=$(realpath "$1") build=$2
    shift 2
    export LD_LIBRARY_PATH=$from/.libs
    for program; do
        built=$from/${program%/*}/.libs/${program##*/}
        [ -x "$built" ] || built=$from/$program
        mkdir -p "$build/${program%/*}"
        ln -s "$built" "$build/$program"
    done
}

# check NAME COMMAND... - run a command and print its TAP line. Before it, print the
# last line that begins with "figure: ", or the output of a failed command.
check() {
    local name=$1 check_begin=$SECONDS

    shift
    number=$((number + 1))
    if "$@" >"$log" 2>&1; then
        sed -n 's/^figure: /# /p' "$log" | tail -n 1
        echo "# $((SECONDS - check_begin)) s"
        echo "ok $number - $name"
    else
        sed 's/^/# /' "$log" | tail -n 40
        echo "not ok $number - $name"
    fi
}

# Wait for SECONDS without a process: on an emulated machine the start of sleep costs tens of milliseconds.
exec {nothing}<> <(:)
pause() { # SECONDS
    read -rt "$1" -u "$nothing" || :
}

# for_seconds N COMMAND... - repeat a command until it succeeds; fail after N seconds.
for_seconds() {
    local end=$((SECONDS + $1))

    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        pause 0.2
    done
}

# Wait until the process $own is summing: rows of rank 0, perhaps through trib-run,
# appear in $log.rank. On a time-out end the process, so that it does not disturb the
# next test.
summing() {
    local end=$((SECONDS + 200))

    while [ "$(grep -c '^\(\[0\]\)\? *[0-9]' "$log.rank")" -lt 2 ]; do
        if [ "$SECONDS" -ge "$end" ] || ! kill -0 "$own" 2>/dev/null; then
            kill "$own" 2>/dev/null
            return 1
        fi
        pause 0.1
    done
}

many() { # N LIST: print the list N times
    local i list=$2

    for ((i = 1; i < $1; i++)); do list+=,$2; done
    echo "$list"
}

# allowed SECONDS - print a limit in whole seconds. It is three times the library's
# limit, because the machine is emulated, plus the time that 30 processes need to start
# (measured with 10), because it may be busy.
allowed() {
    local begin=$EPOCHREALTIME i

    for ((i = 0; i < 10; i++)); do /bin/true; done
    awk -v promise="$1" -v begin="$begin" -v now="$EPOCHREALTIME" \
        'BEGIN { printf "%d\n", 3 * promise + 3 * (now - begin) + 1 }'
}

# since BEGIN END SECONDS - check that at most SECONDS have passed; print the figure of
# the test.
since() {
    awk -v begin="$1" -v end="$2" -v most="$3" 'BEGIN {
        printf "figure: it ended after %.1f s, %d are allowed\n", end - begin, most
        exit end - begin > most
    }'
}
