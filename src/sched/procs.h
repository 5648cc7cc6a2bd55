// How many Ps: the choice at the start, set_max_procs(), and following the limits of the machine while the program runs.
#pragma once

namespace weft::sched {

struct procs_choice {
  int procs;
  bool follow;  // nobody asked for this number: it changes when affinity or quota do
};

// `asked` (options::procs) if it is not 0, else what set_max_procs() said before the start, else $WEFTPROCS, else what
// affinity and cgroup quota allow.
procs_choice choose_procs(int asked);

// The factory, at most once a second: the limits may have changed.
void follow_limits();

}  // namespace weft::sched
