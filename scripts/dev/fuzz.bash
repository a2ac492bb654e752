# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev fuzz [SECONDS | --runs N | --afl SECONDS] [TARGET…]: run fuzz targets, each for 20 s, N
#: times, or with AFL++.

fuzz_afl() {
    need "${required_packages[@]}" "${fuzz_packages[@]}" "${afl_packages[@]}"
    export AFL_QUIET=1
    build_in build-afl --enable-fuzz --enable-asan --enable-ubsan CC=afl-clang-fast \
        CXX=afl-clang-fast++ CFLAGS='-O1 -g'
    tests/fuzz/fuzz.sh build-afl afl "$@"
}

cmd_fuzz() {
    local how=seconds

    case ${1:-} in
    --afl)
        fuzz_afl "${@:2}"
        return
        ;;
    --runs)
        how=runs
        shift
        ;;
    esac
    need "${required_packages[@]}" "${fuzz_packages[@]}"
    # Each target contains the whole library: ld takes five times as long as lld.
    configure build-fuzz --enable-fuzz --enable-asan --enable-ubsan CC=clang \
        CXX=clang++ LDFLAGS=-fuse-ld=lld CFLAGS='-O1 -gline-tables-only'
    say "make the fuzz targets in build-fuzz/"
    tests/fuzz/fuzz.sh build-fuzz "$how" "$@"
}
