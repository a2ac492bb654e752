# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: LAMMPS, NWChem, Quantum ESPRESSO, CP2K, ScaLAPACK, PETSc, mpi4py and HPCC, alone and under
#: trib-mpi: compare results and times. Installs 1.3 GB of packages. ./dev mpi coll: MPICH's tests of
#: collectives, alone and under trib-mpi, with both MPIs.

# Run MPICH's tests of collectives with both MPIs; return nonzero if one fails.
mpi_coll() {
    local mpi status=0 got suite=''

    # A signal ends the tests, too: wait for a background process, so that bash handles it.
    trap '[ -z "$suite" ] || { kill -TERM "$suite" && wait "$suite"; } 2>/dev/null; exit 130' INT TERM HUP
    for mpi in openmpi mpich; do
        got=0
        tests/bindings/mpi/mpich_coll.sh "$@" "$mpi" build out/mpi &
        suite=$!
        wait "$suite" || got=$?
        suite=''
        [ $got = 0 ] || [ $got = 77 ] || status=$got
    done
    return "$status"
}

cmd_mpi() {
    need "${build_packages[@]}" "${test_packages[@]}" "${mpi_packages[@]}"
    build_in build
    if [ "${1:-}" = coll ]; then
        mpi_coll "${@:2}"
    else
        tests/bindings/mpi/mpi_apps.py "$@" build out/mpi
    fi
}
