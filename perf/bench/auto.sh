#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# auto.sh - compare algorithm auto with each fixed algorithm, and codec auto with dense sums.
#
#   perf/bench/auto.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round, 2 sizes, few samples: a smoke test
#   --rounds N        launches of each program [5]
#   --ranks LIST      such as "2 4" [2 4]
#   --links LIST      transports [shm tcp]
#   --sizes LIST      bytes, comma-separated [8,64,512,4096,32768,262144,2097152,16777216]
#   --samples N       samples a size and launch [as many as fit 0.5 s]
#   --limit S         time limit of a launch, in seconds [60]
#   --only LIST       contenders, comma-separated
#   --write           also write the tables to perf/results/auto.md
#
# Ranks of this host, bound to cores if there are enough. The files in OUT_DIR are runs.csv (all
# launches), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 ranks_list="2 4" links="shm tcp" samples='' only='' limit=60 write=''
sizes=8,64,512,4096,32768,262144,2097152,16777216

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [ranks]=ranks_list [links]=links [sizes]=sizes
    [samples]=samples [limit]=limit [only]=only)
on_quick() { rounds=1 sizes=64,65536 samples=5; }
on_write() { write=yes; }
take_arguments "$@"
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_SERVICE TRIB_CALIBRATION TRIB_ALGORITHM

# Rows "contender,link,ranks,bytes,us".
sums() { # CONTENDER LINK RANKS WARMUP OPTION…
    local bind=none
    [ "$3" -gt "$(nproc)" ] || bind=core
    TRIB_TRANSPORT=$2 "$build/perf/trib-perf" allreduce -n "$3" --sizes "$sizes" --call plan \
        --bind "$bind" --warmup "$4" ${samples:+--iters "$samples"} "${@:5}" --csv - |
        awk -F, -v row="$1,$2,$3" '
            NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { printf "%s,%s,%s\n", row, $at["bytes"], $at["p50_us"] }'
}

launch() { # ROUND CONTENDER LINK RANKS
    local codec=none algorithm=$2 warmup=20
    wanted "$2" || return 0
    [ "$2" != codec-auto ] || codec=auto:max_nmse=1e-3 algorithm=auto warmup=80
    launch_probed "$1" "$2 over $3, $4 ranks" guarded sums "$2" "$3" "$4" "$warmup" \
        --codec "$codec" --algorithm "$algorithm"
}

contenders=(auto flat direct halving-doubling ring tree codec-auto)
export build sizes samples
export -f sums

# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * $(count_of $links) * $(count_of $ranks_list) * ${#contenders[@]}))
echo "round,before,after,contender,link,ranks,bytes,us" >"$runs"
for ((round = 1; round <= rounds; round++)); do
    for link in $links; do
        for n in $ranks_list; do
            for ((i = 0; i < ${#contenders[@]}; i++)); do
                # Each round begins with another contender, because the previous one may affect the next.
                launch "$round" "${contenders[(i + round - 1) % ${#contenders[@]}]}" "$link" "$n"
            done
        done
    done
done
tables_by_awk auto "Plans of float32 sums out of place; $rounds launches, interleaved. codec auto: max_nmse=1e-3, after 80 starts."
write_page split_by="link ranks" name=contender own=. key=way run="$allreduce_run"
