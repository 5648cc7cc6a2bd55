// Symptom: a goroutine never moves.
// Cause: it waits for somebody who is gone. A dump (SIGQUIT, or as here dump_goroutines()) says what each one waits for,
// since when, where, and who started it.
#include <iostream>

#include "figures.h"

int main() {
  return weft::run([] {
    weft::chan<int> answers;
    weft::go({.name = "who waits"}, [=] { answers.recv(); });
    weft::go([=] {
      // was to send an answer, and returns early
    });
    const std::string dump = dump_with("[chan receive] \"who waits\"");
    std::cout << dump << std::flush;
    return verdict(!dump.empty(), "the dump names the goroutine and what it waits for");
  });
}
