#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An RDMA device in software, on this machine:
#
#     device.sh pair LINK OTHER MTU            a pair of virtual network devices
#     device.sh up DEVICE LINK ADDRESS MTU     an address for LINK, and DEVICE on it
#
# An Ethernet frame must hold an RDMA packet's payload and headers: an MTU of 9000 gives
# an RDMA MTU of 4096, an MTU of 1500 one of 1024.
set -eu

pair() {
    ip link add "$1" mtu "$3" type veth peer name "$2" mtu "$3"
    ip link set "$2" up
}

up() {
    local tries

    modprobe -a rdma_rxe rdma_ucm
    # The device's first GID is a link-local address: skip the detection of duplicates.
    echo 0 >"/proc/sys/net/ipv6/conf/$2/accept_dad" || true
    ip address add "$3/24" dev "$2"
    ip link set "$2" mtu "$4" up
    rdma link add "$1" type rxe netdev "$2"
    for ((tries = 0; tries < 50; tries++)); do
        ! rdma link show "$1/1" | grep -q 'state ACTIVE' || return 0
        sleep 0.1
    done
    echo "$1 on $2 does not become active" >&2
    return 1
}

"$@"
