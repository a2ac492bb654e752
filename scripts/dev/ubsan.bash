# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev ubsan [TEST…]: build with the undefined behaviour sanitizer into build-ubsan/ and run these tests, or all.

# shellcheck source=/dev/null
. scripts/dev/sanitize.bash

cmd_ubsan() { sanitize ubsan "$@"; }
