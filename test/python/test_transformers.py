"""``accelerate.Accelerator`` and ``transformers.Trainer`` train on the device where
ACCELERATE_TORCH_DEVICE names it, and stop, go on and generate as on the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from behaviour import LEAVE, run_script

for library in ("transformers", "accelerate"):
    pytest.importorskip(library, reason=f"{library} is not on machines without network")

pytestmark = pytest.mark.recording

TRAINER = """
import json, sys, torch, transformers
from torch.utils.data import Dataset
transformers.set_seed(3)
kind, folder, last, resume = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "resume"

# The schedule of learning rates is that of all 20 steps, wherever a run stops.
class StopsBefore(transformers.TrainerCallback):
    def on_step_end(self, arguments, state, control, **rest):
        control.should_training_stop = state.global_step >= last

class Tokens(Dataset):
    def __init__(self):
        self.tokens = torch.randint(5, 90, (64, 16), generator=torch.Generator().manual_seed(1))
    def __len__(self):
        return len(self.tokens)
    def __getitem__(self, index):
        tokens = self.tokens[index]
        return {"input_ids": tokens, "labels": tokens if kind == "gpt2" else tokens.sum() % 3}

# Dropout draws other numbers on the device.
if kind == "gpt2":
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=96, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=1,
        eos_token_id=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
else:
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=48, max_position_embeddings=32, num_labels=3, hidden_dropout_prob=0,
        attention_probs_dropout_prob=0))
arguments = transformers.TrainingArguments(
    output_dir=folder, max_steps=20, per_device_train_batch_size=8, save_steps=10,
    logging_steps=5, report_to=[], disable_tqdm=True, bf16="bf16" in sys.argv,
    use_cpu="bf16 of the cpu" in sys.argv)
trainer = transformers.Trainer(
    model=model, args=arguments, train_dataset=Tokens(), callbacks=[StopsBefore()])
trainer.train(resume_from_checkpoint=resume)
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
result = {"devices": [arguments.device.type, next(model.parameters()).device.type],
          "losses": losses, "evaluated": trainer.evaluate(Tokens())["eval_loss"],
          "norm": sum(p.detach().double().square().sum().item() for p in model.parameters())}
if kind == "gpt2":
    prompt = torch.tensor([[5, 6, 7]], device=arguments.device)
    result["generated"] = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, do_sample=False,
        pad_token_id=0).tolist()
print("result", json.dumps(result))
"""


def run(script: str, words: list[str], device: str) -> dict[str, Any]:
    done = run_script(
        f"import sys; sys.argv = {['-', *words]!r}\n{script}",
        timeout=300,
        ACCELERATE_TORCH_DEVICE=device,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.partition("result ")[2])


@pytest.mark.on_cpu("transformers takes a CUDA device where there is one, for the CPU's run too")
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_a_trainer_trains_stops_goes_on_and_generates_as_on_the_cpu(kind: str, tmp_path: Path):
    expected = run(TRAINER, [kind, str(tmp_path / "cpu"), "20", "start"], "cpu")
    run(TRAINER, [kind, str(tmp_path / "lazy"), "10", "start"], "lazy")
    actual = run(TRAINER, [kind, str(tmp_path / "lazy"), "20", "resume"], "lazy")

    assert actual.pop("devices") == ["lazy", "lazy"]
    assert expected.pop("devices") == ["cpu", "cpu"]
    assert actual.pop("generated", None) == expected.pop("generated", None)
    for name, value in expected.items():
        assert actual[name] == pytest.approx(value, rel=1e-4), name


@pytest.mark.on_cpu("transformers takes a CUDA device where there is one, for the CPU's run too")
def test_a_trainer_trains_in_bfloat16_by_its_own_argument(tmp_path: Path):
    words = [str(tmp_path), "20", "start", "bf16"]

    expected = run(TRAINER, ["bert", *words, "bf16 of the cpu"], "cpu")
    actual = run(TRAINER, ["bert", *words], "lazy")

    assert actual["devices"] == ["lazy", "lazy"]
    assert actual["losses"] == pytest.approx(expected["losses"], rel=2e-2)


ACCELERATOR = """
import json, sys, torch
from accelerate import Accelerator
from torch import nn
accelerator = Accelerator(cpu="cpu" in sys.argv)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1))
x = torch.randn(64, 6)
data = torch.utils.data.TensorDataset(x, x.sin().sum(1, keepdim=True))
model, optimizer, batches = accelerator.prepare(
    model, torch.optim.Adam(model.parameters(), lr=1e-2),
    torch.utils.data.DataLoader(data, batch_size=8))
for step in range(12):
    for inputs, targets in batches:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    if step == 5:
        accelerator.save_state(sys.argv[1])
    if step == 8:
        accelerator.load_state(sys.argv[1])
losses = accelerator.gather(loss.detach().reshape(1)).tolist()
if accelerator.is_main_process:
    print("result", json.dumps({"device": inputs.device.type, "processes": len(losses),
                                "losses": losses}))
accelerator.end_training()
"""


def test_an_accelerator_trains_saves_and_loads_as_on_the_cpu(tmp_path: Path):
    expected = run(ACCELERATOR, [str(tmp_path / "cpu")], "cpu")
    actual = run(ACCELERATOR, [str(tmp_path / "lazy")], "lazy")

    assert actual["device"] == "lazy"
    assert actual["losses"] == pytest.approx(expected["losses"], rel=1e-3)


@pytest.mark.on_cpu("gloo communicates the host's memory")
def test_processes_on_the_device_take_gloo_where_the_accelerator_is_told_cpu(tmp_path: Path):
    def train(device: str) -> dict[str, Any]:
        script = tmp_path / "script.py"
        script.write_text(ACCELERATOR + LEAVE)
        launch = ["torchrun", "--standalone", "--nproc-per-node=2", str(script)]
        return run(
            "import runpy; sys.argv = sys.argv[1:]\n"
            "runpy.run_module('torch.distributed.run', run_name='__main__')",
            [*launch, str(tmp_path / device), "cpu"],
            device,
        )

    expected, actual = train("cpu"), train("lazy")

    assert (actual["device"], actual["processes"]) == ("lazy", 2)
    assert actual["losses"] == pytest.approx(expected["losses"], rel=1e-3)
