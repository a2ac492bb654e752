#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Commands in docs/ use only existing options: known_options.py.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
build=$(cd "$build" && pwd)
export PATH=$build/tools:$build/perf:$build/train/program:$build/agg/daemon:$build/bindings/mpi:$PATH PYTHONDONTWRITEBYTECODE=1
for program in trib-train trib-mpi; do
    command -v "$program" >/dev/null || skip_all "this build has no $program"
done
cd "${abs_top_srcdir:-.}" && /usr/bin/python3 tests/examples/known_options.py
