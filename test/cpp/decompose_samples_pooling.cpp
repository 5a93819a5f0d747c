// Sample calls of operators that pool and enlarge.

#include "decompose_samples.h"

namespace torch_lazy::tests {
namespace {

std::vector<int64_t> spatial(size_t dims, int64_t size) {
  return std::vector<int64_t>(dims, size);
}

std::vector<int64_t> sizes_of(size_t dims, int64_t size) {
  std::vector<int64_t> sizes = spatial(dims, size);
  sizes.insert(sizes.begin(), {2, 3});
  return sizes;
}

struct Windows {
  int64_t kernel, stride, padding, dilation;
  bool ceil;
};
// Side by side, with elements left over, overlapping, padded, apart, reaching beyond the end.
constexpr Windows kWindows[] = {{2, 2, 0, 1, false}, {2, 1, 0, 1, false}, {3, 2, 1, 1, false},
                                {3, 1, 1, 1, false}, {2, 3, 0, 1, false}, {3, 2, 0, 1, true},
                                {2, 1, 0, 2, false}, {3, 2, 1, 1, true}};

void add_maxima(Samples& all, size_t dims) {
  const std::string name = "max_pool" + std::to_string(dims) + "d";
  for (const Windows& w : kWindows) {
    const auto arguments = [=](const Tensor& x) {
      return Arguments{x,
                       spatial(dims, w.kernel),
                       spatial(dims, w.stride),
                       spatial(dims, w.padding),
                       spatial(dims, w.dilation),
                       w.ceil};
    };
    const Sample sample = [=](ScalarType d) { return arguments(tensor(sizes_of(dims, 7), d)); };
    if (dims == 1) {
      all[name].push_back(sample);
      continue;
    }
    all[name + "_with_indices"].push_back(sample);
    // Which stays whole: its indices are anybody's.
    all[name + "_with_indices_backward"].push_back([=](ScalarType d) {
      const Tensor x = tensor(sizes_of(dims, 7), d);
      const auto pool = [&](const Tensor& of) {
        const auto k = spatial(dims, w.kernel), s = spatial(dims, w.stride),
                   p = spatial(dims, w.padding), e = spatial(dims, w.dilation);
        return dims == 2 ? at::max_pool2d_with_indices(of, k, s, p, e, w.ceil)
                         : at::max_pool3d_with_indices(of, k, s, p, e, w.ceil);
      };
      const auto [values, indices] = pool(x);
      Arguments result = arguments(x);
      result.insert(result.begin(), tensor(values.sizes(), d));
      result.emplace_back(indices);
      return result;
    });
  }
}

void add_means(Samples& all, size_t dims) {
  const std::string suffix = std::to_string(dims) + "d";
  for (const Windows& w : kWindows) {
    if (w.dilation > 1) continue;
    for (const bool counts_padding : {false, true})
      for (const c10::IValue& divisor : {kNone, c10::IValue(5)}) {
        const Arguments rest{spatial(dims, w.kernel),  spatial(dims, w.stride),
                             spatial(dims, w.padding), w.ceil,
                             counts_padding,           divisor};
        all["avg_pool" + suffix].push_back([=](ScalarType d) {
          Arguments result{tensor(sizes_of(dims, 7), d)};
          result.insert(result.end(), rest.begin(), rest.end());
          return result;
        });
        all["avg_pool" + suffix + "_backward"].push_back([=](ScalarType d) {
          const Tensor x = tensor(sizes_of(dims, 7), d);
          const auto k = spatial(dims, w.kernel), s = spatial(dims, w.stride),
                     p = spatial(dims, w.padding);
          const Tensor like = x.to(at::kDouble);
          const Tensor y = dims == 2 ? at::avg_pool2d(like, k, s, p, w.ceil)
                                     : at::avg_pool3d(like, k, s, p, w.ceil);
          Arguments result{tensor(y.sizes(), d), x};
          result.insert(result.end(), rest.begin(), rest.end());
          return result;
        });
      }
  }
  // ATen adds bfloat16 in bfloat16: of few elements.
  for (const int64_t few : {1, 2, 4})
    for (const int64_t many : {4, 5}) {
      all["_adaptive_avg_pool" + suffix].push_back([=](ScalarType d) {
        return Arguments{tensor(sizes_of(dims, many), d), spatial(dims, few)};
      });
      all["_adaptive_avg_pool" + suffix + "_backward"].push_back([=](ScalarType d) {
        return Arguments{tensor(sizes_of(dims, few), d), tensor(sizes_of(dims, many), d)};
      });
    }
}

// By factors that floats hit exactly and do not, and by none that is whole.
void add_enlarging(Samples& all, size_t dims) {
  for (const std::string name : {"upsample_nearest", "_upsample_nearest_exact"})
    for (const int64_t size : {10, 15, 35, 13, 5}) {
      const auto with_scales = [=](Arguments arguments) {
        for (size_t i = 0; i < dims; ++i) arguments.push_back(kNone);
        return arguments;
      };
      const std::string full = name + std::to_string(dims) + "d";
      all[full].push_back([=](ScalarType d) {
        return with_scales({tensor(sizes_of(dims, 5), d), spatial(dims, size)});
      });
      all[full + "_backward"].push_back([=](ScalarType d) {
        return with_scales(
            {tensor(sizes_of(dims, size), d), spatial(dims, size), sizes_of(dims, 5)});
      });
    }
}

}  // namespace

void add_pooling(Samples& all) {
  for (const size_t dims : {1, 2, 3}) {
    add_maxima(all, dims);
    if (dims > 1) add_means(all, dims);
    add_enlarging(all, dims);
  }
}

}  // namespace torch_lazy::tests
