/*
 * How every peer measures: threads released together work until a deadline, and the wall time counts to the last one's
 * end. One line of JSON for each measurement. C++17, so that nvcc takes it too.
 */
#ifndef PEERS_MEASURE_HPP
#define PEERS_MEASURE_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace peers {

using steady = std::chrono::steady_clock;

/* The exit status that says: there is no GPU here, so there was nothing to measure. */
constexpr int nothing_to_measure = 77;

struct settings {
  double seconds = 0.2;
  std::vector<int> threads = {1, 2, 4, 8, 16};
};

[[noreturn]] inline void usage(const char *program, const char *why) {
  std::fprintf(stderr, "%s: %s; usage: %s [--seconds S] [--threads N,N,...]\n", program, why, program);
  std::exit(2);
}

inline settings settings_from(int count, char **arguments) {
  settings result;
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) usage(arguments[0], "an argument has no value");
    char *end = nullptr;
    if (std::strcmp(arguments[i], "--seconds") == 0) {
      result.seconds = std::strtod(arguments[i + 1], &end);
      if (*end != '\0' || !(result.seconds > 0 && result.seconds <= 60)) usage(arguments[0], "bad --seconds");
    } else if (std::strcmp(arguments[i], "--threads") == 0) {
      result.threads.clear();
      const char *text = arguments[i + 1];
      do {
        long n = std::strtol(text, &end, 10);
        if (end == text || n < 1 || n > 1024) usage(arguments[0], "bad --threads");
        result.threads.push_back(static_cast<int>(n));
        text = end + 1;
      } while (*end == ',');
      if (*end != '\0') usage(arguments[0], "bad --threads");
    } else {
      usage(arguments[0], "unknown argument");
    }
  }
  return result;
}

/* Threads wait here for each other, before what is measured begins. */
class gate {
 public:
  explicit gate(int count) : missing_(count) {}
  void pass() {
    missing_.fetch_sub(1, std::memory_order_acq_rel);
    while (missing_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

/* One thread's part of a measurement. On lines of its own, since it counts beside the others. */
class alignas(128) worker {
 public:
  worker(gate &everyone, double seconds)
      : gate_(&everyone),
        duration_(std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(seconds))) {}

  /* Ends the preparation: returns once every thread is there. */
  void start() {
    gate_->pass();
    begin = checked_ = steady::now();
  }

  /* Whether to do one more operation. The clock is asked seldom enough not to be what is measured. */
  bool more() {
    if (left_ != 0) {
      left_--;
      return true;
    }
    return refill();
  }

  /* Ends the measured part. */
  void stop() {
    end = steady::now();
  }

  steady::time_point begin, end;
  uint64_t operations = 0;
  uint64_t wrong = 0;

 private:
  __attribute__((noinline)) bool refill() {
    if (stride_ == 0) {
      stride_ = 1;
      return true;
    }
    operations += stride_;
    steady::time_point now = steady::now();
    if (now - begin >= duration_) return false;
    if (now - checked_ < duration_ / 64) stride_ *= 2;
    checked_ = now;
    left_ = stride_ - 1;
    return true;
  }

  gate *gate_;
  steady::duration duration_;
  steady::time_point checked_;
  uint64_t left_ = 0;
  uint64_t stride_ = 0;
};

/*
 * Runs `body` on each number of threads. The body prepares, calls start(), works while there is more(), completes its
 * work, and calls stop(). Gives how many values were wrong.
 */
template <class Body>
uint64_t measure(const settings &settings, const char *peer, const char *name, Body body) {
  uint64_t all_wrong = 0;
  for (int count : settings.threads) {
    gate everyone(count);
    std::vector<worker> workers(static_cast<size_t>(count), worker(everyone, settings.seconds));
    std::vector<std::thread> threads;
    for (worker &one : workers) threads.emplace_back([&body, &one] { body(one); });
    for (std::thread &thread : threads) thread.join();
    steady::time_point begin = workers[0].begin, end = workers[0].end;
    uint64_t operations = 0, wrong = 0;
    for (const worker &one : workers) {
      begin = std::min(begin, one.begin);
      end = std::max(end, one.end);
      operations += one.operations;
      wrong += one.wrong;
    }
    double wall = std::chrono::duration<double>(end - begin).count();
    double done = static_cast<double>(operations);
    std::printf(
        "{\"peer\":\"%s\",\"name\":\"%s\",\"threads\":%d,\"operations\":%llu,\"ns_per_op\":%.3f,"
        "\"per_second\":%.1f,\"wrong\":%llu}\n",
        peer, name, count, static_cast<unsigned long long>(operations), wall * 1e9 * count / done, done / wall,
        static_cast<unsigned long long>(wrong));
    std::fflush(stdout);
    all_wrong += wrong;
  }
  return all_wrong;
}

/* How many of the values that arange * 2 + 1 gives are not there. */
constexpr int value_count = 256;

inline uint64_t wrong_values(const float *values) {
  uint64_t wrong = 0;
  for (int i = 0; i < value_count; i++) wrong += values[i] != 2.0f * static_cast<float>(i) + 1.0f;
  return wrong;
}

/* The exit status of a program that read back `wrong` wrong values. */
inline int conclude(const char *program, uint64_t wrong) {
  if (wrong == 0) return 0;
  std::fprintf(stderr, "%s: %llu wrong values were read back\n", program, static_cast<unsigned long long>(wrong));
  return 1;
}

}  // namespace peers

#endif
