// A user's program: the answer is computed in one goroutine and printed in another.
#include <weft/version.h>
#include <weft/weft.h>

#include <cstdio>

int main() {
  return weft::run([] {
    auto answer = weft::async([] { return 6 * 7; });
    std::printf("weft %s: %d\n", WEFT_VERSION_STRING, answer.get());
  });
}
