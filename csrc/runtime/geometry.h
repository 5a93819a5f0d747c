// Sizes and strides with all that PyTorch computes of them whenever they are set. A tensor of an
// operation that is deferred again and again takes over what was computed once.
#pragma once

#include <c10/core/TensorImpl.h>
#include <c10/core/impl/SizesAndStrides.h>

#include <cstdint>

namespace torch_lazy {

struct Geometry {
  c10::impl::SizesAndStrides sizes_and_strides;
  int64_t numel;
  bool contiguous;
  bool channels_last;
  bool channels_last_contiguous;
  bool channels_last_3d;
  bool channels_last_3d_contiguous;
  bool non_overlapping_and_dense;

  explicit Geometry(const c10::TensorImpl& strided)
      // Its accessor is not const.
      : sizes_and_strides(const_cast<c10::TensorImpl&>(strided).sizes_and_strides()),
        numel(strided.numel()),
        contiguous(strided.is_contiguous()),
        channels_last(strided.is_strides_like_channels_last()),
        channels_last_contiguous(strided.is_contiguous(at::MemoryFormat::ChannelsLast)),
        channels_last_3d(strided.is_strides_like_channels_last_3d()),
        channels_last_3d_contiguous(strided.is_contiguous(at::MemoryFormat::ChannelsLast3d)),
        non_overlapping_and_dense(strided.is_non_overlapping_and_dense()) {}
};

// Raises what PyTorch raises for sizes and strides that are not of one length, or overflow.
Geometry geometry_of(c10::IntArrayRef sizes, c10::IntArrayRef strides);

}  // namespace torch_lazy
