#include "codegen/prelude.h"

#include <c10/util/Float8_e4m3fn.h>

#include <bit>
#include <cctype>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace torch_lazy::codegen {
namespace {

// Each file is string literals; a literal may have 64 KB.
constexpr std::string_view kCpuText[] = {
#include "codegen/prelude/cpu_types.inc"
    ,
#include "codegen/prelude/limits.inc"
    ,
#include "codegen/prelude/arithmetic.inc"
    ,
#include "codegen/prelude/cpu_arithmetic.inc"
    ,
#include "codegen/prelude/integer.inc"
    ,
#include "codegen/prelude/cpu_integer.inc"
    ,
#include "codegen/prelude/division.inc"
    ,
#include "codegen/prelude/cpu_division.inc"
    ,
#include "codegen/prelude/cpu_cast.inc"
    ,
#include "codegen/prelude/float8.inc"
    ,
#include "codegen/prelude/cpu_memory.inc"
    ,
#include "codegen/prelude/cpu_tiles.inc"
    ,
#include "codegen/prelude/cpu_squares.inc"
    ,
#include "codegen/prelude/cpu_reduce.inc"
    ,
#include "codegen/prelude/cpu_scan.inc"
    ,
#include "codegen/prelude/cpu_math_float.inc"
    ,
#include "codegen/prelude/cpu_sleef.inc"
    ,
#include "codegen/prelude/cpu_trigonometry.inc"
    ,
#include "codegen/prelude/cpu_special.inc"
    ,
#include "codegen/prelude/digamma.inc"
    ,
#include "codegen/prelude/cpu_philox.inc"
};

// NOLINTBEGIN(readability-duplicate-include): the targets share fragments.
constexpr std::string_view kCudaText[] = {
#include "codegen/prelude/cuda_types.inc"
    ,
#include "codegen/prelude/limits.inc"
    ,
#include "codegen/prelude/arithmetic.inc"
    ,
#include "codegen/prelude/integer.inc"
    ,
#include "codegen/prelude/division.inc"
    ,
#include "codegen/prelude/cuda_arithmetic.inc"
    ,
#include "codegen/prelude/cuda_cast.inc"
    ,
#include "codegen/prelude/float8.inc"
    ,
#include "codegen/prelude/cuda_memory.inc"
    ,
#include "codegen/prelude/cuda_reduce.inc"
    ,
#include "codegen/prelude/cuda_math.inc"
    ,
#include "codegen/prelude/digamma.inc"
    ,
#include "codegen/prelude/cuda_philox.inc"
};
// NOLINTEND(readability-duplicate-include)

// What float8_e4m3fn, which has no infinity, makes of a number beyond its range depends on PyTorch:
// NaN, and from 2.13 on the greatest that it has.
std::string_view float8_text() {
  static const std::string text =
      "\n//: beyond_float8_e4m3fn\n#define LAZY_BEYOND_FLOAT8_E4M3FN " +
      std::to_string(std::bit_cast<int32_t>(static_cast<float>(c10::Float8_e4m3fn(1e30f)))) +
      "\n\n";
  return text;
}

// A type by its name in the loop IR, and what the prelude's text calls things that go with it.
struct TypeNames {
  const char* name;
  const char* lane;     // a scalar of it in a register
  const char* value;    // the compute type: of low types, float
  const char* storage;  // in memory
  int bytes;            // in memory
};

constexpr TypeNames kTypes[] = {
    {"float", "float", "float", "float", 4},
    {"double", "double", "double", "double", 8},
    {"int64", "int64", "int64", "int64", 8},
    {"int32", "int32", "int32", "int32", 4},
    {"int16", "int16", "int16", "int16", 2},
    {"int8", "int8", "int8", "int8", 1},
    {"uint8", "uint8", "uint8", "uint8", 1},
    {"bool", "bool", "bool", "unsigned char", 1},
    {"float8_e4m3fn", "float", "float", "unsigned char", 1},
    {"float8_e5m2", "float", "float", "unsigned char", 1},
    {"bfloat16", "float", "float", "unsigned short", 2},
    {"half", "float", "float", "unsigned short", 2},
};

const TypeNames* find_type(std::string_view name) {
  for (const TypeNames& type : kTypes)
    if (name == type.name) return &type;
  return nullptr;
}

// The lists of types that headers of fragments use.
const std::map<std::string_view, std::vector<std::string>>& families() {
  static const std::map<std::string_view, std::vector<std::string>> kFamilies = [] {
    const std::vector<std::string> floats = {"float", "double"};
    const std::vector<std::string> signed_integers = {"int64", "int32", "int16", "int8"};
    std::vector<std::string> integers = signed_integers;
    integers.emplace_back("uint8");
    std::vector<std::string> numbers = floats;
    numbers.insert(numbers.end(), integers.begin(), integers.end());
    std::vector<std::string> any = numbers;
    any.emplace_back("bool");
    std::map<std::string_view, std::vector<std::string>> result;
    const auto add = [&](std::string_view both, std::string_view vectors, std::string_view scalars,
                         const std::vector<std::string>& types) {
      for (const std::string& type : types) {
        result[both].push_back(type);
        result[both].push_back("v_" + type);
        result[vectors].push_back("v_" + type);
        result[scalars].push_back(type);
      }
    };
    add("floats", "vector_floats", "scalar_floats", floats);
    add("integers", "vector_integers", "scalar_integers", integers);
    add("signed_integers", "vector_signed_integers", "scalar_signed_integers", signed_integers);
    add("numbers", "vector_numbers", "scalar_numbers", numbers);
    add("bools", "vector_bools", "scalar_bools", {"bool"});
    add("any", "vectors", "scalars", any);
    for (const TypeNames& type : kTypes) result["storage"].emplace_back(type.name);
    return result;
  }();
  return kFamilies;
}

bool is_vector(std::string_view type) {
  return type.substr(0, 2) == "v_";
}

std::vector<std::string> expand(const std::vector<std::string>& words) {
  std::vector<std::string> result;
  for (const std::string& word : words) {
    const auto family = families().find(word);
    if (family == families().end()) {
      result.push_back(word);
    } else {
      result.insert(result.end(), family->second.begin(), family->second.end());
    }
  }
  return result;
}

// A piece of text as it stands in a file.
struct Fragment {
  std::vector<std::string> functions;
  std::vector<std::string> values;   // what `Value` stands for, one piece of source each
  std::vector<std::string> targets;  // the same of `Target`
  std::vector<std::string> needs;
  std::string_view body;
};

Fragment parse_fragment(std::string_view header, std::string_view body) {
  Fragment fragment{.functions = {}, .values = {}, .targets = {}, .needs = {}, .body = body};
  std::vector<std::string> values, targets;
  std::vector<std::string>* list = &fragment.functions;
  std::istringstream words{std::string(header)};
  for (std::string word; words >> word;) {
    if (word == "for") {
      list = &values;
    } else if (word == "to") {
      list = &targets;
    } else if (word == "needs") {
      list = &fragment.needs;
    } else {
      list->push_back(word);
    }
  }
  fragment.values = expand(values);
  for (std::string& target : expand(targets))
    if (!is_vector(target)) fragment.targets.push_back(std::move(target));
  if (fragment.values.empty()) fragment.values.emplace_back();
  if (fragment.targets.empty()) fragment.targets.emplace_back();
  return fragment;
}

// What the placeholders of a fragment stand for in one piece of source.
using Words = std::vector<std::pair<std::string_view, std::string>>;

Words words_for(const Fragment& fragment, const std::string& value, const std::string& target,
                bool cuda) {
  Words words;
  // A fragment without Value but with a type in its function's name says it there.
  std::string type = value;
  if (type.empty() && fragment.targets.front().empty())
    if (const size_t colon = fragment.functions.front().find(':'); colon != std::string::npos)
      type = fragment.functions.front().substr(colon + 1);
  const bool vector = value.empty() || is_vector(value);
  const char* prefix = vector && !cuda ? "v_" : "";
  const TypeNames* const of_target = find_type(target);
  const TypeNames* const of_value =
      find_type(is_vector(type) ? std::string_view(type).substr(2) : std::string_view(type));
  if (of_value != nullptr) {
    const char* const own = is_vector(type) && !cuda ? "v_" : "";
    const int bytes = type == "v_bool" ? 4 : of_value->bytes;
    words.emplace_back("Value", cuda ? of_value->lane : type);
    words.emplace_back("Vector", (cuda ? "" : "v_") + std::string(of_value->name));
    words.emplace_back("Bits", own + ("int" + std::to_string(8 * bytes)));
    const char* const scalars[] = {"uint8", "unsigned short", "unsigned", "unsigned long long"};
    const char* const vectors[] = {"v_uint8", "v_uint16", "v_bool", "v_uint64"};
    const int width = bytes == 8 ? 3 : bytes / 2;
    words.emplace_back("Unsigned", *own != 0 ? vectors[width] : scalars[width]);
  }
  words.emplace_back("Target", target);
  if (of_target != nullptr) {
    const std::string bytes = std::to_string(of_target->bytes);
    words.emplace_back("Result", prefix + std::string(of_target->value));
    words.emplace_back("Storage", of_target->storage);
    words.emplace_back("RawName", "raw" + bytes);
    words.emplace_back("RawLanes", prefix + ("int" + std::to_string(8 * of_target->bytes)));
  }
  if (of_value != nullptr) {
    words.emplace_back("Lane", of_value->lane);
  } else if (of_target != nullptr) {
    words.emplace_back("Lane", of_target->lane);
  }
  return words;
}

// `text` with each placeholder, a whole identifier or a part of one between underscores, replaced.
std::string substitute(std::string_view text, const Words& words) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end == at) {
      result += text[at++];
      continue;
    }
    const std::string_view part = text.substr(at, end - at);
    std::string_view replacement = part;
    for (const auto& [placeholder, meaning] : words)
      if (part == placeholder) replacement = meaning;
    result += replacement;
    at = end;
  }
  return result;
}

// All that one target has.
class Library {
 public:
  Library(const std::string_view* begin, const std::string_view* end, bool cuda) : cuda_(cuda) {
    for (const std::string_view* text = begin; text != end; ++text) parse(*text);
    parse(float8_text());
  }

  bool has(const std::string& function) const { return pieces_.contains(normal(function)); }

  std::string source(const std::set<std::string>& functions) const {
    State state;
    append("types", &state);
    for (const std::string& function : functions) append(normal(function), &state);
    return std::move(state.source);
  }

 private:
  // A fragment with its placeholders' meaning.
  struct Piece {
    uint32_t fragment;
    std::string value;
    std::string target;
    // clang-tidy 14 takes the comparison with 0 inside for a null pointer.
    auto operator<=>(const Piece&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  // What a piece adds to a source.
  struct Text {
    std::vector<std::string> needs;
    std::string source;
  };
  struct State {
    std::set<Piece> done;
    std::string source;
  };

  // On CUDA the vectors are the scalars.
  std::string normal(const std::string& function) const {
    const size_t vector = function.find(":v_");
    if (!cuda_ || vector == std::string::npos) return function;
    return function.substr(0, vector + 1) + function.substr(vector + 3);
  }

  void parse(std::string_view text) {
    constexpr std::string_view mark = "\n//: ";
    for (size_t at = text.find(mark); at != std::string_view::npos;) {
      const size_t header = at + mark.size();
      const size_t body = text.find('\n', header) + 1;
      const size_t next = text.find(mark, body);
      // Comment lines before the next header belong to it.
      size_t end = text.find("\n\n", body);
      if (end > next) end = next;
      fragments_.push_back(
          parse_fragment(text.substr(header, body - header), text.substr(body, end - body)));
      enter(static_cast<uint32_t>(fragments_.size() - 1));
      at = next;
    }
  }

  void enter(uint32_t index) {
    const Fragment& fragment = fragments_[index];
    for (const std::string& value : fragment.values) {
      if (cuda_ && is_vector(value)) continue;
      for (const std::string& target : fragment.targets) {
        const Words words = words_for(fragment, value, target, cuda_);
        for (const std::string& function : fragment.functions) {
          std::string name = substitute(function, words);
          if (!pieces_.emplace(name, Piece{index, value, target}).second)
            throw std::logic_error("prelude: " + name + " is defined twice");
        }
      }
    }
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as functions stand on each other.
  void append(const std::string& function, State* state) const {
    const auto found = pieces_.find(function);
    if (found == pieces_.end())
      throw std::invalid_argument(
          "prelude: there is no function \"" + function + "\" for " + (cuda_ ? "CUDA" : "CPU") +
          "; a name is that of an operator or of memory access with the type of its first value, "
          "as \"lazy_exp:v_float\", and has to stand in csrc/codegen/prelude/");
    if (!state->done.insert(found->second).second) return;
    const Text& text = text_of(found->second);
    for (const std::string& need : text.needs) append(need, state);
    state->source += text.source;
  }

  // Of a piece among pieces_. Most kernels use the same: each thread that prints keeps them.
  const Text& text_of(const Piece& piece) const {
    thread_local std::unordered_map<const Piece*, Text> kept;
    if (const auto found = kept.find(&piece); found != kept.end()) return found->second;
    Text text;
    const Fragment& fragment = fragments_[piece.fragment];
    const Words words = words_for(fragment, piece.value, piece.target, cuda_);
    for (const std::string& need : fragment.needs)
      text.needs.push_back(normal(substitute(need, words)));
    text.source = substitute(fragment.body, words) + '\n';
    return kept.emplace(&piece, std::move(text)).first->second;
  }

  bool cuda_;
  std::vector<Fragment> fragments_;
  std::unordered_map<std::string, Piece> pieces_;
};

const Library& library_for(Target::Kind kind) {
  static const Library kCpu(std::begin(kCpuText), std::end(kCpuText), false);
  static const Library kCuda(std::begin(kCudaText), std::end(kCudaText), true);
  return kind == Target::Kind::kCuda ? kCuda : kCpu;
}

}  // namespace

std::string prelude_for(Target target, const std::set<std::string>& functions) {
  return "#define LAZY_LANES " + std::to_string(target.lanes) + '\n' +
         library_for(target.kind).source(functions);
}

bool prelude_has(Target target, const std::string& function) {
  return library_for(target.kind).has(function);
}

}  // namespace torch_lazy::codegen
