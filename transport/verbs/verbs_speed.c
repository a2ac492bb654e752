/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_speed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

#define SPEED_CAPPED 128 /* NDR: an old libibverbs reports faster ports as this */

uint32_t trib_verbs_mbps(uint8_t speed, uint8_t width)
{
    static const struct {
        uint8_t code;
        uint32_t mbps; /* of one lane, without the line code */
    } speeds[] = {
        {1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
        {16, 14000}, {32, 25000}, {64, 50000}, {SPEED_CAPPED, 100000},
    };
    static const struct {
        uint8_t code, lanes;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    uint32_t lane = 0, lanes = 0;

    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
        lane = speeds[i].code == speed ? speeds[i].mbps : lane;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        lanes = widths[i].code == width ? widths[i].lanes : lanes;
    return lane * lanes;
}

uint32_t trib_verbs_port_mbps(const struct ibv_device *device, uint8_t number,
                              const struct ibv_port_attr *attr)
{
    uint32_t mbps = trib_verbs_mbps(attr->active_speed, attr->active_width);
    char path[PATH_MAX], text[64];
    int n =
        snprintf(path, sizeof(path), "%s/ports/%u/rate", device->ibdev_path, number);

    /* "800 Gb/sec (4X XDR)" */
    if ((mbps && attr->active_speed < SPEED_CAPPED) || n < 0 ||
        (size_t)n >= sizeof(path) || !trib_file_line("", path, text, sizeof(text)))
        return mbps;
    const double rate = strtod(text, NULL);
    return rate > 0 && rate < 4e6 ? (uint32_t)(1000 * rate) : mbps;
}
