// Which code objects are remembered, and what a location says without one.

#include "tape/source_location.h"

#include <gtest/gtest.h>

namespace torch_lazy {
namespace {

// Offsets of its locations are lines.
uint32_t code_in(const std::string& file) {
  return remember_code({file, "step", 1, ""});
}

void forget_all_others() {
  for (size_t i = 0; i < kMostCodes; ++i) code_in("other " + std::to_string(i));
}

TEST(SourceLocation, NamesFileAndLine) {
  const LocationId id = make_location(code_in("train.py"), 12);

  EXPECT_EQ(to_string(id), "train.py:12");
  EXPECT_EQ(location(id).function, "step");
}

TEST(SourceLocation, OfCodeThatIsAlikeIsTheSame) {
  EXPECT_EQ(code_in("cell.py"), code_in("cell.py"));
  EXPECT_NE(code_in("cell.py"), remember_code({"cell.py", "step", 2, ""}));
}

TEST(SourceLocation, IsUnknownWithoutAnId) {
  EXPECT_EQ(to_string(kNoLocation), "<unknown>");
}

TEST(SourceLocation, IsUnknownOnceMuchOtherCodeHasCome) {
  const uint32_t code = code_in("train.py");
  EXPECT_TRUE(is_remembered(code));

  forget_all_others();

  EXPECT_FALSE(is_remembered(code));
  EXPECT_EQ(to_string(make_location(code, 12)), "<unknown>");
}

TEST(SourceLocation, IsUnknownOnceLargerCodeHasCome) {
  const uint32_t code = code_in("train.py");

  remember_code({"large.py", "step", 1, std::string(kMostCodeBytes, '\0')});

  EXPECT_EQ(to_string(make_location(code, 12)), "<unknown>");
}

TEST(SourceLocation, StaysKnownWhileItIsKept) {
  const uint32_t code = code_in("train.py");
  auto kept = keep_location(make_location(code, 12));

  forget_all_others();

  EXPECT_EQ(to_string(make_location(code, 13)), "train.py:13");
  kept.reset();
  EXPECT_EQ(to_string(make_location(code, 13)), "<unknown>");
}

}  // namespace
}  // namespace torch_lazy
