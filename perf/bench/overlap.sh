#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# overlap.sh - compare all-reduces between hosts with the limit of their slowest stage, and with a computation.
#
#   perf/bench/overlap.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round, 1 MB: a smoke test
#   --rounds N        launches of each codec [5]
#   --hosts LIST      such as "2 4" [2]
#   --rates LIST      rates of each host's link, each way [1gbit 10gbit]
#   --congestion NAME congestion control of TCP, such as bbr [cubic]
#   --sizes LIST      bytes, comma-separated [25000000]
#   --samples N       samples a size and launch [9]
#   --limit S         time limit of a launch, in seconds [120]
#   --only LIST       codecs, comma-separated
#   --write           also write the tables to perf/results/overlap.md
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they share
# its cores; each rank has its own core if there are enough. The files in OUT_DIR are
# runs.csv (all launches), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 hosts_list="2" rates="1gbit 10gbit" sizes=25000000 samples=9 sample_ms=1 only=''
congestion=cubic limit=120 write=''
# shellcheck disable=SC2034 # peers.sh reads them
place=in rewrite=''

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"
# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [hosts]=hosts_list [rates]=rates [congestion]=congestion
    [sizes]=sizes [samples]=samples [limit]=limit [only]=only)
on_quick() { rounds=1 sizes=1000000 samples=2 limit=60; }
on_write() { write=yes; }
take_arguments "$@"
! why=$(net_refused) || die "$why"
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_SERVICE TRIB_CALIBRATION
missing=()

# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
# shellcheck source=perf/bench/between_hosts.sh
. "$here/bench/between_hosts.sh"

# Rows "rate,contender,ranks,bytes,samples,batch,p50,min,max,…" of one launch each.
ours() { # CONTENDER CODEC
    local options
    mapfile -t options < <(trib_options)
    job "$build/perf/trib-perf" allreduce "${options[@]}" --bind core --overlap --codec "$2" \
        --link "$rate" --json "$out/results/$rate-${#net_pids[@]}-$1.json" |
        grep -v '^tributary: ' | trib_rows "$1" encode_GBps link_GBps sum_GBps decode_GBps \
        bound_GBps reached_GBps part core_part hidden hidden_elsewhere
}

measure() { # RATE HOSTS
    local name codec
    while read -r name codec; do
        ! wanted "$name" || launch_probed "$round" "$1, $2 hosts, $name" launch "$1" ours "$name" "$codec"
    done <<'ROWS'
none none
bf16 bf16
int8 int8:result=requantised
topk topk:ratio=0.01
dgc dgc:ratio=0.001
ROWS
}

# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * $(count_of $rates) * $(count_of $hosts_list) * 5))
echo "round,before,after,rate,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us,encode_GBps,link_GBps,sum_GBps,decode_GBps,bound_GBps,reached_GBps,part,core_part,hidden,hidden_elsewhere" >"$runs"
mkdir -p "$out/results"
rm -f "$out/results/"*.json # keep only the newest launch of each
measure_hosts

{
    machine_line
    echo "All hosts are network namespaces on it. float32 sum in place over TCP ($congestion), $rounds"
    echo "launches of each codec, interleaved, $samples samples each; a core for each rank where there are enough."
    absent_lines
    awk -f "$here/bench/medians.awk" -f "$here/bench/overlap.awk" "$runs"
} >"$out/bench.md"
tell_tables overlap
documents=()
for rate in $rates; do
    for hosts in $hosts_list; do
        for name in none bf16 int8 topk dgc; do
            document=$out/results/$rate-$hosts-$name.json
            [ ! -e "$document" ] || documents+=("$document")
        done
    done
done
page_of "${documents[@]}"
