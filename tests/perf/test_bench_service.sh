#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tables that perf/bench/service.sh computes from launches, compared with values computed by hand;
# and its messages for a wrong command line.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=${abs_top_srcdir:-.}/perf

# PART, expected row of its tables; launches "case,contender,bytes,ms[,nmse,wire bytes]" on
# standard input
table() {
    {
        echo header
        awk -F, '{ us = $4 * 1000; print NR ",near,near," $1 "," $2 ",4," $3 ",3,1," us "," us "," us "," $5 "," $6 }'
    } >"$dir/$1.csv"
    awk -v part="$1" -v workers=4 -f "$perf/bench/tables.awk" -f "$perf/bench/service.awk" "$dir/$1.csv" \
        >"$said" 2>&1
    grep -qF -- "$2" "$said"
    result $? "$1: $2"
}

# 0.8 Gbit/s from iperf3, in place of a time in µs: 25 MB take 250 ms.
dense=1gbit,iperf3,0,0.0008$'\n'
for ms in 260 300 255 270 265; do dense+=1gbit,tribd,25000000,$ms$'\n'; done
dense+=1gbit,gloo,25000000,400$'\n'1gbit,ring,25000000,371
row='| 25 MB | tribd on hosts of its own | 8 | 265.0 [255.0-300.0] | '
table dense "${row}1.06 ✓ | 1.32 | 1.40 ✓ |" <<<"$dense"
table dense "| 25 MB | ring | 4 | 371.0 [371.0-371.0] | 1.48 | 1.85 | 1.00 |" <<<"$dense"
table dense "| 1.04 ✓ | 1.30 | 1.15 ✗ |" <<<"1gbit,iperf3,0,0.0008
1gbit,tribd,25000000,260
1gbit,openmpi,25000000,300"
table dense "| - | 1.30 | - |" <<<"1gbit,tribd,25000000,260" # no contender to compare with
table blocks "| 25 MB | 1 % | 3.94 % | 40.0 [40.0-40.0] | 0.20 | 15.00 | 0.04 |" <<<"dense,tribd,25000000,200
dense,gloo,25000000,600
0.01-own,sparse,25000000,40,0,1000000"
table blocks "| 100 % | 100 % | 220.0 [220.0-220.0] | 1.10 ✗ (≤ 1.05) |" <<<"dense,tribd,25000000,200
1-same,sparse,25000000,220"
table codecs '| 50.0 [50.0-50.0] | 4.00 ✓ (≥ 3.5) | 9.5e-05 | 0.25 |' <<<"none,tribd,25000000,200
int8,tribd,25000000,50,9.5e-05,6250000"
table hierarchy "| 3.00 [3.00-3.00] | 4.00 [4.00-4.00] | - | 4.00 [4.00-4.00] | - | 1.25 ✓ | 1.33 ✗ |" \
    <<<"1gbit,ring,4096,5
1gbit,leaders-1,4096,3
1gbit,leaders-2,4096,4
1gbit,leaders-auto,4096,4"
# The chosen number of leaders is in place of a time in us. Launches with that number also count as
# the chosen ones.
table hierarchy "| 3.00 [3.00-3.00] | 2.90 [2.90-2.90] | - | 1: 4.00 [4.00-4.00] | - | 1.43 ✓ | 1.21 ✗ |" \
    <<<"1gbit,chosen,4096,0.001
1gbit,ring,4096,5
1gbit,leaders-1,4096,3
1gbit,leaders-2,4096,2.9
1gbit,leaders-auto,4096,4"

expect "help" 0 "PART.csv (all launches)" "$perf/bench/service.sh" --help
expect "a misspelt option" 2 "there is no option '--round'" "$perf/bench/service.sh" dense --round 3
expect "an option without its value" 2 "--rounds needs a value" "$perf/bench/service.sh" --rounds
expect "no folders" 2 "BUILD_DIR and OUT_DIR are needed" "$perf/bench/service.sh" dense --quick
finish
