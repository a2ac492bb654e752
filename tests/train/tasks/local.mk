# SPDX-License-Identifier: BSD-3-Clause
if TRIB_EXAMPLES
check_tests += tests/train/tasks/test_mnist tests/train/tasks/test_tasks
tests_train_tasks_test_mnist_SOURCES = tests/train/tasks/test_mnist.c train/tasks/mnist.c
tests_train_tasks_test_mnist_CFLAGS = $(AM_CFLAGS) $(ZLIB_CFLAGS)
tests_train_tasks_test_mnist_LDADD = libtrain_base.la libtributary.la $(ZLIB_LIBS) $(TEST_LIBS)
tests_train_tasks_test_tasks_CFLAGS = $(AM_CFLAGS) $(OPENBLAS_CFLAGS)
tests_train_tasks_test_tasks_LDADD = $(TASKS_LIBS) libtrain_base.la libtributary.la $(TEST_LIBS)
endif
