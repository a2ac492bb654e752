/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cache of the plans of a process group, for later calls of the same kind.
 *
 * The order of starts alone determines which plan a start uses, and which plans are
 * created and freed. That order is the same on all ranks, as services require. All
 * functions of Plans are called under the lock of WorkQueue.
 */
#ifndef TRIBUTARY_TORCH_PLANS_H
#define TRIBUTARY_TORCH_PLANS_H

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <tributary/coll.h>

namespace tributary {

/* A call of the library that failed; what() is its message. In Python it becomes the
 * package's exception for the status. */
struct Failure : std::runtime_error {
    Failure(trib_status_t status, const std::string &sentence)
        : std::runtime_error(sentence), status(status)
    {
    }
    trib_status_t status;
};

/* Throw a Failure with the library's message if the status is an error. */
void check(trib_status_t status, const trib_comm_t *comm);

/* Arguments that a plan is created for; the key of the cache. */
struct Kind {
    trib_coll_t coll;
    size_t count;
    trib_dtype_t dtype;
    trib_op_t op;
    int root;
    std::vector<size_t> send_counts, recv_counts; /* empty: `count` for each rank */
    auto key() const
    {
        return std::tie(coll, count, dtype, op, root, send_counts, recv_counts);
    }
    bool operator<(const Kind &other) const
    {
        return key() < other.key();
    }
};

/* A plan that is started repeatedly; busy from the start until it is done. */
struct Slot {
    trib_plan_t *plan = nullptr;
    bool busy = false;
};

class Plans {
public:
    explicit Plans(trib_comm_t *comm) : comm_(comm)
    {
    }
    void free_all(); /* once no slot is busy */

    /* Start a plan and return its busy slot. NULL: nothing was started, because a plan
     * that this start needs is busy. Throws Failure. */
    Slot *start(const Kind &kind, const void *from, void *to);

private:
    /* The k-th start of a kind uses slot k mod 4. */
    struct Ring {
        std::array<Slot, 4> slots;
        size_t next = 0;
        uint64_t used = 0;
    };

    Slot *slot_for(const Kind &kind);
    bool free_oldest();
    trib_plan_t *make(const Kind &kind);

    trib_comm_t *comm_;
    std::map<Kind, std::unique_ptr<Ring>> rings_;
    uint64_t started_ = 0;
};

} // namespace tributary

#endif
