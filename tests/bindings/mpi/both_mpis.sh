# shellcheck shell=bash disable=SC2034,SC2154 # of and for the scripts around it
# SPDX-License-Identifier: BSD-3-Clause
# Helpers of tests that run programs under trib-mpi: each_mpi, compiled. Source it after tap.sh.
source=${abs_top_srcdir:-.}
build=$(cd "$build" && pwd)
start=$build/bindings/mpi/trib-mpi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TRIB_MPI_MODULES=$build/.libs
export TMPDIR=$dir # an ending mpirun removes folders that a starting one uses
unset TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_CODEC
always=(--prefer tributary --after 0)

# Build programs with the library's sanitizer: a program without it could not load the module. The
# MPI libraries leak, and ThreadSanitizer does not see their synchronisation. A small quarantine of
# freed memory lets a program check that its memory does not grow.
sanitizer=$(sanitizer)
sanitized=()
if [ "$sanitizer" = asan ]; then
    sanitized=(-fsanitize=address)
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0:quarantine_size_mb=4
fi

# PROGRAM: compile tests/bindings/mpi/PROGRAM.c to $dir/PROGRAM.$mpi
compiled() {
    "mpicc.$mpi" "${sanitized[@]}" -O1 -w "$source/tests/bindings/mpi/$1.c" -o "$dir/$1.$mpi" -lpthread >"$said" 2>&1
    result $? "$mpi: $1 compiles"
}

# Print the path of a library that makes waiting ranks of MPICH yield their core.
yielding() {
    local library=$dir/yielding_ucp.so

    [ -z "$sanitizer" ] || return # its library must be the first that is preloaded
    [ -e "$library" ] || cc -O1 -shared -fPIC -D_GNU_SOURCE "$source/tests/bindings/mpi/yielding_ucp.c" -o "$library" -ldl &&
        echo "$library"
}

# FUNCTION: call it for each installed MPI, which is $mpi and the argument, with the launch
# command in `run`.
each_mpi() {
    local why=
    [ "$sanitizer" != tsan ] || why="the thread sanitizer does not see how MPI synchronises"
    for mpi in openmpi mpich; do
        run=("mpirun.$mpi")
        if [ $mpi = mpich ]; then
            run=(env "LD_PRELOAD=$(yielding)" "${run[@]}")
        else
            run+=(--oversubscribe)
        fi
        if [ -n "$why" ]; then
            skip "$mpi" "$why"
        elif ! within 3 test -e "$build/.libs/libtributary_mpi-$mpi.so"; then # an installation beside it links it again
            skip "$mpi" "configure did not find its headers"
        elif ! missing "mpirun.$mpi" "$mpi" && ! missing "mpicc.$mpi" "$mpi"; then
            "$1" "$mpi"
        fi
    done
}
