# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
#: ./dev compat [REVISION]: run ranks, trib-run and tribd of another revision (default: the last tag)
#: with those of this tree over shm and tcp.

# compat_build FOLDER - build the library, trib-run and tribd of the revision in FOLDER.
compat_build() (
    cd "$1" || exit
    mkdir -p m4 build
    autoreconf -fi >build/autoreconf.log 2>&1 || { cat build/autoreconf.log; return 1; }
    cd build || exit
    [ -f Makefile ] || ../configure -q --disable-static CFLAGS=-O1
    # Only `make all` generates sources before the files that include them.
    # shellcheck disable=SC2016 # a variable of make
    echo 'built-sources: $(BUILT_SOURCES)' >built-sources.mk
    make -s -f Makefile -f built-sources.mk built-sources
    make -s -j "$jobs" libtributary.la tools/trib-run agg/daemon/tribd >/dev/null
)

cmd_compat() {
    local revision=${1:-} folder

    [ -n "$revision" ] || revision=$(git describe --tags --abbrev=0 2>/dev/null) || true
    if [ -z "$revision" ] || ! revision=$(git rev-parse --verify --short "$revision^{commit}" 2>/dev/null); then
        echo "compat wants a revision that this clone has, or a tag of the last release in it: ./dev compat v0.1.0" >&2
        return 2
    fi
    need "${build_packages[@]}" git
    build_in build
    folder=build/compat/$revision
    say "build $revision in $folder/"
    if [ ! -e "$folder/configure.ac" ]; then
        mkdir -p "$folder"
        git archive "$revision" | tar -x -C "$folder"
    fi
    compat_build "$folder"
    abs_top_builddir=$PWD/build tests/abi/compat.sh "$PWD/$folder/build"
}
