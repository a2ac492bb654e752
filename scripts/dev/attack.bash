# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev attack [NAME…]: run each attacker against one tribd; print its error message and the longest
#: step of a concurrent job.

cmd_attack() {
    need "${build_packages[@]}" "${test_packages[@]}"
    build_in build
    make -C build -s -j "$jobs" tests/agg/daemon/attack
    abs_top_builddir=$PWD/build abs_top_srcdir=$PWD tests/agg/daemon/test_tribd_attack.sh --timed "$@"
}
