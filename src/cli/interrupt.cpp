#include "cli/interrupt.h"

#include <semaphore.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>

namespace qwench::cli {
namespace {

// A handler may do little more than post a semaphore; a thread waits for it and asks for the stop.
sem_t interrupted;
std::atomic<bool> ending{false};
struct sigaction previous_action;
std::thread watcher;

void on_interrupt(int) {
  const int saved = errno;
  sem_post(&interrupted);
  errno = saved;
}

}  // namespace

Interrupt::Interrupt(Second second) {
  sem_init(&interrupted, 0, 0);
  ending = false;
  watcher = std::thread([source = source_]() mutable {
    while (sem_wait(&interrupted) != 0) {
    }
    if (!ending) source.request_stop();
  });
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(second == Second::ends_program ? SA_RESTART | SA_RESETHAND : SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_action);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &previous_action, nullptr);
  ending = true;
  sem_post(&interrupted);
  watcher.join();
  sem_destroy(&interrupted);
}

}  // namespace qwench::cli
