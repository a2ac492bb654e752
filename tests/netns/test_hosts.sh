#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks run on several hosts, in networks like those of clusters; then the launcher is
# tested.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/netns/net.sh
. "${abs_top_srcdir:-.}/tests/netns/net.sh"
hosts=${abs_top_srcdir:-.}/tests/netns/hosts
# A blocked operation reports an error before the time-out of the hosts.
export TRIB_TIMEOUT_MS=60000
sums=("$build/perf/trib-perf" allreduce --check --sizes "8,64K,1M" --iters 3)
! why=$(net_refused) || skip_all "$why"
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
expect_seconds=150

# shellcheck disable=SC2317 # within calls it
none() { # PATTERN: no process has it in its command line
    ! grep -qsz "$1" /proc/[0-9]*/cmdline
}

# NAME, code that changes the network, options: the ranks sum on this network
network() {
    local name=$1

    printf '%s\n' "$2" >"$dir/setup"
    expect "$name" 0 "1 MiB" "$hosts" --setup "$dir/setup" "${@:3}" -- "${sums[@]}"
}

for n in 2 4; do
    TRIB_TRANSPORT=tcp expect "$n hosts over tcp" 0 "$n ranks, tributary" \
        "$hosts" --hosts "$n" -- "${sums[@]}"
    if "$build/tools/trib-info" --transports | grep -q "^  ucx  *UCX [0-9]"; then
        TRIB_TRANSPORT=ucx expect "$n hosts over ucx" 0 "$n ranks, tributary" \
            "$hosts" --hosts "$n" -- "${sums[@]}"
    fi
    expect "$n hosts, transport of the library's choice" 0 "$n ranks, tributary" \
        "$hosts" --hosts "$n" -- "${sums[@]}"
done
network "2 hosts of 2 ranks each" "" --ranks 2
network "IPv4 only" "" --ipv4
network "IPv6 only" "" --ipv6
network "links have other names on each host" '
    net_on 1 ip link set eth0 down && net_on 1 ip link set eth0 name lan7 &&
        net_on 1 ip link set lan7 up' --ipv4
# Host 1's first link has an address in host 0's subnet, but nothing answers there.
network "a host with a second link that reaches nobody" '
    net_link 1 eth1 spare &&
        net_on 1 ip address flush dev eth0 scope global &&
        net_on 1 ip address add 10.77.0.2/24 dev eth1 &&
        net_on 1 ip address add 192.168.99.2/24 dev eth0 &&
        net_switch ip link set port1 nomaster &&
        net_on 0 ip route add 192.168.99.0/24 dev eth0' --ipv4
network "frames of 9000 bytes" "" --mtu 9000
network "one host takes frames of 1500 bytes only, and says so" '
    net_on 1 ip link set eth0 mtu 1500' --mtu 9000

# Between hosts chunks are large, except where TRIB_CHUNK sets their size; with a codec
# they are as small as within a host.
chunks() { # NAME, BYTES, ranks' options and variables
    expect "$1" 0 "up to $2 bytes each" "$hosts" "${@:3}" "$build/perf/trib-perf" allreduce \
        --explain --sizes 16M --iters 1
}
chunks "chunks between hosts" 262144 --
chunks "chunks within a host" 65536 --hosts 1 --ranks 2 --
chunks "chunks within a host over sockets" 262144 --hosts 1 --ranks 2 -- env TRIB_TRANSPORT=tcp
chunks "chunks of the size that was asked for" 65536 -- env TRIB_CHUNK=64K
# shellcheck disable=SC2016
chunks "chunks of the size that one rank was asked for" 65536 -- \
    sh -c '[ "$TRIB_RANK" = 1 ] || export TRIB_CHUNK=64K; exec "$@"' sh
chunks "code words between hosts" 65536 -- env TRIB_CODEC=bf16

# The client connects by name or address; the server has only a port.
put() { # ADDRESS
    # shellcheck disable=SC2016 # for the shell on each host
    expect "trib-perf put between hosts, to $1" 0 "put over tcp" "$hosts" -- sh -c '
        rank=$TRIB_RANK
        unset TRIB_RANK TRIB_SIZE TRIB_ROOT
        [ "$rank" = 0 ] && exec "$1" put --listen 7100
        exec "$1" put "$2:7100" --transport tcp --sizes 8,64K --iters 10 --check' \
        sh "$build/perf/trib-perf" "$1"
}
put host0
put "[fd77::1]"
put 10.77.0.1
TRIB_BOOT_TIMEOUT_MS=2000 expect "trib-perf put where no server is" 1 "Connection refused" \
    "$hosts" -- env -u TRIB_RANK -u TRIB_SIZE -u TRIB_ROOT "$build/perf/trib-perf" \
    put host0:7100

# 4 MiB in each direction take 32 ms at 1 Gbit/s, less the burst.
"$hosts" --rate 1gbit -- "$build/perf/trib-perf" allreduce --sizes 4M --iters 3 --csv - \
    >"$said" 2>&1
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    NR == 2 { us = $column["p50_us"] } END { exit !(us > 25000) }' \
    <(sed -n 's/^\[0\] //p' "$said")
result $? "a rate holds"

# shellcheck disable=SC2016
expect "a host has name, addresses and /dev/shm of its own" 0 "[1] host1 fd77::2 fd77::1 0" \
    "$hosts" --ipv6 -- sh -c '
        echo "$(hostname) $(getent hosts host1 host0 | sed "s/ .*//" | paste -sd " ") \
$(find /dev/shm -type f | wc -l)" | tr -s " "; touch /dev/shm/mine'
[ ! -e /dev/shm/mine ]
result $? "and nothing of it stays"
# shellcheck disable=SC2016 # ranks expand it
expect "the exit status of the rank that failed" 7 "[1] here" \
    "$hosts" -- sh -c 'echo here; exit $((TRIB_RANK * 7))'
expect "a time-out" 124 "time-out" "$hosts" --timeout 2 -- sleep 98765.5
within 20 none '98765\.5'
result $? "leaves nobody behind"
expect "options are checked" 125 "--hosts x" "$hosts" --hosts x -- true

# Two sets of hosts run concurrently; then one is killed.
"$hosts" -- "${sums[@]}" >"$dir/one" 2>&1 &
one=$!
expect "two networks at once" 0 "2 ranks, tributary" "$hosts" -- "${sums[@]}"
wait $one
result $? "and the other"
"$hosts" -- sleep 98765.6 &
one=$!
within 30 grep -qsz '98765\.6' /proc/[0-9]*/cmdline
kill -KILL $one
wait $one 2>/dev/null
within 20 none '98765\.6'
result $? "kill -9 of the launcher ends all hosts"
finish
