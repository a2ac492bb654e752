/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nominal speed of a port.
 */
#ifndef TRANSPORT_VERBS_VERBS_SPEED_H
#define TRANSPORT_VERBS_VERBS_SPEED_H

#include <infiniband/verbs.h>
#include <stdint.h>

/** trib_verbs_mbps - return the speed of a port in Mbit/s from the codes of its lane's
 * speed and its width; 0: unknown. */
uint32_t trib_verbs_mbps(uint8_t speed, uint8_t width);

/** trib_verbs_port_mbps - return the speed of a port in Mbit/s; 0: unknown. */
uint32_t trib_verbs_port_mbps(const struct ibv_device *device, uint8_t number,
                              const struct ibv_port_attr *attr);

#endif
