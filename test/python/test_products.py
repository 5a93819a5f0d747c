"""Large matrix products, which may be another library's than eager's."""

import torch
import torch.nn.functional as F


def train(device, steps=30):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(320, 320), torch.nn.ReLU(), torch.nn.Linear(320, 320)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(320, 320, generator=torch.Generator().manual_seed(1)).to(device)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if device == "lazy":
            torch.lazy.wait_for_compiles()
    return torch.tensor(losses)


def test_training_on_large_products_follows_the_cpu():
    torch.testing.assert_close(train("lazy"), train("cpu"), rtol=1e-5, atol=1e-6)


def expect_eagers_bits():
    x = torch.randn(300, 320)
    y = x.to("lazy")
    for _ in range(100):
        product = (y @ y.t()).cpu()
        torch.lazy.wait_for_compiles()

        assert torch.equal(product, x @ x.t())


def test_without_onednn_products_are_eagers_bit_for_bit():
    with torch.backends.mkldnn.flags(enabled=False):
        expect_eagers_bits()


def test_deterministic_products_are_eagers_bit_for_bit():
    torch.use_deterministic_algorithms(True)
    try:
        expect_eagers_bits()
    finally:
        torch.use_deterministic_algorithms(False)
