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
#include <new>

#include <weft/detail/record.h>

#include "base/lock.h"
#include "sched/finishing.h"
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
  // It has no owner any more. What it hung on is the caller's.
  static context_node* destroy(context_node* n) noexcept {
    n->leave_parent();
    n->disarm();
    context_ref parent = std::move(n->parent_);
    delete n;
    return parent.give_up();
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
    const sched::finishing section;
    base::lock_guard guard(lock_);
    return error_;
  }

  // After construction, when it has an owner: hang it into the tree, start its timer.
  void join(context_node* ancestor);
  void arm(std::int64_t deadline_ns);

  void cancel(std::error_code why) noexcept;

 private:
  class closed_list;

  void close(std::error_code why, closed_list& closed) noexcept;
  void close_below(std::error_code why, closed_list& closed) noexcept;
  void forget_deadline() noexcept;
  context_node* retain_first_child() noexcept;
  void leave_parent() noexcept;
  void unlink() noexcept;
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

  base::mutex lock_{base::lock_rank::leaf};       // in a section: who holds it does not freeze
  bool is_deadlines_ = false;                     // one of the owners is the deadline. Guarded by lock_, like the next two
  std::error_code error_;
  context_node* first_child_ = nullptr;

  context_node* hangs_on_ = nullptr;              // these three: guarded by the ancestor's lock
  context_node* next_ = nullptr;
  context_node** link_ = nullptr;
  context_node* next_closed_ = nullptr;           // of who was the first to close it

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
    const sched::finishing section;
    base::lock_guard guard(ancestor->lock_);
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

// With the lock of the ancestor that it hangs on.
void context_node::unlink() noexcept {
  hangs_on_ = nullptr;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
}

void context_node::leave_parent() noexcept {
  if (!is_cancelable()) return;  // it hangs on nothing
  context_node* ancestor = cancelable(parent_);
  if (ancestor == nullptr) return;
  const sched::finishing_quietly section;
  base::lock_guard guard(ancestor->lock_);
  if (hangs_on_ != nullptr) unlink();
}

// The caller becomes an owner of it; null if there is none. A child that is being destroyed has no owner any more: it is taken off,
// and finds itself off the list.
context_node* context_node::retain_first_child() noexcept {
  const sched::finishing_quietly section;
  base::lock_guard guard(lock_);
  while (context_node* const child = first_child_) {
    if (child->try_retain()) return child;
    child->unlink();
  }
  return nullptr;
}

// The caller has the last handle, so nobody can get at done() or a token from here on.
bool context_node::is_counted_on() const noexcept {
  if (!is_cancelable() || deadline_ == no_deadline) return false;
  return gave_token_.load(std::memory_order_relaxed) || chan_access::of(done_).get()->owners.load(std::memory_order_relaxed) > 1;
}

// False: it is cancelled, or is about to be by somebody who has become an owner.
bool context_node::leave_to_deadline() noexcept {
  const sched::finishing_quietly section;
  base::lock_guard guard(lock_);
  return !error_ && !std::exchange(is_deadlines_, true);
}

// Nodes that one canceller was the first to close, in that order; it owns them until it has told those who listen.
class context_node::closed_list {
 public:
  void push(context_node& n) noexcept {
    n.retain();
    *last_ = &n;
    last_ = &n.next_closed_;
  }
  // That nobody owns any more but this list.
  void push_dropped(context_node& n) noexcept {
    n.next_closed_ = std::exchange(dropped_, &n);
  }
  void tell_all() noexcept {
    for (context_node* n = first_; n != nullptr; n = n->next_closed_) n->stop_.request_stop();  // runs callbacks of the user's
    while (context_node* const n = first_) {
      first_ = n->next_closed_;
      n->forget_deadline();
      release(n);
    }
    while (context_node* const n = dropped_) {
      dropped_ = n->next_closed_;
      release(destroy(n));
    }
  }

 private:
  context_node* first_ = nullptr;
  context_node** last_ = &first_;
  context_node* dropped_ = nullptr;
};

// Whoever was the first: afterwards it is cancelled.
void context_node::close(std::error_code why, closed_list& closed) noexcept {
  bool is_first = false;
  {
    const sched::finishing_quietly section;
    base::lock_guard guard(lock_);
    is_first = !error_;
    if (is_first) error_ = why;
  }
  channel_close_quietly(chan_access::of(done_).get());
  if (is_first) closed.push(*this);
}

// Closes all that hang on this, and takes them off, each once nothing hangs on it any more. So two who cancel parts of one tree help
// each other, and neither has to wait: what one of them finds on a list may be half done, and what it does not find is.
void context_node::close_below(std::error_code why, closed_list& closed) noexcept {
  for (context_node* at = this;;) {
    if (context_node* const child = at->retain_first_child()) {
      child->close(why, closed);
      at = child;
      continue;
    }
    if (at == this) return;
    context_node* const done = at;
    at = cancelable(done->parent_);
    done->leave_parent();
    if (done->drop()) closed.push_dropped(*done);
  }
}

// Of who was the first to close it.
void context_node::forget_deadline() noexcept {
  if (timer_.pending()) sched::stop_timer(timer_);  // nothing waits for it any more; its goroutine goes with the node
  if (is_deadlines_) release(this);                 // since it was closed nobody changes that
}

// When it returns, this and all that hung on it are cancelled, whoever did it. Nothing before tell_all() is foreign code, or waits for
// anybody: no goroutine freezes, or gives way, half way down the tree.
void context_node::cancel(std::error_code why) noexcept {
  closed_list closed;
  close(why, closed);
  close_below(why, closed);
  leave_parent();
  closed.tell_all();
  stop_.request_stop();  // if somebody else was the first, that one may not have come to this yet
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
  while (n != nullptr && n->drop()) n = context_node::destroy(n);
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
