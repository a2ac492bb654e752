#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A tribd sums for ranks on other hosts: two ranks of a host sum first, so their host
# sends and receives each element once.
# shellcheck disable=SC2317 # at_exit is called through a trap
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/netns/net.sh
. "${abs_top_srcdir:-.}/tests/netns/net.sh"
perf=$build/perf/trib-perf
! why=$(net_refused) || skip_all "$why"
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
at_exit() { net_close; }
net_open 3 1500 4 || exit 1
net_job_ranks=2
(umask 077 && head -c 32 /dev/urandom >"$net_dir/key")

tribd_up() { grep -qs "listening at" "$net_dir/tribd.log"; }

# Start a tribd on host 2.
net_on 2 env "TRIBD_LISTEN=$(net_address 2):4700" TRIBD_HTTP=127.0.0.1:4701 TRIBD_AUTH=key \
    TRIBD_KEY="$net_dir/key" "$build/agg/daemon/tribd" >"$net_dir/tribd.log" 2>&1 </dev/null &
daemon=$!
for ((i = 0; i < 1000; i++)); do
    tribd_up || ! kill -0 "$daemon" 2>/dev/null || net_pause
done
tribd_up
result $? "tribd listens"
export TRIB_SERVICE_KEY=$net_dir/key TRIB_SERVICE="host2:4700" TRIB_TIMEOUT_MS=60000

received() { # print tribd's received bytes
    net_on 2 curl -s http://127.0.0.1:4701/metrics | awk '$1 == "tribd_received_bytes_total" { print $2 }'
}

# HOSTS, STARTS: print what tribd received in a job that sums 1 MiB that often, and as often
# as its setup takes.
sum() {
    local last before
    net_job_hosts=$1
    last=$(($1 * net_job_ranks - 1))
    before=$(received)
    net_job "$perf" allreduce --check --sizes 1M --iters "$2" --warmup 0
    # shellcheck disable=SC2046 # they are numbers
    net_ended 60 $(seq 0 "$last") || return 1
    for ((i = 0; i <= last; i++)); do [ "$(net_status "$i")" = 0 ] || return 1; done
    cp "$net_dir/rank0.out" "$said"
    ! grep -q "without aggregators" "$said" || return 1
    echo $(($(received) - before))
}

# HOSTS, VECTORS, NAME: tribd receives so many vectors in a start. The number of sums in the
# setup may differ a little.
receives() {
    local few many vectors
    few=$(sum "$1" 20) && many=$(sum "$1" 100)
    result $? "$3: all sum"
    vectors=$(((many - few) * 1000 / 80 / 1048576))
    [ "$vectors" -gt $(($2 * 900)) ] && [ "$vectors" -lt $(($2 * 1100)) ]
    result $? "$3: tribd receives $2 vectors a start ($vectors thousandths)"
}

receives 2 2 "two hosts of two ranks"
receives 3 4 "two hosts, and tribd's own, whose ranks reach it directly"
finish
