#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# trib-info --topo as a user runs it.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
info=$build/tools/trib-info
data=${abs_top_srcdir:-.}/tests/topo/data

expect "this machine" 0 "$(uname -n)" "$info" --topo
! grep -qvE "^($(uname -n)|[ │├└])" "$said"
result $? "is one tree"
expect "the racks of a list" 0 "├─ row1/rack1, 4 hosts" "$info" --topo --racks "$data/racks.txt"
expect "Slurm's racks" 0 "│  ├─ leaf1, 5 hosts" "$info" --racks "$data/topology.conf" --topo
expect "a fabric's racks" 0 "├─ leaf1, 2 hosts, 100 Gb/s up" \
    "$info" --topo --racks "$data/ibnetdiscover.txt"
echo "rack7: n1 $(uname -n)" >"$dir/racks"
expect "this machine in its rack" 0 "├─ $(uname -n)" "$info" --topo --racks "$dir/racks"
expect "and its neighbour" 0 "└─ n1" "$info" --topo --racks "$dir/racks"
expect "a format by its name" 0 "rack7, 2 hosts" \
    "$info" --topo --racks "$dir/racks" --format hosts
expect "for Graphviz" 0 "graph topology {" "$info" --topo --dot --racks "$data/racks.txt"
[ "$(grep -c -- ' -- ' "$said")" -ge 6 ]
result $? "with edges"
if command -v dot >/dev/null; then
    cp "$said" "$dir/graph"
    expect "which Graphviz reads" 0 "<svg" dot -Tsvg "$dir/graph"
else
    skip "which Graphviz reads" "it is not installed"
fi

"$info" --topo --xml "$data/octo.xml" >"$said" 2>&1
if grep -q "built without hwloc" "$said"; then
    skip "another machine" "built without hwloc"
else
    expect "another machine" 0 "octo, Two Sockets 32-Core, 64 cores" \
        "$info" --topo --xml "$data/octo.xml"
    [ "$(grep -c "mlx5_" "$said")" = 8 ] && [ "$(grep -c "NUMA node" "$said")" = 8 ]
    result $? "with its devices and NUMA nodes"
    expect "no file of lstopo" 1 "racks.txt does not describe a machine: create" \
        "$info" --topo --xml "$data/racks.txt"
    expect "no file" 1 "/nonexistent cannot be read: No such file" \
        "$info" --topo --xml /nonexistent
fi

echo "rack7: n[1-" >"$dir/racks"
expect "racks with a mistake" 1 "racks line 1: the list \"n[1-\" has a [ without its ]" \
    "$info" --topo --racks "$dir/racks"
[ "$(wc -l <"$said")" = 1 ]
result $? "are one sentence"
expect "no file of racks" 1 "No such file" "$info" --topo --racks /nonexistent
expect "another format" 1 "did you mean \"slurm\"?" \
    "$info" --topo --racks "$dir/racks" --format slrum
expect "a missing file" 2 "--racks needs a value: FILE" "$info" --topo --racks
expect "a file that is an option" 2 "--xml needs a value (FILE), but is followed by the option --dot" "$info" --topo --xml --dot
expect "an option of --topo alone" 2 "--dot is valid only with --topo, --schedule" "$info" --dot
expect "a format of nothing" 2 "requires --racks FILE" "$info" --topo --format slurm
expect "an option of others" 2 "--json cannot be combined with --topo; the latter accepts --xml, --racks" "$info" --topo --json
finish
