#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# cost.sh - compare the processor time of compressed sums with its lower bound.
#
#   perf/bench/cost.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round, 1 MB, few samples: a smoke test
#   --rounds N        launches of each program [5]
#   --ranks LIST      such as "2 4" [2 4]
#   --links LIST      transports [shm tcp]
#   --size BYTES      of the vector [25000000]
#   --samples N       sums of a launch, and passes of the codec alone [7]
#   --limit S         time limit of a launch, in seconds [60]
#   --only LIST       codecs, by the names of rows, comma-separated
#   --write           also write the tables to perf/results/cost.md
#
# A round launches each codec alone (perf/cost: one thread encodes the vector, with error feedback if
# the codec has it, and writes a result), then as an all-reduce of plans over each transport with each
# number of ranks. Both are user and system time per element and rank. The files in OUT_DIR are runs.csv (all launches), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 ranks_list="2 4" links="shm tcp" size=25000000 samples=7 only='' limit=60 write=''

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [ranks]=ranks_list [links]=links [size]=size
    [samples]=samples [limit]=limit [only]=only)
on_quick() { rounds=1 size=1000000 samples=3; }
on_write() { write=yes; }
take_arguments "$@"
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_SERVICE TRIB_CALIBRATION

# Rows "codec,link,ranks,bytes,ns an element".
alone() { # NAME CODEC
    local ns
    ns=$("$build/perf/cost" "$2" "$size" "$samples")
    echo "$1,alone,1,$size,$ns"
}

whole() { # NAME CODEC LINK RANKS
    TRIB_TRANSPORT=$3 "$build/perf/trib-perf" allreduce -n "$4" --sizes "$size" --call plan \
        --codec "$2" --warmup 3 --iters "$samples" --csv - |
        awk -F, -v row="$1,$3,$4,$size" -v elements=$((size / 4)) '
            { sub(/"[^"]*"/, "codec") } # its text may have commas
            NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { printf "%s,%.4f\n", row, 1e3 * $at["cpu_us"] / elements }'
}

export build size samples
export -f alone whole

# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * 9 * (1 + $(count_of $links) * $(count_of $ranks_list))))
echo "round,before,after,codec,link,ranks,bytes,ns" >"$runs"
for ((round = 1; round <= rounds; round++)); do
    while read -r name codec; do
        wanted "$name" || continue
        launch_probed "$round" "$name alone" guarded alone "$name" "$codec"
        for link in $links; do
            for n in $ranks_list; do
                launch_probed "$round" "$name over $link, $n ranks" \
                    guarded whole "$name" "$codec" "$link" "$n"
            done
        done
    done <<'ROWS'
dgc dgc:ratio=0.001
topk topk:ratio=0.01
int8 int8:result=requantised
qsgd qsgd:bits=4
natural natural
efsign efsign
int8-ef int8:result=requantised,ef=1
qsgd-ef qsgd:bits=4,ef=1
natural-ef natural:ef=1
ROWS
done
tables_by_awk cost "float32 sum of $size bytes, out of place; $rounds launches, interleaved, $samples sums each."
awk -F, 'NR == 1 { print "link,ranks,codec,bytes,us"; next } { print $5 "," $6 "," $4 "," $7 "," $8 * $7 / 4e3 }' \
    "$runs" >"$out/cpu.csv"
rows=$out/cpu.csv write_page split_by="link ranks" name=codec own=. key=codec run='"command": "processor time of a sum"'
