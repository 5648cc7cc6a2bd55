// Symptom: Ps are idle although there is always a goroutine that could run.
// Cause: the work is a conversation. Two goroutines take turns, so one of them is always runnable, but never both: no P can
// help. The remedy is to have more of them under way at once (a buffer, batches, several pairs).
#include "figures.h"

int main() {
  return weft::run(
      [] {
        weft::chan<int> ping, pong;
        weft::go([=] {
          for (int n : ping) pong.send(n + 1);
          pong.close();
        });
        double idle = 0;
        int n = 0;
        for (int i = 0; i < 200'000; ++i) {
          ping.send(n);
          n = *pong.recv();
          if (i % 20'000 == 19'999) idle += figure("/weft/procs/idle:threads") / 10;
        }
        ping.close();
        std::printf("two goroutines that talk, on 4 Ps; %d turns:\n", n);
        std::printf("  %-45s %.2f\n", "idle Ps, on average", idle);
        show("/weft/switches/choices:events");
        show("/weft/steals/goroutines:goroutines");
        return verdict(idle >= 1.5, "most Ps are idle all the time, and nobody steals");
      },
      {.procs = 4});
}
