#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
#     tests/agg/daemon/soak.sh BUILD FOLDER MINUTES
#
# Run a tribd with 64 jobs of 2 workers alone for three fifths of the time. In the other
# two fifths, at least 240 s, run 16 such jobs, so that processes start and end in time,
# and at times one more job that is killed, stopped, or hostile
# (tests/agg/daemon/hostile). FOLDER gets series.csv, the resources of tribd over time,
# and attacks.csv, the cost of each attack for the other jobs. Quiet and hostile periods
# alternate, and each hostile period is compared with the quiet periods before and after
# it:
#
#     a job that dies       no such job in the quiet periods, so its death is no gain
#     unauthenticated bytes the same
#     a hostile job         a well-behaved job of as many processes in the quiet periods
#
# At the end, the attackers of tests/agg/daemon/attack run one by one, each at least
# once, next to 16 jobs whose sums are checked: each must be refused with an error
# message and a line in the log.
#
# For ./dev soak.
# shellcheck disable=SC2317,SC2154 # called indirectly; daemons.sh has the rest
# shellcheck source-path=SCRIPTDIR/../..
abs_top_builddir=$(cd "$1" && pwd) || exit 2
folder=$2
minutes=${3:-10}
awk -v m="$minutes" 'BEGIN { exit !(m + 0 >= 1 && m ~ /^[0-9.]+$/) }' || {
    echo "soak: '$minutes' is not a number of minutes of at least 1" >&2
    exit 2
}
. tests/harness/tap.sh
. tests/agg/daemon/daemons.sh
. tests/agg/daemon/attacks.sh
for program in curl jq pgrep prlimit; do
    ! missing "$program" "everything" || finish
done
mkdir -p "$folder"

JOBS=64
BESIDE=16 # jobs next to the hostile one
plain_s=$(awk -v m="$minutes" 'BEGIN { print int(m * 36) }')
# at least a few attacks
hostile_s=$(awk -v m="$minutes" 'BEGIN { print (m * 24 > 240 ? int(m * 24) : 240) }')
attackers_s=$(awk -v m="$minutes" 'BEGIN { print (m * 12 > 150 ? int(m * 12) : 150) }') # two rounds
codecs=(--codec none --codec int8 --codec bf16 --codec topk:ratio=0.05)
now_s() { date +%s; }
say() { printf '# %s\n' "$*"; }

# --- resources of tribd ---

rss_KiB() { awk '/^VmRSS/ { print $2 }' "/proc/${daemon_pid[soak]}/status"; }
n_threads() { awk '/^Threads/ { print $2 }' "/proc/${daemon_pid[soak]}/status"; }
n_fds() { files_of soak; }
status() { curl -sf -m 10 "http://127.0.0.1:${daemon_http[soak]}/status"; }

sample() { # PART, number of jobs: append a line to the series
    local held seen
    seen=$(rss_KiB),$(n_fds),$(n_threads)
    held=$(status) || return 1
    # Skip the sample if jobs have left.
    [ "$(jq -r .held.jobs <<<"$held")" -ge "$2" ] || return 0
    held=$(jq -r '[.held.slots, .held.jobs, .total.operations] | @csv' <<<"$held")
    echo "$(($(now_s) - began)),$1,$seen,$held" >>"$folder/series.csv"
}

column() { # PART, column, function of the awk array v[1 … n] sorted by time, as text
    awk -F , -v part="$1" -v c="$2" '$2 == part { v[++n] = $c } END {'"$3"'}' "$folder/series.csv"
}

# --- part 1: 64 jobs alone ---

result_of() { # FILE of trib-perf agg, filter of jq
    jq -r ".results[0] | $2" "$folder/$1.json"
}

judge_jobs() { # NAME, FILE of trib-perf agg, its exit code
    shown=("$dir/$2.log" "$dir/soak.log")
    [ "$3" = 0 ]
    result $? "$1: trib-perf agg ends well"
    [ "$(result_of "$2" '(.wrong // 0) + .fell_back + .jobs_lost + .jobs_failed')" = 0 ]
    result $? "$1: no wrong element, no operation without the service, no job lost or failed, of $(result_of "$2" '.operations') operations"
}

plain() {
    local end code
    TRIB_SERVICE_WAIT_MS=60000 service soak job agg agg --jobs $JOBS --workers 2 --bind core --check \
        --sizes 64K --seconds "$plain_s" --tribd-pid "${daemon_pid[soak]}" --json "$folder/agg.json" \
        "${codecs[@]}"
    within 60 status_of soak ".held.jobs == $JOBS" || say "not all jobs are there"
    end=$(($(now_s) + plain_s - 3))
    while [ "$(now_s)" -lt "$end" ] && ! stopped_running "${job_pid[agg]}"; do
        sample plain $JOBS
        sleep 3
    done
    within 120 stopped_running "${job_pid[agg]}"
    wait "${job_pid[agg]}"
    code=$?
    judge_jobs "$JOBS jobs" agg "$code"
    grep -h "trib-perf: " "$dir/agg.log" | sed 's/^/# /' | head
    # A codec that costs the workers more time has fewer operations: tribd is not the
    # cause.
    awk -v j="$(result_of agg .jain_codec)" 'BEGIN { exit !(j >= 0.95) }'
    result $? "$JOBS jobs: Jain's index among jobs of one codec is $(result_of agg .jain_codec) or more: at least 0.95 (of all $(result_of agg .jain))"
    say "they put in $(result_of agg '"\(.GBps) GB/s, p50 \(.p50_us) us, p99 \(.p99_us) us, tribd \(.tribd_cpu_s_per_GB) s/GB"')"
    shown=("$folder/series.csv")
    flat
}

# Memory: a leak per operation shows in the second half.
flat() {
    local first last most
    first=$(column plain 3 'print v[int(n / 2) + 1]')
    last=$(column plain 3 'print v[n]')
    most=$(column plain 3 'for (i = int(n / 2) + 1; i <= n; i++) if (v[i] > m) m = v[i]; print m')
    [ "$((most - first))" -le "$((first / 50 + 2048))" ]
    result $? "memory is flat: $first KiB at half time, $last KiB at the end, $most KiB at most (first of all $(column plain 3 'print v[1]'))"
    [ "$(column plain 4 'for (i = int(n / 2) + 1; i <= n; i++) if (v[i] != v[n]) bad++; print bad + 0')" = 0 ] &&
        [ "$(column plain 5 'for (i = int(n / 2) + 1; i <= n; i++) if (v[i] != v[n]) bad++; print bad + 0')" = 0 ]
    result $? "descriptors and threads are constant: $(column plain 4 'print v[n]') and $(column plain 5 'print v[n]')"
}

all_back() { # NAME: no job holds anything, and tribd is back to its earlier size
    shown=("$said" "$dir/soak.log")
    within 10 is_empty soak
    result $? "$1: all slots are returned"
    as_before() { [ "$(n_fds)" -le "$fds_before" ] && [ "$(n_threads)" -le "$threads_before" ]; }
    within 10 as_before
    result $? "$1: descriptors and threads are as before any job: $(n_fds) and $(n_threads), before $fds_before and $threads_before"
    expect "$1: tribctl says so" 0 "slots" "$build/agg/daemon/tribctl" --config "$dir/soak.conf" status
    sed 's/^/# /' "$said"
}

# --- part 2: one more job, which is hostile ---

start_victim() {
    TRIB_TRANSPORT=tcp TRIB_STOP_TIMEOUT_MS=1000 service soak job victim agg --jobs 1 --workers 2 \
        --sizes 256K --seconds 100000
    within 30 victim_runs
}
victim_runs() { status_of soak '.jobs[] | select(.name == "victim.0" and .operations > 10)'; }
victims='.name == "victim.0" or .name == "hostile" or .name == "alone"'
victim_gone() { status_of soak "[.jobs[] | select($victims)] | length == 0"; }

start_hostile() { # WAY: as a job of two ranks, or with connections only
    local ranks=(env)
    rm -f "$dir/enough"
    [[ $1 == joins || $1 == messages ]] || ranks=("$build/tools/trib-run" -n 2 --)
    TRIB_TRANSPORT=tcp TRIB_SERVICE_JOB=hostile TRIB_SERVICE_RETRY_MS=0 service soak \
        run_hostile "${ranks[@]}" "$build/tests/agg/daemon/hostile" "$1" "$dir/enough"
    within 30 hostile_came
}
run_hostile() { # command...
    "$@" >"$dir/hostile.log" 2>&1 </dev/null &
    job_pid[hostile]=$!
}
hostile_came() {
    grep -q "job \(hostile\|alone\): 2 ranks" <(tail -n "+$log_lines" "$dir/soak.log")
}
end_hostile() { # end all of its processes at one moment
    local pids
    touch "$dir/enough"
    mapfile -t pids < <(pgrep -P "${job_pid[hostile]}")
    kill -KILL "${job_pid[hostile]}" "${pids[@]}" 2>/dev/null
    wait "${job_pid[hostile]}" 2>/dev/null
}

# On such a busy machine, starting a process takes long, and so does reading a socket in
# bash: code that measures time starts no process and reads the log of tribd.
mkfifo "$dir/never"
exec 8<>"$dir/never"
now_ms() { # set $now
    now=${EPOCHREALTIME/[.,]/}
    now=${now%???}
}
read_log() { # read its new lines; true: the victim is gone
    local line gone=1
    while read -r line <&9; do
        [[ ! $line =~ "job "(victim.0|hostile|alone)" has ended" ]] || gone=0
    done
    return "$gone"
}
await_victim_gone() { # ms since when: set $free
    until read_log || { now_ms && [ $((now - $1)) -gt 30000 ]; }; do
        read -rt 0.02 -u 8
    done
    now_ms
    free=$((now - $1))
}
end_victim() {
    pkill -CONT -P "${job_pid[victim]}" # its workers
    kill -TERM "${job_pid[victim]}" 2>/dev/null
    within 30 stopped_running "${job_pid[victim]}"
    wait "${job_pid[victim]}" 2>/dev/null
}

# Operations per second of all other jobs; nothing once they have ended.
others() { # seconds
    local a b
    a=$(counted) && sleep "$1" && b=$(counted) || return
    awk -v a="$a" -v b="$b" 'BEGIN {
        split(a, from, " "); split(b, to, " ")
        if (from[3] == to[3] && to[1] > from[1] && to[2] > from[2]) print (to[2] - from[2]) / (to[1] - from[1])
    }'
}
counted() { # uptime, operations of the other jobs, number of these jobs
    status | jq -r '.uptime_s as $t | [.jobs[] | select(.name | test("^(load|sums)")) | .operations] |
        "\($t) \(add // 0) \(length)"'
}

# send random bytes to the port for jobs and to all ports of the transports of tribd
garbage() {
    local port ports
    ports=$(awk 'FNR == NR { inode[$1]; next } $4 == "0A" && $10 in inode { split($2, a, ":"); print a[2] }' \
        <(find "/proc/${daemon_pid[soak]}/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n') \
        /proc/net/tcp)
    for port in $ports; do
        for _ in 1 2 3; do
            (exec 7<>"/dev/tcp/127.0.0.1/$((16#$port))" && timeout 5 head -c 200000 /dev/urandom >&7) 2>/dev/null
        done
    done
}

attack() { # NAME, its workers: attack the victim
    case $1 in
    killed) kill -KILL "$3" ;;
    killed-first) kill -KILL "$2" ;;
    stopped) kill -STOP "$3" ;;
    stopped-all) kill -STOP "$2" "$3" "${job_pid[victim]}" ;;
    garbage) garbage ;;
    esac
}

deaths=(killed stopped killed-first stopped-all garbage)
ways=(tiny plans freed garble joins messages)
FREE_MS=5000 # a dead or hostile job has no slots after this time
PERIOD_S=4

# WHO: rate of the other jobs, next to nobody or next to a well-behaved job; set $quiet
measure_quiet() {
    [ "$1" = nobody ] || start_victim || say "the job that behaves does not come up"
    quiet=$(others "$PERIOD_S")
    [ "$1" = nobody ] || end_victim
    within 10 victim_gone || late=$((late + 1))
}

# NAME: a job dies, or unauthenticated peers send; $hostile is set to the operations of
# the others, $free to the time
die() {
    local workers=() measured log="$dir/others.$BASHPID" since now
    free=0
    [ "$1" = garbage ] || start_victim || say "the victim does not come up before $1"
    [ "$1" = garbage ] || mapfile -t workers < <(pgrep -P "${job_pid[victim]}")
    others "$PERIOD_S" >"$log" &
    measured=$!
    read_log
    now_ms
    since=$now
    attack "$1" "${workers[@]}"
    [ "$1" = garbage ] || await_victim_gone "$since"
    wait "$measured"
    hostile=$(cat "$log")
    [ "$1" != stopped-all ] || kill -CONT "${job_pid[victim]}"
    [ "$1" = garbage ] || end_victim
}

# WAY: run tests/agg/daemon/hostile for a period, then kill it; sets the same variables
# as die
be_hostile() {
    local since now
    free=0
    log_lines=$(($(wc -l <"$dir/soak.log") + 1))
    start_hostile "$1" || say "nobody is hostile by $1: $(tail -n 1 "$dir/hostile.log")"
    hostile=$(others "$PERIOD_S")
    read_log
    now_ms
    since=$now
    end_hostile
    victim_gone || await_all_gone "$since"
    grep "has not ended it" "$dir/hostile.log" && late=$((late + 1))
}
await_all_gone() { # ms since when: set $free
    until victim_gone || { now_ms && [ $((now - $1)) -gt 30000 ]; }; do
        read -rt 0.05 -u 8
    done
    now_ms
    free=$((now - $1))
}

# WHO runs in the quiet periods, function, attacks: each between two quiet periods
turns() {
    local name before quiet hostile free
    measure_quiet "$1"
    for name in "${@:3}"; do
        [ "$(now_s)" -lt "$end" ] || return
        before=$quiet
        "$2" "$name"
        [ "$free" -le $FREE_MS ] || late=$((late + 1))
        within 10 victim_gone || late=$((late + 1))
        measure_quiet "$1"
        [ -z "$before" ] || [ -z "$hostile" ] || [ -z "$quiet" ] ||
            echo "$name,$1,$before,$hostile,$quiet,$free" >>"$folder/attacks.csv"
        sample hostile $BESIDE
    done
}

hostile() {
    local end code code2 i=0
    late=0
    echo "attack,beside,before_ops_per_s,hostile_ops_per_s,after_ops_per_s,slots_free_ms" >"$folder/attacks.csv"
    TRIB_SERVICE_WAIT_MS=60000 service soak job load agg --jobs $((BESIDE - 4)) --workers 2 --bind core --sizes 64K \
        --seconds "$hostile_s" --json "$folder/load.json" "${codecs[@]}"
    TRIB_SERVICE_WAIT_MS=60000 service soak job sums agg --jobs 4 --workers 2 --bind core --sizes 64K --check \
        --seconds "$hostile_s" --json "$folder/sums.json" "${codecs[@]}"
    within 60 status_of soak "[.jobs[] | select(.operations > 10)] | length >= $BESIDE" ||
        say "not all jobs are there"
    end=$(($(now_s) + hostile_s - 45))
    while [ "$(now_s)" -lt "$end" ]; do # two of each kind at a time
        turns behaving be_hostile "${ways[i % 6]}" "${ways[(i + 1) % 6]}"
        turns nobody die "${deaths[i % 5]}" "${deaths[(i + 1) % 5]}"
        i=$((i + 2))
    done
    within 120 stopped_running "${job_pid[load]}" && within 120 stopped_running "${job_pid[sums]}"
    wait "${job_pid[load]}"
    code=$?
    wait "${job_pid[sums]}"
    code2=$?
    judge_jobs "beside a hostile job" load "$code"
    judge_jobs "beside a hostile job, checked" sums "$code2"
    judge_attacks
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

kept() { # for each attack: share of throughput that the others kept, and its name
    awk -F , 'NR > 1 && $3 + $5 > 0 { printf "%.3f %s\n", 2 * $4 / ($3 + $5), $1 }' "$folder/attacks.csv"
}

judge_attacks() {
    local ratio n worst noise
    shown=("$dir/soak.log")
    sed 's/^/# /' "$folder/attacks.csv"
    n=$(($(wc -l <"$folder/attacks.csv") - 1))
    [ "$n" -gt 0 ] && [ "$late" = 0 ]
    result $? "what the dead and the hostile held is free in $FREE_MS ms ($late of $n were late)"
    ratio=$(kept | median)
    worst=$(kept | sort -n | head -n 1)
    noise=$(awk -F , 'NR > 1 && $3 && $5 { r = $5 < $3 ? $5 / $3 : $3 / $5; print r }' "$folder/attacks.csv" | sort -n | head -n 1)
    say "the worst attack left the others $worst; two quiet periods beside an attack were as far apart as $noise"
    [ "$n" -ge 3 ] && awk -v r="$ratio" 'BEGIN { exit !(r >= 0.9) }'
    result $? "the others keep $ratio of their throughput meanwhile (median of $n attacks, the worst $worst): at least 0.9"
}

# --- part 3: attackers ---

load_runs() { status_of soak "[.jobs[] | select(.name | test(\"^checked\"))] | length >= $BESIDE"; }
only_load() { status_of soak '[.jobs[] | select(.name | test("^checked") | not)] | length == 0'; }

# After one round of the attacks that are always the same, memory has reached its final
# size.
attackers() {
    local name code round=0 end rss_first=0 names
    mapfile -t names < <("$build/tests/agg/daemon/attack" names)
    TRIB_SERVICE_WAIT_MS=60000 service soak job checked agg --jobs $BESIDE --workers 2 --bind core \
        --sizes 64K --check --seconds "$attackers_s" --json "$folder/checked.json" "${codecs[@]}"
    within 60 load_runs || say "not all jobs are there"
    end=$(($(now_s) + attackers_s - 45))
    while [ "$round" -lt 1 ] || [ "$(now_s)" -lt "$end" ]; do
        mapfile -t names < <(shuf -e "${names[@]}")
        for name in "${names[@]}"; do
            [ "$round" -lt 1 ] || [ "$(now_s)" -lt "$end" ] || break
            shown=("$dir/attack.log")
            attack_once soak "$name" && within 10 only_load
            code=$?
            if [ "$code" != 0 ] || [ "$round" = 0 ]; then
                result $code "attacker $name, beside $BESIDE jobs: ${refused:0:120}"
            fi
            sample attackers $BESIDE
        done
        [ "$round" -gt 0 ] || rss_first=$(rss_KiB)
        round=$((round + 1))
    done
    say "$round rounds of ${#names[@]} attackers; tribd had $rss_first KiB after the first, and has $(rss_KiB)"
    [ "$(rss_KiB)" -le $((rss_first + rss_first / 20 + 8192)) ]
    result $? "attackers: memory is as after their first round: $rss_first KiB, now $(rss_KiB)"
    within 120 stopped_running "${job_pid[checked]}"
    wait "${job_pid[checked]}"
    judge_jobs "beside attackers" checked $?
    shown=("$dir/soak.log")
    log_is_plain soak
    result $? "attackers: the log has no line of their own"
}

TRIBD_THREADS=${TRIBD_THREADS:-0} start_daemon soak "drain_ms = 5000" "${attack_settings[@]}" || finish
exec 9<"$dir/soak.log"
began=$(now_s)
echo "seconds,part,rss_KiB,descriptors,threads,slots,jobs,operations" >"$folder/series.csv"
fds_before=$(n_fds) threads_before=$(n_threads)
plain
all_back "$JOBS jobs"
hostile
all_back "beside a hostile job"
attackers
all_back "beside attackers"
kill -TERM "${daemon_pid[soak]}"
ended soak 0
result $? "tribd ends well"
finish
