#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# two_guests.sh [--long] BUILD STATUS - run_rxe.sh runs this on each of two guests that
# cables join. The tests are sums between hosts, and faults of the network and of the
# other host. Host 1 runs the commands of host 0. Host 0 prints TAP lines and exits with
# STATUS even if tests fail: it tells run_rxe.sh that the script reached its end. Host 0
# requests the actions that only run_rxe.sh can do: "please pull" and "please plug" a
# cable of host 0, "please kill" host 1.
#
# Both guests are emulated side by side, on a machine that may be busy: limits of time
# are many times the usual duration. A rank must report a death within 2 s, and other
# faults within 5 s: see `allowed`.
# shellcheck disable=SC2317 # functions are called indirectly
set -u
here=$(dirname "$0")
# shellcheck source=tests/rxe/rxelib.sh
. "$here/rxelib.sh"
long=
[ "${1-}" != --long ] || { long=yes && shift; }
direct "$1" /tmp/direct perf/trib-perf tools/trib-info
port=7000
transport=verbs

# Host 1: run a shell for each connection, until the guest is turned off.
serve() {
    exec timeout 1500 busybox nc -ll -p 9000 -e /bin/bash
}

# remote COMMANDS - run commands on the other host and print their output.
remote() {
    # shellcheck disable=SC2016 # the inner shell expands them
    timeout 60 bash -c 'exec {line}<>"/dev/tcp/$1/9000" && printf "%s\nexit\n" "$2" >&"$line" &&
        cat <&"$line"' remote "$RXE_PEER" "$1"
}

peer_serves() {
    [ "$(remote 'echo here' 2>/dev/null)" = here ]
}

# begin STOP_MS COMMAND... - start a rank on each host; set own to the local process.
begin() {
    local job text stop_ms=$1
    shift

    port=$((port + 1))
    job=(env "TRIB_TRANSPORT=$transport" TRIB_SIZE=2 "TRIB_ROOT=$RXE_ADDRESS:$port"
        TRIB_BOOT_TIMEOUT_MS=100000 "TRIB_STOP_TIMEOUT_MS=$stop_ms" TRIB_TIMEOUT_MS=100000)
    printf -v text '%q ' "${job[@]}" TRIB_RANK=1 "$@"
    remote "rm -f /tmp/status
        { (echo \$BASHPID >/tmp/rank; exec $text); echo \$? >/tmp/status; } >/tmp/said 2>&1 </dev/null &
        disown" >/dev/null
    : >"$log.rank" # remove the previous output, which summing would read
    "${job[@]}" TRIB_RANK=0 "$@" >"$log.rank" 2>&1 &
    own=$!
}

# Wait for the local rank, and kill it after this many seconds; return its exit status,
# or 124.
own_status() { # SECONDS
    local end=$((SECONDS + $1)) status

    while kill -0 "$own" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do
        pause 0.05
    done
    if kill -9 "$own" 2>/dev/null; then
        echo "rank 0 has not ended after $1 s"
        wait "$own" 2>/dev/null
        status=124
    else
        wait "$own"
        status=$?
    fi
    cat "$log.rank"
    return "$status"
}

other_status() {
    local tries status

    for ((tries = 0; tries < 60; tries++)); do
        status=$(remote 'cat /tmp/status 2>/dev/null')
        [ -z "$status" ] || break
        sleep 1
    done
    [ "$status" = 0 ] || remote "sed 's/^/host 1: /' /tmp/said | tail -n 5"
    return "${status:-124}"
}

both_well() {
    local own_well=yes

    own_status 250 || own_well=
    other_status && [ -n "$own_well" ]
}

# all_reduce STOP_MS SIZES ITERATIONS [OPTION]...
all_reduce() {
    local stop_ms=$1 sizes=$2 iters=$3
    shift 3

    begin "$stop_ms" "$build/perf/trib-perf" allreduce --sizes "$sizes" --iters "$iters" \
        --warmup 1 --check "$@"
}

# The local rank names the lost rank 1 within this many seconds of `begin`.
named() { # SECONDS
    local status

    own_status "$1"
    status=$?
    since "$begin" "$EPOCHREALTIME" "$1" && [ "$status" != 0 ] &&
        [ "$status" != 124 ] && grep -q 'rank 1 (host rxe1' "$log.rank"
}

carrier_is() { # LINK 0|1
    [ "$(cat "/sys/class/net/$1/carrier")" = "$2" ]
}

# please DO [LINK] - request an action, and wait until it is done.
please() {
    echo "please $*" >&3
    case $1 in
    pull) for_seconds 30 carrier_is "$2" 0 ;;
    plug) for_seconds 30 carrier_is "$2" 1 ;;
    esac
}

# --- tests ------------------------------------------------------------------------

peer_listens() {
    remote "rdma resource show cm_id" | grep -q "state LISTEN"
}

pings() {
    remote "timeout 60 rping -s -a $RXE_PEER -C 10 >/dev/null 2>&1 </dev/null & disown" &&
        for_seconds 30 peer_listens &&
        timeout 60 rping -c -a "$RXE_PEER" -C 10
}

# shellcheck disable=SC2120 # check passes the options
sums() { # [OPTION]...
    all_reduce 8000 8,1000,64K 3 "$@" && both_well
}

# The default transport, without settings, is verbs in both directions.
chosen() {
    transport=auto begin 8000 "$build/tools/trib-info" --reach
    both_well && grep -q 'verbs: another host.* (0 to 1, and 1 more)' "$log.rank"
}

# packets WHAT - print how many RDMA packets from the other host WHAT has counted.
packets() {
    nft list chain inet trib in | sed -n "s/.*4791 $1counter packets \([0-9]*\) .*/\1/p"
}

# All but a few RDMA packets of a sum, such as the first messages of the connection manager, have
# DSCP AF31, which is class 104 to 107.
in_class() {
    local all right

    nft -f - <<NFT || return
        table inet trib {
            chain in {
                type filter hook prerouting priority 0
                udp dport 4791 ip dscp af31 counter
                udp dport 4791 counter
            }
        }
NFT
    # shellcheck disable=SC2119
    sums
    local status=$?
    right=$(packets 'ip dscp af31 ') all=$(packets '')
    nft delete table inet trib
    echo "figure: $right of $all RDMA packets have DSCP AF31"
    [ "$status" = 0 ] && [ "${right:-0}" -gt 50 ] && [ "$right" -gt $((all - all / 20 - 8)) ]
}

# The default class of both hosts.
with_default_class() { # COMMAND...
    # shellcheck disable=SC2016 # both hosts expand it
    local set='d=/sys/kernel/config; mountpoint -q $d || mount -t configfs configfs $d
        mkdir -p $d/rdma_cm/rxe0 && echo 106 >$d/rdma_cm/rxe0/ports/1/default_roce_tos'
    local away='rmdir /sys/kernel/config/rdma_cm/rxe0' status

    eval "$set" && remote "$set" && "$@"
    status=$?
    eval "$away"
    remote "$away"
    return "$status"
}

flap() {
    all_reduce 20000 "$(many 12 8,64K)" 3
    summing || { cat "$log.rank" && return 1; }
    please pull eth0 && sleep 3 && please plug eth0 || return
    both_well
}

loss_and_delay() {
    local status

    tc qdisc add dev eth0 root netem loss 1% delay 5ms || return
    remote 'tc qdisc add dev eth0 root netem loss 1% delay 5ms' || return
    all_reduce 8000 8,64K,200K 5
    both_well
    status=$?
    tc -s qdisc show dev eth0
    tc -s qdisc show dev eth0 | grep -q 'dropped [1-9]' || echo "nothing was lost"
    tc qdisc del dev eth0 root
    remote 'tc qdisc del dev eth0 root'
    return "$status"
}

# Start a job that sums until a fault. Set most to the limit for reporting the loss, for
# which the library promises this many seconds.
sum_on() { # SECONDS
    all_reduce 4000 "$(many 500 8,64K)" 12
    summing || { cat "$log.rank" && return 1; }
    most=$(allowed "$1")
    begin=$EPOCHREALTIME
}

# Send a signal to the other host's rank; set begin to the time after it.
signal_rank() { # SIGNAL
    read -r _ < <(remote "kill -$1 \$(cat /tmp/rank) && echo sent")
    begin=$EPOCHREALTIME
}

death() {
    sum_on 2 || return
    signal_rank KILL
    named "$most" && grep -q 'rank 1 (host rxe1, process [0-9]*) is lost: process [0-9]* \(has died\|closed its connection\|has ended, or closed\)' \
        "$log.rank"
}

stop() {
    sum_on 5 || return
    signal_rank STOP
    named "$most"
    local status=$?
    signal_rank KILL
    return "$status"
}

link_lost() {
    sum_on 5 || return
    please pull eth0 || return
    named "$most"
    local status=$?
    please plug eth0 || return
    for_seconds 60 peer_serves || return
    ! other_status && [ "$status" = 0 ]
}

# --- two rails: each host has a second device with its own cable ------------------

second_devices() {
    local mtu

    mtu=$(cat /sys/class/net/eth0/mtu)
    "$here/device.sh" up rxe1 eth1 10.78.0.1 "$mtu" || return
    remote "$(printf %q "$(realpath "$here/device.sh")") up rxe1 eth1 10.78.0.2 $mtu 2>&1 &&
        echo well" | tee /dev/stderr | grep -qx well
}

# rails COMMAND... - run a command with second devices; return its exit status.
rails() {
    local away='rdma link delete rxe1; ip address flush dev eth1; ip link set eth1 down' status

    second_devices && "$@"
    status=$?
    eval "$away"
    remote "$away"
    return "$status"
}

sent() { # LINK
    cat "/sys/class/net/$1/statistics/tx_bytes"
}

# Both rails carry the job. One cable is pulled meanwhile: a warning reports it, and the
# sums continue and are right. The rail stays lost when the cable is back.
one_cut() {
    local before0 before1 sent0 sent1 lost='verbs rxe1 no longer reaches rank 1 .*: 1 of 2 rails'

    before0=$(sent eth0) before1=$(sent eth1)
    all_reduce 8000 "$(many 4 8,64K)" 6
    summing || { cat "$log.rank" && return 1; }
    sent0=$(($(sent eth0) - before0)) sent1=$(($(sent eth1) - before1))
    echo "figure: $sent0 bytes over eth0, $sent1 over eth1"
    if ! please pull eth1 || ! for_seconds 60 grep -q "$lost" "$log.rank" || ! please plug eth1; then
        cat "$log.rank"
        return 1
    fi
    both_well && [ "$(grep -c 'no longer reaches' "$log.rank")" = 1 ] &&
        [ "$sent0" -gt 50000 ] && [ "$sent1" -gt 50000 ]
}

both_cut() {
    sum_on 5 || return
    please pull eth1 && please pull eth0 || return
    named "$most"
    local status=$?
    please plug eth1 && please plug eth0 || return
    for_seconds 60 peer_serves || return
    ! other_status && [ "$status" = 0 ]
}

# The time is more than half of the stop time-out, and far below the whole: on a busy
# machine run_rxe.sh plugs a cable seconds after the request.
both_flap() {
    all_reduce 24000 "$(many 12 8,64K)" 3
    summing || { cat "$log.rank" && return 1; }
    please pull eth1 && please pull eth0 && sleep 13 && please plug eth1 &&
        please plug eth0 || return
    both_well && ! grep 'no longer reaches' "$log.rank"
}

host_lost() {
    sum_on 5 || return
    please kill
    named "$most"
}

[ "$RXE_HOST" = 0 ] || serve
exec 3>&1 # for requests
check "two hosts: each answers" for_seconds 100 peer_serves
check "two hosts: ten pings over RDMA" pings
check "two hosts: verbs is chosen, both ways" chosen
check "two hosts: sums over verbs" sums
if [ -n "$long" ]; then
    transport=verbs:connect=gid check "two hosts: default traffic class, gid" with_default_class in_class
    transport=verbs:connect=rdmacm check "two hosts: default traffic class, rdmacm" with_default_class in_class
    for way in rdmacm gid; do
        transport=verbs:connect=$way,traffic_class=106 check "two hosts: traffic class, $way" in_class
    done
    for codec in bf16 qsgd:bits=8 topk:ratio=0.25; do
        check "two hosts: sums over verbs, $codec" sums --codec "$codec"
    done
    for dtype in f64 f16 i8 i64; do
        check "two hosts: sums over verbs, $dtype" sums --dtype "$dtype"
    done
fi
if [ -n "$long" ]; then
    check "two hosts: 1 % loss and 5 ms delay: right sums" loss_and_delay
    check "two hosts: the link is down for 3 s: right sums" flap
    check "two hosts, two rails: one cable is pulled: right sums" rails one_cut
    check "two hosts, two rails: both are pulled: the loss is named" rails both_cut
    check "two hosts, two rails: both are down for 13 s: right sums" rails both_flap
    check "two hosts: a rank is killed: it is named" death
fi
check "two hosts: a rank is stopped: it is named" stop
if [ -n "$long" ]; then
    check "two hosts: the link is down for good: the loss is named" link_lost
    check "two hosts: sums after all this" sums
fi
check "two hosts: the other host is gone: the loss is named" host_lost
rm -rf "$log" "$log".* "$build"
echo "the end"
please kill # host 1 would wait for more commands
exit "$2"
