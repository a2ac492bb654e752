#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154 # what JOB sets
#
# session.sh JOB - inside the guest, as its process 1: makes the machine complete, runs the
# command of the file JOB, hands out what it prints and its exit status by three virtual
# serial ports, and switches the machine off.
#
# JOB is bash: the environment of the host, job_folder, job_command, job_mtu, job_host,
# job_hosts, job_scripts, the folder that this script comes from, and job_systemd: a program
# that becomes process 1 then, of which this script is a service.

port= # begin of their names; 1: output, 2: errors, 3: the exit status

mounts() {
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t devtmpfs devtmpfs /dev
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs tmpfs /run
    mkdir /run/rxe && cp "$0" "$job" /run/rxe/ # which may be gone with the next
    case $job_folder/ in
    /tmp/*) ;; # has to be seen in the guest
    *) mount -t tmpfs tmpfs /tmp ;;
    esac
    ln -sf /proc/self/fd /dev/fd
}

# The ports come up some time after their module.
ports() {
    local tries

    for ((tries = 0; tries < 100; tries++)); do
        port=$(find /dev -name 'vport*p3')
        port=${port%3}
        [ -z "$port" ] || return 0
        sleep 0.1
    done
    echo "no serial ports"
    return 1
}

network() {
    hostname "rxe$job_host"
    ip link set lo up
    if [ "$job_hosts" = 1 ]; then
        "$job_scripts/device.sh" pair v0 v1 "$job_mtu" || return
        "$job_scripts/device.sh" up rxe0 v0 10.77.0.1 "$job_mtu" || return
    else
        modprobe virtio_net
        "$job_scripts/device.sh" up rxe0 eth0 "10.77.0.$((job_host + 1))" "$job_mtu" || return
        export RXE_PEER=10.77.0.$((2 - job_host))
    fi
    export RXE_DEVICE=rxe0 RXE_ADDRESS=10.77.0.$((job_host + 1))
    export RXE_HOST=$job_host RXE_HOSTS=$job_hosts
}

# run - the command's exit status. It writes into pipes, as it would on the host; what it
# leaves running cannot hold up the end.
run() {
    local out err status
    local -a copies

    exec {out}> >(exec cat >"${port}1")
    copies+=($!)
    exec {err}> >(exec cat >"${port}2")
    copies+=($!)
    if ! network >&"$err" 2>&1; then
        status=125
    elif ! cd "$job_folder" 2>&"$err"; then
        status=125
    else
        ulimit -l unlimited
        "${job_command[@]}" </dev/null >&"$out" 2>&"$err" {out}>&- {err}>&-
        status=$?
    fi
    exec {out}>&- {err}>&-
    timeout 5 tail -s 0.05 --pid="${copies[0]}" -f /dev/null
    timeout 5 tail -s 0.05 --pid="${copies[1]}" -f /dev/null
    return "$status"
}

# hand_over - to systemd, which starts little but its journal, in memory, and the command: not
# what is enabled on the host, not its file systems, not what any machine has.
hand_over() {
    local unit

    mount -t tmpfs -o mode=755 tmpfs /etc/systemd
    mkdir -p /etc/systemd/system /run/systemd/system
    printf '[Journal]\nStorage=volatile\n' >/etc/systemd/journald.conf
    for unit in /lib/systemd/system/{sysinit,local-fs,sockets,timers}.target.wants/*; do
        case $unit in
        */systemd-journald*) ;;
        *) ln -sf /dev/null "/etc/systemd/system/${unit##*/}" ;;
        esac
    done
    rm -f /etc/machine-id /etc/fstab /.dockerenv # no container, whatever the host is
    printf '%032x\n' 4700 >/etc/machine-id # without one it enables what is installed
    cat >/run/systemd/system/rxe.service <<UNIT
[Unit]
Description=The command
FailureAction=poweroff-immediate
[Service]
Type=exec
ExecStart=/bin/bash /run/rxe/${0##*/} /run/rxe/${job##*/}
StandardError=journal+console
UNIT
    exec env -i PATH="$PATH" "$job_systemd" --unit=rxe.service
}

job=$1
# shellcheck source=/dev/null
. "$job"
if [ $$ = 1 ]; then
    mounts
    [ -z "$job_systemd" ] || hand_over
fi
if ports; then
    echo up >"${port}3"
    run
    echo $? >"${port}3"
fi
sleep 0.2 # until the ports have been read
echo o >/proc/sysrq-trigger
sleep 60
