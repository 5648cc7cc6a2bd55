#include <weft/blocking.h>
#include <weft/trace.h>

#include <mutex>
#include <stdexcept>

#include "sched/fork.h"
#include "sched/lifecycle.h"
#include "sched/tracing.h"
#include "trace/log.h"
#include "trace/writer.h"

namespace weft::trace {
namespace {

// Held over a whole start or stop, by plain threads and by goroutines in a blocking call.
std::mutex control;

void refuse_in_child() noexcept {
  if (sched::in_forked_child()) sched::no_runtime_in_child();
}

}  // namespace

void start(std::string path) {
  refuse_in_child();
  blocking([&] {
    std::lock_guard guard(control);
    if (is_on()) throw std::logic_error("weft::trace::start: a trace is on already");
    start_writer(path);
    sched::sched.threads.fetch_add(1, std::memory_order_relaxed);
    sched::with_world_stopped([](void*) noexcept { sched::begin_trace(); }, nullptr);
  });
}

void stop() {
  refuse_in_child();
  const std::error_code error = blocking([&]() -> std::error_code {
    std::lock_guard guard(control);
    if (!is_on()) return {};
    sched::with_world_stopped([](void*) noexcept { sched::end_trace(); }, nullptr);
    const std::error_code e = finish_writing();
    sched::sched.threads.fetch_sub(1, std::memory_order_relaxed);
    return e;
  });
  if (error) throw std::system_error(error, "weft::trace::stop");
}

}  // namespace weft::trace
