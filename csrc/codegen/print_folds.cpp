// NestPrinter's folds: what the threads of a GPU that share a work item have reduced each becomes
// one result, which all of them get.
//
// A fold is a barrier for these threads: what all of them have read before, one of them may write
// after. Shared memory is there twice, and folds take turns, so that one barrier is enough: who
// writes to a half for the next fold but one knows that all have read it, as they have come to the
// fold between.

#include <algorithm>

#include "codegen/print_nest.h"

namespace torch_lazy::codegen {
namespace {

constexpr int kMostWarps = 32;

}  // namespace

bool NestPrinter::has_folds() const {
  if (!along_reduction() && !context_.shares_steps()) return false;
  const std::vector<Sweep>& sweeps = context_.schedule.sweeps;
  return std::any_of(sweeps.begin(), sweeps.end(),
                     [](const Sweep& sweep) { return !sweep.reductions.empty(); });
}

void NestPrinter::print_folds(const Reductions& reductions) {
  if (reductions.empty()) return;
  std::vector<Fold> folds, indices;
  for (const auto& reduction : reductions) folds.push_back(reduction.fold());
  print_fold(folds);
  for (const auto& reduction : reductions) {
    if (reduction.is_arg()) indices.push_back(reduction.fold_of_indices());
  }
  if (!indices.empty()) print_fold(indices);
  for (const auto& reduction : reductions) reduction.define(out_);
}

void NestPrinter::print_fold(const std::vector<Fold>& folds) {
  if (context_.shares_steps()) {
    print_fold_of_rows(folds);
    return;
  }
  const ThreadLoop& loop = context_.kernel.thread_loop;
  const std::string threads = std::to_string(loop.threads);
  for (const Fold& fold : folds) {
    const std::string type = vector_type(fold.type);
    std::vector<std::string> arguments = {fold.value};
    if (context_.is_short_row()) arguments.push_back(threads);
    out_.line(type + " " + fold.name + " = " + context_.call(fold.of_warp, type, arguments) + ";");
  }
  if (context_.is_short_row()) {
    out_.line("__syncwarp(" + context_.call("lazy_sharing_warp", {threads}) + ");");
    return;
  }
  const bool only_warp = loop.holds_row && loop.threads == ThreadLoop::kWarp;
  if (!only_warp && !loop.holds_row) out_.open("if (blockDim.x > 32)");
  if (!only_warp) print_fold_of_warps(folds);
  if (!only_warp && !loop.holds_row) {
    out_.close();
    out_.open("else");
  }
  if (only_warp || !loop.holds_row) out_.line("__syncwarp();");
  if (!only_warp && !loop.holds_row) out_.close();
}

void NestPrinter::print_fold_of_warps(const std::vector<Fold>& folds) {
  const auto at = [](const Fold& fold, const std::string& warp) {
    return fold.shared + "[fold][" + warp + "]";
  };
  for (const Fold& fold : folds) {
    out_.line(std::string("__shared__ ") + scalar_type(fold.type) + " " + fold.shared + "[2][" +
              std::to_string(kMostWarps) + "];");
  }
  out_.open("if (lane % 32 == 0)");
  for (const Fold& fold : folds) out_.line(at(fold, "lane / 32") + " = " + fold.name + ";");
  out_.close();
  out_.line("__syncthreads();");
  for (const Fold& fold : folds) {
    const std::string of_warp =
        "lane % 32 < blockDim.x / 32 ? " + at(fold, "lane % 32") + " : " + fold.identity;
    out_.line(fold.name + " = " + context_.call(fold.of_warp, vector_type(fold.type), {of_warp}) +
              ";");
  }
  out_.line("fold ^= 1;");
}

// Of columns that are fewer than a warp's threads it has several rows, which are folded first.
void NestPrinter::print_fold_of_rows(const std::vector<Fold>& folds) {
  const ThreadLoop& loop = context_.kernel.thread_loop;
  const int rows_of_warp = ThreadLoop::kWarp / loop.columns();
  const std::string rows = std::to_string(loop.rows / rows_of_warp);
  const std::string row =
      rows_of_warp == 1 ? "threadIdx.y" : "threadIdx.y / " + std::to_string(rows_of_warp);
  const auto at = [](const Fold& fold, const std::string& index) {
    return fold.shared + "[fold][" + index + "][lane]";
  };
  for (const Fold& fold : folds) {
    const std::string type = vector_type(fold.type);
    out_.line(std::string("__shared__ ") + scalar_type(fold.type) + " " + fold.shared + "[2][" +
              rows + "][" + std::to_string(loop.columns()) + "];");
    out_.line(type + " " + fold.name + " = " + fold.value + ";");
    if (rows_of_warp > 1) {
      const std::string other =
          "(" + type + ")__shfl_xor_sync(0xffffffffu, " + fold.name + ", distance)";
      out_.line("#pragma unroll");
      out_.line("for (int distance = " + std::to_string(loop.columns()) + "; distance < " +
                std::to_string(ThreadLoop::kWarp) + "; distance *= 2) " + fold.name + " = " +
                context_.call(fold.of_two, type, {fold.name, other}) + ";");
    }
    const std::string once =
        rows_of_warp > 1 ? "if (threadIdx.y % " + std::to_string(rows_of_warp) + " == 0) " : "";
    out_.line(once + at(fold, row) + " = " + fold.name + ";");
  }
  out_.line("__syncthreads();");
  for (const Fold& fold : folds) {
    out_.line(fold.name + " = " + at(fold, "0") + ";");
    out_.line("#pragma unroll");
    out_.line("for (int row = 1; row < " + rows + "; ++row) " + fold.name + " = " +
              context_.call(fold.of_two, vector_type(fold.type), {fold.name, at(fold, "row")}) +
              ";");
  }
  out_.line("fold ^= 1;");
}

void NestPrinter::print_columns() {
  const std::string index = context_.index_type();
  out_.open("for (" + index + " base = first; base < last; base += " +
            std::to_string(context_.kernel.thread_loop.columns()) + ")");
  out_.line("const " + index + " i = base + lane;");
  out_.line("const int n = i < last;");
  print_tile({0, 1, true});
  out_.close();
}

}  // namespace torch_lazy::codegen
