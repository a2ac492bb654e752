#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# collectives.sh - compare the other collectives with Open MPI and MPICH.
#
# Runs allreduce.sh --collective NAME, with these options, for each, in its own folder in OUT_DIR, and joins their
# tables in OUT_DIR/bench.md; sendrecv sends messages around a ring.
#
#   perf/bench/collectives.sh [OPTION]… BUILD_DIR OUT_DIR
set -euo pipefail
[ $# -ge 2 ] || { sed -n '4,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=${!#}
mkdir -p "$out"
ended=''
trap 'ended=yes' INT # the running bench prints tables of its results so far
for collective in allgather reduce-scatter gather scatter alltoall scan exscan sendrecv; do
    rm -f "$out/$collective/bench.md"
    [ -n "$ended" ] || "$(dirname "$0")/allreduce.sh" --collective "$collective" "${@:1:$#-1}" "$out/$collective" >/dev/null
    [ ! -e "$out/$collective/bench.md" ] || printf '## %s\n\n%s\n\n' "$collective" "$(cat "$out/$collective/bench.md")"
done >"$out/bench.md"
cat "$out/bench.md"
