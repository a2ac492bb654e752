#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench-train.sh - trib-train compare, whole, with a tribd for the strategies that need one.
#
#   perf/bench-train.sh BUILD_DIR OUT_DIR [ARGUMENT]…
#
# The arguments go to trib-train compare: tasks, rows, --quick, --seeds N. Into OUT_DIR go compare.md,
# compare.csv, compare.json, curves and pictures; docs/training.md has the tables of compare.md, and
# docs/training/ the pictures.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '4,9s/^# \?//p' "$0" >&2; exit 2; }
build=$1 out=$2
shift 2
mkdir -p "$out"

folder=$(mktemp -d)
tribd=''
at_exit() {
    [ -z "$tribd" ] || kill "$tribd" 2>/dev/null || :
    rm -rf "$folder"
}
trap at_exit EXIT
trap 'exit 130' INT TERM HUP
(umask 077 && head -c 32 /dev/urandom >"$folder/key")
port=$((20000 + $$ % 10000))
TRIBD_KEY=$folder/key TRIBD_LISTEN=127.0.0.1:$port TRIBD_HTTP='' \
    "$build/tribd/tribd" >"$out/tribd.log" 2>&1 &
tribd=$!

begin=$SECONDS
TRIB_SERVICE_KEY=$folder/key "$build/train/program/trib-train" compare \
    --service "127.0.0.1:$port" --out "$out" "$@"
echo "It took $(((SECONDS - begin) / 60)) min; written to $out: compare.md, compare.csv, compare.json, pictures" >&2
