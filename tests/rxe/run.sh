#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh BUILD - the tests that need an RDMA device, where it is: on this machine if its
# kernel has soft-RoCE, else in a guest. The log is BUILD/rxe/tests/rxe.log, of the form
# that scripts/count-tests reads.
here=$(dirname "$0")
# shellcheck source=tests/harness/tap.sh
. "$here/../harness/tap.sh"
build=$1
folder=$build/rxe/tests
inside_status=37 # what inside.sh says when it has come to its end

# Prints the lines of inside.sh as they come.
run_inside() {
    "$bed" --timeout 900 -- bash "$here/inside.sh" "$build" "$inside_status"
    result $(($? != inside_status)) "the exit status of a command comes back"
}

hang() {
    local said status

    said=$("$bed" --timeout 12 -- sleep 1000 2>&1 >/dev/null)
    status=$?
    [ "$status" = 124 ] && [[ $said == *"time-out"* ]]
    result $? "a command that hangs is ended"
}

# Ranks are told apart by RXE_HOST, in the guests.
# shellcheck disable=SC2016
two_hosts() {
    "$here/guest" --hosts 2 --timeout 120 -- bash -c '
        if [ "$RXE_HOST" = 0 ]; then
            exec timeout 60 rping -s -a "$RXE_ADDRESS" -C 10
        fi
        for tries in 1 2 3 4 5 6 7 8 9 10; do # until the other listens
            timeout 20 rping -c -a "$RXE_PEER" -C 10 && exit 0
            sleep 1
        done
        exit 1' >"$said" 2>&1
    result $? "two hosts: ten pings over RDMA"
}

# Two ranks on two hosts sum over verbs; then one is killed, and the other names it.
# shellcheck disable=SC2016
two_hosts_verbs() {
    "$here/guest" --hosts 2 --timeout 300 -- bash -c '
        export TRIB_TRANSPORT=verbs TRIB_RANK=$RXE_HOST TRIB_SIZE=2
        export TRIB_ROOT=10.77.0.1:7000 TRIB_BOOT_TIMEOUT_MS=100000
        perf=$1/perf/trib-perf
        timeout 150 "$perf" allreduce --sizes 8,64K --iters 3 --check || exit 1
        export TRIB_ROOT=10.77.0.1:7001
        "$perf" allreduce --sizes 8 --iters 1000000 >/tmp/out 2>&1 &
        rank=$!
        if [ "$RXE_HOST" = 1 ]; then
            sleep 20 # by then they sum
            kill -9 $rank
            sleep 20 # the host lives on
            exit 0
        fi
        wait $rank && exit 1
        cat /tmp/out
        grep -q "rank 1 (host rxe1, process [0-9]*) is lost: process [0-9]* has died" \
            /tmp/out' bash "$build" >"$said" 2>&1
    result $? "two hosts: sums over verbs, and a death is named"
}

tests() {
    number=100 # after those of inside.sh
    run_inside
    hang
    if [ "$bed" = "$here/guest" ]; then
        two_hosts
        two_hosts_verbs
    fi
    return "$failed"
}

bed=$here/guest
! modprobe -n -q rdma_rxe 2>/dev/null || bed=$here/host
echo "== tests of RDMA, by $bed"
mkdir -p "$folder"
rm -f "$folder"/*.log "$folder"/*.trs
tests 2>&1 | tee "$folder/rxe.log"
if [ "${PIPESTATUS[0]}" = 0 ]; then
    echo ":global-test-result: PASS"
else
    echo ":global-test-result: FAIL"
fi >"$folder/rxe.trs"
"$here/../../scripts/count-tests" "$build/rxe"
