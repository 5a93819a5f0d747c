"""``Trainer`` and ``Fabric`` of Lightning run on the accelerator ``"lazy"`` as on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightning", reason="it is not on machines without network")

pytestmark = pytest.mark.recording

DATA = """
import json, logging, sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
package, accelerator, folder, words = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
x = torch.randn(256, 20, generator=torch.Generator().manual_seed(0))
data = TensorDataset(x, (x[:, :3].sum(1) > 0).long())
torch.manual_seed(1)

# Dropout would draw other numbers on the device.
def network():
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
"""

TRAINER = f"""{DATA}
import importlib, torchmetrics
lightning = importlib.import_module(package)
logging.getLogger(package).setLevel(logging.ERROR)

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = network()
        self.accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=2)
    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self.network(batch[0]), batch[1])
        self.log("loss", loss, sync_dist=True)
        return loss
    def validation_step(self, batch, index):
        self.accuracy(self.network(batch[0]), batch[1])
        self.log("accuracy", self.accuracy)
    def predict_step(self, batch, index):
        return self.network(batch[0])
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), 1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

def trainer(epochs, devices=1, **arguments):
    return lightning.Trainer(
        accelerator=accelerator, devices=devices, max_epochs=epochs, default_root_dir=folder,
        logger=False, enable_progress_bar=False, enable_model_summary=False, **arguments)

def fit(chosen, model, **arguments):
    chosen.fit(model, DataLoader(data, 32), DataLoader(data, 64), **arguments)
    return {{name: float(value) for name, value in chosen.callback_metrics.items()}}

def tell(chosen, model, metrics):
    if chosen.global_rank == 0:
        print("result", json.dumps({{"device": chosen.strategy.root_device.type,
                                    "processes": chosen.world_size, **metrics}}))
"""

STOPS_AND_GOES_ON = f"""{TRAINER}
first = trainer(2, gradient_clip_val=1.0)
fit(first, Model())
second, model = trainer(4, gradient_clip_val=1.0), Model()
metrics = fit(second, model, ckpt_path=first.checkpoint_callback.best_model_path)
predicted = torch.cat(second.predict(model, DataLoader(x, 64)))
loaded = Model.load_from_checkpoint(
    second.checkpoint_callback.best_model_path, map_location="cpu", weights_only=False)
tell(second, model, {{**metrics, "predicted": predicted.double().sum().item(),
                     "loaded": loaded.network[2].bias.detach().tolist()}})
"""

PRECISIONS = f"""{TRAINER}
losses = {{}}
for precision in words:
    torch.manual_seed(1)
    chosen, model = trainer(2, precision=precision, enable_checkpointing=False), Model()
    losses[precision] = fit(chosen, model)["loss"]
tell(chosen, model, losses)
"""

PROCESSES = f"""{TRAINER}
if __name__ == "__main__":
    chosen, model = trainer(2, devices=2, strategy=words[0], enable_checkpointing=False), Model()
    tell(chosen, model, fit(chosen, model))
"""

FABRIC = f"""{DATA}
from lightning.fabric import Fabric
if __name__ == "__main__":
    fabric = Fabric(accelerator=accelerator, devices=int(words[0]), precision=words[1])
    fabric.launch()
    model = network()
    model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters(), 1e-2))
    for inputs, targets in fabric.setup_dataloaders(DataLoader(data, 32)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
    loss = fabric.all_reduce(loss.detach()).item()
    fabric.save(f"{{folder}}/saved.ckpt", {{"model": model, "optimizer": optimizer}})
    fabric.load(f"{{folder}}/saved.ckpt", {{"model": model, "optimizer": optimizer}})
    if fabric.global_rank == 0:
        print("result", json.dumps({{"device": fabric.device.type, "loss": loss,
                                    "processes": fabric.world_size}}))
"""


def run(script: str, folder: Path, accelerator: str, *words: str, package: str) -> Any:
    file = folder / f"{accelerator}.py"
    file.write_text(script)
    arguments = [package, accelerator, str(folder / accelerator), *words]
    done = subprocess.run(
        [sys.executable, str(file), *arguments], capture_output=True, text=True, timeout=300
    )
    assert "result " in done.stdout, done.stderr
    return json.loads(done.stdout.partition("result ")[2].splitlines()[0])


def same_as_on_the_cpu(
    script: str, folder: Path, *words: str, package: str = "lightning", tolerance: float = 1e-3
) -> None:
    expected = run(script, folder, "cpu", *words, package=package)
    actual = run(script, folder, "lazy", *words, package=package)
    assert expected.pop("device") == "cpu"
    assert actual.pop("device") == "lazy"
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert actual[name] == pytest.approx(value, rel=tolerance), name


def test_a_trainer_fits_stops_goes_on_and_predicts(tmp_path: Path):
    same_as_on_the_cpu(STOPS_AND_GOES_ON, tmp_path, package="lightning.pytorch")


def test_a_trainer_of_the_other_package_takes_precisions(tmp_path: Path):
    """Where 16 bits are asked for, Lightning takes bfloat16 on the CPU."""
    words = ["32-true", "64-true", "bf16-true", "bf16-mixed", "16-mixed"]

    same_as_on_the_cpu(PRECISIONS, tmp_path, *words, package="pytorch_lightning", tolerance=2e-2)


@pytest.mark.on_cpu("gloo communicates the host's memory")
def test_a_trainer_starts_processes(tmp_path: Path):
    expected = run(PROCESSES, tmp_path, "cpu", "ddp", package="lightning.pytorch")

    for strategy in ("ddp", "ddp_spawn"):
        actual = run(PROCESSES, tmp_path, "lazy", strategy, package="lightning.pytorch")
        assert (actual["device"], actual["processes"]) == ("lazy", 2)
        assert actual["loss"] == pytest.approx(expected["loss"], rel=1e-3)
        assert actual["accuracy"] == pytest.approx(expected["accuracy"], abs=0.01)


@pytest.mark.on_cpu("gloo communicates the host's memory")
@pytest.mark.parametrize(("processes", "precision"), [("1", "bf16-mixed"), ("2", "32-true")])
def test_fabric_trains_saves_and_loads(processes: str, precision: str, tmp_path: Path):
    same_as_on_the_cpu(FABRIC, tmp_path, processes, precision, tolerance=2e-2)


@pytest.mark.parametrize("devices", ["nonsense", "7,", [1, -3]])
def test_devices_that_are_not_there_are_named(devices: Any):
    from lightning.pytorch import Trainer

    with pytest.raises(ValueError, match=r"`devices=.*`: accelerator 'lazy' takes how"):
        Trainer(accelerator="lazy", devices=devices, logger=False)
