# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/train/trainer/test_trainer
TESTS += tests/train/trainer/test_trainer
tests_train_trainer_test_trainer_SOURCES = tests/train/trainer/test_trainer.c \
	tests/train/quadratic.c tests/train/quadratic.h
tests_train_trainer_test_trainer_LDADD = libtrain.la $(LDADD)
check_PROGRAMS += tests/train/test_replicator
TESTS += tests/train/test_replicator
tests_train_test_replicator_SOURCES = \
	tests/train/test_replicator.c tests/train/replicas.c tests/train/replicas.h
tests_train_test_replicator_LDADD = libtrain.la $(LDADD)
check_PROGRAMS += tests/train/test_replicator_faults
TESTS += tests/train/test_replicator_faults
tests_train_test_replicator_faults_SOURCES = \
	tests/train/test_replicator_faults.c tests/train/replicas.c tests/train/replicas.h
tests_train_test_replicator_faults_LDADD = libtrain.la $(LDADD)
check_PROGRAMS += tests/train/trainer/test_trainer_move
TESTS += tests/train/trainer/test_trainer_move
tests_train_trainer_test_trainer_move_SOURCES = \
	tests/train/trainer/test_trainer_move.c tests/comm/growing.h tests/train/quadratic.c \
	tests/train/quadratic.h
tests_train_trainer_test_trainer_move_LDADD = libtrain.la $(LDADD)
check_PROGRAMS += tests/train/test_properties
TESTS += tests/train/test_properties
tests_train_test_properties_SOURCES = \
	tests/train/test_properties.c tests/train/quadratic.c tests/train/quadratic.h
tests_train_test_properties_LDADD = libtrain.la $(LDADD)
check_PROGRAMS += tests/train/test_async_push_sum
TESTS += tests/train/test_async_push_sum
tests_train_test_async_push_sum_LDADD = libtrain.la $(LDADD)
check_PROGRAMS += tests/train/trainer/test_estimate
TESTS += tests/train/trainer/test_estimate
tests_train_trainer_test_estimate_SOURCES = tests/train/trainer/test_estimate.c \
	tests/train/quadratic.c tests/train/quadratic.h
tests_train_trainer_test_estimate_LDADD = libtrain.la $(LDADD)
check_PROGRAMS += tests/train/trainer/test_optimizer
TESTS += tests/train/trainer/test_optimizer
tests_train_trainer_test_optimizer_LDADD = libtrain.la $(LDADD)
check_PROGRAMS += tests/train/test_settle
TESTS += tests/train/test_settle
tests_train_test_settle_SOURCES = tests/train/test_settle.c \
	tests/train/quadratic.c tests/train/quadratic.h
tests_train_test_settle_LDADD = libtrain.la $(LDADD)
