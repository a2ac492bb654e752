# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
# Helpers of all commands.

# say TEXT - print TEXT with the elapsed time.
say() {
    local after=
    [ "$SECONDS" -lt 2 ] || after=$(printf ' (%d:%02d)' $((SECONDS / 60)) $((SECONDS % 60)))
    printf '== %s%s\n' "$*" "$after"
}

# need PACKAGE... - install the missing ones.
need() {
    local package missing=() root=()

    if ! command -v apt-get >/dev/null; then
        say "no apt-get here: assuming that these are installed: $*"
        return
    fi
    for package; do
        dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null |
            grep -qx installed || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || root=(sudo)
    say "installing ${missing[*]}"
    "${root[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${root[@]}" apt-get install -qq -y \
        --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
}

# configure FOLDER FLAG... - run autoreconf and configure if their inputs have changed.
configure() {
    local folder=$1 package wanted shell=()
    shift

    # shellcheck disable=SC2046 # a list
    if [ ! -f configure ] || [ -n "$(find configure.ac Makefile.am \
        $(scripts/list-files '*.mk') -newer configure 2>/dev/null)" ]; then
        say "autoreconf"
        mkdir -p m4
        autoreconf -fi >autoreconf.log 2>&1 || { cat autoreconf.log; return 1; }
        rm -f autoreconf.log
        touch configure
    fi
    wanted=$*
    # Configure again after an optional package was installed:
    for package in cmocka libibverbs libisal libmicrohttpd librdmacm libsodium munge \
        openblas pmix simgrid ucx zlib; do
        ! pkg-config --exists "$package" || wanted+=" $package"
    done
    [ ! -d /usr/include/torch ] || [ ! -d /usr/include/pybind11 ] || wanted+=" torch"
    if [ configure -nt "$folder/config.status" ] || [ "$wanted" != "$(cat \
        "$folder/.configured" 2>/dev/null)" ]; then
        say "configure in $folder/"
        mkdir -p "$folder"
        # libtool runs in this shell; dash halves its time.
        [ ! -x /bin/dash ] || shell=(CONFIG_SHELL=/bin/dash)
        (cd "$folder" && env "${shell[@]}" ../configure -q "$@")
        printf '%s\n' "$wanted" >"$folder/.configured"
    fi
}

# build_in FOLDER FLAG... - configure and make; the packages are installed.
build_in() {
    local folder=$1

    configure "$@"
    say "make in $folder/"
    make -C "$folder" -s -j "$jobs" LIBTOOL="$PWD/scripts/quick-libtool"
}

# in_background COMMAND... - start COMMAND in the background and append its pid to `others`. It is killed
# when this script ends, even by SIGKILL.
in_background() {
    local leash=()

    ! command -v setpriv >/dev/null || leash=(setpriv --pdeathsig TERM)
    "${leash[@]}" "$@" &
    others+=($!)
    trap 'kill "${others[@]}" 2>/dev/null' EXIT
    trap 'exit 130' INT TERM HUP
}

# Programs of tests/rxe/inside.sh and two_guests.sh that make alone does not build.
rxe_programs=(tests/transport/test_conformance tests/comm/test_matrix
    tests/comm/plan/test_deterministic tests/fault/test_tribd_faults
    tests/agg/daemon/late tests/agg/daemon/steps)

# Install the packages of the RDMA tests; their virtual machines need x86-64.
need_rxe() {
    [ "$(uname -m)" != x86_64 ] || need "${rxe_packages[@]}"
}
