# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Run the tests of RDMA, more than check does, and those of tribd under systemd.
#: ./dev rxe unit: only the latter. ./dev rxe siw: only those with an iWARP device.

cmd_rxe() {
    local how=--long

    need "${build_packages[@]}" "${test_packages[@]}"
    need_rxe
    build_in build
    make -C build -s -j "$jobs" "${rxe_programs[@]}"
    case ${1:-} in
    siw | unit) how=--$1 ;;
    esac
    [ "$how" = --unit ] || need "${siw_packages[@]}"
    tests/rxe/run_rxe.sh "$how" build build/rxe/tests || true
    scripts/count-tests build/rxe
}
