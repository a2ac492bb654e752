#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154,SC2016 # of tap.sh; a shell of the name space expands it
#
# Ranks on hosts with RDMA devices in shared memory: source this behind tap.sh.
#
#     why=$(fabric_refused) && skip_all "$why"
#     fabric_open hosts=4 devices=2 rate=100000000
#     "$fabric/run" 4 "$build/perf/trib-perf" allreduce --check
#     fabric_close
#
# Each rank is on a host of its own. Port P of device N of host H has the address 10.(9 + H).N.P for
# H < 200; all are in one network name space. Devices, rates and faults are the settings of
# tests/fabric/fabric_settings.c.

fabric_pid='' # holds the name space
fabric='' # its folder, in memory where there is room: each rank writes hundreds of small files of /sys

fabric_refused() {
    local tool

    for tool in unshare nsenter ip; do
        command -v "$tool" >/dev/null || { echo "$tool is not installed"; return 0; }
    done
    ! unshare --net ip link add trib0 type veth peer name trib1 >/dev/null 2>&1 || return 1
    echo "no permission to make network name spaces (CAP_SYS_ADMIN, CAP_NET_ADMIN)"
}

fabric_open() { # SETTING...
    local host device port hosts=1 devices=1 ports=1 option

    for option; do
        case $option in hosts=* | devices=* | ports=*) local "$option" ;; esac
    done
    fabric_close
    fabric_make_folder &&
        cp "$build/tests/fabric/.libs/libfabric.so" "$fabric/libibverbs.so.1" &&
        ln -s libibverbs.so.1 "$fabric/librdmacm.so.1" &&
        "$build/tests/fabric/fabric" create "$fabric/hub" "$@" || return 1
    unshare --net sleep infinity &
    fabric_pid=$!
    within 10 fabric_is_apart || return 1
    for ((host = 0; host < hosts; host++)); do
        for ((device = 0; device < devices; device++)); do
            for ((port = 1; port <= ports; port++)); do
                echo "addr add $(fabric_address "$host" "$device" "$port")/32 dev trib0"
            done
        done
    done >"$fabric/addresses"
    fabric_write_run
    nsenter --target "$fabric_pid" --net sh -c 'ip link set lo up &&
        ip link add trib0 type veth peer name trib1 && ip link set trib0 up &&
        ip link set trib1 up && ip -batch "$0"' "$fabric/addresses"
}

fabric_make_folder() {
    local room

    room=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
    if [ "${room:-0}" -lt 500000 ] || ! fabric=$(mktemp -d /dev/shm/tributary-test-XXXXXX 2>/dev/null); then
        fabric=$(mktemp -d "$dir/fabric.XXXXXX")
    fi
}

fabric_address() { # HOST, DEVICE, PORT
    echo "10.$((9 + $1 % 200)).$(($2 + 8 * ($1 / 200))).$3"
}

# fabric_set SETTING... - change the fabric while ranks run.
fabric_set() {
    "$build/tests/fabric/fabric" set "$fabric/hub" "$@"
}

# fabric_show - print ports, queue pairs and misuses.
fabric_show() {
    "$build/tests/fabric/fabric" show "$fabric/hub"
}

# fabric_sanitizer - print the runtime library of the build's sanitizer, which must be loaded first.
fabric_sanitizer() {
    ldd "$fabric/libibverbs.so.1" | awk '/^[[:space:]]*lib[at]san/ { print $3 }'
}

# run RANKS COMMAND... - a program, for timeout. Shells run with the sanitizer too, and leak.
fabric_write_run() {
    local first

    first=$(fabric_sanitizer)
    cat >"$fabric/run" <<RUN
#!/bin/sh
ranks=\$1
shift
exec nsenter --target $fabric_pid --net "$build/tools/trib-run" -n "\$ranks" sh -c '
    export FAKE_HOST=\$TRIB_RANK FAKE_FABRIC=$fabric/hub LD_LIBRARY_PATH=$fabric
    ${first:+export ASAN_OPTIONS="\$ASAN_OPTIONS:detect_leaks=0"}
    LD_PRELOAD=${first:+$first:}$fabric/libibverbs.so.1 exec "\$@"' sh "\$@"
RUN
    chmod +x "$fabric/run"
}

fabric_is_apart() {
    [ "$(readlink "/proc/$fabric_pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

# fabric_misuses - print how often the library misused a device.
fabric_misuses() {
    fabric_show | sed -n 's/^misuses: //p'
}

fabric_close() {
    [ -z "$fabric_pid" ] || { kill "$fabric_pid" && wait "$fabric_pid"; } 2>/dev/null
    fabric_pid=''
    [ -z "$fabric" ] || rm -rf "$fabric"
    fabric=''
}
