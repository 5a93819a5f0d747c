// The settings as users see them: one table, from which the environment, Python's
// torch.lazy.config, its documentation and the messages are made. To add a setting: a field of
// Config (base/config.h) and an entry of the table (settings.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/api.h"
#include "base/config.h"

namespace torch_lazy {

using SettingValue = std::variant<bool, int64_t, std::string>;

struct Setting {
  using Renamed = std::pair<std::string, std::string>;  // from, to

  std::string name;
  std::string meaning;   // a sentence without its end, in Markdown
  std::string variable;  // of the environment
  std::string usual;     // the default, in Markdown
  std::string expected;  // which values there are
  bool read_only = false;
  std::string old_name;            // still understood, with a warning, as are old words
  std::vector<Renamed> old_words;  // of its values
  std::vector<Renamed> spellings;  // what the environment says instead of a word
  bool numeric = false;            // the environment's text is a number
  std::function<SettingValue(const Config&)> get;
  std::function<bool(Config&, const SettingValue&)> set;  // false where there is no such value
};

TORCH_LAZY_MODULE_API const std::vector<Setting>& settings();

// The setting of that name, or, with a warning, the one that had it once. Null where there is none.
TORCH_LAZY_MODULE_API const Setting* find_setting(std::string_view name);

// Raises std::invalid_argument, which says what is expected; the setting `backend` what its
// selector raises.
TORCH_LAZY_MODULE_API void set_setting(const Setting& setting, const SettingValue& value);

// A value that is not understood keeps the default and is warned about: a typing error in the
// environment must not break `import torch`.
void read_environment(Config& config);

// Raises where the device of that name cannot be chosen any more; asked whenever one is set.
TORCH_LAZY_MODULE_API void set_device_check(void (*check)(const std::string& name));

// Selects the backend of that name or raises why it cannot be; until it is set, as when the
// environment is read, a name is only noted (base/config.h).
using BackendSelector = void (*)(const std::string& name);
TORCH_LAZY_MODULE_API void set_backend_selector(BackendSelector selector);

}  // namespace torch_lazy
