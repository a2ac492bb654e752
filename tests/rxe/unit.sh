#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# unit.sh ROOT BUILD STATUS - run_rxe.sh runs this on a machine whose process 1 is
# systemd. It tests the statements of docs/deploy.md about tribd, with the files that
# `make install DESTDIR=ROOT` has installed. The exit status is STATUS even if tests
# fail: it tells run_rxe.sh that the script reached its end.
# shellcheck disable=SC2317,SC2016 # called indirectly; other shells expand
set -u
here=$(dirname "$0")
# shellcheck source=tests/rxe/rxelib.sh
. "$here/rxelib.sh"
root=$1 build=$2
long=120 # seconds, enough for a quick action on an emulated machine
unset "${!TRIB_@}" "${!TRIBD_@}" "${!TRIBTEST_@}"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_PAGER='' SYSTEMD_COLORS=0
folder=$(mktemp -d) && chmod 755 "$folder" && cd "$folder" || exit 1
trap 'stop_steps' EXIT

soon() { # COMMAND...: wait until it succeeds
    for_seconds "$long" "$@"
}

# of PROPERTY: print its value
of() {
    systemctl show --property "$1" --value tribd
}

is() { # PROPERTY VALUE
    [ "$(of "$1")" = "$2" ]
}

journal() { # WORDS, option of journalctl...: it has WORDS since the last `forget`
    local words=$1

    shift
    journalctl -u tribd --since "$since" -o cat "$@" | grep -qF -- "$words"
}

forget() { # ignore the present entries of the journal
    sleep 1 # the journal is searched in whole seconds
    since=$(date '+%F %T')
}

settings() { # LINE...
    printf '%s\n' 'listen = *:4700' 'socket = /run/tribd/socket' 'drain_ms = 5000' "$@" \
        >/etc/tribd.conf
}

drop_in() { # LINE...: write a drop-in as systemctl edit does; without lines, remove it
    local to=/etc/systemd/system/tribd.service.d

    rm -rf "$to"
    if [ $# -gt 0 ]; then
        mkdir "$to"
        printf '%s\n' '[Service]' "$@" >"$to/override.conf"
    fi
    systemctl daemon-reload
}

# perf ARGUMENT...: run a job as in docs/deploy.md; no rank may print a warning
perf() {
    TRIB_SERVICE_JOB=train-7 timeout 120 "$@" trib-run -n 2 -- trib-perf allreduce --check \
        --sizes 64K >perf.said 2>&1
}

summed() { # by the service, without a warning
    cat perf.said
    ! grep -i 'warning' perf.said && awk '/^\[0\] +64 KiB/ { n++; if ($NF != 0) bad = 1 }
        END { exit bad || n != 1 }' perf.said
}

operations() {
    tribctl status | sed -n 's/.* sent, \([0-9]*\) operations$/\1/p'
}

# Start a job that repeats steps and checks each of them, until the file `stop` exists.
start_steps() { # variables=values...
    stop_steps >/dev/null # of a failed test
    rm -f stop
    env TRIB_SERVICE_JOB=steps TRIB_SERVICE_RETRY_MS=300 "$@" trib-run -n 2 -- \
        "$build/tests/agg/daemon/steps" "$folder/stop" 5 >steps.said 2>&1 &
    own=$!
    soon steps_there || {
        cat steps.said
        return 1
    }
}

stop_steps() { # all of its steps must be right
    local status

    [ -n "$own" ] || return 0
    touch stop
    timeout "$long" tail -s 0.1 --pid="$own" -f /dev/null || kill "$own"
    wait "$own"
    status=$?
    own=
    cat steps.said
    [ "$status" = 0 ] && grep -q 'steps, all right' steps.said
}

steps_there() { # the service sums for the job
    tribctl jobs | awk '$2 == "steps" && $4 == "admitted" && $7 > 10 { n++ } END { exit n != 1 }'
}

# Installing and starting ------------------------------------------------------------------

installs() {
    cp -dR --preserve=mode "$root/." / && ldconfig && tribd --version && systemd-sysusers &&
        id tribd
}

verifies() {
    local said options=(--recursive-errors=no)

    command -v man >/dev/null || options+=(--man=no)
    said=$(systemd-analyze verify "${options[@]}" /usr/lib/systemd/system/tribd.service 2>&1) ||
        said+=" exit status $?"
    echo "$said"
    [ -z "$said" ]
}

starts() {
    (umask 077; head -c 32 /dev/urandom >tributary.key)
    settings 'key = /etc/tributary.key'
    install -m 600 -o tribd -g tribd tributary.key /etc/tributary.key
    setpriv --reuid=tribd --regid=tribd --clear-groups tribd --config /etc/tribd.conf \
        --check-config || return
    systemctl daemon-reload
    systemctl enable --now tribd || { journalctl -u tribd; return 1; }
    systemctl is-active tribd && systemctl is-enabled tribd && tribctl status &&
        systemctl list-dependencies --plain multi-user.target | grep -q 'tribd\.service'
}

locks_memory() {
    grep -E '^Max (locked memory +unlimited +unlimited|open files +65536 +65536)' \
        "/proc/$(of MainPID)/limits" | tee limits
    [ "$(wc -l <limits)" = 2 ]
}

may_little() {
    grep '^CapEff:' "/proc/$(of MainPID)/status" | tee caps
    [ "$(awk '{ print $2 }' caps)" = 0000000000000000 ] &&
        [ "$(stat -c %U "/proc/$(of MainPID)")" = tribd ] &&
        grep -q '^NoNewPrivs:[[:space:]]1' "/proc/$(of MainPID)/status" &&
        systemd-analyze security --threshold=20 tribd.service | sed -n 's/^→ /figure: /p'
}

# Jobs -------------------------------------------------------------------------------------

job() {
    local before

    before=$(operations)
    perf env TRIB_SERVICE=127.0.0.1:4700 TRIB_SERVICE_KEY=tributary.key && summed &&
        [ "$(operations)" -gt "$((before + 100))" ] && journal 'job train-7: 2 ranks'
}

job_by_rdma() {
    local before

    before=$(operations)
    perf env TRIB_SERVICE="$RXE_ADDRESS:4700" TRIB_SERVICE_KEY=tributary.key \
        TRIB_TRANSPORT=verbs && summed && [ "$(operations)" -gt "$((before + 100))" ]
}

kicks() {
    start_steps TRIB_SERVICE=127.0.0.1:4700 TRIB_SERVICE_KEY=tributary.key || return
    tribctl --config /etc/tribd.conf kick steps "the rack moves at noon"
    soon grep -q 'ended the job there (tribctl kick): the rack moves at noon' \
        steps.said && stop_steps
}

others_cannot() {
    ! setpriv --reuid=daemon --regid=daemon --clear-groups \
        tribctl --config "$folder/own.conf" drain && is ActiveState active
}

# The life of the unit ---------------------------------------------------------------------

waits_for_ready() {
    systemctl stop tribd
    drop_in ExecStart= "ExecStart=/bin/sh -c 'until [ -e /run/go ]; do sleep 0.2; done; exec $(
        command -v tribd) --config /etc/tribd.conf'"
    systemctl start --no-block tribd
    soon is SubState start || { systemctl status tribd; return 1; }
    sleep 2
    is ActiveState activating || { systemctl status tribd; return 1; }
    touch /run/go
    soon is ActiveState active && tribctl status
    local status=$?
    drop_in
    systemctl restart tribd && return "$status"
}

reloads() {
    forget
    settings 'key = /etc/tributary.key' 'threads = 3'
    systemctl reload tribd &&
        soon journal 'settings reloaded' &&
        soon journal 'threads: takes effect only after a restart' -p warning &&
        ! journal 'settings reloaded' -p warning && is ActiveState active
}

keeps_settings() {
    forget
    settings 'key = /etc/tributary.key' 'weights = ana'
    systemctl reload tribd &&
        soon journal 'the settings are unchanged: ' -p warning && is ActiveState active
    local status=$?
    settings 'key = /etc/tributary.key'
    return "$status"
}

restarts() {
    start_steps TRIB_SERVICE=127.0.0.1:4700 TRIB_SERVICE_KEY=tributary.key || return
    kill -9 "$(of MainPID)"
    soon is NRestarts 1 && soon is ActiveState active &&
        soon steps_there && stop_steps
}

# systemd forgets the result of an inactive unit, but its journal keeps it.
ended_well() {
    is ActiveState inactive && journal 'tribd.service: Deactivated successfully'
}

stops() {
    forget
    start_steps TRIB_SERVICE=127.0.0.1:4700 TRIB_SERVICE_KEY=tributary.key || return
    systemctl stop tribd
    journalctl -u tribd --since "$since" -o cat
    stop_steps && journal 'draining: ' && ended_well && [ ! -e /run/tribd ]
}

drains() {
    forget
    systemctl start tribd && tribctl --config /etc/tribd.conf drain &&
        soon ended_well && sleep 1 && ended_well
}

says_what_is_wrong() {
    forget
    settings 'key = /etc/tributary.key' 'slots = many'
    ! systemctl start tribd || return
    soon is ActiveState failed || return
    journalctl -u tribd --since "$since"
    journal 'line 5: slots = many: it must be a number' -p err && is NRestarts 0
}

# MUNGE ------------------------------------------------------------------------------------

# Start munge with a new key.
start_munge() {
    local at

    for at in /etc/munge /var/lib/munge /var/log/munge; do
        mkdir -p "$at" && mount -t tmpfs -o mode=700 tmpfs "$at" && chown munge: "$at" || return
    done
    (umask 077; head -c 1024 /dev/urandom >/etc/munge/munge.key)
    chown munge: /etc/munge/munge.key
    systemctl start munge || { systemctl status munge; return 1; }
    munge -n | unmunge >/dev/null
}

takes_root() {
    systemctl reset-failed tribd
    settings
    systemctl start tribd && start_steps TRIB_SERVICE=127.0.0.1:4700 || return
    tribctl jobs | tee jobs
    stop_steps && grep -q ' root ' jobs && ! grep -i warning steps.said
}

as_daemon() {
    perf env TRIB_SERVICE=127.0.0.1:4700 \
        setpriv --reuid=daemon --regid=daemon --clear-groups
}

takes_no_other() {
    as_daemon && cat perf.said && grep -q 'user daemon may not use this aggregator' perf.said
}

takes_another() {
    forget
    settings 'users = daemon'
    systemctl reload tribd && soon journal 'settings reloaded' &&
        as_daemon && summed
}

since=$(date '+%F %T')
check "systemd: what is installed runs" installs
check "systemd: systemd-analyze verify has nothing to say of the unit" verifies
check "systemd: docs/deploy.md starts tribd" starts
check "systemd: it may lock memory without limit" locks_memory
check "systemd: it has no capability and a user of its own" may_little
check "systemd: it sums a job" job
check "systemd: it sums a job over RDMA" job_by_rdma
check "systemd: tribctl kick" kicks
cp /etc/tribd.conf own.conf && sed -i /^key/d own.conf
check "systemd: who is not root cannot drain it" others_cannot
check "systemd: it is active when it listens, not before" waits_for_ready
check "systemd: reload reads the settings" reloads
check "systemd: reload of wrong settings changes none" keeps_settings
check "systemd: killed, it is started again, and its job comes back" restarts
check "systemd: stop leaves a job between two operations" stops
check "systemd: tribctl drain, and it is not started again" drains
check "systemd: wrong settings are an error in the journal" says_what_is_wrong
if command -v munged >/dev/null; then
    check "systemd: munge starts" start_munge
    check "systemd: by munge it takes a job of root" takes_root
    check "systemd: and no job of another user" takes_no_other
    check "systemd: but of those named since" takes_another
else
    number=$((number + 1))
    echo "ok $number # SKIP systemd: tribd by munge: munged is not installed"
fi
exit "$3"
