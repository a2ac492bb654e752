#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What perf/bench/coded.sh makes of launches, whose tables are reckoned here by hand.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf

table() { # row that the table has; launches "rate,contender,hosts,bytes,ms[,wire bytes]" come in
    {
        echo header
        awk -F, '{ us = $5 * 1000
            print NR ",near,near," $1 "," $2 "," $3 "," $4 ",3,1," us "," us "," us ",0," $6 }'
    } >"$dir/runs.csv"
    awk -f "$perf/bench/tables.awk" -f "$perf/bench/coded.awk" "$dir/runs.csv" >"$said" 2>&1
    grep -qF -- "$1" "$said"
    result $? "$1"
}

some='1gbit,gloo,4,25000000,500
1gbit,none,4,25000000,310,37500000
1gbit,none,4,25000000,330,37500000
1gbit,none,4,25000000,320,37500000
1gbit,int8,4,25000000,80,9375000
1gbit,dgc,4,25000000,25,187500
10gbit,auto,2,25000000,20
10gbit,none,2,25000000,30'
table '**4 hosts, links of 1gbit, 25 MB: ms' <<<"$some"
table '| none | 320.0 [310.0-330.0] | 1.56 | 1.00 | 1.00 |' <<<"$some"
table '| int8 | 80.0 [80.0-80.0] | 6.25 | 4.00 ✓ (≥ 3.7) | 4.00 |' <<<"$some"
table '| dgc | 25.0 [25.0-25.0] | 20.00 ✓ (≥ 18) | 12.80 | 200.0 |' <<<"$some"
table '| auto | 20.0 [20.0-20.0] | - | 1.50 ✗ (≥ 2) | - |' <<<"$some"
expect "help" 0 "bench.md (tables)" "$perf/bench/coded.sh" --help
expect "no folders" 2 "BUILD_DIR and OUT_DIR are needed" "$perf/bench/coded.sh" --quick
finish
