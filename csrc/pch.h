// The precompiled header, included before every source by the build (CMakeLists.txt).
//
// It only saves time: every file includes what it uses and compiles without it
// (-DTORCH_LAZY_PCH=OFF -DCMAKE_UNITY_BUILD=OFF). Each source pays for reading what is here: 2.7
// s, 3.8 s with TorchScript's IR, which the half of the sources that need it would pay 5 s for
// instead. Never <torch/torch.h> or <ATen/ATen.h>: all of ATen in every source.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
