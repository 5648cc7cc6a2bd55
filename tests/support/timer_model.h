// Timers that do nothing, and their order said with a multimap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "timer/quad_heap.h"

namespace test {

struct node : weft::timers::timer_node {
  node() : timer_node([](void*, std::uint64_t, std::int64_t) noexcept {}, nullptr) {}
  ~node() { weft::timers::quad_heap::release(*this); }  // the heap may be gone before it
};

class timer_model {
 public:
  using timer_node = weft::timers::timer_node;

  void insert(const timer_node* n, std::int64_t when) { where_[n] = order_.emplace(when, n); }
  void remove(const timer_node* n) {
    order_.erase(where_.at(n));
    where_.erase(n);
  }
  bool has(const timer_node* n) const { return where_.count(n) != 0; }
  std::int64_t when(const timer_node* n) const { return where_.at(n)->first; }
  std::int64_t first_when() const { return order_.empty() ? 0 : order_.begin()->first; }
  std::size_t size() const { return order_.size(); }

 private:
  std::multimap<std::int64_t, const timer_node*> order_;
  std::map<const timer_node*, std::multimap<std::int64_t, const timer_node*>::iterator> where_;
};

}  // namespace test
