#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# collectives.sh - compare the other collectives with Open MPI and MPICH.
#
#   perf/bench/collectives.sh [OPTION]… BUILD_DIR OUT_DIR
#
# Runs allreduce.sh --collective NAME, with these options, for allgather, reduce-scatter, gather, scatter,
# alltoall, scan, exscan and sendrecv (messages around a ring), each in its own folder in OUT_DIR,
# and joins their tables in OUT_DIR/bench.md.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 2 ] || { sed -n '4,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=${!#}
mkdir -p "$out"
ended=''
trap 'ended=yes' INT # the running bench prints tables of its results so far
for collective in allgather reduce-scatter gather scatter alltoall scan exscan sendrecv; do
    [ -z "$ended" ] || break
    rm -f "$out/$collective/bench.md"
    "$here/bench/allreduce.sh" --collective "$collective" "${@:1:$#-1}" "$out/$collective" >/dev/null
done
for collective in allgather reduce-scatter gather scatter alltoall scan exscan sendrecv; do
    [ -e "$out/$collective/bench.md" ] || continue
    printf '## %s\n\n' "$collective"
    cat "$out/$collective/bench.md"
    echo
done | tee "$out/bench.md"
