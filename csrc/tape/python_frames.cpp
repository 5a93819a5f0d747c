// Reads this thread's Python frames directly, since taking the GIL for each operation would cost
// more than recording it, and could deadlock or reorder threads.
//
// What makes this safe: a frame stack is changed only by its own thread, and that thread is here.
// Frames own their code objects, code objects own their names and line table, all of which are
// immutable. Nothing here allocates or counts references on Python objects, and no code object is
// looked at once its frame may have ended: what tells its lines is copied when it is first met.

#include <Python.h>
// After Python.h: only the one internal header is wanted.
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
#define TORCH_LAZY_READS_FRAMES 1
#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <internal/pycore_frame.h>
#else
#define TORCH_LAZY_READS_FRAMES 0
#include <frameobject.h>
#endif

#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "tape/python_frames.h"

namespace torch_lazy {
namespace {

// ---- Library code -------------------------------------------------------------------------------

// Leaked on purpose: threads may still record while static objects are destroyed.
struct Library {
  ForkSafeMutex mutex{
      LockOrder::kLeaf};  // guards `prefixes`; nothing that could take the GIL runs under it
  std::vector<std::string> prefixes;
  // Changes with the prefixes; what threads know of code by an older generation is dropped.
  std::atomic<uint32_t> generation{1};
};

Library& library() {
  static Library* const instance = new Library;
  return *instance;
}

// Made when the library is loaded: what is made during a fork is not covered by it.
[[maybe_unused]] Library& python_frames_made_at_load = library();

bool starts_with_directory(std::string_view file, std::string_view directory) {
  return !directory.empty() && file.size() > directory.size() && file.starts_with(directory) &&
         (file[directory.size()] == '/' || directory.back() == '/');
}

bool is_library_file(std::string_view file) {
  // Interpreter shims have no file; frozen modules and fx's generated code have no line a user
  // wrote.
  if (file.empty() || file == "<shim>" || file.starts_with("<frozen ") ||
      file.starts_with("<eval_with_key>")) {
    return true;
  }
  if (file.find("/site-packages/") != std::string_view::npos ||
      file.find("/dist-packages/") != std::string_view::npos) {
    return true;
  }
  Library& all = library();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const std::string& prefix : all.prefixes) {
    if (starts_with_directory(file, prefix)) return true;
  }
  return false;
}

// ---- Python objects, read without the GIL -------------------------------------------------------

void append_utf8(std::string& out, Py_UCS4 c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

// Not PyUnicode_AsUTF8: it would cache the result in the object, which needs the GIL.
std::string utf8(PyObject* text) {
  std::string out;
  if (text == nullptr || !PyUnicode_Check(text) || !PyUnicode_IS_COMPACT(text)) return out;
  const Py_ssize_t length = PyUnicode_GET_LENGTH(text);
  if (PyUnicode_IS_ASCII(text)) {
    out.assign(reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), length);
    return out;
  }
  const int kind = PyUnicode_KIND(text);
  const void* data = PyUnicode_DATA(text);
  out.reserve(static_cast<size_t>(length));
  for (Py_ssize_t i = 0; i < length; ++i) append_utf8(out, PyUnicode_READ(kind, data, i));
  return out;
}

CodeLines lines_of(const PyCodeObject* code) {
#if TORCH_LAZY_READS_FRAMES
  PyObject* const table = code->co_linetable;
  return {utf8(code->co_filename), utf8(code->co_qualname), code->co_firstlineno,
          std::string(PyBytes_AS_STRING(table), PyBytes_GET_SIZE(table))};
#else
  return {utf8(code->co_filename), utf8(code->co_name), code->co_firstlineno, ""};
#endif
}

// ---- What a thread knows of code objects --------------------------------------------------------

// A code object's address is used again once it was freed, and so are those of its parts when code
// is generated and compiled in a loop. Code that is alike in all that is compared here is mistaken
// for the older one; that costs a wrong line in a message.
struct CodeKey {
  const PyCodeObject* code = nullptr;
  const void* file_name = nullptr;
  const void* line_table = nullptr;
  int first_line = 0;

  bool operator==(const CodeKey&) const = default;
};

CodeKey key_of(const PyCodeObject* code) {
  return {code, code->co_filename, code->co_linetable, code->co_firstlineno};
}

// The last eight bytes of the file name, where generated code has its number, with what else
// differs between two code objects at one address. Left out of the key, as it is read of the one
// frame that is recorded, not of each frame passed: library code is hardly ever freed.
uint64_t stamp_of(const PyCodeObject* code) {
  PyObject* const name = code->co_filename;
  uint64_t stamp = 0;
  if (PyUnicode_IS_COMPACT(name)) {
    const size_t bytes =
        static_cast<size_t>(PyUnicode_GET_LENGTH(name)) * static_cast<size_t>(PyUnicode_KIND(name));
    const char* const data = static_cast<const char*>(PyUnicode_DATA(name));
    if (bytes >= sizeof stamp) std::memcpy(&stamp, data + bytes - sizeof stamp, sizeof stamp);
    stamp += bytes << 32;
  }
  stamp += static_cast<uint64_t>(PyBytes_GET_SIZE(code->co_linetable)) << 16;
#if PY_VERSION_HEX >= 0x030C0000
  stamp += code->co_version;
#else
  stamp += static_cast<uint64_t>(Py_SIZE(code));
#endif
  return stamp * 0x9E3779B97F4A7C15ull;
}

// Open addressing with a short probe. The code that runs has to stay in it, whatever code has run
// before: what is pushed out is copied and looked up each time it runs. So a full neighbourhood
// makes the table grow, and a program that keeps much generated code fills the largest one until
// all is forgotten.
class CodeCache {
 public:
  explicit CodeCache(uint32_t generation) : generation_(generation), slots_(kFirstSlots) {}

  // Whether it is still right about what is library code.
  bool valid() const { return generation_ == library().generation.load(std::memory_order_relaxed); }

  struct alignas(64) Slot {
    CodeKey key;
    uint64_t stamp = 0;
    uint32_t number = 0;  // see remember_code(); 0 before an operation was recorded there
    bool library = false;
  };

  // The reference is valid until the next call.
  Slot& at(const PyCodeObject* code) {
    const CodeKey key = key_of(code);
    Slot* const slot = find(code);
    if (slot && slot->key == key) [[likely]]
      return *slot;
    return add(slot, key);
  }

  // The number of the code object that the slot is of.
  static uint32_t number_of(Slot& slot) {
    const uint64_t stamp = stamp_of(slot.key.code);
    if (slot.stamp == stamp && is_remembered(slot.number)) [[likely]]
      return slot.number;
    slot.number = remember_code(lines_of(slot.key.code));
    slot.stamp = stamp;
    return slot.number;
  }

 private:
  // Powers of two; the largest table takes a megabyte of each thread that has met so much code.
  static constexpr size_t kFirstSlots = 1024, kMostSlots = 16384, kProbes = 8;

  // The slot of the code at that address, which may be of older code there, or a free one for it,
  // or null where its neighbourhood is full.
  Slot* find(const PyCodeObject* code) {
    const size_t home = (reinterpret_cast<uintptr_t>(code) >> 4) * 0x9E3779B97F4A7C15ull >> 32;
    for (size_t i = 0; i < kProbes; ++i) {
      Slot& slot = slots_[(home + i) & (slots_.size() - 1)];
      if (slot.key.code == code || !slot.key.code) return &slot;
    }
    return nullptr;
  }

  [[gnu::noinline]] Slot& add(Slot* slot, const CodeKey& key) {
    while (!slot) {
      grow();
      slot = find(key.code);
    }
    *slot = {key, 0, 0, is_library_file(utf8(key.code->co_filename))};
    return *slot;
  }

  // Doubles the table, or empties the largest. What finds no place in a doubled one is forgotten.
  void grow() {
    const std::vector<Slot> before = std::exchange(slots_, {});
    if (before.size() == kMostSlots) {
      slots_.resize(kMostSlots);
      return;
    }
    slots_.resize(2 * before.size());
    for (const Slot& known : before)
      if (Slot* const slot = known.key.code ? find(known.key.code) : nullptr) *slot = known;
  }

  const uint32_t generation_;
  std::vector<Slot> slots_;
};

// A bare pointer, since a thread_local with a destructor pays for a guard at each access. The
// initial-exec model saves a call of __tls_get_addr; glibc keeps room for such variables in
// libraries loaded late, as long as they are as small as a pointer.
#if defined(__GLIBC__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local CodeCache* thread_cache = nullptr;

struct CacheOwner {
  bool armed = true;
  ~CacheOwner() {
    delete thread_cache;
    thread_cache = nullptr;
  }
};

// A cache made while the thread's other destructors run, after the owner's, is leaked.
[[gnu::noinline]] CodeCache& fresh_cache() {
  thread_local CacheOwner owner;
  owner.armed = true;  // a use, so that it is constructed
  delete thread_cache;
  thread_cache = new CodeCache(library().generation.load(std::memory_order_acquire));
  return *thread_cache;
}

CodeCache& current_cache() {
  CodeCache* const cache = thread_cache;
  return cache != nullptr && cache->valid() ? *cache : fresh_cache();
}

#if TORCH_LAZY_READS_FRAMES

// ---- Frames -------------------------------------------------------------------------------------

using Frame = _PyInterpreterFrame;

const Frame* innermost_frame(const PyThreadState* thread) {
#if PY_VERSION_HEX < 0x030D0000
  return thread->cframe->current_frame;
#else
  return thread->current_frame;
#endif
}

// Null for the frames that the interpreter puts between two of its own activations.
PyCodeObject* code_of(const Frame* frame) {
#if PY_VERSION_HEX < 0x030C0000
  return frame->f_code;
#elif PY_VERSION_HEX < 0x030D0000
  return frame->owner == FRAME_OWNED_BY_CSTACK ? nullptr : frame->f_code;
#else
  if (frame->owner == FRAME_OWNED_BY_CSTACK || !PyCode_Check(frame->f_executable)) return nullptr;
  return reinterpret_cast<PyCodeObject*>(frame->f_executable);
#endif
}

// In bytes.
int instruction_offset(const Frame* frame, PyCodeObject* code) {
#if PY_VERSION_HEX < 0x030D0000
  const _Py_CODEUNIT* const at = frame->prev_instr;
#else
  const _Py_CODEUNIT* const at = frame->instr_ptr;
#endif
  return static_cast<int>((at - _PyCode_CODE(code)) * static_cast<int>(sizeof(_Py_CODEUNIT)));
}

#endif  // TORCH_LAZY_READS_FRAMES

}  // namespace

#if TORCH_LAZY_READS_FRAMES

LocationId current_location() {
  const PyThreadState* const thread = PyGILState_GetThisThreadState();
  if (thread == nullptr) return kNoLocation;
  CodeCache& cache = current_cache();
  const Frame* found = nullptr;
  CodeCache::Slot* slot = nullptr;
  for (const Frame* frame = innermost_frame(thread); frame != nullptr; frame = frame->previous) {
    const PyCodeObject* const code = code_of(frame);
    if (code == nullptr) continue;
    found = frame;
    slot = &cache.at(code);
    if (!slot->library) break;
  }
  if (found == nullptr) return kNoLocation;
  return make_location(CodeCache::number_of(*slot), instruction_offset(found, code_of(found)));
}

#else

// Unknown interpreter layout: the public API, which needs the GIL and makes frame objects.
LocationId current_location() {
  if (PyGILState_GetThisThreadState() == nullptr) return kNoLocation;
  const PyGILState_STATE gil = PyGILState_Ensure();
  CodeCache& cache = current_cache();
  LocationId found = kNoLocation;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    CodeCache::Slot& slot = cache.at(code);
    PyFrameObject* const outer = slot.library ? PyFrame_GetBack(frame) : nullptr;
    // Without a line table the offset is the line.
    if (outer == nullptr)
      found = make_location(CodeCache::number_of(slot), PyFrame_GetLineNumber(frame));
    Py_DECREF(code);
    Py_DECREF(frame);
    frame = outer;
  }
  PyGILState_Release(gil);
  return found;
}

#endif

void set_library_prefixes(std::vector<std::string> prefixes) {
  Library& all = library();
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.prefixes = std::move(prefixes);
  }
  all.generation.fetch_add(1, std::memory_order_release);
}

}  // namespace torch_lazy
