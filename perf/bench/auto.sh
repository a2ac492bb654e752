#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# auto.sh - compare algorithm auto with each fixed algorithm, and codec auto with dense sums.
#
# Ranks of this host, bound to cores if there are enough.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
quick "1 round, 2 sizes, few samples: a smoke test" rounds=1 sizes=64,65536 samples=5
options rounds ranks links sizes=8,64,512,4096,32768,262144,2097152,16777216 samples= limit only write
take_arguments "$@"
unset TRIB_CALIBRATION TRIB_ALGORITHM

columns=contender,link,ranks,bytes,us
sums() { # CONTENDER LINK RANKS
    local bind=none codec=none algorithm=$1 warmup=20
    [ "$3" -gt "$(nproc)" ] || bind=core
    [ "$1" != codec-auto ] || codec=auto:max_nmse=1e-3 algorithm=auto warmup=80
    TRIB_TRANSPORT=$2 "$build/perf/trib-perf" allreduce -n "$3" --sizes "$sizes" --call plan --bind "$bind" \
        --warmup "$warmup" ${samples:+--iters "$samples"} --codec "$codec" --algorithm "$algorithm" --csv - |
        csv_columns bytes p50_us | sed "s/^/$1,$2,$3,/"
}

contenders=(auto flat direct halving-doubling ring tree codec-auto)
one_round() {
    local link n i who
    for link in $links; do
        for n in $ranks_list; do
            for ((i = 0; i < ${#contenders[@]}; i++)); do
                # Each round begins with another contender, because the previous one may affect the next.
                who=${contenders[(i + round + ${#contenders[@]} - 1) % ${#contenders[@]}]}
                contend "$who" "$who over $link, $n ranks" guarded sums "$who" "$link" "$n"
            done
        done
    done
}
measure
about="Plans of float32 sums out of place; $rounds launches, interleaved. codec auto: max_nmse=1e-3, after 80 starts."
finish split_by="link ranks" name=contender own=. key=way run="$allreduce_run"
