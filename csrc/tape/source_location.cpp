// Reads this thread's Python frames directly, since taking the GIL for each operation would cost
// more than recording it, and could deadlock or reorder threads.
//
// What makes this safe: a frame stack is changed only by its own thread, and that thread is here.
// Frames own their code objects, code objects own their file name and line table, all of which are
// immutable. Nothing here allocates or counts references on Python objects.

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
#endif

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tape/source_location.h"

namespace torch_lazy {
namespace {

uint64_t mix(uint64_t x) {
  x *= 0x9E3779B97F4A7C15ull;
  return x ^ (x >> 32);
}

// ---- Global table -------------------------------------------------------------------------------

// Leaked on purpose: threads may still record while static objects are destroyed.
struct Table {
  // Guards everything below. Nothing that could take the GIL runs under it.
  std::mutex mutex;
  std::deque<SourceLocation> entries{SourceLocation{"<unknown>", 0, -1, ""}};
  std::unordered_map<std::string, LocationId> ids;  // file, line, column and function in one string
  std::vector<std::string> library_prefixes;
};

Table& table() {
  static Table* instance = new Table;
  return *instance;
}

// Bumped when the library prefixes change; per-thread caches of an older generation are dropped.
std::atomic<uint32_t> cache_generation{1};

LocationId intern(SourceLocation where) {
  std::string key = where.file + '\0' + std::to_string(where.line) + ':' +
                    std::to_string(where.column) + '\0' + where.function;
  Table& all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto [entry, inserted] = all.ids.try_emplace(std::move(key), kNoLocation);
  if (inserted) {
    entry->second = static_cast<LocationId>(all.entries.size());
    all.entries.push_back(std::move(where));
  }
  return entry->second;
}

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
  Table& all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  for (const std::string& prefix : all.library_prefixes) {
    if (starts_with_directory(file, prefix)) return true;
  }
  return false;
}

#if TORCH_LAZY_READS_FRAMES

// ---- Python objects, read without the GIL
// ---------------------------------------------------------

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

// Length and last eight bytes. A freed code object's address, file name address and first
// line are all reused when generated code is compiled in a loop; the names' tails then differ.
uint64_t stamp_of(PyObject* file_name) {
  if (!PyUnicode_IS_COMPACT(file_name)) return 0;
  const size_t bytes = static_cast<size_t>(PyUnicode_GET_LENGTH(file_name)) *
                       static_cast<size_t>(PyUnicode_KIND(file_name));
  // In a name shorter than eight bytes this reads part of the header before it: still in the
  // object.
  uint64_t tail;
  std::memcpy(&tail, static_cast<const char*>(PyUnicode_DATA(file_name)) + bytes - sizeof(tail),
              sizeof(tail));
  return tail + bytes * 0x9E3779B97F4A7C15ull;
}

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

// In bytes, as PyCode_Addr2Location wants it.
int instruction_offset(const Frame* frame, PyCodeObject* code) {
#if PY_VERSION_HEX < 0x030D0000
  return static_cast<int>(frame->prev_instr - _PyCode_CODE(code)) *
         static_cast<int>(sizeof(_Py_CODEUNIT));
#else
  return static_cast<int>(frame->instr_ptr - _PyCode_CODE(code)) *
         static_cast<int>(sizeof(_Py_CODEUNIT));
#endif
}

LocationId resolve(PyCodeObject* code, int offset) {
  SourceLocation where;
  where.file = utf8(code->co_filename);
  where.function = utf8(code->co_qualname);
  int end_line = 0, end_column = 0;
  where.line = code->co_firstlineno;
  if (offset >= 0) {
    // Decodes the immutable line table; allocates nothing and touches no reference count.
    int line = -1, column = -1;
    PyCode_Addr2Location(code, offset, &line, &column, &end_line, &end_column);
    if (line > 0) {
      where.line = line;
      where.column = column;
    }
  }
  return intern(std::move(where));
}

// ---- Per-thread caches --------------------------------------------------------------------------

struct CodeKey {
  const void* code = nullptr;
  const void* file_name = nullptr;
  int first_line = 0;

  bool operator==(const CodeKey&) const = default;
};

CodeKey key_of(const PyCodeObject* code) {
  return {code, code->co_filename, code->co_firstlineno};
}

// Open addressing with a short probe; a full neighbourhood overwrites its home slot, so that
// a program that keeps compiling code cannot make the cache grow.
struct Cache {
  static constexpr size_t kCodes = 2048;
  static constexpr size_t kLocations = 4096;
  static constexpr size_t kProbes = 4;

  struct Code {
    CodeKey key;
    bool library = false;
  };
  struct Location {
    CodeKey key;
    int offset = 0;
    uint64_t stamp = 0;
    LocationId id = kNoLocation;
  };

  uint32_t generation = 0;
  std::array<Code, kCodes> codes{};
  std::array<Location, kLocations> locations{};

  // Goes without the stamp: library code is hardly ever freed, and this runs for each frame passed.
  bool is_library(const CodeKey& key) {
    const size_t home = mix(reinterpret_cast<uintptr_t>(key.code) >> 4);
    Code* free_slot = nullptr;
    for (size_t i = 0; i < kProbes; ++i) {
      Code& slot = codes[(home + i) % kCodes];
      if (slot.key == key) [[likely]]
        return slot.library;
      if (slot.key.code == nullptr && free_slot == nullptr) free_slot = &slot;
    }
    Code& slot = free_slot != nullptr ? *free_slot : codes[home % kCodes];
    slot.library = is_library_file(utf8(static_cast<const PyCodeObject*>(key.code)->co_filename));
    slot.key = key;
    return slot.library;
  }

  LocationId id_of(const CodeKey& key, int offset) {
    auto* code = static_cast<PyCodeObject*>(const_cast<void*>(key.code));
    const uint64_t stamp = stamp_of(code->co_filename);
    const size_t home =
        mix((reinterpret_cast<uintptr_t>(key.code) >> 4) * 31 + static_cast<size_t>(offset));
    Location* free_slot = nullptr;
    for (size_t i = 0; i < kProbes; ++i) {
      Location& slot = locations[(home + i) % kLocations];
      if (slot.key == key && slot.offset == offset && slot.stamp == stamp) [[likely]] {
        return slot.id;
      }
      if (slot.key.code == nullptr && free_slot == nullptr) free_slot = &slot;
    }
    Location& slot = free_slot != nullptr ? *free_slot : locations[home % kLocations];
    slot.id = resolve(code, offset);
    slot.key = key;
    slot.offset = offset;
    slot.stamp = stamp;
    return slot.id;
  }
};

// A bare pointer, since a thread_local with a destructor pays for a guard at each access. The
// initial-exec model saves a call of __tls_get_addr; glibc keeps room for such variables in
// libraries loaded late, as long as they are as small as a pointer.
#if defined(__GLIBC__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local Cache* thread_cache = nullptr;

struct CacheOwner {
  bool armed = true;
  ~CacheOwner() {
    delete thread_cache;
    thread_cache = nullptr;
  }
};

// A cache made while the thread's other destructors run, after the owner's, is leaked.
[[gnu::noinline]] Cache& fresh_cache() {
  thread_local CacheOwner owner;
  owner.armed = true;  // a use, so that it is constructed
  delete thread_cache;
  thread_cache = new Cache;
  thread_cache->generation = cache_generation.load(std::memory_order_acquire);
  return *thread_cache;
}

Cache& current_cache() {
  Cache* cache = thread_cache;
  if (cache != nullptr && cache->generation == cache_generation.load(std::memory_order_relaxed))
      [[likely]] {
    return *cache;
  }
  return fresh_cache();
}

#endif  // TORCH_LAZY_READS_FRAMES

}  // namespace

#if TORCH_LAZY_READS_FRAMES

LocationId current_location() {
  PyThreadState* thread = PyGILState_GetThisThreadState();
  if (thread == nullptr) return kNoLocation;
  Cache& cache = current_cache();
  const Frame* outermost = nullptr;
  for (const Frame* frame = innermost_frame(thread); frame != nullptr; frame = frame->previous) {
    PyCodeObject* code = code_of(frame);
    if (code == nullptr) continue;
    const CodeKey key = key_of(code);
    if (!cache.is_library(key)) return cache.id_of(key, instruction_offset(frame, code));
    outermost = frame;
  }
  if (outermost == nullptr) return kNoLocation;
  PyCodeObject* code = code_of(outermost);
  return cache.id_of(key_of(code), instruction_offset(outermost, code));
}

uint64_t call_path() {
  const PyThreadState* thread = PyGILState_GetThisThreadState();
  if (thread == nullptr) return 0;
  uint64_t path = 0;
  for (const Frame* frame = innermost_frame(thread); frame != nullptr; frame = frame->previous)
    if (PyCodeObject* code = code_of(frame))
      path = mix(path + stamp_of(code->co_filename) + static_cast<uint64_t>(Py_SIZE(code)) +
                 (static_cast<uint64_t>(code->co_firstlineno) << 40) +
                 (static_cast<uint64_t>(instruction_offset(frame, code)) << 20));
  return path;
}

#else

uint64_t call_path() {
  return 0;
}

// Unknown interpreter layout: the public API, which needs the GIL and makes frame objects.
LocationId current_location() {
  if (PyGILState_GetThisThreadState() == nullptr) return kNoLocation;
  const PyGILState_STATE gil = PyGILState_Ensure();
  SourceLocation found;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    auto text = [&](const char* attribute) -> std::string {
      PyObject* value = PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), attribute);
      const char* bytes = value != nullptr ? PyUnicode_AsUTF8(value) : nullptr;
      std::string out = bytes != nullptr ? bytes : "";
      Py_XDECREF(value);
      PyErr_Clear();
      return out;
    };
    found = SourceLocation{text("co_filename"), PyFrame_GetLineNumber(frame), -1, text("co_name")};
    Py_DECREF(code);
    PyFrameObject* outer = is_library_file(found.file) ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = outer;
  }
  PyGILState_Release(gil);
  return found.file.empty() ? kNoLocation : intern(std::move(found));
}

#endif

bool locating_takes_gil() {
  return !TORCH_LAZY_READS_FRAMES;
}

const SourceLocation& location(LocationId id) {
  Table& all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.entries[id < all.entries.size() ? id : kNoLocation];
}

std::string to_string(LocationId id) {
  const SourceLocation& where = location(id);
  if (id == kNoLocation) return where.file;
  std::string out = where.file + ':' + std::to_string(where.line);
  if (where.column >= 0) out += ':' + std::to_string(where.column);
  return out;
}

void set_library_prefixes(std::vector<std::string> prefixes) {
  Table& all = table();
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    all.library_prefixes = std::move(prefixes);
  }
  cache_generation.fetch_add(1, std::memory_order_release);
}

}  // namespace torch_lazy
