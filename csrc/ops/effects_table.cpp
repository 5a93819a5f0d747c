// The hand-written half of the effects. Whoever adds an entry says why; EffectsCheck finds the
// missing.

#include "ops/effects_table.h"

namespace torch_lazy::effects_table {
namespace {

using enum ReturnKind;

constexpr std::string_view kStatistics = "updates running statistics when training";

constexpr HiddenWrite kHiddenWrites[] = {
    {"native_batch_norm", "running_mean", kStatistics},
    {"native_batch_norm", "running_var", kStatistics},
    {"cudnn_batch_norm", "running_mean", kStatistics},
    {"cudnn_batch_norm", "running_var", kStatistics},
    {"miopen_batch_norm", "running_mean", kStatistics},
    {"miopen_batch_norm", "running_var", kStatistics},
    {"batch_norm", "running_mean", kStatistics},
    {"batch_norm", "running_var", kStatistics},
    {"_batch_norm_impl_index", "running_mean", kStatistics},
    {"_batch_norm_impl_index", "running_var", kStatistics},
    {"instance_norm", "running_mean", kStatistics},
    {"instance_norm", "running_var", kStatistics},
    {"batch_norm_gather_stats", "running_mean", kStatistics},
    {"batch_norm_gather_stats", "running_var", kStatistics},
    {"batch_norm_gather_stats_with_counts", "running_mean", kStatistics},
    {"batch_norm_gather_stats_with_counts", "running_var", kStatistics},
    {"batch_norm_update_stats", "running_mean", kStatistics},
    {"batch_norm_update_stats", "running_var", kStatistics},
    {"_cudnn_rnn_flatten_weight", "weight_arr", "moves the weights into one buffer"},
    {"_cudnn_rnn_backward", "reserve", "uses up what the forward pass has kept"},
};

constexpr HiddenAlias kHiddenAliases[] = {
    // Unannotated views: "unsafe" means that autograd is not told, not that memory is copied.
    {"_unsafe_view", 0, AliasOf, 0, "a view that autograd does not track"},
    {"unsafe_split", 0, AliasOf, 0, "views that autograd does not track"},
    {"unsafe_split_with_sizes", 0, AliasOf, 0, "views that autograd does not track"},
    {"unsafe_chunk", 0, AliasOf, 0, "views that autograd does not track"},
    {"broadcast_tensors", 0, AliasOf, 0, "expands each; the schema has no annotation"},
    {"meshgrid", 0, AliasOf, 0, "expands each; the schema has no annotation"},
    {"unflatten_dense_tensors", 0, AliasOf, 0, "views of the flat tensor"},
    // Annotated as views, yet copies for some arguments.
    {"reshape", 0, MayAlias, 0, "copies where no view has the shape"},
    {"reshape_as", 0, MayAlias, 0, "copies where no view has the shape"},
    {"_reshape_from_tensor", 0, MayAlias, 0, "copies where no view has the shape"},
    {"flatten", 0, MayAlias, 0, "copies where no view has the shape"},
    {"ravel", 0, MayAlias, 0, "copies where not contiguous"},
    {"contiguous", 0, MayAlias, 0, "copies where not contiguous"},
    {"to", 0, MayAlias, 0, "copies where device, dtype or format differ"},
    {"type_as", 0, MayAlias, 0, "copies where dtype differs"},
    {"_autocast_to_reduced_precision", 0, MayAlias, 0, "copies where dtype differs"},
    {"_autocast_to_full_precision", 0, MayAlias, 0, "copies where dtype differs"},
    {"pin_memory", 0, MayAlias, 0, "copies where not pinned yet"},
    {"resolve_conj", 0, MayAlias, 0, "copies where the conjugate bit is set"},
    {"resolve_neg", 0, MayAlias, 0, "copies where the negative bit is set"},
    {"coalesce", 0, MayAlias, 0, "returns a coalesced tensor as it is"},
    // Not annotated, yet the argument itself for some arguments.
    {"conj_physical", 0, MayAlias, 0, "returns a real tensor as it is"},
    {"lift", 0, MayAlias, 0, "returns its argument outside functionalization"},
    {"chalf", 0, MayAlias, 0, "returns a complex half tensor as it is"},
    {"_to_cpu", 0, MayAlias, 0, "returns CPU tensors as they are"},
    {"to_dense", 0, MayAlias, 0, "returns a dense tensor as it is"},
    {"_to_dense", 0, MayAlias, 0, "returns a dense tensor as it is"},
    {"dequantize", 0, MayAlias, 0, "returns a float tensor as it is"},
    {"sum_to_size", 0, MayAlias, 0, "returns its argument where the sizes are the same"},
    {"_grad_sum_to_size", 0, MayAlias, 0, "returns its argument where the sizes are the same"},
    {"atleast_1d", 0, MayAlias, 0, "returns its argument where it has the dimensions"},
    {"atleast_2d", 0, MayAlias, 0, "returns its argument where it has the dimensions"},
    {"atleast_3d", 0, MayAlias, 0, "returns its argument where it has the dimensions"},
    {"dropout", 0, MayAlias, 0, "returns its argument in evaluation"},
    {"feature_dropout", 0, MayAlias, 0, "returns its argument in evaluation"},
    {"alpha_dropout", 0, MayAlias, 0, "returns its argument in evaluation"},
    {"feature_alpha_dropout", 0, MayAlias, 0, "returns its argument in evaluation"},
    {"native_dropout", 0, MayAlias, 0, "returns an empty argument as it is"},
    {"cartesian_prod", 0, MayAlias, 0, "returns a single argument as it is"},
    {"chain_matmul", 0, MayAlias, 0, "returns a single argument as it is"},
    {"einsum", 0, MayAlias, 1, "a permutation of one operand is a view"},
    {"_cudnn_rnn_flatten_weight", 0, MayAlias, 0, "the buffer that the weights now share"},
};

constexpr std::string_view kIndexRange = "an index may be out of range";
constexpr std::string_view kFactor = "a factorization may fail on singular or non-finite input";
constexpr std::string_view kZeroDivision = "raises ZeroDivisionError on integers";
constexpr std::string_view kProbability = "a parameter in a tensor may be out of its range";
constexpr std::string_view kSparse = "indices are validated";

constexpr Note kFailsOnData[] = {
    {"index", kIndexRange},
    {"_unsafe_index", kIndexRange},
    {"_unsafe_index_put", kIndexRange},
    {"index_add", kIndexRange},
    {"index_copy", kIndexRange},
    {"index_fill", kIndexRange},
    {"index_put", kIndexRange},
    {"_index_put_impl", kIndexRange},
    {"index_reduce", kIndexRange},
    {"masked_fill", "the conversion of the value may overflow"},
    {"index_select*", kIndexRange},
    {"gather*", kIndexRange},
    {"scatter*", kIndexRange},
    {"take", kIndexRange},
    {"take_along_dim", kIndexRange},
    {"put", kIndexRange},
    {"embedding*", kIndexRange},
    {"_embedding_bag*", kIndexRange},
    {"nll_loss*", "a target may be out of range"},
    {"cross_entropy_loss", "a target may be out of range"},
    {"multi_margin_loss*", "a target may be out of range"},
    {"multilabel_margin_loss*", "a target may be out of range"},
    {"ctc_loss", "targets and lengths are checked"},
    {"_ctc_loss*", "targets and lengths are checked"},
    {"binary_cross_entropy", "input must lie between 0 and 1"},
    {"max_unpool2d", kIndexRange},
    {"max_unpool3d", kIndexRange},
    {"max_pool2d_with_indices_backward", kIndexRange},
    {"max_pool3d_with_indices_backward", kIndexRange},
    {"adaptive_max_pool2d_backward", kIndexRange},
    {"adaptive_max_pool3d_backward", kIndexRange},
    {"fractional_max_pool*", kIndexRange},
    {"value_selecting_reduction_backward", kIndexRange},
    {"cummaxmin_backward", kIndexRange},
    {"masked_scatter*", "the source may have fewer elements than the mask selects"},
    {"segment_reduce", "lengths must add up"},
    {"_segment_reduce_backward", "lengths must add up"},
    {"repeat_interleave", "repeats must not be negative"},
    {"bincount", "elements must not be negative"},
    {"one_hot*", "classes must be in range"},
    {"histc", "the range taken from the data must be finite"},
    {"histogram*", "bin edges are checked"},
    {"_histogramdd*", "bin edges are checked"},
    {"quantile", "q must lie between 0 and 1"},
    {"nanquantile", "q must lie between 0 and 1"},
    {"tensor_split", "sections may come from a tensor"},
    {"_pack_padded_sequence*", "lengths are checked"},
    {"_pad_packed_sequence", "lengths are checked"},
    {"floor_divide", kZeroDivision},
    {"div", "rounding modes raise ZeroDivisionError on integers"},
    {"divide", "rounding modes raise ZeroDivisionError on integers"},
    {"remainder", kZeroDivision},
    {"fmod", kZeroDivision},
    {"bernoulli", kProbability},
    {"multinomial", kProbability},
    {"normal", kProbability},
    {"poisson", kProbability},
    {"binomial", kProbability},
    {"linalg_*", kFactor},
    {"_linalg_*", kFactor},
    {"cholesky*", kFactor},
    {"_cholesky_solve_helper", kFactor},
    {"inverse", kFactor},
    {"pinverse", kFactor},
    {"svd", kFactor},
    {"qr", kFactor},
    {"geqrf", kFactor},
    {"orgqr", kFactor},
    {"ormqr", kFactor},
    {"det", kFactor},
    {"logdet", kFactor},
    {"slogdet", kFactor},
    {"lu_solve", kFactor},
    {"lu_unpack", "pivots may be out of range"},
    {"_lu_with_info", kFactor},
    {"triangular_solve", kFactor},
    {"matrix_power", kFactor},
    {"nuclear_norm", kFactor},
    {"_spsolve", kFactor},
    {"_assert*", "fails if the value says so"},
    {"_functional_assert*", "fails if the value says so"},
    {"sym_constrain_range*", "fails if the value says so"},
    {"_functional_sym_constrain_range*", "fails if the value says so"},
    {"_validate_*", kSparse},
    {"sparse_*", kSparse},
    {"_local_scalar_dense", "the conversion of the value may overflow"},
    {"item", "the conversion of the value may overflow"},
    {"is_nonzero", "more than one element is ambiguous"},
    {"fake_quantize_*", "zero points are checked"},
    {"_fake_quantize_*", "zero points are checked"},
    {"quantize_per_channel", "zero points are checked"},
};

// Under a prefix of kFailsOnData, but no value makes them fail.
constexpr std::string_view kNeverFails[] = {
    "linalg_vector_norm", "linalg__powsum",  "linalg_matmul", "linalg_multi_dot",  "linalg_cross",
    "linalg_vecdot",      "linalg_diagonal", "linalg_vander", "linalg_matrix_exp", "sparse_dim",
};

// What factors raise, unlike an index out of range, programs expect and catch: optimizers
// that have a way without them. Where others fail (cholesky, inv, solve) _linalg_check_errors
// raises.
constexpr std::string_view kNoConvergence = "raises where it does not converge";

constexpr Note kDataDependent[] = {
    {"_linalg_eigh", kNoConvergence},
    {"linalg_eig", kNoConvergence},
    {"_linalg_eigvals", kNoConvergence},
    {"_linalg_svd", kNoConvergence},
    {"linalg_pinv", kNoConvergence},
    {"cholesky", "raises where the matrix is not positive definite"},
    {"nonzero", "as many rows as elements that are not zero"},
    {"nonzero_numpy", "as many rows as elements that are not zero"},
    {"argwhere", "as many rows as elements that are not zero"},
    {"masked_select", "as many elements as the mask selects"},
    {"is_nonzero", "returns a value to the caller"},
    {"_local_scalar_dense", "returns a value to the caller"},
    {"item", "returns a value to the caller"},
    {"_test_parallel_materialize", "raises where a clone shares memory, and returns its argument"},
    {"equal", "returns a value to the caller"},
    {"allclose", "returns a value to the caller"},
    {"one_hot", "the number of classes may come from the values"},
    {"tensor_split", "sections may come from a tensor"},
    {"combinations", "selects by a mask"},
    {"coalesce", "as many entries as distinct indices"},
    {"_coalesce", "as many entries as distinct indices"},
    {"to_sparse*", "as many entries as elements that are not zero"},
    {"_to_sparse*", "as many entries as elements that are not zero"},
    {"sparse_coo_tensor", "the size may come from the indices"},
    {"_ctc_loss", "the longest target gives a size"},
    {"ctc_loss", "lengths are read"},
    {"_pack_padded_sequence", "lengths give the size"},
    {"_pad_packed_sequence", "lengths give the size"},
    {"histogramdd", "returns a list made from the data's range"},
    {"linalg_lstsq", "residuals are returned only at full rank"},
};

constexpr Note kRandom[] = {
    {"manual_seed", "sets the generator"},
    {"seed", "sets the generator"},
    {"_no_grad_normal", "draws, without the tag"},
    {"_no_grad_uniform", "draws, without the tag"},
    {"rand*", "draws; generated out= overloads have no tag"},
    {"quantized_lstm", "may drop out between layers, without the tag"},
    {"quantized_gru", "may drop out between layers, without the tag"},
};

constexpr std::string_view kFill = "overwrites every element with a draw";

constexpr Note kOverwrites[] = {
    {"normal_", kFill},
    {"uniform_", kFill},
    {"random_", kFill},
    {"exponential_", kFill},
    {"cauchy_", kFill},
    {"log_normal_", kFill},
    {"geometric_", kFill},
    {"bernoulli_", kFill},  // the tensor of probabilities is its second argument
    {"philox_bernoulli_", kFill},
    {"zero_", "every element is 0"},
    {"fill_", "every element is the value"},
    {"copy_", "every element is the source's"},
};

constexpr Note kInplaceView[] = {
    {"addbmm_", "resizes an argument that broadcasts; no tag"},
    {"set_data", "takes another tensor's storage; no tag"},
    {"_resize_output_", "resizes; no tag"},
    {"resize_as_sparse_", "resizes; no tag"},
    {"sparse_resize_", "resizes; no tag"},
    {"sparse_resize_and_clear_", "resizes; no tag"},
    {"_mkldnn_transpose_", "transposes in place; no tag"},
    {"_cudnn_rnn_flatten_weight", "moves the weights to another storage; no tag"},
};

// Of all overloads with an out= argument; see reads_out in the header.
constexpr Note kReadsOut[] = {
    {"_compute_linear_combination", "adds to what is there"},
};

template <size_t N>
const Note* find(const Note (&notes)[N], std::string_view name) {
  for (const Note& note : notes) {
    if (matches(note.name, name)) return &note;
  }
  return nullptr;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  return name.size() >= before.size() + after.size() && name.starts_with(before) &&
         name.ends_with(after);
}

const HiddenWrite* hidden_write(std::string_view name, std::string_view argument) {
  for (const HiddenWrite& entry : kHiddenWrites) {
    if (matches(entry.name, name) && entry.argument == argument) return &entry;
  }
  return nullptr;
}

const HiddenAlias* hidden_alias(std::string_view name, int result) {
  for (const HiddenAlias& entry : kHiddenAliases) {
    if (matches(entry.name, name) && entry.result == result) return &entry;
  }
  return nullptr;
}

const Note* fails_on_data(std::string_view name) {
  for (std::string_view never : kNeverFails) {
    if (never == name) return nullptr;
  }
  return find(kFailsOnData, name);
}

const Note* data_dependent(std::string_view name) {
  return find(kDataDependent, name);
}
const Note* random(std::string_view name) {
  return find(kRandom, name);
}
const Note* overwrites_first_argument(std::string_view name) {
  return find(kOverwrites, name);
}
const Note* inplace_view(std::string_view name) {
  return find(kInplaceView, name);
}
const Note* reads_out(std::string_view name) {
  return find(kReadsOut, name);
}

}  // namespace torch_lazy::effects_table
