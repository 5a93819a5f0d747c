#include "tape/line_table.h"

#include <cstddef>

namespace torch_lazy {
namespace {

// The format is described in CPython's Objects/locations.md.
class EntryReader {
 public:
  explicit EntryReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return next_ >= bytes_.size(); }
  int byte() { return at_end() ? 0 : static_cast<unsigned char>(bytes_[next_++]); }
  // Six bits a byte, the lowest first; the seventh tells that more follow.
  unsigned number() {
    constexpr int kMore = 64;
    unsigned value = 0;
    for (int shift = 0; shift < 32; shift += 6) {
      const int next = byte();
      value |= static_cast<unsigned>(next & (kMore - 1)) << shift;
      if ((next & kMore) == 0) break;
    }
    return value;
  }
  int signed_number() {
    const unsigned value = number();
    const int magnitude = static_cast<int>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
  }

 private:
  std::string_view bytes_;
  size_t next_ = 0;
};

}  // namespace

LineAndColumn line_at(std::string_view line_table, int first_line, int offset) {
  constexpr int kBytesOfUnit = 2;
  // Below kOneLine: a short form, columns only.
  constexpr int kOneLine = 10, kNoColumns = 13, kLong = 14, kNoLine = 15;
  EntryReader table(line_table);
  int line = first_line, end = 0;
  while (offset >= 0 && !table.at_end()) {
    const int head = table.byte();
    const int form = head >> 3 & 15;
    int column = -1;
    if (form < kOneLine) {
      column = form << 3 | (table.byte() >> 4 & 7);
    } else if (form < kNoColumns) {
      line += form - kOneLine;
      column = table.byte();
      table.byte();  // the end column
    } else if (form == kNoColumns) {
      line += table.signed_number();
    } else if (form == kLong) {
      line += table.signed_number();
      table.number();  // lines to the end
      column = static_cast<int>(table.number()) - 1;
      table.number();  // the end column
    }
    end += ((head & 7) + 1) * kBytesOfUnit;
    if (offset < end && form != kNoLine) return {line, column};
    if (offset < end) break;
  }
  return {first_line, -1};
}

}  // namespace torch_lazy
