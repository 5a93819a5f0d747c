"""The families of unseen.py that train: losses, optimizers, small models."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from unseen_blocks import elementwise
from unseen_draft import Draft


def losses(draft: Draft) -> None:
    rows, classes = draft.shape(2)
    classes = max(2, classes)
    x = draft.tensor(rows, classes, leaf=True)
    x = elementwise(draft, x) if draft.random.random() < 0.4 else x
    target = draft.tensor(rows, classes, leaf=False)
    label, prob = draft.integers(classes, rows), draft.positive(rows, classes)
    loss = draft.let(draft.one_of(
        f"F.cross_entropy({x}.float(), {label}, label_smoothing={draft.one_of(0.0, 0.1)})",
        f"F.binary_cross_entropy_with_logits({x}, {prob})",
        f"F.smooth_l1_loss({x}, {target}, beta=0.5)",
        f"F.mse_loss({x}, {target})",
        f"F.huber_loss({x}.float(), {target}.float(), delta=0.7)",
        f"F.kl_div(F.log_softmax({x}.float(), -1), {prob}.float(), reduction='batchmean')",
        f"(1 - F.cosine_similarity({x}.float(), {target}.float(), -1)).mean()",
        f"F.triplet_margin_loss({x}.float(), {target}.float(), {prob}.float())",
        f"1 - 2 * ({x}.sigmoid() * {prob}).sum() / ({x}.sigmoid().sum() + {prob}.sum() + 1)",
        f"({prob} * (1 - {x}.sigmoid()) ** 2 * F.softplus(-{x})).mean()",
        f"F.poisson_nll_loss({x}.float().clamp(max=3), {prob}.float())",
        f"F.multi_margin_loss({x}.float(), {label})",
    ))  # fmt: skip
    draft.backward(loss)


def optimizer(draft: Draft) -> None:
    """Parameters of several sizes and gradients that are there: the update alone."""
    draft.dtype = draft.one_of("float32", "float32", "float64")
    count = draft.integer(1, 24)
    shapes = [draft.shape(draft.one_of(1, 2), max(1, draft.elements // count))
              for _ in range(count)]  # fmt: skip
    params = [draft.tensor(*shape, leaf=True) for shape in shapes]
    draft.made.append(f"params = [{', '.join(map(str, params))}]")
    draft.made.append("for p in params:\n    p.grad = (torch.randn(p.shape, dtype=p.dtype)"
                      " * 0.01).to(device)")  # fmt: skip
    kind = draft.one_of("torch", "torch", "by hand", "clip", "average")
    if kind == "torch":
        many = draft.one_of("", ", foreach=True", ", foreach=False")
        made = draft.one_of("SGD(params, lr=0.01, momentum=0.9", "Adam(params, lr=1e-3",
                            "AdamW(params, lr=1e-3", "RMSprop(params, lr=1e-3",
                            "Adagrad(params, lr=1e-2", "NAdam(params, lr=1e-3")  # fmt: skip
        draft.made.append(f"opt = torch.optim.{made}{many})")
        draft.do("opt.step()")
    elif kind == "by hand":
        draft.made.append("m, s = [torch.zeros_like(p) for p in params], "
                          "[torch.zeros_like(p) for p in params]")  # fmt: skip
        draft.do("with torch.no_grad():\n    for p, a, b in zip(params, m, s):\n"
                 "        a.mul_(0.9).add_(p.grad, alpha=0.1)\n"
                 "        b.mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)\n"
                 "        p.addcdiv_(a, b.sqrt().add_(1e-8), value=-1e-3)")  # fmt: skip
    elif kind == "clip":
        draft.made.append("opt = torch.optim.SGD(params, lr=0.01)")
        draft.do("torch.nn.utils.clip_grad_norm_(params, 1.0)", "opt.step()")
    else:
        draft.made.append("mean = [p.detach().clone() for p in params]")
        draft.do("with torch.no_grad():\n    for a, p in zip(mean, params):\n"
                 "        a.mul_(0.999).add_(p, alpha=0.001)")  # fmt: skip
        draft.result("*mean")
    draft.result("*(p.detach() for p in params)")


def model(draft: Draft) -> None:
    draft.dtype = "float32"
    _MODELS[draft.random.choice(list(_MODELS))](draft)


def _train(draft: Draft, module: str, inputs: str, target: str, loss: str) -> None:
    draft.made.append(f"net = ({module}).to(device)")
    draft.made.append(f"data, goal = ({inputs}).to(device), ({target}).to(device)")
    if not draft.train:
        draft.do("with torch.no_grad():\n    out = net(data)")
        draft.result("out[0]" if "out[0]" in loss else "out")
        return
    # Not the usual eps: a gradient that is zero but for rounding, as that of a key's bias is, would
    # become a step of any sign.
    made = draft.one_of("SGD(net.parameters(), lr=1e-2, momentum=0.9)",
                        "Adam(net.parameters(), lr=1e-3, eps=1e-3)",
                        "AdamW(net.parameters(), lr=1e-3, eps=1e-3)")  # fmt: skip
    draft.made.append(f"opt = torch.optim.{made}")
    draft.do("opt.zero_grad()", "out = net(data)", f"loss = {loss}", "loss.backward()",
             "opt.step()")  # fmt: skip
    draft.result("*(p.detach() for p in net.parameters())", "loss.detach()")


def _mlp(draft: Draft) -> None:
    batch = draft.integer(1, max(2, min(512, draft.elements // 64)))
    widths = [draft.integer(4, 256) for _ in range(draft.integer(2, 5))]
    act = draft.one_of("nn.ReLU()", "nn.GELU()", "nn.Tanh()", "nn.SiLU()")
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [f"nn.Linear({a}, {b})", act]
        if draft.random.random() < 0.3:
            layers.append(f"nn.LayerNorm({b})")
    layers.append(f"nn.Linear({widths[-1]}, 10)")
    _train(draft, f"nn.Sequential({', '.join(layers)})", f"torch.randn({batch}, {widths[0]})",
           f"torch.randint(10, ({batch},))", "F.cross_entropy(out, goal)")  # fmt: skip


def _convolutions(draft: Draft) -> None:
    batch, side, channels = draft.integer(1, 16), draft.integer(6, 32), draft.integer(2, 32)
    layers, before = [], 3
    for _ in range(draft.integer(1, 3)):
        layers.append(f"nn.Conv2d({before}, {channels}, 3, padding=1)")
        layers.append(draft.one_of(f"nn.BatchNorm2d({channels})", f"nn.GroupNorm(1, {channels})",
                                   "nn.Identity()"))  # fmt: skip
        layers.append(draft.one_of("nn.ReLU()", "nn.SiLU()", "nn.MaxPool2d(2, 1)"))
        before = channels
    layers += ["nn.AdaptiveAvgPool2d(1)", "nn.Flatten()", f"nn.Linear({channels}, 10)"]
    _train(draft, f"nn.Sequential({', '.join(layers)})", f"torch.randn({batch}, 3, {side}, {side})",
           f"torch.randint(10, ({batch},))", "F.cross_entropy(out, goal)")  # fmt: skip


def _attention(draft: Draft) -> None:
    batch, length = draft.integer(1, 8), draft.integer(2, 128)
    heads = draft.one_of(1, 2, 4)
    width = heads * draft.integer(4, 32)
    norm = draft.one_of("True", "False")
    _train(draft, f"nn.TransformerEncoderLayer({width}, {heads}, {2 * width}, dropout=0.0, "
           f"batch_first=True, norm_first={norm})", f"torch.randn({batch}, {length}, {width})",
           f"torch.randn({batch}, {length}, {width})", "F.mse_loss(out, goal)")  # fmt: skip


def _recurrent(draft: Draft) -> None:
    steps, batch, width = draft.integer(2, 32), draft.integer(1, 32), draft.integer(4, 96)
    cell = draft.one_of("LSTM", "GRU", "RNN")
    _train(draft, f"nn.{cell}({width}, {width})", f"torch.randn({steps}, {batch}, {width})",
           f"torch.randn({steps}, {batch}, {width})", "F.mse_loss(out[0], goal)")  # fmt: skip


def _embedding(draft: Draft) -> None:
    words, width = draft.integer(16, 20_000), draft.integer(4, 64)
    batch, length = draft.integer(1, 64), draft.integer(1, 64)
    bag = draft.random.random() < 0.4
    embed = f"nn.EmbeddingBag({words}, {width})" if bag else f"nn.Embedding({words}, {width})"
    shape = f"{batch}, {length}"
    goal = f"({batch},)" if bag else f"({shape})"
    _train(draft, f"nn.Sequential({embed}, nn.Linear({width}, 8))",
           f"torch.randint({words}, ({shape}))", f"torch.randint(8, {goal})",
           "F.cross_entropy(out.flatten(0, -2), goal.flatten())")  # fmt: skip


_MODELS: dict[str, Callable[[Draft], None]] = {
    "mlp": _mlp, "convolutions": _convolutions, "attention": _attention,
    "recurrent": _recurrent, "embedding": _embedding,
}  # fmt: skip

TRAINING = {"losses": losses, "optimizer": optimizer, "model": model}
