"""Architectures of Hugging Face transformers, from small configurations without a download: each
is trained, saved, loaded in a fresh process and, where it generates, generates there, on the CPU
and on a device.

    pip install transformers
    python benchmarks/architectures.py --device lazy

Printed by architecture: the largest difference of a loss, relative to the first one, and beside it
that of a run on the CPU whose weights begin one rounding apart; the largest difference of what the
loaded model gives; whether both generate the same; and the device's time for a training step over
the CPU's, both measured in turns in one process, behind as many steps in which a device learns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers as hf

Inputs = dict[str, torch.Tensor]

VOCABULARY, LENGTH, BATCH = 96, 24, 4
# Sizes that all configurations of text models know by these names.
SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 64}  # fmt: skip


def _tokens() -> torch.Tensor:
    return torch.randint(5, VOCABULARY, (BATCH, LENGTH))


def _text() -> Inputs:
    tokens = _tokens()
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens}


def _classified_text() -> Inputs:
    return {**_text(), "labels": torch.arange(BATCH) % 3}


def _images() -> Inputs:
    return {"pixel_values": torch.randn(BATCH, 3, 32, 32), "labels": torch.arange(BATCH) % 3}


def _text_and_images() -> Inputs:
    return {
        "input_ids": _tokens(),
        "pixel_values": torch.randn(BATCH, 3, 32, 32),
        "return_loss": True,
    }


def _sound() -> Inputs:
    return {"input_values": torch.randn(BATCH, 2000), "labels": torch.arange(BATCH) % 3}


def _spectra() -> Inputs:
    return {"input_features": torch.randn(BATCH, 16, 60), "labels": _tokens()}


def _encoder(kind: str, **more: Any) -> Callable[[], Any]:
    config = getattr(hf, kind + "Config")
    model = getattr(hf, kind + "ForSequenceClassification")
    sizes = {**SMALL, "num_labels": 3, "max_position_embeddings": 64, **more}
    return lambda: model(config(**sizes))


def _decoder(kind: str, **more: Any) -> Callable[[], Any]:
    config, model = getattr(hf, kind + "Config"), getattr(hf, kind + "ForCausalLM")
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    return lambda: model(config(**{**SMALL, **ids, **more}))


# How each is made, and what it is given.
ARCHITECTURES: dict[str, tuple[Callable[[], Any], Callable[[], Inputs]]] = {
    "bert": (_encoder("Bert"), _classified_text),
    "roberta": (_encoder("Roberta"), _classified_text),
    "distilbert": (
        lambda: hf.DistilBertForSequenceClassification(
            hf.DistilBertConfig(vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4,
                                hidden_dim=64, num_labels=3)
        ),
        _classified_text,
    ),
    "albert": (_encoder("Albert", embedding_size=16), _classified_text),
    "electra": (_encoder("Electra", embedding_size=16), _classified_text),
    "deberta-v2": (_encoder("DebertaV2", relative_attention=True), _classified_text),
    "gpt2": (
        lambda: hf.GPT2LMHeadModel(
            hf.GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4,
                          bos_token_id=1, eos_token_id=2)
        ),
        _text,
    ),
    "gpt_neox": (_decoder("GPTNeoX"), _text),
    "opt": (_decoder("OPT", ffn_dim=64, word_embed_proj_dim=32), _text),
    "llama": (_decoder("Llama", num_key_value_heads=2), _text),
    "mistral": (_decoder("Mistral", num_key_value_heads=2), _text),
    "mixtral": (_decoder("Mixtral", num_key_value_heads=2, num_local_experts=4), _text),
    "qwen2": (_decoder("Qwen2", num_key_value_heads=2), _text),
    "gemma": (_decoder("Gemma", num_key_value_heads=2, head_dim=8), _text),
    "phi": (_decoder("Phi"), _text),
    "mamba": (_decoder("Mamba", state_size=8), _text),
    "t5": (
        lambda: hf.T5ForConditionalGeneration(
            hf.T5Config(vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=64, num_layers=2,
                        num_heads=4, decoder_start_token_id=0)
        ),
        _text,
    ),
    "bart": (
        lambda: hf.BartForConditionalGeneration(
            hf.BartConfig(vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2,
                          encoder_attention_heads=4, decoder_attention_heads=4,
                          encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64)
        ),
        _text,
    ),
    "vit": (
        lambda: hf.ViTForImageClassification(
            hf.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                         intermediate_size=64, image_size=32, patch_size=8, num_labels=3)
        ),
        _images,
    ),
    "resnet": (
        lambda: hf.ResNetForImageClassification(
            hf.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], num_labels=3)
        ),
        _images,
    ),
    "convnext": (
        lambda: hf.ConvNextForImageClassification(
            hf.ConvNextConfig(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2, num_labels=3,
                              image_size=32)
        ),
        _images,
    ),
    "clip": (
        lambda: hf.CLIPModel(
            hf.CLIPConfig(
                text_config={**SMALL, "max_position_embeddings": 64},
                vision_config={**{k: v for k, v in SMALL.items() if k != "vocab_size"},
                               "image_size": 32, "patch_size": 8},
                projection_dim=16,
            )
        ),
        _text_and_images,
    ),
    "wav2vec2": (
        lambda: hf.Wav2Vec2ForSequenceClassification(
            hf.Wav2Vec2Config(**SMALL, conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8),
                              num_feat_extract_layers=2, num_conv_pos_embeddings=16,
                              num_conv_pos_embedding_groups=4, num_labels=3, mask_time_prob=0.0)
        ),
        _sound,
    ),
    "whisper": (
        lambda: hf.WhisperForConditionalGeneration(
            hf.WhisperConfig(vocab_size=VOCABULARY, num_mel_bins=16, d_model=32, encoder_layers=2,
                             decoder_layers=2, encoder_attention_heads=4,
                             decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
                             max_source_positions=30, max_target_positions=64, pad_token_id=0,
                             bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
                             suppress_tokens=[], begin_suppress_tokens=[])
        ),
        _spectra,
    ),
}  # fmt: skip


class Training:
    """Steps of AdamW on one batch, on one device."""

    def __init__(self, name: str, device: str) -> None:
        torch.manual_seed(0)
        make, inputs = ARCHITECTURES[name]
        self.model = make().to(device).train()
        # Gradients that are zero but for rounding would decide whole steps with a smaller epsilon.
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, eps=1e-4)
        self.batch = _moved(inputs(), device)
        self.seed = 0

    def round_otherwise(self) -> None:
        """Moves each weight by about a unit of its last place."""
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.mul_(1 + 6e-8 * torch.randn_like(parameter).sign())

    def step(self) -> float:
        """The loss, and so all work of the step done."""
        torch.manual_seed(self.seed)  # of dropout
        self.seed += 1
        loss = self.model(**self.batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


def _moved(inputs: Inputs, device: str) -> Inputs:
    return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}


def _difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest, in the scale of the largest number expected."""
    scale = expected.double().abs().max().clamp_min(1e-6)
    return ((found.double() - expected.double()).abs().max() / scale).item()


def load_and_use(name: str, folder: str, device: str) -> dict[str, Any]:
    """What the saved model gives in evaluation, and what it generates."""
    torch.manual_seed(1)
    make, inputs = ARCHITECTURES[name]
    model = type(make()).from_pretrained(folder).to(device).eval()
    batch = _moved(inputs(), device)
    with torch.no_grad():
        given = model(**batch)
    outputs = given.logits if hasattr(given, "logits") else given.logits_per_image
    result = {"outputs": outputs.cpu().tolist()}
    if model.can_generate():
        batch.pop("labels")
        made = model.generate(**batch, max_new_tokens=12, do_sample=False)
        result["generated"] = made.cpu().tolist()
    return result


def compare(name: str, device: str, steps: int) -> dict[str, Any]:
    """One architecture, on the CPU and on the device."""
    cpu, apart, other = Training(name, "cpu"), Training(name, "cpu"), Training(name, device)
    apart.round_otherwise()
    times: dict[str, list[float]] = {"cpu": [], device: []}
    differences, first = [], 0.0
    for step in range(2 * steps):
        if step <= steps and step % 10 == 0 and device == "lazy":
            torch.lazy.wait_for_compiles()  # what it learns in the background
        losses = []
        for where, training in (("cpu", cpu), (device, other)):
            start = time.perf_counter()
            losses.append(training.step())
            times[where].append(time.perf_counter() - start)
        differences.append((abs(losses[1] - losses[0]), abs(apart.step() - losses[0])))
        first = first or losses[0]
    used = []
    with tempfile.TemporaryDirectory() as folder:
        for where, training in (("cpu", cpu), (device, other)):
            training.model.save_pretrained(f"{folder}/{where}")
            command = [sys.executable, __file__, "--load", name, f"{folder}/{where}", where]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            used.append(json.loads(done.stdout.rpartition("result ")[2]))
    late = {where: statistics.median(taken[steps:]) for where, taken in times.items()}
    return {
        "loss": max(of_device for of_device, _ in differences) / first,
        "apart": max(of_rounding for _, of_rounding in differences) / first,
        "outputs": _difference(torch.tensor(used[1]["outputs"]), torch.tensor(used[0]["outputs"])),
        "generated": used[1].get("generated") == used[0].get("generated"),
        "ratio": late[device] / late["cpu"],
        "milliseconds": late["cpu"] * 1e3,
    }


def _table_row(name: str, row: dict[str, Any]) -> str:
    differences = " | ".join(f"{row[key]:.0e}" for key in ("loss", "apart", "outputs"))
    times = f"{row['milliseconds']:.2f} | {row['ratio']:.2f}"
    return f"| {name} | {differences} | {row['generated']} | {times} |"


def main() -> None:
    """Parses the arguments and prints the table."""
    hf.utils.logging.disable_progress_bar()
    hf.utils.logging.set_verbosity_error()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="lazy")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--only", default=",".join(ARCHITECTURES))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--load", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load:
        print("result", json.dumps(load_and_use(*arguments.load)))
        return
    if arguments.device == "lazy":
        torch.lazy.config.rng = "eager"  # dropout's numbers are the CPU's
    torch.set_num_threads(arguments.threads)
    print("| architecture | loss | a rounding apart | outputs | generates the same | ms | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.only.split(","):
        try:
            print(_table_row(name, compare(name, arguments.device, arguments.steps)), flush=True)
        except Exception as error:
            reason = str(error).strip().splitlines()[-1]
            print(f"| {name} | failed: {reason} | | | | | |", flush=True)


if __name__ == "__main__":
    main()
