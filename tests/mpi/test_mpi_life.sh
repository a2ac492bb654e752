#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What an MPI program may do with communicators, requests and time: unchanged under trib-mpi.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/mpi/both_mpis.sh
. "${abs_top_srcdir:-.}/tests/mpi/both_mpis.sh"

# NAME, RANKS, what the program does …: it is right, and nothing is said.
quiet() {
    local name=$1 ranks=$2
    shift 2
    expect "$mpi: $name" 0 "wrong 0" "${run[@]}" -n "$ranks" "$start" "${always[@]}" "$dir/life_cycle.$mpi" "$@"
    ! grep -q tributary "$said"
    result $? "$mpi: $name: nothing is said"
}

# Limits of the library that would end the program at once: they are not for MPI programs.
export TRIB_TIMEOUT_MS=200

life() {
    compiled life_cycle || return
    quiet "communicators are freed in different orders, and during calls" 3 order pending released
    quiet "requests of all kinds, completed in each way" 3 completion
    quiet "the same with MPI_THREAD_MULTIPLE" 3 completion pending multiple
    quiet "a rank works alone for longer than TRIB_TIMEOUT_MS" 2 late
    expect "$mpi: one of two programs is started without trib-mpi" any "some ranks were not started by trib-mpi" \
        env TRIB_BOOT_TIMEOUT_MS=$((500 * slow)) "${run[@]}" -n 1 "$start" "$dir/life_cycle.$mpi" : -n 1 "$dir/life_cycle.$mpi"
    # Debian's MPICH spawns no processes; one MPI is enough for a wait of 5 s.
    [ "$mpi" = openmpi ] || return
    quiet "processes of another MPI_COMM_WORLD" 2 spawned
    quiet "a rank is stopped for 5 s" 2 stopped
}

each_mpi life
finish
