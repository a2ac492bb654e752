/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/python/backend/torch_plans.hpp"

#include <algorithm>

namespace tributary {

static constexpr size_t KINDS_MOST = 64; /* kinds in the cache */

void check(trib_status_t status, const trib_comm_t *comm)
{
    if (status < 0)
        throw Failure(status, trib_last_error(comm));
}

void Plans::free_all()
{
    for (auto &each : rings_) {
        for (Slot &slot : each.second->slots)
            (void)trib_plan_free(slot.plan);
    }
    rings_.clear();
}

trib_plan_t *Plans::make(const Kind &kind)
{
    trib_desc_t desc = TRIB_DESC_INIT;
    trib_plan_t *plan = nullptr;

    desc.count = kind.count;
    desc.dtype = kind.dtype;
    desc.op = kind.op;
    desc.root = kind.root;
    desc.codec = "none";
    desc.feedback = "codec";
    desc.quorum = "all";
    desc.send_counts = kind.send_counts.empty() ? nullptr : kind.send_counts.data();
    desc.recv_counts = kind.recv_counts.empty() ? nullptr : kind.recv_counts.data();
    check(trib_plan_create(comm_, kind.coll, &desc, &plan), comm_);
    return plan;
}

/* Free the plans of the least recently used kind. False: one is busy, none freed. */
bool Plans::free_oldest()
{
    const auto oldest = std::min_element(
        rings_.begin(), rings_.end(),
        [](const auto &a, const auto &b) { return a.second->used < b.second->used; });
    auto &slots = oldest->second->slots;

    if (std::any_of(slots.begin(), slots.end(),
                    [](const Slot &slot) { return slot.busy; }))
        return false;
    for (Slot &slot : slots)
        (void)trib_plan_free(slot.plan);
    rings_.erase(oldest);
    return true;
}

Slot *Plans::slot_for(const Kind &kind)
{
    auto found = rings_.find(kind);

    if (found == rings_.end()) {
        if (rings_.size() >= KINDS_MOST && !free_oldest())
            return nullptr;
        found = rings_.emplace(kind, std::make_unique<Ring>()).first;
    }
    Ring &ring = *found->second;
    Slot *slot = &ring.slots[ring.next];
    if (slot->busy)
        return nullptr;
    /* A start that fails counts too, because it may succeed on other ranks. */
    ring.next = (ring.next + 1) % ring.slots.size();
    ring.used = ++started_;
    return slot;
}

Slot *Plans::start(const Kind &kind, const void *from, void *to)
{
    Slot *slot = slot_for(kind);

    if (!slot)
        return nullptr;
    if (!slot->plan)
        slot->plan = make(kind);
    if (kind.coll == TRIB_BARRIER)
        check(trib_plan_start(slot->plan), comm_);
    else
        check(trib_plan_start_with(slot->plan, from, to), comm_);
    slot->busy = true;
    return slot;
}

} // namespace tributary
