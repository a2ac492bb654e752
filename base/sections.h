/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Named sections: the format of all saved and moved state, little-endian.
 *
 *     byte 0      magic of the kind of state, 8 bytes
 *     byte 8      u32 version, u32 0, u64 total bytes, u64 checksum
 *     byte 32     sections: name, 16 bytes padded with zeros; u64 length; that many
 *                 bytes, padded with zeros to a multiple of 8
 *
 * The checksum is XXH3 of everything else. A kind has a fixed list of sections, which
 * readers expect in the order in which they were written. Names may repeat. Sections
 * may contain other states. A kind whose list changes gets another version.
 */
#ifndef BASE_SECTIONS_H
#define BASE_SECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_error;

enum { TRIB_SECTION_NAME_BYTES = 16, TRIB_SECTIONS_HEAD_BYTES = 32 };

struct trib_sections_kind {
    char magic[9];
    uint32_t version;
    const char *what; /* for messages: "a plan" */
};

/* Writing -------------------------------------------------------------------------- */

struct trib_sections_writer {
    uint8_t *out; /* NULL: only count the bytes */
    size_t room;
    size_t bytes; /* needed so far */
};

/** trib_sections_begin - begin to write into `room` bytes at out, or to count bytes. */
static inline struct trib_sections_writer trib_sections_begin(void *out, size_t room)
{
    return (struct trib_sections_writer){out, room, TRIB_SECTIONS_HEAD_BYTES};
}

/**
 * trib_sections_add - append a section.
 *
 * data     NULL: the caller writes the bytes
 * returns  its bytes; NULL: they are only counted, as there is no room
 */
void *trib_sections_add(struct trib_sections_writer *w, const char *name,
                        const void *data, size_t bytes);

/**
 * trib_sections_finish - write the head.
 *
 * errors   TRIB_ERR_OVERFLOW: there is not enough room
 */
trib_status_t trib_sections_finish(const struct trib_sections_writer *w,
                                   const struct trib_sections_kind *kind,
                                   struct trib_error *err);

/** trib_sections_seal - correct length and checksum after a change of the bytes. */
void trib_sections_seal(void *state, size_t bytes);

/* Reading: the bytes may come from anywhere ---------------------------------------- */

struct trib_section {
    char name[TRIB_SECTION_NAME_BYTES + 1];
    const uint8_t *data; /* [bytes] within the state */
    size_t bytes;
};

struct trib_sections {
    const struct trib_sections_kind *kind;
    const uint8_t *state; /* [bytes] */
    size_t bytes;
    size_t at; /* of the next section */
};

/**
 * trib_sections_open - check magic, version, length, checksum and the bounds of all
 * sections.
 *
 * state    outlives out; NULL is refused
 * errors   TRIB_ERR_INVALID with a message
 */
trib_status_t trib_sections_open(const struct trib_sections_kind *kind,
                                 const void *state, size_t bytes,
                                 struct trib_error *err, struct trib_sections *out);

/** trib_sections_next - read the next section. Errors: TRIB_ERR_INVALID if it does not
 * have this name, or there is none. */
trib_status_t trib_sections_next(struct trib_sections *r, const char *name,
                                 struct trib_error *err, struct trib_section *out);

/** trib_sections_copy - copy the next section, which must have this name and length. */
trib_status_t trib_sections_copy(struct trib_sections *r, const char *name, void *to,
                                 size_t bytes, struct trib_error *err);

/** trib_sections_close - return TRIB_ERR_INVALID if sections remain. */
trib_status_t trib_sections_close(const struct trib_sections *r,
                                  struct trib_error *err);

/** trib_sections_step - read the next section, whatever its name; false: none. */
bool trib_sections_step(struct trib_sections *r, struct trib_section *out);

/** trib_sections_find - return the first section of this name, or one whose data is
 * NULL. The state is one that trib_sections_open has accepted, or was just written. */
struct trib_section trib_sections_find(const void *state, size_t bytes,
                                       const char *name);

#endif
