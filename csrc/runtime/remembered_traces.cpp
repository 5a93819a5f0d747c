#include "runtime/remembered_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/processor_name.h"
#include "base/config.h"
#include "base/fork.h"
#include "runtime/compile_queue.h"
#include "runtime/disk_store.h"
#include "runtime/trace_cache.h"

namespace torch_lazy {
namespace {

constexpr const char* kTraceFormat = "traces 1";

// Of one backend and build: some hundred kilobytes, which every process reads.
constexpr size_t kMostTraces = 4096, kMostWords = size_t{1} << 17;

// A trace as words: its hash, the count of its dynamic scalars below its runs, the nanoseconds, and
// the dynamic scalars.
constexpr size_t kHeadWords = 4;
// More tell no more.
constexpr int64_t kMostRuns = 1'000'000;
constexpr std::chrono::seconds kLongestRecording{60};

// A few builds and backends.
constinit DiskStore trace_store{"traces", int64_t{16} << 20};

std::string key_of(const std::string& backend) {
  return fmt::format("{}\n{}\n{} on {}", kTraceFormat, this_build(), backend, processor_name());
}

RememberedTracesInOrder read(const std::string& backend) {
  DiskCache* const kept = trace_store.get();
  const std::optional<std::string> bytes = kept ? kept->get(key_of(backend)) : std::nullopt;
  return bytes ? remembered_from_bytes(*bytes) : RememberedTracesInOrder();
}

// What earlier processes left. Global, as what is on disk.
struct Recalled {
  ForkSafeMutex mutex{LockOrder::kLeaf};  // guards what is below
  std::optional<std::string> backend;     // by which they ran
  RememberedTraces traces;
};

Recalled& recalled() {
  static auto* const instance = new Recalled;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Recalled& remembered_traces_made_at_load = recalled();

// But for what a later process does not mind: their order, and how often exactly a trace ran. Then
// nothing is written: a script that is run again adds nothing, in many processes it may be.
bool tell_the_same(const RememberedTracesInOrder& now, const RememberedTracesInOrder& before) {
  const RememberedTraces known(before.begin(), before.end());
  return now.size() == before.size() && std::ranges::all_of(now, [&](const auto& trace) {
           const auto found = known.find(trace.first);
           return found != known.end() &&
                  found->second.dynamic_scalars == trace.second.dynamic_scalars &&
                  4 * trace.second.runs >= 3 * found->second.runs &&
                  trace.second.runs <= 2 * found->second.runs;
         });
}

class RememberJob final : public CompileJob {
 public:
  void compile() override { remember_traces(Until::kNow); }
};

}  // namespace

void recall_traces() {
  if (!config().remember_traces || config().defer == Defer::kNever) return;
  const std::string backend = backend_name();
  {
    const std::lock_guard<std::mutex> lock(recalled().mutex);
    if (recalled().backend == backend) return;
  }
  const RememberedTracesInOrder kept = read(backend);
  const std::lock_guard<std::mutex> lock(recalled().mutex);
  recalled().backend = backend;
  recalled().traces = {kept.begin(), kept.end()};
}

std::optional<RememberedTrace> remembered_trace(const Tape::Hash& structure) {
  if (!config().remember_traces) return std::nullopt;
  const std::lock_guard<std::mutex> lock(recalled().mutex);
  const auto found = recalled().traces.find(structure);
  return found == recalled().traces.end() ? std::nullopt : std::optional(found->second);
}

void remember_traces(Until until) noexcept {
  if (!config().remember_traces) return;
  try {
    const std::string backend = backend_name();
    const RememberedTraces now = traces_to_remember(kLeastRunsToRemember);
    if (now.empty()) return;
    DiskCache* const kept = trace_store.get();
    if (!kept) return;
    RememberedTraces before;
    {
      const std::lock_guard<std::mutex> lock(recalled().mutex);
      if (recalled().backend == backend) before = recalled().traces;
    }
    const RememberedTracesInOrder on_disk = read(backend);
    const RememberedTracesInOrder after = remembered_after(now, before, on_disk, until);
    if (!tell_the_same(after, on_disk)) kept->put(key_of(backend), to_bytes(after));
  } catch (const std::exception&) {
    // Out of memory: the next process learns them again.
  }
}

void ask_to_remember_traces() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPause{10};
  static std::atomic<Clock::rep> next{0};
  if (!config().remember_traces) return;
  const Clock::time_point now = Clock::now();
  Clock::rep due = next.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < due) return;
  if (next.compare_exchange_strong(due, (now + kPause).time_since_epoch().count()))
    enqueue_compile(std::make_shared<RememberJob>());
}

RememberedTracesInOrder remembered_after(const RememberedTraces& now,
                                         const RememberedTraces& recalled,
                                         const RememberedTracesInOrder& kept, Until until) {
  const RememberedTraces kept_now(kept.begin(), kept.end());
  std::vector<std::pair<Tape::Hash, RememberedTrace>> all;
  for (const auto& [structure, ran] : now) {
    RememberedTrace trace = ran;
    const auto before = recalled.find(structure);
    const auto others = kept_now.find(structure);
    const int64_t runs_before = before == recalled.end() ? 0 : before->second.runs;
    if (runs_before > 0) trace.recorded = std::min(trace.recorded, before->second.recorded);
    trace.runs = std::max(trace.runs, until == Until::kTheEnd ? runs_before / 2 : runs_before);
    // Another process has kept it meanwhile.
    if (others != kept_now.end() && others->second.runs > runs_before)
      trace.runs = std::max(trace.runs, others->second.runs);
    if (trace.runs >= kLeastRunsToRemember) all.emplace_back(structure, std::move(trace));
  }
  std::ranges::sort(all, std::greater(), [](const auto& trace) { return trace.second.runs; });
  for (const auto& trace : kept)
    if (!now.contains(trace.first)) all.emplace_back(trace);
  RememberedTracesInOrder bounded;
  size_t words = 0;
  for (auto& trace : all) {
    words += kHeadWords + trace.second.dynamic_scalars.size();
    if (words > kMostWords || bounded.size() == kMostTraces) break;
    bounded.emplace_back(std::move(trace));
  }
  return bounded;
}

std::string to_bytes(const RememberedTracesInOrder& traces) {
  std::vector<uint64_t> words;
  for (const auto& [structure, trace] : traces) {
    words.push_back(structure.low);
    words.push_back(structure.high);
    words.push_back(uint64_t(std::min(trace.runs, kMostRuns)) << 32 | trace.dynamic_scalars.size());
    words.push_back(uint64_t(trace.recorded.count()));
    for (const auto& [word, first] : trace.dynamic_scalars)
      words.push_back(uint64_t(word) << 32 | first);
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)};
}

RememberedTracesInOrder remembered_from_bytes(std::string_view bytes) {
  std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint64_t));
  RememberedTracesInOrder traces;
  size_t at = 0;
  while (at + kHeadWords <= words.size()) {
    const size_t end = at + kHeadWords + (words[at + 2] & UINT32_MAX);
    if (end > words.size()) break;
    RememberedTrace trace;
    trace.runs = std::min(int64_t(words[at + 2] >> 32), kMostRuns);
    trace.recorded = std::min<std::chrono::nanoseconds>(
        std::chrono::nanoseconds(int64_t(words[at + 3] & INT64_MAX)), kLongestRecording);
    for (size_t word = at + kHeadWords; word < end; ++word)
      trace.dynamic_scalars.push_back({uint32_t(words[word] >> 32), uint32_t(words[word])});
    traces.emplace_back(Tape::Hash{words[at], words[at + 1]}, std::move(trace));
    at = end;
  }
  if (at * sizeof(uint64_t) != bytes.size()) return {};
  return traces;
}

}  // namespace torch_lazy
