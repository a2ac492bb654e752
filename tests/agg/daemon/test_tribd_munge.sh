#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Jobs of two users at a tribd that identifies them by MUNGE: which jobs it admits,
# whose jobs /status shows, and what SIGHUP changes. munged is started by the test at
# its usual socket, in a private mount namespace.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
[ "$(id -u)" = 0 ] || skip_all "only root can have other users' jobs"
[ -x /usr/sbin/munged ] || skip_all "munged is not installed"
if [ -z "${TRIBTEST_OWN_RUN-}" ]; then
    unshare -m true 2>"$said" || skip_all "no mount name space: $(cat "$said")"
    rm -rf "$dir"
    TRIBTEST_OWN_RUN=yes exec unshare -m "$BASH" "$0" "$@"
fi
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
! missing curl "jobs by MUNGE" || finish
! missing jq "jobs by MUNGE" || finish
other=daemon # a user of every Debian system
export TRIB_TRANSPORT=tcp TRIB_STOP_TIMEOUT_MS=60000 TRIBD_AUTH=munge

# --- munged ---

if ! mount -t tmpfs -o mode=755 tmpfs /run || ! mkdir -m 755 /run/munge "$dir/munged"; then
    skip_all "no /run of its own can be mounted"
fi
chmod 711 "$dir"
(umask 077 && head -c 1024 /dev/urandom >"$dir/munged/key")
start_munged() {
    /usr/sbin/munged --foreground --force --key-file="$dir/munged/key" --pid-file="$dir/munged/pid" \
        --log-file="$dir/munged/log" --seed-file="$dir/munged/seed" >"$dir/munged.log" 2>&1 &
    job_pid[munged]=$!
    within 20 test -S /run/munge/munge.socket.2
}
shown=("$dir/munged.log" "$dir/munged/log")
start_munged
result $? "munged answers at its usual socket" # in this namespace
! "$build/agg/daemon/tribd" --check-config 2>&1 | grep -q "no MUNGE support" || skip_all "built without MUNGE"

# --- jobs ---

start_daemon one || finish
shown=("$dir/job.log" "$dir/one.log")

# USER, METHOD, NAME, arguments of trib-perf: two ranks of USER
as() {
    setpriv --reuid="$1" --regid="$(id -g "$1")" --clear-groups env HOME=/ TRIB_SERVICE_JOB="$3" \
        TRIB_SERVICE=127.0.0.1:"${daemon_port[one]}" TRIB_SERVICE_AUTH="$2" timeout -k 5 120 \
        "$perf" allreduce -n 2 --check --warmup 0 "${@:4}" >"$dir/job.log" 2>&1 </dev/null
}
let_in() { # USER, NAME
    as "$1" munge "$2" --sizes 64K --iters 20 && right "$dir/job.log" &&
        ! grep -q "without aggregators" "$dir/job.log" && said_by one "job $2"
}
# USER, NAME, words: the job is refused, and its sums are correct without aggregators
kept_out() {
    as "$1" munge "$2" --sizes 64K --iters 20 && right "$dir/job.log" && ! said_by one "job $2: " &&
        grep -q "without aggregators" "$dir/job.log" && grep -qE -- "$3" "$dir/job.log"
}
reload() { # write these lines to its file and let it read them
    printf '%s\n' "listen = 127.0.0.1:${daemon_port[one]}" "http = 127.0.0.1:${daemon_http[one]}" \
        "threads = 1" "$@" >"$dir/one.conf"
    : >"$dir/one.log"
    kill -HUP "${daemon_pid[one]}"
    within 10 said_by one "settings reloaded"
}
# USER, NAME: the running job is shown as that user's; the job ends once that is known
shows_user() {
    local good
    as "$1" munge "$2" --sizes 64K --iters 100000000 &
    job_pid[$2]=$!
    within 60 status_of one ".jobs[] | select(.name == \"$2\" and .user == \"$1\" and .operations > 0)"
    good=$?
    pkill -P "${job_pid[$2]}" timeout
    wait "${job_pid[$2]}"
    return $good
}

let_in root first
result $? "root, whose tribd it is, is let in by MUNGE"
shown=("$dir/status" "$dir/job.log" "$dir/one.log")
shows_user root of_root
result $? "/status shows whose job it is: root's"
shown=("$dir/job.log" "$dir/one.log")
as root key by_key --sizes 64K --iters 5 && grep -q "without aggregators" "$dir/job.log"
result $? "who wants another method is not let in"
if ! setpriv --reuid="$other" --regid="$(id -g $other)" --clear-groups "$perf" --version >"$said" 2>&1; then
    skip "jobs of $other" "$other cannot run what is in the folder of the build"
    finish
fi
kept_out $other unknown "service: .*(closed|refused|not use|ended)"
result $? "$other is not: the job sums by itself, and says why"
said_by one "user $other may not use this aggregator"
result $? "tribd says who was not let in"
within 10 status_of one '.events.authentication_failures >= 1'
result $? "and counts it"
reload "users = $other" && let_in $other invited
result $? "SIGHUP with users = $other: it is let in"
shown=("$dir/status" "$dir/job.log" "$dir/one.log")
shows_user $other of_other
result $? "/status shows whose job it is: $other's"
shown=("$dir/job.log" "$dir/one.log")
reload "users = " "key_previous = $dir/key" && kept_out $other gone "service: "
result $? "SIGHUP without users: it is not any more"
within 5 said_by one "key_previous has no effect: with auth = munge"
result $? "key_previous without a key to replace gets a warning"

# --- a tribd with its own user ---

server=bin
mkdir -p "$dir/as/tribd"
printf '#!/bin/sh\nexec setpriv --reuid=%s --regid=%s --clear-groups "%s" "$@"\n' $server \
    "$(id -g $server)" "$build/agg/daemon/tribd" >"$dir/as/agg/daemon/tribd"
chmod 755 "$dir/as/agg/daemon/tribd"
TRIB_TRANSPORT=auto build=$dir/as start_daemon two "users = $other" "log = debug" || finish
shown=("$dir/job.log" "$dir/two.log")
at_two() { # NAME
    as $other munge "$1" --sizes 64K --iters 20
}
one_port=${daemon_port[one]}
daemon_port[one]=${daemon_port[two]}
at_two distrusted && right "$dir/job.log" && grep -q "which this job does not trust" "$dir/job.log"
result $? "a job does not trust a tribd of $server"
TRIB_SERVICE_USER=$server at_two trusting && right "$dir/job.log" &&
    ! grep -q "without aggregators" "$dir/job.log" && said_by two "job trusting"
result $? "but one of the user whom TRIB_SERVICE_USER names"
: >"$dir/two.log"
TRIB_TRANSPORT=auto TRIB_SERVICE_USER=$server at_two near && right "$dir/job.log" &&
    [ "$(grep -c "peer [01] is reached by shm" "$dir/two.log")" = 2 ]
result $? "with which it shares memory, being who MUNGE says"
daemon_port[one]=$one_port
kill "${daemon_pid[two]}" && ended two 0
result $? "SIGTERM ends that, too"
# --- a munged that is stopped ---

shown=("$dir/job.log" "$dir/both.log" "$dir/unauthenticated.log")
TRIBD_AUTH=auto start_daemon both || finish
by_key() { # NAME: a job authenticated by the key file while munged is stopped
    TRIB_SERVICE_KEY=$dir/key as root key "$1" --sizes 4K --iters 3 && right "$dir/job.log" &&
        ! grep -q "without aggregators" "$dir/job.log"
}
at_both() { # command...: run it with the address of the other tribd
    local at=${daemon_port[one]}
    daemon_port[one]=${daemon_port[both]}
    "$@"
    at_good=$?
    daemon_port[one]=$at
    return $at_good
}
at_both by_key before
result $? "a job by key is let in at a tribd that takes both"
kill -STOP "${job_pid[munged]}"
at_both service one "$build/tests/agg/daemon/hostile" credentials "$dir/enough" >"$dir/unauthenticated.log" 2>&1 \
    </dev/null &
job_pid[unauthenticated]=$!
within 20 status_of both '.events.connections > 50'
result $? "unauthenticated peers want munged to judge what is none, while it is stopped"
longest=0
for ((i = 0; i < 5; i++)); do
    from=$(date +%s%N)
    status_of both true
    at_both by_key "meanwhile$i" || longest=1000000
    took=$((($(date +%s%N) - from) / 1000000))
    [ "$took" -le "$longest" ] || longest=$took
done
[ "$longest" -le $((6000 * slow)) ] # the job itself takes part of this time
result $? "jobs by key are still admitted: $longest ms at most"
within 20 said_by both "the credential could not be verified within"
result $? "tribd says whom it could not judge"
touch "$dir/enough"
kill -CONT "${job_pid[munged]}"
patience=20 ended unauthenticated 0
result $? "they came until the end: $(cat "$dir/unauthenticated.log")"
comes_back() { at_both as root munge again --sizes 4K --iters 3 && ! grep -q "without aggregators" "$dir/job.log"; }
within 30 comes_back
result $? "munged continues, and a job that uses it is admitted"
kill "${daemon_pid[both]}"
patience=10 ended both 0
result $? "SIGTERM ends that tribd"
shown=("$dir/job.log" "$dir/one.log")

# --- the share of one user ---

start_daemon few "jobs = 2" || finish
at_few() {
    local at=${daemon_port[one]}
    daemon_port[one]=${daemon_port[few]}
    "$@"
    few_good=$?
    daemon_port[one]=$at
    return $few_good
}
shown=("$dir/job.log" "$dir/few.log")
at_few as root munge long --sizes 64K --iters 100000000 &
job_pid[long]=$!
within 60 status_of few '.jobs[] | select(.name == "long" and .operations > 0)'
result $? "a job of root runs"
TRIB_SERVICE_WAIT_MS=0 at_few as root munge second --sizes 4K --iters 3 &&
    grep -q "within the limits of user root, 1 of 1 jobs run" "$dir/job.log"
result $? "user_jobs: a second one of the same user is not let in where there are two in all"
reload_few() { # lines
    printf '%s\n' "listen = 127.0.0.1:${daemon_port[few]}" "http = 127.0.0.1:${daemon_http[few]}" \
        "jobs = 2" "$@" >"$dir/few.conf"
    kill -HUP "${daemon_pid[few]}"
    within 10 said_by few "settings reloaded"
}
reload_few "user_jobs = 2" && TRIB_SERVICE_WAIT_MS=0 at_few as root munge third --sizes 4K --iters 3 &&
    ! grep -q "without aggregators" "$dir/job.log"
result $? "user_jobs = 2: it is"
pkill -P "${job_pid[long]}" timeout
wait "${job_pid[long]}"
kill "${daemon_pid[few]}"
patience=10 ended few 0
result $? "SIGTERM ends that tribd, too"
shown=("$dir/job.log" "$dir/one.log")

# --- no munged ---

TRIBD_AUTH=auto start_daemon reread || finish
kill "${job_pid[munged]}"
wait "${job_pid[munged]}"
kill -HUP "${daemon_pid[reread]}"
shown=("$dir/reread.log")
within 20 said_by reread "jobs can no longer authenticate by MUNGE"
result $? "SIGHUP while munged is away: tribd warns that it takes only the key"
kill "${daemon_pid[reread]}"
patience=10 ended reread 0
shown=("$dir/job.log" "$dir/one.log")
kept_out root alone "munged does not answer"
result $? "without munged a job sums without the service, with a warning"
start_munged && let_in root back
result $? "munged is there again, and jobs are let in"
within 10 is_empty one
result $? "nobody holds anything afterwards"
kill "${daemon_pid[one]}"
patience=10 ended one 0
result $? "SIGTERM ends it"
kill "${job_pid[munged]}"
wait "${job_pid[munged]}"
finish
