/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Python module _torch_backend: create(store, rank, size, timeout in s) returns a
 * process group; end_all(gives_up) ends all groups.
 *
 * It shares the holders and exceptions of torch's own module, so both must be compiled
 * with the same pybind11.
 */
#include <pybind11/pybind11.h>

#include <algorithm>
#include <vector>

#include <unistd.h>

#include "bindings/python/backend/torch_group.hpp"

PYBIND11_DECLARE_HOLDER_TYPE(T, c10::intrusive_ptr<T>, true)

namespace py = pybind11;

namespace tributary {

namespace {

using Clock = std::chrono::steady_clock;

thread_local Clock::time_point looked;
thread_local std::unique_ptr<py::error_already_set> raised;

/* Set the Python exception: the package's class for the status. */
void raise(const Failure &failure)
{
    const py::dict classes = py::module_::import("tributary._errors").attr("CLASSES");
    const py::int_ status(static_cast<int>(failure.status));
    const py::object kind = classes.contains(status)
                                ? py::object(classes[status])
                                : py::module_::import("tributary").attr("Error");
    const char *const scopes[] = {"none", "op", "endpoint", "comm", "context"};

    const py::object error = kind(failure.what(), trib_status_name(failure.status),
                                  scopes[trib_status_scope(failure.status)]);
    PyErr_SetObject(kind.ptr(), error.ptr());
}

std::vector<c10::weak_intrusive_ptr<Group>> groups; /* under the GIL */

c10::intrusive_ptr<c10d::ProcessGroup>
create(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, double timeout)
{
    c10::intrusive_ptr<Group> group;
    {
        const py::gil_scoped_release others;
        group = c10::make_intrusive<Group>(store, rank, size, timeout);
    }
    groups.erase(std::remove_if(groups.begin(), groups.end(),
                                [](const auto &each) { return each.expired(); }),
                 groups.end());
    groups.emplace_back(group);
    return group;
}

/* End the groups' threads before Python finalizes, which kills threads that want the
 * GIL. */
void end_all(bool gives_up)
{
    for (const auto &each : groups) {
        const c10::intrusive_ptr<Group> group = each.lock();
        if (group)
            without_python([&] { group->end(gives_up); });
    }
}

} // namespace

void check_signals()
{
    if (gettid() != getpid()) /* Python runs handlers only on the main thread */
        return;
    if (!Py_IsInitialized() || _Py_IsFinalizing()) /* the GIL is unavailable */
        return;
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals())
        throw py::error_already_set();
}

bool signal_raised()
{
    const auto now = Clock::now();

    if (raised || now - looked < std::chrono::milliseconds(50))
        return raised != nullptr;
    looked = now;
    try {
        check_signals();
    } catch (py::error_already_set &why) {
        raised = std::make_unique<py::error_already_set>(std::move(why));
    }
    return raised != nullptr;
}

void throw_signal()
{
    if (!raised)
        return;
    py::error_already_set why(std::move(*raised));
    py::gil_scoped_acquire gil;
    raised.reset();
    throw py::error_already_set(std::move(why));
}

void without_python(const std::function<void()> &function)
{
    if (!Py_IsInitialized() || _Py_IsFinalizing() || !PyGILState_Check()) {
        function();
        return;
    }
    {
        const py::gil_scoped_release others;
        function();
    }
    if (raised) { /* no caller could rethrow it here: raise it as a signal again */
        raised.reset();
        PyErr_SetInterrupt();
    }
}

} // namespace tributary

PYBIND11_MODULE(_torch_backend, module)
{
    module.attr("__doc__") = "The backend tributary of torch.distributed";
    module.def("create", &tributary::create);
    module.def("end_all", &tributary::end_all);
    py::register_exception_translator([](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(thrown);
        } catch (const tributary::Failure &failure) {
            tributary::raise(failure);
        }
    });
}
