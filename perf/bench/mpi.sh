#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mpi.sh - MPI_Allreduce of an unmodified program, plain and through trib-mpi.
#
#   perf/bench/mpi.sh [OPTION]… BUILD_DIR OUT_DIR
#
#   --quick           1 round, three sizes, 2 ranks: a smoke test
#   --rounds N        launches of each [5]
#   --ranks LIST      such as "2 4" [2 4 8]
#   --sizes LIST      bytes, comma-separated [8,64,4096,32768,262144,2097152,16777216]
#   --samples N       samples of each size and launch [3]
#   --sample-ms MS    time of a sample, or one call [8]
#   --limit S         time limit of a launch, in seconds [40]
#   --only LIST       openmpi, mpich
#   --write           also write the tables to perf/results/mpi.md
#
# Sums of double in place and out of place, malloc memory. Each round launches, for each MPI and number of
# ranks, the program plain, with trib-mpi ("chosen": the faster side for each size; with --after 8, because
# the program is too short for the default), and with trib-mpi --prefer tributary ("ours"). Ranks are bound
# to cores if there are enough. The files in OUT_DIR are runs.csv (all launches), bench.md (tables), errors.log.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

rounds=5 ranks_list="2 4 8" sizes=8,64,4096,32768,262144,2097152,16777216 samples=3 sample_ms=8
limit=40 only='' write=''

# shellcheck source=perf/bench/driver.sh
. "$here/bench/driver.sh"
# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"

# shellcheck disable=SC2034 # take_arguments reads it
declare -A settings=([rounds]=rounds [ranks]=ranks_list [sizes]=sizes [samples]=samples
    [sample-ms]=sample_ms [limit]=limit [only]=only)
on_quick() { rounds=1 ranks_list=2 sizes=8,4096,2097152; }
on_write() { write=yes; }
take_arguments "$@"
unset TRIB_CODEC TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_SERVICE TRIB_MPI
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TRIB_MPI_MODULES=$build/.libs

# Rows "mpi,way,ranks,place,bytes,us".
one() { # MPI WAY RANKS
    local run=("mpirun.$1") settle=4
    if [ "$1" = openmpi ]; then
        run+=(--oversubscribe)
        [ "$3" -le "$(nproc)" ] && run+=(--bind-to core) || run+=(--bind-to none --mca mpi_yield_when_idle 1)
    elif [ "$3" -le "$(nproc)" ]; then
        run+=(-bind-to core)
    fi
    run+=(-n "$3")
    [ "$2" = plain ] || { run+=("$build/bindings/mpi/trib-mpi"); settle=100; }
    [ "$2" != chosen ] || run+=(--after 8)
    [ "$2" != ours ] || run+=(--prefer tributary)
    "${run[@]}" "$out/peers/mpi_sums.$1" -l "$1,$2" -s "$sizes" -n "$samples" -w "$settle" \
        -t "0$(printf .%03d "$sample_ms")"
}

export build out sizes samples sample_ms
export -f one

mpis=''
for mpi in openmpi mpich; do
    wanted "$mpi" || continue
    if [ ! -e "$TRIB_MPI_MODULES/libtributary_mpi-$mpi.so" ]; then
        missing+=("$mpi, for which there is no module")
    elif build_peer "mpi_sums.$mpi" "mpicc.$mpi" -O2 "$here/peers/mpi_sums.c"; then
        mpis+=" $mpi"
    fi
done

# shellcheck disable=SC2034,SC2086 # say reads it; lists of words
planned=$((rounds * 3 * $(count_of $mpis) * $(count_of $ranks_list)))
echo "round,before,after,mpi,way,ranks,place,bytes,us" >"$runs"
for ((round = 1; round <= rounds; round++)); do
    for mpi in $mpis; do
        for n in $ranks_list; do
            for way in plain chosen ours; do
                launch_probed "$round" "$mpi $way, $n ranks" guarded one "$mpi" "$way" "$n"
            done
        done
    done
done
tables_by_awk mpi "MPI_Allreduce, sums of double, malloc memory; $rounds launches, interleaved, $samples samples each."
write_page split_by="mpi place ranks" name=way own="^(chosen|ours)$" key=way \
    run='"collective": "allreduce", "dtype": "f64", "op": "sum"'
