#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scaling.sh - generate the simulated figures and the chart of docs/scaling.md.
#
#   perf/bench/scaling.sh BUILD_DIR [CSV [SVG [TABLES]]]
#
# Writes docs/scaling.csv and docs/scaling.svg, and the tables to out/scaling.md, with trib-sim
# and gnuplot. Uses all processors of this machine for about four minutes, and 2 GiB each.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -ge 1 ] || { sed -n '4,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2; }
sim=$1/perf/sim/trib-sim csv=${2:-docs/scaling.csv} svg=${3:-docs/scaling.svg}
tables=${4:-out/scaling.md}
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
mkdir -p "$(dirname "$tables")"

# NAME OPTION…: write rows of trib-sim, each after the name, to a new file. One sweep runs per
# processor.
made=0
sweep() {
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || :; done
    made=$((made + 1))
    rows "$@" >"$parts/$(printf %03d "$made")" &
}
rows() {
    local name=$1
    shift
    { "$sim" --csv - --bytes 25000000 --rate 10gbit --messages 300000 "$@" || :; } |
        awk -v name="$name" 'NR > 1 { sub(/,result/, ";result"); print name "," $0 }'
}

# If all ranks send to all, SimGrid's time grows with the square of the connections.
few=2,4,8,16,32,64
all=$few,128,256,512,1024,2048,4096
# A sweep ends if selections or agreements would need more messages than --messages.
for leaders in 1 2 4 8; do
    sweep "leaders-$leaders" --algorithm hierarchical --per-host 8 --leaders "$leaders" --messages 30000 --ranks 16,64
done
sweep leaders-ring --algorithm ring --per-host 8 --ranks 16,64
for algorithm in ring halving-doubling direct; do
    to=16,64
    [ $algorithm != direct ] || to=16
    sweep "star-$algorithm" --algorithm $algorithm --ranks "$to"
    sweep "fat-tree-$algorithm" --algorithm $algorithm --topology fat-tree:8 --ranks "$to"
    sweep "oversubscribed-$algorithm" --algorithm $algorithm --topology fat-tree:8 --oversubscribed 4 --ranks "$to"
    sweep "dragonfly-$algorithm" --algorithm $algorithm --topology dragonfly:4,16,4 --ranks "$to"
    sweep "late-$algorithm" --algorithm $algorithm --late 1:20ms --ranks "$to"
    sweep "slow-$algorithm" --algorithm $algorithm --slow 1:4 --ranks "$to"
    sweep "slow-link-$algorithm" --algorithm $algorithm --slow-link 1:4 --ranks "$to"
done
for rate in 100mbit 1gbit 10gbit; do
    for bytes in 4K 64K 1M 25M; do
        for algorithm in flat tree halving-doubling ring direct; do
            sweep "choice-$rate-$bytes" --rate $rate --bytes $bytes --algorithm $algorithm \
                --messages 10000 --ranks 4,16
        done
    done
done
sweep halving-doubling --algorithm halving-doubling --messages 600000 --ranks "$few,128,256,512"
sweep direct --algorithm direct --messages 30000 --ranks "$few"
sweep int8 --algorithm ring --codec int8:result=requantised --ranks "$few,128"
sweep topk --algorithm direct --messages 30000 --codec topk:ratio=0.01 --ranks "$few"
sweep topk-selected --algorithm direct --codec topk:ratio=0.01,result=selected --messages 30000 --ranks 2,4,8,16,32
sweep service --algorithm service --aggregators 8 --ranks "$few,128,256"
sweep service-topk --algorithm service --aggregators 8 --codec topk:ratio=0.01 --ranks "$few,128"
sweep service-racks --algorithm service --aggregators 8 --rack 32 --ranks 64,128
for n in 8 16 32 64; do
    sweep service-eighth --algorithm service --aggregators $((n / 8)) --ranks "$n"
    sweep service-half --algorithm service --aggregators $((n / 2)) --ranks "$n"
done
sweep ring --algorithm ring --ranks "$all"
sweep gradiveq --algorithm ring --codec gradiveq --ranks "$all"
wait
{
    echo "name,$("$sim" --csv - --ranks 2 --bytes 4K | head -1)"
    cat "$parts"/* | LC_ALL=C sort -t, -s -k1,1 -k2,2n
} >"$csv"
{
    for bytes in 64K 25M; do
        for rate in 100mbit 1gbit 10gbit; do
            "$sim" --choose --csv - --bytes $bytes --rate $rate --ranks 2:4096:2 |
                awk -F, -v row="$bytes at $rate" 'NR > 1 { print row "," $1 "," $5 }'
        done
    done
} >"$parts/choices"
awk -f perf/bench/tables.awk -f perf/bench/scaling.awk "$csv" "$parts/choices" >"$tables"

gnuplot <<GNUPLOT
set terminal svg size 900,500 background "white" font "sans,13"
set output "$svg"
set datafile separator ","
set logscale x 2
set logscale y 10
set xlabel "ranks"
set ylabel "time of an all-reduce of 25 MB, ms"
set key outside right
set grid
plot for [n in "ring halving-doubling direct int8 gradiveq topk topk-selected service service-topk service-racks service-eighth"] \
    "$csv" using 2:(stringcolumn(1) eq n ? \$7 * 1000 : NaN) with linespoints title n
GNUPLOT
sed -i 's/[[:space:]]*$//' "$svg"
