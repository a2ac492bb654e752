#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh BUILD SECONDS - run each fuzz target of a --enable-fuzz build for SECONDS. What a
# target learns stays in BUILD/fuzz/; what it finds is a file there, and a failure.

set -u
build=$1
seconds=$2
here=$(dirname "$0")
failed=0

set --
for source in "$here"/fuzz_*.c; do
    set -- "$@" "tests/fuzz/$(basename "$source" .c)"
done
make -C "$build" -s -j "$(nproc)" "$@" >/dev/null || exit 1
for source in "$here"/fuzz_*.c; do
    name=$(basename "$source" .c)
    found=$build/fuzz/$name
    mkdir -p "$found/corpus"
    echo "== $name: $seconds s"
    if ! "$build/tests/fuzz/$name" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="$found/" "$found/corpus" "$here/corpus/$name" \
        >"$found/log" 2>&1; then
        tail -n 40 "$found/log"
        failed=$((failed + 1))
    fi
    grep -E 'stat::number_of_executed_units' "$found/log" || true
done
echo "$failed targets failed"
[ "$failed" = 0 ]
