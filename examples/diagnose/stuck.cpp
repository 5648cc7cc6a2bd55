// Symptom: a goroutine never moves.
// Cause: it waits for somebody who is gone. A dump (SIGQUIT, or as here dump_goroutines()) says what each one waits for,
// since when, where, and who started it.
#include <chrono>
#include <iostream>
#include <sstream>

#include "figures.h"

int main() {
  return weft::run([] {
    weft::chan<int> answers;
    weft::go({.name = "who waits"}, [=] { answers.recv(); });
    weft::go([=] {
      // was to send an answer, and returns early
    });
    weft::sleep_for(std::chrono::milliseconds(20));
    std::ostringstream dump;
    weft::runtime::dump_goroutines(dump);
    std::cout << dump.str() << std::flush;
    const bool shows = dump.str().find("[chan receive]") != std::string::npos &&
                       dump.str().find("\"who waits\"") != std::string::npos;
    return verdict(shows, "the dump names the goroutine and what it waits for");
  });
}
