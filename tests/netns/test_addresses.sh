#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts have many addresses, one of which reaches the others: ranks find it within
# seconds.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/netns/net.sh
. "${abs_top_srcdir:-.}/tests/netns/net.sh"
hosts=${abs_top_srcdir:-.}/tests/netns/hosts
perf=$build/perf/trib-perf
sums=("$perf" allreduce --check --sizes 8 --iters 2)
! why=$(net_refused) || skip_all "$why"
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
export TRIB_TRANSPORT=tcp TRIB_BOOT_TIMEOUT_MS=20000
expect_seconds=90

# Other interfaces come before a host's real link: bridges, such as those of containers
# and virtual machines, and networks with routes to the other hosts that carry no
# packets. relink replaces the link of each host: it calls FUNCTION with the host's
# number first.
cat >"$dir/relink" <<'SETUP'
relink() { # FUNCTION
    local i

    for i in "${!net_pids[@]}"; do
        net_switch ip link del "port$i"
        "$1" "$i" && net_link "$i" eth0 "port$i" || return 1
        [[ $net_families != *4* ]] ||
            net_on "$i" ip address add "$(net_address "$i")/24" dev eth0 || return 1
        [[ $net_families != *6* ]] ||
            net_on "$i" ip address add "$(net_address "$i" 6)/64" dev eth0 nodad || return 1
    done
}
bridge() { # HOST NAME ADDRESS
    net_on "$1" sh -c 'ip link add "$0" type bridge && ip address add "$1" dev "$0" &&
        ip link set "$0" up' "$2" "$3"
}
four_bridges() { # HOST: each in another subnet
    local b

    for b in 1 2 3 4; do
        bridge "$1" "vir$b" "172.2$b.$1.1/24" || return 1
    done
}
# All hosts seem to share this subnet, but no packet arrives.
dead_network() {
    bridge "$1" dead "172.21.0.$(($1 + 1))/24"
}
# The dead network comes before a second network of the same switch.
dead_and_second() {
    dead_network "$1" && net_link "$1" eth1 "second$1" &&
        net_on "$1" ip address add "10.78.0.$(($1 + 1))/24" dev eth1
}
SETUP
setup() { # CODE
    { cat "$dir/relink"; printf '%s\n' "$@"; } >"$dir/setup"
}

setup 'relink four_bridges'
expect "four bridges before the link" 0 "2 ranks, tributary" \
    "$hosts" --ipv4 --setup "$dir/setup" -- "${sums[@]}"
TRIB_TRANSPORT=auto expect "four bridges before the link, transport auto" 0 "2 ranks, tributary" \
    "$hosts" --ipv4 --setup "$dir/setup" -- "${sums[@]}"
# shellcheck disable=SC2016 # for the shell on each host
expect "four bridges before the link: trib-perf put" 0 "put over tcp" \
    "$hosts" --ipv4 --setup "$dir/setup" -- sh -c '
        rank=$TRIB_RANK
        unset TRIB_RANK TRIB_SIZE TRIB_ROOT
        [ "$rank" = 0 ] && exec "$1" put --listen 7100
        exec "$1" put 10.77.0.1:7100 --transport tcp --sizes 8 --iters 10 --check' sh "$perf"

# NAME, number of hosts: each rank has summed within seconds. (An idle machine takes
# about 1 s; one address after the other took 2 s per peer.)
soon() {
    local name=$1 n=$2 most

    # shellcheck disable=SC2016
    expect "$name: sums" 0 "$n ranks, tributary" "$hosts" --hosts "$n" --ipv4 \
        --setup "$dir/setup" -- sh -c 'begin=$(date +%s%N)
            "$@" && echo "took $((($(date +%s%N) - begin) / 1000000)) ms"' sh "${sums[@]}"
    most=$(sed -n 's/.*took \([0-9]*\) ms$/\1/p' "$said" | sort -n | tail -n 1)
    echo "# $name: the slowest rank took ${most:-?} ms"
    [ "${most:-99999}" -lt $((5000 * slow)) ]
    result $? "$name: soon"
}
setup 'relink dead_network'
soon "8 hosts, a dead network first" 8
setup 'relink dead_and_second'
TRIB_TRANSPORT=tcp:net=172.21.0.0/16,10.78.0.0/24 \
    soon "8 hosts, a dead network first, and not that of the meeting" 8

# The ranks use the network that net= selects, and report an error for an unreachable
# one.
named() { # NAME, exit status, words, transport
    TRIB_TRANSPORT=$4 TRIB_TIMEOUT_MS=10000 expect "$1" "$2" "$3" \
        "$hosts" --ipv4 --setup "$dir/setup" -- "${sums[@]}"
}
named "net=NETWORK" 0 "2 ranks, tributary" tcp:net=10.78.0.0/24,port=7200
named "net=INTERFACE" 0 "2 ranks, tributary" auto:net=eth1
named "net= of a dead network" any "cannot be reached at 172.21.0." tcp:net=dead
named "net= that is not there" any "eth0 10.77.0.1/24" tcp:net=10.99.0.0/16
named "net= that is not there, transport auto" any "no address of this host is of net=ib0" \
    auto:net=ib0
named "net= that is nothing" any "neither a network" tcp:net=10.0.0.0/99
TRIB_TRANSPORT=auto:net=10.78.0.0/24 expect "the doctor takes the same" 0 "tcp: 2 of 2 directions" \
    "$hosts" --ipv4 --setup "$dir/setup" -- "$build/tools/trib-info" doctor
TRIB_TRANSPORT=auto:net=dead expect "and fails where ranks would" any "172.21.0." \
    "$hosts" --ipv4 --setup "$dir/setup" -- "$build/tools/trib-info" doctor

# shellcheck disable=SC2016
setup 'for i in "${!net_pids[@]}"; do
        net_on "$i" ip address flush dev eth0 scope global
    done
    link=$(net_on 0 ip -6 -brief address show dev eth0 scope link | grep -o "fe80[^/]*")
    export TRIB_ROOT="[$link%eth0]:$net_port"
    for ((tries = 0; tries < 100; tries++)); do
        net_on 0 ip -6 address show tentative | grep -q fe80 ||
            net_on 1 ip -6 address show tentative | grep -q fe80 || break
        sleep 0.1
    done'
expect "hosts with link-local addresses alone" 0 "2 ranks, tributary" \
    "$hosts" --ipv6 --setup "$dir/setup" -- "${sums[@]}"
# UCX cannot connect such addresses, so the doctor may report a problem.
"$hosts" --ipv6 --setup "$dir/setup" -- "$build/tools/trib-info" doctor >"$said" 2>&1
grep -q "tcp: 2 of 2 directions" "$said"
result $? "their doctor"

# Two processes of a host do not detect that they share it: the peer's local addresses
# are tried last.
expect "ranks of one host that do not know it" 0 "2 ranks, tributary" \
    "$hosts" --hosts 1 --ranks 2 -- unshare --mount sh -c \
    'mount -t proc -o subset=pid proc /proc && exec "$@"' sh "${sums[@]}"
if [ "$(sanitizer)" = asan ]; then
    skip "ranks of one host without /proc" "LeakSanitizer needs /proc"
else
    expect "ranks of one host without /proc" 0 "2 ranks, tributary" \
        "$hosts" --hosts 1 --ranks 2 -- unshare --mount sh -c \
        'mount -t tmpfs none /proc && exec "$@"' sh "${sums[@]}"
fi

setup 'net_on 0 ip link set lo down'
down=("$hosts" --hosts 1 --setup "$dir/setup" -- env -u TRIB_RANK -u TRIB_SIZE -u TRIB_ROOT
    "$build/tools/trib-run" -n 2 --)
expect "the loopback interface is down" any "the loopback interface of this host is down" \
    "${down[@]}" "${sums[@]}"
expect "the doctor says so" any "ip link set lo up on that host" \
    "${down[@]}" "$build/tools/trib-info" doctor
! grep -q firewall "$said"
result $? "and names no firewall"
finish
