// The table of settings: what the environment and Python may say.

#include "base/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/warn.h"

namespace torch_lazy {
namespace {

std::vector<std::string>& warnings() {
  static std::vector<std::string> messages;
  return messages;
}

class SettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    warnings().clear();
    set_warning_sink([](const std::string& message) { warnings().push_back(message); });
  }
  void TearDown() override { set_warning_sink(nullptr); }

  // What the environment says, for the length of a test.
  class Variable {
   public:
    Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Variable() { unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

   private:
    const char* const name_;
  };
};

TEST_F(SettingsTest, EachTakesTheValueThatItHas) {
  for (const Setting& setting : settings()) {
    const SettingValue value = setting.get(config());

    set_setting(setting, value);

    EXPECT_EQ(setting.get(config()), value) << setting.name;
  }
  EXPECT_TRUE(warnings().empty());
}

TEST_F(SettingsTest, ANumberOutOfRangeIsRefusedWithTheRange) {
  const int64_t before = config().debug;

  try {
    set_setting(*find_setting("debug"), int64_t(6));
    FAIL() << "it was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "debug must be an integer from 0 to 5, not 6");
  }

  EXPECT_EQ(config().debug, before);
}

TEST_F(SettingsTest, AnUnknownWordIsRefusedWithTheWords) {
  try {
    set_setting(*find_setting("defer"), "sometimes");
    FAIL() << "it was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "defer must be 'hot' or 'never', not 'sometimes'");
  }
}

TEST_F(SettingsTest, AnOldNameIsTheNewOneWithAWarning) {
  const Setting* const setting = find_setting("recompute_bytes");

  ASSERT_NE(setting, nullptr);
  EXPECT_EQ(setting->name, "rematerialize_bytes");
  EXPECT_EQ(warnings(),
            (std::vector<std::string>{
                "torch_lazy.config.recompute_bytes is called rematerialize_bytes now"}));
}

TEST_F(SettingsTest, AnUnknownNameIsNoSetting) {
  EXPECT_EQ(find_setting("speed"), nullptr);
}

TEST_F(SettingsTest, TheEnvironmentIsRead) {
  const Variable lazy("TORCH_LAZY", "0"), debug("TORCH_LAZY_DEBUG", "2"),
      rng("TORCH_LAZY_RNG", "eager"), verify("TORCH_LAZY_VERIFY", "1");
  Config read;

  read_environment(read);

  EXPECT_EQ(read.defer, Defer::kNever);
  EXPECT_EQ(read.debug, 2);
  EXPECT_EQ(read.rng, RandomNumbers::kEager);
  EXPECT_TRUE(read.verify);
  EXPECT_TRUE(warnings().empty());
}

TEST_F(SettingsTest, WhatTheEnvironmentSaysWrongIsIgnoredWithAWarning) {
  const Variable debug("TORCH_LAZY_DEBUG", "much"), lazy("TORCH_LAZY", "2");
  Config read;

  read_environment(read);

  EXPECT_EQ(read.debug, Config().debug);
  EXPECT_EQ(warnings(), (std::vector<std::string>{
                            "TORCH_LAZY=2 is ignored: expected 0 or 1",
                            "TORCH_LAZY_DEBUG=much is ignored: expected an integer from 0 to 5"}));
}

TEST_F(SettingsTest, TheOldNameOfAVariableIsReadWithAWarning) {
  const Variable bytes("TORCH_LAZY_RECOMPUTE_BYTES", "123");
  Config read;

  read_environment(read);

  EXPECT_EQ(read.rematerialize_bytes, 123);
  EXPECT_EQ(warnings(),
            (std::vector<std::string>{
                "TORCH_LAZY_RECOMPUTE_BYTES is called TORCH_LAZY_REMATERIALIZE_BYTES now"}));
}

TEST_F(SettingsTest, TheOldNameOfABackendIsTheNewOneWithAWarning) {
  const std::string before = backend_name();
  const Variable backend("TORCH_LAZY_BACKEND", "interpreter");
  Config read;

  read_environment(read);

  EXPECT_EQ(backend_name(), "reference");
  EXPECT_EQ(
      warnings(),
      (std::vector<std::string>{"torch_lazy: backend 'interpreter' is called 'reference' now"}));
  set_backend_name(before);
}

TEST_F(SettingsTest, ABackendThatCannotBeSelectedLeavesTheOneBefore) {
  const std::string before = backend_name();
  set_backend_selector([](const std::string& name) { throw std::invalid_argument("no " + name); });

  EXPECT_THROW(set_setting(*find_setting("backend"), "abacus"), std::invalid_argument);

  EXPECT_EQ(backend_name(), before);
  set_backend_selector(nullptr);
}

}  // namespace
}  // namespace torch_lazy
