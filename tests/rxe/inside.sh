#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# inside.sh BUILD STATUS - what run.sh runs on the machine with the RDMA device: first that
# the device works for others, then our tests, whose TAP lines pass through. It exits with
# STATUS, whatever fails: so run.sh knows that the end was reached.
# shellcheck disable=SC2317 # functions are called through check
set -u
build=$1
log=$(mktemp)
number=0
export CMOCKA_MESSAGE_OUTPUT=TAP
export CONFORMANCE_CASE_MS=100000 # the machine may be an emulated one

check() { # NAME COMMAND...
    local name=$1

    shift
    number=$((number + 1))
    if "$@" >"$log" 2>&1; then
        sed -n 's/^figure: /# /p' "$log" | tail -n 1
        echo "ok $number - $name"
    else
        sed 's/^/# /' "$log" | tail -n 40
        echo "not ok $number - $name"
    fi
}

# program NAME PATH [ARGUMENT]... - one that prints TAP lines of its own.
program() {
    local name=$1 status

    shift
    timeout -k 5 250 "$@" >"$log" 2>&1 </dev/null
    status=$?
    cat "$log"
    if ! grep -q '^ok ' "$log"; then
        echo "not ok 1 - $name prints no TAP line, exit status $status"
    elif [ $status != 0 ] && ! grep -q '^not ok ' "$log"; then
        echo "not ok 1 - $name, exit status $status"
    fi
}

device() {
    ibv_devinfo -d "$RXE_DEVICE" | tee /dev/stderr | grep -q 'PORT_ACTIVE'
}

mtu() {
    ibv_devinfo -d "$RXE_DEVICE" | tee /dev/stderr | grep -q 'active_mtu:[[:space:]]*4096 '
}

# perftest PROGRAM COLUMN UNIT ARGUMENT... - between two processes; the figure must be
# above 0. Ports differ, so that no run meets the end of the one before.
perftest() {
    local name=$1 column=$2 unit=$3 server tries
    shift 3
    port=$((${port:-18514} + 1))

    timeout 30 "$name" -d "$RXE_DEVICE" -p "$port" "$@" >"$log.server" 2>&1 &
    server=$!
    for ((tries = 0; tries < 100; tries++)); do # until the server listens
        ! ss -Hltn "sport = $port" | grep -q . || break
        sleep 0.1
    done
    timeout 30 "$name" -d "$RXE_DEVICE" -p "$port" "$@" "$RXE_ADDRESS" >"$log.client" 2>&1 &&
        wait "$server"
    local status=$?
    cat "$log.server" "$log.client"
    awk -v column="$column" -v what="figure: $name $unit" \
        '/^ *[0-9]+ +[0-9]/ { print what, $column; good = $column ~ /^[0-9.]+$/ && $column > 0 } END { exit !good }' \
        "$log.client" && [ "$status" = 0 ]
}

pings() {
    local server status tries

    timeout 30 rping -s -a "$RXE_ADDRESS" -C 10 -v >"$log.server" 2>&1 &
    server=$!
    for ((tries = 0; tries < 100; tries++)); do # until the server listens
        ! rdma resource show cm_id | grep -q 'state LISTEN' || break
        sleep 0.1
    done
    timeout 30 rping -c -a "$RXE_ADDRESS" -C 10 -v >"$log.client" 2>&1
    status=$?
    wait "$server"
    cat "$log.server" "$log.client"
    [ "$status" = 0 ] && [ "$(grep -c 'ping data: ' "$log.client")" = 10 ]
}

# On a busy machine perftest now and then fails to learn the clock's rate, and then says
# that everything takes 0 or endless time: not the device's fault.
latency() {
    local tries

    for tries in 1 2 3 4; do
        perftest ib_write_lat 5 "of 8 bytes, us (try $tries)" -s 8 -n 1000 && return
    done
    return 1
}

info() {
    "$build/tools/trib-info" | tee /dev/stderr | grep -q .
}

# over_verbs COMMAND... - two ranks.
over_verbs() {
    TRIB_TRANSPORT=verbs timeout 90 "$build/tools/trib-run" -n 2 -- "$@"
}

check "the device is there and active" device
check "RDMA packets of 4096 bytes" mtu
check "perftest: latency of writes" latency
check "perftest: bandwidth of writes" perftest ib_write_bw 4 "of 64 KiB, MB/s" -s 65536 -n 500
check "rping: ten pings through the connection manager" pings
check "trib-info starts" info
check "two ranks sum over verbs" over_verbs "$build/examples/sum"
check "all-reduce over verbs, checked" over_verbs "$build/perf/trib-perf" \
    allreduce --sizes 8,64K --iters 3 --check
program test_conformance "$build/tests/transport/test_conformance"
export CONFORMANCE_TRANSPORT=verbs
CONFORMANCE_FILTER="*processes]" program verbs "$build/tests/transport/test_conformance"
CONFORMANCE_FILTER="*threads]" program verbs "$build/tests/transport/test_conformance"
rm -f "$log" "$log".*
exit "$2"
