# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
# Build and run tests.

# forget_results FOLDER - delete the results of the previous check.
forget_results() {
    mkdir -p "$1/lint" "$1/tests"
    find "$1/tests" \( -name '*.log' -o -name '*.trs' \) -delete
    rm -f "$1"/lint/*.log
}

# prepare_tests FOLDER - build all tests; in CI without debug information and with -Og, which compiles in half the
# time of -O1 and runs about as fast.
prepare_tests() {
    local folder=$1 flags=()

    say "build the tests in $folder/"
    [ -z "${CI-}" ] || flags=(CFLAGS=-Og)
    # Each of hundreds of tests contains most of the library: lld links faster.
    [ -z "${CI-}" ] || ! command -v ld.lld >/dev/null || flags+=(LDFLAGS=-fuse-ld=lld)
    flags+=("LIBTOOL=$PWD/scripts/quick-libtool")
    if make -C "$folder" -s -k -j "$jobs" check TESTS= "${flags[@]}" >/dev/null; then
        echo "ok 1 - all tests build" >"$folder/lint/tests.log"
    else
        echo "not ok 1 - all tests build" >"$folder/lint/tests.log"
    fi
    # A locale with a decimal comma, for the tests alone: texts must not depend on it.
    mkdir -p "$folder/locale"
    [ -d "$folder/locale/de_DE.UTF-8" ] ||
        localedef -i de_DE -f UTF-8 "$folder/locale/de_DE.UTF-8" 2>/dev/null || true
    export LOCPATH=$PWD/$folder/locale
}

# run_tests FOLDER [-j N] [VARIABLE=VALUE]... - run tests, by default one at a time, as several measure
# time. count-tests counts failures from the logs.
run_tests() {
    local folder=$1
    shift

    say "run the tests in $folder/"
    make -C "$folder" -s -k check "$@" 2>&1 | grep --line-buffered -E '^(PASS|FAIL|SKIP|ERROR): ' || true
}

# test_in FOLDER [VARIABLE=VALUE]... - build and run tests.
test_in() {
    forget_results "$1"
    prepare_tests "$1"
    run_tests "$@"
}
