# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Check layers, sizes, headers, settings, documents, spelling and scripts.

cmd_lint() {
    need "${build_packages[@]}" "${lint_packages[@]}"
    scripts/lint
}
