// Sample calls of normalization and losses.

#include "decompose_samples.h"

namespace torch_lazy::tests {

namespace {

c10::IValue shape(std::vector<int64_t> values) {
  return values;
}

void add_layer_norm(Samples& all) {
  all["native_layer_norm"] = {
      [=](ScalarType d) {
        return Arguments{tensor({3, 4, 5}, d), shape({5}), tensor({5}, d), tensor({5}, d), 1e-5};
      },
      [=](ScalarType d) {
        return Arguments{tensor({3, 4, 5}, d), shape({4, 5}), kNone, kNone, 1e-5};
      },
      [=](ScalarType d) {
        return Arguments{tensor({3, 5}, d), shape({5}), tensor({5}, d), kNone, 1e-5};
      }};
  for (const bool affine : {true, false})
    all["native_layer_norm_backward"].push_back([=](ScalarType d) {
      const Tensor x = tensor({3, 4, 6}, d);
      const auto [y, mean, rstd] = at::native_layer_norm(x, {6}, {}, {}, 1e-5);
      const c10::IValue weight = affine ? c10::IValue(tensor({6}, d)) : kNone;
      return Arguments{tensor({3, 4, 6}, d),
                       x,
                       shape({6}),
                       mean,
                       rstd,
                       weight,
                       weight,
                       c10::List<bool>({true, affine, affine})};
    });
}

void add_group_norm(Samples& all) {
  const auto group_norm = [&all](std::vector<int64_t> sizes, bool affine, bool channels_last) {
    int64_t area = 1;
    for (size_t i = 2; i < sizes.size(); ++i) area *= sizes[i];
    const auto input = [=](ScalarType d) {
      const Tensor x = tensor(sizes, d);
      return channels_last ? x.contiguous(at::MemoryFormat::ChannelsLast) : x;
    };
    const auto weights = [=](ScalarType d) {
      return affine ? c10::IValue(tensor({sizes[1]}, d)) : kNone;
    };
    all["native_group_norm"].push_back([=](ScalarType d) {
      return Arguments{input(d), weights(d), weights(d), sizes[0], sizes[1], area, 2, 1e-5};
    });
    all["native_group_norm_backward"].push_back([=](ScalarType d) {
      const Tensor x = input(d);
      const auto [y, mean, rstd] =
          at::native_group_norm(x, {}, {}, sizes[0], sizes[1], area, 2, 1e-5);
      return Arguments{input(d), x,        mean, rstd, weights(d),
                       sizes[0], sizes[1], area, 2,    c10::List<bool>({true, affine, affine})};
    });
  };
  group_norm({3, 4, 2, 5}, true, false);
  group_norm({3, 4, 2, 5}, true, true);
  group_norm({3, 4, 7}, false, false);
  group_norm({3, 4}, true, false);
}

void add_batch_norm(Samples& all) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{3, 4, 2, 5}, std::vector<int64_t>{3, 4}})
    for (const bool affine : {true, false}) {
      const auto weights = [=](ScalarType d) {
        return affine ? c10::IValue(tensor({4}, d)) : kNone;
      };
      all["native_batch_norm"].push_back([=](ScalarType d) {
        return Arguments{tensor(sizes, d), weights(d), weights(d), tensor({4}, d),
                         positive({4}, d), false,      0.1,        1e-5};
      });
      all["_native_batch_norm_legit_no_training"].push_back([=](ScalarType d) {
        return Arguments{tensor(sizes, d), weights(d), weights(d), tensor({4}, d),
                         positive({4}, d), 0.1,        1e-5};
      });
      all["_native_batch_norm_legit_functional"].push_back([=](ScalarType d) {
        return Arguments{tensor(sizes, d), weights(d), weights(d), tensor({4}, d),
                         positive({4}, d), true,       0.1,        1e-5};
      });
      all["_native_batch_norm_legit.no_stats"].push_back([=](ScalarType d) {
        return Arguments{tensor(sizes, d), weights(d), weights(d), true, 0.1, 1e-5};
      });
      for (const bool trains : {true, false}) {
        all["native_batch_norm_backward"].push_back([=](ScalarType d) {
          return Arguments{tensor(sizes, d),
                           tensor(sizes, d),
                           weights(d),
                           tensor({4}, d),
                           positive({4}, d),
                           tensor({4}, d),
                           positive({4}, d),
                           trains,
                           1e-5,
                           std::vector<bool>{true, true, true}};
        });
      }
    }
}

// Of the loss of a 3 x 4 tensor.
Tensor loss_grad(int64_t reduction, ScalarType d) {
  return reduction == 0 ? tensor({3, 4}, d) : tensor({}, d);
}

void add_plain_losses(Samples& all) {
  for (const int64_t reduction : {0, 1, 2}) {
    const auto add = [&](const char* name, const Arguments& rest) {
      all[name].push_back([=](ScalarType d) {
        Arguments arguments{tensor({3, 4}, d), tensor({3, 4}, d), reduction};
        arguments.insert(arguments.end(), rest.begin(), rest.end());
        return arguments;
      });
    };
    const auto add_backward = [&](const char* name, const Arguments& rest) {
      all[name].push_back([=](ScalarType d) {
        Arguments arguments{loss_grad(reduction, d), tensor({3, 4}, d), tensor({3, 4}, d),
                            reduction};
        arguments.insert(arguments.end(), rest.begin(), rest.end());
        return arguments;
      });
    };
    add("mse_loss", {});
    add_backward("mse_loss_backward", {});
    add("soft_margin_loss", {});
    add_backward("soft_margin_loss_backward", {});
    add("smooth_l1_loss", {0.7});
    add("smooth_l1_loss", {0.0});
    add_backward("smooth_l1_loss_backward", {0.7});
    add("huber_loss", {0.7});
    add_backward("huber_loss_backward", {0.7});
  }
}

void add_weighted_losses(Samples& all) {
  for (const int64_t reduction : {0, 1, 2}) {
    for (const bool weighted : {false, true}) {
      const auto weight = [=](ScalarType d, int64_t count) {
        return weighted ? c10::IValue(positive({count}, d)) : kNone;
      };
      all["binary_cross_entropy_backward"].push_back([=](ScalarType d) {
        return Arguments{loss_grad(reduction, d), unit({3, 4}, d), unit({3, 4}, d), weight(d, 4),
                         reduction};
      });
      all["binary_cross_entropy_with_logits"].push_back([=](ScalarType d) {
        return Arguments{tensor({3, 4}, d), unit({3, 4}, d), weight(d, 4), weight(d, 4), reduction};
      });
      all["nll_loss_forward"].push_back([=](ScalarType d) {
        const Tensor target = at::tensor({1, 4, 2}, at::kLong);
        return Arguments{tensor({3, 5}, d), target, weight(d, 5), reduction, 2};
      });
      all["nll_loss_forward"].push_back([=](ScalarType d) {
        const Tensor target = at::scalar_tensor(3, at::kLong);
        return Arguments{tensor({5}, d), target, weight(d, 5), reduction, -100};
      });
      all["nll_loss2d_forward"].push_back([=](ScalarType d) {
        const Tensor target = at::randint(0, 5, {2, 3, 4});
        return Arguments{tensor({2, 5, 3, 4}, d), target, weight(d, 5), reduction, 2};
      });
      all["nll_loss_backward"].push_back([=](ScalarType d) {
        const Tensor target = at::tensor({1, 4, 2}, at::kLong);
        return Arguments{reduction == 0 ? tensor({3}, d) : tensor({}, d),
                         tensor({3, 5}, d),
                         target,
                         weight(d, 5),
                         reduction,
                         2,
                         positive({}, d)};
      });
      all["nll_loss_backward"].push_back([=](ScalarType d) {
        return Arguments{tensor({}, d),  tensor({5}, d), at::scalar_tensor(3, at::kLong),
                         weight(d, 5),   reduction,      -100,
                         positive({}, d)};
      });
      all["nll_loss2d_backward"].push_back([=](ScalarType d) {
        return Arguments{reduction == 0 ? tensor({2, 3, 4}, d) : tensor({}, d),
                         tensor({2, 5, 3, 4}, d),
                         at::randint(0, 5, {2, 3, 4}),
                         weight(d, 5),
                         reduction,
                         2,
                         positive({}, d)};
      });
    }
  }
}

}  // namespace

void add_normalization(Samples& all) {
  add_layer_norm(all);
  add_group_norm(all);
  add_batch_norm(all);
}

void add_losses(Samples& all) {
  add_plain_losses(all);
  add_weighted_losses(all);
}

}  // namespace torch_lazy::tests
