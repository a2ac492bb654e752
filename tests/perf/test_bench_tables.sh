#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tables that the scripts of perf/bench compute from launches, compared with values computed by
# hand, perf/cost and perf/bounds.
# shellcheck source=tests/harness/tap.sh disable=SC2016 # awk expands
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf
cost=${abs_top_builddir:-build}/perf/cost

begin() { # BENCH, awk expression of a launch's row, its launches
    bench=$1
    awk -F, "BEGIN { print \"header\" } { print NR \",near,near,\" $2 }" <<<"$3" >"$dir/runs.csv"
}

table() { # expected row of the table, page to compare with
    awk -v page="${2:-}" -f "$perf/bench/tables.awk" -f "$perf/bench/$bench.awk" "$dir/runs.csv" >"$said" 2>&1
    grep -qF -- "$1" "$said"
    result $? "$bench: $1"
}

usage() { # words of its help
    expect "$bench: help" 0 "$1" "$perf/bench/$bench.sh" --help
    expect "$bench: no folders" 2 "BUILD_DIR and OUT_DIR are needed" "$perf/bench/$bench.sh" --quick
}

begin auto '$0' 'auto,shm,2,64,2
auto,shm,2,64,1
auto,shm,2,64,4
ring,shm,2,64,3
flat,shm,2,64,1.8
codec-auto,shm,2,64,1
auto,shm,2,4096,10
ring,shm,2,4096,11
codec-auto,shm,2,4096,11
auto,tcp,4,64,20'
table '**shm, 2 ranks: '
table '| 64 B | 2.00 | 1.80 | flat | 0.90 ✗ | 1.00 | 2.00 ✓ |'
table '| 4 KiB | 10.0 | 11.0 | ring | 1.10 ✓ | 11.0 | 0.91 ✗ |'
table '**tcp, 4 ranks: '
table '| 64 B | 20.0 | - |  | - | - | - |'
usage "bench.md (tables)"

# Launches: rate, contender, hosts, bytes, ms[, wire bytes].
us='$5 * 1000'
begin coded "\$1 \",\" \$2 \",\" \$3 \",\" \$4 \",3,1,\" $us \",\" $us \",\" $us \",0,\" \$6" '1gbit,gloo,4,25000000,500
1gbit,none,4,25000000,310,37500000
1gbit,none,4,25000000,330,37500000
1gbit,none,4,25000000,320,37500000
1gbit,int8,4,25000000,80,9375000
1gbit,dgc,4,25000000,25,187500
10gbit,auto,2,25000000,20
10gbit,none,2,25000000,30'
table '**4 hosts, links of 1gbit, 25 MB: ms'
table '| none | 320.0 [310.0-330.0] | 1.56 | 1.00 | 1.00 |'
table '| int8 | 80.0 [80.0-80.0] | 6.25 | 4.00 ✓ (≥ 3.7) | 4.00 |'
table '| dgc | 25.0 [25.0-25.0] | 20.00 ✓ (≥ 18) | 12.80 | 200.0 |'
table '| auto | 20.0 [20.0-20.0] | - | 1.50 ✗ (≥ 2) | - |'
usage "bench.md (tables)"

# Launches: codec, link, ranks, ns.
begin cost '$1 "," $2 "," $3 ",25000000," $4' 'dgc,alone,1,1.2
dgc,alone,1,0.8
dgc,alone,1,1
dgc,shm,2,1.5
dgc,tcp,4,1.6
other,alone,1,2
other,shm,2,5'
table '| codec | alone | shm, 2 ranks | tcp, 4 ranks |'
table '| dgc | 1.00 [0.80-1.20] | 1.50 [1.50-1.50], 1.50 ✓ | 1.60 [1.60-1.60], 1.60 ✗ |'
table '| other | 2.00 [2.00-2.00] | 5.00 [5.00-5.00], 2.50 | - |'
usage "bench.md (tables)"
"$cost" topk 100000 3 >"$said" 2>&1 && awk '{ exit !($1 > 0 && NF == 1) }' "$said"
result $? "cost of a selection with feedback"
expect "no such codec" 1 "cost: topq: " "$cost" topq 100000 3
expect "no passes" 2 "usage: cost CODEC" "$cost" topk 100000 0

bounds=${abs_top_builddir:-build}/perf/bounds
expect "bounds of a sum with 1 and 2 threads" 0 "| 25 | 2 | 5369 |" "$bounds" 2 1
[ "$(grep -cE '^(sum|copy|loopback),(65536|262144|1048576),[12],[0-9.]+$' "$said")" = 15 ]
result $? "bounds: a rate for each chunk and number of threads"
awk -F'[,|]' '$1 == "sum" && $2 == 262144 { rate[$3] = $4 }
    /^\| 400 / { sub(/ \(.*/, "", $5); us = 8388.608 / rate[$3 + 0]; us = us > 335.5 ? us : 335.5
        rows++; wrong += $5 + 0 < 0.99 * us - 1 || $5 + 0 > 1.01 * us + 1 }
    END { exit rows != 2 || wrong > 0 }' "$said"
result $? "bounds: the longer of wire and sum at 400 Gbit/s"
expect "bounds: no threads" 2 "usage: bounds" "$bounds" 0

# Launches: mpi, way, ranks, place, bytes, us.
begin mpi '$0' 'openmpi,plain,2,in,8,0.4
openmpi,plain,2,in,8,0.2
openmpi,plain,2,in,8,0.3
openmpi,chosen,2,in,8,0.27
openmpi,ours,2,in,8,0.28
openmpi,plain,2,out,4096,2
openmpi,ours,2,out,4096,1
mpich,plain,4,in,8,100
mpich,chosen,4,in,8,30'
table '| 8 B | in | 0.30 [0.20-0.40] | 0.27 [0.27-0.27] | 0.28 [0.28-0.28] | 0.90 ✓ | 0.93 ✗ |'
table '| 4 KiB | out | 2.00 [2.00-2.00] | - | 1.00 [1.00-1.00] | - | 0.50 |'
table '| 8 B | in | 100.0 [100.0-100.0] | 30.0 [30.0-30.0] | - | 0.30 ✓ | - |'
table '**mpich, 4 ranks: µs, median of launches [least-greatest]**'
usage "bench.md (tables)"

begin wan '$0' '2,dense,230
2,int8,61
2,dense,240
2,dense,220
40,topk,60'
printf '%s\n' '| 2 ms | 1 ms | 1 ms | 1 ms |' '<!-- bench wan begin -->' \
    '| round trip | dense | int8 requantised | topk 1 % |' '| 2 ms | 200 ms | 60.2 ms | 16.6 ms |' \
    '| 40 ms | 364 ms | 115.6 ms | 50 ms |' '<!-- bench wan end -->' \
    '| 40 ms | 1 ms | 1 ms | 1 ms |' >"$dir/page.md"
table '| 2 ms | 230.0 ms | 61.0 ms | - |'
table '| 40 ms | - | - | 60.0 ms |'
table '| 2 ms | dense | 230.0 [220.0-240.0] | 200.0 | 1.15 |' "$dir/page.md"
table '| 2 ms | int8 | 61.0 [61.0-61.0] | 60.2 | 1.01 |' "$dir/page.md"
table '| 40 ms | topk | 60.0 [60.0-60.0] | 50.0 | 1.20 |' "$dir/page.md"
usage "wan.md (the tables)"
finish
