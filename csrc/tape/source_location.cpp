#include "tape/source_location.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/fork.h"
#include "tape/line_table.h"

namespace torch_lazy {
namespace {

using Code = std::shared_ptr<const CodeLines>;

size_t bytes_of(const CodeLines& code) {
  return sizeof code + code.file.size() + code.function.size() + code.line_table.size();
}

size_t hash_of(const CodeLines& code) {
  return c10::get_hash(code.file, code.function, code.first_line, code.line_table);
}

class CodeTable {
 public:
  uint32_t add(CodeLines code) {
    const size_t hash = hash_of(code);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = numbers_.find(hash);
    if (known != numbers_.end() && *latest_[known->second - first()] == code) return known->second;
    bytes_ += bytes_of(code);
    latest_.push_back(std::make_shared<const CodeLines>(std::move(code)));
    const uint32_t number = first() + static_cast<uint32_t>(latest_.size() - 1);
    numbers_[hash] = number;
    while (latest_.size() > kMostCodes || (bytes_ > kMostCodeBytes && latest_.size() > 1))
      forget_oldest();
    return number;
  }

  uint32_t first() const { return first_.load(std::memory_order_relaxed); }

  // Null where it is not remembered.
  Code find(uint32_t number) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (number - first() < latest_.size()) return latest_[number - first()];
    const auto kept = kept_.find(number);
    return kept != kept_.end() ? kept->second.lock() : nullptr;
  }

  Code keep(uint32_t number) {
    Code code = find(number);
    if (!code) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kept_.size() >= next_sweep_) {
      for (auto next = kept_.begin(); next != kept_.end();)
        next = next->second.expired() ? kept_.erase(next) : std::next(next);
      next_sweep_ = std::max(kMostCodes, 2 * kept_.size());
    }
    kept_[number] = code;
    return code;
  }

 private:
  void forget_oldest() {
    const auto known = numbers_.find(hash_of(*latest_.front()));
    if (known != numbers_.end() && known->second == first()) numbers_.erase(known);
    bytes_ -= bytes_of(*latest_.front());
    latest_.pop_front();
    first_.fetch_add(1, std::memory_order_relaxed);
  }

  mutable ForkSafeMutex mutex_{
      LockOrder::kLeaf};            // guards all fields; `first_` may be read without it
  std::atomic<uint32_t> first_{1};  // the number of the first of `latest_`; 0 is no code object
  std::deque<Code> latest_;         // numbered one after the other
  std::unordered_map<size_t, uint32_t> numbers_;  // of `latest_`, by hash; of two alike the later
  size_t bytes_ = 0;                              // of `latest_`
  std::unordered_map<uint32_t, std::weak_ptr<const CodeLines>> kept_;
  size_t next_sweep_ = kMostCodes;  // how many are kept when those that nobody holds are dropped
};

// Leaked on purpose: threads may still record while static objects are destroyed.
CodeTable& table() {
  static CodeTable* const instance = new CodeTable;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] CodeTable& source_location_made_at_load = table();

uint32_t code_of(LocationId id) {
  return static_cast<uint32_t>(id >> 32);
}

}  // namespace

uint32_t remember_code(CodeLines code) {
  return table().add(std::move(code));
}

bool is_remembered(uint32_t code) {
  return code >= table().first();
}

std::shared_ptr<const CodeLines> keep_location(LocationId id) {
  return id != kNoLocation ? table().keep(code_of(id)) : nullptr;
}

SourceLocation location(LocationId id) {
  const Code code = id != kNoLocation ? table().find(code_of(id)) : nullptr;
  if (code == nullptr) return {"<unknown>", 0, -1, ""};
  const int offset = static_cast<int>(static_cast<uint32_t>(id));
  if (code->line_table.empty()) return {code->file, offset, -1, code->function};
  const LineAndColumn where = line_at(code->line_table, code->first_line, offset);
  return {code->file, where.line, where.column, code->function};
}

std::string to_string(LocationId id) {
  const SourceLocation where = location(id);
  if (where.line == 0) return where.file;
  std::string out = where.file + ':' + std::to_string(where.line);
  if (where.column >= 0) out += ':' + std::to_string(where.column);
  return out;
}

}  // namespace torch_lazy
