#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench-core.sh - what one core of tribd sums, beside the add kernel alone on that core.
#
#   perf/bench-core.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           3 rounds of 1 s
#   --rounds N        launches of each [5]
#   --seconds S       of a launch [2]
#   --sizes LIST      bytes of a vector [1M]
#   --jobs N          at once [2]
#   --workers N       of each job [2]
#   --profile         where tribd's time goes, by `perf record`, in OUT_DIR/profile.CODEC.txt
#
# tribd has one thread on core 0, and the workers have core 1, over shared memory. A round takes by
# turns, on core 0: the add kernel (y += x of `trib-perf codec`, in the cache: 64 KiB), tribd with
# codec none, and with int8. Elements are those that workers put in, for a second of processor time;
# tribd's has its looking and waiting in it. Into OUT_DIR go runs.csv (all launches) and bench.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

rounds=5 seconds=2 sizes=1M jobs=2 workers=2 profile=''
limit=120 # seconds for a launch
# shellcheck source=perf/benchlib.sh
. "$here/benchlib.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [seconds]=seconds [sizes]=sizes [jobs]=jobs [workers]=workers)
on_quick() { rounds=3 seconds=1; }
on_profile() { profile=yes; }
take_arguments "$@"
command -v taskset >/dev/null || die "taskset is missing (package util-linux)"
[ "$(nproc)" -ge 2 ] || die "two cores are needed: one for tribd, one for its workers"
[ -x "$build/tribd/tribd" ] || die "$build/tribd/tribd is missing: build first"
[ -z "$profile" ] || command -v perf >/dev/null || die "perf is missing (package linux-perf)"

private=$(mktemp -d)
tribd=''
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
    TRIB_TRANSPORT=shm TRIBD_THREADS=1 TRIBD_AUTH=key TRIBD_KEY=$private/key TRIBD_HTTP='' \
        TRIBD_LISTEN=127.0.0.1:$port taskset -c 0 "$build/tribd/tribd" >"$private/log" 2>&1 &
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

add() { # ROUND
    local GBps
    GBps=$(timeout -k 5 $limit taskset -c 0 "$build/perf/trib-perf" codec none --sizes 64K --csv - 2>>"$errors" |
        field add_GBps)
    awk -v g="$GBps" -v r="$1" 'BEGIN { printf "%d,add,65536,%.6g\n", r, g * 1e9 / 4 }' >>"$runs"
}

serve() { # ROUND CODEC
    local rows
    rows=$(timeout -k 5 $limit taskset -c 1 "$build/perf/trib-perf" agg --jobs "$jobs" --workers "$workers" \
        --codec "$2" --sizes "$sizes" --seconds "$seconds" --tribd-pid "$tribd" --csv - 2>>"$errors") ||
        die "trib-perf agg has failed: $(tail -n 1 "$errors")"
    paste -d , <(field bytes <<<"$rows") <(field tribd_elements_per_cpu_s <<<"$rows") |
        sed "s/^/$1,$2,/" >>"$runs"
}

profile_of() { # CODEC
    perf record -q -g -F 499 -o "$private/perf.data" -p "$tribd" -- sleep "$seconds" 2>>"$errors" &
    serve 0 "$1"
    wait $!
    perf report -i "$private/perf.data" --no-children -g none --percent-limit 1 --stdio 2>>"$errors" |
        grep -E '^ +[0-9]' >"$out/profile.$1.txt" || true
}

tables() {
    awk -F , 'NR > 1 && $1 > 0 { key = $2 "," $3; if (!(key in n)) order[++keys] = key; v[key, ++n[key]] = $4 }
        function sorted(key,    i, j, t) {
            for (i = 2; i <= n[key]; i++)
                for (j = i; j > 1 && v[key, j - 1] > v[key, j]; j--) {
                    t = v[key, j]; v[key, j] = v[key, j - 1]; v[key, j - 1] = t
                }
        }
        function median(key) { return v[key, int((n[key] + 1) / 2)] }
        END {
            print "| what | vector | 10⁹ elements a second of one core, median [least-greatest] | to add | to none |\n|---|--:|--:|--:|--:|"
            for (k = 1; k <= keys; k++) {
                sorted(order[k]); split(order[k], p, ",")
                add = median("add,65536"); none = (("none," p[2]) in n) ? median("none," p[2]) : 0
                printf "| %s | %d | %.3f [%.3f-%.3f] | %.2f | %s |\n", p[1], p[2], median(order[k]) / 1e9, v[order[k], 1] / 1e9,
                    v[order[k], n[order[k]]] / 1e9, median(order[k]) / add, none ? sprintf("%.2f", median(order[k]) / none) : "-"
            }
        }' "$runs"
}

echo "round,what,bytes,elements_per_cpu_s" >"$runs"
start_tribd
for ((round = 1; round <= rounds; round++)); do
    say "round $round of $rounds"
    add "$round"
    serve "$round" none
    serve "$round" int8
done
if [ -n "$profile" ]; then
    profile_of none
    profile_of int8
fi
tables | tee "$out/bench.md"
