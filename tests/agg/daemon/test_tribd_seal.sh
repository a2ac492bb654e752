#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ranks and a tribd over sealed tcp (TRIB_SEAL); the service needs no setting for it.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
export TRIB_STOP_TIMEOUT_MS=20000 # no rank on a busy machine counts as stopped
export TRIB_TRANSPORT=tcp TRIB_SEAL=1
sums=(allreduce -n 3 --check --iters 10 --warmup 2)

TRIB_LOG=info start_daemon one "log = info" || finish
start_daemon two || finish

for codec in none int8 topk:ratio=0.05; do
    for daemons in "one" "one two"; do
        service "$daemons" expect "$codec, by $daemons" 0 "codec $codec" "$perf" "${sums[@]}" --codec "$codec" \
            --sizes 8,4K,300004
        ! grep -q "warning" "$said"
        result $? "$codec, by $daemons: no word of trouble"
    done
done
shown=("$said" "$dir/one.log")
said_by one "encrypts its traffic with"
result $? "the service encrypts its traffic"
jobs=$(grep -c "ranks, " "$dir/one.log")
[ "$jobs" = 6 ]
result $? "the service has had all jobs (it says $jobs)"

# A service whose transport cannot encrypt is excluded from such a job.
if ! "$build/tools/trib-info" --transports | grep -q "^  ucx  *UCX [0-9]"; then
    skip "a service over ucx" "this build or host is without it"
else
    TRIB_TRANSPORT=ucx TRIB_SEAL=0 start_daemon other || finish
    service "other" expect "a service over ucx" 0 "ucx cannot encrypt its traffic" "$perf" "${sums[@]}" --sizes 4K
fi

# Without authentication, the key of the records would be sent unencrypted.
start_daemon open || finish
kill "${daemon_pid[open]}"
wait "${daemon_pid[open]}"
sed -i -e 's/^auth = .*/auth = none/' "$dir/open.conf"
again open
result $? "a service without proofs"
TRIB_SERVICE=127.0.0.1:${daemon_port[open]} TRIB_SERVICE_AUTH=none \
    expect "it does not get the key" 0 "with auth none the key of TRIB_SEAL=1 would be sent to tribd unencrypted" \
    "$perf" "${sums[@]}" --sizes 4K
TRIB_SEAL=0 TRIB_SERVICE=127.0.0.1:${daemon_port[open]} TRIB_SERVICE_AUTH=none \
    expect "without seals it sums" 0 "allreduce" "$perf" "${sums[@]}" --sizes 4K
! grep -q "warning.*clear" "$said"
result $? "without seals it sums, and logs nothing about keys"
finish
