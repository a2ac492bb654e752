#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-info as a user runs it.
set -u
info=${abs_top_builddir:-.}/tools/trib-info
said=$(mktemp)
trap 'rm -f "$said"' EXIT
number=0 failed=0
slow=${TRIBTEST_SLOWNESS:-1}

# NAME, expected exit code, words that must be said, arguments
expect() {
    local name=$1 code=$2 words=$3
    shift 3
    number=$((number + 1))
    timeout $((60 * slow)) "$info" "$@" >"$said" 2>&1 </dev/null
    local got=$?
    if grep -qF -- "$words" "$said" && [ "$got" -eq "$code" ]; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name (exit code $got)"
        failed=1
        sed 's/^/# /' "$said"
    fi
}

expect "summary names the version" 0 "tributary "
expect "summary lists transports" 0 "transports"
expect "summary bounds the memory" 0 "slots of an edge"
expect "summary fits a screen" 0 "settings: all default"
expect "settings" 0 "TRIB_CHUNK" --config
TRIB_CHUNK=64K expect "origin of a setting" 0 "environment" --config
TRIB_CHUNK=64K expect "summary shows what was set" 0 "TRIB_CHUNK"
TRIB_CHUNK=lots expect "an impossible setting" 1 "TRIB_CHUNK"
expect "codecs" 0 "none" --codecs
expect "algorithms" 0 "  ring   " --algorithms
expect "json" 0 '"algorithms": [' --json
expect "json of one part" 0 '"codecs": [' --codecs --json
expect "a misspelt option" 2 "did you mean --codecs?" --codec
expect "a wrong option" 2 "--help lists them" --nonsense
expect "help" 0 "usage: trib-info" --help
echo "1..$number"
exit "$failed"
