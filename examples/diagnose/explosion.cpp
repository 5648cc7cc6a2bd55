// Symptom: more and more goroutines, more and more memory.
// Cause: each request starts a goroutine that waits for something that does not come. The dump groups equal stacks and
// counts them: the largest group is the leak. WEFTDEBUG=leaks=1 prints the same at the end of run().
#include <iostream>

#include "figures.h"

int main() {
  return weft::run([] {
    weft::chan<int> results;
    for (int request = 0; request < 2000; ++request) {
      weft::go([=] { results.send(request); });  // nobody receives any more: the one who asked gave up
    }
    const std::string dump = dump_with("and 1999 more with the same stack");
    show("/sched/goroutines:goroutines");
    std::cout << dump.substr(0, 2000) << std::flush;
    return verdict(!dump.empty(), "2000 equal stacks, all in chan send");
  });
}
