// Symptom: more and more goroutines, more and more memory.
// Cause: each request starts a goroutine that waits for something that does not come. The dump groups equal stacks and
// counts them: the largest group is the leak. WEFTDEBUG=leaks=1 prints the same at the end of run().
#include <iostream>
#include <sstream>

#include "figures.h"

int main() {
  return weft::run([] {
    weft::chan<int> results;
    for (int request = 0; request < 2000; ++request) {
      weft::go([=] { results.send(request); });  // nobody receives any more: the one who asked gave up
    }
    while (figure("/sched/goroutines/waiting:goroutines") < 2000) weft::yield();
    show("/sched/goroutines:goroutines");
    std::ostringstream dump;
    weft::runtime::dump_goroutines(dump);
    std::cout << dump.str().substr(0, 2000) << std::flush;
    return verdict(dump.str().find("1999 more with the same stack") != std::string::npos, "2000 equal stacks, all in chan send");
  });
}
