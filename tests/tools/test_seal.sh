#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# TRIB_SEAL=1 as a user runs it: sums that it encrypts, and error messages of rejected settings.
# shellcheck disable=SC2016,SC2317 # ranks expand their own commands
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=("$build/perf/trib-perf" allreduce --check --iters 3 --warmup 1 --sizes "4,4K,300004")
run=$build/tools/trib-run
export TRIB_SEAL=1

without_secret() { # ranks connect over TCP, and no launcher creates a secret for them
    TRIB_KEY='' "$run" --root 127.0.0.1:$((20000 + RANDOM % 12000)) -n 2 -- "$@"
}
export -f without_secret
export run

# Builds and hosts without libsodium report that; nothing else can be tested there.
TRIB_TRANSPORT=tcp "${perf[@]}" -n 2 >"$said" 2>&1 </dev/null
if grep -q "needs libsodium on all hosts" "$said"; then
    TRIB_TRANSPORT=tcp expect "without libsodium tcp is refused" any "unset TRIB_SEAL" "${perf[@]}" -n 2
    TRIB_TRANSPORT=shm expect "without libsodium shm is not" 0 "allreduce" "${perf[@]}" -n 2
    TRIB_TRANSPORT=auto expect "without libsodium one host is not" 0 "allreduce" "${perf[@]}" -n 2
    finish
fi

for algorithm in ring direct tree halving-doubling; do
    TRIB_TRANSPORT=tcp expect "sealed tcp, algorithm $algorithm" 0 "algorithm $algorithm" "${perf[@]}" -n 4 \
        --algorithm "$algorithm"
done
TRIB_TRANSPORT=tcp:aes=0 expect "sealed tcp without AES" 0 "allreduce" "${perf[@]}" -n 3
TRIB_TRANSPORT=tcp expect "sealed words of a codec" 0 "codec topk" "${perf[@]}" -n 3 --codec topk:ratio=0.1
TRIB_TRANSPORT=auto:ranks_per_host=1 expect "sealed tcp chosen by auto" 0 "tcp" "$run" -n 2 -- \
    "$build/tools/trib-info" --reach
TRIB_LOG=info TRIB_TRANSPORT=tcp expect "the log says by what" 0 "rank 1 encrypts its traffic with" \
    "${perf[@]}" -n 2

for seals in 0 1; do
    TRIB_TRANSPORT=tcp expect "ranks that differ" 1 "has seal=$seals, rank 0" "$run" -n 2 -- \
        env FIRST=$((1 - seals)) sh -c 'TRIB_SEAL=$(((FIRST + TRIB_RANK) % 2)) exec "$@"' sh "${perf[@]}"
done

need="TRIB_SEAL=1 needs a secret, but this job has none: start it with trib-run"
TRIB_TRANSPORT=tcp expect "no secret" 1 "$need" bash -c 'without_secret "$@"' sh "${perf[@]}"
TRIB_TRANSPORT=auto:ranks_per_host=1 expect "no secret, two hosts" 1 "tcp: $need" \
    bash -c 'without_secret "$@"' sh "${perf[@]}"
TRIB_TRANSPORT=auto expect "no secret, one host" 0 "allreduce" bash -c 'without_secret "$@"' sh "${perf[@]}"
TRIB_TRANSPORT=shm expect "no secret, shm" 0 "allreduce" bash -c 'without_secret "$@"' sh "${perf[@]}"
TRIB_TRANSPORT=tcp expect "no secret, one rank" 0 "allreduce" "${perf[@]}" -n 1

cannot="cannot encrypt its traffic"
for transport in verbs ucx; do
    TRIB_TRANSPORT=$transport "${perf[@]}" -n 2 >"$said" 2>&1 </dev/null
    if grep -q "this build of Tributary lacks" "$said"; then
        skip "over $transport" "this build is without it"
        continue
    fi
    TRIB_TRANSPORT=$transport expect "over $transport" 1 "TRIB_SEAL=1: $transport $cannot; use tcp, or auto" \
        "${perf[@]}" -n 2
done
TRIB_TRANSPORT=tcp TRIB_SEAL=maybe expect "a value that is none" any "must be one of 0|1" "${perf[@]}" -n 2
finish
