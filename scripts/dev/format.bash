# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Run clang-format on the lines changed since HEAD.

cmd_format() {
    need "${format_packages[@]}"
    git clang-format --quiet --extensions c,h HEAD || true
}
