#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# run-peer.sh - what trib-perf --peers runs: the programs that Tributary is compared with.
#
#   run-peer.sh build OUT_DIR         builds them there; a line "ID<TAB>NAME AND VERSION" for each
#   run-peer.sh launch OUT_DIR ID RANKS SIZES SAMPLES MS in|out [rewrite]
#                                     launches one; rows as timing.h has them
#
# Sources lie beside it, and are built by the compilers of the machine.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$2 errors=$2/errors.log
cores=$(nproc)
# shellcheck disable=SC2034 # peers.sh reads them
cores_bound=$cores over=best collective=allreduce
# shellcheck source=perf/peers/peers.sh
. "$here/peers/peers.sh"
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

version_of() { # words of a version, behind "Version" or in brackets
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
    # shellcheck disable=SC2034 # likewise
    sizes=$5 samples=$6 sample_ms=$7 place=$8 rewrite=${9:-}
    case $id in
    openmpi) openmpi "$ranks" openmpi ;;
    mpich) mpich "$ranks" ;;
    gloo) gloo "$ranks" ;;
    *)
        echo "run-peer.sh: there is no peer $id" >&2
        exit 2
        ;;
    esac
    ;;
*)
    echo "run-peer.sh: build or launch" >&2
    exit 2
    ;;
esac
