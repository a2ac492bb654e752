# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Build into build/.

cmd_build() {
    need "${build_packages[@]}"
    build_in build
}
