/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/p2p/message.h"

const char *trib_message_fault(const struct trib_message *m, size_t slot_bytes)
{
    size_t bytes;

    if (m->magic != TRIB_MESSAGE_MAGIC || m->kind == 0 ||
        m->kind >= TRIB_MESSAGE_KIND_END)
        return "a message of invalid kind or version";
    if (m->bytes > slot_bytes)
        return "a message longer than its slot";
    if (m->kind == TRIB_MESSAGE_DATA)
        return m->bytes || m->count ? NULL : "a message part without elements";
    if (!trib_message_bytes(m->count, m->dtype, &bytes))
        return "a message of invalid type or length";
    if ((m->kind == TRIB_MESSAGE_ANNOUNCE || m->kind == TRIB_MESSAGE_GRANT) && m->bytes)
        return m->bytes <= TRIB_MESSAGE_PLACE && bytes
                   ? NULL
                   : "a message with an invalid location";
    if (m->bytes != (m->kind == TRIB_MESSAGE_IS_EAGER ? bytes : 0) ||
        m->bytes > TRIB_MESSAGE_EAGER)
        return "a message whose length does not match its elements";
    return NULL;
}

uint32_t trib_message_sum(uint32_t (*crc)(uint32_t, const void *, size_t),
                          const struct trib_message *m, const uint8_t *payload)
{
    return crc(crc(0, m, offsetof(struct trib_message, check)), payload, m->bytes);
}
