#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# coded.sh - compare all-reduces with codecs between hosts with dense sums and Gloo, interleaved.
#
#   perf/bench/coded.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round, 1 MB, few samples: a smoke test
#   --rounds N        launches of each program [5]
#   --hosts LIST      such as "2 4" [2 4]
#   --rates LIST      rates of each host's link, each way [1gbit 10gbit]
#   --congestion NAME congestion control of TCP, such as bbr [cubic]
#   --sizes LIST      bytes, comma-separated [25000000]
#   --samples N       samples a size and launch [5]
#   --limit S         time limit of a launch, in seconds [120]
#   --only LIST       contenders, comma-separated
#   --write           also write the tables to perf/results/coded.md
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they share
# its cores. Plans are timed after their codec has learned or chosen: 40 starts of auto
# and 110 of gradiveq are not counted. The files in OUT_DIR are runs.csv (all launches), bench.md (tables),
# errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 hosts_list="2 4" rates="1gbit 10gbit" sizes=25000000 samples=5 sample_ms=1 only=''
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

# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
# shellcheck source=perf/bench/between_hosts.sh
. "$here/bench/between_hosts.sh"
has_gloo=''
! build_gloo || has_gloo=yes

# Rows "rate,contender,ranks,bytes,samples,batch,p50,min,max,nmse,wire bytes" of one launch.
ours() { # CONTENDER CODEC WARMUP
    local options
    mapfile -t options < <(trib_options)
    job "$build/perf/trib-perf" allreduce --memory alloc "${options[@]}" --call plan \
        --codec "$2" --warmup "$3" | grep -v '^tributary: ' | trib_rows "$1" nmse wire_bytes
}

contend() { # RATE HOSTS CONTENDER COMMAND…
    ! wanted "$3" || launch_probed "$round" "$1, $2 hosts, $3" launch "$1" "${@:4}"
}

measure() { # RATE HOSTS
    local name codec warmup
    [ -z "$has_gloo" ] || contend "$1" "$2" gloo gloo
    while read -r name codec warmup; do
        contend "$1" "$2" "$name" ours "$name" "$codec" "$warmup"
    done <<'ROWS'
none none 2
auto auto:max_nmse=1e-3 40
bf16 bf16 2
int8 int8:result=requantised 2
topk topk:ratio=0.01 3
dgc dgc:ratio=0.001 3
powersgd powersgd:rank=4 3
gradiveq gradiveq:train=100 110
ROWS
}

# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * $(count_of $rates) * $(count_of $hosts_list) * 9))
echo "round,before,after,rate,contender,ranks,bytes,samples,batch,p50_us,min_us,max_us,nmse,wire_bytes" >"$runs"
measure_hosts

{
    machine_line
    echo "All hosts are network namespaces on it. float32 sum in place over TCP ($congestion), $rounds"
    echo "launches of each program, interleaved, $samples samples each, timed on the slowest rank."
    absent_lines
    awk -f "$here/bench/medians.awk" -f "$here/bench/coded.awk" "$runs"
} >"$out/bench.md"
tell_tables coded
write_page split_by="rate ranks" name=contender own="^(none|auto|bf16|int8|topk|dgc|powersgd|gradiveq)$" \
    key=codec run="$allreduce_run, \"in_place\": true"
