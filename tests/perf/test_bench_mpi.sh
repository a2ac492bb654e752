#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What perf/bench/mpi.sh makes of launches, whose tables are reckoned here by hand.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf

table() { # row that the table has; launches "mpi,way,ranks,place,bytes,us" come in
    {
        echo header
        awk -F, '{ print NR ",near,near," $0 }'
    } >"$dir/runs.csv"
    awk -f "$perf/bench/tables.awk" -f "$perf/bench/mpi.awk" "$dir/runs.csv" >"$said" 2>&1
    grep -qF -- "$1" "$said"
    result $? "$1"
}

some='openmpi,plain,2,in,8,0.4
openmpi,plain,2,in,8,0.2
openmpi,plain,2,in,8,0.3
openmpi,chosen,2,in,8,0.27
openmpi,ours,2,in,8,0.28
openmpi,plain,2,out,4096,2
openmpi,ours,2,out,4096,1
mpich,plain,4,in,8,100
mpich,chosen,4,in,8,30'
table '| 8 B | in | 0.30 [0.20-0.40] | 0.27 [0.27-0.27] | 0.28 [0.28-0.28] | 0.90 ✓ | 0.93 ✗ |' <<<"$some"
table '| 4 KiB | out | 2.00 [2.00-2.00] | - | 1.00 [1.00-1.00] | - | 0.50 |' <<<"$some"
table '| 8 B | in | 100.0 [100.0-100.0] | 30.0 [30.0-30.0] | - | 0.30 ✓ | - |' <<<"$some"
table '**mpich, 4 ranks: µs, median of launches [least-greatest]**' <<<"$some"
expect "help" 0 "bench.md (tables)" "$perf/bench/mpi.sh" --help
expect "no folders" 2 "BUILD_DIR and OUT_DIR are needed" "$perf/bench/mpi.sh" --quick
finish
