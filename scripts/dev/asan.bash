# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev asan [TEST…]: build with the address sanitizer into build-asan/ and run these tests, or all.

# shellcheck source=/dev/null
. scripts/dev/sanitize.bash

cmd_asan() { sanitize asan "$@"; }
