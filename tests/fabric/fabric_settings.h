/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings of a fabric as texts NAME=VALUE. A setting applies to the machine, or to the
 * hosts, devices and ports selected by preceding host=N, device=N and port=N.
 */
#ifndef TESTS_FABRIC_FABRIC_SETTINGS_H
#define TESTS_FABRIC_FABRIC_SETTINGS_H

#include <stdbool.h>

/* The selected targets; -1: all. With three times -1, machine settings apply, too. */
struct fabric_where {
    int host, device, port;
};

/** fabric_set - apply one text to the attached fabric, under its lock; false: it is no
 * setting. */
bool fabric_set(struct fabric_where *where, const char *text);

#endif
