#include "runtime/geometry.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <gtest/gtest.h>

#include <vector>

namespace torch_lazy {
namespace {

void expect_equal(const Geometry& actual, const at::Tensor& tensor) {
  const c10::TensorImpl& expected = *tensor.unsafeGetTensorImpl();
  EXPECT_EQ(actual.sizes_and_strides.sizes_arrayref(), expected.sizes());
  EXPECT_EQ(actual.sizes_and_strides.strides_arrayref(), expected.strides());
  EXPECT_EQ(actual.numel, expected.numel());
  EXPECT_EQ(actual.contiguity.contiguous, expected.is_contiguous());
  EXPECT_EQ(actual.contiguity.channels_last, expected.is_strides_like_channels_last());
  EXPECT_EQ(actual.contiguity.channels_last_contiguous,
            expected.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(actual.contiguity.channels_last_3d, expected.is_strides_like_channels_last_3d());
  EXPECT_EQ(actual.contiguity.channels_last_3d_contiguous,
            expected.is_contiguous(at::MemoryFormat::ChannelsLast3d));
  EXPECT_EQ(actual.contiguity.non_overlapping_and_dense, expected.is_non_overlapping_and_dense());
}

TEST(Geometry, OfSizesAndStridesIsThatOfATensorThatHasThem) {
  const at::TensorOptions images(at::MemoryFormat::ChannelsLast);
  const at::TensorOptions volumes(at::MemoryFormat::ChannelsLast3d);
  const std::vector<at::Tensor> tensors{
      at::empty({}),
      at::empty({3, 4}),
      at::empty({3, 4}).t(),
      at::empty({2, 3, 4, 5}),
      at::empty({2, 3, 4, 5}, images),
      at::empty({2, 3, 4, 5, 6}, volumes),
      at::empty({2, 3, 4, 5, 6, 7}),
      at::empty({1, 4}).expand({3, 4}),
      at::empty_strided({3, 4}, {10, 2}),
      at::empty({0, 4}),
  };

  for (const at::Tensor& tensor : tensors)
    expect_equal(geometry_of(tensor.sizes(), tensor.strides()), tensor);
}

}  // namespace
}  // namespace torch_lazy
