# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/train/test_trainer
TESTS += tests/train/test_trainer
tests_train_test_trainer_SOURCES = tests/train/test_trainer.c \
	tests/train/quadratic.c tests/train/quadratic.h
tests_train_test_trainer_LDADD = libtrain.la $(comm_tests_link)
