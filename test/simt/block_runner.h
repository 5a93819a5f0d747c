// The threads of a block: fibers that meet at barriers and in exchanges of a warp's lanes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simt/access_monitor.h"
#include "simt/fiber.h"
#include "simt/report.h"

namespace torch_lazy::simt {

// Of the lanes of a warp; the numbers stand in cuda_builtins.inc.
enum class Exchange : int32_t { kIndex, kUp, kDown, kXor, kBallot, kBarrier };

struct ExchangeRequest {
  uint32_t mask = 0;  // of the lanes that take part
  uint64_t value = 0;
  Exchange how = Exchange::kBarrier;
  int32_t lane = 0;  // number, distance or bits, as `how` wants it
  int32_t width = 32;
};

class BlockRunner {
 public:
  BlockRunner(AccessMonitor& monitor, Dim3 block, Report& report);

  // Runs `kernel` in every thread of the block. False where threads wait for others that do not
  // come; what they would have done is not done.
  bool run(uint32_t block, const KernelEntry& kernel, void** parameters);

  // By the thread that runs:
  void* access(void* address, uint32_t site);
  void wait_for_block(uint32_t site);
  uint64_t exchange(const ExchangeRequest& request, uint32_t site);
  uint32_t active_mask() const { return warps_[current_->number / kWarp].running; }
  Dim3 thread_index() const { return block_.index(current_->number); }

 private:
  static constexpr uint32_t kWarp = 32;

  enum class State : uint8_t { kReady, kAtBarrier, kInExchange, kEnded };
  struct Thread {
    BlockRunner* runner;
    uint32_t number;
    Fiber fiber;
    State state = State::kReady;
    uint32_t site = 0;  // where it waits
    ExchangeRequest request;
    uint64_t result = 0;
  };
  struct Warp {
    Thread* lanes;
    uint32_t count;
    uint32_t met = 0;      // the time at which all its lanes last met
    uint32_t running = 0;  // lanes that go on together since they last waited, as a mask
  };

  void start(Thread& thread);
  void suspend(State state, uint32_t site);
  void run_warp(Warp& warp);
  bool complete_exchange(Warp& warp);
  void exchange_lanes(Warp& warp, uint32_t mask);
  uint64_t result_of(const Warp& warp, uint32_t lane, uint32_t mask);
  bool complete_barrier();
  void report_divergence();
  std::string describe_others(const Thread& waiting, const std::vector<const Thread*>& of) const;

  AccessMonitor& monitor_;
  Dim3 block_;
  Report& report_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  Thread* current_ = nullptr;
  const KernelEntry* kernel_ = nullptr;
  void** parameters_ = nullptr;
  Accessor who_;  // the thread that runs
  uint32_t time_ = 0;
};

}  // namespace torch_lazy::simt
