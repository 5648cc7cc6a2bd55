// The guard of a primitive's queue: one bit of the primitive's word. It is held for a few dozen instructions, always in
// a section (sched/section.h), so that its holder is running unless the kernel has taken its core.
//
// It is let go of by a compare-and-swap of the whole word, together with what else changes at that moment; for whoever
// may be woken by then, that is the last thing that the holder does to the primitive.
//
//   [guard] taking it acquires what the former holder released: the queue.
#pragma once

#include <atomic>
#include <optional>

#include "base/backoff.h"
#include "base/delay.h"

namespace weft::detail {

// In a section. Once nobody has the guard, makes of the word what `next` says, usually with the guard. Returns that; or
// nothing, with nothing done, if the word is not `wanted`.
template <class Word, class Wanted, class Next>
std::optional<Word> take_guard_if(std::atomic<Word>& word, Word guard, Wanted wanted, Next next) noexcept {
  base::backoff wait;  // for the holder
  for (;;) {
    Word w = word.load(std::memory_order_relaxed);
    if (!wanted(w)) return std::nullopt;
    const Word changed = next(w);
    base::delay();
    if ((w & guard) == 0 &&
        word.compare_exchange_weak(w, changed, std::memory_order_acquire, std::memory_order_relaxed)) {  // [guard]
      return changed;
    }
    wait.once();
  }
}

template <class Word, class Next>
Word take_guard(std::atomic<Word>& word, Word guard, Next with_guard) noexcept {
  return *take_guard_if(
      word, guard, [](Word) { return true; }, with_guard);
}

template <class Word>
Word take_guard(std::atomic<Word>& word, Word guard) noexcept {
  return take_guard(word, guard, [guard](Word w) { return static_cast<Word>(w | guard); });
}

// Changes the word from what it is to what `next` makes of it, and with it lets go of the guard. `next` may be called
// more than once: others change the word's other parts meanwhile. Returns the word as it was before.
template <class Word, class Next>
Word release_guard(std::atomic<Word>& word, Word guard, Next next) noexcept {
  Word w = word.load(std::memory_order_relaxed);
  for (;;) {
    base::delay();
    // [guard] release: the queue; acquire, because the change may also take what the primitive protects
    if (word.compare_exchange_weak(w, static_cast<Word>(next(w) & ~guard), std::memory_order_acq_rel,
                                   std::memory_order_relaxed)) {
      return w;
    }
  }
}

// The same with nothing else to change.
template <class Word>
void release_guard(std::atomic<Word>& word, Word guard) noexcept {
  release_guard(word, guard, [](Word w) { return w; });
}

}  // namespace weft::detail
