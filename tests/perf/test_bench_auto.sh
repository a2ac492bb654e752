#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What perf/bench/auto.sh makes of launches, whose tables are reckoned here by hand.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf

table() { # row that the table has; launches "contender,link,ranks,bytes,us" come in
    {
        echo header
        awk -F, '{ print NR ",near,near," $0 }'
    } >"$dir/runs.csv"
    awk -f "$perf/bench/tables.awk" -f "$perf/bench/auto.awk" "$dir/runs.csv" >"$said" 2>&1
    grep -qF -- "$1" "$said"
    result $? "$1"
}

some='auto,shm,2,64,2
auto,shm,2,64,1
auto,shm,2,64,4
ring,shm,2,64,3
flat,shm,2,64,1.8
codec-auto,shm,2,64,1
auto,shm,2,4096,10
ring,shm,2,4096,11
codec-auto,shm,2,4096,11
auto,tcp,4,64,20'
table '**shm, 2 ranks: ' <<<"$some"
table '| 64 B | 2.00 | 1.80 | flat | 0.90 ✗ | 1.00 | 2.00 ✓ |' <<<"$some"
table '| 4 KiB | 10.0 | 11.0 | ring | 1.10 ✓ | 11.0 | 0.91 ✗ |' <<<"$some"
table '**tcp, 4 ranks: ' <<<"$some"
table '| 64 B | 20.0 | - |  | - | - | - |' <<<"$some"
expect "help" 0 "bench.md (tables)" "$perf/bench/auto.sh" --help
expect "no folders" 2 "BUILD_DIR and OUT_DIR are needed" "$perf/bench/auto.sh" --quick
finish
