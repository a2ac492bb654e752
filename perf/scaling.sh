#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scaling.sh - the figures and the picture of docs/scaling.md.
#
#   perf/scaling.sh BUILD_DIR [CSV [SVG]]
#
# Writes docs/scaling.csv and docs/scaling.svg, by trib-sim and gnuplot, in about ten minutes and 4 GiB.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { sed -n '4,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2; }
sim=$1/perf/sim/trib-sim csv=${2:-docs/scaling.csv} svg=${3:-docs/scaling.svg}

# NAME OPTION…: rows of trib-sim behind the name; each as far as it goes.
sweep() {
    local name=$1
    shift
    "$sim" --csv - --bytes 25000000 --rate 10gbit --messages 300000 "$@" |
        awk -v name="$name" 'NR == 1 { if (name == "dense") print "name," $0; next }
            { sub(/,result/, ";result"); print name "," $0 }'
}

few=2,4,8,16,32,64,128
all=$few,256,512,1024,2048,4096
{
    # Where selections or agreements would need more messages than are replayed, the sweep ends.
    sweep dense --algorithm ring --ranks "$all"
    sweep int8 --algorithm ring --codec int8:result=requantised --ranks "$few,256"
    sweep gradiveq --algorithm ring --codec gradiveq --ranks "$all"
    sweep topk --algorithm direct --codec topk:ratio=0.01 --ranks "$few"
    sweep topk-selected --algorithm direct --codec topk:ratio=0.01,result=selected --ranks "$few"
    sweep service --algorithm service --aggregators 8 --ranks "$few,256,512,1024"
    sweep service-topk --algorithm service --aggregators 8 --codec topk:ratio=0.01 --ranks "$few,512"
    sweep service-racks --algorithm service --aggregators 8 --rack 32 --ranks 64,128,256,512
    sweep direct --algorithm direct --ranks "$few"
    sweep ring-oversubscribed --algorithm ring --topology fat-tree:32 --oversubscribed 4 --ranks 64,128
    sweep direct-oversubscribed --algorithm direct --topology fat-tree:32 --oversubscribed 4 --ranks 64,128
    sweep ring-dragonfly --algorithm ring --topology dragonfly:4,16,4 --ranks 64,256,512
    sweep late --algorithm ring --late 1:20ms --ranks 8,64,512
} >"$csv"

gnuplot <<GNUPLOT
set terminal svg size 860,460 background "white" font "sans,13"
set output "$svg"
set datafile separator ","
set logscale x 2
set logscale y 10
set xlabel "ranks"
set ylabel "time of an all-reduce of 25 MB, ms"
set key outside right
set grid
plot for [n in "dense int8 gradiveq topk topk-selected service service-topk service-racks"] \
    "$csv" using 2:(stringcolumn(1) eq n ? \$7 * 1000 : NaN) with linespoints title n
GNUPLOT
sed -i 's/[[:space:]]*$//' "$svg"
