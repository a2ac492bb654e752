#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mpi.sh - MPI_Allreduce of an unmodified program, plain and through trib-mpi.
#
# Sums of double in place and out of place, malloc memory. Each round launches, for each MPI and number of
# ranks, the program plain, with trib-mpi ("chosen": the faster side for each size; with --after 8, because
# the program is too short for the default), and with trib-mpi --prefer tributary ("ours"). Ranks are bound
# to cores if there are enough.
# shellcheck disable=SC2034,SC2154 # the driver sets and reads them
# shellcheck source=/dev/null
. "$(dirname "$0")/driver.sh"
quick "1 round, three sizes, 2 ranks: a smoke test" rounds=1 ranks_list=2 sizes=8,4096,2097152
options rounds "ranks=2 4 8" sizes=8,64,4096,32768,262144,2097152,16777216 samples=3
option sample-ms 8 MS "time of a sample, or one call"
options limit=40
option only '' LIST "openmpi, mpich"
options write
take_arguments "$@"
unset TRIB_MPI
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TRIB_MPI_MODULES=$build/.libs

columns=mpi,way,ranks,place,bytes,us
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

mpis=''
for mpi in openmpi mpich; do
    wanted "$mpi" || continue
    if [ ! -e "$TRIB_MPI_MODULES/libtributary_mpi-$mpi.so" ]; then
        missing+=("$mpi, for which there is no module")
    elif build_peer "mpi_sums.$mpi" "mpicc.$mpi" -O2 "$here/peers/mpi_sums.c"; then
        mpis+=" $mpi"
    fi
done

one_round() {
    local mpi n way
    for mpi in $mpis; do
        for n in $ranks_list; do
            for way in plain chosen ours; do
                contend "$mpi" "$mpi $way, $n ranks" guarded one "$mpi" "$way" "$n"
            done
        done
    done
}
measure
about="MPI_Allreduce, sums of double, malloc memory; $rounds launches, interleaved, $samples samples each."
finish split_by="mpi place ranks" name=way own="^(chosen|ours)$" key=way \
    run='"collective": "allreduce", "dtype": "f64", "op": "sum"'
