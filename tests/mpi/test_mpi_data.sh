#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What unmodified MPI programs may pass to a collective, under trib-mpi: datatypes of any
# order, buffers that are NULL where nothing is moved, and wrong arguments.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
source=${abs_top_srcdir:-.}
build=$(cd "$build" && pwd)
start=$build/mpi/trib-mpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TRIB_MPI_MODULES=$build/.libs
export TMPDIR=$dir # mpiruns that end remove what others begin to use
unset TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_CODEC

always=(--prefer tributary --after 0)

compiled() { # MPI PROGRAM
    "mpicc.$1" -O1 "$source/tests/mpi/$2.c" -o "$dir/$2.$1" >"$said" 2>&1
    result $? "$1: $2 compiles"
}

# MPI's own error classes, and the ranks stay together.
refused_calls() { # MPI
    compiled "$1" refused_calls
    "${run[@]}" -n 3 "$dir/refused_calls.$1" 2>/dev/null >"$dir/plain"
    result $? "$1: MPI alone refuses the wrong calls"
    expect_seconds=60 expect "$1: wrong calls, and none on some ranks" 0 "wrong 0" \
        "${run[@]}" -n 3 "$start" "${always[@]}" "$dir/refused_calls.$1"
    grep -E "^(MPI_|wrong)" "$said" | diff "$dir/plain" - >"$said.differs"
    result $? "$1: the error classes are those of MPI alone"
    expect "$1: ranks that disagree" 0 "wrong 0" \
        "${run[@]}" -n 3 "$start" "${always[@]}" "$dir/refused_calls.$1" disagree
}

all_of() { # MPI
    refused_calls "$1"
    compiled "$1" datatypes
    expect "$1: datatypes in another order than memory" 0 "wrong 0" \
        "${run[@]}" -n 3 "$start" "${always[@]}" "$dir/datatypes.$1"
}

if [ "$(nm -D "$build/.libs/libtributary.so" | grep -cE '__(asan|tsan)_init')" != 0 ]; then
    why="a program of mpicc does not load a library that is built for a sanitizer"
fi
for mpi in openmpi mpich; do
    run=("mpirun.$mpi")
    [ $mpi = mpich ] || run+=(--oversubscribe)
    if [ -n "${why:-}" ]; then
        skip "$mpi" "$why"
    elif [ ! -e "$build/.libs/libtributary_mpi-$mpi.so" ]; then
        skip "$mpi" "configure did not find its headers"
    elif ! missing "mpirun.$mpi" "$mpi" && ! missing "mpicc.$mpi" "$mpi"; then
        all_of $mpi
    fi
done
finish
