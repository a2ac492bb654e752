#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154 # JOB sets them
#
# session.sh JOB - runs in the guest as process 1. It sets up the machine and runs the
# command of the file JOB. It sends the output and the exit status through three virtual
# serial ports, and turns the machine off.
#
# JOB is bash: the environment of the host, job_folder, job_command, job_mtu, job_host,
# job_hosts, job_scripts (the folder of this script) and job_systemd. job_systemd is a
# program that becomes process 1 and starts this script as a service.

port= # prefix of their names; 1: output, 2: errors, 3: the exit status

mounts() {
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t devtmpfs devtmpfs /dev
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs tmpfs /run
    mkdir /run/rxe && cp "$0" "$job" /run/rxe/ # the next mount may hide them
    case $job_folder/ in
    /tmp/*) ;; # the guest must see this folder
    *) mount -t tmpfs tmpfs /tmp ;;
    esac
    ln -sf /proc/self/fd /dev/fd
}

# The ports appear some time after their module.
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

# run - run the command and return its exit status. It writes into pipes, as on the
# host; processes that it leaves behind do not delay the end.
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

# hand_over - become systemd, which starts only its journal, in memory, and the command.
# It does not start the host's enabled units, the host's file systems or the usual units
# of a machine.
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
    rm -f /etc/machine-id /etc/fstab /.dockerenv # the guest is no container
    printf '%032x\n' 4700 >/etc/machine-id # else systemd enables installed units
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
sleep 0.2 # until the host has read the ports
echo o >/proc/sysrq-trigger
sleep 60
