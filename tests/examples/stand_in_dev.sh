#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# stand_in_dev.sh tree | build | check-fast ROOM - replaces ./dev in a folder that contains only the source files that a
# page changes. It compiles these and links programs with them, before the objects of the built library: a second
# instead of minutes. $SOURCE is the source folder, $BUILD its build folder.
set -euo pipefail

flags=(-std=gnu11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -I. "-I$SOURCE" "-I$SOURCE/include" "-I$BUILD")
read -ra libraries < <(pkg-config --libs inih libxxhash jansson hwloc)
libraries+=(-lhtscodecs -lm -lpthread)

link() { # PROGRAM, object, source or archive...
    mkdir -p "$(dirname "$1")"
    cc "${flags[@]}" -o "$1" ./*.o "${@:2}" -Wl,-z,muldefs "$BUILD/.libs/libtributary_all.a" "${libraries[@]}"
}

archives() { # NAME...
    printf "$BUILD/.libs/lib%s.a\n" "$@"
}

tree() {
    mkdir -p build/tools
    # shellcheck disable=SC2016 # the other shell expands
    printf '#!/bin/sh\nexec "$BUILD/tools/trib-run" "$@"\n' >build/tools/trib-run
    chmod +x build/tools/trib-run
}

build() {
    local file changed

    changed=$(find compress -name '*.[ch]' -newer built 2>&1) || changed=all
    [ -n "$changed" ] || return 0
    for file in compress/*/*.c; do
        # A file that no list names belongs to no library.
        [ "$file" = compress/registry/codec_table.c ] || grep -q "$file" compress/*/local.mk
        cc "${flags[@]}" -c "$file" -o "$(basename "$file" .c).o"
    done
    # shellcheck disable=SC2046 # several words
    link build/tools/trib-info $(find "$BUILD/tools" -name 'trib_info-*.o') "$(archives tools)"
    # shellcheck disable=SC2046 # several words
    link build/perf/trib-perf $(find "$BUILD/perf" -name 'trib_perf-*.o') -Wl,--start-group \
        $(archives perfreport versus aggperf codecperf compress put perf tools) -Wl,--end-group
    touch built
}

check() { # room of tests: run the tests that the page adds, and one for all texts of all rows
    local test name status=0

    build
    read -ra libraries < <(pkg-config --libs inih libxxhash jansson hwloc cmocka)
    libraries+=(-lhtscodecs -lm -lpthread)
    for test in "tests/$1"/*/test_*.c "$SOURCE/tests/$1/test_fuzzed.c"; do
        name=${test#"$SOURCE/"}
        grep -qw "${name%.c}" tests/"$1"/local.mk
        link build/tried "$test" "$(archives corpus)" "$(archives tribtest)"
        test=${test#"$SOURCE/"}
        if abs_top_srcdir=$SOURCE build/tried >said 2>&1; then
            echo "PASS: ${test%.c}"
        else
            cat said
            echo "FAIL: ${test%.c}"
            status=1
        fi
    done
    return "$status"
}

case $1 in
tree | build) "$1" ;;
check-fast) check "$2" ;;
esac
