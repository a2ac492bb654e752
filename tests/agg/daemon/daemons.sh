# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Start daemons and jobs in tests of tribd; source it after tap.sh.
#
#     start_daemon one "slots = 64" || finish
#     service "one" job first allreduce -n 2 --check
#     ended first 0; result $? "it ends well"
# shellcheck disable=SC2154,SC2034 # of tap.sh, and for it
perf=$build/perf/trib-perf
declare -A daemon_pid daemon_port daemon_http job_pid

at_exit() {
    local pid
    for pid in "${job_pid[@]}" "${daemon_pid[@]}"; do
        kill -CONT "$pid" 2>/dev/null
        kill -KILL "$pid" 2>/dev/null
    done
    wait
}

(umask 077; head -c 32 /dev/urandom >"$dir/key")
export TRIBD_TRANSPORTS=auto,shm,tcp,verbs,ucx # the last one must be enabled explicitly

# tribd cannot start at a foreign address, but first prints what it lacks.
TRIBD_AUTH=key TRIBD_KEY=$dir/key TRIBD_LISTEN=127.0.0.1:$((20000 + RANDOM % 12000)) \
    TRIBD_HTTP=198.51.100.1:80 timeout 20 "$build/agg/daemon/tribd" >"$said" 2>&1
! grep -q "needs libsodium" "$said" || skip_all "built without libsodium"
! grep -q "no HTTP server" "$said" || skip_all "built without libmicrohttpd"

said_by() { # DAEMON, words
    grep -qF -- "$2" "$dir/$1.log"
}

is_up() { # DAEMON: it listens, or has ended
    said_by "$1" "listening at" || ! kill -0 "${daemon_pid[$1]}" 2>/dev/null
}

start_daemon() { # NAME, line of its file...; the log is $dir/NAME.log
    local name=$1 try port
    shift
    for try in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 12000))
        printf '%s\n' "listen = 127.0.0.1:$port" "http = 127.0.0.1:$((port + 1))" "auth = key" \
            "key = $dir/key" "threads = 1" "$@" >"$dir/$name.conf"
        : >"$dir/$name.log" # of an earlier daemon with this name
        "$build/agg/daemon/tribd" --config "$dir/$name.conf" >>"$dir/$name.log" 2>&1 </dev/null &
        daemon_pid[$name]=$!
        daemon_port[$name]=$port
        daemon_http[$name]=$((port + 1))
        within 10 is_up "$name" && said_by "$name" "listening at" && return 0
        echo "# no tribd at port $port, try $try"
    done
    sed 's/^/# /' "$dir/$name.log"
    return 1
}

again() { # DAEMON that has ended: restart it at its port
    : >"$dir/$1.log"
    "$build/agg/daemon/tribd" --config "$dir/$1.conf" >>"$dir/$1.log" 2>&1 </dev/null &
    daemon_pid[$1]=$!
    within 10 is_up "$1" && said_by "$1" "listening at"
}

# NAME, exit code: a daemon or job has ended with this code within $patience seconds
# (20)
ended() {
    local pid=${daemon_pid[$1]:-${job_pid[$1]:-}} got
    within "${patience:-20}" stopped_running "$pid" || return 1
    wait "$pid"
    got=$?
    [ "$got" = "$2" ] || {
        echo "exit code $got, wanted $2" >>"$dir/$1.log"
        return 1
    }
}

stopped_running() { # pid: it is gone, or a zombie child
    ! grep -q '^State:[[:space:]][^Z]' "/proc/$1/status" 2>/dev/null
}

# "DAEMON …", command…: run the command with their addresses and the key
service() {
    local list="" name
    for name in $1; do
        list=$list,127.0.0.1:${daemon_port[$name]}
    done
    shift
    TRIB_SERVICE=${list#,} TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=${key:-$dir/key} "$@"
}

job() { # NAME, arguments of trib-perf: run in the background, output in $dir/NAME.log
    : >"$dir/$1.log" # of an earlier job
    TRIB_SERVICE_JOB=$1 "$perf" "${@:2}" >"$dir/$1.log" 2>&1 </dev/null &
    job_pid[$1]=$!
}

# NAME, "DAEMON…", ms between steps: start a job that takes and checks steps until
# end_steps
start_steps() {
    rm -f "$dir/$1.stop"
    : >"$dir/$1.log" # of an earlier job
    service "$2" run_steps "$1" "${3:-0}"
}
run_steps() {
    TRIB_SERVICE_JOB=$1 "$build/tools/trib-run" -n 2 -- "$build/tests/agg/daemon/steps" "$dir/$1.stop" \
        "$2" >"$dir/$1.log" 2>&1 </dev/null &
    job_pid[$1]=$!
}

end_steps() { # NAME, what happened to it
    touch "$dir/$1.stop"
    shown=("$dir/$1.log")
    patience=60 ended "$1" 0 && grep -q "steps, all right" "$dir/$1.log"
    result $? "$2: every step is right"
}

says() { # JOB, words, times: printed this often by now, or the job has ended
    [ "$(grep -cF -- "$2" "$dir/$1.log")" -ge "$3" ] || ! kill -0 "${job_pid[$1]}" 2>/dev/null
}

said_by_job() { # JOB, words, times, description
    shown=("$dir/$1.log")
    within 60 says "$1" "$2" "$3" && [ "$(grep -cF -- "$2" "$dir/$1.log")" -ge "$3" ]
    result $? "$4"
}

# FILE: every row of trib-perf has 0 wrong elements, and there is at least one row
right() {
    awk '/^ *[0-9.]+ [KMG]?i?B / { rows++; if ($NF != 0) bad = 1 } END { exit bad || !rows }' "$1"
}

status_of() { # DAEMON, filter of jq: does it hold?
    curl -sf -m 5 "http://127.0.0.1:${daemon_http[$1]}/status" >"$dir/status" &&
        jq -e "$2" "$dir/status" >/dev/null
}

runs() { # DAEMON, JOB: the daemon has admitted it, or trib-perf has ended
    status_of "$1" ".jobs[] | select(.name == \"$2\" and .state == \"admitted\")" ||
        ! kill -0 "${job_pid[$2]}" 2>/dev/null
}

sums() { # DAEMON, JOB: the daemon sums for it, or it has ended
    status_of "$1" ".jobs[] | select(.name == \"$2\" and .operations > 10)" ||
        ! kill -0 "${job_pid[$2]}" 2>/dev/null
}

is_empty() { # DAEMON: no job holds anything
    status_of "$1" '(.jobs | length) == 0 and .held.slots == 0'
}
