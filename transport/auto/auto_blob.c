/* SPDX-License-Identifier: BSD-3-Clause */
/* Blobs and addresses composed of records of several inner transports. */
#include <assert.h>
#include <string.h>

#include "transport/auto/auto_peer.h"

bool trib_auto_put(uint8_t *bytes, size_t room, size_t *at, uint8_t id,
                   const uint8_t *what, size_t len)
{
    struct auto_record head = {id, (uint8_t)(len & 0xff), (uint8_t)(len >> 8)};

    assert(*at <= room);
    if (len > UINT16_MAX || *at + sizeof(head) > room ||
        len > room - *at - sizeof(head))
        return false;
    memcpy(bytes + *at, &head, sizeof(head));
    memcpy(bytes + *at + sizeof(head), what, len);
    *at += sizeof(head) + len;
    return true;
}

const uint8_t *trib_auto_get(const uint8_t *bytes, size_t len, size_t at, int id,
                             size_t *len_out)
{
    struct auto_record head;

    while (at <= len && len - at >= sizeof(head)) {
        memcpy(&head, bytes + at, sizeof(head));
        size_t n = head.len_low | (size_t)head.len_high << 8;
        at += sizeof(head);
        if (n > len - at)
            return NULL;
        if (head.id == id) {
            *len_out = n;
            return bytes + at;
        }
        at += n;
    }
    return NULL;
}
