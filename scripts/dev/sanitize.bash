# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
# Build and test with a sanitizer.

# shellcheck source=/dev/null
. scripts/dev/test.bash

# sanitize NAME [TEST]... - build with a sanitizer and run these tests, or all.
sanitize() {
    local name=$1 run=() these=()
    shift

    [ $# = 0 ] || these=("TESTS=$*")

    need "${build_packages[@]}" "${test_packages[@]}"
    [ "$name" = tsan ] && command -v setarch >/dev/null && run=(setarch -R)
    build_in "build-$name" "--enable-$name" CFLAGS='-O1 -g'
    # LeakSanitizer mistakes the thread-local memory of some libraries for that of glibc before 2.25
    # and crashes (google/sanitizers#1322).
    export ASAN_OPTIONS=abort_on_error=1:intercept_tls_get_addr=0
    export UBSAN_OPTIONS=print_stacktrace=1
    export TSAN_OPTIONS=halt_on_error=1
    export OPENBLAS_NUM_THREADS=1 # ThreadSanitizer does not see its locks
    # UCX's memory hooks crash ThreadSanitizer when a thread exits.
    export UCX_MEM_EVENTS=no
    export LSAN_OPTIONS=suppressions=$PWD/tests/leaks-of-others.supp:print_suppressions=0
    export TRIBTEST_SLOWNESS=4
    "${run[@]}" "$BASH" ./dev _test_in "build-$name" TRIB_TEST_SECONDS=1200 "${these[@]}"
    scripts/count-tests "build-$name"
}
