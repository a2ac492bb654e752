# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Install all packages that any command needs, except those of mpi.

cmd_deps() {
    need "${build_packages[@]}" "${test_packages[@]}" "${lint_packages[@]}" \
        "${demo_packages[@]}" "${bench_packages[@]}" "${bench_hosts_packages[@]}" \
        "${bench_put_packages[@]}" "${bench_codec_packages[@]}" \
        "${bench_train_packages[@]}" "${bench_sim_packages[@]}" \
        "${docs_packages[@]}" "${fuzz_packages[@]}" "${afl_packages[@]}" \
        "${format_packages[@]}" "${tidy_packages[@]}" "${rxe_packages[@]}"
    say "all packages are there"
}
