# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev shake TEST…: run tests 30 times each (--times N) under a load of two busy processes per
#: core, and print how many runs failed.

cmd_shake() {
    need "${build_packages[@]}" libcmocka-dev
    build_in build
    scripts/shake build "$@"
}
