#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Run each attacker of tests/agg/daemon/attack against one tribd, next to a job that
# takes a step every few ms: the check under test refuses it, with an error message and
# a line in the log, and tribd and the other job continue.
#
#     test_tribd_attack.sh                   as a test
#     test_tribd_attack.sh --timed [NAME]…   for ./dev attack: also a table with the
#                                            longest step of the other job without and
#                                            with each attack
#
# ATTACK_QUIET_S is how long the job is measured without an attack (5 s),
# ATTACK_LIMIT_MS the limit of a step during one (50 ms), ATTACK_TRANSPORT the transport
# between the job and tribd (auto: shared memory).
# shellcheck disable=SC2317 # functions are called indirectly
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/attacks.sh"
for program in curl jq prlimit; do
    ! missing "$program" "attackers" || finish
done
timed=""
[ "${1:-}" != --timed ] || { timed=yes && shift; }
attack=$build/tests/agg/daemon/attack
quiet_s=${timed:+${ATTACK_QUIET_S:-5}}
limit_ms=${ATTACK_LIMIT_MS:-50}
STEP_MS=2
unset TRIBD_TRANSPORTS # use the defaults of tribd
# No rank of the job on a busy machine counts as stopped.
export TRIB_STOP_TIMEOUT_MS=20000

run_beside() {
    TRIB_TRANSPORT=${ATTACK_TRANSPORT:-auto} TRIB_SERVICE_JOB=beside TRIB_SERVICE_RETRY_MS=0 \
        "$build/tools/trib-run" -n 2 -- "$attack" beside "$dir/measured" "$STEP_MS" \
        >"$dir/beside.log" 2>&1 </dev/null &
    job_pid[beside]=$!
}
# set $longest (ms), $steps and $without (steps without the service) since the last call
measure() {
    read -r longest steps without < <("$attack" longest "$dir/measured")
}
alone_again() { status_of one '[.jobs[] | select(.name != "beside")] | length == 0'; }
alone_here() { [ "$(files_of one)" -le "$files_before" ]; }
row() { printf "# %-9s %9s %9s  %s\n" "$@"; }

judge_step() { # NAME, longest step without and with it
    [ -n "$timed" ] || return
    awk -v most="$limit_ms" -v a="$2" -v b="$3" 'BEGIN { exit !(b < most || b < 2 * a) }'
    result $? "$1: the longest step of the job beside took $3 ms: less than $limit_ms (without the attack $2 ms)"
}

judge() { # NAME
    local before=- code
    measure
    [ -z "$quiet_s" ] || { sleep "$quiet_s" && measure && before=$longest; }
    shown=("$dir/attack.log" "$dir/one.log")
    attack_once one "$1"
    code=$?
    within 10 alone_again && within 10 alone_here
    result $? "$1: nothing is left of it"
    measure
    [ "$code" = 0 ]
    result $? "$1: it is refused by the check for it: ${refused:0:150}"
    [ "$steps" -gt 0 ] && [ "$without" = 0 ]
    result $? "$1: the job beside goes on ($steps steps)"
    judge_step "$1" "$before" "$longest"
    rows+=("$1" "$before" "$longest" "$refused" "$logged")
    grep -v ": refused: \|: log: " "$dir/attack.log" | sed 's/^/# /'
}

# The memory of a job with many ranks is returned to the kernel, not kept by glibc for
# the next one. After three jobs the difference shows.
judge_memory() {
    local rss_KiB=0
    small_again() { rss_KiB=$(rss) && [ "$rss_KiB" -le $((rss_before + 30000)) ]; }
    rss() { awk '/^VmRSS/ { print $2 }' "/proc/${daemon_pid[one]}/status"; }
    [ "$slow" = 1 ] || { skip "memory is free again" "a sanitizer keeps what was freed" && return; }
    rss_before=$(rss)
    for _ in 1 2 3; do
        attack_once one ranks
    done
    shown=("$dir/attack.log" "$dir/one.log")
    within 10 small_again
    result $? "jobs of many ranks leave no memory behind: $rss_before KiB before, $rss_KiB after"
}

show_table() {
    row attacker "without" "with" "longest step of the job beside in ms; refused by; line of the log"
    for ((i = 0; i < ${#rows[@]}; i += 5)); do
        row "${rows[@]:i:3}" "${rows[i + 3]}"
        row "" "" "" "  ${rows[i + 4]}"
    done
}

# tribd waits 2 s for stopped peers unless this says otherwise
TRIB_STOP_TIMEOUT_MS=2000 start_daemon one "${attack_settings[@]}" || finish
rows=()
service one run_beside
within 60 sums one beside
files_before=$(files_of one)
[ $# -gt 0 ] || mapfile -t names < <("$attack" names)
for name in "${@:-${names[@]}}"; do
    judge "$name"
done
[ $# -gt 0 ] || judge_memory
shown=("$dir/beside.log" "$dir/one.log")
"$attack" longest "-$dir/measured" >/dev/null
patience=60 ended beside 0 && grep -q "steps: all right" "$dir/beside.log"
result $? "every sum of the job beside is right"
log_is_plain one
result $? "the log has no line of an attacker's own"
within 10 is_empty one
result $? "nobody holds anything afterwards"
kill "${daemon_pid[one]}"
ended one 0
result $? "tribd ends well"
[ -z "$timed" ] || show_table
finish
