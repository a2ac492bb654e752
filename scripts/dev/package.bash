# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Build Debian's packages of the committed tree into build/package/: twice in a bare Debian, compared;
#: lintian; install, demo, a job of tribd, purge. As root: ./dev package --mirror URL, or --host-apt.

cmd_package() {
    need "${package_packages[@]}"
    mkdir -p build
    rm -rf build/package
    scripts/check-package "$@" build/package
}
