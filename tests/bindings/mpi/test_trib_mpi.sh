#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Unmodified MPI programs of both MPIs under trib-mpi.
# shellcheck disable=SC2317 # each_mpi calls the functions by name
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/bindings/mpi/both_mpis.sh
. "${abs_top_srcdir:-.}/tests/bindings/mpi/both_mpis.sh"
report=$dir/report.json

# CALL FIELD: print its number in the report
reported() {
    sed -n "s/.*\"call\": \"$1\",.*\"$2\": \([0-9]*\).*/\1/p" "$report"
}

# Print the number of communicators that the library created, according to the report.
communicators() {
    sed -n 's/.*"communicators": \([0-9]*\).*/\1/p' "$report"
}

# NAME, WANTED, GOT
same() {
    [ "$2" = "$3" ] || echo "wanted $2, got $3" >>"$said"
    [ "$2" = "$3" ]
    result $? "$1"
}

always+=("--report=$report")

every_call() { # MPI
    expect "$1: all collectives, types and operators, by the library" 0 "wrong 0" \
        "${run[@]}" -n 3 "$start" "${always[@]}" "$dir/all_collectives.$1" 1 17
    for call in allreduce reduce bcast allgather gather scatter alltoall reduce_scatter \
        reduce_scatter_block allgatherv gatherv scatterv alltoallv barrier ibcast ibarrier; do
        same "$1: no $call is left to MPI" "0 0 0 0 0 0" \
            "$(for f in mpi early never type long small; do reported "$call" "$f"; done | xargs)"
    done
    expect "$1: all collectives, whichever side is faster" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" --after 8 "--report=$report" "$dir/all_collectives.$1" 1 7
    [ "$(reported allreduce mpi)" -gt 0 ] && [ "$(reported allreduce library)" -gt 0 ]
    result $? "$1: both sides are tried"
    expect "$1: MPI alone" 0 "wrong 0" \
        env TRIB_MPI=off "${run[@]}" -n 2 "$start" "$dir/all_collectives.$1" 1
    ! grep -q tributary "$said"
    result $? "$1: and nothing is said"
}

fortran() { # MPI
    local form
    for form in reductions.f90 reductions77.f; do
        "mpif90.$1" "${sanitized[@]}" -fallow-argument-mismatch "$source/tests/bindings/mpi/$form" -o "$dir/$form.$1" >"$said" 2>&1
        result $? "$1: $form compiles"
        rm -f "$report"
        expect "$1: $form" 0 "wrong 0" "${run[@]}" -n 2 "$start" "${always[@]}" "$dir/$form.$1"
        same "$1: $form, both of its reductions" 2 "$(reported allreduce library)"
    done
}

situations() { # MPI
    local s
    for s in progress tested arrived buffered partitioned threads requests completing crossing; do
        expect "$1: $s, 2 ranks" 0 "wrong 0" \
            "${run[@]}" -n 2 "$start" "${always[@]}" "$dir/situations.$1" "$s"
        expect "$1: $s, 4 ranks" 0 "wrong 0" \
            "${run[@]}" -n 4 "$start" "${always[@]}" "$dir/situations.$1" "$s"
    done
    [ "$(reported ibarrier library)" -gt 0 ]
    result $? "$1: the library has non-blocking barriers"
    expect "$1: many communicators, one after the other" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" --after 8 "--report=$report" "$dir/situations.$1" communicators
    expect "$1: a short program" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "--report=$report" "$dir/situations.$1" few
    same "$1: its communicator gets none of the library" 0 "$(communicators)"
    expect "$1: one whose calls are on MPI_COMM_WORLD" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "--report=$report" "$dir/situations.$1" world
    same "$1: this gets one" 1 "$(communicators)"
    expect "$1: a program that spends its time in calls" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "--report=$report" "$dir/situations.$1" busy
    same "$1: it gets one" 1 "$(communicators)"
    for s in killed stopped; do
        # MPICH ends the other ranks at once when a rank is killed.
        [ "$1$s" != mpichkilled ] || continue
        # The library waits for a stopped rank unless the user sets a limit.
        [ "$s" = killed ] || local -x TRIB_STOP_TIMEOUT_MS=1000
        expect_seconds=20 expect "$1: a rank is $s, and is named" any "rank 1 (" \
            "${run[@]}" -n 3 "$start" "${always[@]}" "$dir/situations.$1" "$s"
    done
}

settings() { # MPI
    local p=$dir/all_collectives.$1
    expect "$1: a codec, for long sums of float alone" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "${always[@]}" --codec bf16 "$p" 1 7
    expect "$1: a codec that keeps something is refused" 0 "TRIB_MPI_CODEC=topk" \
        "${run[@]}" -n 2 "$start" --codec topk:ratio=0.01 "$p" 1
    expect "$1: a wrong setting is named, and MPI does all" 0 "TRIB_MPI_MIN=many" \
        "${run[@]}" -n 2 "$start" --min many "$p" 1
    grep -q "wrong 0" "$said"
    result $? "$1: the program runs all the same"
    # shellcheck disable=SC2016 # the ranks expand it
    expect "$1: ranks with other settings" 0 "different values of TRIB_MPI_MIN" \
        "${run[@]}" -n 2 sh -c 'r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
            exec "$0" --after 0 --min $((r * 64)) "$1" 1' "$start" "$p"
    expect "$1: TRIB_CODEC is not for MPI programs" 0 "wrong 0" \
        env TRIB_CODEC=qsgd:bits=2 "${run[@]}" -n 2 "$start" "${always[@]}" "$p" 1100
    expect "$1: calls that are not listed stay with MPI" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "${always[@]}" --calls barrier,bcast "$p" 1
    same "$1: so does allreduce, of which nothing is known" "" "$(reported allreduce library)"
    expect "$1: non-blocking calls alone are listed" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "${always[@]}" --calls iallreduce,ibarrier "$p" 1
    [ "$(reported iallreduce library)" -gt 0 ] && [ "$(reported ibarrier library)" -gt 0 ]
    result $? "$1: the library has them"
    same "$1: and nothing is known of others" "" "$(reported bcast early)$(reported allreduce small)"
    expect "$1: the table" 0 "by library" \
        "${run[@]}" -n 2 "$start" --report --after 0 "$p" 1
}

# With a GPU driver installed: first no rank uses the GPU, then one has a context.
devices() { # MPI
    local p=$dir/all_collectives.$1
    if [ -n "$sanitizer" ]; then
        skip "$1: GPUs" "a sanitizer's library must be loaded before the driver"
        return
    fi
    "${CC:-cc}" -shared -fPIC -Wl,-soname,libcuda.so.1 "$source/tests/bindings/mpi/driver_of_gpu.c" -o "$dir/libcuda.so.1" >"$said" 2>&1
    result $? "$1: a driver of a GPU compiles"
    # shellcheck disable=SC2016 # the ranks expand it
    local start_with='LD_PRELOAD=$0 exec "$@"'
    rm -f "$report"
    expect "$1: a GPU that no rank uses" 0 "wrong 0" \
        "${run[@]}" -n 2 sh -c "$start_with" "$dir/libcuda.so.1" "$start" "${always[@]}" "$p" 1
    [ "$(reported allreduce library)" -gt 0 ]
    result $? "$1: the library does the calls"
    expect "$1: a rank that uses a GPU" 0 "has ranks that use a GPU" \
        env GPU_RANK=1 "${run[@]}" -n 2 sh -c "$start_with" "$dir/libcuda.so.1" "$start" "${always[@]}" "$p" 1
    same "$1: MPI does all calls" 0 "$(reported allreduce library)"
}

long_counts() { # MPI
    rm -f "$report"
    expect "$1: counts above 2^31" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "${always[@]}" "$dir/long_counts.$1"
    same "$1: the library broadcasts them" 1 "$(reported bcast library)"
}

all_of() { # MPI
    local p
    for p in all_collectives long_counts situations; do
        compiled "$p"
    done
    every_call "$1"
    settings "$1"
    situations "$1"
    devices "$1"
    [ "$1" != mpich ] || long_counts "$1" # Open MPI 4 has no functions for long counts
    missing "mpif90.$1" "$1: Fortran" || fortran "$1"
}

expect "help" 0 "usage: mpirun -n RANKS trib-mpi" "$start" --help
expect "no program" 2 "no program given" "$start"
expect "an unknown option" 2 "unknown option --more" "$start" --more x
expect "an option without its value" 2 "--min needs a value" "$start" --min
expect "a program of no MPI" 2 "select one with --mpi" env -u PMI_RANK "$start" /bin/true
expect "an MPI for which there is no module" 2 "TRIB_MPI_MODULES must name" \
    env TRIB_MPI_MODULES="$dir" "$start" --mpi mpich /bin/true
built_here() { # MPI
    rm -f "$report"
    expect "$1: in the build folder the modules are found" 0 "wrong 0" \
        env -u TRIB_MPI_MODULES "${run[@]}" -n 2 "$start" "${always[@]}" "$dir/all_collectives.$1" 1
    [ "$(reported allreduce library)" -gt 0 ]
    result $? "$1: so the library does the calls"
}

both() {
    all_of "$mpi"
    built_here "$mpi"
}

each_mpi both
finish
