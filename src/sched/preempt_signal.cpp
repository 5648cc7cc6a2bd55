#include "sched/preempt_signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "gmp/current.h"
#include "sched/fork.h"
#include "sched/preempt.h"
#include "sched/stand_still.h"

namespace weft::sched {
namespace {

struct sigaction previous_action;
bool installed = false;
char cookies[2];  // the address of one, sent along with a signal, says that the signal is ours, and its purpose

int preempt_signal() noexcept { return preemption.signal != 0 ? preemption.signal : SIGURG; }

char* cookie_for(signal_purpose why) noexcept { return &cookies[static_cast<int>(why)]; }

void forward(int signal, siginfo_t* info, void* context) noexcept {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_IGN && previous_action.sa_handler != SIG_DFL) {
    previous_action.sa_handler(signal);
  }
}

void on_signal(int signal, siginfo_t* info, void* context) noexcept {
  const int saved = errno;
  machine* m = gmp::machine_of_thread();
  if (m != nullptr && handler_in_forked_child()) m = nullptr;  // there nobody would wake it
  if (m != nullptr) stand_if_asked(m, context);
  const void* cookie = info->si_code == SI_QUEUE ? info->si_value.sival_ptr : nullptr;
  if (cookie == cookie_for(signal_purpose::stop_in_place)) {
    if (m != nullptr) stop_in_place(m, context);
  } else if (cookie != cookie_for(signal_purpose::stand_still)) {
    forward(signal, info, context);
  }
  errno = saved;
}

void install() noexcept {
  ::sigaction(preempt_signal(), nullptr, &previous_action);  // known before the first signal can come
  struct sigaction action = {};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(preempt_signal(), &action, nullptr);
  installed = true;
}

}  // namespace

void install_preempt_handler() noexcept {
  if (!preemption.off) install();
}

void unblock_preempt_signal() noexcept {
  if (preemption.off) return;
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, preempt_signal());
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void send_preempt_signal(const machine* m, signal_purpose why) noexcept {
  siginfo_t info = {};
  info.si_signo = preempt_signal();
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = cookie_for(why);
  ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), static_cast<pid_t>(m->tid), preempt_signal(), &info);
}

bool has_preempt_handler() noexcept {
  if (!installed) install();
  struct sigaction present = {};
  ::sigaction(preempt_signal(), nullptr, &present);
  return (present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == &on_signal;
}

}  // namespace weft::sched
