#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A tribd and a peer that has the key but violates the protocol: a concurrent job
# continues with correct sums, and what the peer held is freed. ./dev soak measures the
# cost. Here the job must keep a tenth of its rate alone, or a twentieth next to a peer
# that never waits.
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
! missing curl "hostile jobs" || finish
! missing jq "hostile jobs" || finish
hostile=$build/tests/agg/daemon/hostile
PERIOD_S=0.25

start_daemon one || finish
rss_KiB() { awk '/^VmRSS/ { print $2 }' "/proc/${daemon_pid[one]}/status"; }
operations() { # operations of the concurrent job
    status_of one true && jq '[.jobs[] | select(.name == "beside") | .operations] | add // 0' "$dir/status"
}
rate() { # its operations in a period
    local from
    from=$(operations)
    sleep $PERIOD_S
    echo $(($(operations) - from))
}
alone_again() { status_of one '[.jobs[] | select(.name != "beside")] | length == 0'; }
# Read from the log: a job that is dropped at once is no longer in the status a moment
# later.
came() { tail -n "+$((said_before + 1))" "$dir/one.log" | grep -q "job hostile: "; }

attack() { # WAY, command...: run in the background until the file exists
    rm -f "$dir/enough"
    said_before=$(wc -l <"$dir/one.log")
    since=$SECONDS
    TRIB_SERVICE_JOB=hostile TRIB_SERVICE_RETRY_MS=0 "${@:2}" "$hostile" "$1" "$dir/enough" \
        >"$dir/hostile.log" 2>&1 </dev/null &
    job_pid[hostile]=$!
}

again() { # command...: repeat until the file exists, because each run ends by itself
    while [ ! -e "$dir/enough" ]; do timeout -k 1 20 "$@"; done
}

# WAY: it ends by itself without error; a job with garbled frames may wait for its own
# frames for long
ends() {
    [ "$1" != rewrite ] || { within 30 stopped_running "${job_pid[hostile]}"; return; }
    [ "$1" = garble ] || { patience=60 ended hostile 0; return; }
    pkill -KILL -P "${job_pid[hostile]}"
    within 30 stopped_running "${job_pid[hostile]}"
}

# The best of four periods: in a single one, a busy machine may starve this job.
rate_beside() {
    local best=0 one
    for _ in 1 2 3 4; do
        one=$(rate)
        [ "$one" -le "$best" ] || best=$one
        [ "$((least * best))" -lt "$quiet_rate" ] || break
    done
    echo "$best"
}

judge() { # WAY; quiet_rate is the rate before it, then the rate after it
    local hostile_rate lesser least=10
    # A peer that rewrites memory never waits: two such ranks use most of two cores.
    [ "$1" != rewrite ] || least=20
    hostile_rate=$(rate_beside)
    touch "$dir/enough"
    count=0
    shown=("$dir/hostile.log" "$dir/beside.log" "$dir/one.log")
    ends "$1"
    result $? "$1: it was hostile, and could not stay where it should not"
    grep "hostile by" "$dir/hostile.log" | sed 's/^/# /'
    read -r count < <(sed -n 's/.*hostile by .*: //p' "$dir/hostile.log")
    lesser=$quiet_rate
    quiet_rate=$(rate)
    [ "$quiet_rate" -ge "$lesser" ] || lesser=$quiet_rate
    [ "$((least * hostile_rate))" -ge "$lesser" ]
    result $? "$1: the job beside it goes on: $hostile_rate operations, and the lesser of before and after: $lesser"
    within 5 alone_again
    result $? "$1: its slots are free within 5 s"
    ! grep -q warning "$dir/beside.log"
    result $? "$1: the job beside it has no word of trouble"
}

# A burst, then 2000 a second, plus what two sockets buffer; without a limit, 100000 a
# second.
judge_plans() {
    [ "$count" -le $((120000 + 2000 * (SECONDS - since + 1))) ]
    result $? "plans: tribd takes its time for them ($count were sent)"
}

# As many at once, then 20 a second; without turns, 300 a second and half of the sums of
# the others.
judge_joins() {
    count=$(grep -c "job alone: 2 ranks" "$dir/one.log")
    [ "$count" -le $((128 + 20 * (SECONDS - since + 1))) ]
    result $? "joins: they have their turns ($count were let in)"
}

comes_in() { # during the attack
    TRIB_TRANSPORT=tcp start_steps late "one"
    within 20 sums one late
    result $? "$way: another job comes in meanwhile"
    end_steps late "beside them"
}

TRIB_TRANSPORT=tcp start_steps beside "one"
within 60 sums one beside
quiet_rate=$(rate)
before=$(rss_KiB)
for way in tiny plans freed garble; do
    for transport in shm tcp; do
        [ "$way" = garble ] || [ "$transport" = tcp ] || continue
        TRIB_TRANSPORT=$transport service "one" attack "$way" "$build/tools/trib-run" -n 2 --
        within 30 came
        [ "$way" != plans ] || sleep 2 # without a limit, too many would arrive
        judge "$way"
        [ "$way" != plans ] || judge_plans
    done
done
TRIB_TRANSPORT=shm TRIB_TIMEOUT_MS=300 service "one" attack rewrite again \
    "$build/tools/trib-run" -n 2 --
within 30 came
sleep 2 # some tens of jobs
judge rewrite
[ "$(grep -c "hostile by rewrite" "$dir/hostile.log")" -gt 1 ]
result $? "rewrite: jobs ended of what they did to the memory that they share"
shown=("$dir/one.log")
said_by one "rank 0 freed plan 100, which does not exist"
result $? "tribd ends a job that frees what is not its own"
for way in joins messages; do
    service "one" attack "$way" env
    comes_in
    judge "$way"
    [ "$way" != joins ] || judge_joins
done
# tribd may keep memory for one pass over all plans; a leak for 20000 messages of a
# kilobyte would be larger.
after=$(rss_KiB)
what="tribd has not grown with it: $before KiB before, $after KiB after"
if [ "${TRIBTEST_SLOWNESS:-1}" = 1 ]; then
    [ "$after" -le $((before + 30000)) ]
    result $? "$what"
else
    skip "$what" "a sanitizer keeps what was freed"
fi
end_steps beside "beside all of them"
within 6 is_empty one
result $? "nobody holds anything afterwards"
finish
