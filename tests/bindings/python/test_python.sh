#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Python package with the library of this build.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
source=$(cd "${abs_top_srcdir:-.}" && pwd)
build=$(cd "$build" && pwd)
python=/usr/bin/python3
export PYTHONPATH=$source/bindings/python PYTHONDONTWRITEBYTECODE=1 TRIBUTARY_LIBRARY=$build/.libs/libtributary.so.0
here=$source/tests/bindings/python
unset TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_CODEC

has() { # MODULE, NAME...: skip them all where Python lacks the module
    local module=$1 name
    ! "$python" -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('$module'))" || return 0
    shift
    for name; do
        skip "$name" "Python has no module $module"
    done
    return 1
}

# NAME, ranks, program, arguments: each rank must report success
ranks() {
    local name=$1 n=$2
    shift 2
    expect "$name, $n ranks" 0 "all right" "$build/tools/trib-run" -n "$n" --timeout 100 -- \
        "$python" "$here/$1" "${@:2}"
    [ "$(grep -c 'all right' "$said")" = "$n" ]
    result $? "$name: each of the $n says so"
}

[ -x "$python" ] || skip_all "$python is not there"
if [[ $(sanitizer) = [at]san ]]; then
    skip_all "Python does not load a library that is built for a sanitizer"
fi
expect "structs are laid out as in C" 0 "structs alike" "$python" "$here/layouts.py" "$source/include"
expect "a library that is not there is named" 1 "install libtributary" \
    env TRIBUTARY_LIBRARY=libnothing.so.9 "$python" -c "import tributary"
expect "it says which library it has, and what that finds" 0 "library     $build/.libs/libtributary.so" \
    "$python" -m tributary
grep -q "^transports  auto " "$said"
result $? "transports are among it"
expect "it needs neither NumPy nor torch" 0 "none" "$python" -c "
import sys, tributary
print('none' if not {'numpy', 'torch'} & set(sys.modules) else 'some')"
if has numpy "arrays" "buffers" "ends"; then
    for n in 2 3; do
        ranks "arrays of all kinds" "$n" arrays.py
        ranks "memory of arrays" "$n" buffers.py
    done
    expect "Ctrl-C in init" 0 "all right" "$python" "$here/ends.py" interrupt
    ranks "Ctrl-C in a sum" 2 ends.py interrupt_wait
    ranks "handlers of signals that raise in a sum" 2 ends.py handlers
    ranks "an exception in a with block" 2 ends.py raised
    expect "a rank that is lost is named" any "all right" "$build/tools/trib-run" -n 3 --timeout 50 \
        --grace 5 -- "$python" "$here/ends.py" lost
fi
if has torch "tensors" "training"; then
    ranks "memory of tensors" 2 tensors.py
    mkdir "$dir/training"
    ranks "DDP's hook and Fed" 3 training.py "$dir/training"
fi
if [ ! -e "$build/.libs/_torch_backend.so" ]; then
    skip "process groups" "this build has no backend of torch.distributed"
elif has torch "process groups"; then
    mkdir "$dir/replicas"
    ranks "what programs do with DDP, by Fed, Hook and the backend" 2 fed.py "$dir/replicas"
    cc -shared -fPIC -I"$source/include" "$here/failing_start.c" -o "$dir/failing_start.so"
    mkdir "$dir/group" "$dir/children" "$dir/lost"
    LD_PRELOAD=$dir/failing_start.so ranks "a process group" 3 process_group.py all "$dir/group"
    expect "ranks that are children of multiprocessing" 0 "all right" "$python" "$here/children.py" "$dir/children"
    expect "a rank that is late, then lost, is named" any "all right" "$build/tools/trib-run" -n 2 \
        --timeout 50 --grace 5 -- "$python" "$here/process_group.py" lost "$dir/lost"
fi
! has torch "loaders" || ranks "forked and spawned loaders, and a forked child" 2 loaders.py
# Debian's mpi4py uses Open MPI.
if has mpi4py "mpi4py"; then
    expect "ranks of mpi4py" 0 "all right Open MPI" env OMPI_ALLOW_RUN_AS_ROOT=1 \
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe -np 3 "$python" "$here/of_mpi4py.py"
    [ "$(grep -c 'all right' "$said")" = 3 ]
    result $? "ranks of mpi4py: each of the 3 says so"
fi
version=$(sed -n 's/^AC_INIT(\[Tributary\], \[\([^]]*\)\].*/\1/p' "$source/configure.ac")
expect "the package has the library's version" 0 "version = \"$version\"" cat "$source/bindings/python/pyproject.toml"
if ! command -v mypy >/dev/null; then
    skip "types" "mypy is not installed"
else
    expect "types" 0 "no issues found" mypy --config-file "$source/bindings/python/mypy.ini" \
        --cache-dir="$dir/mypy" "$source/bindings/python/tributary"
fi
finish
