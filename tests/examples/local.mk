# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/examples/known_options.py tests/examples/run_pages.py tests/examples/stand_in_dev.sh
dist_check_SCRIPTS += tests/examples/test_commands.sh tests/examples/test_pages.sh
TESTS += tests/examples/test_commands.sh tests/examples/test_pages.sh
dist_check_SCRIPTS += tests/examples/test_slowest.sh
TESTS += tests/examples/test_slowest.sh
dist_check_SCRIPTS += tests/examples/test_uneven.sh
TESTS += tests/examples/test_uneven.sh
dist_check_SCRIPTS += tests/examples/test_elements.sh tests/examples/test_overlap.sh
TESTS += tests/examples/test_elements.sh tests/examples/test_overlap.sh
dist_check_SCRIPTS += tests/examples/test_blocks.sh
TESTS += tests/examples/test_blocks.sh
dist_check_SCRIPTS += tests/examples/test_exact.sh tests/examples/test_grouped.sh tests/examples/test_checked.sh tests/examples/test_robust.sh \
	tests/examples/test_sparse.sh tests/examples/test_sum.sh
TESTS += tests/examples/test_exact.sh tests/examples/test_grouped.sh tests/examples/test_checked.sh tests/examples/test_robust.sh \
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

dist_check_SCRIPTS += tests/examples/test_parameters.sh
TESTS += tests/examples/test_parameters.sh
dist_check_SCRIPTS += tests/examples/test_safe.sh
TESTS += tests/examples/test_safe.sh
dist_check_SCRIPTS += tests/examples/test_embedding.sh
TESTS += tests/examples/test_embedding.sh

dist_check_SCRIPTS += tests/examples/test_replacement.sh
TESTS += tests/examples/test_replacement.sh
dist_check_SCRIPTS += tests/examples/test_notified.sh
EXTRA_DIST += tests/examples/snippets.py \
	tests/examples/snippets/printed_coded.c \
	tests/examples/snippets/printed_elastic.c \
	tests/examples/snippets/printed_replicator.c \
	tests/examples/snippets/printed_state.c \
	tests/examples/snippets/printed_store.c \
	tests/examples/snippets/printed_sums.c \
	tests/examples/snippets/printed_trainer.c \
	tests/examples/snippets/printed_trainer_lost.c
dist_check_SCRIPTS += tests/examples/test_snippets.sh
TESTS += tests/examples/test_notified.sh
TESTS += tests/examples/test_snippets.sh
