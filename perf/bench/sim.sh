#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# sim.sh - compare the times of trib-sim for a few hosts with measured times.
#
#   perf/bench/sim.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round of 2 and 4 hosts: a smoke test
#   --rounds N        launches of each program [3]
#   --hosts LIST      such as "2 4" [2 4 8 16]
#   --rate RATE       rate of each host's link, each way [100mbit]
#   --bytes SIZE      of the vector [4194304]
#   --samples N       samples of a launch [5]
#   --only LIST       rows, comma-separated: ring, halving-doubling, hierarchical, int8, topk, gradiveq,
#                     service
#   --limit S         time limit of a launch, in seconds [120]
#   --within PERCENT  largest accepted error [15]
#   --write           write the table to docs/scaling.md, and update all simulated results there
#                     with perf/bench/scaling.sh
#   --simulated       with --write: only the latter, without hosts
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they
# share its cores; the rate is low enough that the cores are not the limit. Rows are medians of the
# launches' medians. The files in OUT_DIR are runs.csv (all launches), sim.md (the table), errors.log.
# Exit status 1: the error of a row exceeds --within.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=3 hosts_list="2 4 8 16" rate=100mbit bytes=4194304 samples=5 only='' limit=120 within=15
write='' simulated=''
# shellcheck disable=SC2034 # peers.sh and driver.sh read them
sample_ms=1 place=in rewrite='' missing=()

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"
# shellcheck source=tests/netns/net.sh
. "$here/../tests/netns/net.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [hosts]=hosts_list [rate]=rate [bytes]=bytes
    [samples]=samples [only]=only [limit]=limit [within]=within)
on_quick() { rounds=1 hosts_list="2 4" samples=2; }
on_write() { write=yes; }
on_simulated() { simulated=yes; }
take_arguments "$@"

# Update the parts of docs/scaling.md that need no hosts.
write_simulated() {
    "$here/bench/scaling.sh" "$build" docs/scaling.csv docs/scaling.svg "$out/scaling.md"
    write_section scaling "$out/scaling.md" docs/scaling.md
}

if [ -n "$simulated" ]; then
    write_simulated
    exit
fi
! why=$(net_refused) || die "$why"
[ -x "$build/perf/sim/trib-sim" ] || die "there is no trib-sim: build with libsimgrid-dev"
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_SERVICE

# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
# shellcheck source=perf/bench/between_hosts.sh
. "$here/bench/between_hosts.sh"

# shellcheck disable=SC2054 # the commas are of codecs
# NAME:CODEC:ALGORITHM:RANKS PER HOST:MULTIPLE OF THE BYTES. A few bytes would fit into the burst
# of a link's token bucket (tests/netns/net.sh), so codecs have longer vectors. GradiVeQ has
# learned before the first sample.
rows=(ring:none:ring:1:1 halving-doubling:none:halving-doubling:1:1
    hierarchical:none:hierarchical:2:1 direct:none:direct:1:1 int8:int8:direct:1:2 topk:topk/ratio=0.01:direct:1:8
    gradiveq:gradiveq/slice=64,kept=8,train=2,coded=1000:ring:1:8 service:none:service:1:1)
aggregators=2

parse_row() { # ROW
    local codec
    IFS=: read -r name codec algorithm per_host times <<<"$1"
    codec=${codec/\//:}
    text=$codec
}

# Rows "hosts,name,what,ms" of one launch.
measured() {
    local sizes=$((bytes * times)) options said env=()
    mapfile -t options < <(trib_options)
    net_job_hosts=$n net_job_ranks=$per_host
    [ "$algorithm" != service ] || env=(env "TRIB_SERVICE=$(services "${daemons[@]}")"
        TRIB_SERVICE_AUTH=key "TRIB_SERVICE_KEY=$net_dir/key")
    [ "$per_host" = 1 ] || env=(env TRIB_LEADERS=1)
    said=$(job "${env[@]}" "$build/perf/trib-perf" allreduce --memory alloc "${options[@]}" \
        --warmup 4 --codec "$text" --algorithm "$algorithm") || return 1
    if grep '^tributary: ' <<<"$said" >&2; then return 1; fi
    trib_rows "$name" <<<"$said" | awk -F, -v n="$n" '{ print n "," $1 ",measured," $6 / 1000 }'
}

simulated() {
    local of=()
    [ "$algorithm" != hierarchical ] || of=(--leaders 1)
    [ "$algorithm" != service ] || of=(--aggregators "$aggregators")
    "$build/perf/sim/trib-sim" --csv - --ranks $((n * per_host)) --per-host "$per_host" "${of[@]}" \
        --bytes $((bytes * times)) --rate "$rate" --codec "$text" --algorithm "$algorithm" --cores "$(nproc)" |
        awk -F, -v n="$n" -v name="$name" '{ gsub(/"[^"]*"/, "codec") }
            NR == 2 { print n "," name ",simulated," $6 * 1000 }'
}

trap net_close EXIT
trap 'exit 130' INT TERM HUP
# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * $(count_of $hosts_list) * ${#rows[@]}))
echo "round,before,after,hosts,row,what,ms" >"$runs"
for n in $hosts_list; do
    [ -z "$interrupted" ] || break
    net_open $((n + aggregators)) 1500 4 || die "the hosts cannot be made"
    net_rate "$rate" || die "the rate $rate cannot be set"
    daemons=("$n" $((n + 1)))
    start_daemons "${daemons[@]}" || die "tribd does not start"
    for ((round = 1; round <= rounds; round++)); do
        for row in "${rows[@]}"; do
            parse_row "$row"
            wanted "$name" || continue
            launch_probed "$round" "$n hosts, $name" measured
            [ "$round" -gt 1 ] || [ -n "$interrupted" ] || simulated | sed 's/^/1,-,-,/' >>"$runs"
        done
    done
    net_close
    daemon_pid=()
done
[ ! -t 2 ] || printf '\r\033[K' >&2

status=0
{
    machine_line
    echo "Hosts are network namespaces on it, with links of $rate; an all-reduce of $bytes bytes of float32 in"
    echo "place over TCP (int8 twice, topk and gradiveq 8 times as many), medians of $rounds launches of $samples samples; trib-sim with its defaults."
    absent_lines
    echo
} >"$out/sim.md"
awk -v within="$within" -f "$here/bench/medians.awk" -f "$here/bench/sim.awk" "$runs" >>"$out/sim.md" || status=$?
show_tables "$out/sim.md"
if [ -n "$write" ]; then
    write_section sim "$out/sim.md" docs/scaling.md
    write_simulated
fi
echo "written to $out: sim.md, runs.csv, errors.log" >&2
awk -F, 'NR == 1 { print "hosts,name,ms"; next } { print $4 "," $5 ($6 == "simulated" ? " simulated" : "") "," $7 }' \
    "$runs" >"$out/times.csv"
rows=$out/times.csv write_page split_by=hosts name=name own='[^d]$' key=way bytes="$bytes" run="$allreduce_run"
rm "$out/times.csv"
[ "$status" = 0 ]
