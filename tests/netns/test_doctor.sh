#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Check the report of trib-info doctor on several hosts, with and without faults.
# shellcheck disable=SC2317 # at_exit is called at the end
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/netns/net.sh
. "${abs_top_srcdir:-.}/tests/netns/net.sh"
! why=$(net_refused) || skip_all "$why"
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
at_exit() { net_close; }

# NAME, exit status, words of one line...: run the doctor on the current hosts
doctor() {
    local name=$1 status=$2 rank line others=0

    net_job "$build/tools/trib-info" doctor
    net_ended 100 "${!net_pids[@]}"
    result $? "$name: it ends"
    shown=("$net_dir"/rank*.out)
    for rank in "${!net_pids[@]}"; do
        [ "$(net_status "$rank")" = "$status" ] || others=$((others + 1))
    done
    result $others "$name: every rank exits with $status"
    shift 2
    for line; do
        grep -qE -- "$line" "$net_dir"/rank*.out
        result $? "$name: says $line"
    done
}

net_open 3 9000 || exit 1
doctor "three hosts" 0 "^ok    ranks: 3 on 3 hosts: host0 .rank 0., host1" \
    "^ok    tcp: 6 of 6 directions" "^ok    links: .* eth0 9000" "^ok    clocks: " ", 0 FAIL$"
[ "$(cat "$net_dir"/rank[12].out)" = "" ]
result $? "three hosts: rank 0 alone speaks"
! grep -q "no heartbeat" "$net_dir/rank0.out"
result $? "three hosts: heartbeats come"

TRIB_TRANSPORT=tcp:port=7100,ports=100
export TRIB_TRANSPORT
net_drop 1 tcp dport 7100-7199
doctor "a firewall before host1" 1 \
    "^FAIL  rank 0 .host0. → rank 1 .host1.: tcp: .*port 71[0-9]+: Connection timed out; a firewall" \
    "^FAIL  rank 2 .host2. → rank 1 .host1.: tcp: .*port 71" "^FAIL  tcp: 2 of 4 directions"
net_mend

net_rule 1 tcp dport 7100-7199 reject with tcp reset
doctor "a firewall that rejects, before host1" 1 \
    "^FAIL  rank 0 .host0. → rank 1 .host1.: tcp: .*port 71[0-9]+: Connection refused; a firewall" \
    "^FAIL  tcp: 2 of 4 directions"
net_mend

TRIB_TRANSPORT=auto:port=7100,ports=100
net_drop 1 tcp dport 7100-7199
doctor "a firewall before the ports of auto" 1 \
    "^FAIL  rank 2 .host2. → rank 1 .host1.: tcp: .*port 71" "^FAIL  tcp: 2 of 4 directions"
net_mend

TRIB_TRANSPORT=tcp:port=7100,ports=100
net_drop 1 meta l4proto udp
doctor "a firewall that drops heartbeats" 0 "^ok    tcp: 6 of 6 directions" \
    "^warn  rank 0 .host0. → rank 1 .host1.: tcp: no heartbeat .UDP. arrives .*firewall drops UDP" \
    "^warn  rank 2 .host2. → rank 1 .host1.: tcp: no heartbeat" ", 0 FAIL$"
[ "$(grep -c "no heartbeat" "$net_dir/rank0.out")" = 2 ]
result $? "a firewall that drops heartbeats: only those to host1"
net_mend

net_drop 0 tcp dport "$net_port"
TRIB_BOOT_TIMEOUT_MS=8000 doctor "a firewall before TRIB_ROOT" 1 \
    "^FAIL  rank 2 .host2.: rendezvous: rank 2 found no rank 0 at 10.77.0.1 port 7000" \
    "^FAIL  rank 0 .host0.: rendezvous: ranks 1-2 of 3 did not come"
net_mend

# A difference of one host
TRIB_TRANSPORT=auto
net_on 2 mount -t tmpfs -o size=8m tmpfs /dev/shm
net_on 2 hostname host1
doctor "a small /dev/shm and a name that two have" 0 \
    "^warn  host1: /dev/shm: 8 MiB" "^warn  host names: the hosts of rank 1 and of rank 2"
net_on 2 hostname host2
net_job_start 0 "$build/tools/trib-info" doctor
net_job_start 1 env TRIB_CHUNK=128K "$build/tools/trib-info" doctor
net_job_start 2 env TRIB_NONSENSE=1 "$build/tools/trib-info" doctor
net_ended 60 0 1 2 && [ "$(net_status 2)" = 1 ] &&
    grep -qE '^FAIL  settings: rank 1 .host1. has chunk=128K, rank 0 .host0. has chunk=64K;' \
        "$net_dir/rank0.out"
result $? "settings that differ are named"
grep -qE '^warn  host2: warning: .*TRIB_NONSENSE' "$net_dir/rank0.out"
result $? "a setting that nobody knows is named, with its host"
net_close

# Each round of two takes seconds: two hosts have one.
net_open 2 9000 || exit 1
net_drop_frames 1514
TRIB_TRANSPORT=tcp doctor "large frames are lost" 1 \
    "^FAIL  rank 0 .host0. → rank 1 .host1.: tcp: 64 bytes arrive, but 64 KiB do not .*MTU of host0: eth0 9000.*MTU" \
    "^FAIL  tcp: 0 of 2 directions"
net_close

net_open 2 1500 6 || exit 1
doctor "IPv6 only" 0 "^ok    tcp: 2 of 2 directions"
TRIB_TRANSPORT=tcp:port=7100,ports=100
net_drop 1 tcp dport 7100-7199
doctor "IPv6 only, a firewall" 1 \
    "^FAIL  rank 0 .host0. → rank 1 .host1.: tcp: .*fd77::2.* port [0-9]+: Connection timed out"
net_close
finish
