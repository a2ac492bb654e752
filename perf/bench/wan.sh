#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# wan.sh - dense sums, int8 and top-k between two hosts with a long link.
#
#   perf/bench/wan.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round of a short vector over 2 ms: a smoke test
#   --rounds N        launches of each codec [5]
#   --trips LIST      round trips in ms [2 10 40]
#   --rate MBIT       rate of the link in Mbit/s, each way [1000]
#   --queue BYTES     length of the link's queue [4000000]
#   --congestion NAME congestion control of TCP, such as bbr [cubic]
#   --bytes SIZE      of the vector [26214400]
#   --samples N       samples of a launch [4]
#   --only LIST       rows, comma-separated: dense, int8, topk
#   --limit S         time limit of a launch, in seconds [60]
#   --write           also write the table to perf/results/wan.md
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), connected by the device of
# perf/wan, which needs root; they share its cores. A round launches each codec once over one
# link. Rows are medians of the medians of launches, compared with perf/results/wan.md. The files in
# OUT_DIR are runs.csv (all launches), wan.md (the tables), errors.log. It takes about 4 minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 trips="2 10 40" mbit=1000 queue=4000000 bytes=26214400 samples=4 only='' limit=60 write=''
congestion=cubic
# shellcheck disable=SC2034 # peers.sh and driver.sh read them
sample_ms=1 place=in rewrite='' missing=()

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"
# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [trips]=trips [rate]=mbit [queue]=queue [bytes]=bytes
    [congestion]=congestion [samples]=samples [only]=only [limit]=limit)
on_quick() { rounds=1 trips=2 bytes=1048576 samples=2; }
on_write() { write=yes; }
take_arguments "$@"
! why=$(net_refused) || die "$why"
[ -x "$build/perf/wan" ] || die "there is no perf/wan: build first"
[ -e /dev/net/tun ] || die "there is no /dev/net/tun, of which the link's ends are made"
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_SERVICE
export TRIB_TRANSPORT=tcp

# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
# shellcheck source=perf/bench/between_hosts.sh
. "$here/bench/between_hosts.sh"

# NAME|CODEC
rows=("dense|none" "int8|int8:result=requantised" "topk|topk:ratio=0.01")

link_pid=''

# The device of the long link replaces that of tests/netns/net.sh, with the same name and address.
open_link() { # MS
    local host end=$((SECONDS + 20))
    [ -z "$interrupted" ] || return 0
    net_open 2 1500 4 || die "the hosts cannot be made"
    for host in 0 1; do net_on "$host" ip link del eth0; done
    setsid setpriv --pdeathsig KILL "$build/perf/wan" "/proc/${net_pids[0]}/ns/net" \
        "/proc/${net_pids[1]}/ns/net" "$1" "$mbit" "$queue" >"$net_dir/wan.log" 2>&1 </dev/null &
    link_pid=$!
    until grep -qs ready "$net_dir/wan.log"; do
        if [ ! -e "/proc/$link_pid" ] || [ "$SECONDS" -ge "$end" ]; then
            die "no link: $(cat "$net_dir/wan.log")"
        fi
        sleep 0.05
    done
    for host in 0 1; do
        net_on "$host" ip addr add "$(net_address "$host")/24" dev eth0
        net_on "$host" ip link set eth0 up
    done
    net_congestion "$congestion" || die "congestion control '$congestion' cannot be set"
}

close_link() {
    [ -z "$link_pid" ] || { kill -KILL "$link_pid" && wait "$link_pid"; } 2>/dev/null || :
    link_pid=''
    net_close
}

# Rows "trip,name,ms" of one launch.
measured() { # TRIP NAME CODEC
    local options said
    # shellcheck disable=SC2034 # trib_options reads it
    local sizes=$bytes
    mapfile -t options < <(trib_options)
    said=$(job "$build/perf/trib-perf" allreduce --memory alloc "${options[@]}" --warmup 2 \
        --codec "$3") || return 1
    if grep '^tributary: ' <<<"$said" >&2; then return 1; fi
    trib_rows "$2" <<<"$said" | awk -F, -v trip="$1" '{ print trip "," $1 "," $6 / 1000 }'
}

trap close_link EXIT
trap 'exit 130' INT TERM HUP
# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * $(count_of $trips) * ${#rows[@]}))
echo "round,before,after,trip,row,ms" >"$runs"
for trip in $trips; do
    open_link "$trip"
    for ((round = 1; round <= rounds; round++)); do
        for row in "${rows[@]}"; do
            wanted "${row%|*}" || continue
            launch_probed "$round" "$trip ms, ${row%|*}" measured "$trip" "${row%|*}" "${row#*|}"
        done
    done
    close_link
done
[ ! -t 2 ] || printf '\r\033[K' >&2

tables() { # PAGE or nothing
    awk -v page="$1" -f "$here/bench/medians.awk" -f "$here/bench/wan.awk" "$runs"
}
tables '' >"$out/table.md"
{
    machine_line
    echo "Both hosts are network namespaces on it, with a link of $mbit Mbit/s and a queue of $queue bytes between"
    echo "them; an all-reduce of $bytes bytes of float32 in place over TCP ($congestion), medians of"
    echo "$rounds launches of $samples samples, in turn."
    absent_lines
    echo
    cat "$out/table.md"
    echo
    tables "$here/results/wan.md"
} >"$out/wan.md"
show_tables "$out/wan.md"
[ -z "$write" ] || write_section wan "$out/table.md"
rm "$out/table.md"
echo "written to $out: wan.md, runs.csv, errors.log" >&2
sed 's/,dense,/,none,/' "$runs" >"$out/codecs.csv" # a dense sum is codec none
rows=$out/codecs.csv write_page split_by=trip name=row own=. key=codec bytes="$bytes" \
    run="$allreduce_run, \"ranks\": 2, \"link_gbps\": $(awk -v mbit="$mbit" 'BEGIN { print mbit / 1000 }')"
rm "$out/codecs.csv"
