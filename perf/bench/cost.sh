#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# cost.sh - compare the processor time of compressed sums with its lower bound.
#
# A round launches each codec alone (perf/cost: one thread encodes the vector, with error feedback if
# the codec has it, and writes a result), then as an all-reduce of plans over each transport with each
# number of ranks. Both are user and system time per element and rank.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
quick "1 round, 1 MB, few samples: a smoke test" rounds=1 size=1000000 samples=3
options rounds ranks links
option size 25000000 BYTES "of the vector"
option samples 7 N "sums of a launch, and passes of the codec alone"
options limit
option only '' LIST "codecs, by the names of rows, comma-separated"
options write
take_arguments "$@"
unset TRIB_CALIBRATION

columns=codec,link,ranks,bytes,ns
alone() { # NAME CODEC
    local ns
    ns=$("$build/perf/cost" "$2" "$size" "$samples")
    echo "$1,alone,1,$size,$ns"
}

whole() { # NAME CODEC LINK RANKS
    TRIB_TRANSPORT=$3 "$build/perf/trib-perf" allreduce -n "$4" --sizes "$size" --call plan \
        --codec "$2" --warmup 3 --iters "$samples" --csv - | csv_columns cpu_us |
        awk -v row="$1,$3,$4,$size" -v elements=$((size / 4)) '{ printf "%s,%.4f\n", row, 1e3 * $1 / elements }'
}

one_round() {
    local name codec link n
    while read -r name codec; do
        contend "$name" "$name alone" guarded alone "$name" "$codec"
        for link in $links; do
            for n in $ranks_list; do
                contend "$name" "$name over $link, $n ranks" guarded whole "$name" "$codec" "$link" "$n"
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
}
measure
about="float32 sum of $size bytes, out of place; $rounds launches, interleaved, $samples sums each."
page_rows() {
    awk -F, 'NR == 1 { print "link,ranks,codec,bytes,us"; next } { print $5 "," $6 "," $4 "," $7 "," $8 * $7 / 4e3 }' "$runs"
}
finish split_by="link ranks" name=codec own=. key=codec run='"command": "processor time of a sum"'
