#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What perf/bench/wan.sh makes of launches, whose tables are reckoned here by hand.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf

printf '%s\n' header 1,near,near,2,dense,230 1,near,near,2,int8,61 2,near,near,2,dense,240 \
    3,near,near,2,dense,220 1,near,near,40,topk,60 >"$dir/runs.csv"
printf '%s\n' '| 2 ms | 1 ms | 1 ms | 1 ms |' '<!-- bench wan begin -->' \
    '| round trip | dense | int8 requantised | topk 1 % |' '| 2 ms | 200 ms | 60.2 ms | 16.6 ms |' \
    '| 40 ms | 364 ms | 115.6 ms | 50 ms |' '<!-- bench wan end -->' \
    '| 40 ms | 1 ms | 1 ms | 1 ms |' >"$dir/page.md"

table() { # PAGE, row that the table has
    awk -v page="$1" -f "$perf/bench/tables.awk" -f "$perf/bench/wan.awk" "$dir/runs.csv" >"$said" 2>&1
    grep -qF -- "$2" "$said"
    result $? "$2"
}

table "" '| 2 ms | 230.0 ms | 61.0 ms | - |'
table "" '| 40 ms | - | - | 60.0 ms |'
table "$dir/page.md" '| 2 ms | dense | 230.0 [220.0-240.0] | 200.0 | 1.15 |'
table "$dir/page.md" '| 2 ms | int8 | 61.0 [61.0-61.0] | 60.2 | 1.01 |'
table "$dir/page.md" '| 40 ms | topk | 60.0 [60.0-60.0] | 50.0 | 1.20 |'
expect "help" 0 "wan.md (the tables)" "$perf/bench/wan.sh" --help
expect "no folders" 2 "BUILD_DIR and OUT_DIR are needed" "$perf/bench/wan.sh" --quick
finish
