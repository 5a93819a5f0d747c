#include "simt/block_runner.h"

#include <fmt/format.h>

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "simt/device_functions.h"

namespace torch_lazy::simt {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kMostThreads = 1024;

// Of all threads; pages that are never touched take no memory. Kept for the next launch.
char* stacks() {
  static char* const memory = [] {
    void* const mapped = mmap(nullptr, kMostThreads * kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(mapped);
  }();
  return memory;
}

}  // namespace

BlockRunner::BlockRunner(AccessMonitor& monitor, Dim3 block, Report& report)
    : monitor_(monitor), block_(block), report_(report) {
  for (uint32_t i = 0; i < block.count(); ++i) threads_.push_back({.runner = this, .number = i});
  for (uint32_t i = 0; i < block.count(); i += kWarp) {
    warps_.push_back({&threads_[i], std::min(kWarp, block.count() - i)});
  }
}

bool BlockRunner::run(uint32_t block, const KernelEntry& kernel, void** parameters) {
  kernel_ = &kernel;
  parameters_ = parameters;
  who_.block = block + 1;
  who_.block_time = ++time_;
  monitor_.begin_block();
  for (Thread& thread : threads_) start(thread);
  for (Warp& warp : warps_) warp.met = time_;
  while (true) {
    for (Warp& warp : warps_) {
      run_warp(warp);
      monitor_.count_warp();
    }
    const bool ended = std::all_of(threads_.begin(), threads_.end(), [](const Thread& thread) {
      return thread.state == State::kEnded;
    });
    if (ended) return true;
    if (!complete_barrier()) {
      report_divergence();
      return false;
    }
  }
}

void BlockRunner::start(Thread& thread) {
  thread.state = State::kReady;
  thread.fiber.start(
      stacks() + thread.number * kStackBytes, kStackBytes,
      [](void* argument) {
        auto& self = *static_cast<Thread*>(argument);
        self.runner->kernel_->run(self.runner->parameters_);
        self.state = State::kEnded;
      },
      &thread);
}

// Until its lanes all wait for other warps, or have ended, or wait for one another in vain.
void BlockRunner::run_warp(Warp& warp) {
  do {
    warp.running = 0;
    for (uint32_t lane = 0; lane < warp.count; ++lane) {
      if (warp.lanes[lane].state == State::kReady) warp.running |= 1u << lane;
    }
    for (uint32_t lane = 0; lane < warp.count; ++lane) {
      Thread& thread = warp.lanes[lane];
      if (thread.state != State::kReady) continue;
      current_ = &thread;
      who_.thread = thread.number;
      who_.now = time_;
      who_.warp_time = warp.met;
      set_thread_index(thread_index());
      thread.fiber.resume();
    }
  } while (complete_exchange(warp));
}

void BlockRunner::suspend(State state, uint32_t site) {
  current_->state = state;
  current_->site = site;
  current_->fiber.suspend();
}

void* BlockRunner::access(void* address, uint32_t site) {
  return monitor_.access(address, site, who_, current_->fiber);
}

void BlockRunner::wait_for_block(uint32_t site) {
  suspend(State::kAtBarrier, site);
}

uint64_t BlockRunner::exchange(const ExchangeRequest& request, uint32_t site) {
  current_->request = request;
  suspend(State::kInExchange, site);
  return current_->result;
}

// Whether lanes can go on: all those of a mask wait at one place.
bool BlockRunner::complete_exchange(Warp& warp) {
  for (uint32_t lane = 0; lane < warp.count; ++lane) {
    const Thread& first = warp.lanes[lane];
    if (first.state != State::kInExchange) continue;
    const uint32_t mask = first.request.mask;
    bool all = (mask >> lane & 1) != 0;
    for (uint32_t other = 0; other < warp.count; ++other) {
      const Thread& thread = warp.lanes[other];
      if ((mask >> other & 1) == 0) continue;
      all &= thread.state == State::kInExchange && thread.site == first.site &&
             thread.request.mask == mask;
    }
    if (!all) continue;
    exchange_lanes(warp, mask);
    return true;
  }
  return false;
}

void BlockRunner::exchange_lanes(Warp& warp, uint32_t mask) {
  const bool orders_memory = warp.lanes[__builtin_ctz(mask)].request.how == Exchange::kBarrier;
  for (uint32_t lane = 0; lane < warp.count; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    warp.lanes[lane].result = result_of(warp, lane, mask);
  }
  for (uint32_t lane = 0; lane < warp.count; ++lane) {
    if ((mask >> lane & 1) != 0) warp.lanes[lane].state = State::kReady;
  }
  monitor_.count_warp();
  if (orders_memory) warp.met = ++time_;
}

uint64_t BlockRunner::result_of(const Warp& warp, uint32_t lane, uint32_t mask) {
  const Thread& thread = warp.lanes[lane];
  const ExchangeRequest& request = thread.request;
  const auto width = static_cast<uint32_t>(request.width);
  const uint32_t first = lane / width * width;
  const auto moved = static_cast<uint32_t>(request.lane);
  uint32_t from = lane;
  switch (request.how) {
    case Exchange::kIndex:
      from = first + moved % width;
      break;
    case Exchange::kUp:
      if (lane - first >= moved) from = lane - moved;
      break;
    case Exchange::kDown:
      if (lane + moved < first + width) from = lane + moved;
      break;
    case Exchange::kXor:
      if ((lane ^ moved) < first + width) from = lane ^ moved;
      break;
    case Exchange::kBallot: {
      uint64_t ballot = 0;
      for (uint32_t other = 0; other < warp.count; ++other) {
        if ((mask >> other & 1) == 0 || warp.lanes[other].request.value == 0) continue;
        ballot |= uint64_t{1} << other;
      }
      return ballot;
    }
    case Exchange::kBarrier:
      return 0;
  }
  if (from < warp.count && (mask >> from & 1) != 0) return warp.lanes[from].request.value;
  report_.add(Defect::kDivergence, thread.site, [&] {
    Accessor who = who_;
    who.thread = thread.number;
    return fmt::format("divergence: {} takes the value of lane {}, which takes no part",
                       monitor_.place(thread.site, who), from);
  });
  return 0;
}

// Lets all threads go on that wait at one barrier; false where some do not.
bool BlockRunner::complete_barrier() {
  const uint32_t site = threads_.front().site;
  for (const Thread& thread : threads_) {
    if (thread.state != State::kAtBarrier || thread.site != site) return false;
  }
  for (Thread& thread : threads_) thread.state = State::kReady;
  who_.block_time = ++time_;
  return true;
}

// Of the first thread that waits for some that do not come.
void BlockRunner::report_divergence() {
  std::vector<const Thread*> warp, block;
  const Thread* waiting = nullptr;
  for (const Thread& thread : threads_) {
    block.push_back(&thread);
    // Lanes that wait for one another are the narrower cause.
    if (thread.state == State::kInExchange &&
        (waiting == nullptr || waiting->state != State::kInExchange)) {
      waiting = &thread;
    }
    if (thread.state == State::kAtBarrier && waiting == nullptr) waiting = &thread;
  }
  if (waiting->state == State::kInExchange) {
    for (const Thread* thread : block) {
      if (thread->number / kWarp != waiting->number / kWarp) continue;
      if ((waiting->request.mask >> thread->number % kWarp & 1) != 0) warp.push_back(thread);
    }
  }
  const bool in_warp = waiting->state == State::kInExchange;
  report_.add(Defect::kDivergence, waiting->site, [&] {
    Accessor who = who_;
    who.thread = waiting->number;
    return fmt::format("divergence: {} waits for {}", monitor_.place(waiting->site, who),
                       describe_others(*waiting, in_warp ? warp : block));
  });
}

std::string BlockRunner::describe_others(const Thread& waiting,
                                         const std::vector<const Thread*>& of) const {
  size_t ended = 0, elsewhere = 0;
  const Thread* first_ended = nullptr;
  const Thread* first_elsewhere = nullptr;
  for (const Thread* thread : of) {
    if (thread->state == State::kEnded) {
      if (ended++ == 0) first_ended = thread;
    } else if (thread->site != waiting.site) {
      if (elsewhere++ == 0) first_elsewhere = thread;
    }
  }
  std::string text;
  if (first_ended != nullptr) {
    text = fmt::format("{} threads that have ended, the first {}", ended,
                       to_string(block_.index(first_ended->number)));
  }
  if (first_elsewhere != nullptr) {
    text += fmt::format("{}{} threads that wait elsewhere, the first {} in {}",
                        text.empty() ? "" : " and ", elsewhere,
                        to_string(block_.index(first_elsewhere->number)),
                        monitor_.line(first_elsewhere->site));
  }
  if (text.empty()) text = "lanes with a mask that is not its own";
  return text;
}

}  // namespace torch_lazy::simt
