#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
#
# First process of the guest: loads the modules of the initramfs, mounts the root file
# system of the host, and over it one in memory that takes whatever is written. Then
# session.sh goes on from there. The kernel's command line says where it is.
/bin/busybox --install -s /bin
mkdir -p /proc /host /memory /root
mount -t proc proc /proc

word() { # NAME: the value of NAME=value on the kernel's command line
    tr ' ' '\n' </proc/cmdline | sed -n "s|^$1=||p"
}

while read -r module; do
    insmod "$module" || echo "cannot load $module"
done </modules

mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /host
mount -t tmpfs -o mode=755 memory /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work root /root

session=$(word rxe.session)
job=$(word rxe.job)
umount /proc
exec switch_root /root "$session" "$job"
