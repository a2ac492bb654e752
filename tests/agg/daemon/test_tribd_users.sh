#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A tribd of an ordinary user, and jobs of other users on its host: they share memory
# through descriptors that are handed over, because neither may access the other's
# processes. Also which jobs it accepts by name, and with which jobs it shares no
# memory.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
[ "$(id -u)" = 0 ] || skip_all "only root can have other users' jobs"
command -v setpriv >/dev/null || skip_all "there is no setpriv"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
server=nobody other=daemon third=bin # users of every Debian system
export TRIB_STOP_TIMEOUT_MS=60000
unset TRIBD_TRANSPORTS

chmod 711 "$dir"
for user in $server $other $third; do
    install -m 600 -o "$user" "$dir/key" "$dir/key.$user" || skip_all "no files of other users"
done
chown $server "$dir/key" # the key of start_daemon
mkdir -p "$dir/as/tribd"
printf '#!/bin/sh\nexec setpriv --reuid=%s --regid=%s --clear-groups "%s" "$@"\n' $server \
    "$(id -g $server)" "$build/agg/daemon/tribd" >"$dir/as/agg/daemon/tribd"
chmod 755 "$dir/as" "$dir/as/tribd" "$dir/as/agg/daemon/tribd"

# USER, command…: run it with the address and the key
as() {
    local user=$1
    shift
    setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups env HOME=/ TRIB_LOG=debug \
        TRIB_SERVICE=127.0.0.1:"${daemon_port[one]}" TRIB_SERVICE_KEY="$dir/key.$user" "$@"
}
user_job() { # USER, NAME: two ranks
    as "$1" TRIB_SERVICE_JOB="$2" timeout -k 5 120 "$perf" allreduce -n 2 --check --warmup 0 \
        --sizes 64K,4M --iters 20 >"$dir/job.log" 2>&1 </dev/null
}
served() { # its sums were correct, and the service summed
    right "$dir/job.log" && ! grep -q "without aggregators" "$dir/job.log"
}
# TRANSPORT: both ranks reach the service, which is rank 2, through it, and vice versa
by() {
    [ "$(grep -c "peer 2 is reached by $1" "$dir/job.log")" = 2 ] &&
        [ "$(grep -c "peer [01] is reached by $1" "$dir/one.log")" = 2 ]
}
fresh() { : >"$dir/one.log"; }

build=$dir/as start_daemon one "log = debug" || finish
shown=("$dir/job.log" "$dir/one.log")
! said_by one "runs as root"
result $? "a tribd of $server's says nothing of root"

user_job $other first && served && by shm
result $? "ranks of $other share memory with a tribd of $server's"

fresh
user_job $third second && served && by shm
result $? "and those of another job, of $third"

fresh
one_rank() { # NUMBER, USER: one of two ranks that connect by TCP
    as "$2" TRIB_SERVICE_JOB=mixed TRIB_RANK="$1" TRIB_SIZE=2 TRIB_ROOT=127.0.0.1:"$root" \
        timeout -k 5 120 "$perf" allreduce --check --warmup 0 --sizes 64K --iters 20 \
        >"$dir/rank$1.log" 2>&1 </dev/null
}
root=$((20000 + RANDOM % 12000))
one_rank 1 $third &
job_pid[mixed]=$!
one_rank 0 $other
good=$?
wait "${job_pid[mixed]}" && [ $good = 0 ] && right "$dir/rank0.log" && said_by one "job mixed"
result $? "a job whose ranks are two users' is summed"
shown=("$dir/rank0.log" "$dir/rank1.log" "$dir/one.log")
said_by one "its memory is refused" && grep -q "peer 2 is reached by tcp" "$dir/rank0.log"
result $? "but not by shared memory: the first rank's user is the job's"
shown=("$dir/job.log" "$dir/one.log")

fresh
TRIB_TRANSPORT=ucx user_job $other fast
said_by one "job fast refused: transport ucx is not allowed for jobs" ||
    grep -qE "lacks ucx|UCX" "$dir/job.log"
result $? "ucx is not taken from a job unless the operator says so"
grep -q "the setting transports of this tribd allows auto,shm,tcp,verbs" "$dir/job.log" ||
    grep -qE "lacks ucx|UCX" "$dir/job.log"
result $? "and the job gets the reason"

fresh
kill "${daemon_pid[one]}" && ended one 0
build=$dir/as start_daemon one "log = debug" "transports = auto,tcp" || finish
user_job $other narrow && served && by tcp
result $? "transports = auto,tcp: no memory is shared"

kill "${daemon_pid[one]}" && ended one 0
chown 0 "$dir/key"
start_daemon one
said_by one "warning: tribd: this tribd runs as root" && said_by one "setpriv --reuid=tribd"
result $? "one of root's says so, and how to start it"

finish
