// Who last read and wrote a byte, and whether two accesses race: different threads, one writes, and
// no barrier lies between.
#pragma once

#include <cstdint>

namespace torch_lazy::simt {

// One of the launch's threads at the moment. Time passes at barriers: all that a block did before
// its last barrier has a smaller time than `block_time`, all that a warp did before its lanes last
// met a smaller one than `warp_time`.
struct Accessor {
  uint32_t block = 0;   // of the grid, counted from 1
  uint32_t thread = 0;  // of the block
  uint32_t now = 0;
  uint32_t block_time = 0;
  uint32_t warp_time = 0;
};

struct ByteAccesses {
  // The block that reads or writes, 0 where none has; of the other fields the last access's.
  uint32_t write_block = 0, read_block = 0;
  uint32_t write_time = 0, read_time = 0;
  uint32_t write_site = 0, read_site = 0;
  // The thread, with the flags below.
  uint16_t write_thread = 0, read_thread = 0;

  static constexpr uint16_t kThread = 0x03ff;
  static constexpr uint16_t kAtomic = 0x8000;
  static constexpr uint16_t kManyOfWarp = 0x4000;  // and others of its warp
  static constexpr uint16_t kMany = 0x2000;        // and others of the block
  static constexpr uint32_t kManyBlocks = ~0u;
};

// Whether an access of the same block happened before all that `who` does now.
inline bool is_ordered(uint16_t thread, uint32_t time, const Accessor& who) {
  if (time < who.block_time) return true;
  if ((thread & ByteAccesses::kMany) != 0) return false;
  const uint32_t other = thread & ByteAccesses::kThread;
  if (other / 32 == who.thread / 32 && time < who.warp_time) return true;
  return (thread & ByteAccesses::kManyOfWarp) == 0 && other == who.thread;
}

// With what the byte knows of writes. Atomic changes do not race with one another.
inline bool races_with_write(const ByteAccesses& byte, const Accessor& who, bool atomic) {
  if (byte.write_block == 0) return false;
  if (byte.write_block == who.block && is_ordered(byte.write_thread, byte.write_time, who)) {
    return false;
  }
  return !atomic || (byte.write_thread & ByteAccesses::kAtomic) == 0;
}

inline bool races_with_read(const ByteAccesses& byte, const Accessor& who) {
  if (byte.read_block == 0) return false;
  return byte.read_block != who.block || !is_ordered(byte.read_thread, byte.read_time, who);
}

inline void enter_read(ByteAccesses& byte, const Accessor& who, uint32_t site) {
  auto thread = static_cast<uint16_t>(who.thread);
  const bool same_block = byte.read_block == who.block;
  if (same_block && !is_ordered(byte.read_thread, byte.read_time, who)) {
    const bool same_warp = (byte.read_thread & ByteAccesses::kThread) / 32 == thread / 32 &&
                           (byte.read_thread & ByteAccesses::kMany) == 0;
    thread |= same_warp ? ByteAccesses::kManyOfWarp : ByteAccesses::kMany;
  }
  byte.read_block = byte.read_block == 0 || same_block ? who.block : ByteAccesses::kManyBlocks;
  byte.read_thread = thread;
  byte.read_time = who.now;
  byte.read_site = site;
}

// An atomic change is entered as a write only.
inline void enter_write(ByteAccesses& byte, const Accessor& who, uint32_t site, bool atomic) {
  byte.write_block = who.block;
  byte.write_thread = static_cast<uint16_t>(who.thread | (atomic ? ByteAccesses::kAtomic : 0));
  byte.write_time = who.now;
  byte.write_site = site;
}

}  // namespace torch_lazy::simt
