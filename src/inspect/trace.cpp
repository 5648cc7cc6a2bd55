#include <weft/trace.h>

#include <mutex>
#include <stdexcept>

#include <weft/blocking.h>

#include "sched/lifecycle.h"
#include "sched/tracing.h"
#include "trace/log.h"
#include "trace/writer.h"

namespace weft::trace {
namespace {

// Held over a whole start or stop, by plain threads and by goroutines in a blocking call.
std::mutex control;

void begin(void*) noexcept {
  begin_logging();
  sched::trace_world(kind::world_stops);  // it stands, or does not exist yet
  sched::trace_population();
  sched::attach_logs();
}

void end(void*) noexcept {
  end_logging();
  sched::attach_logs();
}

}  // namespace

void start(std::string path) {
  blocking([&] {
    std::lock_guard guard(control);
    if (is_on()) throw std::logic_error("weft::trace::start: a trace is on already");
    start_writer(path);
    sched::with_world_stopped(&begin, nullptr);
  });
}

void stop() {
  const std::error_code error = blocking([&]() -> std::error_code {
    std::lock_guard guard(control);
    if (!is_on()) return {};
    sched::with_world_stopped(&end, nullptr);
    return finish_writing();
  });
  if (error) throw std::system_error(error, "weft::trace::stop");
}

}  // namespace weft::trace
