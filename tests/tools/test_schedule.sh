#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-info --schedule as a user runs it.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
info=$build/tools/trib-info

expect "two hosts of two ranks" 0 "hierarchical allreduce, 4 ranks on 2 hosts, 1000 bytes: 2 chunks" \
    "$info" --schedule hierarchical 4 1000 --per-host 2 --leaders 1
# Each host's leader gives half a vector up and half a vector down.
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
expect "for Graphviz" 0 "digraph schedule {" "$info" --schedule ring 4 1000 --per-host 2 --dot
[ "$(grep -c -- ' -> ' "$said")" = 4 ] && [ "$(grep -c cluster "$said")" = 2 ]
result $? "with hosts and edges"
if command -v dot >/dev/null; then
    cp "$said" "$dir/graph"
    expect "which Graphviz reads" 0 "<svg" dot -Tsvg "$dir/graph"
else
    skip "which Graphviz reads" "it is not installed"
fi
expect "by how a name begins" 0 "hierarchical allreduce, 16 ranks" "$info" --schedule hier 16 1M
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
expect "no list" 2 "'--service' does not go" "$info" --schedule service 4 1 --service
expect "another algorithm" 1 "did you mean \"ring\"?" "$info" --schedule rimg 4 1000
expect "one of services" 1 "cannot do allreduce with 4 ranks alone" "$info" --schedule service 4 1000
expect "too many ranks" 1 "1025 ranks: draw 1 to 1024" "$info" --schedule ring 1025 1
expect "no ranks" 1 "0 ranks: draw 1 to 1024" "$info" --schedule ring 0 1
expect "no number" 2 "RANKS is 'x'" "$info" --schedule ring x 1
expect "no size" 2 "ALGORITHM RANKS BYTES" "$info" --schedule ring 4
expect "another option" 2 "'--xml' does not go with --schedule" "$info" --schedule ring 4 1 --xml
finish
