/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/state_page.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memfd.h"

_Static_assert(sizeof(struct trib_state_page) <= 4096, "it is one page");

bool trib_state_file_open(struct trib_state_file *file)
{
    const size_t bytes = sizeof(struct trib_state_page);
    struct stat is;
    int fd;

    *file = (struct trib_state_file){.fd = -1};
    if (trib_memfd_create(TRIB_STATE_PAGE_NAME, bytes, &fd, NULL) != TRIB_OK)
        return false;
    void *at = MAP_FAILED;
    if (!fchmod(fd, 0600) && !fstat(fd, &is))
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        close(fd);
        return false;
    }
    *file = (struct trib_state_file){.page = at, .fd = fd, .inode = is.st_ino};
    return true;
}

/* The program may have closed all descriptors and opened others. */
static bool is_ours(const struct trib_state_file *file)
{
    struct stat is;

    return !fstat(file->fd, &is) && is.st_ino == file->inode;
}

void trib_state_file_close(struct trib_state_file *file)
{
    if (!file->page)
        return;
    munmap(file->page, sizeof(*file->page));
    if (is_ours(file))
        close(file->fd);
    *file = (struct trib_state_file){.fd = -1};
}
