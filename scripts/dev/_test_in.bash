# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
# Internal: build and run tests in a process of its own, for asan, tsan and ubsan.

# shellcheck source=/dev/null
. scripts/dev/test.bash
cmd__test_in() { test_in "$@"; }
