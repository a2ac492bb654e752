#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# examples/exact: the hash of the sum depends neither on the number of ranks nor on the algorithm.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"

hash_of() { # RANKS ALGORITHM, arguments of the example
    TRIB_ALGORITHM=$2 "$build/tools/trib-run" -n "$1" -- "$build/examples/exact" \
        --elements 20000 "${@:3}" 2>&1 | tee -a "$said" |
        sed -n 's/.*: sum \([0-9a-f]*\) of.*/\1/p'
}

exact="" none=""
for algorithm in direct ring tree; do
    for ranks in 3 4 5; do
        exact+="$(hash_of $ranks $algorithm --shift $ranks) "
        exact+="$(hash_of $ranks $algorithm --shift 1) "
        none+="$(hash_of $ranks $algorithm --shift 1 --codec none) "
    done
done
[ "$(xargs -n1 <<<"$exact" | sort -u | wc -l) $(wc -w <<<"$exact")" = "1 18" ]
result $? "18 ways to sum, the same bits"
[ "$(xargs -n1 <<<"$none" | sort -u | wc -l)" -gt 1 ]
result $? "without the codec they differ"
finish
