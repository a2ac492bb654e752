#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-perf as a user runs it: every collective, outputs, and what it says to nonsense.
set -u
perf=${abs_top_builddir:-.}/perf/trib-perf
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
number=0 failed=0
slow=${TRIBTEST_SLOWNESS:-1}

result() { # 0 or 1, NAME
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        failed=1
        sed 's/^/# /' "$place/said"
    fi
}

# NAME, expected exit code, words that must be said, arguments
expect() {
    local name=$1 code=$2 words=$3
    shift 3
    timeout $((60 * slow)) "$perf" "$@" >"$place/said" 2>&1 </dev/null
    local got=$?
    grep -qF -- "$words" "$place/said" && [ "$got" -eq "$code" ]
    result $? "$name (exit code $got)"
}

quick=(--iters 3 --warmup 1 --sizes "8,4K,384K")
for coll in allreduce reduce broadcast allgather reduce-scatter; do
    for ranks in 1 2 3; do
        expect "$coll of $ranks ranks" 0 "384 KiB" \
            "$coll" -n "$ranks" --check "${quick[@]}"
    done
    expect "$coll in place" 0 "in place" "$coll" -n 2 --check --in-place "${quick[@]}"
    expect "$coll as a plan" 0 "plan" "$coll" -n 2 --check --call plan "${quick[@]}"
done
expect "barrier" 0 "barrier" barrier -n 2 --iters 3
for dtype in f64 f16 bf16 i8 i32 i64; do
    expect "allreduce of $dtype" 0 "$dtype" allreduce -n 2 --check --dtype "$dtype" \
        "${quick[@]}"
done
for op in mean min max prod; do
    expect "allreduce by $op" 0 "$op" allreduce -n 2 --check --op "$op" "${quick[@]}"
done
for memory in malloc register; do
    expect "memory of $memory" 0 "memory $memory" allreduce -n 2 --check \
        --memory "$memory" "${quick[@]}"
done
expect "another root" 0 "reduce" reduce -n 3 --root 2 --check "${quick[@]}"
expect "nothing to send" 0 "0 B" allreduce -n 2 --check --iters 3 --sizes 0
grep -qE '^ +0 B +3 .* 0$' "$place/said"
result $? "nothing has a row, and is right"
expect "explain" 0 "chunk" allreduce -n 2 --explain --iters 3 --sizes 64K

expect "csv on standard output" 0 "allreduce,auto" allreduce -n 2 --csv - "${quick[@]}"
[ "$(wc -l <"$place/said")" -eq 4 ]
result $? "csv has a header and a row a size, and nothing else"
expect "json into a file" 0 "memory of rank 0" allreduce -n 2 --json "$place/out.json" \
    "${quick[@]}"
grep -q '"p50_us"' "$place/out.json"
result $? "json has results"
[ "$(find "$place" -name 'out.json*' | wc -l)" -eq 1 ]
result $? "no temporary file is left"

expect "a file that cannot be" 2 "cannot write /no/such/place" \
    allreduce -n 2 --csv /no/such/place/x.csv "${quick[@]}"
expect "a full device" 1 "No space left on device" \
    allreduce -n 2 --json /dev/full "${quick[@]}"
expect "a misspelt option" 2 "did you mean --sizes?" allreduce -n 2 --size 8
expect "a misspelt collective" 2 "did you mean allreduce?" alreduce
expect "no collective" 2 "say which collective"
expect "help" 0 "usage: trib-perf" --help
echo "1..$number"
exit "$failed"
