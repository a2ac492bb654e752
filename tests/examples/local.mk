# SPDX-License-Identifier: BSD-3-Clause
check_scripts += tests/examples/test_commands.sh tests/examples/test_exact.sh tests/examples/test_example_services.sh \
	tests/examples/test_examples.sh tests/examples/test_pages.sh tests/examples/test_replicator_examples.sh \
	tests/examples/test_resume.sh tests/examples/test_safe.sh tests/examples/test_snippets.sh \
	tests/examples/test_strategy_example.sh tests/examples/test_sum.sh
EXTRA_DIST += tests/examples/known_options.py tests/examples/run_pages.py tests/examples/stand_in_dev.sh \
	tests/examples/snippets.py tests/examples/snippets/printed_coded.c tests/examples/snippets/printed_elastic.c \
	tests/examples/snippets/printed_replicator.c tests/examples/snippets/printed_state.c \
	tests/examples/snippets/printed_store.c tests/examples/snippets/printed_sums.c \
	tests/examples/snippets/printed_trainer.c tests/examples/snippets/printed_trainer_lost.c
