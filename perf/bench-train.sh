#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench-train.sh - trib-train compare, whole.
#
#   perf/bench-train.sh BUILD_DIR OUT_DIR [ARGUMENT]…
#
# The arguments go to trib-train compare: tasks, rows, stragglers, --quick, --seeds N. Into OUT_DIR go
# compare.md, compare.csv, compare.json, stragglers.csv, curves and pictures; perf/results/training.md
# has the tables of compare.md, docs/training.md some rows, and docs/training/ the pictures.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '4,10s/^# \?//p' "$0" >&2; exit 2; }
build=$1 out=$2
shift 2
mkdir -p "$out"

begin=$SECONDS
"$build/train/program/trib-train" compare --out "$out" "$@"
echo "It took $(((SECONDS - begin) / 60)) min; written to $out: compare.md, compare.csv, compare.json, pictures" >&2
