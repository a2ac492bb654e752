#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# run_rxe.sh [--long|--siw|--unit] BUILD FOLDER - run the tests that need an RDMA device. They
# run on this machine if its kernel has soft-RoCE, else in a guest; tests of two hosts
# always run in guests. The log is FOLDER/rxe.log, in the format of scripts/count-tests.
# --long adds sizes, codecs, repetitions, a network of MTU 1500, an iWARP device, and
# tribd under systemd. --siw and --unit run only the last two.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/harness/tap.sh
. "$here/../harness/tap.sh"
# shellcheck source=tests/harness/few_images.sh
. "$here/../harness/few_images.sh"
long=() only=
case ${1-} in
--siw | --unit) only=$1 && shift ;;
esac
[ "${1-}" != --long ] || { long=(--long) && shift; }
build=$(cd "$1" && pwd) && mkdir -p "$2" && folder=$(cd "$2" && pwd) || exit 1
inside_status=37 # the exit status of inside.sh and two_guests.sh after their last test
child='' helper=''

# Run a command that ends with this script, even if the script is killed.
leashed() {
    if command -v setpriv >/dev/null; then
        exec setpriv --pdeathsig TERM "$@"
    fi
    exec "$@"
}

# shellcheck disable=SC2317 # the trap of tap.sh calls it
at_exit() {
    [ -z "$child" ] || kill "$child" 2>/dev/null
    rm -rf "$folder/data"
    [ -z "$helper" ] || kill "$helper" 2>/dev/null
    # shellcheck disable=SC2086 # there may be none
    [ -z "$child$helper" ] || wait $child $helper 2>/dev/null
}

# watched COMMAND... - run a command and return its exit status; a signal to this script
# ends the command, too.
watched() {
    local status

    (leashed "$@") &
    child=$!
    wait "$child"
    status=$?
    child=
    return "$status"
}

on_one_machine() { # MTU OF-PACKETS
    local bed=("$here/guest" --mtu "$1")

    [ "$own" = no ] || [ "$1" != 9000 ] || bed=("$here/host") # its MTU is 9000
    few_images "$data"
    RXE_MTU=$2 watched "${bed[@]}" --timeout "$limit" -- \
        bash "$here/inside.sh" "${long[@]}" "$build" "$data" "$inside_status"
    result $(($? != inside_status)) "RDMA packets of $2 bytes: the tests came to their end"
}

hang() {
    "$here/guest" --timeout 60 -- sleep 1000 >"$said" 2>&1
    [ $? = 124 ] && grep -q 'time-out' "$said"
    result $? "a command that hangs is ended"
}

# take_orders FOLDER - carry out each request of host 0 once.
take_orders() {
    local done=0 order link

    while kill -0 $$ 2>/dev/null; do
        sleep 0.1
        read -r order link < <(sed -n 's/^0: please //p' "$said" | sed -n "$((done + 1))p") ||
            continue
        done=$((done + 1))
        case $order in
        pull) echo "set_link $link off" >"$1/monitor0.in" ;;
        plug) echo "set_link $link on" >"$1/monitor0.in" ;;
        kill) [ ! -e "$1/pid1" ] || { kill -9 "$(cat "$1/pid1")" && rm "$1/pid1"; } ;;
        esac
    done
}

two_hosts() { # MTU OF-PACKETS
    local control=$dir/control$1

    mkdir "$control"
    : >"$said"
    take_orders "$control" &
    helper=$!
    # One processor per guest is enough for one rank; a second one would double the time
    # of emulation.
    watched "$here/guest" --hosts 2 --cpus 1 --mtu "$1" --timeout "$limit" --control "$control" -- \
        bash "$here/two_guests.sh" "${long[@]}" "$build" "$inside_status" >"$said" 2>"$dir/errors"
    kill "$helper"
    wait "$helper" 2>/dev/null
    helper=
    sed -n 's/^0: \(.*\)/\1/p' "$said" | grep -v '^please '
    shown=("$dir/errors" "$said")
    grep -q '^0: the end' "$said"
    result $? "two hosts, RDMA packets of $2 bytes: the tests came to their end"
    shown=("$said")
}

# Install tribd as docs/deploy.md describes, but into a folder that the guest copies.
# The paths of this build's configuration are replaced.
install_for_systemd() { # ROOT
    local unit=$build/agg/daemon/tribd.service to=/usr/lib/systemd/system

    make -C "$build" -s install DESTDIR="$1" prefix=/usr/local || return
    rm -f "$unit"
    make -C "$build" -s agg/daemon/tribd.service prefix=/usr/local sysconfdir=/etc &&
        install -D -m 644 -t "$1$to" "$unit" &&
        install -D -m 644 "$here/../../agg/daemon/tribd.sysusers" "$1/usr/lib/sysusers.d/tribd.conf"
    rm -f "$unit"
}

by_systemd() {
    local root=$folder/root

    rm -rf "$root"
    install_for_systemd "$root" >"$said" 2>&1
    result $? "tribd and its unit are installed into a folder"
    RXE_BOOT_SECONDS=600 watched "$here/guest" --systemd --timeout "$limit" -- \
        bash "$here/unit.sh" "$root" "$build" "$inside_status"
    result $(($? != inside_status)) "systemd: the tests came to their end"
    rm -rf "$root"
}

iwarp() {
    local status

    "$here/build_siw.sh" "$folder/siw" >"$said" 2>&1
    status=$?
    if [ "$status" = 77 ]; then
        skip "an iWARP device" "$(tail -n 1 "$said")"
        return
    fi
    result "$status" "siw is built for the guest's kernel"
    [ "$status" = 0 ] || return
    watched "$here/guest" --timeout "$limit" -- \
        bash "$here/siw.sh" "$build" "$folder/siw/siw.ko" "$inside_status"
    result $(($? != inside_status)) "an iWARP device: the tests came to their end"
    rm -rf "$folder/siw"
}

tests() {
    number=100 # after the numbers of inside.sh
    case $only in
    --siw) iwarp && return ;;
    --unit) by_systemd && return ;;
    esac
    on_one_machine 9000 4096
    if [ "$status_of_guest" != 0 ]; then
        skip "tests of two hosts" "$why_no_guest"
        return
    fi
    two_hosts 9000 4096
    if [ ${#long[@]} -gt 0 ]; then
        on_one_machine 1500 1024
        two_hosts 1500 1024
        hang
        guest_runs_host
        iwarp
        by_systemd
    fi
}

# On a machine whose kernel has soft-RoCE, `host` creates another device. The guest is
# such a machine; it already has one device.
guest_runs_host() {
    # shellcheck disable=SC2016 # the guest expands it
    "$here/guest" -- "$here/host" -- sh -c 'ibv_devinfo -d "$RXE_DEVICE" | grep PORT_ACTIVE' \
        >"$said" 2>&1
    result $? "a machine with soft-RoCE of its own needs no guest"
}

main() {
    if [ "$status_of_guest" = 77 ] && [ "$own" = no ]; then
        skip "tests of RDMA" "$why_no_guest"
    elif [ "$status_of_guest" != 0 ] && [ "$status_of_guest" != 77 ]; then
        echo "$why_no_guest" >"$said"
        result 1 "guests can be had"
    else
        tests
    fi
}

data=$folder/data own=no limit=1500 # a guest has its own /tmp
[ ${#long[@]} = 0 ] || limit=12000
! "$here/host" --check 2>/dev/null || own=yes
why_no_guest=$("$here/guest" --check --hosts 2 2>&1)
status_of_guest=$?
exec 4>&1 > >(exec tee "$folder/rxe.log") 2>&1
copy=$!
echo ":global-test-result: ERROR" >"$folder/rxe.trs" # until the last test has run
main
exec >&4 2>&1
wait "$copy"
if [ "$failed" = 0 ]; then
    echo ":global-test-result: PASS"
else
    echo ":global-test-result: FAIL"
fi >"$folder/rxe.trs"
exit "$failed"
