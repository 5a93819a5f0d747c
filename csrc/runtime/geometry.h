// Sizes and strides with all that PyTorch computes of them whenever they are set. A tensor of an
// operation that is deferred again and again takes over what was computed once.
#pragma once

#include <c10/core/TensorImpl.h>
#include <c10/core/impl/SizesAndStrides.h>

#include <cstdint>

namespace torch_lazy {

// How the elements of a tensor follow one another.
struct Contiguity {
  bool contiguous;
  bool non_overlapping_and_dense;
  bool channels_last = false;
  bool channels_last_contiguous = false;
  bool channels_last_3d = false;
  bool channels_last_3d_contiguous = false;

  explicit Contiguity(const c10::TensorImpl& strided)
      : contiguous(strided.is_contiguous()),
        non_overlapping_and_dense(strided.is_non_overlapping_and_dense()) {
    // Channels are those of images and volumes.
    if (strided.dim() != 4 && strided.dim() != 5) return;
    channels_last = strided.is_strides_like_channels_last();
    channels_last_contiguous = strided.is_contiguous(at::MemoryFormat::ChannelsLast);
    channels_last_3d = strided.is_strides_like_channels_last_3d();
    channels_last_3d_contiguous = strided.is_contiguous(at::MemoryFormat::ChannelsLast3d);
  }
};

// PyTorch's accessor is not const.
inline const c10::impl::SizesAndStrides& sizes_and_strides_of(const c10::TensorImpl& strided) {
  return const_cast<c10::TensorImpl&>(strided).sizes_and_strides();
}

struct Geometry {
  c10::impl::SizesAndStrides sizes_and_strides;
  int64_t numel;
  Contiguity contiguity;

  explicit Geometry(const c10::TensorImpl& strided)
      : sizes_and_strides(sizes_and_strides_of(strided)),
        numel(strided.numel()),
        contiguity(strided) {}
};

// Raises what PyTorch raises for sizes and strides that are not of one length, or overflow.
Geometry geometry_of(c10::IntArrayRef sizes, c10::IntArrayRef strides);

}  // namespace torch_lazy
