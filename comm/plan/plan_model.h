/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans whose codec has a model.
 */
#ifndef COMM_PLAN_PLAN_MODEL_H
#define COMM_PLAN_PLAN_MODEL_H

#include <stddef.h>

#include <tributary/coll.h>

struct trib_plan;

/**
 * trib_plan_make_model - create the model of a plan whose codec has one, after the
 * vector is cut.
 *
 * If ranks exchange what the model learns, plan->exchanged receives the vector of the
 * exchange. trib_plan_make then creates a second plan from trib_plan_describe_exchange.
 */
trib_status_t trib_plan_make_model(struct trib_plan *plan);
void trib_plan_describe_exchange(const struct trib_plan *plan, trib_desc_t *desc);
void trib_plan_dispose_model(struct trib_plan *plan);

/** trib_plan_explain_model - write the codec's learned state for trib_plan_explain;
 * nothing while the plan runs. */
void trib_plan_explain_model(const struct trib_plan *plan, char *text, size_t bytes);

#endif
