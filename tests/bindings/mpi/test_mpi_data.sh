#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Arguments of collectives in unmodified MPI programs under trib-mpi: datatypes of any order, NULL
# buffers where nothing is moved, and wrong arguments.
# shellcheck disable=SC2317 # each_mpi calls the functions by name
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/bindings/mpi/both_mpis.sh
. "${abs_top_srcdir:-.}/tests/bindings/mpi/both_mpis.sh"

# Errors have MPI's own error classes, and the ranks stay in step.
refused_calls() {
    compiled refused_calls
    "${run[@]}" -n 3 "$dir/refused_calls.$mpi" 2>/dev/null >"$dir/plain"
    result $? "$mpi: MPI alone refuses the wrong calls"
    expect_seconds=60 expect "$mpi: wrong calls, and none on some ranks" 0 "wrong 0" \
        "${run[@]}" -n 3 "$start" "${always[@]}" "$dir/refused_calls.$mpi"
    grep -E "^(MPI_|wrong)" "$said" | diff "$dir/plain" - >"$said.differs"
    result $? "$mpi: the error classes are those of MPI alone"
    expect "$mpi: ranks that disagree" 0 "wrong 0" \
        "${run[@]}" -n 3 "$start" "${always[@]}" "$dir/refused_calls.$mpi" disagree
}

# MPI has the calls on an intercommunicator, and the report does not call them wrong.
two_groups() {
    local report=$dir/groups.$mpi

    compiled two_groups
    expect "$mpi: calls across two groups" 0 "wrong 0" \
        "${run[@]}" -n 3 "$start" "${always[@]}" "--report=$report" "$dir/two_groups.$mpi"
    [ "$(grep -c '"never": [1-9].*"wrong": 0}' "$report")" = 9 ]
    result $? "$mpi: they are left to MPI, and none is wrong"
}

all_of() {
    refused_calls
    two_groups
    compiled datatypes
    expect "$mpi: datatypes in another order than memory" 0 "wrong 0" \
        "${run[@]}" -n 3 "$start" "${always[@]}" "$dir/datatypes.$mpi"
}

each_mpi all_of
finish
