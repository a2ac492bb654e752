# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: Build, run all tests (those of RDMA in a guest with soft-RoCE), lint, install into a
#: temporary folder and use the result. A failed test runs once more, alone, at the end: if it
#: passes then, it is listed as flaky.

# shellcheck source=/dev/null
. scripts/dev/test.bash
# shellcheck source=/dev/null
. scripts/dev/test_lists.bash

# The virtual machines take longest: start them as soon as their programs are built.
start_rxe() {
    make -C build -s -j "$jobs" "${rxe_programs[@]}" >/dev/null || true
    in_background tests/rxe/run_rxe.sh build build/tests/rxe >/dev/null 2>&1
}

# Lint needs no build, but packages that the process INSTALLER brings. It may take until the end, so it runs at
# the lowest priority.
start_lint() { # INSTALLER
    # shellcheck disable=SC2016 # the inner shell expands it
    in_background nice -n 19 sh -c 'while kill -0 "$0" 2>/dev/null; do sleep 0.5; done; exec scripts/lint' "$1" \
        >build/lint/lint.log 2>&1
    patient+=("$!")
}

# Build the site of docs/. Warnings of Sphinx and broken links are errors.
start_docs() {
    in_background nice -n 19 "$BASH" ./dev _docs_check >build/lint/docs.out 2>&1
    patient+=("$!")
}

start_install() {
    in_background scripts/check-install build >build/lint/install.log 2>&1
}

# Wait for the background jobs except lint and the site.
finish_others() {
    local process

    say "tests of RDMA, install and use"
    for process in "${others[@]}"; do
        [[ " ${patient[*]} " = *" $process "* ]] || wait "$process" || true
    done
    grep -s '^not ok ' build/tests/rxe/rxe.log || true
    ! grep -q '^not ok ' build/lint/install.log || cat build/lint/install.log
}

finish_patient() {
    say "lint and the site"
    wait "${patient[@]}" || true
    trap - EXIT INT TERM HUP
    [ -f build/lint/docs.log ] || echo "not ok 1 - the site came to no end" >build/lint/docs.log
    ! grep -q '^not ok ' build/lint/docs.log || cat build/lint/docs.log
    ! grep -q '^not ok ' build/lint/lint.log || grep -v '^ok ' build/lint/lint.log
}

cmd_check() {
    local quiet busy others=() patient=() flags=() status=0 installer

    need "${build_packages[@]}" "${found_packages[@]}"
    # Install the others while the compiler works.
    in_background "$BASH" ./dev _need_others
    installer=$!
    forget_results build
    start_lint "$installer"
    # CI needs no debug information, a quarter of the time of the build and half of that of C++.
    [ -z "${CI-}" ] || flags=(CFLAGS=-O2 CXXFLAGS=-O1)
    build_in build "${flags[@]}"
    wait "$installer"
    others=("${others[@]:1}")
    start_rxe
    prepare_tests build
    start_docs
    start_install
    split_tests
    # Most tests wait for most of their time: run two per processor.
    run_tests build -j $((2 * jobs)) TESTS="$busy"
    finish_others
    run_tests build -j $((2 * jobs)) TESTS="$quiet"
    finish_patient
    scripts/retry-failed build
    say "all has run"
    scripts/count-tests build || status=$?
    return "$status"
}
