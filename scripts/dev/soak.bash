# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev soak [MINUTES]: run 64 jobs, some hostile, with one tribd for 10 minutes, then each attacker
#: of ./dev attack for a fifth of that time.

cmd_soak() {
    need "${build_packages[@]}" "${test_packages[@]}"
    build_in build
    make -C build -s -j "$jobs" tests/agg/daemon/hostile tests/agg/daemon/attack
    tests/agg/daemon/soak.sh build out/soak "${1:-10}"
}
