// A tree of nodes. A child keeps its parent alive; a parent knows its children by raw pointers in an intrusive list, which
// a child leaves when it is cancelled or destroyed. Locks are taken from the parent to the child, never the other way.
//
// Who has no handle any more may still have done(), or a token, and count on the deadline. Then the last handle's ownership
// is not dropped: it is the deadline's, until the node is cancelled. Not so where there is no deadline: nobody might ever
// cancel it, and an ancestor that nobody has a handle of cannot be told from one that somebody will cancel.
//
// A tree may be deeper than a stack has room for: nothing here recurses along it.
//
//   [context.owners] release: what the other owners did to a node is visible to the last one, who destroys it
#include <weft/context.h>

#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include <weft/detail/record.h>
#include <weft/mutex.h>

#include "sched/lifecycle.h"
#include "sched/timers.h"

namespace weft::detail {

class context_node {
 public:
  context_node(context_ref parent, std::int64_t deadline_ns) : parent_(std::move(parent)), deadline_(deadline_ns), done_(0) {}
  context_node(context_ref parent, std::unique_ptr<context_value> value)
      : parent_(std::move(parent)), value_(std::move(value)), deadline_(deadline_of(parent_)), done_(nullptr) {}
  context_node(const context_node&) = delete;
  context_node& operator=(const context_node&) = delete;

  void retain() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
  // False: it has no owner any more, and is being destroyed. Where that cannot have ended: under the lock of the ancestor
  // that it hangs on, and in its timer's callback.
  bool try_retain() noexcept {
    std::uint32_t n = owners_.load(std::memory_order_relaxed);
    while (n != 0 && !owners_.compare_exchange_weak(n, n + 1, std::memory_order_relaxed)) {
    }
    return n != 0;
  }
  // True: it was the last.
  bool drop() noexcept {
    std::uint32_t n = owners_.load(std::memory_order_acquire);  // [context.owners]
    for (;;) {
      if (n == 1 && is_counted_on() && leave_to_deadline()) return false;
      if (owners_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel, std::memory_order_acquire)) return n == 1;
    }
  }
  // Nobody can find it from here on. What it hung on is the caller's.
  context_ref retire() noexcept {
    leave_parent();
    disarm();
    return std::move(parent_);
  }

  bool is_cancelable() const noexcept { return value_ == nullptr; }
  const context_ref& parent() const noexcept { return parent_; }
  const context_value* value() const noexcept { return value_.get(); }
  std::int64_t deadline() const noexcept { return deadline_; }
  recv_chan<std::monostate> done() const { return done_; }
  // done() is closed before stop is requested: who comes from there finds it requested, whoever does that.
  std::stop_token token() {
    if (error()) stop_.request_stop();
    gave_token_.store(true, std::memory_order_relaxed);
    return stop_.get_token();
  }
  std::error_code error() {
    std::lock_guard guard(lock_);
    return error_;
  }

  // After construction, when it has an owner: hang it into the tree, start its timer.
  void join(context_node* ancestor);
  void arm(std::int64_t deadline_ns);

  void cancel(std::error_code why) noexcept;

 private:
  void cancel_one(std::error_code why, std::vector<context_ref>& next) noexcept;
  void take_children(std::vector<context_ref>& to) noexcept;
  void leave_parent() noexcept;
  void disarm() noexcept;
  bool is_counted_on() const noexcept;
  bool leave_to_deadline() noexcept;
  static void on_deadline(void* self, std::uint64_t, std::int64_t) noexcept;
  static void run_expiry(record* r);

  std::atomic<std::uint32_t> owners_{1};
  context_ref parent_;                            // keeps the ancestor alive that this hangs on
  const std::unique_ptr<context_value> value_;    // only a value: it is cancelled when its ancestor is
  const std::int64_t deadline_;
  const chan<std::monostate> done_;
  std::stop_source stop_;
  std::atomic<bool> gave_token_{false};

  mutex lock_;
  bool is_deadlines_ = false;                     // one of the owners is the deadline
  std::error_code error_;                         // guarded by lock_, like the list
  context_node* first_child_ = nullptr;

  context_node* hangs_on_ = nullptr;              // these three: guarded by the ancestor's lock
  context_node* next_ = nullptr;
  context_node** link_ = nullptr;

  timers::timer_node timer_{&on_deadline, this};
  record* expiry_ = nullptr;                      // the goroutine that will cancel at the deadline, made beforehand
};

namespace {

// Values are not nodes that can be cancelled: what they hang on counts.
context_node* cancelable(const context_ref& node) noexcept {
  context_node* n = node.get();
  while (n != nullptr && !n->is_cancelable()) n = n->parent().get();
  return n;
}

}  // namespace

void context_node::join(context_node* ancestor) {
  if (ancestor == nullptr) return;
  std::error_code already;
  {
    std::lock_guard guard(ancestor->lock_);
    already = ancestor->error_;
    if (!already) {
      hangs_on_ = ancestor;
      next_ = ancestor->first_child_;
      link_ = &ancestor->first_child_;
      if (next_ != nullptr) next_->link_ = &next_;
      ancestor->first_child_ = this;
    }
  }
  if (already) cancel(already);
}

void context_node::leave_parent() noexcept {
  if (!is_cancelable()) return;  // it hangs on nothing
  context_node* ancestor = cancelable(parent_);
  if (ancestor == nullptr) return;
  std::lock_guard guard(ancestor->lock_);
  if (hangs_on_ == nullptr) return;
  hangs_on_ = nullptr;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
}

// Under lock_. A child that is being destroyed has no owner any more: it is left out, and finds itself off the list.
void context_node::take_children(std::vector<context_ref>& to) noexcept {
  while (context_node* child = first_child_) {
    first_child_ = child->next_;
    if (first_child_ != nullptr) first_child_->link_ = &first_child_;
    child->hangs_on_ = nullptr;
    if (child->try_retain()) to.push_back(context_ref(child));
  }
}

// The caller has the last handle, so nobody can get at done() or a token from here on.
bool context_node::is_counted_on() const noexcept {
  if (!is_cancelable() || deadline_ == no_deadline) return false;
  return gave_token_.load(std::memory_order_relaxed) || chan_access::of(done_).get()->owners.load(std::memory_order_relaxed) > 1;
}

// False: it is cancelled, or is about to be by somebody who has become an owner.
bool context_node::leave_to_deadline() noexcept {
  std::lock_guard guard(lock_);
  return !error_ && !std::exchange(is_deadlines_, true);
}

void context_node::cancel_one(std::error_code why, std::vector<context_ref>& next) noexcept {
  context_ref deadlines;
  {
    std::lock_guard guard(lock_);
    if (error_) return;
    error_ = why;
    take_children(next);
    if (std::exchange(is_deadlines_, false)) deadlines = context_ref(this);
  }
  done_.close();
  stop_.request_stop();  // runs callbacks of the user's: without the lock
  leave_parent();
  if (timer_.pending()) sched::stop_timer(timer_);  // nothing waits for it any more; its goroutine goes with the node
}

void context_node::cancel(std::error_code why) noexcept {
  std::vector<context_ref> below;
  cancel_one(why, below);
  while (!below.empty()) {
    const context_ref child = std::move(below.back());
    below.pop_back();
    child.get()->cancel_one(why, below);
  }
}

// The timer's callback runs on a scheduler's stack: what cancelling does is the user's code, so a goroutine does it.
void context_node::on_deadline(void* self, std::uint64_t, std::int64_t) noexcept {
  auto* node = static_cast<context_node*>(self);
  if (!node->try_retain()) return;
  record* r = std::exchange(node->expiry_, nullptr);
  ::new (static_cast<void*>(r->payload)) context_ref(node);
  submit(r);
}

void context_node::run_expiry(record* r) {
  auto* payload = std::launder(reinterpret_cast<context_ref*>(r->payload));
  const context_ref node = std::move(*payload);
  std::destroy_at(payload);
  node.get()->cancel(make_error_code(errc::deadline_exceeded));
}

void context_node::arm(std::int64_t deadline_ns) {
  static constexpr spawn_ops ops{&run_expiry, nullptr};
  static_assert(sizeof(context_ref) <= sizeof(record::payload));
  sched::ensure_started();
  expiry_ = allocate_record();
  expiry_->ops = &ops;
  sched::start_timer(timer_, deadline_ns);
}

void context_node::disarm() noexcept {
  if (!is_cancelable() || deadline_ == no_deadline) return;
  sched::stop_timer_sync(timer_);
  // Null: it has fired, or there was no timer.
  if (expiry_ != nullptr) release_record(std::exchange(expiry_, nullptr));
}

void retain(context_node* n) noexcept { n->retain(); }

void release(context_node* n) noexcept {
  while (n != nullptr && n->drop()) {
    context_ref parent = n->retire();
    delete n;
    n = parent.give_up();
  }
}

context_ref make_cancelable(const context_ref& parent, std::int64_t deadline_ns) {
  const std::int64_t inherited = deadline_of(parent);
  const bool own_deadline = deadline_ns < inherited;
  context_ref owner(new context_node(parent, own_deadline ? deadline_ns : inherited));
  context_node& node = *owner.get();
  node.join(cancelable(parent));
  if (own_deadline) {
    if (deadline_ns <= steady_now_ns()) {
      node.cancel(make_error_code(errc::deadline_exceeded));
    } else {
      node.arm(deadline_ns);
    }
  }
  return owner;
}

context_ref make_valued(const context_ref& parent, std::unique_ptr<context_value> value) {
  return context_ref(new context_node(parent, std::move(value)));
}

void cancel(context_node& node) noexcept { node.cancel(make_error_code(errc::canceled)); }

recv_chan<std::monostate> done_of(const context_ref& node) {
  context_node* n = cancelable(node);
  return n != nullptr ? n->done() : recv_chan<std::monostate>(nullptr);
}

std::error_code error_of(const context_ref& node) {
  context_node* n = cancelable(node);
  return n != nullptr ? n->error() : std::error_code();
}

std::stop_token token_of(const context_ref& node) {
  context_node* n = cancelable(node);
  return n != nullptr ? n->token() : std::stop_token();
}

std::int64_t deadline_of(const context_ref& node) {
  return node.get() != nullptr ? node.get()->deadline() : no_deadline;
}

const void* value_of(const context_ref& node, const std::type_info& key_type, const void* key, const std::type_info& value_type) {
  for (const context_node* n = node.get(); n != nullptr; n = n->parent().get()) {
    if (n->value() != nullptr && n->value()->has_key(key_type, key)) return n->value()->value(value_type);
  }
  return nullptr;
}

}  // namespace weft::detail
