#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-info --schedule as a user runs it.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
info=$build/tools/trib-info

expect "two hosts of two ranks" 0 "hierarchical allreduce, 4 ranks on 2 hosts, 1000 bytes: 2 chunks" \
    "$info" --schedule hierarchical 4 1000 --per-host 2 --leaders 1
# Each host's leader sends half a vector up and half a vector down.
expect "cross twice a half each" 0 "of these 2000 to other hosts" \
    "$info" --schedule hierarchical 4 1000 --per-host 2 --leaders 1
expect "with steps" 0 "recv, sum chunk 0    from rank 1    up" \
    "$info" --schedule hierarchical 4 1000 --per-host 2 --leaders 1
grep -q "rank 1 -> rank 0            2            1000               0$" "$said"
result $? "contributions from a member"
[ "$(grep -c -- 'rank . -> ' "$said")" = 6 ]
result $? "over six links"
expect "a ring's links" 0 "rank 3 -> rank 0            6             750             750" \
    "$info" --schedule ring 4 1000
expect "of a unit" 0 "1048576 bytes" "$info" --schedule direct 3 1M
expect "a barrier" 0 "dissemination barrier" "$info" --schedule dissemination 5 0
expect "that of pairs, folded" 0 "rank 5 -> rank 1            1            1000               0" \
    "$info" --schedule doubling 6 1000
expect "for Graphviz" 0 "digraph schedule {" "$info" --schedule ring 4 1000 --per-host 2 --dot
[ "$(grep -c -- ' -> ' "$said")" = 4 ] && [ "$(grep -c cluster "$said")" = 2 ]
result $? "with hosts and edges"
if command -v dot >/dev/null; then
    cp "$said" "$dir/graph"
    expect "which Graphviz reads" 0 "<svg" dot -Tsvg "$dir/graph"
else
    skip "which Graphviz reads" "it is not installed"
fi
expect "by how a name begins" 0 "hierarchical allreduce, 16 ranks on 4 hosts" "$info" --schedule hier 16 1M
grep -qF "4 ranks per host by default (--per-host)" "$said"
result $? "several hosts, and it says so"
# Each host sends three quarters of a vector to the others twice, for any choice of leaders.
grep -q "of these $((4 * 2 * 1048576 * 3 / 4)) to other hosts" "$said"
result $? "what crosses is 2 (G-1)/G vectors a host"
awk '/to another host/ { n[int($2 / 4) " " int($5 / 4)] += $7 + $8 }
    END { for (i in n) { pairs++; bad += n[i] < 524288 - 12 || n[i] > 524288 + 12 } exit bad || pairs != 12 }' "$said"
result $? "half a vector between each two hosts each way"
expect "also for Graphviz" 0 "// 4 ranks per host by" "$info" --schedule hier 16 1M --dot
[ "$(grep -c cluster "$said")" = 4 ]
result $? "with as many hosts"
expect "hosts of a number that has few divisors" 0 "10 ranks on 2 hosts" "$info" --schedule hier 10 1000
expect "hosts of a prime number" 0 "7 ranks on 3 hosts" "$info" --schedule hier 7 1000
expect "one host, if asked for" 0 "16 ranks on 1 host," "$info" --schedule hier 16 1M --per-host 16
! grep -q "by default" "$said"
result $? "which is what was asked for"
expect "another algorithm has one host" 0 "4 ranks on 1 host," "$info" --schedule ring 4 1000

# Groups on machines described by lstopo: eight NUMA nodes with eight devices; two devices.
data=${abs_top_srcdir:-.}/tests/topo/data
octo="hier 32 1M --per-host 16 --xml $data/octo.xml"
if "$info" --topo --xml "$data/octo.xml" >"$said" 2>&1; then
    # shellcheck disable=SC2086
    expect "by NUMA node" 0 "16 groups by numa, 1 leader each" \
        "$info" --schedule $octo --groups numa --leaders 1
    grep -qx "rank 17, host 1, group 8" "$said"
    result $? "of each of two hosts"
    # Sixteen leaders exchange a sixteenth each; eight of them are on another host.
    grep -q "of these $((2 * 16 * 8 * 1048576 / 16)) to other hosts" "$said"
    result $? "only what leaves a host is to another"
    # shellcheck disable=SC2086
    expect "by device" 0 "16 groups by nic, 2 leaders each" "$info" --schedule $octo --groups nic --leaders 2
    # shellcheck disable=SC2086
    expect "auto takes hosts" 0 "2 groups by host" "$info" --schedule $octo --groups auto
    expect "auto takes nodes of one host" 0 "8 groups by numa" \
        "$info" --schedule hier 16 1M --per-host 16 --xml "$data/octo.xml" --groups auto
    expect "two devices of one node" 0 "2 groups by nic" \
        "$info" --schedule hier 6 1M --per-host 6 --xml "$data/mono.xml" --groups nic
    expect "a rank of several nodes" 1 "groups by numa: rank 0 on host0" \
        "$info" --schedule hier 6 1M --per-host 3 --xml "$data/octo.xml" --groups numa
else
    skip "groups" "built without hwloc"
fi
expect "no such groups" 1 "did you mean \"numa\"?" "$info" --schedule hier 4 1 --groups nume
expect "no such machine" 1 "/nonexistent cannot be read" "$info" --schedule hier 4 1 --xml /nonexistent
star="service 4 1000 --service a:4700,b:4700"
# shellcheck disable=SC2086 # words
expect "two tribd" 0 "service allreduce, 4 ranks on 1 host, 2 tribd, 1000 bytes: 2 chunks" "$info" --schedule $star
grep -q "rank 3 -> tribd 1  *1  *500  *0 " "$said" && grep -q "tribd 1 -> rank 3  *1  *0  *500 " "$said"
result $? "half a vector up and down between each rank and each"
[ "$(grep -c -- ' -> ' "$said")" = 17 ] && grep -q "sent: 8000 bytes, of these 8000 to other hosts" "$said"
result $? "which is all"
tree="service 4 1000 --per-host 2 --service a:1=host0+b:1=host1+c:1"
# shellcheck disable=SC2086
expect "a tree" 0 "tribd 2, at c:1" "$info" --schedule $tree
grep -q "rank 1 -> tribd 0 " "$said" && grep -q "tribd 0 -> tribd 2  *1  *1000 " "$said"
result $? "goes up by the tribd of the rack"
# shellcheck disable=SC2086
expect "a tree for Graphviz" 0 'label="tribd 2' "$info" --schedule $tree --dot
expect "no address" 1 "TRIB_SERVICE: \"a\" is not host:port" "$info" --schedule service 4 1 --service a
expect "no list" 2 "--service needs a value: SERVICES" "$info" --schedule service 4 1 --service
expect "another algorithm" 1 "did you mean \"ring\"?" "$info" --schedule rimg 4 1000
expect "one of services" 1 "does not support allreduce with 4 ranks alone" "$info" --schedule service 4 1000
expect "too many ranks" 1 "1025 ranks: draw 1 to 1024" "$info" --schedule ring 1025 1
expect "no ranks" 1 "0 ranks: draw 1 to 1024" "$info" --schedule ring 0 1
expect "no number" 2 "RANKS 'x' must be" "$info" --schedule ring x 1
expect "no size" 2 "ALGORITHM RANKS BYTES" "$info" --schedule ring 4
expect "another option" 2 "--racks cannot be combined with --schedule" "$info" --schedule ring 4 1 --racks x
finish
