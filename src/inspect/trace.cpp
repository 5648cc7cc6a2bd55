#include <weft/blocking.h>
#include <weft/trace.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>

#include "sched/fork.h"
#include "sched/lifecycle.h"
#include "sched/tracing.h"
#include "trace/log.h"
#include "trace/output.h"
#include "trace/perfetto.h"
#include "trace/replay.h"
#include "trace/writer.h"

namespace weft::trace {
namespace {

// Held over a whole start or stop, by plain threads and by goroutines in a blocking call.
std::mutex control;

void refuse_in_child() noexcept {
  if (sched::in_forked_child()) sched::no_runtime_in_child();
}

void refuse_second(const char* who) {
  if (is_on()) throw std::logic_error(std::string(who) + ": a trace is on already");
}

std::uint32_t chunks_in(std::size_t memory) noexcept {
  constexpr std::size_t least = 16, most = 1 << 20;
  return static_cast<std::uint32_t>(std::clamp(memory / sizeof(chunk), least, most));
}

// What has been recorded up to now, while it is looked at.
struct taken_recording {
  recording what;

  taken_recording() {
    sched::with_world_stopped([](void* r) noexcept { *static_cast<recording*>(r) = sched::take_recording(); }, &what);
  }
  taken_recording(const taken_recording&) = delete;
  taken_recording& operator=(const taken_recording&) = delete;
  ~taken_recording() { put_back(what); }
};

void write_recording(const recording& r, output& file) {
  perfetto_encoder encoder;
  replay(r, [&](const chunk& c) {
    encoder.add(c);
    file.write_if_enough(encoder.out());
  });
  file.write(encoder.out());
}

}  // namespace

void start(std::string path) {
  refuse_in_child();
  blocking([&] {
    std::lock_guard guard(control);
    refuse_second("weft::trace::start");
    start_writer(path);
    sched::sched.threads.fetch_add(1, std::memory_order_relaxed);
    sched::with_world_stopped([](void*) noexcept { sched::begin_trace(); }, nullptr);
  });
}

void record(std::size_t memory) {
  refuse_in_child();
  blocking([&] {
    std::lock_guard guard(control);
    refuse_second("weft::trace::record");
    std::uint32_t chunks = chunks_in(memory);
    sched::with_world_stopped([](void* n) noexcept { sched::begin_recording(*static_cast<std::uint32_t*>(n)); }, &chunks);
  });
}

void save(std::string path) {
  constexpr const char* who = "weft::trace::save";
  refuse_in_child();
  const std::error_code error = blocking([&] {
    std::lock_guard guard(control);
    if (!is_recording()) throw std::logic_error(std::string(who) + ": nothing is recorded");
    output file;
    file.open(path, who);
    taken_recording taken;
    write_recording(taken.what, file);
    return file.close();
  });
  if (error) throw std::system_error(error, who);
}

void stop() {
  refuse_in_child();
  const std::error_code error = blocking([&]() -> std::error_code {
    std::lock_guard guard(control);
    if (!is_on()) return {};
    const bool recorded = is_recording();
    sched::with_world_stopped([](void*) noexcept { sched::end_trace(); }, nullptr);
    if (recorded) {
      free_chunks();
      return {};
    }
    const std::error_code e = finish_writing();
    sched::sched.threads.fetch_sub(1, std::memory_order_relaxed);
    return e;
  });
  if (error) throw std::system_error(error, "weft::trace::stop");
}

}  // namespace weft::trace
