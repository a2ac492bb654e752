#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
#
# The first process of the guest: it loads the modules of the initramfs, mounts the
# host's root file system, and over it a file system in memory for all writes. Then it
# starts session.sh. The kernel's command line contains the parameters.
/bin/busybox --install -s /bin
mkdir -p /proc /host /memory /root
mount -t proc proc /proc

word() { # NAME: print the value of NAME=value on the kernel's command line
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
