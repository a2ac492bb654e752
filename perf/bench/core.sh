#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# core.sh - compare the throughput of one core of tribd with the add kernel alone on that core.
#
#   perf/bench/core.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           3 rounds of 1 s
#   --rounds N        launches of each [5]
#   --seconds S       duration of a launch [2]
#   --sizes LIST      bytes of a vector [1M]
#   --jobs N          concurrent jobs [2]
#   --workers N       workers of each job [2]
#   --profile         profile tribd with `perf record`, in OUT_DIR/profile.CODEC.txt
#
# tribd has one thread on core 0, the workers run on core 1, over shared memory; they rewrite their
# vectors before each sum. A round runs in turn, on core 0: the add kernel (y += x of `trib-perf codec`)
# in the cache (64 KiB) and in DRAM (64 MiB); the same kernel on vectors written by core 1, while core 1
# copies results and writes more (perf/handed: the data path of tribd without tribd); tribd with codec
# none, and with int8. perf/probe measures the distance of the cores before and after each, because the
# hypervisor may change it; only launches with near cores are compared with each other.
# The result is the number of elements contributed by workers per second of work of tribd's thread:
# frames, copies and sums, but not polling. Both come from tribd's counters.
# The files in OUT_DIR are runs.csv (all launches) and bench.md.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 seconds=2 sizes=1M jobs=2 workers=2 profile=''
limit=120 # seconds for a launch
# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [seconds]=seconds [sizes]=sizes [jobs]=jobs [workers]=workers)
on_quick() { rounds=3 seconds=1; }
on_profile() { profile=yes; }
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

field() { # NAME of a csv's column: its values; texts in quotation marks may have commas
    awk -v name="$1" -F , '{ gsub(/"[^"]*"/, "text") } NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        { print $at }'
}

add() { # BYTES
    local GBps
    GBps=$(timeout -k 5 "$limit" taskset -c 0 "$build/perf/trib-perf" codec none --sizes "$1" --csv - |
        field add_GBps)
    awk -v g="$GBps" -v row="add,$1" 'BEGIN { printf "%s,%.6g\n", row, g * 1e9 / 4 }'
}

handed() { # BYTES
    local rate
    rate=$(timeout -k 5 "$limit" "$build/perf/handed" "$(in_bytes "$1")" "$workers")
    awk -v rate="$rate" -v row="handed,$1" 'BEGIN { printf "%s,%.6g\n", row, rate * 1e9 }'
}

in_bytes() { # SIZE
    case $1 in
        *K) echo $((${1%K} << 10)) ;;
        *M) echo $((${1%M} << 20)) ;;
        *) echo "$1" ;;
    esac
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

each_size() { # ROUND WHAT FUNCTION ARGUMENT…
    local bytes round=$1 what=$2
    shift 2
    for bytes in ${sizes//,/ }; do launch_probed "$round" "$what, $bytes" "$@" "$bytes"; done
}

profile_of() { # CODEC
    perf record -q -g -F 499 -o "$private/perf.data" -p "$tribd" -- sleep "$seconds" 2>>"$errors" &
    each_size 0 "$1" serve "$1"
    wait $!
    perf report -i "$private/perf.data" --no-children -g none --percent-limit 1 --stdio 2>>"$errors" |
        grep -E '^ +[0-9]' >"$out/profile.$1.txt" || true
}

# Rows: round, cores before, cores after, what, bytes, elements a second. Launches with near cores before
# and after are in one table, the others in another.
table() { # CORES: near or other
    awk -F , -v cores="$1" 'NR > 1 && $1 > 0 && (($2 == "near" && $3 == "near") == (cores == "near")) {
            key = $4 "," $5; if (!(key in n)) order[++keys] = key; v[key, ++n[key]] = $6
        }
        function sorted(key,    i, j, t) {
            for (i = 2; i <= n[key]; i++)
                for (j = i; j > 1 && v[key, j - 1] > v[key, j]; j--) {
                    t = v[key, j]; v[key, j] = v[key, j - 1]; v[key, j - 1] = t
                }
        }
        function median(key) { return v[key, int((n[key] + 1) / 2)] }
        function ratio(a, key) { return (key in n) ? sprintf("%.2f", a / median(key)) : "-" }
        END {
            if (!keys)
                exit
            print "**Cores " (cores == "near" ? "near each other before and behind a launch" : "far from each other, or not the same before and behind") "**\n"
            print "| what | vector | launches | 10⁹ elements a second of one core, median [least-greatest] | to add in cache | to add in DRAM | to perf/handed | to none |\n|---|--:|--:|--:|--:|--:|--:|--:|"
            for (k = 1; k <= keys; k++) sorted(order[k])
            for (k = 1; k <= keys; k++) {
                split(order[k], p, ","); m = median(order[k])
                printf "| %s | %s | %d | %.3f [%.3f-%.3f] | %s | %s | %s | %s |\n", p[1], p[2], n[order[k]], m / 1e9, v[order[k], 1] / 1e9,
                    v[order[k], n[order[k]]] / 1e9, ratio(m, "add,64K"), ratio(m, "add,64M"), p[1] == "add" ? "-" : ratio(m, "handed," p[2]), p[1] == "int8" || p[1] == "none" ? ratio(m, "none," p[2]) : "-"
            }
            print ""
        }' "$runs"
}

echo "round,before,after,what,bytes,elements_per_s" >"$runs"
start_tribd
for ((round = 1; round <= rounds; round++)); do
    launch_probed "$round" "add, 64K" add 64K
    launch_probed "$round" "add, 64M" add 64M
    each_size "$round" handed handed
    each_size "$round" none serve none
    each_size "$round" int8 serve int8
done
if [ -n "$profile" ]; then
    profile_of none
    profile_of int8
fi
{
    absent_lines
    table near
    table other
} >"$out/bench.md"
show_tables "$out/bench.md"
awk -F, 'NR == 1 { print "what_for,bytes,us"; next }
    { b = $5 + 0; if ($5 ~ /K$/) b *= 1024; if ($5 ~ /M$/) b *= 1048576; print $4 "," b "," b / 4 / $6 * 1e6 }' \
    "$runs" >"$out/times.csv"
rows=$out/times.csv write_page split_by= name=what_for own=. key=way run='"command": "vectors by one core"'
rm "$out/times.csv"
