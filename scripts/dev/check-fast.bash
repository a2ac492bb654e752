# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev check-fast ROOM (comm, transport/shm, …): build, run the tests of one room without the
#: longest ones, and the quick part of lint.

# shellcheck source=/dev/null
. scripts/dev/test_lists.bash

# tests_of ROOM - set `fast`, the tests of its folder except long_tests, and `programs`, their executables.
tests_of() {
    local room=$1 test all

    fast='' programs=tests/agg/daemon/steps
    read -ra all < <(make -C build -s print-tests)
    for test in "${all[@]}"; do
        [[ $test = tests/$room/* ]] || continue
        if [[ " ${long_tests[*]} " = *" $test "* ]]; then
            say "left out, as it takes long: $test"
        else
            fast+=" $test"
        fi
    done
    for test in $(make -C build -s print-programs); do
        [[ $test != tests/$room/* ]] || programs+=" $test"
    done
}

cmd_check-fast() {
    local room=${1:-} fast programs others=()

    room=${room#tests/} room=${room%/}
    if [ -z "$room" ] || [ ! -d "tests/$room" ]; then
        echo "check-fast wants a folder that has tests: $(cd tests && echo ./*/)" >&2
        return 2
    fi
    need "${build_packages[@]}" libcmocka-dev git python3
    mkdir -p build/lint
    in_background scripts/lint --fast >build/lint/fast.log 2>&1
    build_in build
    tests_of "$room"
    [ -n "$fast" ] || { say "no test of tests/$room is short: nothing was tested" && return 2; }
    # Programs of other rooms are not rebuilt. A test that does not build fails.
    say "run the tests of $room"
    make -C build -s -k -j $((2 * jobs)) check-TESTS TESTS="$fast" check_PROGRAMS="$programs" check_SCRIPTS= 2>&1 |
        grep --line-buffered -E '^(PASS|FAIL|SKIP|ERROR): |error: ' || true
    wait "${others[@]}" || true
    trap - EXIT INT TERM HUP
    ! grep -q '^not ok ' build/lint/fast.log || grep -v '^ok ' build/lint/fast.log
    say "all has run"
    # shellcheck disable=SC2086 # a list
    scripts/count-tests build $fast
}
