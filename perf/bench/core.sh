#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# core.sh - compare the throughput of one core of tribd with the add kernel alone on that core.
#
# tribd has one thread on core 0, the workers run on core 1, over shared memory; they rewrite their
# vectors before each sum. A round runs in turn, on core 0: the add kernel (y += x of `trib-perf codec`)
# in the cache (64 KiB) and in DRAM (64 MiB); the same kernel on vectors written by core 1, while core 1
# copies results and writes more (perf/handed: the data path of tribd without tribd); tribd with codec
# none, and with int8. perf/probe measures the distance of the cores before and after each, because the
# hypervisor may change it; only launches with near cores are compared with each other.
# The result is the number of elements contributed by workers per second of work of tribd's thread:
# frames, copies and sums, but not polling. Both come from tribd's counters.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
quick "3 rounds of 1 s" rounds=3 seconds=1
options rounds
option seconds 2 S "duration of a launch"
option sizes 1M LIST "bytes of a vector"
option jobs 2 N "concurrent jobs"
option workers 2 N "workers of each job"
# shellcheck disable=SC2016 # a command
option profile '' '' 'profile tribd with `perf record`, in OUT_DIR/profile.CODEC.txt'
files='runs.csv (all launches), bench.md' limit=120
take_arguments "$@"
command -v taskset >/dev/null || die "taskset is missing (package util-linux)"
[ "$(nproc)" -ge 2 ] || die "two cores are needed: one for tribd, one for its workers"
[ -x "$build/agg/daemon/tribd" ] || die "$build/agg/daemon/tribd is missing: build first"
[ -z "$profile" ] || command -v perf >/dev/null || die "perf is missing (package linux-perf)"

private=$(mktemp -d)
tribd='' http=''
leave() {
    [ -z "$tribd" ] || kill "$tribd" 2>/dev/null || true
    wait
    rm -rf "$private"
}
trap leave EXIT
trap 'exit 130' INT TERM HUP
(umask 077; head -c 32 /dev/urandom >"$private/key")

start_tribd() {
    local port deadline=$((SECONDS + 20))
    port=$((20000 + RANDOM % 12000))
    http=$((port + 1))
    TRIB_TRANSPORT=shm TRIBD_THREADS=1 TRIBD_AUTH=key TRIBD_KEY=$private/key TRIBD_HTTP=127.0.0.1:$http \
        TRIBD_LISTEN=127.0.0.1:$port taskset -c 0 "$build/agg/daemon/tribd" >"$private/log" 2>&1 &
    tribd=$!
    until grep -q "listening at" "$private/log"; do
        if ! kill -0 "$tribd" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
            die "no tribd: $(tail -n 1 "$private/log")"
        fi
        sleep 0.05
    done
    export TRIB_SERVICE=127.0.0.1:$port TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$private/key TRIB_TRANSPORT=shm
}

columns=what,bytes,elements_per_s
add() { # BYTES
    local GBps
    GBps=$(timeout -k 5 "$limit" taskset -c 0 "$build/perf/trib-perf" codec none --sizes "$1" --csv - |
        csv_columns add_GBps)
    awk -v g="$GBps" -v row="add,$1" 'BEGIN { printf "%s,%.6g\n", row, g * 1e9 / 4 }'
}

handed() { # BYTES
    local rate
    rate=$(timeout -k 5 "$limit" "$build/perf/handed" "$(numfmt --from=iec "$1")" "$workers")
    awk -v rate="$rate" -v row="handed,$1" 'BEGIN { printf "%s,%.6g\n", row, rate * 1e9 }'
}

# tribd's counters since its start: bytes as float32, in both directions, and seconds of work.
counted() {
    exec 3<>"/dev/tcp/127.0.0.1/$http" || die "tribd gives no metrics"
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    awk '$1 == "tribd_dense_bytes_total" { bytes = $2 } $1 == "tribd_busy_seconds_total" { busy = $2 }
        END { print bytes, busy }' <&3
    exec 3>&-
}

serve() { # CODEC BYTES
    local before after
    before=$(counted)
    timeout -k 5 "$limit" taskset -c 1 "$build/perf/trib-perf" agg --jobs "$jobs" --workers "$workers" \
        --codec "$1" --sizes "$2" --seconds "$seconds" --rewrite --csv - >/dev/null || return
    after=$(counted)
    awk -v row="$1,$2" '{ printf "%s,%.6g\n", row, ($3 - $1) / 8 / ($4 - $2) }' <<<"$before $after"
}

profile_of() { # CODEC
    local bytes
    perf record -q -g -F 499 -o "$private/perf.data" -p "$tribd" -- sleep "$seconds" 2>>"$errors" &
    for bytes in ${sizes//,/ }; do launch_probed 0 "$1, $bytes" serve "$1" "$bytes"; done
    wait $!
    perf report -i "$private/perf.data" --no-children -g none --percent-limit 1 --stdio 2>>"$errors" |
        grep -E '^ +[0-9]' >"$out/profile.$1.txt" || true
}

one_round() {
    local bytes
    for bytes in 64K 64M; do contend '' "add, $bytes" add "$bytes"; done
    for bytes in ${sizes//,/ }; do contend '' "handed, $bytes" handed "$bytes"; done
    for bytes in ${sizes//,/ }; do contend '' "none, $bytes" serve none "$bytes"; done
    for bytes in ${sizes//,/ }; do contend '' "int8, $bytes" serve int8 "$bytes"; done
}
start_tribd
measure
if [ -n "$profile" ]; then
    profile_of none
    profile_of int8
fi
about="Cores and vectors as in --help; $rounds launches, in turn."
page_rows() {
    awk -F, 'NR == 1 { print "what_for,bytes,us"; next }
        { b = $5 + 0; if ($5 ~ /K$/) b *= 1024; if ($5 ~ /M$/) b *= 1048576; print $4 "," b "," b / 4 / $6 * 1e6 }' "$runs"
}
finish split_by= name=what_for own=. key=way run='"command": "vectors by one core"'
