/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "key": both sides have the same file. The key is a hash of all its bytes, so both
 * files must be identical.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agg/protocol/auth_methods.h"
#include "base/error.h"
#include "base/fd.h"

/* Reject files of zeros or of a few repeated letters. A random file, even in
 * hexadecimal, has more distinct bytes. */
#define DIFFERENT_MIN 8

static bool looks_random(const uint8_t *bytes, size_t n)
{
    bool seen[256] = {false};
    int different = 0;

    for (size_t i = 0; i < n; i++) {
        different += !seen[bytes[i]];
        seen[bytes[i]] = true;
    }
    return different >= DIFFERENT_MIN;
}

/* Return true if the ACL grants read access only to the user of this process. systemd's
 * LoadCredential creates a file owned by root with such an ACL; its mode then reads
 * 0440, because the group bits show the ACL mask. */
static bool acl_names_only_us(int fd)
{
    struct {
        struct posix_acl_xattr_header head;
        struct posix_acl_xattr_entry entries[5];
    } acl;
    bool ours = false;

    if (fgetxattr(fd, "system.posix_acl_access", &acl, sizeof(acl)) != sizeof(acl) ||
        le32toh(acl.head.a_version) != POSIX_ACL_XATTR_VERSION)
        return false;
    for (size_t i = 0; i < sizeof(acl.entries) / sizeof(*acl.entries); i++) {
        const unsigned tag = le16toh(acl.entries[i].e_tag);
        const unsigned rights = le16toh(acl.entries[i].e_perm);
        if (tag == ACL_USER && le32toh(acl.entries[i].e_id) == geteuid())
            ours = rights == ACL_READ;
        else if (tag == ACL_USER || tag == ACL_GROUP)
            return false;
        else if (tag == ACL_GROUP_OBJ && rights)
            return false;
    }
    return ours;
}

/* Check the descriptor, not the name, so that the checked file is the one read. */
static trib_status_t check_file(int fd, const char *path, struct trib_error *err)
{
    struct stat info;

    if (fstat(fd, &info))
        return trib_fail(err, TRIB_ERR_CONFIG, "key file %s: %m", path);
    if (!S_ISREG(info.st_mode))
        return trib_fail(err, TRIB_ERR_CONFIG, "key file %s is not a regular file",
                         path);
    if (info.st_uid != geteuid() && info.st_uid != 0)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "key file %s is owned by user %u, but must be owned by this "
                         "process's user %u or by root, so that no other user can "
                         "change it",
                         path, (unsigned)info.st_uid, (unsigned)geteuid());
    const bool shared = info.st_mode & 07177;
    if (shared && !((info.st_mode & 07777) == 0440 && acl_names_only_us(fd)))
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "key file %s has mode %04o, not 600 or 400 (chmod 600 %s); if "
                         "other users could read it, create a new key",
                         path, (unsigned)(info.st_mode & 07777), path);
    if (info.st_size < TRIB_AUTH_KEY_FILE_MIN || info.st_size > TRIB_AUTH_KEY_FILE_MAX)
        return trib_fail(err, TRIB_ERR_CONFIG,
                         "key file %s has %lld bytes: it must have %d to %d random "
                         "bytes (head -c 32 /dev/urandom)",
                         path, (long long)info.st_size, TRIB_AUTH_KEY_FILE_MIN,
                         TRIB_AUTH_KEY_FILE_MAX);
    return TRIB_OK;
}

/* Read up to `max` bytes until end of file; -1 with errno. */
static ssize_t read_all(int fd, uint8_t *bytes, size_t max)
{
    size_t n = 0;

    while (n < max) {
        ssize_t more = read(fd, bytes + n, max - n);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        n += (size_t)more;
    }
    return (ssize_t)n;
}

static trib_status_t read_key(const struct trib_auth *auth, int fd, const char *path,
                              struct trib_error *err,
                              uint8_t key_out[TRIB_CRYPT_KEY_BYTES])
{
    uint8_t bytes[TRIB_AUTH_KEY_FILE_MAX];
    trib_status_t status = check_file(fd, path, err);

    if (status != TRIB_OK)
        return status;
    ssize_t n = read_all(fd, bytes, sizeof(bytes));
    if (n < 0)
        return trib_fail(err, TRIB_ERR_CONFIG, "cannot read key file %s: %m", path);
    if (n < TRIB_AUTH_KEY_FILE_MIN || !looks_random(bytes, (size_t)n))
        status = trib_fail(
            err, TRIB_ERR_CONFIG,
            "key file %s is not random: create it with head -c 32 /dev/urandom", path);
    else
        trib_crypt_digest(auth->crypt, "tributary key file 1", bytes, (size_t)n,
                          key_out);
    trib_crypt_wipe(auth->crypt, bytes, sizeof(bytes));
    return status;
}

static trib_status_t open_file(const struct trib_auth *auth, const char *path,
                               struct trib_error *err,
                               uint8_t key_out[TRIB_CRYPT_KEY_BYTES])
{
    /* Must not block: a FIFO might never get a writer. */
    const int fd =
        trib_fd_keep(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (fd < 0)
        return trib_fail(err, TRIB_ERR_CONFIG, "cannot open key file %s: %m", path);
    const trib_status_t status = read_key(auth, fd, path, err, key_out);
    close(fd);
    return status;
}

static trib_status_t key_open(struct trib_auth *auth, const struct trib_auth_opts *opts,
                              struct trib_error *err)
{
    if (!opts->key_file || !opts->key_file[0])
        return trib_fail(
            err, TRIB_ERR_UNSUPPORTED,
            "no key file is set (TRIB_SERVICE_KEY; key of tribd): create one (head -c "
            "32 /dev/urandom), mode 600, identical on both sides");
    assert(auth->crypt); /* the method proves */
    trib_status_t status = open_file(auth, opts->key_file, err, auth->key);
    auth->has_previous = opts->previous_key_file && opts->previous_key_file[0];
    if (status == TRIB_OK && auth->has_previous)
        status = open_file(auth, opts->previous_key_file, err, auth->previous_key);
    return status;
}

bool trib_auth_repeats_key(const struct trib_auth *auth)
{
    return auth->has_previous &&
           trib_crypt_equal(auth->crypt, auth->key, auth->previous_key,
                            sizeof(auth->key));
}

static void key_close(struct trib_auth *auth)
{
    if (!auth->crypt)
        return;
    trib_crypt_wipe(auth->crypt, auth->key, sizeof(auth->key));
    trib_crypt_wipe(auth->crypt, auth->previous_key, sizeof(auth->previous_key));
}

static bool key_secret(struct trib_handshake *hs)
{
    assert(hs->auth->crypt);
    memcpy(hs->secret, hs->auth->key, sizeof(hs->auth->key));
    hs->secret_n = sizeof(hs->auth->key);
    return true;
}

const struct trib_auth_method_ops trib_auth_key = {
    .name = "key",
    .number = TRIB_AUTH_KEY,
    .proves = true,
    .open = key_open,
    .close = key_close,
    .secret = key_secret,
};
