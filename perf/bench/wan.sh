#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# wan.sh - dense sums, int8 and top-k between two hosts with a long link.
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), connected by the device of
# perf/wan, which needs root; they share its cores. A round launches each codec once over one
# link. Rows are medians of the medians of launches, compared with perf/results/wan.md. It takes about 4 minutes.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
# shellcheck source=/dev/null
. "$here/bench/between_hosts.sh"
quick "1 round of a short vector over 2 ms: a smoke test" rounds=1 trips=2 bytes=1048576 samples=2
options rounds
option trips "2 10 40" LIST "round trips in ms"
option rate 1000 MBIT "rate of the link in Mbit/s, each way" mbit
option queue 4000000 BYTES "length of the link's queue"
option bytes 26214400 SIZE "of the vector"
options congestion samples=4
option only '' LIST "rows, comma-separated: dense, int8, topk"
options limit write
tables_file=wan.md files='runs.csv (all launches), wan.md (the tables), errors.log'
take_arguments "$@"
need_hosts
[ -x "$build/perf/wan" ] || die "there is no perf/wan: build first"
[ -e /dev/net/tun ] || die "there is no /dev/net/tun, of which the link's ends are made"
export TRIB_TRANSPORT=tcp

# The device of the long link replaces that of tests/netns/net.sh, with the same name and address.
place_names=trip wan_pid=''
open_place() {
    local host end=$((SECONDS + 20))
    net_open 2 1500 4 || die "the hosts cannot be made"
    for host in 0 1; do net_on "$host" ip link del eth0; done
    setsid setpriv --pdeathsig KILL "$build/perf/wan" "/proc/${net_pids[0]}/ns/net" \
        "/proc/${net_pids[1]}/ns/net" "$trip" "$mbit" "$queue" >"$net_dir/wan.log" 2>&1 </dev/null &
    wan_pid=$!
    until grep -qs ready "$net_dir/wan.log"; do
        if [ ! -e "/proc/$wan_pid" ] || [ "$SECONDS" -ge "$end" ]; then
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
close_place() {
    [ -z "$wan_pid" ] || { kill -KILL "$wan_pid" && wait "$wan_pid"; } 2>/dev/null || :
    wan_pid=''
    net_close
}

columns=trip,row,ms
strict=yes
measured() { # NAME CODEC
    local sizes=$bytes
    sum_on_hosts "$1" '' --memory alloc --warmup 2 --codec "$2" | awk -F, -v trip="$trip" '{ print trip "," $1 "," $6 / 1000 }'
}
one_round() {
    local name codec
    while read -r name codec; do contend "$name" "$trip ms, $name" measured "$name" "$codec"; done <<'ROWS'
dense none
int8 int8:result=requantised
topk topk:ratio=0.01
ROWS
}
read -ra places <<<"$trips"
measure

table() { # PAGE or nothing
    awk -v page="$1" -f "$here/bench/tables.awk" -f "$here/bench/wan.awk" "$runs"
}
tables() {
    table ''
    echo
    table "$here/results/wan.md"
}
about="Both hosts are network namespaces on it, with a link of $mbit Mbit/s and a queue of $queue bytes between
them; an all-reduce of $bytes bytes of float32 in place over TCP ($congestion), medians of
$rounds launches of $samples samples, in turn."
write_tables() { write_section wan <(table ''); }
page_rows() { sed 's/,dense,/,none,/' "$runs"; } # a dense sum is codec none
finish split_by=trip name=row own=. key=codec bytes="$bytes" \
    run="$allreduce_run, \"ranks\": 2, \"link_gbps\": $(awk -v mbit="$mbit" 'BEGIN { print mbit / 1000 }')"
