#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# train.sh - run all of trib-train compare.
#
#   perf/bench/train.sh BUILD_DIR OUT_DIR [ARGUMENT]…
#
# The arguments are passed to trib-train compare: tasks, rows, stragglers, --quick, --seeds N. The files in OUT_DIR are
# compare.md, compare.csv, compare.json, stragglers.csv, curves and plots. perf/results/training.md
# contains the tables of compare.md, docs/training.md some of its rows, and docs/training/ the plots.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '4,10s/^# \?//p' "$0" >&2; exit 2; }
build=$1 out=$2
shift 2
mkdir -p "$out"

begin=$SECONDS
"$build/train/program/trib-train" compare --out "$out" "$@"
echo "It took $(((SECONDS - begin) / 60)) min; written to $out: compare.md, compare.csv, compare.json, pictures" >&2
