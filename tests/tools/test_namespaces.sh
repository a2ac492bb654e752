#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The ranks expand their scripts.
# shellcheck disable=SC2016
# Ranks in separate namespaces, like those of containers.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
run=$build/tools/trib-run
perf=$build/perf/trib-perf
quick=(allreduce --check --sizes "8,64K,4M" --iters 3)
nobody=(setpriv "--reuid=65534" "--regid=65534" --clear-groups)

[ "$(id -u)" = 0 ] || skip_all "becoming another user needs root"
chmod 755 "$dir"
"${nobody[@]}" "$perf" --version >"$said" 2>&1 ||
    skip_all "another user cannot run programs of this folder"

# NAME, command that tests for support, command of trib-run up to the ranks
sums() {
    local name=$1 possible=$2 ranks
    shift 2
    if ! $possible >"$said" 2>&1; then
        skip "$name" "such namespaces cannot be made here"
        return
    fi
    for ranks in 2 3; do
        expect "$name, $ranks ranks" 0 "$ranks ranks, tributary" \
            "${before[@]}" "$run" -n $ranks -- "$@" "$perf" "${quick[@]}"
        [ "$(grep -cE 'iB .* 0$|B .* 0$' "$said")" -ge 3 ]
        result $? "$name, $ranks ranks: sums are right"
    done
}

before=("${nobody[@]}")
sums "a user namespace each" "${nobody[*]} unshare -U -r true" unshare -U -r
sums "a user namespace without a user each" "${nobody[*]} unshare -U true" unshare -U
sums "a user and a pid namespace each" \
    "${nobody[*]} unshare -U -r -p -f --mount-proc true" unshare -U -r -p -f --mount-proc
before=()
sums "a pid namespace each" "unshare -p -f --mount-proc true" unshare -p -f --mount-proc
sums "a pid namespace each, and no new /proc" "unshare -p -f true" unshare -p -f
sums "a time namespace each" "unshare -T --fork --boottime 1 true" \
    sh -c 'exec unshare -T --fork --boottime $((TRIB_RANK * 1000000)) --monotonic 77 "$@"' -
before=(unshare -p -f)
sums "all in one pid namespace, and no new /proc" "unshare -p -f true" env
expect "there, shared memory serves" 0 "3 ranks, tributary" env TRIB_TRANSPORT=shm \
    unshare -p -f "$run" -n 3 -- "$perf" "${quick[@]}"
before=()

# Over shared memory, with descriptors that the ranks send to each other.
lose() { # NAME, SIGNAL, message of rank 0 about rank 1
    : >"$said" # otherwise the header of the previous job would match
    TRIB_TRANSPORT=shm TRIB_STOP_TIMEOUT_MS=2000 timeout $((90 * slow)) "${nobody[@]}" \
        "$run" -n 2 -- unshare -U -r sh -c 'echo $$ >"$0.$TRIB_RANK"; exec "$@"' "$dir/pids/of" \
        "$perf" allreduce --sizes 8 --iters 1000000000 >"$said" 2>&1 &
    local job=$!
    within 30 grep -q algbw "$said"
    kill "-$2" "$(cat "$dir/pids/of.1")"
    within 60 grep -q "$3" "$said"
    result $? "$1"
    kill $job 2>/dev/null
    wait $job
}

mkdir -m 777 "$dir/pids"
if "${nobody[@]}" unshare -U -r true >"$said" 2>&1; then
    for memory in alloc register malloc; do
        expect "shared memory between user namespaces, $memory" 0 "3 ranks, tributary" \
            env TRIB_TRANSPORT=shm "${nobody[@]}" "$run" -n 3 -- unshare -U -r "$perf" \
            "${quick[@]}" --memory $memory
        [ "$(grep -cE 'iB .* 0$|B .* 0$' "$said")" -ge 3 ]
        result $? "shared memory between user namespaces, $memory: sums are right"
    done
    expect "auto takes it, too" 0 "is reached by shm" env TRIB_LOG=debug "${nobody[@]}" \
        "$run" -n 2 -- unshare -U -r "$perf" "${quick[@]}"
    rm -f "$dir"/pids/*
    lose "there a rank that is killed is lost" KILL "has died"
    rm -f "$dir"/pids/*
    lose "there a rank that is stopped is lost" STOP "has been stopped for"
fi

# An intermediate program closes unknown descriptors.
expect "a rank without a rendezvous gets the hint --root" any \
    "trib-run --root HOST:PORT" "${nobody[@]}" "$run" -n 2 -- unshare -U -r bash -c \
    'for fd in /proc/self/fd/*; do fd=${fd##*/}; [ "$fd" -lt 3 ] || eval "exec $fd>&-"; done
     exec "$@"' - "$build/examples/sum"
finish
