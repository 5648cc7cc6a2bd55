// Channel and select, in all orders: two or three parties, each a short list of steps, on channels of capacity 0 to 2.
// With one P, and without preemption, a goroutine runs until it waits, so a schedule is the order in which a conductor
// lets the parties take their steps: every order is played. What must come out is told by a model of a channel that knows
// nothing of locks and goroutines.
//
// The conductor opens a party's gate; the party takes one step, which may block; then the conductor yields until
// nothing moves. A party that blocks in a step takes its next one only after that step is over and its gate is opened
// again: turns given to a blocked party are skipped, in the model as well.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/build.h"
#include "support/chan_places.h"
#include "support/without_preemption.h"

namespace {

// One step of one party. Channels are 0 and 1.
struct step {
  enum class kind { send, recv, close, try_send, try_recv, select, select_default };
  // For select: which channels it receives from and sends to, cases in the order: receives, then sends.
  kind what;
  int channel = 0;
  std::vector<int> receives = {};
  std::vector<int> sends = {};
};

using script = std::vector<step>;

step send(int c) { return {step::kind::send, c}; }
step recv(int c) { return {step::kind::recv, c}; }
step close_of(int c) { return {step::kind::close, c}; }
step try_send(int c) { return {step::kind::try_send, c}; }
step try_recv(int c) { return {step::kind::try_recv, c}; }
step select_of(std::vector<int> in, std::vector<int> out) {
  return {step::kind::select, 0, std::move(in), std::move(out)};
}
step select_or_default(std::vector<int> in, std::vector<int> out) {
  return {step::kind::select_default, 0, std::move(in), std::move(out)};
}

// What a step came to: "sent 12", "got 3", "closed", "error", "nothing"; empty while it waits.
using result = std::string;

// ---- the model ----

class model {
 public:
  model(std::size_t parties, std::size_t capacity) : results_(parties), waits_(parties), channels_(2) {
    for (auto& c : channels_) c.capacity = capacity;
  }

  bool is_blocked(std::size_t party) const { return waits_[party].has_value(); }
  const std::vector<std::vector<result>>& results() const { return results_; }

  // Several outcomes are allowed where a select has more than one ready case: the real one, `seen`, picks.
  // Returns false if `seen` is none of them.
  bool take(std::size_t party, const step& s, int value, const result& seen) {
    offers all = offers_of(s);
    std::vector<result> possible;
    for (const offer& o : all) {
      model copy = *this;
      if (const result r = copy.go(o, value); !r.empty()) {
        possible.push_back(r);
        if (r == seen) {
          go(o, value);
          results_[party].push_back(r);
          return true;
        }
      }
    }
    if (!possible.empty()) return false;
    if (s.what == step::kind::try_send || s.what == step::kind::try_recv || s.what == step::kind::select_default) {
      results_[party].push_back("nothing");
      return seen == "nothing";
    }
    if (!seen.empty()) return false;
    waits_[party] = waiting{std::move(all), value, ++arrivals_};
    return true;
  }

 private:
  struct offer {
    bool is_send;
    int channel;
    bool closes = false;
  };
  using offers = std::vector<offer>;
  struct waiting {
    offers all;
    int value;
    int arrival;
  };
  struct channel {
    std::size_t capacity = 0;
    std::deque<int> buffer;
    bool closed = false;
  };

  static offers offers_of(const step& s) {
    switch (s.what) {
      case step::kind::send:
      case step::kind::try_send:
        return {{true, s.channel}};
      case step::kind::recv:
      case step::kind::try_recv:
        return {{false, s.channel}};
      case step::kind::close:
        return {{false, s.channel, true}};
      case step::kind::select:
      case step::kind::select_default:
        break;
    }
    offers all;
    for (const int c : s.receives) all.push_back({false, c});
    for (const int c : s.sends) all.push_back({true, c});
    return all;
  }

  static result sent(int channel) { return "sent on " + std::to_string(channel); }
  static result got(int channel, int value) {
    return "got " + std::to_string(value) + " from " + std::to_string(channel);
  }
  static result got_end(int channel) { return "end of " + std::to_string(channel); }

  // The longest waiting party that offers this.
  std::optional<std::size_t> first_waiting(bool is_send, int channel) const {
    std::optional<std::size_t> first;
    for (std::size_t p = 0; p < waits_.size(); ++p) {
      if (!waits_[p]) continue;
      const bool offers_it = std::any_of(waits_[p]->all.begin(), waits_[p]->all.end(),
                                         [&](const offer& o) { return o.is_send == is_send && o.channel == channel; });
      if (offers_it && (!first || waits_[p]->arrival < waits_[*first]->arrival)) first = p;
    }
    return first;
  }

  void wake(std::size_t party, result r) {
    waits_[party].reset();
    results_[party].push_back(std::move(r));
  }

  // Empty: it has to wait, and nothing has changed.
  result go(const offer& o, int value) {
    channel& c = channels_[static_cast<std::size_t>(o.channel)];
    if (o.closes) return close(o.channel);
    if (o.is_send) {
      if (c.closed) return "error";
      if (const auto peer = first_waiting(false, o.channel)) {
        wake(*peer, got(o.channel, value));
        return sent(o.channel);
      }
      if (c.buffer.size() == c.capacity) return "";
      c.buffer.push_back(value);
      return sent(o.channel);
    }
    const auto peer = first_waiting(true, o.channel);
    if (!c.buffer.empty()) {
      const int front = c.buffer.front();
      c.buffer.pop_front();
      if (peer) {
        c.buffer.push_back(waits_[*peer]->value);
        wake(*peer, sent(o.channel));
      }
      return got(o.channel, front);
    }
    if (peer) {
      const int taken = waits_[*peer]->value;
      wake(*peer, sent(o.channel));
      return got(o.channel, taken);
    }
    return c.closed ? got_end(o.channel) : "";
  }

  result close(int index) {
    channel& c = channels_[static_cast<std::size_t>(index)];
    if (c.closed) return "error";
    c.closed = true;
    while (const auto peer = first_waiting(false, index)) wake(*peer, got_end(index));
    while (const auto peer = first_waiting(true, index)) wake(*peer, "error");
    return "closed " + std::to_string(index);
  }

  std::vector<std::vector<result>> results_;
  std::vector<std::optional<waiting>> waits_;
  std::vector<channel> channels_;
  int arrivals_ = 0;
};

// ---- the real thing, with bits or objects as elements ----

template <class T>
T element(int n);
template <>
int element<int>(int n) {
  return n;
}
template <>
std::string element<std::string>(int n) {
  return std::to_string(n) + std::string(40, '.');
}
int number(int v) { return v; }
int number(const std::string& v) { return std::stoi(v); }

template <class T>
class stage {
 public:
  stage(std::vector<script> scripts, std::size_t capacity)
      : scripts_(std::move(scripts)), channels_{weft::chan<T>(capacity), weft::chan<T>(capacity)} {
    for (std::size_t p = 0; p < scripts_.size(); ++p) parties_.push_back(std::make_unique<party>());
    for (std::size_t p = 0; p < scripts_.size(); ++p) {
      weft::go([this, p] { play(p); });
    }
    settle();
  }

  bool has_more(std::size_t p) const { return parties_[p]->begun < scripts_[p].size(); }
  bool is_blocked(std::size_t p) const { return parties_[p]->begun > parties_[p]->results.size(); }
  const std::vector<result>& results(std::size_t p) const { return parties_[p]->results; }
  std::size_t begun(std::size_t p) const { return parties_[p]->begun; }

  static int value_of(std::size_t party, std::size_t index) { return static_cast<int>(10 * (party + 1) + index); }

  void advance(std::size_t p) {
    parties_[p]->gate.send(0);
    settle();
  }

  // Ends whoever still waits.
  void finish() {
    over_ = true;
    for (const auto& ch : channels_) {
      try {
        ch.close();
      } catch (const weft::channel_error&) {
      }
    }
    for (auto& p : parties_) p->gate.close();
    test::await([this] { return left_ == 0; });
  }

 private:
  struct party {
    weft::chan<int> gate{1};
    std::size_t begun = 0;
    std::vector<result> results;
  };

  // One P: each yield lets everybody else who can run do so until they wait.
  static void settle() {
    for (int i = 0; i < 8; ++i) weft::yield();
  }

  void play(std::size_t p) {
    ++left_;
    party& me = *parties_[p];
    for (std::size_t i = 0; i < scripts_[p].size(); ++i) {
      if (!me.gate.recv()) break;
      ++me.begun;
      result r = perform(scripts_[p][i], value_of(p, i));
      if (!over_) me.results.push_back(std::move(r));
    }
    --left_;
  }

  result perform(const step& s, int value) {
    try {
      return attempt(s, value);
    } catch (const weft::channel_error&) {
      return "error";
    }
  }

  static result got(int channel, const std::optional<T>& v) {
    return v ? "got " + std::to_string(number(*v)) + " from " + std::to_string(channel)
             : "end of " + std::to_string(channel);
  }
  static result sent(int channel) { return "sent on " + std::to_string(channel); }

  result attempt(const step& s, int value) {
    const weft::chan<T>& ch = channels_[s.channel];
    switch (s.what) {
      case step::kind::send:
        ch.send(element<T>(value));
        return sent(s.channel);
      case step::kind::recv:
        return got(s.channel, ch.recv());
      case step::kind::close:
        ch.close();
        return "closed " + std::to_string(s.channel);
      case step::kind::try_send:
        return ch.try_send(element<T>(value)) ? sent(s.channel) : "nothing";
      case step::kind::try_recv: {
        T out{};
        switch (ch.try_recv(out)) {
          case weft::recv_status::ok:
            return got(s.channel, out);
          case weft::recv_status::empty:
            return "nothing";
          case weft::recv_status::closed:
            return got(s.channel, std::nullopt);
        }
        break;
      }
      case step::kind::select:
      case step::kind::select_default:
        break;
    }
    result r;
    weft::selector all;
    for (const int c : s.receives) {
      all.add(weft::on_recv(channels_[c], [&r, c](std::optional<T> v) { r = got(c, v); }));
    }
    for (const int c : s.sends) {
      all.add(weft::on_send(channels_[c], element<T>(value), [&r, c] { r = sent(c); }));
    }
    if (s.what == step::kind::select_default) all.add(weft::on_default([&r] { r = "nothing"; }));
    all.wait();
    return r;
  }

  std::vector<script> scripts_;
  weft::chan<T> channels_[2];
  std::vector<std::unique_ptr<party>> parties_;
  int left_ = 0;
  bool over_ = false;
};

// Plays one order of turns; false if something came out that the model does not allow.
template <class T>
void play(const std::vector<script>& scripts, std::size_t capacity, const std::vector<std::size_t>& order) {
  stage<T> real(scripts, capacity);
  model expected(scripts.size(), capacity);
  std::string log;
  for (const std::size_t p : order) {
    ASSERT_EQ(real.is_blocked(p), expected.is_blocked(p)) << "capacity " << capacity << log;
    if (real.is_blocked(p) || !real.has_more(p)) continue;
    const std::size_t index = real.begun(p);
    real.advance(p);
    const result seen = real.is_blocked(p) ? "" : real.results(p).back();
    log += "\n  party " + std::to_string(p) + " step " + std::to_string(index) + ": " + (seen.empty() ? "waits" : seen);
    ASSERT_TRUE(expected.take(p, scripts[p][index], stage<T>::value_of(p, index), seen))
        << "capacity " << capacity << log;
    for (std::size_t other = 0; other < scripts.size(); ++other) {
      ASSERT_EQ(real.results(other), expected.results()[other])
          << "party " << other << ", capacity " << capacity << log;
      ASSERT_EQ(real.is_blocked(other), expected.is_blocked(other))
          << "party " << other << ", capacity " << capacity << log;
    }
  }
  real.finish();
}

// Every order in which the parties can take their turns. A turn given to a blocked party is lost, so some are added for
// those who were blocked when theirs came.
void in_all_orders(const std::vector<script>& scripts) {
  std::vector<std::size_t> order;
  for (std::size_t p = 0; p < scripts.size(); ++p) order.insert(order.end(), scripts[p].size(), p);
  // TSan makes a goroutine dear: there each seventh order is played.
  constexpr std::size_t stride = test::scaled(1, 1, 7);
  std::size_t orders = 0;
  weft::run(
      [&] {
        do {
          if (orders++ % stride != 0) continue;
          std::vector<std::size_t> turns = order;
          for (std::size_t p = 0; p < scripts.size(); ++p) turns.insert(turns.end(), scripts[p].size(), p);
          for (const std::size_t capacity : {0u, 1u, 2u}) {
            play<int>(scripts, capacity, turns);
            if (testing::Test::HasFatalFailure()) return;
            play<std::string>(scripts, capacity, turns);
            if (testing::Test::HasFatalFailure()) return;
          }
        } while (std::next_permutation(order.begin(), order.end()));
      },
      {.procs = 1});
}

TEST(all_orders_of, a_sender_and_a_receiver) {
  in_all_orders({{send(0), send(0), send(0)}, {recv(0), recv(0), recv(0)}});
}

TEST(all_orders_of, two_senders_and_a_receiver) {
  in_all_orders({{send(0), send(0)}, {send(0), send(0)}, {recv(0), recv(0), recv(0)}});
}

TEST(all_orders_of, a_sender_and_two_receivers) {
  in_all_orders({{send(0), send(0), send(0)}, {recv(0), recv(0)}, {recv(0), recv(0)}});
}

TEST(all_orders_of, a_sender_a_receiver_and_one_who_closes) {
  in_all_orders({{send(0), send(0), send(0)}, {recv(0), recv(0), recv(0)}, {close_of(0), close_of(0)}});
}

TEST(all_orders_of, three_who_send_and_receive_both_ways) {
  in_all_orders({{send(0), recv(1)}, {recv(0), send(1)}, {send(1), recv(0)}});
}

TEST(all_orders_of, those_who_try_and_those_who_wait) {
  in_all_orders({{try_send(0), try_recv(0), try_send(0)}, {send(0), recv(0)}, {recv(0), send(0)}});
}

TEST(all_orders_of, trying_on_a_channel_that_is_being_closed) {
  in_all_orders({{try_send(0), try_recv(0), try_recv(0)}, {close_of(0)}, {send(0), recv(0)}});
}

TEST(all_orders_of, a_select_between_two_senders) {
  in_all_orders(
      {{select_of({0, 1}, {}), select_of({0, 1}, {}), select_of({1, 0}, {})}, {send(0), send(0)}, {send(1), send(1)}});
}

TEST(all_orders_of, a_select_between_two_receivers) {
  in_all_orders(
      {{select_of({}, {0, 1}), select_of({}, {1, 0}), select_of({}, {0, 1})}, {recv(0), recv(0)}, {recv(1), recv(1)}});
}

TEST(all_orders_of, two_selects_that_face_each_other) {
  in_all_orders({{select_of({1}, {0}), select_of({1}, {0}), select_of({1}, {0})},
                 {select_of({0}, {1}), select_of({0}, {1}), select_of({0}, {1})}});
}

TEST(all_orders_of, three_selects_that_face_each_other) {
  in_all_orders({{select_of({1}, {0}), select_of({0}, {1})},
                 {select_of({0}, {1}), select_of({0, 1}, {})},
                 {select_of({}, {0, 1}), recv(0)}});
}

TEST(all_orders_of, a_select_on_one_channel_in_both_directions) {
  in_all_orders(
      {{select_of({0}, {0}), select_of({0}, {0})}, {select_of({0}, {0}), select_of({0, 0}, {0})}, {send(0), recv(0)}});
}

TEST(all_orders_of, a_select_whose_channels_are_closed) {
  in_all_orders({{select_of({0, 1}, {}), select_of({0}, {1})}, {close_of(0), close_of(1)}, {send(0), recv(1)}});
}

TEST(all_orders_of, a_select_with_a_default) {
  in_all_orders({{select_or_default({0}, {1}), select_or_default({0, 1}, {}), select_or_default({}, {0})},
                 {send(0), recv(1)},
                 {recv(0), send(1)}});
}

TEST(all_orders_of, plain_waiters_behind_a_select_that_went_away) {
  in_all_orders({{select_of({0, 1}, {}), recv(0)}, {recv(0), recv(1)}, {send(1), send(0), send(0)}});
}

}  // namespace
