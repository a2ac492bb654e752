#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Unmodified use of communicators, requests and delays by MPI programs works under trib-mpi.
# shellcheck disable=SC2317 # each_mpi calls the functions by name
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/bindings/mpi/both_mpis.sh
. "${abs_top_srcdir:-.}/tests/bindings/mpi/both_mpis.sh"

# NAME, RANKS, arguments of the program: it succeeds and prints no message.
quiet() {
    local name=$1 ranks=$2
    shift 2
    expect "$mpi: $name" 0 "wrong 0" "${run[@]}" -n "$ranks" "$start" "${always[@]}" "$dir/life_cycle.$mpi" "$@"
    ! grep -q tributary "$said"
    result $? "$mpi: $name: nothing is said"
}

# The library's limits would end the program at once; they do not apply to MPI programs.
export TRIB_TIMEOUT_MS=200

life() {
    local stopped=
    compiled life_cycle || return
    if [ "$mpi" = openmpi ]; then # one MPI is enough for a wait of 5 s
        # An ending mpirun removes the folder in which a starting one creates its own.
        mkdir "$dir/of_stopped"
        TMPDIR=$dir/of_stopped timeout $((60 * slow)) "${run[@]}" -n 2 "$start" "${always[@]}" "$dir/life_cycle.$mpi" stopped >"$dir/stopped" 2>&1 &
        stopped=$!
    fi
    quiet "communicators freed in any order and during calls, requests of all kinds, ranks that come late" 3 \
        order pending released attributes completion late ending
    quiet "the same with MPI_THREAD_MULTIPLE" 3 completion pending ending multiple
    expect "$mpi: one of two programs is started without trib-mpi" any "some ranks were not started by trib-mpi" \
        env TRIB_BOOT_TIMEOUT_MS=$((500 * slow)) "${run[@]}" -n 1 "$start" "$dir/life_cycle.$mpi" : -n 1 "$dir/life_cycle.$mpi"
    [ "$mpi" = openmpi ] || return 0 # Debian's MPICH spawns no processes
    quiet "processes of another MPI_COMM_WORLD" 2 spawned
    wait "$stopped"
    local status=$?
    printf '%s, exit code %d\n' "$(cat "$dir/stopped")" "$status" >"$said"
    [ "$(cat "$said")" = "wrong 0, exit code 0" ]
    result $? "$mpi: a rank is stopped for 5 s: the program is right, and nothing is said"
}

each_mpi life
finish
