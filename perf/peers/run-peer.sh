#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# run-peer.sh - build and launch peer programs for trib-perf --peers.
#
#   run-peer.sh build OUT_DIR         build the programs in OUT_DIR; print a line
#                                     "ID<TAB>NAME AND VERSION" for each
#   run-peer.sh launch OUT_DIR ID RANKS SIZES SAMPLES MS in|out [rewrite]
#                                     launch one; print rows as timing.h defines them
#
# The sources are in the folder of this script and are built with the machine's compilers.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$2 errors=$2/errors.log
cores=$(nproc)
# shellcheck disable=SC2034 # peers.sh reads them
cores_bound=$cores over=best collective=allreduce
# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

version_of() { # print the first version number on standard input
    grep -oEm 1 '[0-9]+\.[0-9]+(\.[0-9]+)?' || echo
}

case $1 in
build)
    ! build_openmpi || printf 'openmpi\tOpen MPI %s\n' "$(mpirun.openmpi --version 2>&1 | version_of)"
    ! build_mpich || printf 'mpich\tMPICH %s\n' "$(mpirun.mpich --version 2>&1 | version_of)"
    ! build_gloo || printf 'gloo\tGloo\n'
    ;;
launch)
    id=$3 ranks=$4
    # shellcheck disable=SC2034 # peers.sh reads them
    sizes=$5 samples=$6 sample_ms=$7 place=$8 rewrite=${9:-}
    case $id in
    openmpi) openmpi "$ranks" openmpi ;;
    mpich) mpich "$ranks" ;;
    gloo) gloo "$ranks" ;;
    *)
        echo "run-peer.sh: unknown peer $id" >&2
        exit 2
        ;;
    esac
    ;;
*)
    echo "run-peer.sh: the first argument must be build or launch" >&2
    exit 2
    ;;
esac
