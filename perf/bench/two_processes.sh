#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# two_processes.sh - run a server and a client of another program, each on its own core.
# shellcheck disable=SC2034,SC2154 # of the benches that source it after take_arguments

mapfile -t cores < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
    awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }')
export client_core=${cores[0]} server_core=${cores[1]:-${cores[0]}} server_log

listens() { # PORT
    local hex
    hex=$(printf %04X "$1")
    grep -qE "^ *[0-9]+: [0-9A-F]+:$hex 0+:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# Set port to an unused one, which is not that of the previous call.
port=""
next_port() {
    port=$((${port:-20000 + (RANDOM + $$) % 12000} + 1))
    while listens "$port"; do port=$((port + 1)); done
}

# Starts a server and, once it listens on port, a client, which writes to standard output.
pair() { # SERVER_COMMAND… -- CLIENT_COMMAND…
    local server=() pid tries failed=0
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    taskset -c "$server_core" timeout -k 5 60 "${server[@]}" >"$server_log" 2>&1 &
    pid=$!
    for ((tries = 0; tries < 200; tries++)); do
        ! listens "$port" || break
        sleep 0.05
    done
    taskset -c "$client_core" timeout -k 5 60 "$@" || failed=$?
    wait "$pid" || failed=$?
    [ "$failed" = 0 ] || cat "$server_log" >&2
    return "$failed"
}
