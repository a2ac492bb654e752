#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-info as a user runs it.
set -u
info=${abs_top_builddir:-.}/tools/trib-info
said=$(mktemp)
trap 'rm -f "$said" "$said.sum"' EXIT
number=0 failed=0

# NAME, expected exit code, words that must be said, arguments
expect() {
    local name=$1 code=$2 words=$3
    shift 3
    number=$((number + 1))
    timeout 30 "$info" "$@" >"$said" 2>&1 </dev/null
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
expect "algorithms" 0 "ring" --algorithms
expect "json" 0 '"algorithms": [' --json
expect "json of one part" 0 '"codecs": [' --codecs --json
expect "a misspelt option" 2 "did you mean --codecs?" --codec
expect "a wrong option" 2 "--help lists them" --nonsense
expect "help" 0 "usage: trib-info" --help

# What transports find: more than their names, and what is so here.
expect "memory for shm" 0 "GiB of memory free" --transports
expect "devices as json" 0 '"value": "' --transports --json

# A network of its own, which begins with loopback alone.
# shellcheck disable=SC2317 # called, by another shell
lonely() {
    expect "no interface" 0 "loopback alone" --transports
    ip link set lo up
    expect "loopback is none either" 0 "loopback alone" --transports
    if ip link add there type veth peer name away 2>/dev/null; then
        ip addr add 10.98.76.54/24 dev there
        expect "an interface that is down" 0 "loopback alone" --transports
        ip link set there up
        expect "an interface with its address" 0 "there (10.98.76.54" --transports
        expect "its link rate" 0 "10.98.76.54, 10 Gb/s)" --transports
        for i in $(seq 40); do
            ip addr add "10.98.75.$i/24" dev there
        done
        expect "a long list is cut" 0 "..." --transports
    else
        echo "# skipped: no veth in this kernel"
    fi
    echo "$number $failed" >"$said.sum"
}
export -f lonely expect
export info said number failed
if unshare --map-root-user --net true 2>/dev/null && command -v ip >/dev/null; then
    unshare --map-root-user --net bash -uc lonely
    read -r number failed <"$said.sum"
else
    echo "# skipped: network name spaces are refused here, or there is no ip"
fi
echo "1..$number"
exit "$failed"
