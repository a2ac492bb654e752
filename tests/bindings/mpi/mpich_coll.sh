#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mpich_coll.sh - MPICH's own tests of collectives, alone and under trib-mpi.
#
#   tests/bindings/mpi/mpich_coll.sh [--only WORD] [--least N] [--most N] [--limit S] MPI BUILD_DIR OUT_DIR
#
#   --only WORD   run tests whose line in the list contains WORD
#   --least N     run tests of at least N ranks
#   --most N      run tests of at most N ranks
#   --limit S     seconds for a launch [60]
#
# The tests come from Debian's source package of mpich, downloaded by apt-get with a private list of sources.
# They are built for either MPI (openmpi, mpich) without their configure. Under trib-mpi every call uses the
# library, for all sizes. OUT_DIR receives the sources (once), mpich-coll-MPI.txt (a line for each test) and
# the output of each launch. Exit code: 0; 1 if a test that passes alone fails under trib-mpi; 77 if the
# sources are not available.
set -uo pipefail
only='' least=0 most=1000 limit=60
while [ $# -gt 3 ]; do
    case $1 in
    --only) only=$2 ;;
    --least) least=$2 ;;
    --most) most=$2 ;;
    --limit) limit=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# != 3 ]; then
    sed -n '4,19s/^# \{0,1\}//p' "$0"
    exit 2
fi
mpi=$1 build=$(cd "$2" && pwd) out=$(mkdir -p "$3" && cd "$3" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TRIB_MPI_MODULES=$build/.libs

give_up() {
    echo "MPICH's tests, $mpi: left out: $*"
    exit 77
}

# Download into $out/mpich/test; the apt lists of this machine do not change.
get_sources() {
    local apt=$out/apt options release
    [ ! -d "$out/mpich/test/coll" ] || return 0
    mkdir -p "$apt/lists/partial" "$apt/cache" "$apt/package" "$out/mpich"
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    echo "deb-src http://deb.debian.org/debian ${release:-stable} main" >"$apt/sources.list"
    options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache")
    if ! apt-get "${options[@]}" update >"$apt/said" 2>&1 ||
        ! (cd "$apt/package" && apt-get "${options[@]}" --download-only source mpich) >>"$apt/said" 2>&1; then
        give_up "$(tail -n 1 "$apt/said")"
    fi
    tar -xf "$apt"/package/mpich_*.orig.tar.* -C "$out/mpich" --strip-components=2 --wildcards \
        '*/test/mpi/*' || give_up "the package has no test/mpi"
    mv "$out/mpich/mpi" "$out/mpich/test"
    # MPI-3 and Open MPI have removed these names.
    sed -i 's/MPI_Type_\(hvector\|hindexed\)(/MPI_Type_create_\1(/' "$out"/mpich/test/dtpools/src/*.c
}

# Write the results that their configure would find.
write_config() {
    local name
    for name in STDC_HEADERS F77_NAME_LOWER_USCORE TEST_NEIGHB_COLL HAVE_STDIO_H HAVE_STDLIB_H \
        HAVE_STRING_H HAVE_STRINGS_H HAVE_STDARG_H HAVE_STDINT_H HAVE_INTTYPES_H HAVE_UNISTD_H \
        HAVE_SYS_TYPES_H HAVE_SYS_TIME_H HAVE_SYS_STAT_H HAVE_SYS_RESOURCE_H HAVE_GETRUSAGE HAVE_SETENV \
        HAVE_LONG_LONG HAVE_LONG_LONG_INT HAVE_LONG_DOUBLE HAVE_MPI_INIT_THREAD HAVE_MPI_WIN_CREATE \
        HAVE_MPI_IO HAVE_GCC_ATTRIBUTE HAVE_PTHREAD_BARRIER_INIT HAVE_PTHREAD_H; do
        echo "#define $name 1"
    done >include/mpitestconf.h
    echo "#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX" >>include/mpitestconf.h
    cp include/mpitestconf.h dtpools/dtpoolsconf.h
}

# Build all programs of coll/, and their variants with non-blocking collectives (nb…).
build_tests() {
    local source name programs=$out/mpich/$mpi compile
    mkdir -p "$programs"
    compile=("mpicc.$mpi" -w -O1 -Iinclude -Idtpools/include)
    # shellcheck disable=SC2016 # the inner shells expand them
    for source in util/mtest.c util/mtest_common.c util/dtypes.c util/mtest_thread.c dtpools/src/*.c; do
        echo "$source" "$programs/$(basename "$source" .c).o" -c
    done | xargs -P "$(nproc)" -L 1 sh -c '[ -e "$6" ] || "$0" "$1" "$2" "$3" "$4" "$7" "$5" -o "$6"' "${compile[@]}" 2>"$programs/said"
    # shellcheck disable=SC2016
    for source in coll/*.c; do
        name=$(basename "$source" .c)
        echo "$source" "$programs/$name" -UUSE_MTEST_NBC
        ! grep -q USE_MTEST_NBC "$source" || echo "$source" "$programs/nb$name" -DUSE_MTEST_NBC
    done | xargs -P "$(nproc)" -L 1 sh -c 'o=${6%/*}
        [ -e "$6" ] || "$0" "$1" "$2" "$3" "$4" "$7" "$5" "$o"/*.o -o "$6" -lm -lpthread ||
            echo "$6 does not build" >&2' "${compile[@]}" 2>>"$programs/said"
    grep 'does not build' "$programs/said" | sed 's|.*/||' || :
}

# passes FILE RANKS COMMAND… - set verdict. A signal interrupts the wait for the launch.
passes() {
    local said=$1 ranks=$2 run=("mpirun.$mpi")
    shift 2
    [ "$mpi" = mpich ] || run+=(--oversubscribe)
    timeout -k 2 "$limit" "${run[@]}" -n "$ranks" "$@" >"$said" 2>&1 </dev/null &
    launch=$!
    wait "$launch"
    case $? in
    0) grep -q "No Errors" "$said" && verdict=passes || verdict=errors ;;
    124 | 137) verdict=not-through-in-$limit-s ;;
    *) verdict=fails ;;
    esac
    launch=''
}

runs=0 passed=0 worse=0 odd=0 launch=''
tell_sums() {
    [ ! -t 2 ] || printf '\r\033[K' >&2
    echo "MPICH's tests, $mpi: $runs runs, $passed pass under trib-mpi, $((runs - odd)) pass alone; $worse pass alone only"
}

# A signal ends the active launch, which forwards it to its process group, and then this script.
ended() {
    [ -z "$launch" ] || { kill -TERM "$launch" && wait "$launch"; } 2>/dev/null
    echo "MPICH's tests, $mpi: interrupted"
    [ "$runs" = 0 ] || runs=$((runs - 1)) # the active one
    tell_sums
    exit 130
}
trap ended INT TERM HUP

get_sources
cd "$out/mpich/test" || exit 2
write_config
build_tests
cd "$out/mpich/$mpi" || exit 2
table=$out/mpich-coll-$mpi.txt
: >"$table"
of=$(grep -c '^[a-z]' "$out/mpich/test/coll/testlist.in")
began=$SECONDS line=0
while read -r name ranks options; do
    case $name in '' | \#* | @*) continue ;; esac
    line=$((line + 1))
    [ ! -t 2 ] || printf '\r\033[K%s: test %d of %d, %d s: %s' "$mpi" "$line" "$of" $((SECONDS - began)) "$name" >&2
    [ -x "$name" ] || continue
    [[ "$name $ranks $options" == *"$only"* ]] || continue
    if [ "$ranks" -lt "$least" ] || [ "$ranks" -gt "$most" ]; then continue; fi
    arguments=()
    for option in $options; do
        case $option in arg=*) arguments+=("${option#arg=}") ;; esac
    done
    runs=$((runs + 1))
    passes "said-$runs-plain" "$ranks" "./$name" "${arguments[@]}"
    plain=$verdict
    passes "said-$runs-trib" "$ranks" "$build/bindings/mpi/trib-mpi" --prefer tributary --after 0 "./$name" "${arguments[@]}"
    ours=$verdict
    echo "$runs $name $ranks ${arguments[*]}: $plain alone, $ours under trib-mpi" >>"$table"
    [ "$ours" != passes ] || passed=$((passed + 1))
    [ "$plain" = passes ] || odd=$((odd + 1))
    if [ "$plain" = passes ] && [ "$ours" != passes ]; then
        worse=$((worse + 1))
        tail -n 1 "$table"
    fi
done <"$out/mpich/test/coll/testlist.in"
tell_sums
[ $worse = 0 ] && [ $runs -gt 0 ]
