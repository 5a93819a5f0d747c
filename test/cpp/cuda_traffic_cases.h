// What CudaTraffic.Table looks at: windows, and how well their kernels have to use memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tape_builder.h"

namespace torch_lazy::tests {

// What the kernels of a case may come to at most.
struct TrafficBounds {
  double loads = 1.05, stores = 1.05;  // sectors touched / needed
  double read = 1.02;                  // bytes read / different
  bool wide = true;                    // memory is accessed by 16 bytes a thread
  size_t launches = 2;
};

struct TrafficCase {
  std::string name;
  std::function<TapeBuilder::Handles(TapeBuilder&)> record;  // returns what is kept
  TrafficBounds bounds = {};
};

const std::vector<TrafficCase>& traffic_cases();

}  // namespace torch_lazy::tests
