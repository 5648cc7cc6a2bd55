// trace_subject FILE: a trace in FILE, and a recording in FILE.saved.
#include <weft/weft.h>

#include <string>

namespace {

void work() {
  weft::wait_group wg;
  for (int i = 0; i < 100; ++i) wg.go([] { weft::yield(); });
  wg.wait();
}

}  // namespace

int main(int, char** argv) {
  const std::string file = argv[1];
  weft::run([&] {
    weft::trace::start(file);
    work();
    weft::trace::stop();
    weft::trace::record();
    work();
    weft::trace::save(file + ".saved");
    weft::trace::stop();
  });
}
