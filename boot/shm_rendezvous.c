/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/shm_rendezvous.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/memfd.h"
#include "base/plain.h"
#include "base/release.h"

#define RENDEZVOUS_MAGIC UINT64_C(0x3164616f62626972) /* "ribboad1" */
#define RENDEZVOUS_VERSION 5

/*
 * A rank alternates between its two cells, so peers may still read the previous
 * contribution while the next is written. No rank gets two exchanges ahead, because
 * every exchange needs all ranks. Only after an error may a cell be overwritten too
 * early; rereading the tag after the copy detects that.
 */
struct cell {
    _Atomic uint64_t tag; /* ticket; 0 while being written */
    struct trib_rendezvous_entry entry;
};

struct member {
    _Atomic int32_t pid;
    _Atomic uint64_t start;
    _Atomic uint64_t space;
};

struct slot {
    alignas(64) struct member announced;
    struct member joined;
    _Atomic uint64_t owner; /* generation << 32 | pid; 0: never taken */
    _Atomic uint32_t ready_gen; /* generation for which `joined` is valid */
    _Atomic uint32_t left_gen; /* last generation that this rank has left */
    uint32_t turn; /* private to the rank: the cell to write next */
    struct cell cells[2];
};

/* Failure state of a generation: the low bits of head->failure. */
enum { FAILURE_WRITING = 1, FAILURE_READY = 2 };

/* Offsets of magic, version and release are fixed from version 5 on. */
struct trib_rendezvous_head {
    uint64_t magic;
    uint32_t version;
    char release[TRIB_RELEASE_BYTES];
    uint32_t ranks;
    uint64_t bytes;
    uint64_t key; /* random; verifies that a descriptor is this rendezvous */
    uint8_t secret[TRIB_SECRET_BYTES]; /* secret of the job */
    _Atomic uint64_t failure; /* generation << 32 | FAILURE_*; 0: none yet */
    int32_t status;
    char text[TRIB_RENDEZVOUS_TEXT];
    struct slot slots[];
};

static size_t rendezvous_bytes(int ranks)
{
    size_t page = 4096;
    size_t bytes =
        sizeof(struct trib_rendezvous_head) + (size_t)ranks * sizeof(struct slot);

    return (bytes + page - 1) / page * page;
}

static bool map_rendezvous(struct trib_rendezvous *rendezvous, int fd, size_t bytes)
{
    rendezvous->head = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    rendezvous->bytes = bytes;
    return rendezvous->head != MAP_FAILED;
}

trib_status_t trib_rendezvous_create(int ranks, int *fd_out,
                                     struct trib_rendezvous *out,
                                     struct trib_error *err)
{
    assert(ranks > 0 && ranks <= TRIB_RENDEZVOUS_RANKS_MAX);
    size_t bytes = rendezvous_bytes(ranks);
    struct trib_secret secret;
    uint64_t key;
    if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return trib_fail(err, TRIB_ERR_SYSTEM, "getrandom: %m");
    if (trib_secret_make(&secret, err) != TRIB_OK)
        return TRIB_ERR_SYSTEM;
    int fd = -1;
    trib_status_t status = trib_memfd_create("tributary-rendezvous", bytes, &fd, err);

    if (status != TRIB_OK)
        return status;
    if (!map_rendezvous(out, fd, bytes)) {
        status = trib_fail(err, TRIB_ERR_SYSTEM, "cannot map %zu bytes: %m", bytes);
        close(fd);
        return status;
    }
    out->ranks = ranks;
    out->head->key = key;
    memcpy(out->head->secret, secret.bytes, sizeof(secret.bytes));
    trib_secret_wipe(&secret);
    out->head->version = RENDEZVOUS_VERSION;
    memcpy(out->head->release, trib_release, sizeof(out->head->release));
    out->head->ranks = (uint32_t)ranks;
    out->head->bytes = bytes;
    out->head->magic = RENDEZVOUS_MAGIC;
    *fd_out = fd;
    return TRIB_OK;
}

/* Check a copy of the head: ranks may keep writing to the original. */
static bool is_rendezvous(const struct trib_rendezvous_head *head, size_t bytes)
{
    return head->ranks > 0 && head->ranks <= TRIB_RENDEZVOUS_RANKS_MAX &&
           head->bytes == bytes && rendezvous_bytes((int)head->ranks) == bytes;
}

/* Before RELEASE_SINCE, the offset of release held other fields. */
static trib_status_t judge(const struct trib_rendezvous_head *head, uint64_t key,
                           struct trib_rendezvous *out)
{
    enum { RELEASE_SINCE = 5 };
    char release[TRIB_RELEASE_BYTES];

    snprintf(release, sizeof(release), "%.*s",
             head->version < RELEASE_SINCE ? 0 : (int)sizeof(release) - 1,
             head->release);
    (void)trib_plain(release, out->release, sizeof(out->release));
    if (head->magic != RENDEZVOUS_MAGIC)
        return TRIB_ERR_PROTOCOL;
    if (head->version != RENDEZVOUS_VERSION)
        return TRIB_ERR_UNSUPPORTED;
    if (!is_rendezvous(head, out->bytes) || (key && head->key != key))
        return TRIB_ERR_PROTOCOL;
    out->ranks = (int)head->ranks;
    return TRIB_OK;
}

trib_status_t trib_rendezvous_map(int fd, uint64_t key, struct trib_rendezvous *out)
{
    struct trib_rendezvous_head head;
    struct stat st;

    if (fstat(fd, &st))
        return TRIB_ERR_SYSTEM;
    if (!S_ISREG(st.st_mode) ||
        (size_t)st.st_size < sizeof(struct trib_rendezvous_head) ||
        (size_t)st.st_size > rendezvous_bytes(TRIB_RENDEZVOUS_RANKS_MAX) ||
        (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0)
        return TRIB_ERR_PROTOCOL;
    if (!map_rendezvous(out, fd, (size_t)st.st_size))
        return TRIB_ERR_SYSTEM;
    memcpy(&head, out->head, sizeof(head));
    atomic_signal_fence(memory_order_seq_cst); /* use the checked copy */
    const trib_status_t status = judge(&head, key, out);
    if (status != TRIB_OK)
        trib_rendezvous_close(out);
    return status;
}

trib_status_t trib_rendezvous_open(const char *path, uint64_t key,
                                   struct trib_rendezvous *out)
{
    /* O_NONBLOCK: opening must not block if the path now refers to a pipe. */
    int fd = trib_fd_keep(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK));

    if (fd < 0)
        return TRIB_ERR_SYSTEM;
    trib_status_t status = trib_rendezvous_map(fd, key, out);
    int error = errno;
    close(fd);
    errno = error;
    return status;
}

uint64_t trib_rendezvous_key(const struct trib_rendezvous *rendezvous)
{
    return rendezvous->head->key;
}

void trib_rendezvous_secret(const struct trib_rendezvous *rendezvous,
                            struct trib_secret *out)
{
    *out = (struct trib_secret){.is_set = true};
    memcpy(out->bytes, rendezvous->head->secret, sizeof(out->bytes));
}

void trib_rendezvous_close(struct trib_rendezvous *rendezvous)
{
    munmap(rendezvous->head, rendezvous->bytes);
    rendezvous->head = NULL;
}

static struct slot *slot_of(const struct trib_rendezvous *rendezvous, int rank)
{
    assert(rank >= 0 && rank < rendezvous->ranks);
    return &rendezvous->head->slots[rank];
}

static void write_member(struct member *member, const struct trib_process *process)
{
    atomic_store_explicit(&member->start, process->start, memory_order_relaxed);
    atomic_store_explicit(&member->space, process->space, memory_order_relaxed);
    atomic_store_explicit(&member->pid, process->pid, memory_order_release);
}

static void read_member(struct member *member, struct trib_process *out)
{
    out->pid = atomic_load_explicit(&member->pid, memory_order_acquire);
    out->start = atomic_load_explicit(&member->start, memory_order_relaxed);
    out->space = atomic_load_explicit(&member->space, memory_order_relaxed);
}

void trib_rendezvous_announce(struct trib_rendezvous *rendezvous, int rank, int pid)
{
    struct trib_process process;

    trib_process_find(pid, &process);
    write_member(&slot_of(rendezvous, rank)->announced, &process);
}

/* Return true if a live process holds the slot. */
static bool is_held(struct slot *slot, uint64_t owner, struct trib_process *holder)
{
    uint32_t generation = (uint32_t)(owner >> 32);

    if (generation <= atomic_load(&slot->left_gen))
        return false;
    *holder = (struct trib_process){.pid = (int)(uint32_t)owner};
    if (atomic_load(&slot->ready_gen) < generation)
        return true; /* is joining now */
    read_member(&slot->joined, holder);
    return trib_process_query(holder) != TRIB_PROCESS_DEAD;
}

/*
 * Return this rank's last generation plus one, or the current one of the others, if
 * higher. Ranks that retry after a failure thus agree on the number.
 */
static uint32_t next_generation(const struct trib_rendezvous *rendezvous,
                                uint64_t owner)
{
    uint32_t generation = (uint32_t)(owner >> 32) + 1;

    for (int i = 0; i < rendezvous->ranks; i++) {
        uint32_t other = (uint32_t)(atomic_load(&slot_of(rendezvous, i)->owner) >> 32);
        if (other > generation)
            generation = other;
    }
    return generation;
}

trib_status_t trib_rendezvous_join(struct trib_rendezvous *rendezvous, int rank,
                                   uint32_t *generation_out,
                                   struct trib_process *holder)
{
    struct slot *slot = slot_of(rendezvous, rank);
    struct trib_process self;
    uint64_t owner = atomic_load(&slot->owner);

    trib_process_self(&self);
    if (is_held(slot, owner, holder))
        return TRIB_ERR_MISMATCH;
    uint32_t generation = next_generation(rendezvous, owner);
    uint64_t mine = (uint64_t)generation << 32 | (uint32_t)self.pid;
    if (!atomic_compare_exchange_strong(&slot->owner, &owner, mine)) {
        *holder = (struct trib_process){.pid = (int)(uint32_t)owner};
        return TRIB_ERR_MISMATCH;
    }
    write_member(&slot->joined, &self);
    atomic_store(&slot->ready_gen, generation);
    *generation_out = generation;
    return TRIB_OK;
}

void trib_rendezvous_leave(struct trib_rendezvous *rendezvous, int rank,
                           uint32_t generation)
{
    atomic_store(&slot_of(rendezvous, rank)->left_gen, generation);
}

enum trib_rendezvous_presence trib_rendezvous_presence(
    const struct trib_rendezvous *rendezvous, int rank, uint32_t generation,
    struct trib_process *out)
{
    struct slot *slot = slot_of(rendezvous, rank);

    if (atomic_load(&slot->ready_gen) < generation) {
        read_member(&slot->announced, out);
        return TRIB_PRESENCE_NONE;
    }
    read_member(&slot->joined, out);
    return atomic_load(&slot->left_gen) >= generation ||
                   atomic_load(&slot->ready_gen) > generation
               ? TRIB_PRESENCE_LEFT
               : TRIB_PRESENCE_JOINED;
}

void trib_rendezvous_put(struct trib_rendezvous *rendezvous, int rank, uint64_t ticket,
                         const struct trib_rendezvous_entry *entry)
{
    struct slot *slot = slot_of(rendezvous, rank);
    struct cell *cell = &slot->cells[slot->turn++ & 1];

    assert(ticket && entry->bytes <= TRIB_BOOT_BLOB_MAX);
    atomic_store(&cell->tag, 0); /* clear the tag before any byte changes */
    memcpy(cell->entry.release, entry->release, sizeof(entry->release));
    memcpy(cell->entry.phase, entry->phase, sizeof(entry->phase));
    cell->entry.bytes = entry->bytes;
    memcpy(cell->entry.blob, entry->blob, entry->bytes);
    atomic_store_explicit(&cell->tag, ticket, memory_order_release);
}

static struct cell *find_cell(const struct trib_rendezvous *rendezvous, int rank,
                              uint64_t ticket)
{
    struct slot *slot = slot_of(rendezvous, rank);

    for (int i = 0; i < 2; i++)
        if (atomic_load_explicit(&slot->cells[i].tag, memory_order_acquire) == ticket)
            return &slot->cells[i];
    return NULL;
}

bool trib_rendezvous_has(const struct trib_rendezvous *rendezvous, int rank,
                         uint64_t ticket)
{
    return find_cell(rendezvous, rank, ticket) != NULL;
}

bool trib_rendezvous_get(const struct trib_rendezvous *rendezvous, int rank,
                         uint64_t ticket, struct trib_rendezvous_entry *out)
{
    struct cell *cell = find_cell(rendezvous, rank, ticket);

    if (!cell)
        return false;
    uint32_t bytes = cell->entry.bytes;
    if (bytes > TRIB_BOOT_BLOB_MAX)
        return false;
    memcpy(out->release, cell->entry.release, sizeof(out->release));
    out->release[sizeof(out->release) - 1] = '\0';
    memcpy(out->phase, cell->entry.phase, sizeof(out->phase));
    out->phase[sizeof(out->phase) - 1] = '\0';
    out->bytes = bytes;
    memcpy(out->blob, cell->entry.blob, bytes);
    return atomic_load(&cell->tag) == ticket;
}

void trib_rendezvous_fail(struct trib_rendezvous *rendezvous, uint32_t generation,
                          trib_status_t status, const char *text)
{
    struct trib_rendezvous_head *head = rendezvous->head;
    uint64_t seen = atomic_load(&head->failure);

    assert(status < 0);
    if (seen >> 32 >= generation ||
        !atomic_compare_exchange_strong(&head->failure, &seen,
                                        trib_ticket(generation, FAILURE_WRITING)))
        return;
    head->status = status;
    snprintf(head->text, sizeof(head->text), "%s", text);
    atomic_store(&head->failure, trib_ticket(generation, FAILURE_READY));
}

trib_status_t trib_rendezvous_failure(const struct trib_rendezvous *rendezvous,
                                      uint32_t generation,
                                      char text[TRIB_RENDEZVOUS_TEXT])
{
    struct trib_rendezvous_head *head = rendezvous->head;

    if (atomic_load(&head->failure) != trib_ticket(generation, FAILURE_READY))
        return TRIB_OK;
    trib_status_t status = trib_status_of_peer(head->status);
    memcpy(text, head->text, TRIB_RENDEZVOUS_TEXT);
    text[TRIB_RENDEZVOUS_TEXT - 1] = '\0';
    return status != TRIB_OK ? status : TRIB_ERR_BOOT;
}
