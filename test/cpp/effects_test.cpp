// What the judge of effects says about operators, and that it agrees with what they do.

#include "ops/effects.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <string>
#include <thread>
#include <vector>

#include "ops/effects_check.h"

namespace torch_lazy {
namespace {

c10::OperatorHandle find_op(const std::string& name, const std::string& overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(),
                                                        overload.c_str());
}

const Effects& effects(const std::string& name, const std::string& overload = "") {
  return effects_of(find_op(name, overload));
}

int index_of(const std::string& name, const std::string& overload, const std::string& argument) {
  return find_op(name, overload).schema().argumentIndexWithName(argument).value();
}

TEST(Effects, AFunctionalOperatorIsPure) {
  const Effects& add = effects("add", "Tensor");
  EXPECT_TRUE(add.pure());
  EXPECT_TRUE(add.arguments[0].reads && add.arguments[1].reads);
  EXPECT_FALSE(add.arguments[2].tensor);  // alpha
  EXPECT_EQ(add.returns[0].kind, ReturnKind::Fresh);
}

TEST(Effects, AnInPlaceOperatorReadsAndWritesItsFirstArgument) {
  const Effects& add = effects("add_", "Tensor");
  EXPECT_TRUE(add.arguments[0].reads && add.arguments[0].writes);
  EXPECT_FALSE(add.arguments[1].writes);
  EXPECT_EQ(add.returns[0].kind, ReturnKind::SameAs);
  EXPECT_EQ(add.returns[0].argument, 0);
  EXPECT_FALSE(add.overwrites_first_argument);
}

TEST(Effects, AnOutArgumentIsWrittenWithoutBeingRead) {
  const Effects& add = effects("add", "out");
  const int out = index_of("add", "out", "out");
  EXPECT_TRUE(add.arguments[out].out && add.arguments[out].writes);
  EXPECT_FALSE(add.arguments[out].reads);
  EXPECT_EQ(add.returns[0].kind, ReturnKind::SameAs);
  EXPECT_EQ(add.returns[0].argument, out);
}

TEST(Effects, AnOutArgumentThatIsAddedToIsReadToo) {
  const Effects& combination = effects("_compute_linear_combination", "out");
  const int out = index_of("_compute_linear_combination", "out", "out");
  EXPECT_TRUE(combination.arguments[out].reads && combination.arguments[out].writes);
  EXPECT_FALSE(combination.arguments[out].out);
}

TEST(Effects, ListsAreWrittenAndAliasedAsTheirElements) {
  const Effects& foreach = effects("_foreach_add_", "List");
  EXPECT_TRUE(foreach.arguments[0].writes);
  EXPECT_FALSE(foreach.arguments[1].writes);
  EXPECT_TRUE(foreach.returns.empty());
  const Effects& split = effects("split", "Tensor");
  EXPECT_EQ(split.returns[0].kind, ReturnKind::AliasOf);
  EXPECT_FALSE(split.arguments[0].writes);
}

TEST(Effects, ViewsAliasAlsoWhereTheSchemaIsSilent) {
  for (const char* name : {"view", "t", "detach", "alias", "_unsafe_view"}) {
    EXPECT_EQ(effects(name).returns[0].kind, ReturnKind::AliasOf) << name;
    EXPECT_EQ(effects(name).returns[0].argument, 0) << name;
  }
  EXPECT_EQ(effects("unsafe_split", "Tensor").returns[0].kind, ReturnKind::AliasOf);
  EXPECT_EQ(effects("_reshape_alias").returns[0].kind, ReturnKind::AliasOf);
  for (const char* name : {"reshape", "contiguous", "resolve_conj", "dropout", "atleast_1d"}) {
    EXPECT_EQ(effects(name).returns[0].kind, ReturnKind::MayAlias) << name;
  }
  EXPECT_EQ(effects("_to_copy").returns[0].kind, ReturnKind::Fresh);
  EXPECT_EQ(effects("clone").returns[0].kind, ReturnKind::Fresh);
}

TEST(Effects, BatchNormWritesItsStatistics) {
  for (const char* name : {"native_batch_norm", "cudnn_batch_norm", "batch_norm_update_stats",
                           "batch_norm_gather_stats_with_counts"}) {
    EXPECT_TRUE(effects(name).arguments[index_of(name, "", "running_mean")].writes) << name;
    EXPECT_TRUE(effects(name).arguments[index_of(name, "", "running_var")].writes) << name;
    EXPECT_FALSE(effects(name).pure()) << name;
  }
  const char* backward = "native_batch_norm_backward";
  EXPECT_FALSE(effects(backward).arguments[index_of(backward, "", "running_mean")].writes);
  const char* legit = "_native_batch_norm_legit";
  EXPECT_TRUE(effects(legit).arguments[index_of(legit, "", "running_mean")].writes);
}

TEST(Effects, RandomFillsOverwrite) {
  for (const char* name : {"normal_", "uniform_", "exponential_", "cauchy_", "geometric_"}) {
    EXPECT_TRUE(effects(name).random) << name;
    EXPECT_TRUE(effects(name).overwrites_first_argument) << name;
    EXPECT_FALSE(effects(name).arguments[0].reads) << name;
    EXPECT_FALSE(effects(name).fails_on_data) << name;
  }
  const Effects& bernoulli = effects("bernoulli_", "Tensor");
  EXPECT_TRUE(bernoulli.arguments[1].reads && bernoulli.fails_on_data);
  EXPECT_TRUE(effects("rand").random);
  EXPECT_FALSE(effects("bernoulli").overwrites_first_argument);
}

TEST(Effects, KnowsWhatCanFailOnData) {
  for (const char* name : {"gather", "embedding", "nll_loss_forward", "linalg_cholesky_ex",
                           "_linalg_solve_ex", "multinomial", "_assert_async", "masked_scatter",
                           "bincount", "take", "put_", "index_add_", "index_put_"}) {
    EXPECT_TRUE(effects(name).fails_on_data) << name;
  }
  EXPECT_TRUE(effects("index", "Tensor").fails_on_data);
  EXPECT_TRUE(effects("scatter", "src").fails_on_data);
  EXPECT_TRUE(effects("div", "Tensor_mode").fails_on_data);
  EXPECT_FALSE(effects("div", "Tensor").fails_on_data);
  EXPECT_FALSE(effects("linalg_vector_norm").fails_on_data);
  EXPECT_FALSE(effects("mm").fails_on_data);
  EXPECT_TRUE(effects("_assert_scalar").fails_on_data);
  EXPECT_FALSE(effects("_assert_scalar").pure());
}

TEST(Effects, KnowsWhatDependsOnData) {
  for (const char* name :
       {"nonzero", "masked_select", "_local_scalar_dense", "equal", "_unique2", "bincount"}) {
    EXPECT_TRUE(effects(name).data_dependent_output) << name;
    EXPECT_FALSE(effects(name).data_dependent_only_with_masks) << name;
  }
  EXPECT_TRUE(effects("index", "Tensor").data_dependent_only_with_masks);
  EXPECT_FALSE(effects("index_put_").data_dependent_output);
  EXPECT_EQ(effects("equal").returns[0].kind, ReturnKind::NotTensor);
}

TEST(Effects, KnowsWhatChangesMetadata) {
  for (const char* name : {"t_", "transpose_", "squeeze_", "as_strided_", "resize_", "set_data"}) {
    EXPECT_TRUE(effects(name).inplace_view) << name;
  }
  EXPECT_FALSE(effects("relu_").inplace_view);
}

TEST(Effects, AnOperatorOfAnotherLibraryIsUnknownWhateverItsSchemaSays) {
  c10::OperatorHandle op = [] {
    static auto first = c10::Dispatcher::singleton().registerDef(
        torch::jit::parseSchema("effects_test::f(Tensor x) -> Tensor"), "test");
    return c10::Dispatcher::singleton().findSchemaOrThrow("effects_test::f", "");
  }();
  EXPECT_FALSE(effects_of(op).known);
  EXPECT_FALSE(effects_of(op).pure());
}

TEST(Effects, IsTheSameObjectOnEveryThread) {
  std::vector<const Effects*> seen(4);
  std::vector<std::thread> threads;
  for (const Effects*& slot : seen) threads.emplace_back([&slot] { slot = &effects("asinh"); });
  for (std::thread& thread : threads) thread.join();
  for (const Effects* one : seen) EXPECT_EQ(one, seen[0]);
}

TEST(Effects, EveryAtenOperatorCanBeJudged) {
  size_t count = 0;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op) continue;
    const Effects& judged = effects_of(*op);
    ASSERT_EQ(judged.arguments.size(), op->schema().arguments().size());
    ASSERT_EQ(judged.returns.size(), op->schema().returns().size());
    for (size_t i = 0; i < judged.arguments.size(); ++i) {
      if (op->schema().is_mutable({c10::SchemaArgType::input, i})) {
        EXPECT_TRUE(judged.arguments[i].writes) << name;
      }
    }
    for (const ReturnEffect& result : judged.returns) {
      EXPECT_LT(result.argument, static_cast<int>(judged.arguments.size())) << name;
    }
    ++count;
  }
  EXPECT_GT(count, 2000u);
}

// Runs an operator on a stack with the checker around it.
std::string check(const std::string& name, const std::string& overload, torch::jit::Stack stack) {
  const auto op = find_op(name, overload);
  const EffectsCheck checker(op, stack);
  op.callBoxed(&stack);
  return checker.finish(stack);
}

TEST(EffectsCheck, AgreesWithOperatorsThatDoWhatIsDeclared) {
  const at::Tensor x = at::rand({4, 4});
  EXPECT_EQ(check("add", "Tensor", {x, x, 1}), "");
  EXPECT_EQ(check("add_", "Tensor", {at::rand({4, 4}), x, 1}), "");
  EXPECT_EQ(check("t_", "", {at::rand({2, 3})}), "");
  EXPECT_EQ(check("add", "out", {x, x, 1, at::empty({0})}), "");
  EXPECT_EQ(check("_unsafe_view", "", {x, std::vector<int64_t>{16}}), "");
  EXPECT_EQ(check("unsafe_split", "Tensor", {x, 2, 0}), "");
  EXPECT_EQ(check("split", "Tensor", {x, 2, 0}), "");
  EXPECT_EQ(check("reshape", "", {x.t(), std::vector<int64_t>{16}}), "");
  EXPECT_EQ(check("conj_physical", "", {x}), "");
}

TEST(EffectsCheck, AgreesWithBatchNorm) {
  const at::Tensor mean = at::zeros({3});
  EXPECT_EQ(check("native_batch_norm", "",
                  {at::rand({2, 3, 4}), c10::IValue(), c10::IValue(), mean, at::ones({3}), true,
                   0.1, 1e-5}),
            "");
  EXPECT_TRUE((mean != 0).all().item<bool>());
}

TEST(EffectsCheck, NamesOperatorAndArgumentThatChanged) {
  const auto op = find_op("add", "Tensor");
  const at::Tensor x = at::rand({4});
  torch::jit::Stack stack{x, at::ones({4}), 1};
  const EffectsCheck checker(op, stack);
  op.callBoxed(&stack);
  x.zero_();  // what a misbehaving operator would do
  const std::string message = checker.finish(stack);
  EXPECT_NE(message.find("aten::add"), std::string::npos) << message;
  EXPECT_NE(message.find("'self' changed"), std::string::npos) << message;
}

TEST(EffectsCheck, NamesAnUndeclaredAlias) {
  const at::Tensor x = at::rand({4});
  const EffectsCheck checker(find_op("relu"), {x});
  EXPECT_NE(checker.finish({x.view({2, 2})}).find("aliases argument 'self'"), std::string::npos);
}

TEST(EffectsCheck, NamesAViewThatIsACopy) {
  const at::Tensor x = at::rand({4});
  const EffectsCheck checker(find_op("view"), {x, std::vector<int64_t>{4}});
  EXPECT_NE(checker.finish({x.clone()}).find("but does not"), std::string::npos);
}

TEST(EffectsCheck, NamesAnUndeclaredChangeOfMetadata) {
  const at::Tensor x = at::rand({2, 3});
  const EffectsCheck checker(find_op("relu_"), {x});
  x.t_();
  EXPECT_NE(checker.finish({x}).find("other sizes"), std::string::npos);
}

}  // namespace
}  // namespace torch_lazy
