#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# sim.sh - compare the times of trib-sim for a few hosts with measured times.
#
# The hosts are network namespaces on this machine (tests/netns/net.sh), which needs root; they
# share its cores; the rate is low enough that the cores are not the limit. Rows are medians of the
# launches' medians. Exit status 1: the error of a row exceeds --within.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
# shellcheck source=/dev/null
. "$here/bench/between_hosts.sh"
quick "1 round of 2 and 4 hosts: a smoke test" rounds=1 "hosts_list=2 4" samples=2
options rounds=3 "hosts=2 4 8 16"
option rate 100mbit RATE "rate of each host's link, each way"
option bytes 4194304 SIZE "of the vector"
options samples
option only '' LIST "rows, comma-separated: ring, halving-doubling, hierarchical, int8, topk, gradiveq, service"
options limit=120
option within 15 PERCENT "largest accepted error"
option write '' '' "write the table to docs/scaling.md, and update all simulated results there with perf/bench/scaling.sh"
option simulated '' '' "with --write: only the latter, without hosts"
tables_file=sim.md files='runs.csv (all launches), sim.md (the table), errors.log'
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
need_hosts
[ -x "$build/perf/sim/trib-sim" ] || die "there is no trib-sim: build with libsimgrid-dev"

columns=hosts,row,what,ms
strict=yes congestion=cubic
measured() { # NAME CODEC ALGORITHM RANKS_PER_HOST TIMES
    local sizes=$((bytes * $5)) net_job_hosts=$n net_job_ranks=$4
    [ "$3" != service ] || export TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$net_dir/key TRIB_SERVICE=$daemon_list
    [ "$4" = 1 ] || export TRIB_LEADERS=1
    sum_on_hosts "$1" '' --memory alloc --warmup 4 --codec "$2" --algorithm "$3" |
        awk -F, -v n="$n" '{ print n "," $1 ",measured," $6 / 1000 }'
}

aggregators=2
simulate() { # NAME CODEC ALGORITHM RANKS_PER_HOST TIMES
    local of=()
    [ "$3" != hierarchical ] || of=(--leaders 1)
    [ "$3" != service ] || of=(--aggregators "$aggregators")
    "$build/perf/sim/trib-sim" --csv - --ranks $((n * $4)) --per-host "$4" "${of[@]}" \
        --bytes $((bytes * $5)) --rate "$rate" --codec "$2" --algorithm "$3" --cores "$(nproc)" |
        awk -F, -v row="1,-,-,$n,$1,simulated" '{ gsub(/"[^"]*"/, "codec") } NR == 2 { print row "," $6 * 1000 }' >>"$runs"
}

place_names=n
open_place() {
    open_hosts $((n + aggregators))
    start_daemons "$n" $((n + 1)) || die "tribd does not start"
    daemon_list=$(services "$n" $((n + 1)))
}
close_place() {
    net_close
    daemon_pid=()
}

# A few bytes would fit into the burst of a link's token bucket (tests/netns/net.sh), so codecs have
# longer vectors. GradiVeQ has learned before the first sample.
one_round() {
    local name codec algorithm per_host times
    while read -r name codec algorithm per_host times; do
        contend "$name" "$n hosts, $name" measured "$name" "$codec" "$algorithm" "$per_host" "$times"
        [ "$round" != 1 ] || [ -n "$interrupted" ] || ! wanted "$name" ||
            simulate "$name" "$codec" "$algorithm" "$per_host" "$times"
    done <<'ROWS'
ring none ring 1 1
halving-doubling none halving-doubling 1 1
hierarchical none hierarchical 2 1
direct none direct 1 1
int8 int8 direct 1 2
topk topk:ratio=0.01 direct 1 8
gradiveq gradiveq:slice=64,kept=8,train=2,coded=1000 ring 1 8
service none service 1 1
ROWS
}
read -ra places <<<"$hosts_list"
measure
about="Hosts are network namespaces on it, with links of $rate; an all-reduce of $bytes bytes of float32 in
place over TCP (int8 twice, topk and gradiveq 8 times as many), medians of $rounds launches of $samples samples; trib-sim with its defaults."
table_variables=(-v "within=$within")
write_tables() {
    write_section sim "$out/sim.md" docs/scaling.md
    write_simulated
}
page_rows() {
    awk -F, 'NR == 1 { print "hosts,name,ms"; next } { print $4 "," $5 ($6 == "simulated" ? " simulated" : "") "," $7 }' "$runs"
}
finish split_by=hosts name=name own='[^d]$' key=way bytes="$bytes" run="$allreduce_run"
