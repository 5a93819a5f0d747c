#include "base/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "base/disk_cache.h"
#include "base/warn.h"

namespace torch_lazy {
namespace {

std::string upper(std::string name) {
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c += 'A' - 'a';
  return name;
}

std::string variable_of(const std::string& name) {
  return "TORCH_LAZY_" + upper(name);
}

Setting make(const char* name, const char* meaning) {
  Setting setting;
  setting.name = name;
  setting.meaning = meaning;
  setting.variable = variable_of(name);
  return setting;
}

std::optional<int64_t> integer(const SettingValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  return std::nullopt;
}

Setting flag(const char* name, std::atomic<bool> Config::*field, const char* meaning) {
  Setting setting = make(name, meaning);
  setting.numeric = true;
  setting.expected = "True or False, in the environment 1 or 0";
  setting.usual = (Config().*field).load() ? "`True`" : "`False`";
  setting.get = [field](const Config& config) { return (config.*field).load(); };
  setting.set = [field](Config& config, const SettingValue& value) {
    const std::optional<int64_t> number = integer(value);
    if (!number || *number < 0 || *number > 1) return false;
    config.*field = *number == 1;
    return true;
  };
  return setting;
}

// Powers of two as people write sizes.
std::string bytes_text(int64_t bytes) {
  constexpr std::array units{"KiB", "MiB", "GiB"};
  const char* unit = "bytes";
  for (size_t i = 0; i < units.size() && bytes >= 1024 && bytes % 1024 == 0; ++i) {
    bytes /= 1024;
    unit = units.at(i);
  }
  return fmt::format("{} {}", bytes, unit);
}

Setting number(const char* name, std::atomic<int64_t> Config::*field, int64_t low, int64_t high,
               const char* meaning) {
  Setting setting = make(name, meaning);
  setting.numeric = true;
  setting.expected = high == INT64_MAX ? fmt::format("an integer from {} on", low)
                                       : fmt::format("an integer from {} to {}", low, high);
  const int64_t usual = (Config().*field).load();
  setting.usual = setting.name.ends_with("_bytes") ? bytes_text(usual) : fmt::format("`{}`", usual);
  setting.get = [field](const Config& config) { return (config.*field).load(); };
  setting.set = [field, low, high](Config& config, const SettingValue& value) {
    const std::optional<int64_t> number = integer(value);
    if (!number || *number < low || *number > high) return false;
    config.*field = *number;
    return true;
  };
  return setting;
}

// `words` name the values of the enumeration, from 0 on.
template <class Value>
Setting choice(const char* name, std::atomic<Value> Config::*field,
               const std::vector<std::string>& words, const char* meaning) {
  Setting setting = make(name, meaning);
  setting.expected = fmt::format("'{}'", fmt::join(words, "' or '"));
  setting.usual = fmt::format("`\"{}\"`", words.at(size_t((Config().*field).load())));
  setting.get = [field, words](const Config& config) {
    return words.at(size_t((config.*field).load()));
  };
  setting.set = [field, words](Config& config, const SettingValue& value) {
    const auto* word = std::get_if<std::string>(&value);
    const auto found = word ? std::ranges::find(words, *word) : words.end();
    if (found == words.end()) return false;
    config.*field = Value(found - words.begin());
    return true;
  };
  return setting;
}

Setting text(const char* name, const char* usual, std::function<std::string(const Config&)> get,
             std::function<bool(Config&, const std::string&)> set, const char* meaning) {
  Setting setting = make(name, meaning);
  setting.usual = usual;
  setting.expected = "a string";
  setting.get = std::move(get);
  setting.set = [set = std::move(set)](Config& config, const SettingValue& value) {
    const auto* word = std::get_if<std::string>(&value);
    return word && set(config, *word);
  };
  return setting;
}

Setting read_only(Setting setting) {
  setting.read_only = true;
  return setting;
}

constinit std::atomic<BackendSelector> backend_selector{nullptr};

bool select_backend(Config&, const std::string& name) {
  if (const BackendSelector select = backend_selector)
    select(name);
  else
    set_backend_name(name);
  return true;
}

constinit std::atomic<void (*)(const std::string&)> device_check{nullptr};

bool select_device(Config&, const std::string& name) {
  if (const auto check = device_check.load()) check(name);
  set_device_name(name);
  return true;
}

bool set_cache_directory(Config& config, const std::string& directory) {
  std::error_code no_directory;
  // Absolute now: the process may go to another directory.
  config.cache_directory = std::filesystem::absolute(directory, no_directory).string();
  return !no_directory;
}

std::vector<Setting> behaviour_settings() {
  Setting defer = choice("defer", &Config::defer, {"hot", "never"},
                         "`\"hot\"`: operations on known traces are deferred; `\"never\"`: every "
                         "operation runs at the call, and is still taped");
  defer.variable = "TORCH_LAZY";
  defer.spellings = {{"0", "never"}, {"1", "hot"}};
  Setting backend = text(
      "backend", "`\"cpu\"`", [](const Config&) { return backend_name(); }, select_backend,
      "who compiles windows: `\"cpu\"` and `\"cuda\"` make kernels, `\"reference\"` runs graphs "
      "node "
      "by node through ATen, others are what `backends()` lists. Where PyTorch has a CUDA device "
      "it is `\"cuda\"` from the first lazy tensor on, unless set");
  backend.old_words = {{"interpreter", "reference"}};
  Setting device = text(
      "device", "the backend's own", [](const Config&) { return device_name(); }, select_device,
      "the type of device on which lazy tensors live, for instance `\"cuda\"`: `lazy:N` is its "
      "device N. Chosen at the first lazy tensor; changed only while there is none");
  Setting rng = choice(
      "rng", &Config::rng, {"philox", "eager"},
      "where Bernoulli draws, and so dropout, come from. `\"philox\"`: kernels make them, keyed by "
      "PyTorch's generator of the device: `torch.manual_seed` and restored states repeat them, but "
      "they are not the numbers that eager draws there; `\"eager\"`: those numbers, drawn by "
      "ATen at the call");
  Setting measured_choice = flag(
      "measured_choice", &Config::measured_choice,
      "windows compiled from now on are timed against their operations as library calls, in turns "
      "once they have run for a millisecond, and the faster is used");
  Setting bypass =
      flag("bypass", &Config::bypass,
           "what does not repeat, or is faster so, runs at the call and is not recorded: see "
           "[docs/architecture.md](docs/architecture.md#bypass)");
  Setting remember_traces = flag(
      "remember_traces", &Config::remember_traces,
      "windows that ran often are remembered beside the kernels, and the next process compiles "
      "them when it first records them. What earlier processes left is read at the first lazy "
      "tensor");
  Setting accelerator =
      flag("accelerator", &Config::accelerator,
           "`torch.accelerator` means device `lazy` on a machine that has no other accelerator");
  return {std::move(defer),           std::move(backend),
          std::move(device),          std::move(rng),
          std::move(measured_choice), std::move(bypass),
          std::move(remember_traces), std::move(accelerator)};
}

std::vector<Setting> checking_settings() {
  return {
      flag("verify", &Config::verify,
           "run every deferred window also operation by operation, and compare"),
      flag("check_effects", &Config::check_effects,
           "compare storages before and after each operator with what the core believes it reads "
           "and writes; for debugging, slow"),
      flag("verify_passes", &Config::verify_passes,
           "check graphs after every pass of a compile, and loops before they are printed"),
      flag("blocking", &Config::blocking,
           "wait for the device behind each step of a window, so that an error which it would tell "
           "later names its operation and line; nothing on the CPU, which does not run behind"),
      flag("warn_fallbacks", &Config::warn_fallbacks,
           "warn once for each operator whose effects are not known, and of the first window that "
           "is not compiled"),
      flag("perf_map", &Config::perf_map,
           "kernels compiled from now on are named in `/tmp/perf-<pid>.map`, where Linux' `perf` "
           "looks for them"),
      number("compile_delay", &Config::compile_delay, 0, 60'000,
             "most milliseconds, drawn at random, that each compile is put off; for tests of what "
             "may not depend on when compiles end"),
      number("debug", &Config::debug, 0, 5,
             "what is printed to stderr: see [docs/troubleshooting.md](docs/troubleshooting.md)"),
  };
}

std::vector<Setting> size_settings() {
  Setting rematerialize = number(
      "rematerialize_bytes", &Config::rematerialize_bytes, 0, INT64_MAX,
      "least bytes of a value that a kernel may rematerialize instead of reading what another one "
      "stored");
  rematerialize.old_name = "recompute_bytes";
  return {
      number(
          "compile_seconds", &Config::compile_seconds, 0, 1'000'000'000,
          "seconds after which a compile that has not ended is warned about, once, and is waited "
          "for by no fork and no end of the process; 0: never"),
      number("window_operations", &Config::window_operations, 1, int64_t(1) << 31,
             "most operations in a window"),
      number("window_bytes", &Config::window_bytes, 0, INT64_MAX,
             "most bytes of pending results and dead inputs that a deferring window holds; 0: a "
             "sixteenth of a GPU's memory, 1 GiB at least and elsewhere, and on the CPU of dead "
             "inputs 128 MiB or what is alive"),
      number("trace_operations", &Config::trace_operations, 0, INT64_MAX,
             "most operations of all windows that are kept to be recognized, with about half a "
             "kilobyte for each; 0: as many as a 64th of the memory holds, 200,000 at least"),
      number(
          "early_operations", &Config::early_operations, 0, int64_t(1) << 31,
          "on a device that runs behind the host: after how many more operations of a hot window "
          "it begins with them; 0: never"),
      std::move(rematerialize),
      read_only(choice("allocator", &Config::allocator, {"caching", "system"},
                       "`\"caching\"`: freed memory is kept for the next allocation; `\"system\"`: "
                       "PyTorch's own CPU allocator")),
      read_only(text(
          "cache_dir", "`$XDG_CACHE_HOME/torch_lazy`, else `~/.cache/torch_lazy`",
          [](const Config& config) { return config.cache_directory; }, set_cache_directory,
          "where compiled kernels are kept for the next process")),
      read_only(number("cache_bytes", &Config::cache_bytes, 0, INT64_MAX,
                       "most bytes of kernels there; 0: none are kept")),
  };
}

// The word that is used now for an old one, with a warning.
SettingValue renamed(const Setting& setting, const SettingValue& value) {
  const auto* word = std::get_if<std::string>(&value);
  for (const auto& [old_word, now] : setting.old_words) {
    if (!word || *word != old_word) continue;
    warn(fmt::format("torch_lazy: {} '{}' is called '{}' now", setting.name, old_word, now));
    return now;
  }
  return value;
}

std::string quoted(const SettingValue& value) {
  if (const auto* word = std::get_if<std::string>(&value)) return '\'' + *word + '\'';
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  return std::to_string(std::get<int64_t>(value));
}

SettingValue parse(const Setting& setting, std::string text) {
  for (const auto& [spelling, word] : setting.spellings)
    if (text == spelling) return word;
  if (!setting.numeric) return text;
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return text;
  return value;
}

void read_variable(const std::string& variable, const Setting& setting, Config& config) {
  const char* const text = std::getenv(variable.c_str());
  if (!text || !*text) return;
  if (setting.set(config, renamed(setting, parse(setting, text)))) return;
  std::string expected = setting.expected;
  if (!setting.spellings.empty()) {
    expected.clear();
    for (const auto& [spelling, word] : setting.spellings)
      expected += (expected.empty() ? "" : " or ") + spelling;
  }
  warn(fmt::format("{}={} is ignored: expected {}", variable, text, expected));
}

}  // namespace

const std::vector<Setting>& settings() {
  static const auto& table = *new std::vector<Setting>([] {
    std::vector<Setting> all = behaviour_settings();
    for (std::vector<Setting>& part : std::array{checking_settings(), size_settings()})
      for (Setting& setting : part) all.push_back(std::move(setting));
    return all;
  }());
  return table;
}

const Setting* find_setting(std::string_view name) {
  for (const Setting& setting : settings()) {
    if (setting.name == name) return &setting;
    if (setting.old_name.empty() || setting.old_name != name) continue;
    warn(fmt::format("torch_lazy.config.{} is called {} now", name, setting.name));
    return &setting;
  }
  return nullptr;
}

void set_setting(const Setting& setting, const SettingValue& value) {
  if (setting.set(config(), renamed(setting, value))) return;
  throw std::invalid_argument(
      fmt::format("{} must be {}, not {}", setting.name, setting.expected, quoted(value)));
}

void read_environment(Config& config) {
  config.cache_directory = default_cache_directory();
  for (const Setting& setting : settings()) {
    if (const std::string old = variable_of(setting.old_name);
        !setting.old_name.empty() && std::getenv(old.c_str())) {
      warn(fmt::format("{} is called {} now", old, setting.variable));
      read_variable(old, setting, config);
    }
    read_variable(setting.variable, setting, config);
  }
}

void set_device_check(void (*check)(const std::string& name)) {
  device_check = check;
}

void set_backend_selector(BackendSelector selector) {
  backend_selector = selector;
}

}  // namespace torch_lazy
