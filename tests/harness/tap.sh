#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# For test scripts, which source it first: TAP lines, a private folder, and
# common checks of commands.
#
#     . "${abs_top_srcdir:-.}/tests/harness/tap.sh"
#     expect "help" 0 "usage: trib-info" trib-info --help
#     finish
#
# $build  the build folder
# $dir    an empty folder, removed at the end; redefine at_exit for more cleanup
# $said   file with the output of the last command of expect
# $shown  files printed by a failed test
set -u
# shellcheck disable=SC2034 # for scripts that source this
build=${abs_top_builddir:-build}
dir=$(mktemp -d) || exit 1
said=$dir/said
shown=("$said")
number=0 failed=0
slow=${TRIBTEST_SLOWNESS:-1} # factor of time limits for this build

at_exit() { :; }
trap 'at_exit; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM HUP
: >"$said"

result() { # STATUS (0: passed), NAME
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        sed 's/^/# /' "${shown[@]}" | head -n 40
        failed=1
    fi
}

skip() { # NAME, REASON
    number=$((number + 1))
    echo "ok $number # SKIP $1: $2"
}

skip_all() { # REASON
    echo "1..0 # SKIP $1"
    exit 77
}

# Print the sanitizer of this build: asan, tsan, ubsan or nothing.
sanitizer() {
    nm -D "$build/.libs/libtributary.so" | sed -nE 's/.* __(asan|tsan|ubsan)_.*/\1/p' | sort | head -n 1
}

# NAME, expected exit code (any: not 0, and no timeout), words of the output ("" for
# none), command
expect() {
    local name=$1 code=$2 words=$3 got good
    shift 3
    timeout -k 5 $((${expect_seconds:-60} * slow)) "$@" >"$said" 2>&1 </dev/null
    got=$?
    { [ -z "$words" ] || grep -qF -- "$words" "$said"; } &&
        { [ "$got" = "$code" ] || { [ "$code" = any ] && [ $got != 0 ] && [ $got != 124 ]; }; }
    good=$?
    [ $good = 0 ] || echo "exit code $got, wanted $code and the words \"$words\"" >>"$said"
    result $good "$name"
}

# NAME, command: it fails with a message if standard output is a full disk
refuse_full() {
    local name=$1 got
    shift
    timeout -k 5 $((60 * slow)) "$@" >/dev/full 2>"$said" </dev/null
    got=$?
    echo "exit code $got" >>"$said"
    [ "$got" -eq 1 ] && grep -qE "cannot write (to )?standard output" "$said"
    result $? "$name"
}

missing() { # PROGRAM, NAME...: skip these tests if it is not installed
    local program=$1 name
    ! command -v "$program" >/dev/null || return 1
    shift
    for name; do
        skip "$name" "$program is not installed"
    done
}

# Wait for SECONDS without a process: starting sleep costs as much as a test that polls has to do.
exec {nothing}<> <(:)
pause() { # SECONDS
    read -rt "$1" -u "$nothing" || :
}

# SECONDS, command: repeat it until it succeeds
within() {
    local end=$((SECONDS + $1 * slow))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        pause 0.02
    done
}

gone() { # PID...: succeed if none of them runs or is a zombie
    local pid
    for pid in "$@"; do
        [ ! -e "/proc/$pid" ] || return 1
    done
}

has_lines() { # FILE, COUNT: succeed if it has at least COUNT lines
    [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

finish() {
    echo "1..$number"
    exit "$failed"
}
