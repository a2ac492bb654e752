#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-perf codec as a user runs it.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf
expect_seconds=100

# NAME, expected exit code, required words of the output, arguments
codec() {
    expect "$1" "$2" "$3" "$perf" codec "${@:4}"
}

# field COLUMN - print it from the first row of $dir/out.csv
field() {
    sed 's/^"[^"]*"//' "$dir/out.csv" | awk -F, -v name="$1" \
        'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at[name] }'
}

quick=(--iters 2 --sizes "4K,200004")
codec "one of each row" 0 "uniform-thc" "${quick[@]}"
codec "one that has no model of a vector is passed over" 0 'codec "lgc:' --iters 1 --sizes 4K
codec "and fails where it was asked for" 1 'codec "lgc:' lgc --iters 1 --sizes 4K
codec "by two threads, in chunks that do not divide" 0 "2 threads" int8 topk thc --threads 2 \
    --chunk 10000 "${quick[@]}"
for input in laplace student; do
    codec "of $input values" 0 "$input input" natural --input "$input" "${quick[@]}"
done
head -c 6000 /dev/urandom >"$dir/gradient.f32"
codec "of a file" 0 "file input" none --input "$dir/gradient.f32" "${quick[@]}"

head -c 262144 /dev/zero >"$dir/layers.f32"
head -c 65536 /dev/zero | tr '\0' '>' >>"$dir/layers.f32"
codec "of a file whose last layer alone is not 0" 0 "" topk:k=1 --csv "$dir/out.csv" \
    --input "$dir/layers.f32" --iters 2 --sizes 16K
awk -v x="$(field nmse)" 'BEGIN { exit !(x > 0.5 && x < 1) }'
result $? "a part of the vector is of that layer"

codec "csv" 0 "" f16 --csv "$dir/out.csv" --iters 2 --sizes 64K
[ "$(field bytes_per_element)" = 2.000000 ] && [ -z "$(field merge_GBps)" ]
result $? "f16 takes 2 bytes, and its words do not add"
above() { awk -v x="$1" "BEGIN { exit !(x > 0) }"; }
above "$(field add_GBps)" && above "$(field add_ratio)"
result $? "the traffic of error feedback stands beside it"
codec "merge" 0 "" signsgd --csv "$dir/out.csv" --iters 2 --sizes 64K
[ -n "$(field merge_GBps)" ] && [ -z "$(field encode_ef_GBps)" ]
result $? "signsgd's words add, and it has no error feedback"
codec "json" 0 '"encode_ef"' bf16 --json - --iters 2 --sizes 64K

codec "constants of classes" 0 "gamma" topk:ratio=0.01 natural --classes
codec "the same as rows" 0 "topk:ratio=0.01;0.01001;0.01;1;1;" topk:ratio=0.01 --classes --csv -
codec "classes as JSON" 2 "no --json" natural --classes --json -
codec "classes into no folder" 1 "No such file" natural --classes --csv "$dir/none/x.csv"
codec "no such codec" 2 'did you mean "natural"' naturel "${quick[@]}"
codec "no such file" 1 "No such file" none --input "$dir/none.f32" "${quick[@]}"
: >"$dir/empty.f32"
codec "an empty file" 1 "has no float32" none --input "$dir/empty.f32" "${quick[@]}"
codec "no such input" 2 "did you mean" none --input norml "${quick[@]}"
codec "half an element" 2 "not a whole number of float32" none --sizes 6
codec "no chunk" 2 "256 or more" none --chunk 7
codec "too many threads" 2 "from 1 to 64" none --threads 65
refuse_full "a table onto a full disk" "$perf" codec none "${quick[@]}"
refuse_full "help onto a full disk" "$perf" codec --help
codec "help" 0 "usage: trib-perf codec" --help
expect "in the wrong place" 2 "codec must be the first argument" "$perf" -n 2 codec
finish
