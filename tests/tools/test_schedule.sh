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
grep -q "1 ->    0         2            1000               0$" "$said"
result $? "contributions from a member"
[ "$(grep -c -- ' -> ' "$said")" = 6 ]
result $? "over six links"
expect "a ring's links" 0 "3 ->    0         6             750             750" \
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
expect "another algorithm" 1 "did you mean \"ring\"?" "$info" --schedule rimg 4 1000
expect "one of services" 1 "cannot do allreduce with 4 ranks" "$info" --schedule service 4 1000
expect "too many ranks" 1 "1025 ranks: draw 1 to 1024" "$info" --schedule ring 1025 1
expect "no ranks" 1 "0 ranks: draw 1 to 1024" "$info" --schedule ring 0 1
expect "no number" 2 "RANKS is 'x'" "$info" --schedule ring x 1
expect "no size" 2 "ALGORITHM RANKS BYTES" "$info" --schedule ring 4
expect "another option" 2 "'--xml' does not go with --schedule" "$info" --schedule ring 4 1 --xml
finish
