/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encoded chunks: functions shared by payload_coded.c and payload_linear.c.
 */
#ifndef PIPELINE_PAYLOAD_PAYLOAD_CODED_H
#define PIPELINE_PAYLOAD_PAYLOAD_CODED_H

#include "pipeline/payload/payload.h"

/** trib_coded_input - return the encoded input; the first task that needs it encodes
 * it. */
struct trib_encoded_store *trib_coded_input(struct trib_engine *e, struct trib_run *run,
                                    const struct trib_task *t,
                                    const struct trib_chunk *c, bool final);

/** trib_coded_copy_input - COPY through the encoded input: the result is what other
 * ranks decode. */
trib_status_t trib_coded_copy_input(struct trib_engine *e, struct trib_run *run,
                                    const struct trib_task *t,
                                    const struct trib_chunk *c, bool final);

/* Rows of payload.h. */
bool trib_coded_begin(struct trib_engine *e, struct trib_run *run);
void trib_coded_end(struct trib_engine *e, struct trib_run *run);
size_t trib_coded_room(const struct trib_engine *e, const struct trib_run *run,
                       const struct trib_task *t, const struct trib_chunk *c);
bool trib_coded_ready(struct trib_engine *e, struct trib_run *run,
                      const struct trib_task *t, const struct trib_chunk *c);
void trib_coded_fill(struct trib_engine *e, struct trib_run *run, struct trib_task *t,
                     const struct trib_chunk *c, struct trib_entry *entry);
trib_status_t trib_coded_copy_in(struct trib_engine *e, struct trib_run *run,
                                 struct trib_task *t, const struct trib_chunk *c,
                                 struct trib_entry *entry);
struct trib_bytes trib_coded_sent(const struct trib_engine *e,
                                  const struct trib_run *run, const struct trib_task *t,
                                  const struct trib_chunk *c);
struct trib_bytes trib_coded_received(struct trib_engine *e, const struct trib_run *run,
                                      const struct trib_task *t,
                                      const struct trib_contrib *from,
                                      const struct trib_chunk *c);

#endif
