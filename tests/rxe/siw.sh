#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# siw.sh BUILD MODULE STATUS - run_rxe.sh runs this in a guest. It replaces the guest's
# soft-RoCE device with an iWARP device, which cannot write with an immediate: verbs must
# refuse it, and auto must use TCP and say why. The exit status is STATUS even if tests
# fail: it tells run_rxe.sh that the script reached its end.
# shellcheck disable=SC2317 # functions are called indirectly
set -u
here=$(dirname "$0")
# shellcheck source=tests/rxe/rxelib.sh
. "$here/rxelib.sh"
direct "$1" "$(mktemp -d)" perf/trib-perf tools/trib-info tools/trib-run
kind='is an iWARP device, which cannot write with an immediate'

device() {
    rdma link delete "$RXE_DEVICE" && modprobe -a iw_cm libcrc32c rdma_ucm && insmod "$1" &&
        rdma link add siw0 type siw netdev v0 && ibv_devinfo -d siw0 | grep iWARP
}

sums() { # TRANSPORT
    TRIB_TRANSPORT=$1 "$build/tools/trib-run" -n 2 --timeout 200 -- "$build/perf/trib-perf" \
        allreduce --sizes 8,1000,64K,1M --iters 3 --warmup 1 --check
}

by_tcp() {
    sums auto:ranks_per_host=1 && grep -q "tcp is used .* instead of verbs: .*siw0 $kind" "$log"
}

refused() { # TRANSPORT
    ! sums "$1" && grep -q "siw0 $kind" "$log"
}

doctor() {
    "$build/tools/trib-info" doctor
    grep -q "^warn  rdma: siw0 $kind" "$log" && ! grep -q '^\(warn\|FAIL\)  rdma: siw0 port' "$log"
}

check "an iWARP device is there" device "$2"
check "auto uses TCP and says why" by_tcp
check "auto between ranks of one host" sums auto
check "verbs refuses it" refused verbs
check "verbs refuses it, connections by GIDs" refused verbs:connect=gid
check "the doctor names the kind, and nothing that only RoCE needs" doctor
rm -rf "$log" "$build"
exit "$3"
