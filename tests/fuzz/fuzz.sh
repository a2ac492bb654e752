#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# fuzz.sh BUILD seconds|runs|afl [N [TARGET]...] - run each fuzz target, or the named
# ones, of a --enable-fuzz build: for N (20) seconds, N times, or for N seconds with
# AFL++, whose compiler must have built it. Print a line for each. The corpus stays in
# BUILD/fuzz/ or BUILD/afl/, where the next run continues; findings are there as well,
# and make it fail.

set -u
build=$1
how=$2
number=${3:-20}
here=$(dirname "$0")
failed=0
targets=
if [ $# -gt 3 ]; then shift 3; else set --; fi

# number_in FILE NAME - print the number after a name; "?" if the run did not print it.
number_in() {
    sed -n "s/^$2 *: *//p" "$1" 2>/dev/null | grep . || echo '?'
}

# unpack FOLDER - unpack the corpus of the sources.
unpack() {
    rm -rf "$1"
    mkdir -p "$1"
    tar -xf "$here/corpus/$name.tar" -C "$1"
}

libfuzzer() {
    found=$build/fuzz/$name
    mkdir -p "$found/corpus"
    unpack "$found/given"
    if "$build/tests/fuzz/$name" "$@" -rss_limit_mb=2048 -len_control=10 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="$found/" "$found/corpus" \
        "$found/given" >"$found/log" 2>&1; then
        failures=0
    else
        failures=1
        failed=$((failed + 1))
        tail -n 40 "$found/log"
    fi
    echo "$name: $(number_in "$found/log" stat::number_of_executed_units) executions," \
        "$(number_in "$found/log" stat::average_exec_per_sec) a second," \
        "$(number_in "$found/log" stat::new_units_added) new units, $failures failures"
}

# AFL++ would require settings of the whole machine: cores, frequencies, a pinned
# processor. The sanitizer options that it sets turn every error into an abort.
afl() {
    found=$build/afl/$name
    mkdir -p "$found"
    unpack "$found.given"
    stats=$found/default/fuzzer_stats
    if ! env -u ASAN_OPTIONS -u UBSAN_OPTIONS -u LSAN_OPTIONS AFL_NO_UI=1 AFL_AUTORESUME=1 \
        AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_SKIP_CPUFREQ=1 AFL_NO_AFFINITY=1 \
        afl-fuzz -i "$found.given" -o "$found" -V "$number" -m none -t 10000 -- \
        "$build/tests/fuzz/$name" >"$found/log" 2>&1; then
        tail -n 40 "$found/log"
        failed=$((failed + 1))
    elif [ "$(number_in "$stats" saved_crashes) $(number_in "$stats" saved_hangs)" != "0 0" ]; then
        ls "$found"/default/crashes/id* "$found"/default/hangs/id* 2>/dev/null
        failed=$((failed + 1))
    fi
    echo "$name: $(number_in "$stats" execs_done) executions," \
        "$(number_in "$stats" execs_per_sec) a second," \
        "$(number_in "$stats" corpus_found) new units," \
        "$(number_in "$stats" saved_crashes) crashes, $(number_in "$stats" saved_hangs) hangs"
}

case $number in
*[!0-9]*)
    echo "\"$number\" is no number of $how" >&2
    exit 2
    ;;
esac
[ $# -gt 0 ] || for source in "$here"/fuzz_*.c; do
    set -- "$@" "$(basename "$source" .c)"
done
for name; do
    if [ ! -f "$here/$name.c" ]; then
        echo "there is no fuzz target \"$name\", only" "$here"/fuzz_*.c >&2
        exit 2
    fi
    targets="$targets tests/fuzz/$name"
done
cores=$(nproc)
# shellcheck disable=SC2086 # a list
make -C "$build" -s generate && make -C "$build" -s -j "$cores" $targets >/dev/null || exit 1

one() { # run one target; print its line and findings
    name=$1
    failed=0
    case $how in
    # Weighing inputs would take a third of the time of so few runs (-entropic). The
    # process has a low priority, so under load an input may wait for long.
    runs) libfuzzer -runs="$number" -entropic=0 -timeout=300 ;;
    afl) afl ;;
    *) libfuzzer -max_total_time="$number" -timeout=120 ;;
    esac
    return "$failed"
}

# Targets that run for a time run in parallel, one per core.
case $how in runs | afl) cores=1 ;; esac
while [ $# -gt 0 ]; do
    pids=
    beside=0
    while [ $# -gt 0 ] && [ "$beside" -lt "$cores" ]; do
        one "$1" &
        pids="$pids $!"
        beside=$((beside + 1))
        shift
    done
    for pid in $pids; do
        wait "$pid" || failed=$((failed + 1))
    done
done
echo "$failed targets failed"
[ "$failed" = 0 ]
