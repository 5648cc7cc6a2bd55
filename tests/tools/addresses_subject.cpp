// What addresses_test.sh looks at: a dump with a function in it that is not inlined.
#include <weft/weft.h>

#include <iostream>

extern "C" [[gnu::noinline]] void dump_from_here() {
  weft::runtime::dump_goroutines(std::cout);
  asm volatile("");
}

int main() {
  weft::run([] { dump_from_here(); });
}
