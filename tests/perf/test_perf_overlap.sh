#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-perf allreduce --overlap: its output, and the table of perf/bench/overlap.sh. This test
# does not check the figures; tests/perf/coll/test_overlap_bounds.c checks their arithmetic.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf
source=${abs_top_srcdir:-.}/perf
export TRIB_TRANSPORT=tcp
some=(allreduce -n 2 --overlap --iters 2 --warmup 1 --sizes 256K)

expect "a codec whose words are decoded" 0 "computing elsewhere" "$perf" "${some[@]}" --codec bf16
grep -qE 'alone, GB/s of the vector: encode [0-9.]+, link [0-9.]+, sum [0-9.]+, decode [0-9.]+$' "$said"
result $? "each stage has a rate"
grep -qE 'bound [0-9.]+ \((encode|link|sum|decode)\), reached [0-9.]+: [0-9]+ %; with one core' "$said"
result $? "the bound names its stage"
expect "words that add, in place" 0 "hidden" "$perf" "${some[@]}" --codec int8 --in-place --json "$dir/o.json"
expect "no codec" 0 "hidden" "$perf" "${some[@]}" --csv "$dir/o.csv"
awk -F, 'NR == 1 { n = NF; for (i = 1; i <= NF; i++) at[$i] = i }
    NR == 2 { good = NF == n && $at["encode_GBps"] == 0 && $at["link_GBps"] > 0 && $at["bound_GBps"] > 0 && $at["part"] > 0 }
    END { exit !good }' "$dir/o.csv"
result $? "csv has columns for it, and none works where no codec is"
expect "without it there are none" 0 "" "$perf" allreduce -n 2 --iters 2 --sizes 8 --csv "$dir/plain.csv"
! grep -q bound_GBps "$dir/plain.csv"
result $? "and csv is as it was"
if command -v python3 >/dev/null; then
    python3 - "$dir/o.json" >"$said" 2>&1 <<'PYTHON'
import json, sys
o = json.load(open(sys.argv[1]))["results"][0]["overlap"]
assert set(o["alone_GBps"]) == {"encode", "link", "sum", "decode"}, o
assert o["narrowest"] in o["alone_GBps"] and o["bound_GBps"] > 0 and o["part"] > 0, o
for where in "computing_here", "computing_elsewhere":
    h = o[where]
    assert abs(h["hidden"] - min(1, 1 - (h["both_us"] - h["compute_us"]) / h["comm_us"])) < 1e-3, h
PYTHON
    result $? "json has all of it"
else
    skip "json has all of it" "no python3"
fi
expect "not of a broadcast" 2 "--overlap requires plans" "$perf" broadcast -n 2 --overlap
expect "not of blocking calls" 2 "--overlap requires plans" "$perf" "${some[@]}" --call blocking
expect "not of codec auto" 2 "--overlap requires plans" "$perf" "${some[@]}" --codec auto:max_nmse=1e-3
expect "one rank sends nothing" 0 "1 rank" "$perf" allreduce -n 1 --overlap --iters 2 --sizes 64K

cat >"$dir/runs.csv" <<'ROWS'
round,before,after,rate,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us,encode_GBps,link_GBps,sum_GBps,decode_GBps,bound_GBps,reached_GBps,part,core_part,hidden,hidden_elsewhere
1,0,0,1gbit,none,2,25000000,9,1,210000,1,1,0,0.12,22,0,0.12,0.119,0.99,0.98,0.88,0.97
1,0,0,1gbit,int8,2,25000000,9,1,53000,1,1,10,0.47,21,20,0.47,0.46,0.97,0.96,0.46,0.95
2,0,0,1gbit,int8,2,25000000,9,1,55000,1,1,10,0.47,21,20,0.47,0.46,0.99,0.96,0.46,0.95
ROWS
expect "a table" 0 "2 hosts, links of 1gbit, 25 MB" awk -f "$source/bench/tables.awk" \
    -f "$source/bench/overlap.awk" "$dir/runs.csv"
grep -qF "| int8 | 54.0 [53.0-55.0] | 10.0 | 0.47 | 21.0 | 20.0 | 98 % ✓ | 96 % | 46 % ✗ | 95 % ✓ |" "$said" &&
    grep -qF "| none | 210.0 [210.0-210.0] | - | 0.12 |" "$said"
result $? "has medians and marks"
finish
