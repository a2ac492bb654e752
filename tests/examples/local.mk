# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += tests/examples/test_slowest.sh
TESTS += tests/examples/test_slowest.sh
dist_check_SCRIPTS += tests/examples/test_uneven.sh
TESTS += tests/examples/test_uneven.sh
dist_check_SCRIPTS += tests/examples/test_elements.sh tests/examples/test_overlap.sh
TESTS += tests/examples/test_elements.sh tests/examples/test_overlap.sh
dist_check_SCRIPTS += tests/examples/test_blocks.sh
TESTS += tests/examples/test_blocks.sh
dist_check_SCRIPTS += tests/examples/test_exact.sh tests/examples/test_grouped.sh tests/examples/test_looked.sh tests/examples/test_robust.sh \
	tests/examples/test_sparse.sh tests/examples/test_sum.sh tests/examples/test_train.sh
TESTS += tests/examples/test_exact.sh tests/examples/test_grouped.sh tests/examples/test_looked.sh tests/examples/test_robust.sh \
	tests/examples/test_sparse.sh tests/examples/test_sum.sh
dist_check_SCRIPTS += tests/examples/test_pass_on.sh
TESTS += tests/examples/test_pass_on.sh
dist_check_SCRIPTS += tests/examples/test_resume.sh tests/examples/test_lost_rank.sh tests/examples/test_same.sh
dist_check_SCRIPTS += tests/examples/test_abort_all.sh
TESTS += tests/examples/test_abort_all.sh
TESTS += tests/examples/test_resume.sh tests/examples/test_lost_rank.sh tests/examples/test_same.sh

example_scripts = \
	tests/examples/test_team.sh \
	tests/examples/test_epoll.sh \
	tests/examples/test_gossip.sh \
	tests/examples/test_interrupt.sh \
	tests/examples/test_firewall.sh \
	tests/examples/test_rebucket.sh \
	tests/examples/test_store.sh \
	tests/examples/test_gossip_late.sh \
	tests/examples/test_strategy_example.sh \
	tests/examples/test_replicator_examples.sh \
	tests/examples/test_coded_example.sh
dist_check_SCRIPTS += $(example_scripts)
TESTS += $(example_scripts)

if TRIB_EXAMPLES
check_PROGRAMS += tests/examples/test_mnist tests/examples/test_mlp
TESTS += tests/examples/test_mnist tests/examples/test_mlp tests/examples/test_train.sh
tests_examples_test_mnist_SOURCES = tests/examples/test_mnist.c examples/mnist.c
tests_examples_test_mnist_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
tests_examples_test_mnist_LDADD = $(ZLIB_LIBS) $(CMOCKA_LIBS)
tests_examples_test_mlp_SOURCES = tests/examples/test_mlp.c examples/mlp.c
tests_examples_test_mlp_CFLAGS = $(AM_CFLAGS) $(OPENBLAS_CFLAGS)
tests_examples_test_mlp_LDADD = $(OPENBLAS_LIBS) $(CMOCKA_LIBS) -lm
endif

dist_check_SCRIPTS += tests/examples/test_parameters.sh
TESTS += tests/examples/test_parameters.sh
dist_check_SCRIPTS += tests/examples/test_safe.sh
TESTS += tests/examples/test_safe.sh
dist_check_SCRIPTS += tests/examples/test_embedding.sh
TESTS += tests/examples/test_embedding.sh

dist_check_SCRIPTS += tests/examples/test_replacement.sh
TESTS += tests/examples/test_replacement.sh
dist_check_SCRIPTS += tests/examples/test_notified.sh
TESTS += tests/examples/test_notified.sh
