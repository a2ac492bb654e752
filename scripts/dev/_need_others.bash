# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
# Internal: install the other packages that check needs after the build has begun.

cmd__need_others() {
    need "${run_packages[@]}" "${lint_packages[@]}" "${docs_packages[@]}"
    need_rxe
}
