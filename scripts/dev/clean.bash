# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Remove every build folder.

cmd_clean() {
    rm -rf build build-asan build-tsan build-ubsan build-fuzz build-afl autom4te.cache
    say "removed every build folder"
}
