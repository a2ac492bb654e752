#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Stores at a tribd: shown in the status, limited by quotas, kicked, drained, kept for a
# rank that returns, and spread over several tribds.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
if missing curl "stores" || missing jq "stores"; then
    finish
fi
export TRIB_STOP_TIMEOUT_MS=20000 TRIB_TRANSPORT=shm TRIB_CHUNK=4K TRIB_WINDOW=4

# NAME, "DAEMON …", arguments of pushes: start ranks that push and pull until
# $dir/NAME.stop exists
start_store() {
    rm -f "$dir/$1.stop"
    : >"$dir/$1.log"
    service "$2" run_store "$1" "${@:3}"
}
run_store() {
    TRIB_SERVICE_JOB=$1 "$build/tools/trib-run" -n "${ranks:-2}" -- "$build/tests/agg/daemon/pushes" "$dir/$1.stop" "${@:2}" \
        >"$dir/$1.log" 2>&1 </dev/null &
    job_pid[$1]=$!
}
end_store() {
    touch "$dir/$1.stop"
    shown=("$dir/$1.log")
    patience=60 ended "$1" 0 && grep -q "pushes, all right" "$dir/$1.log"
    result $? "$2: every push is there once"
}
pushes_at() { # DAEMON, JOB
    status_of "$1" ".jobs[] | select(.name == \"$2/store\" and .pushes > 20 and .pulls > 20 and .vectors > 0)" ||
        ! kill -0 "${job_pid[$2]}" 2>/dev/null
}

start_daemon one "socket = $dir/one.socket" || finish
start_store first one
within 30 pushes_at one first
result $? "tribd shows its store"
holds() {
    status_of one '.jobs[] | select(.name == "first/store") | .bytes > 900000 and .received_bytes > 0 and .sent_bytes > 0'
}
within 10 holds
result $? "with its memory and its traffic"
"$build/agg/daemon/tribctl" --config "$dir/one.conf" jobs >"$said" 2>&1
grep -q "first/store .* store: .* vectors, .* pushes, .* pulls" "$said"
result $? "tribctl shows it"
curl -sf "http://127.0.0.1:${daemon_http[one]}/metrics" >"$said"
grep -q 'tribd_job_pushes_total{id="[0-9]*",name="first/store",user="key"} [1-9]' "$said"
result $? "Prometheus shows it"
end_store first "beside a job's sums"
within 10 is_empty one
result $? "it is gone with its ranks"

start_store kicked one
within 30 pushes_at one kicked
"$build/agg/daemon/tribctl" --config "$dir/one.conf" kick kicked/store "no more" >"$said" 2>&1
grep -q "ended store kicked/store; its vectors are deleted" "$said"
result $? "tribctl kick ends a store"
within 20 says kicked "no more" 1
patience=60 ended kicked 1
result $? "its ranks receive the reason"

start_daemon small "job_memory = 1" || finish
start_store large small 1000000
patience=60 ended large 1
shown=("$dir/large.log")
grep -q "more than the job, its user or the service has left" "$dir/large.log"
result $? "job_memory: a vector beyond it is refused"

# A tribd with few open files, of which a store may use a part.
start_daemon few || finish
if prlimit --pid "${daemon_pid[few]}" --nofile=72 2>/dev/null; then
    ranks=10 start_store crowd few
    patience=60 ended crowd 1
    shown=("$dir/crowd.log")
    grep -q "a store may have 9 connections here, but has 10 ranks" "$dir/crowd.log"
    result $? "a store of more ranks than its share of open files is refused"
    start_store modest few
    within 30 pushes_at few modest
    end_store modest "beside it"
else
    skip "a store of more ranks than its share of open files is refused" "no prlimit"
fi

start_daemon two || finish
start_store both "one two"
within 30 pushes_at one both && within 30 pushes_at two both
result $? "vectors lie in both of two tribds"
end_store both "at two tribds"

start_store drained two
within 30 pushes_at two drained
kill -TERM "${daemon_pid[two]}"
within 20 says drained "will exit, and its vectors will be lost" 2
result $? "a tribd that ends says so to the ranks"
end_store drained "while it drains"
ended two 0
result $? "it ends when they have left"
finish
