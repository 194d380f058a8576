// What C++ destroys as a process ends: statics made before and after the library's first use, and thread-locals.
#include "exit_process.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace {

// Made first of all, so destroyed last of all.
class Verdict {
 public:
  ~Verdict() {
    if (armed_) exit_verdict();
  }
  void arm() {
    armed_ = true;
  }

 private:
  bool armed_ = false;
};

class Owner {
 public:
  Owner() = default;
  Owner(const Owner &) = delete;
  Owner &operator=(const Owner &) = delete;
  ~Owner() {
    if (owns_) exit_give_back(&own_);
  }
  void acquire() {
    exit_acquire(&own_);
    owns_ = true;
  }

 private:
  exit_belongings own_ = {};
  bool owns_ = false;
};

Verdict verdict;
Owner made_before_first_use;
thread_local Owner of_the_thread;
std::atomic<int> threads_ready{0};

}  // namespace

extern "C" int exit_of_cxx_objects(void) {
  verdict.arm();
  made_before_first_use.acquire();
  static Owner made_after_first_use;
  made_after_first_use.acquire();
  of_the_thread.acquire();
  std::thread([] { of_the_thread.acquire(); }).join();
  // One that is still there as main returns: its thread-local is never destroyed.
  std::thread([] {
    of_the_thread.acquire();
    threads_ready++;
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }).detach();
  // One that ends as main returns.
  std::thread([] {
    of_the_thread.acquire();
    threads_ready++;
  }).detach();
  while (threads_ready < 2) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return 9;
}
