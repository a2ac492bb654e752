#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# trib-perf agg as a user runs it, with its own tribd and with another one: correct results, the
# name of a lost participant, and messages for wrong arguments.
# shellcheck disable=SC2317 # the functions are called, by others
# shellcheck source-path=SCRIPTDIR/../..
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
. "${abs_top_srcdir:-.}/tests/agg/daemon/daemons.sh"
agg=("$perf" agg)
own=("${agg[@]}" --tribd "$build/agg/daemon/tribd")

try() { # NAME, expected exit code, required words of the output, arguments
    expect "$1" "$2" "$3" "${own[@]}" "${@:4}"
}

column() { # NAME of a column: print its values in the csv in $said
    awk -v name="$1" -F , '
        # texts of codecs may contain commas
        { while (match($0, /"[^"]*"/)) $0 = substr($0, 1, RSTART - 1) "text" substr($0, RSTART + RLENGTH) }
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        { print at ? $at : "no such column" }' "$said"
}

# --- correct results ---

quick=(--jobs 3 --workers 2 --iters 4 --check --csv -)
for sizes in 8 4K,300004; do
    for codec in none int8 topk:ratio=0.05; do
        try "$codec, $sizes" 0 "GBps" "${quick[@]}" --codec "$codec" --sizes "$sizes"
        [ "$(column wrong | sort -u)" = 0 ] && [ "$(column fell_back | sort -u)" = 0 ]
        result $? "$codec, $sizes: all right, all by the service"
    done
done
[ "$(column operations | tr '\n' ' ')" = "12 12 " ] && [ "$(column samples | tr '\n' ' ')" = "12 12 " ]
result $? "each of 3 jobs has had its 4 operations of each size"
[ "$(wc -l <"$said")" = 3 ]
result $? "csv has a header and a row a size, and nothing else"
TRIB_TRANSPORT=tcp try "over tcp" 0 "GBps" "${quick[@]}" --sizes 64K --workers 3
[ "$(column wrong)" = 0 ] && [ "$(column fell_back)" = 0 ]
result $? "over tcp: all right, all by the service"
try "mixed codecs and sparse inputs" 0 "density 0.1" --jobs 4 --iters 3 --check \
    --codec none --codec blocks --codec int8:bucket=64,ef=1 --density 0.1 --sizes 64K
expect "a parent that ignores SIGCHLD" 0 "GBps" env --ignore-signal=CHLD "${own[@]}" "${quick[@]}" \
    --sizes 8
try "a round of seconds" 0 "a local tribd" --jobs 2 --seconds 0.3 --sizes 4K
awk '/^ +4 KiB/ { good = $2 > 1 && $3 > 0 && $(NF - 1) > 0 && $(NF - 1) <= 1 && $NF == 0 }
    END { exit !good }' "$said"
result $? "it has operations, and an index of at most 1"
[ -z "$(find /tmp -maxdepth 1 -name 'trib-perf-*' -newer "$dir/key" -user "$(id -un)" -empty)" ]
result $? "no empty folder is left"

try "json into a file" 0 "4 KiB" --jobs 2 --iters 3 --codec none --codec int8 --weights 1,3 --sizes 4K \
    --json "$dir/out.json"
if ! missing jq "json has the jobs"; then
    jq -e '.run.command == "agg" and (.results[0].jobs | length) == 2 and .results[0].jain > 0 and
        .results[0].jobs[1] == (.results[0].jobs[1] + {codec: "int8", weight: 3, operations: 3,
            fell_back: 0, failed: false, why: ""})' "$dir/out.json" >/dev/null
    result $? "json has the jobs"
fi

# --- an external service ---

start_daemon one || finish
service "one" expect "a service that runs" 0 "fell back" "${agg[@]}" --jobs 3 --iters 3 --sizes 64K \
    --check --tribd-pid "${daemon_pid[one]}"
grep -qE 'job agg\.[0-9]+\.2: 2 ranks' "$dir/one.log"
result $? "its jobs have names there"
within 10 status_of one '(.jobs | length) == 0 and .held.slots == 0' || missing jq "all slots are free"
result $? "all slots are free"
TRIB_SERVICE_JOB=mine service "one" expect "names of one's own" 0 "input" "${agg[@]}" --jobs 2 --iters 2 \
    --sizes 4K --weights 7
said_by one "job mine.1: 2 ranks"
result $? "names of one's own are known there"

# --- the name of a lost participant ---

service "one" job agg agg --jobs 3 --sizes 64K --seconds 300 --check
served() { status_of one '[.jobs[].operations] | length == 3 and min > 3'; }
! missing jq "a service that is killed" || finish
within 60 served
result $? "three jobs are served"
# only the parent gets the signal; bash makes background processes ignore SIGINT
shown=("$dir/agg.log")
kill -TERM "${job_pid[agg]}"
patience=30 ended agg 143
result $? "SIGTERM: it ends with 143"
within 10 status_of one '(.jobs | length) == 0'
result $? "SIGTERM: its jobs are gone"

service "one" job agg agg --jobs 3 --sizes 64K --iters 600 --warmup 0 --check
within 60 served
kill -KILL "${daemon_pid[one]}"
patience=120 ended agg 1
result $? "a service is killed: the exit status says so"
[ "$(grep -c "had no service for [0-9]* of its 600 operations: .*lost" "$dir/agg.log")" = 3 ]
result $? "each job that lost it is named"
right "$dir/agg.log"
result $? "all is right nevertheless"
ended one 137
service "one" expect "nobody there" 1 "job agg." "${agg[@]}" --jobs 2 --iters 2 --sizes 4K
grep -q "had no service for 2 of its 2 operations: no service at 127.0.0.1" "$said"
result $? "nobody there: it says why"

job agg agg --tribd "$build/agg/daemon/tribd" --jobs 3 --sizes 64K --seconds 4
has_workers() { [ "$(pgrep -c -x -P "${job_pid[agg]}" trib-perf)" -ge 6 ]; }
within 30 has_workers && sleep 1
kill -KILL "$(pgrep -n -x -P "${job_pid[agg]}" trib-perf)"
patience=60 ended agg 1
result $? "a worker is killed: the exit status says so"
grep -q "job agg\.2 (none) failed: " "$dir/agg.log" && ! grep -q "had no service" "$dir/agg.log"
result $? "its job is named, and no other"
grep -qE '^ +64 KiB ' "$dir/agg.log"
result $? "the others' round is there"

# --- wrong arguments ---

shown=("$said")
try "a misspelt option" 2 "did you mean --jobs?" --jbos 3
try "no jobs" 2 "--jobs '0' is not a whole number from 1 to 4096" --jobs 0
try "too many workers" 2 "at most 4096" --jobs 4096 --workers 2
try "seconds and operations" 2 "--seconds or --iters: leave one out" --seconds 1 --iters 3
try "no seconds" 2 "is not a number of seconds above 0" --seconds 0
try "a weight that is none" 2 "whole numbers from 1 to 100" --weights 1,101
try "an odd size" 2 "not a whole number of float32" --sizes 6
try "a codec that does not exist" 2 "--codec 'nonsense' is invalid" --codec int8 --codec nonsense
try "a word" 2 "accepts only options, not 'allreduce'" allreduce
try "two services" 2 "leave out --tribd" --service 127.0.0.1:1
expect "a process that does not exist" 2 "not the id of a process" "${agg[@]}" --service 127.0.0.1:1 --tribd-pid 4194305
expect "a process without a service" 2 "name it with --service" "${agg[@]}" --tribd-pid $$
expect "a program that does not exist" 1 \
    "trib-perf: cannot start a local tribd: cannot start /no/such/tribd: No such file" \
    "${agg[@]}" --tribd /no/such/tribd --jobs 1
[ "$(grep -c "trib-perf: " "$said")" = 1 ] && tail -n 1 "$said" | grep -q "trib-perf: "
result $? "in one line"
PATH=/usr/bin:/bin expect "tribd of the same build is found" 0 "a local tribd" "${agg[@]}" --jobs 1 \
    --iters 2 --sizes 4K
TRIBD_SLOTS=0 try "one that does not start" 1 "trib-perf: cannot start a local tribd: TRIBD_SLOTS=0" --jobs 1
expect "a program that is no tribd" 1 "cannot start a local tribd" "${agg[@]}" --tribd false --jobs 1
try "one file for both" 2 "cannot both write to" --csv x --json x
try "a file that cannot be" 2 "cannot write /no/such/place" --csv /no/such/place/x.csv
TRIB_RANK=0 try "under a launcher" 2 "without a launcher"
try "more than this host has" 2 "GiB of memory free" --sizes 1000000G
expect "behind options" 2 "agg must be the first argument" "$perf" -n 2 agg
refuse_full "a table onto a full disk" "${agg[@]}" --jobs 1 --iters 2 --sizes 4K
refuse_full "help onto a full disk" "${agg[@]}" --help
expect "help" 0 "usage: trib-perf agg" "${agg[@]}" --help
finish
