/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plans of a process group, which are kept for later calls of the same kind.
 *
 * Which plan a start takes, and which plans are made and freed, depends on the order of
 * starts alone. That order is the same on all ranks, as aggregators need it. The
 * functions of Plans are called under one lock.
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

/* A call of the library that failed; what() is its sentence. Python gets the class of
 * tributary's that goes with the status. */
struct Failure : std::runtime_error {
    Failure(trib_status_t status, const std::string &sentence)
        : std::runtime_error(sentence), status(status)
    {
    }
    trib_status_t status;
};

/* Throws what a status says, if it is an error. */
void check(trib_status_t status, const trib_comm_t *comm);

/* What plans are made for, by trib_coll_t. */
struct Kind {
    trib_coll_t coll;
    size_t count;
    trib_dtype_t dtype;
    trib_op_t op;
    int root;
    std::vector<size_t> send_counts, recv_counts; /* empty: count each */
    auto key() const
    {
        return std::tie(coll, count, dtype, op, root, send_counts, recv_counts);
    }
    bool operator<(const Kind &other) const
    {
        return key() < other.key();
    }
};

/* A plan that is started again and again; busy from its start to its end. */
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

    /* Starts a plan and makes its slot busy. NULL: nothing was started, as a plan that
     * this start needs is busy. Throws after an error. */
    Slot *start(const Kind &kind, const void *from, void *to);

private:
    /* The k-th start of a kind takes slot k mod 4. */
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
