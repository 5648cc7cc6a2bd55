#include <weft/goroutine_local.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <system_error>
#include <unordered_map>
#include <vector>

#include <pthread.h>

#include <weft/detail/park.h>

#include "gmp/goroutine.h"

namespace weft::detail {
namespace {

struct local_value {
  local_key key;
  void* value;
  void (*destroy)(void*);
};

// The values of one goroutine, in the order of their making. A few are searched for one by one; more have an index.
class local_values {
 public:
  bool empty() const noexcept { return values_.empty(); }

  void* find(local_key key) const noexcept {
    if (!index_.empty()) {
      const auto found = index_.find(key);
      return found == index_.end() ? nullptr : found->second;
    }
    for (const local_value& v : values_) {
      if (v.key == key) return v.value;
    }
    return nullptr;
  }

  void add(const local_value& v) {
    values_.push_back(v);
    try {
      if (!index_.empty()) {
        index_.emplace(v.key, v.value);
      } else if (values_.size() > few) {
        build_index();
      }
    } catch (...) {
      values_.pop_back();
      throw;
    }
  }

  local_value take_last() noexcept {
    const local_value last = values_.back();
    values_.pop_back();
    index_.erase(last.key);
    return last;
  }

 private:
  static constexpr std::size_t few = 8;

  void build_index() {
    std::unordered_map<local_key, void*> index;
    for (const local_value& v : values_) index.emplace(v.key, v.value);
    index_ = std::move(index);
  }

  std::vector<local_value> values_;
  std::unordered_map<local_key, void*> index_;  // empty, or all of them
};

void destroy_values(void* values) noexcept;

// A plain thread's values. A pthread key, because its destructor runs after those of thread_local objects, which may
// still use goroutine_locals, and runs again if one of ours has brought new ones.
pthread_key_t thread_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    const int failure = ::pthread_key_create(&made, &destroy_values);
    if (failure != 0) throw std::system_error(failure, std::generic_category(), "weft::goroutine_local");
    return made;
  }();
  return key;
}

local_values* values_of(const goroutine* g) noexcept {
  return static_cast<local_values*>(g->is_thread ? ::pthread_getspecific(thread_key()) : g->locals);
}

void set_values(goroutine* g, local_values* values) noexcept {
  if (g->is_thread) {
    ::pthread_setspecific(thread_key(), values);
  } else {
    g->locals = values;
    g->destroy_locals = &destroy_values;
  }
}

// At the end of the goroutine, still on its stack, or of the thread. Each destructor finds the values that are left.
void destroy_values(void* p) noexcept {
  auto* values = static_cast<local_values*>(p);
  goroutine* g = self();
  set_values(g, values);
  while (!values->empty()) {
    const local_value last = values->take_last();
    last.destroy(last.value);
  }
  set_values(g, nullptr);
  delete values;
}

}  // namespace

local_key new_local_key() noexcept {
  static std::atomic<local_key> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void* find_local(local_key key) noexcept {
  const local_values* values = values_of(self());
  return values == nullptr ? nullptr : values->find(key);
}

void add_local(local_key key, void* value, void (*destroy)(void*)) {
  goroutine* g = self();
  local_values* values = values_of(g);
  if (values == nullptr) {
    thread_key();  // may throw, and does it here
    values = new local_values;
    set_values(g, values);
  }
  values->add({key, value, destroy});
}

}  // namespace weft::detail
