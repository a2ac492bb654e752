#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A tribd whose threads all make progress feeds the watchdog of systemd, and any other
# does not. systemd accepts the unit and its user, and the unit has few privileges.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
systemd=$build/tests/agg/daemon/fake_systemd
limit_s=4

"$systemd" hear "$dir/notify" >"$dir/heard" &
job_pid[systemd]=$!
within 10 test -S "$dir/notify"
export NOTIFY_SOCKET=$dir/notify WATCHDOG_USEC=${limit_s}000000
start_daemon one || finish
unset NOTIFY_SOCKET WATCHDOG_USEC
shown=("$dir/heard" "$dir/one.log")

# --- the unit ---

unit() { # systemd-analyze, at most 2.0 of 10
    sed -e "s|@bindir@|$build/agg/daemon|" -e "s|@sysconfdir@|$dir|" \
        "${abs_top_srcdir:-.}/agg/daemon/tribd.service.in" >"$dir/tribd.service"
    systemd-analyze security --offline=true --threshold=20 "$dir/tribd.service" >"$dir/unit.log" 2>&1
}
shown=("$dir/unit.log")
if systemd-analyze security --help 2>/dev/null | grep -q -- --offline; then
    unit
    result $? "the unit may little: $(sed -n 's/.*exposure level.*: \([0-9.]*\) .*/\1/p' "$dir/unit.log") of 10"
    systemd-analyze verify --man=no --recursive-errors=no "$dir/tribd.service" >"$dir/unit.log" 2>&1 &&
        [ ! -s "$dir/unit.log" ]
    result $? "and has no fault"
else
    skip "the unit may little" "no systemd-analyze that looks at a file"
fi
if command -v systemd-sysusers >/dev/null; then
    mkdir -p "$dir/tree/etc"
    systemd-sysusers --root="$dir/tree" "${abs_top_srcdir:-.}/agg/daemon/tribd.sysusers" >"$dir/unit.log" 2>&1
    grep -q "^tribd:.*:/:.*nologin" "$dir/tree/etc/passwd" && grep -q '^tribd:' "$dir/tree/etc/group"
    result $? "its user is made, who has nothing"
else
    skip "its user is made" "no systemd-sysusers"
fi

# --- the watchdog ---

fed() { grep -c 'WATCHDOG=1' "$dir/heard"; }
fed_often() { [ "$(fed)" -ge "$1" ]; }
heard() { grep -q "$1" "$dir/heard"; }

within 10 heard READY=1
result $? "it is ready"
within 30 fed_often 4
result $? "it feeds the watchdog while it has nothing to do"

start_steps job "one" 1
within 30 sums one job
within 30 fed_often $(($(fed) + 4))
result $? "and while it sums"

halted() { grep -q stopped "$dir/halt.log"; }
# THREADS: once they hang for half the limit, the watchdog is not fed until they
# continue
starves() {
    local before
    rm -f "$dir/go"
    : >"$dir/halt.log" # of the previous halt
    "$systemd" halt "${daemon_pid[one]}" "$1" "$dir/go" >"$dir/halt.log" 2>&1 &
    job_pid[halt]=$!
    within 10 halted || return 1
    sleep $((limit_s / 2 + 2))
    before=$(fed)
    sleep $limit_s
    [ "$(fed)" = "$before" ] || echo "# fed $(($(fed) - before)) times"
    [ "$(fed)" = "$before" ] && touch "$dir/go" && within 30 fed_often $((before + 2))
}
starves workers
good=$?
grep -q 'no thread could be stopped' "$dir/halt.log" && skip_all "threads cannot be stopped here"
[ $good = 0 ] && said_by one "a worker thread has been stuck"
result $? "not while a worker hangs, which it says; then again"
starves server
result $? "not while the thread hangs that speaks with jobs; then again"
end_steps job "a watchdog"

kill "${daemon_pid[one]}" && ended one 0 && heard STOPPING=1 && heard EXTEND_TIMEOUT_USEC=40000000
result $? "it ends, and asks for time to drain"
(umask 077; mkdir "$dir/snaps")
NOTIFY_SOCKET=$dir/notify start_daemon keeps "snapshots = $dir/snaps" "drain_ms = 200" || finish
run_store() {
    TRIB_SERVICE_JOB=store TRIB_TRANSPORT=shm "$build/tools/trib-run" -n 2 -- "$build/tests/agg/daemon/pushes" \
        "$dir/never" 10000 >"$dir/store.log" 2>&1 </dev/null &
    job_pid[store]=$!
}
service "keeps" run_store
within 30 status_of keeps '.jobs[] | select(.name == "store/store" and .pushes > 20)'
kill "${daemon_pid[keeps]}"
ended keeps 0 && heard EXTEND_TIMEOUT_USEC=30000000 && [ "$(find "$dir/snaps" -name '*.snapshot' | wc -l)" = 6 ]
result $? "it asks for more time while it writes the last snapshots of a store"
start_daemon moved "snapshots = $dir/snaps" "drain_ms = 200" "disk_ms = 3000" || finish
service "moved" run_store
within 30 status_of moved '.jobs[] | select(.name == "store/store" and .pushes > 20)'
mv "$dir/snaps" "$dir/away"
kill "${daemon_pid[moved]}"
ended moved 3 && said_by moved "its last snapshots failed" && ! said_by moved "exiting although"
result $? "it exits with an error if it cannot write them, and does not say that the disk hangs"
grep -q '^RestartPreventExitStatus=.*\<3\>' "${abs_top_srcdir:-.}/agg/daemon/tribd.service.in"
result $? "then systemd does not start it again after tribctl drain"
mv "$dir/away" "$dir/snaps"
NOTIFY_SOCKET=$dir/notify start_daemon hung "snapshots = $dir/snaps" "drain_ms = 200" "disk_ms = 3000" || finish
service "hung" run_store
within 30 status_of hung '.jobs[] | select(.name == "store/store" and .pushes > 20)'
read -ra ranks <"/proc/${job_pid[store]}/task/${job_pid[store]}/children"
kill -STOP "${ranks[@]}" # tribd's threads then hold no lock
sleep 1
rm -f "$dir/go"
"$systemd" halt "${daemon_pid[hung]}" workers "$dir/go" >"$dir/halt.log" 2>&1 &
job_pid[halt]=$!
within 10 halted && kill "${daemon_pid[hung]}"
ended hung 3 && said_by hung "cannot stop yet: 1 store waits" && said_by hung "exiting although" &&
    said_by hung "the last snapshots of 1 store are lost"
result $? "it exits without the last snapshots if the disk hangs, and says so"
touch "$dir/go"
kill -KILL "${ranks[@]}"
WATCHDOG_PID=1 WATCHDOG_USEC=1000000 NOTIFY_SOCKET=$dir/notify start_daemon two || finish
before=$(fed)
sleep 2
[ "$(fed)" = "$before" ]
result $? "one whom systemd does not mean does not feed it"
finish
