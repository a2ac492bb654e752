#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sums of processes over RDMA devices in shared memory: rails, rates, a rank that dies.
# shellcheck disable=SC2317 # at_exit is called at the end
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/fabric/fabric.sh
. "${abs_top_srcdir:-.}/tests/fabric/fabric.sh"
! why=$(fabric_refused) || skip_all "$why"
at_exit() { fabric_close; }
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
export TRIB_TRANSPORT=verbs
perf=$build/perf/trib-perf

right() { # NAME, RANKS
    expect "$1" 0 "" "$fabric/run" "$2" "$perf" allreduce --check --sizes 8,64K,1M --iters 5
    [ "$(fabric_misuses)" = 0 ]
    result $? "$1: no device is misused"
}

for devices in 1 2 4; do
    fabric_open hosts=4 devices=$devices || exit 1
    right "four hosts with $devices devices each" 4
done

fabric_open hosts=3 devices=8 || exit 1
TRIB_TRANSPORT=verbs:rails=8 right "three hosts with 8 rails" 3
[ "$(fabric_show | grep -c '^qp .*: host 0 device 7 port 1 to host 1 device 7 port 1 ')" -ge 1 ]
result $? "the eighth rail is connected"

# Frames and credits of the smallest window go over rails that are late by different times.
fabric_open hosts=3 devices=8 virtual_time=1 loss_ppm=500 reorder_us=50 port=1 device=0 delay_us=100 device=1 delay_us=9000 \
    device=2 delay_us=5 device=3 delay_us=700 device=4 delay_us=3000 device=6 delay_us=90 device=7 delay_us=5000 || exit 1
TRIB_TRANSPORT=verbs:rails=8,depth=16,receives=64 TRIB_WINDOW=1 TRIB_CHUNK=4K right "8 rails of unequal delay, window 1" 3

fabric_open hosts=2 devices=2 ports=2 device=1 name=mlx5_1 numa_node=1 host=1 port=2 pkeys=0xffff,0x8001 || exit 1
right "two devices of two ports" 2
fabric_show >"$said"
grep -q '^qp .*: host 0 device 1 port 2 to host 1 device 1 port 2 .* pkey 0xffff .* path_mtu 4096 .* retry_cnt 7' "$said"
result $? "queue pairs are shown with their attributes"
# shellcheck disable=SC2016 # the rank expands it
expect "the ranks see their devices in /sys" 0 "mlx5_1 1 0x8001" "$fabric/run" 2 bash -c '
    of=/sys/class/infiniband/mlx5_1
    read -r node <$of/device/numa_node && read -r key <$of/ports/2/pkeys/1
    [ "$TRIB_RANK" = 0 ] || echo mlx5_1 "$node" "$key"'

fabric_open hosts=2 no_connection_manager=1 || exit 1
right "without librdmacm's kernel module" 2

fabric_open hosts=4 devices=2 srq_errno=95 max_qp_wr=64 || exit 1
right "without shared receive queues" 4

# Nine ranks send to each: four budgets hold less than their windows, so long frames ask for grants.
fabric_open hosts=10 || exit 1
TRIB_IN_FLIGHT=64K TRIB_ALGORITHM=direct right "ten hosts that send to each other" 10

# Chunks of 256K over a network: two threads of a rank with two cores share their sums and copies.
fabric_open hosts=2 || exit 1
threads=0
[ "$(nproc)" -lt 2 ] || threads="1 share sums and copies"
TRIB_ENCODE_THREADS=1 expect "two hosts with a worker each" 0 "threads    $threads" "$fabric/run" 2 \
    taskset 0xffff "$perf" allreduce --check --call plan --explain --sizes 4M --iters 3

# Each rank sends 1 MiB in all: no sum can take less than 10 ms.
fabric_open hosts=2 rate=100000000 delay_us=100 || exit 1
expect "links of 100 MB/s" 0 "" "$fabric/run" 2 "$perf" allreduce --check --sizes 1M --iters 5 --csv -
awk -F, '$1 ~ /allreduce$/ { least = $12 } END { exit !(least > 10000) }' "$said"
result $? "links of 100 MB/s: no sum takes less than 10 ms"

fabric_open hosts=3 devices=2 virtual_time=1 rate=1000000000 delay_us=20000 loss_ppm=2000 reorder_us=5000 || exit 1
right "late and lossy links in virtual time" 3
fabric_show >"$said"
grep -q 'local_ack_timeout_err [1-9]' "$said" && grep -q 'out_of_sequence [1-9]' "$said"
result $? "lost packets are counted"

# while_running NAME, WORDS, SETTING... - change the fabric when two ranks have sent 300 requests each.
while_running() {
    local name=$1 words=$2
    shift 2
    { within 60 has_begun && fabric_set "$@"; } &
    TRIB_STOP_TIMEOUT_MS=1000 expect "$name" 0 "$words" \
        "$fabric/run" 2 "$perf" allreduce --check --sizes 64K --iters 600
    wait $!
    result $? "$name: during the sums"
}
has_begun() {
    fabric_show | grep -q 'host 1 device 1 .* [0-9]\{3,\} requests'
}
fabric_open hosts=2 devices=2 down_fails=1 || exit 1
while_running "a port goes down: the other rail remains" "port 1 of fake1 is down" host=1 device=1 link=down
fabric_open hosts=2 devices=2 || exit 1
while_running "an address is removed and comes back" "" host=0 device=1 gid=3: gid=3:10.9.1.1
fabric_open hosts=2 devices=2 || exit 1
while_running "a device fails: the other rail remains" "fake1" host=1 device=1 fatal=1

# The only connection of a host with one port and one with two.
for way in rdmacm gid; do
    fabric_open hosts=2 devices=2 down_fails=1 || exit 1
    { within 60 has_begun && fabric_set host=1 device=1 link=down && sleep 0.3 &&
        fabric_set host=1 device=1 link=up; } &
    # shellcheck disable=SC2016 # the rank expands it
    expect "one port and two, by $way: its port goes down and comes back" 0 "again" "$fabric/run" 2 sh -c '
        export TRIB_TRANSPORT="verbs:connect=$0,ack_timeout=12,retry_count=1"
        [ "$TRIB_RANK" = 0 ] || TRIB_TRANSPORT="$TRIB_TRANSPORT,device=fake1"
        exec "$@"' "$way" "$perf" allreduce --check --sizes 64K --iters 600
    wait $!
    result $? "one port and two, by $way: during the sums"
done

fabric_open hosts=3 devices=2 retry_us=500000 || exit 1
# shellcheck disable=SC2016 # the rank expands it
expect "a rank dies: the others name it" any "is lost" "$fabric/run" 3 sh -c '
    [ "$TRIB_RANK" != 1 ] || (until "$1" show "$2" | grep -q "host 1 .* [0-9]\{4,\} requests"; do
        sleep 0.2
    done; kill -9 $$) &
    shift 2
    exec "$@"' sh "$build/tests/fabric/fabric" "$fabric/hub" "$perf" allreduce --check --sizes 64K --iters 1000000
# The speed of ports decides between algorithms: 2 ports of 100 Gbit/s, and one of 2.5.
TRIB_TRANSPORT=auto:ranks_per_host=1 expect "ports of 200 Gbit/s" 0 "ports of 200 Gbit/s" \
    "$fabric/run" 2 "$perf" allreduce --call plan --explain --sizes 64K --iters 5
fabric_open hosts=2 devices=2 device=1 active_speed=1 active_width=1 || exit 1
TRIB_TRANSPORT=auto:ranks_per_host=1,device=fake1 expect "a port of 2.5 Gbit/s" 0 "ports of 2.5 Gbit/s" \
    "$fabric/run" 2 "$perf" allreduce --call plan --explain --sizes 64K --iters 5
# A port of 10 Gbit/s next to one of 100.
fabric_open hosts=2 devices=2 device=1 active_speed=4 active_width=1 || exit 1
right "a port of a tenth of the speed" 2
fabric_show | grep -q "host 0 device 1 port 1: 0 requests"
result $? "a port of a tenth of the speed: it carries nothing"
TRIB_TRANSPORT=auto:ranks_per_host=1,device=fake1 expect "a device chosen under auto" 0 "" \
    "$fabric/run" 2 "$perf" allreduce --check --sizes 64K --iters 5
! fabric_show | grep -q "host 0 device 1 port 1: 0 requests"
result $? "a device chosen under auto: it carries the data"
finish
