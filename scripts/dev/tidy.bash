# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Run clang-tidy over the library.

cmd_tidy() {
    need "${build_packages[@]}" "${tidy_packages[@]}"
    build_in build
    find base topo boot transport compress pipeline collectives agg comm inspect api -name '*.c' \
        ! -name '*_avx*.c' -print0 | sort -z |
        xargs -0 -n 8 -P "$jobs" sh -c \
            'clang-tidy --quiet "$@" -- -std=gnu11 -D_GNU_SOURCE -I. -Iinclude -Ibuild' sh
}
