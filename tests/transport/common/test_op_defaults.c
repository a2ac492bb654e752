/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that a backend does not have say so, and the checked import refuses a
 * region that is shorter than this rank will address.
 */
#include "tests/harness/tribtest.h"

#include "base/error.h"
#include "transport/op_defaults.h"
#include "transport/open.h"

TEST(test_nothing)
{
    struct trib_pinned_limit limit = {.bytes = 1};
    uint32_t caps = 7;
    size_t len = 7;
    char text[8] = "x";

    trib_no_devices("", text, sizeof(text));
    assert_string_equal(text, "");
    trib_no_pinned_limit(NULL, true, &limit);
    assert_true(limit.bytes == SIZE_MAX);
    assert_status(trib_no_caps(NULL, NULL, &caps), TRIB_OK);
    assert_int_equal(caps, 0);
    trib_no_agree(NULL, &caps);
    trib_no_release_pages(NULL, NULL);
    trib_no_arm(NULL);
    assert_false(trib_no_stale(NULL, NULL));
    assert_null(trib_no_map(NULL, NULL, &len));
    assert_int_equal(len, 0);
    assert_null(trib_no_map(NULL, NULL, NULL));
    assert_int_equal(trib_no_event_fd(NULL), -1);
}

static int released;

static trib_status_t import(struct trib_transport *t, int peer,
                            const struct trib_blob *blob, struct trib_remote **out)
{
    (void)peer;
    (void)blob;
    *out = (struct trib_remote *)t;
    return TRIB_OK;
}

static void release(struct trib_transport *t, struct trib_remote *remote)
{
    assert_ptr_equal((void *)t, (void *)remote);
    released++;
}

static size_t length(struct trib_transport *t, const struct trib_remote *remote)
{
    (void)t;
    (void)remote;
    return 100;
}

static trib_status_t reg(struct trib_transport *t, void *ptr, size_t len,
                         struct trib_region **out)
{
    (void)t;
    *out = len == 64 ? ptr : NULL;
    return TRIB_OK;
}

TEST(test_import)
{
    static const struct trib_transport_ops ops = {.name = "test",
                                                  .import_region = import,
                                                  .release = release,
                                                  .length = length,
                                                  .reg = reg};
    struct trib_error err = {0};
    struct trib_transport t = {.ops = &ops, .err = &err};
    struct trib_blob blob = {.len = 8};
    struct trib_remote *remote = NULL;

    assert_status(trib_transport_import(&t, 1, &blob, 100, &remote), TRIB_OK);
    assert_non_null(remote);
    remote = NULL;
    assert_status(trib_transport_import(&t, 1, &blob, 101, &remote), TRIB_ERR_RANGE);
    assert_null(remote);
    assert_int_equal(released, 1);
    assert_non_null(strstr(err.text, "rank 1 exported 100 bytes of memory"));
    blob.len = TRIB_BLOB_MAX + 1;
    assert_status(trib_transport_import(&t, 1, &blob, 0, &remote), TRIB_ERR_INVALID);
    assert_null(remote);

    struct trib_route route;
    trib_only_route(&t, 1, &route);
    assert_string_equal(route.name, "test");
    assert_false(route.apart);
    char memory[64];
    const struct trib_dmabuf d = {.fd = -1, .ptr = memory, .len = sizeof(memory)};
    struct trib_region *region = NULL;
    assert_status(trib_mapped_reg_dmabuf(&t, &d, &region), TRIB_OK);
    assert_ptr_equal((void *)region, (void *)memory);
}
