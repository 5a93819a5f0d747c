"""Packages around PyTorch, as far as they are installed where this is run."""

from __future__ import annotations

import os
import tempfile

import torch


def safetensors(device: str):
    """safetensors: `save_file`, `load_file(device=...)`"""
    from safetensors.torch import load_file, save_file

    with tempfile.TemporaryDirectory() as folder:
        save_file({"x": torch.arange(4.0).to(device)}, f"{folder}/x.safetensors")
        return load_file(f"{folder}/x.safetensors", device=device)


def accelerate(device: str):
    """Accelerate: `Accelerator().prepare`, `backward`, `save_state`"""
    os.environ["ACCELERATE_TORCH_DEVICE"] = device
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    torch.manual_seed(0)
    accelerator = Accelerator()
    model = torch.nn.Linear(3, 2)
    model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters()))
    losses = []
    for _ in range(3):
        loss = model(torch.ones(2, 3, device=accelerator.device)).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        accelerator.load_state(folder)
    return [accelerator.device.type == device, losses]


# Of a model of transformers.
_SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}


def _generated(device: str, model):
    prompt = torch.tensor([[5, 6, 7]]).to(device)
    return model.to(device).generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=6, do_sample=False
    )


def transformers_decoder(device: str):
    """transformers: a small Llama, loss and gradients, `generate`"""
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        **_SMALL, num_attention_heads=4, num_key_value_heads=2, pad_token_id=0
    )
    model = transformers.LlamaForCausalLM(config).to(device)
    tokens = torch.arange(12).view(1, 12).to(device)
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    return [loss.item(), _generated(device, model.eval())]


def transformers_encoder(device: str):
    """transformers: a small BERT, in training"""
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        **_SMALL, num_attention_heads=2, hidden_dropout_prob=0, attention_probs_dropout_prob=0
    )
    model = transformers.BertForSequenceClassification(config).to(device)
    tokens = torch.arange(10).view(1, 10).to(device)
    loss = model(input_ids=tokens, labels=torch.tensor([1]).to(device)).loss
    loss.backward()
    return [loss.item(), model.classifier.weight.grad]


def torchmetrics(device: str):
    """torchmetrics: accuracy kept on the device"""
    from torchmetrics.classification import MulticlassAccuracy

    metric = MulticlassAccuracy(num_classes=3).to(device)
    for step in range(3):
        metric.update(torch.eye(3).roll(step, 0).to(device), torch.arange(3).to(device))
    return metric.compute()


def lightning(device: str):
    """Lightning: `Trainer(accelerator=...)` fits, measures, saves and goes on"""
    import lightning
    from torch.utils.data import DataLoader, TensorDataset
    from torchmetrics.classification import MulticlassAccuracy

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(4, 3)
            self.accuracy = MulticlassAccuracy(num_classes=3)

        def training_step(self, batch, index):
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

        def validation_step(self, batch, index):
            self.accuracy(self.layer(batch[0]), batch[1])
            self.log("accuracy", self.accuracy)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-2)

    inputs = torch.arange(48.0).view(12, 4).sin()
    batches = DataLoader(TensorDataset(inputs, inputs.argmax(1) % 3), 4)
    checkpoint = None
    with tempfile.TemporaryDirectory() as folder:
        for epochs in (2, 4):
            trainer = lightning.Trainer(
                accelerator=device,
                devices=1,
                max_epochs=epochs,
                default_root_dir=folder,
                logger=False,
                enable_progress_bar=False,
                enable_model_summary=False,
            )
            model = Model()
            trainer.fit(model, batches, batches, ckpt_path=checkpoint)
            checkpoint = trainer.checkpoint_callback.best_model_path
    return [trainer.callback_metrics["accuracy"], model.layer.weight]


def peft(device: str):
    """PEFT: LoRA on a small GPT-2, trained, merged"""
    import transformers
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=64,
        n_embd=32,
        n_layer=2,
        n_head=2,
        n_positions=32,
        embd_pdrop=0,
        attn_pdrop=0,
        resid_pdrop=0,
        pad_token_id=0,
    )
    adapted = LoraConfig(r=4, target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True)
    model = get_peft_model(transformers.GPT2LMHeadModel(config), adapted).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    tokens = torch.arange(12).view(1, 12).to(device)
    for _ in range(3):
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return [loss.item(), model.merge_and_unload()(input_ids=tokens).logits]
