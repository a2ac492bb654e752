# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev tsan [TEST…]: build with the thread sanitizer into build-tsan/ and run these tests, or all.

# shellcheck source=/dev/null
. scripts/dev/sanitize.bash

cmd_tsan() { sanitize tsan "$@"; }
