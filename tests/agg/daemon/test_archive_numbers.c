/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers of snapshots, which are the names of their files. No new file replaces one
 * that tribd does not know: the directory cannot be listed, an operator has copied a
 * file into it, or a file was set aside. No number follows the highest one.
 */
#include "tests/agg/daemon/archive_rig.h"

/* A directory that cannot be listed whole is refused: a new snapshot would overwrite
 * the file of another user that has its number. */
TEST(test_listing_fails)
{
    bool whole = false;
    int refused = 0;
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 1);
    save(&rig, "ana");
    save(&rig, "bob");
    for (int n = 0; !whole; n++) {
        entries_left = n;
        whole = check_again(&rig, 0, 0) == TRIB_OK;
        entries_left = -1;
        set(&rig, 2);
        if (rig.archive)
            save(&rig, "cat");
        if (whole)
            break;
        refused++;
        assert_status(rig.err.status, TRIB_ERR_CONFIG);
        assert_non_null(strstr(rig.err.text, "cannot list"));
    }
    assert_true(refused >= 4); /* ".", "..", two files */
    assert_int_equal(load(&rig, "cat"), 2);
    assert_int_equal(load(&rig, "ana"), 1);
    assert_int_equal(load(&rig, "bob"), 1);
    rig_close(&rig);
}

static ino_t inode(const struct rig *rig, const char *name)
{
    struct stat s = {0};

    (void)fstatat(rig->archive->folder_fd, name, &s, AT_SYMLINK_NOFOLLOW);
    return s.st_ino;
}

/* A file that tribd has not listed keeps its number and its contents: one that an
 * operator has copied into the folder since, or that the file system has left out. */
TEST(test_unlisted_files)
{
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 4);
    save(&rig, "ana");
    const int at = rig.archive->folder_fd;
    const ino_t first = inode(&rig, "0000000000000001.snapshot");
    for (int i = 2; i < 4; i++) {
        char name[ARCHIVE_NAME_BYTES];
        archive_name_file(name, (uint64_t)i, "");
        assert_int_equal(linkat(at, "0000000000000001.snapshot", at, name, 0), 0);
    }
    set(&rig, 5);
    save(&rig, "bob");
    assert_status(rig.task.err.status, TRIB_OK);
    assert_int_equal(inode(&rig, "0000000000000002.snapshot"), first);
    assert_int_equal(inode(&rig, "0000000000000003.snapshot"), first);
    assert_true(inode(&rig, "0000000000000004.snapshot") != 0);
    assert_int_equal(load(&rig, "bob"), 5);
    rig_close(&rig);
}

/* Nor does a new file get the number of one that was set aside, which an operator may
 * rename back, or which another one would replace when it is set aside. */
TEST(test_number_of_a_file_set_aside)
{
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "ana");
    const int at = rig.archive->folder_fd;
    assert_int_equal(renameat(at, "0000000000000001.snapshot", at,
                              "0000000000000005.snapshot" ARCHIVE_OLDER),
                     0);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    save(&rig, "bob");
    assert_true(inode(&rig, "0000000000000006.snapshot") != 0);
    rig_close(&rig);
}

/* An operator copies the second file of a vector into the folder, where a file that was
 * set aside with its number is perhaps the only one of its vector. */
TEST(test_two_files_set_aside_with_one_number)
{
    static const char *const copied = "0000000000000002.snapshot";
    static const char *const aside = "0000000000000002.snapshot" ARCHIVE_OLDER;
    struct rig rig;
    uint64_t removal;
    char say[100];

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 1);
    save(&rig, "ana");
    save(&rig, "bob");
    const int at = rig.archive->folder_fd;
    const ino_t first = inode(&rig, copied);
    assert_int_equal(renameat(at, copied, at, aside), 0);
    assert_int_equal(linkat(at, "0000000000000001.snapshot", at, copied, 0), 0);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_int_equal(inode(&rig, aside), first);
    assert_int_equal(load(&rig, "ana"), 1);
    /* Nor is the second file used after the first one is removed. */
    assert_true(archive_forget(rig.archive, "ana/job", say, sizeof(say), &removal));
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_int_equal(load(&rig, "ana"), UINT64_MAX);
    assert_int_equal(files(&rig), 2);
    assert_int_equal(inode(&rig, aside), first);
    assert_true(inode(&rig, "0000000000000002.snapshot" ARCHIVE_OLDER ".1") != 0);
    save(&rig, "cat");
    assert_true(inode(&rig, "0000000000000003.snapshot") != 0);
    rig_close(&rig);
}

/* No snapshot gets a number that a later start would reject. */
TEST(test_highest_number)
{
    static const char *const highest = "7fffffffffffffff.snapshot";
    struct rig rig;

    rig_open(&rig);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 1);
    save(&rig, "ana");
    const int fd = trib_fd_keep(
        openat(rig.archive->folder_fd, highest, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_true(fd >= 0);
    close(fd);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    set(&rig, 2);
    save(&rig, "bob");
    assert_status(rig.task.err.status, TRIB_ERR_NO_RESOURCE);
    assert_non_null(strstr(rig.task.err.text, highest));
    save(&rig, "ana"); /* has a number */
    assert_status(rig.task.err.status, TRIB_OK);
    assert_status(check_again(&rig, 0, 0), TRIB_OK);
    assert_int_equal(load(&rig, "ana"), 2);
    rig_close(&rig);
}
