#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# LAMMPS, mpi4py and ScaLAPACK with both MPIs, alone and under trib-mpi; ./dev mpi runs more.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
export TMPDIR=$dir # an ending mpirun removes folders that a starting one uses
if [ "$(nm -D "$build/.libs/libtributary.so" | grep -cE '__(asan|tsan)_init')" != 0 ]; then
    skip_all "a program of others does not load a library that is built for a sanitizer"
fi
timeout -k 5 $((240 * slow)) python3 "${abs_top_srcdir:-.}/tests/bindings/mpi/mpi_apps.py" --quick --tap --limit $((60 * slow)) \
    "$build" "$dir/out"
