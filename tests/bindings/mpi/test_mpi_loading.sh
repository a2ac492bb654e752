#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The module that trib-mpi loads, together with tools, sanitizers and another MPI.
# shellcheck disable=SC2317 # each_mpi calls the functions by name
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/bindings/mpi/both_mpis.sh
. "${abs_top_srcdir:-.}/tests/bindings/mpi/both_mpis.sh"
# shellcheck disable=SC2317 # each_mpi calls it
yielding() { :; } # nothing else is preloaded here

compiled_as() { # MPI NAME OPTION…
    "mpicc.$1" -O1 "${@:3}" -o "$dir/$2.$1" >"$said" 2>&1
    result $? "$1: $2 compiles"
}

# The tool sees as many calls as without trib-mpi, and the library handles them.
tools() { # MPI
    local c=$source/tests/bindings/mpi/linked_tool.c how
    compiled_as "$1" tool "$c" -shared -fPIC
    compiled_as "$1" program "$c" -DPROGRAM
    compiled_as "$1" linked "$c" -DPROGRAM "$dir/tool.$1" "-Wl,-rpath,$dir"
    expect "$1: a tool that is linked sees each call once" 0 "tool: allreduce 20 barrier 1" \
        "${run[@]}" -n 2 "$start" "${always[@]}" --report "$dir/linked.$1"
    grep -Eq "allreduce +4 +20 +0" "$said"
    result $? "$1: and the library has them"
    compiled_as "$1" library "$c" -shared -fPIC -DLIBRARY
    compiled_as "$1" split "$c" -DPROGRAM "$dir/library.$1" "-Wl,-rpath,$dir"
    expect "$1: MPI_X in another library than PMPI_X is no tool" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "${always[@]}" --report "$dir/split.$1"
    grep -Eq "allreduce +4 +20 +0" "$said" && ! grep -q "tool:" "$said"
    result $? "$1: so the library has the calls, and MPI_X is not called"
    # shellcheck disable=SC2016 # the ranks expand it
    how='LD_PRELOAD=$0 exec "$@"'
    expect "$1: so does a tool that is preloaded" 0 "tool: allreduce 20 barrier 1" \
        "${run[@]}" -n 2 sh -c "$how" "$dir/tool.$1" "$start" "${always[@]}" --report "$dir/program.$1"
    grep -Eq "allreduce +4 +20 +0" "$said"
    result $? "$1: and the library has them, too"
    grep -q "the child has ($dir/tool.$1:*)" "$said"
    result $? "$1: a child has the preloads of the user, and not the module"
}

# Calls of MPI 4.1, also where the installed MPI is older: a library adds them.
later() { # MPI
    local c=$source/tests/bindings/mpi/later_calls.c
    compiled_as "$1" later "$c" -shared -fPIC -DLIBRARY
    compiled_as "$1" polling "$c" "$dir/later.$1" "-Wl,-rpath,$dir"
    expect "$1: MPI_Request_get_status_all, any and some" 0 "wrong 0" \
        timeout $((20 * slow)) "${run[@]}" -n 2 "$start" "${always[@]}" --report "$dir/polling.$1"
    grep -Eq "iallreduce +4 +12 +0" "$said"
    result $? "$1: see requests of the library"
    compiled_as "$1" alone "$c" -DALONE
    expect "$1: a function that MPI lacks is an error" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "${always[@]}" "$dir/alone.$1"
}

sanitizers() { # MPI
    echo 'int main(void) { return 0; }' >"$dir/empty.c"
    if ! "mpicc.$1" -fsanitize=address "$dir/empty.c" -o "$dir/empty" >"$said" 2>&1; then
        skip "$1: a program of gcc -fsanitize=address" "this compiler has no library for it"
        return
    fi
    compiled_as "$1" sanitized "$source/tests/bindings/mpi/linked_tool.c" -DPROGRAM -fsanitize=address
    expect "$1: a program of gcc -fsanitize=address" 0 "wrong 0" \
        env ASAN_OPTIONS=detect_leaks=0 "${run[@]}" -n 2 "$start" "${always[@]}" --report "$dir/sanitized.$1"
    grep -Eq "allreduce +4 +20 +0" "$said" && grep -q "the child has ()" "$said"
    result $? "$1: the library has its calls, and its children start without both"
}

# A module of the other MPI family is rejected before any call, and MPI continues.
other_family() { # MPI OTHER
    [ -e "$build/.libs/libtributary_mpi-$2.so" ] || return 0
    expect "$1: the module for $2 says that it is the wrong one" 0 "MPI handles all calls; trib-mpi --mpi $1" \
        "${run[@]}" -n 2 "$start" --mpi "$2" "${always[@]}" "$dir/program.$1"
    grep -q "wrong 0" "$said" && [ "$(grep -c tributary: "$said")" = 1 ]
    result $? "$1: once, and the program runs"
}

all_of() { # MPI
    if [ -n "$sanitizer" ]; then
        skip "$1" "a program without a sanitizer does not load a library that is built for one"
        return
    fi
    tools "$1"
    later "$1"
    sanitizers "$1"
    case $1 in
    openmpi) other_family openmpi mpich ;;
    mpich) other_family mpich openmpi ;;
    esac
    expect "$1: all calls but some" 0 "wrong 0" \
        "${run[@]}" -n 2 "$start" "${always[@]}" --calls ^allreduce,scan --report "$dir/program.$1"
    ! grep -q "^  allreduce" "$said" && grep -q "^  barrier" "$said"
    result $? "$1: these stay with MPI"
    localedef -i tr_TR -f UTF-8 "$dir/tr_TR.UTF-8" 2>/dev/null
    expect "$1: in a Turkish locale" 0 "TRIB_MPI_MIN=4i" \
        env LOCPATH="$dir" LC_ALL=tr_TR.UTF-8 "${run[@]}" -n 2 "$start" --min 4i "$dir/program.$1"
}

# soname SONAME: print the family that trib-mpi detects for a program that links such a library
soname() {
    "${CC:-cc}" -shared -Wl,-soname,"$1" "$dir/empty.c" -o "$dir/sonames/$1" &&
        "${CC:-cc}" "$dir/empty.c" -Wl,--no-as-needed "$dir/sonames/$1" "-Wl,-rpath,$dir/sonames" -o "$dir/of_soname" &&
        env -u PMI_RANK -u OMPI_COMM_WORLD_SIZE TRIB_MPI_MODULES="$dir" "$start" "$dir/of_soname" 2>&1 |
        sed -n 's/.*libtributary_mpi-\(.*\)[.]so: .*/\1/p'
}

mkdir -p "$dir/sonames"
echo 'int main(void) { return 0; }' >"$dir/empty.c"
for row in libmpi.so.12:mpich libmpich.so.12:mpich libmpi_cray.so.12:mpich libmpi.so.40:openmpi; do
    [ "$(soname "${row%:*}")" = "${row#*:}" ]
    result $? "${row%:*} is of ${row#*:}"
done
soname libmpi_abi.so.0 >"$said" 2>&1
expect "libmpi_abi.so.0 is of no module" 2 "the ABI of MPI 5" \
    env PMI_RANK=0 TRIB_MPI_MODULES="$dir" "$start" "$dir/of_soname"
expect "trib-mpi before mpirun" 2 "wrong order: use mpirun" "$start" mpirun -n 2 /bin/true
expect "--after that is no number" 2 "a number of calls, or auto" "$start" --after x /bin/true
mkdir -p "$dir/a space"
: >"$dir/a space/libtributary_mpi-mpich.so"
expect "a folder that LD_PRELOAD cannot have" 2 "a space or a colon" \
    env TRIB_MPI_MODULES="$dir/a space" "$start" --mpi mpich /bin/true
if "${CC:-cc}" -static "$dir/empty.c" -o "$dir/static" >"$said" 2>&1; then
    expect "a static program" 0 "is linked statically" env -u PMI_RANK -u PMIX_RANK "$start" --mpi mpich "$dir/static"
fi

each_mpi all_of
finish
