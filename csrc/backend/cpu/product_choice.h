// Who computes matrix products of a shape, ATen or oneDNN: whoever took less time when both did, in
// turns. No estimate tells what a processor makes of a shape, nor how long oneDNN takes before it
// multiplies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace torch_lazy {

// What oneDNN makes code for: sizes, whether operands are transposed, a sum, and the threads.
struct ProductShape {
  int64_t batch;  // 0 of matrices
  int64_t rows, inner, columns;
  bool transposed[2];
  bool sum;
  int threads;
  bool operator==(const ProductShape& other) const = default;
};

// Not safe for several threads at a time.
class ProductChoice {
 public:
  // oneDNN makes code for each shape when it first sees it: about half a millisecond of the
  // caller's time, and 0.8 MB that stay. So it is tried with so many shapes, and with none before
  // products of its own have taken as long as the code of all that it was tried with: no step waits
  // for much.
  static constexpr int64_t kMostTried = 48;
  static constexpr int64_t kNanosecondsOfCode = 500'000;
  // What takes ATen no longer than oneDNN needs before it multiplies is not tried.
  static constexpr int64_t kNanosecondsOfCall = 8'000;
  // Calls of each that a trial times.
  static constexpr int kTimedCalls = 8;
  // Further shapes are ATen's.
  static constexpr size_t kMostKnown = 4096;

  struct Trial {
    enum class State : uint8_t { kWaiting, kTrying, kDecided };
    State state = State::kWaiting;
    bool onednn = false;  // who was decided for
    int64_t waited = 0;   // nanoseconds of products before oneDNN was tried
    int calls = 0;        // since it is
    int64_t of_aten = 0;  // least nanoseconds of a call; 0: none was timed
    int64_t of_onednn = 0;
  };

  // Who computes a product, and what to tell the time to that it takes, if anything: it belongs to
  // the choice and stays as long.
  struct Call {
    bool onednn = false;
    Trial* timed_for = nullptr;
    bool is_settled = false;  // calls like it are done so from now on
  };
  Call next(const ProductShape& shape);
  void took(const Call& call, int64_t nanoseconds);

 private:
  void end_wait(Trial& trial);

  struct Hash {
    size_t operator()(const ProductShape& shape) const;
  };
  std::unordered_map<ProductShape, Trial, Hash> trials_;
  int64_t tried_ = 0;  // shapes that oneDNN made code for
};

}  // namespace torch_lazy
