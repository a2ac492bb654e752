#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The ranks expand their scripts; functions are called through within.
# shellcheck disable=SC2016,SC2317
# trib-run as a user runs it: output, exit codes, signals, no leaked process.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
run=$build/tools/trib-run
shown=("$dir/out" "$dir/err") # printed by a failed test

# NAME, expected exit code, required words of the output ("" for none), arguments
expect() {
    local name=$1 code=$2 words=$3
    shift 3
    timeout $((60 * slow)) "$run" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    local got=$?
    echo "exit code $got" >>"$dir/err"
    cat "$dir/out" "$dir/err" | grep -qF -- "$words" && [ "$got" -eq "$code" ]
    result $? "$name"
}

# Arguments and exit codes
expect "help" 0 "start ranks of a program on this host" --help
expect "help names its own exit codes" 0 "125: cannot start ranks" --help
expect "version" 0 "trib-run " --version
expect "no ranks" 2 "number of ranks missing" -- true
expect "no program" 2 "program missing" -n 2
expect "no such number" 2 "from 1 to 4096" -n x -- true
expect "no such option" 2 "--frob" -n 2 --frob -- true
expect "no such tag" 2 "none or prefix" -n 2 --tag x -- true
expect "no such binding" 2 "none, core or auto" -n 2 --bind x -- true
expect "no such time" 2 "number of seconds" -n 2 --timeout -1 -- true
expect "a program that is not there" 127 "cannot run no-such-program: No such file" \
    -n 3 -- no-such-program
echo x >"$dir/data"
expect "a file that is no program" 126 "Permission denied" -n 2 -- "$dir/data"
expect "all is well" 0 "" -n 3 -- true
expect "exit code of a rank" 7 "rank 2 (process" -n 3 -- \
    sh -c '[ $TRIB_RANK != 2 ] || exit 7'
expect "a signal ends a rank" 137 "was killed by signal 9 (Killed)" -n 2 -- \
    sh -c '[ $TRIB_RANK != 1 ] || kill -9 $$'
# Rank 0 fails after trib-run has reaped rank 1 and recorded its status.
expect "the first failure counts" 5 "" -n 2 -- sh -c '
    if [ $TRIB_RANK = 1 ]; then
        echo $$ >$0/part
        mv $0/part $0/first
        exit 5
    fi
    while [ ! -e $0/first ] || [ -e /proc/$(cat $0/first) ]; do sleep 0.02; done
    exit 6' "$dir"
expect "others are ended after a grace" 4 "was killed by signal 15" -n 3 --grace 0.2 -- \
    sh -c '[ $TRIB_RANK != 1 ] || exit 4; exec sleep 30'
expect "others may end by themselves" 4 "exited with 4; the other ranks have 10 s" -n 2 -- \
    sh -c '[ $TRIB_RANK != 1 ] || exit 4; sleep 0.3'
expect "time-out" 124 "timeout of 0.3 s expired" -n 2 --timeout 0.3 -- sleep 30
expect "a stopped rank is ended, too" 124 "" -n 2 --timeout 0.3 -- \
    sh -c '[ $TRIB_RANK != 1 ] || kill -STOP $$; exec sleep 30'

# Environment
expect "environment" 0 "[1] 1 of 2 local:/proc/" -n 2 -- \
    sh -c 'echo $TRIB_RANK of $TRIB_SIZE $TRIB_ROOT'
expect "meeting over TCP" 0 "[1] localhost:4711" -n 2 --root localhost:4711 -- \
    sh -c 'echo $TRIB_ROOT'
expect "a core for each rank" 0 "[1] bound" -n 2 --bind core -- \
    sh -c 'taskset -p $$ | grep -q "mask: [1248]0*\$" && echo bound'

expect "-n2 is -n 2" 0 "[1] 1 of 2" -n2 sh -c 'echo $TRIB_RANK of $TRIB_SIZE'
expect "--ranks=2, too" 0 "[1] 1 of 2" --ranks=2 -- sh -c 'echo $TRIB_RANK of $TRIB_SIZE'

# Cores: by default ranks have equal shares where there are enough cores.
# ARGUMENT...: print the number of cores of each rank, and of cores that two ranks share
shares() {
    "$run" "$@" --tag none -- grep Cpus_allowed_list /proc/self/status >"$dir/lists" 2>"$dir/err"
    while read -r _ list; do
        for range in ${list//,/ }; do
            seq "${range%-*}" "${range#*-}"
        done | tee "$dir/one" >>"$dir/all"
        wc -l <"$dir/one"
    done <"$dir/lists" | sort -u | paste -sd ' '
    sort "$dir/all" | uniq -d | wc -l
    rm "$dir/all"
}
cores=$(nproc)
if [ "$cores" -lt 2 ] || [ "$(lscpu -p=core | grep -vc '#')" != "$(lscpu -p=core | grep -v '#' | sort -u | wc -l)" ]; then
    skip "a share of the cores for each rank" "one core, or several threads each"
else
    [ "$(shares -n 2)" = "$((cores / 2))$([ $((cores % 2)) = 0 ] || echo " $((cores / 2 + 1))")
0" ]
    result $? "a share of the cores for each rank"
    [ "$(shares -n 2 --bind none)" = "$cores
$cores" ]
    result $? "--bind none: all cores for all"
    [ "$(shares -n 1)" = "$cores
0" ]
    result $? "all cores for one rank"
    [ "$(shares -n $((cores + 1)))" = "$cores
$cores" ]
    result $? "more ranks than cores are not bound"
    first=$(taskset -pc $$ | grep -oE '[0-9]+' | sed -n 2p)
    [ "$(taskset -c "$first" "$run" -n 2 --tag none -- grep -cP "Cpus_allowed_list:\t$first$" /proc/self/status | paste -sd ' ')" = "1 1" ]
    result $? "nor do ranks leave the cores that trib-run has been given"
    # Only on a terminal it prints a notice, with the option to disable it.
    script -qec "'$run' -n 2 -- true" /dev/null >"$dir/out" </dev/null
    grep -q "binding each of 2 ranks to .*--bind none" "$dir/out" &&
        [ -z "$("$run" -n 2 -- true 2>&1)" ]
    result $? "a line on a terminal says so"
    script -qec "'$run' -n 2 --bind none -- true; '$run' -n 1 -- true" /dev/null >"$dir/out" </dev/null
    ! grep -q ":" "$dir/out"
    result $? "and none where nothing is bound"
fi

# Output
"$run" -n 4 -- sh -c '
    i=0
    while [ $i -lt 300 ]; do
        printf "%s-" begin $i
        printf "%060d" $i
        printf " end\n"
        i=$((i + 1))
    done' >"$dir/out" 2>"$dir/err"
[ "$(wc -l <"$dir/out")" -eq 1200 ] &&
    [ "$(grep -cE '^\[[0-3]\] begin-[0-9]+-[0-9]{60} end$' "$dir/out")" -eq 1200 ]
result $? "lines stay whole, each with its rank"
expect "a last line without line feed" 0 "[0] unfinished" -n 1 -- printf unfinished
expect "lines without a tag" 0 "plain" -n 2 --tag none -- echo plain
[ "$(sort -u "$dir/out")" = plain ] && [ "$(wc -l <"$dir/out")" -eq 2 ]
result $? "nothing is added to them"
expect "files for each rank" 0 "" -n 2 --output "$dir/logs" -- \
    sh -c 'echo out $TRIB_RANK; echo err $TRIB_RANK >&2'
[ "$(cat "$dir/logs/rank-1.out")" = "out 1" ] && [ "$(cat "$dir/logs/rank-0.err")" = "err 0" ] &&
    [ ! -s "$dir/out" ]
result $? "hold what the ranks say"
expect "a folder that cannot be made" 125 "cannot create directory" \
    -n 1 --output /proc/no/folder -- true
mkdir -p "$dir/taken/rank-1.out"
expect "a file that cannot be written" 125 "rank-1.out: Is a directory" \
    -n 2 --output "$dir/taken" -- touch "$dir/begun"
[ ! -e "$dir/begun" ]
result $? "is found before the first rank starts"
"$run" -n 2 -- sh -c 'yes | head -c 3000000' 2>"$dir/err" | head -n 1 >"$dir/out"
[ "${PIPESTATUS[0]}" -eq 141 ] && [ "$(wc -l <"$dir/out")" -eq 1 ] && [ ! -s "$dir/err" ]
result $? "a reader that goes away ends the ranks, without a word"
timeout $((20 * slow)) "$run" -n 2 -- yes 2>"$dir/err" | head -n 1 >"$dir/out"
[ "${PIPESTATUS[0]}" -eq 141 ] && [ ! -s "$dir/err" ]
result $? "and ranks that would never end"
timeout $((20 * slow)) "$run" -n 2 -- sh -c 'yes >&2' 2>&1 >"$dir/err" | head -n 1 >"$dir/out"
[ "${PIPESTATUS[0]}" -eq 141 ]
result $? "a reader of standard error that goes away"
timeout $((20 * slow)) "$run" -n 2 --grace 0.5 -- \
    sh -c 'trap "" PIPE; echo first; sleep 0.3; echo second; exec sleep 60' 2>"$dir/err" |
    head -n 1 >"$dir/out"
[ "${PIPESTATUS[0]}" -eq 141 ] && grep -q "standard output has no reader left" "$dir/err"
result $? "ranks that ignore SIGPIPE are ended after the grace"
timeout $((20 * slow)) "$run" -n 2 -- yes >/dev/full 2>"$dir/err"
[ $? -eq 125 ] &&
    grep -q "cannot write to standard output: No space left on device" "$dir/err"
result $? "a full disk ends the ranks"
timeout $((20 * slow)) "$run" -n 2 -- sh -c 'yes >&2' 2>/dev/full >"$dir/out"
[ $? -eq 125 ]
result $? "a full disk of standard error, too"
timeout $((20 * slow)) "$run" -n 2 -o "$dir/kept" -- sh -c 'echo out; echo err >&2' >/dev/full &&
    [ "$(cat "$dir/kept/rank-1.err")" = err ]
result $? "and ends none that write into files of their own"
"$run" --help >/dev/full 2>"$dir/err"
[ $? -eq 1 ] && grep -q "cannot write to standard output: No space left" "$dir/err"
result $? "help that cannot be shown"
(
    ulimit -f 64
    timeout $((20 * slow)) "$run" -n 2 -- yes >"$dir/much" 2>"$dir/err"
)
[ $? -eq 125 ] && grep -q "standard output: File too large" "$dir/err"
result $? "a file beyond ulimit -f"

# Closed descriptors: the next opened files would get their numbers.
timeout $((20 * slow)) "$run" -n 2 -- true >&- 2>"$dir/err"
result $? "standard output is closed"
timeout $((20 * slow)) "$run" -n 2 -- sh -c '[ -e /dev/fd/2 ] && echo said' \
    <&- 2>&- >"$dir/out" && [ "$(wc -l <"$dir/out")" -eq 2 ]
result $? "standard input and error are closed"
timeout $((20 * slow)) "$run" -n 2 -- sh -c 'exit 3' <&- >&- 2>&-
[ $? -eq 3 ]
result $? "all are closed"

# ulimit -f also limits shared memory. Use pipes, because files cannot be written then.
limited=$(
    ulimit -f 0
    timeout $((20 * slow)) "$run" -n 2 -- true 2>&1
    echo "exit code $?"
)
echo "$limited" >"$dir/err"
if [ "$slow" = 1 ] || [[ $limited == *"exit code 125" ]]; then
    [[ $limited == *"cannot set up the local rendezvous"*"raise ulimit -f"*"exit code 125" ]]
    result $? "no file may be made: ulimit -f 0"
else
    skip "no file may be made: ulimit -f 0" "a sanitizer ends its program there"
fi

# State that trib-run inherits: ignored and blocked signals, few open files
run_as() { # command before trib-run; arguments
    local before=$1
    shift
    # shellcheck disable=SC2086 # words
    timeout -k 5 $((60 * slow)) $before "$run" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    got=$?
    echo "exit code $got" >>"$dir/err"
}
run_as "env --ignore-signal=CHLD --block-signal=CHLD --block-signal=TERM" -n 2 -- sh -c '
    grep -E "Sig(Blk|Ign)" /proc/self/status
    exit 3'
[ $got -eq 3 ] && grep -qF "exited with 3" "$dir/err"
result $? "a parent that ignores SIGCHLD hides no failure"
# Signals 1 to 31; the C library reserves the first ones above.
[ "$(grep -cE 'Sig(Blk|Ign):.*[08]0000000$' "$dir/out")" -eq 4 ]
result $? "ranks have no signal blocked or ignored"
run_as "prlimit --nofile=200:200" -n 120 -o "$dir/many" -- sh -c 'sleep 0.2; exit 3'
[ $got -eq 3 ] && grep -qF "exited with 3" "$dir/err"
result $? "more ranks than files may be open, where they write into files"
run_as "prlimit --nofile=200:200" -n 120 -- true
[ $got -eq 125 ] && grep -qF "Too many open files: raise ulimit -n" "$dir/err"
result $? "more pipes than files may be open: the cure is said"
run_as "prlimit --nofile=200:20000" -n 120 --tag none -- sh -c 'ulimit -n'
[ $got -eq 0 ] && [ "$(uniq -c "$dir/out" | tr -s ' ')" = " 120 200" ]
result $? "the soft limit is raised for trib-run, and as it was for the ranks"

# Input
echo hello | timeout $((60 * slow)) "$run" -n 3 -- cat >"$dir/out" 2>"$dir/err"
[ "$(cat "$dir/out")" = "[0] hello" ]
result $? "input is for rank 0"

# Signals: each rank prints its pid and the signals that it receives. A shell starts background
# jobs with SIGINT ignored, which trib-run would keep.
start() { # additional code for the script of each rank
    : >"$dir/pids"
    : >"$dir/got"
    # shellcheck disable=SC2016
    env --default-signal=INT "$run" -n 3 -- sh -c '
        trap "echo USR1 >>$0/got" USR1
        '"$1"'
        echo $$ >>$0/pids
        while :; do sleep 0.02; done' "$dir" >"$dir/out" 2>"$dir/err" &
    job=$!
    within 20 has_lines "$dir/pids" 3
    mapfile -t pids <"$dir/pids"
}

start ""
kill -USR1 $job
within 20 has_lines "$dir/got" 3
result $? "SIGUSR1 reaches all ranks"
kill -TERM $job
wait $job
[ $? -eq 143 ] && gone "${pids[@]}"
result $? "SIGTERM ends all ranks"

start 'trap "echo INT >>$0/got" INT'
kill -INT $job
within 20 has_lines "$dir/got" 3
result $? "SIGINT reaches all ranks"
kill -INT $job
wait $job
[ $? -eq 137 ] && gone "${pids[@]}"
result $? "a second SIGINT kills"

start '(trap "" HUP TERM; exec sleep 60) & echo $! >>$0/pids'
within 20 has_lines "$dir/pids" 6
mapfile -t pids <"$dir/pids"
kill -KILL $job
wait $job 2>/dev/null
within 20 gone "${pids[@]}"
result $? "kill -9 of trib-run ends the ranks and what they started"

expect "what a rank leaves behind is ended" 0 "" -n 2 -- \
    sh -c "sleep 60 & echo \$! >>$dir/left"
mapfile -t pids <"$dir/left"
[ "${#pids[@]}" -eq 2 ] && gone "${pids[@]}"
result $? "and is no zombie"

# A secret for each job, passed only in the environment
unset TRIB_KEY
"$run" -n 2 --tag none -- sh -c 'echo $TRIB_KEY' >"$dir/keys"
"$run" -n 1 --tag none -- sh -c 'echo $TRIB_KEY' >>"$dir/keys"
[ "$(grep -cE '^[0-9a-f]{64}$' "$dir/keys")" = 3 ] && [ "$(sort -u "$dir/keys" | wc -l)" = 2 ]
result $? "all ranks of a job have one secret, and another job another"
[ "$(TRIB_KEY=mine "$run" -n 1 --tag none -- sh -c 'echo $TRIB_KEY')" = mine ]
result $? "a secret that is set stays"

# Ranks that connect, locally and over TCP
perf=$build/perf/trib-perf
if [ -x "$perf" ]; then
    limited=$(
        ulimit -f 100
        timeout $((60 * slow)) "$run" -n 2 -- "$perf" allreduce --sizes 8,4M --iters 3 --check 2>&1
        echo "exit code $?"
    )
    echo "$limited" >"$dir/err"
    [[ $limited == *"exit code 0" ]]
    result $? "ranks meet below ulimit -f"
    expect "ranks meet" 0 "" -n 2 -- "$perf" allreduce --sizes 8 --iters 10
    meet_at() { # PORT
        timeout $((60 * slow)) "$run" -n 2 --root "127.0.0.1:$1" -- \
            "$perf" allreduce --sizes 8 --iters 10 >"$dir/out" 2>"$dir/err" </dev/null
    }
    # The first port may be in use.
    meet_at $((20000 + $$ % 10000)) || meet_at $((10000 + $$ % 10000))
    result $? "ranks meet over TCP"
fi

finish
