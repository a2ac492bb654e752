#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# README.md and the guides in docs/: run_pages.py runs their commands with the programs and the library of this
# build instead of installed ones.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
SOURCE=$(cd "${abs_top_srcdir:-.}" && pwd)
BUILD=$(cd "$build" && pwd)
export SOURCE BUILD

if [ -n "$(sanitizer)" ]; then
    skip_all "programs of a reader do not link a library that is built for a sanitizer"
fi
mkdir "$dir/bin" "$dir/pkgconfig" "$dir/pages"
for pc in tributary tributary-train; do
    sed "s|^libdir=.*|libdir=$BUILD/.libs|; s|^includedir=.*|includedir=$SOURCE/include|" "$BUILD/$pc.pc" >"$dir/pkgconfig/$pc.pc"
done
ln -s /usr/bin/python3 "$dir/bin/python3"
export PATH=$dir/bin:$BUILD/tools:$BUILD/perf:$BUILD/train/program:$BUILD/agg/daemon:$BUILD/bindings/mpi:$PATH
export PKG_CONFIG_PATH=$dir/pkgconfig LD_LIBRARY_PATH=$BUILD/.libs TRIB_MPI_MODULES=$BUILD/.libs
export PYTHONPATH=$SOURCE/bindings/python PYTHONDONTWRITEBYTECODE=1 TRIBUTARY_LIBRARY=$BUILD/.libs/libtributary.so.0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TMPDIR=$dir # an ending mpirun removes folders that a starting one uses
unset TRIB_ROOT TRIB_RANK TRIB_SIZE TRIB_CODEC TRIB_SERVICE

# Use a private network namespace, if allowed, so that the ports of the pages are free.
network=()
if unshare --map-root-user --net ip link set lo up 2>/dev/null; then
    # shellcheck disable=SC2016 # the other shell expands
    network=(unshare --map-root-user --net sh -c 'ip link set lo up && exec "$@"' sh)
fi
cd "$SOURCE" || exit 1
"${network[@]}" /usr/bin/python3 tests/examples/run_pages.py "$SOURCE" "$dir/pages" README.md docs/guide-*.md
exit $?
