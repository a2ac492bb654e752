#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The status that tribd shows of running jobs, and the output and actions of tribctl.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/harness/seen.sh"
perf=$build/perf/trib-perf
# No rank on a busy machine counts as stopped.
export TRIB_STOP_TIMEOUT_MS=600000 TRIB_TIMEOUT_MS=600000
declare -A pids
at_exit() {
    local pid
    for pid in "${pids[@]}"; do
        kill -CONT "$pid" 2>/dev/null
        kill "$pid" 2>/dev/null
    done
    wait
}

tribctl() {
    "$build/agg/daemon/tribctl" --config "$dir/conf" "$@"
}

# --- tribctl alone ---

expect "help" 0 "usage: tribctl" "$build/agg/daemon/tribctl" --help
expect "version" 0 "tribctl " "$build/agg/daemon/tribctl" --version
refuse_full "help onto a full disk" "$build/agg/daemon/tribctl" --help
refuse_full "the version onto a full disk" "$build/agg/daemon/tribctl" --version
expect "nothing to do" 2 "status, jobs, snapshots, drain, kick JOB or forget JOB" "$build/agg/daemon/tribctl"
expect "a command that does not exist" 2 "unknown command 'stop'" "$build/agg/daemon/tribctl" stop
expect "an option that does not exist" 2 "unknown option '--fast'" "$build/agg/daemon/tribctl" --fast
expect "kick without a job" 2 "kick requires one job" "$build/agg/daemon/tribctl" kick
expect "too many words" 2 "too many arguments for 'drain'" "$build/agg/daemon/tribctl" drain now
expect "no socket is set" 2 "socket = /run/tribd/socket" "$build/agg/daemon/tribctl" drain
export TRIBD_HTTP=127.0.0.1:1
expect "no tribd" 1 "cannot query the tribd at 127.0.0.1:1: Connection refused" "$build/agg/daemon/tribctl" status
TRIBD_SOCKET=$dir/none expect "tribctl without a tribd" 1 "$dir/none: No such file" "$build/agg/daemon/tribctl" drain
unset TRIBD_HTTP

TRIBD_LOG_FORMAT=xml expect "a format of the log that there is none of" 2 "log_format is xml: it must be text or json" \
    "$build/agg/daemon/tribd" --check-config
TRIBD_LOG_TIME=maybe expect "a time of the log that there is none of" 2 "log_time is maybe: it must be auto, yes or no" \
    "$build/agg/daemon/tribd" --check-config

# --- a tribd, with room for one job of two ranks ---

(umask 077 && head -c 32 /dev/urandom >"$dir/key")
listens() {
    grep -qs "listening at" "$dir/tribd.log" || ! kill -0 "${pids[tribd]}" 2>/dev/null
}
for _ in 1 2 3 4 5; do
    port=$((20000 + RANDOM % 12000))
    printf '%s\n' "listen = 127.0.0.1:$port" "http = 127.0.0.1:$((port + 1))" "auth = key" \
        "key = $dir/key" "threads = 1" "slots = 40" "socket = $dir/socket" >"$dir/conf"
    "$build/agg/daemon/tribd" --config "$dir/conf" >"$dir/tribd.log" 2>&1 </dev/null &
    pids[tribd]=$!
    within 20 listens && kill -0 "${pids[tribd]}" 2>/dev/null && break
    ! grep -q "needs libsodium" "$dir/tribd.log" || skip_all "built without libsodium"
    ! grep -q "no HTTP server" "$dir/tribd.log" || skip_all "built without libmicrohttpd"
done
shown=("$said" "$dir/tribd.log")
if ! kill -0 "${pids[tribd]}" 2>/dev/null; then
    result 1 "tribd listens"
    finish
fi
[ "$(stat -c %a "$dir/socket")" = 600 ]
result $? "its socket is for its owner alone"
expect "a second tribd does not take the socket" 2 "another tribd listens at $dir/socket" env \
    TRIBD_LISTEN=127.0.0.1:$((port + 2)) TRIBD_HTTP= "$build/agg/daemon/tribd" --config "$dir/conf"
expect "a file that is not a socket is kept" 2 "exists and is not a socket" env TRIBD_SOCKET="$dir/key" \
    TRIBD_LISTEN=127.0.0.1:$((port + 2)) TRIBD_HTTP= "$build/agg/daemon/tribd" --config "$dir/conf"

export TRIB_SERVICE=127.0.0.1:$port TRIB_SERVICE_AUTH=key TRIB_SERVICE_KEY=$dir/key
begin() { # NAME, command of the job
    TRIB_SERVICE_JOB=$1 timeout -k 5 $((900 * slow)) "${@:2}" >"$dir/$1.log" 2>&1 </dev/null &
    pids[$1]=$!
}
job() { # NAME, arguments of trib-perf
    begin "$1" "$perf" allreduce -n 2 --check --warmup 0 "${@:2}"
}
ended_well() { # NAME
    wait "${pids[$1]}" && awk '/ [KMG]iB / { rows++; bad += $NF } END { exit bad || !rows }' "$dir/$1.log"
}
shows() { # filter of jq on /status
    curl -sf -m 5 "http://127.0.0.1:$((port + 1))/status" >"$dir/status" &&
        jq -e "$1" "$dir/status" >/dev/null
}
says() { # extended regular expression, arguments of tribctl
    tribctl "${@:2}" >"$said" 2>&1 && grep -qE -- "$1" "$said"
}

says '^jobs +0 of 256$' status && says '^slots +0 of 40$' status
result $? "status of a tribd without jobs"
expect "trib-info top of it" 0 "this service has no jobs" \
    "$build/tools/trib-info" top --once "http://127.0.0.1:$((port + 1))"

probe() { # PATH, code, words
    curl -s -m 5 -w '%{http_code}' "http://127.0.0.1:$((port + 1))$1" >"$said" &&
        [ "$(tail -n 1 "$said")" = "$2" ] && grep -qF "$3" "$said"
}
if ! missing curl "it is healthy and ready"; then
    probe /healthz 200 "the control thread is running" && probe /readyz 200 "the service accepts jobs"
    result $? "it is healthy and ready"
fi

if ! missing curl "numbers add up" && ! missing jq "numbers add up"; then
    shown=("$dir/status" "$dir/tribd.log" "$dir/sum.log")
    for transport in shm tcp; do
        shows .total && before=$(jq -r '.total | "\(.received_bytes) \(.sent_bytes) \(.operations)"' "$dir/status")
        TRIB_TRANSPORT=$transport job sum --sizes 64K --iters 50
        ended_well sum
        result $? "a job over $transport"
        within 10 shows '.held.jobs == 0'
        read -r received sent operations <<<"$before"
        payload=$((2 * 65536 * 50))
        # Total traffic also contains frame headers, and the traffic of --check and the
        # barriers.
        shows ".total | .received_bytes - $received >= $payload and .sent_bytes - $sent >= $payload and
               .received_bytes - $received < $payload * 2 and .operations - $operations >= 50 and
               .dense_bytes <= .received_bytes + .sent_bytes and .chunks >= 100 and .busy_seconds > 0"
        result $? "bytes and operations over $transport add up, also once it is gone"
    done
    shows '.events | .jobs_admitted == 2 and .jobs_lost == 0 and .jobs_refused == 0 and .connections == 2'
    result $? "two jobs were admitted and have ended"

    # --- while it runs ---

    shown=("$dir/status" "$said" "$dir/tribd.log" "$dir/train.log")
    # The job pauses between steps, so that concurrent tests get processor time.
    begin train "$build/tools/trib-run" -n 2 -- "$build/tests/agg/daemon/steps" "$dir/never" 10
    # Its first operations are few and slow: between them, ranks exchange their
    # durations.
    within 20 shows '.jobs[0] | .name == "train" and .state == "admitted" and .operations > 100 and
                     .ranks == 2 and .slots == 32 and .slots_used <= 32 and .late_left_out + (.late | length) == 2 and
                     .transport == "shm" and (.hosts | length) == 1 and .hosts[0].ranks == 2'
    result $? "a job that runs is shown"
    within 5 shows '.jobs[0].slots_used > 0'
    result $? "some of its slots are in use"
    shows '([.threads[].name] == ["control", "lane0"]) and all(.threads[]; .busy_seconds > 0 and .passes > 0) and
           (.process | .resident_bytes > 1000000 and .fds > 3 and .cpu_s > 0 and .start_s > 1500000000)'
    result $? "threads and the process are shown"
    within 5 shows '.jobs[0] | (.late | length) == 2 and all(.late[]; .count > 0) and
                    ([.lag_seconds, .chunk_seconds, .operation_seconds] | all(.counts | add > 0))'
    result $? "how late its ranks are is counted"
    says '^ +3 train +key +admitted +2 +32 +[0-9]+ +[0-9.]+ [KMG]?i?B +[0-9.]+ [KMG]?i?B  (operation|idle)' jobs
    result $? "tribctl jobs has a line for it"
    if ! missing python3 "and fits a terminal"; then
        "${abs_top_srcdir:-.}/tests/harness/terminal.py" --said "$dir/seen" 80 "$build/agg/daemon/tribctl" \
            --config "$dir/conf" jobs >"$said" && [ "$(awk '{ print $1 }' "$said")" -le 80 ] &&
            grep -qE '^ +3 train .* admitted +2 ' "$dir/seen"
        result $? "and fits a terminal"
    fi
    says '^jobs +1 of 256$' status && grep -qE '[0-9.]+ [MG]iB received' "$said"
    result $? "tribctl status counts it"

    late=$(pgrep -P "$(pgrep -P "${pids[train]}" | head -n 1)" -x steps | tail -n 1)
    # The rank may be stopped between two operations, while ranks exchange the duration
    # of one.
    stopped_in_operation() {
        kill -STOP "$late"
        within 3 shows '.jobs[0].operation | (.waits_for | type) == "number" and .age_s > 1' && return
        kill -CONT "$late"
        sleep 0.3
        return 1
    }
    shows '.jobs[0]'
    before=$(jq -c '[.jobs[0].late[]] | sort_by(.rank) | map(.sum_s)' "$dir/status")
    tries=0
    until stopped_in_operation || [ $((++tries)) = 8 ]; do :; done
    [ "$tries" -lt 8 ]
    result $? "a rank is stopped: it is the one that is waited for"
    rank=$(jq '.jobs[0].operation.waits_for' "$dir/status")
    kill -CONT "$late"
    grown="([.jobs[0].late[]] | sort_by(.rank) | map(.sum_s) | [.[0] - ${before}[0], .[1] - ${before}[1]])"
    within 5 shows "${grown}[$rank] > 1 and .jobs[0].lag_seconds.counts[10] >= 1"
    result $? "it continues: its lag is counted"
    shows "${grown} | .[$rank] > .[1 - $rank]" && shows ".jobs[0].late | .[0].sum_s >= .[1].sum_s"
    result $? "that of the other rank is less, and the latest rank comes first"

    if ! missing promtool "Prometheus takes /metrics"; then
        curl -sf -m 5 "http://127.0.0.1:$((port + 1))/metrics" >"$dir/metrics"
        promtool check metrics <"$dir/metrics" >"$said" 2>&1 && [ ! -s "$said" ] &&
            grep -qE '^tribd_job_operations_total\{.*name="train".*\} [1-9]' "$dir/metrics"
        result $? "Prometheus takes /metrics"
    fi
    if ! missing prometheus "Prometheus scrapes it"; then
        shown=("$said" "$dir/prometheus.log")
        start_prometheus "$((port + 1))"
        pids[prometheus]=$prometheus
        within 60 scraped 'tribd_job_operations_total{name="train",user="key"}' '=> [1-9]'
        result $? "Prometheus scrapes it"
        within 60 scraped 'rate(tribd_job_operations_total{name="train"}[10s]) > 0' '=> [0-9.]+'
        result $? "and has the rate of a job that runs"
        scraped 'tribd_job_rank_lag_seconds_sum{name="train"} > 1' "rank=\"$rank\".*=> [1-9]"
        result $? "and which rank was later than a second"
    fi
    if ! missing chromium "the page shows the job"; then
        shown=("$dir/chromium.err" "$said")
        browse "$((port + 1))" --virtual-time-budget=8000 --dump-dom >"$said"
        grep -qE '<tr data-job="3"><td class="name" title="train">' "$said"
        result $? "the page shows the job"
        grep -qE '<h3>3 train</h3><div class="lag"><span>rank [01]</span><div><div class="bar' "$said"
        result $? "and how late its ranks are"
        # y 192 is zero, and the maximum is drawn at 10 to 120. A busy machine may be
        # idle for the whole period of the page.
        throughput() {
            grep -oE '<polyline [^>]*stroke="var\(--wire\)"' "$said" |
                grep -qE '[ "][0-9.]+,([0-9]{2}|1[012][0-9])\.[0-9]' && return
            browse "$((port + 1))" --virtual-time-budget=8000 --dump-dom >"$said"
            return 1
        }
        throughput || throughput || throughput
        result $? "and throughput as a line, which is not flat"
    fi

    shown=("$dir/status" "$said" "$dir/tribd.log" "$dir/train.log")
    kill -STOP "$late"
    within 60 shows ".jobs[0].operation | .stuck and .waits_for == $rank and .age_s >= 5 and (.phase == \"transfer\" or .phase == \"start\")"
    result $? "a rank is stopped for long: the operation is stuck, with age and phase"
    if [ -n "$prometheus" ]; then
        within 20 scraped 'ALERTS{alertname="TribdJobStuck",name="train"}' 'alertstate="firing"'
        result $? "and the alert of contrib/ fires"
        kill "$prometheus"
    fi
    if ! missing chromium "the page says who is late"; then
        shown=("$dir/chromium.err" "$said")
        browse "$((port + 1))" --virtual-time-budget=8000 --dump-dom >"$said"
        grep -qE "<h3>3 train</h3><div class=\"lag\"><span>rank $rank</span><div><div class=\"bar worst\"[^>]*></div></div><span class=\"bad\">late by [0-9.]+ (s|min) so far" "$said"
        result $? "the page says who is late"
        grep -qE "class=\"now bad\">operation [0-9]+ stuck for [0-9.]+ (s|min) in (transfer|start), waits for rank $rank<" "$said"
        result $? "and what is stuck"
    fi
    kill -CONT "$late"
    within 20 shows '.jobs[0].operation | . == null or (.stuck | not)'
    result $? "it continues: nothing is stuck"

    # --- jobs that wait, are refused, or have no key ---

    shown=("$dir/status" "$said" "$dir/tribd.log" "$dir/next.log")
    TRIB_SERVICE_WAIT_MS=200 job hasty --sizes 64K --iters 5
    ended_well hasty && shows '.refused.wait == 1 and (.events | .jobs_queued == 1 and .jobs_refused == 1)'
    result $? "a job that would not wait is counted as queued and as refused"
    (umask 077 && head -c 32 /dev/urandom >"$dir/other")
    TRIB_SERVICE_KEY=$dir/other job unknown --sizes 64K --iters 5
    ended_well unknown && shows '.events.authentication_failures == 1'
    result $? "a wrong key is counted"
    TRIB_SERVICE_WAIT_MS=60000 job next --sizes 64K --iters 100000000
    within 10 says ' next +key +queued .* position 1 in the queue$' jobs
    result $? "tribctl jobs shows the queued jobs"

    # --- kick and drain ---

    expect "kick: no such job" 1 "tribctl: no job nobody" "$build/agg/daemon/tribctl" --config "$dir/conf" kick nobody
    says '^ended job train' kick train
    result $? "kick, by name"
    kill -0 "${pids[train]}" && within 5 grep -q "continue without aggregators" "$dir/train.log"
    result $? "its ranks continue without aggregators"
    within 5 shows '(.jobs | length) == 1 and (.jobs[0] | .name == "next" and .state == "admitted") and
                    .events.jobs_lost == 1 and .lost.kicked == 1'
    result $? "its slots are the next job's"
    grep -qE "^[0-9-]{10}T[0-9:.]{12}Z tributary: info: tribd: job train was kicked \\(by uid $(id -u), process [0-9]+\\)$" "$dir/tribd.log" &&
        grep -qE 'tribd: job train: 2 ranks, 32 slots \(from 127\.0\.0\.1:[0-9]+\)$' "$dir/tribd.log"
    result $? "the log says when, from where a job came, and who has kicked it"
    says '^ended job next' kick "$(jq '.jobs[0].id' "$dir/status")"
    result $? "kick, by number"
    kill "${pids[train]}" "${pids[next]}"

    # --- a codec ---

    within 10 shows '.held.jobs == 0'
    job coded --sizes 64K --iters 100000000 --codec topk:ratio=0.01
    within 20 shows '.jobs[0] | .name == "coded" and .operations > 20 and .ratio > 5'
    result $? "how much a codec saves is shown"
    kill "${pids[coded]}"
fi
within 10 says '^slots +0 of 40$' status
result $? "nothing is held in the end"
missing curl "a line that is no command" ||
    expect "a line that is no command" 0 "error: unknown command GET: use drain, kick JOB or forget JOB" \
        curl -s -m 5 --http0.9 --unix-socket "$dir/socket" http://localhost/
if ! missing curl "a line that is too long"; then
    curl -s -m 4 --unix-socket "$dir/socket" "http://localhost/$(printf '%300s' a | tr ' ' a)"
    got=$? # 52: no answer; 56: closed before all was read
    [ $got = 52 ] || [ $got = 56 ]
    result $? "a line that is too long"
fi
shown=("$said" "$dir/tribd.log")
if ! missing curl "while it drains it is healthy, and not ready" && ! missing jq "and not ready"; then
    job last --sizes 64K --iters 100000000
    within 10 shows '.jobs[0] | .name == "last" and .operations > 0'
    late=$(pgrep -P "$(pgrep -P "${pids[last]}" | head -n 1)" | tail -n 1)
    # An operation must be running, so that a drain waits for it. If the machine
    # stalled, the stopped rank may already have contributed to an operation of that
    # age, which then ends. The rank may also stop while the other rank waits for it,
    # not for tribd.
    for _ in 1 2 3 4 5 6 7 8; do
        kill -STOP "$late"
        within 3 shows '.jobs[0].operation.age_s > 0.5' && sleep 0.5 &&
            within 3 shows '.jobs[0].operation.age_s > 0.5' && break
        kill -CONT "$late"
        sleep 0.1
    done
    says '^tribd accepts no new jobs and will exit within [0-9]+ ms; running jobs: 1$' drain
    result $? "drain, beside a job whose rank is stopped"
    probe /healthz 200 "the control thread is running" && probe /readyz 503 "draining: it accepts no new jobs"
    result $? "while it drains it is healthy, and not ready"
    kill -CONT "$late"
    kill "${pids[last]}"
else
    says '^tribd accepts no new jobs and will exit within [0-9]+ ms; running jobs: 0$' drain
    result $? "drain"
fi
wait "${pids[tribd]}" && [ ! -e "$dir/socket" ]
result $? "tribd ends well, and its socket is gone"
finish
