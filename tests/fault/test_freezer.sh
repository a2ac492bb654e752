#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The ranks expand these scripts; functions are called indirectly.
# shellcheck disable=SC2016,SC2317
# A rank that the freezer of its control group stops is lost like a stopped rank.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
run=$build/tools/trib-run
perf=$build/perf/trib-perf
group=

thaw() {
    [ -n "$group" ] || return 0
    echo THAWED 2>/dev/null >"$group/freezer.state"
    echo 0 2>/dev/null >"$group/cgroup.freeze"
}

at_exit() {
    thaw 2>/dev/null
    [ -z "$group" ] || within 10 rmdir "$group" 2>/dev/null
}

# FOLDER, FILE: create a control group for the test, if possible
make_group() {
    mkdir "$1/trib-test-$$" 2>/dev/null || return 1
    group=$1/trib-test-$$
    [ -w "$group/$2" ] || { rmdir "$group"; group=; return 1; }
}

# NAME, FILE, TEXT, TRANSPORT: freeze rank 1 by writing TEXT to that file of the group
freeze() {
    local name=$1 file=$2 text=$3 start
    rm -f "$dir"/pid.*
    : >"$said" # otherwise the header of the previous job would be taken for this one's
    TRIB_TRANSPORT=$4 TRIB_STOP_TIMEOUT_MS=2000 timeout $((90 * slow)) "$run" -n 2 -- \
        sh -c 'echo $$ >"$0.$TRIB_RANK"; exec "$@"' "$dir/pid" "$perf" allreduce \
        --sizes 8 --iters 1000000000 >"$said" 2>&1 &
    local job=$!
    within 30 grep -q "algbw" "$said"
    cat "$dir/pid.1" >"$group/cgroup.procs"
    start=$SECONDS
    echo "$text" >"$group/$file"
    within 20 grep -q "has been stopped for" "$said" && [ $((SECONDS - start)) -lt $((15 * slow)) ]
    result $? "$name"
    thaw 2>/dev/null
    kill $job 2>/dev/null
    wait $job
    within 10 rmdir "$group" && group=
}

for transport in shm tcp; do
    name="$transport: frozen by control groups version 1"
    if make_group /sys/fs/cgroup/freezer freezer.state; then
        freeze "$name" freezer.state FROZEN $transport
    else
        skip "$name" "no group can be made"
    fi
    name="$transport: frozen by control groups version 2"
    if make_group /sys/fs/cgroup cgroup.freeze ||
        make_group /sys/fs/cgroup/unified cgroup.freeze; then
        freeze "$name" cgroup.freeze 1 $transport
    else
        skip "$name" "no group can be made"
    fi
done
finish
