"""The scripts, their arguments, and what stands in for what they would download."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import data


@dataclass(frozen=True)
class Script:
    """A script, run in a copy of its folder."""

    path: str  # in its repository
    arguments: str = ""
    # Writers of data by the folder, relative to the script's, that they fill.
    data: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    # Texts of the script's folder that are exchanged for others, besides "cuda" for the device;
    # {device} in these is the device. They name it where a script does not, make a run shorter, or
    # leave a download out.
    exchanges: Mapping[str, str] = field(default_factory=dict)
    # Those that only the CPU needs, which PyTorch does not take for an accelerator.
    cpu_exchanges: Mapping[str, str] = field(default_factory=dict)
    processes: int = 1

    @property
    def name(self) -> str:
        """The folder and what else tells scripts apart."""
        folder, _, file = self.path.rpartition("/")
        words = [folder.rpartition("/")[2]] + [file] * (not file.startswith("main"))
        words += [w for w in self.arguments.split() if w in _TELLING]
        return " ".join(words)


# Arguments that are part of a name.
_TELLING = {"LSTM", "GRU", "RNN_TANH", "Transformer", "bf16", "--mixed-precision", "--dcp-api"}

_DIGITS = {"../data": data.digits}
_WORDS = {"data/wikitext-2": data.text}
_CORA = {"cora": data.citations}
# These scripts do not know of devices, and would go on until the pole is balanced.
_CART_POLE = {
    "count(1)": "range(1, 31)",
    "policy = Policy()": 'policy = Policy().to("{device}")',
    "model = Policy()": 'model = Policy().to("{device}")',
    "torch.from_numpy(state).float()": 'torch.from_numpy(state).float().to("{device}")',
    "torch.tensor(returns)": 'torch.tensor(returns, device="{device}")',
    "torch.tensor([R])": 'torch.tensor([R], device="{device}")',
}

# A number without a device's name is PyTorch's own accelerator.
_RANKS = {
    ".to(rank)": '.to(f"{device}:{rank}")',
    ".to(self.local_rank)": '.to(f"{device}:{self.local_rank}")',
    ".to(self.gpu_id)": '.to(f"{device}:{self.gpu_id}")',
    "nccl": "gloo",
}
_NO_RANKS = {
    "_min_gpu_count = 2": "_min_gpu_count = 1",
    "device_ids=[rank]": "",
    "device_ids=[self.local_rank]": "",
    "device_ids=[self.gpu_id]": "",
    "set_device_index(rank)": "is_available()",
    "device_index(rank)": "is_available()",
    'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))': "",
    ", device_id=device)": ")",
}

# FSDP2's example leaves the memory of its layers as it was allocated.
_RESET_LAYERS = {
    "        self.tok_embeddings.reset_parameters()":
        "        [layer.reset_parameters() for layer in self.layers]\n"
        "        self.tok_embeddings.reset_parameters()",
}  # fmt: skip

# What accelerate's examples would download.
_SENTENCES = {
    '"bert-base-cased"': '"bert"',
    'load_dataset("nyu-mll/glue", "mrpc")': '__import__("datasets").load_from_disk("mrpc")',
    'evaluate.load("glue", "mrpc")': 'evaluate.load("./accuracy.py")',
    '"lr": 2e-5': '"lr": 5e-4',
}

SCRIPTS = [
    Script("mnist/main.py", "--epochs 2", _DIGITS),
    Script("mnist_rnn/main.py", "--epochs 4 --accel", _DIGITS),
    Script(
        "mnist_hogwild/main.py",
        "--epochs 2 --cuda --num-processes 1",
        _DIGITS,
    ),
    Script(
        "mnist_forward_forward/main.py",
        "--epochs 40 --train_size 1000 --test_size 500",
        {"data": data.digits},
    ),
    Script("vae/main.py", "--epochs 6", {**_DIGITS, "results": data.nothing}),
    Script("siamese_network/main.py", "--epochs 1", _DIGITS),
    Script("dcgan/main.py", "--dataset fake --niter 1 --imageSize 64 --batchSize 32 --ngf 16 "
           "--ndf 16 --manualSeed 7 --accel"),
    *(
        Script("word_language_model/main.py", f"--model {model} --epochs 2 --emsize 64 --nhid 64 "
               f"--lr {rate} --log-interval 10 --accel", _WORDS)
        for model, rate in (("RNN_TANH", 5), ("LSTM", 20), ("GRU", 5), ("Transformer", 0.5))
    ),
    Script(
        "time_sequence_prediction/train.py",
        "--steps 2",
        {".": data.waves},
        {
            "seq.double()": 'seq.to("{device}", torch.double)',
            "dtype=torch.double)": 'dtype=torch.double, device="{device}")',
            "1:])": '1:]).to("{device}")',
            ":-1])": ':-1]).to("{device}")',
            "torch.from_numpy(": "(",
            "pred.detach()": "pred.detach().cpu()",
        },
    ),
    Script("reinforcement_learning/reinforce.py", "", {}, _CART_POLE),
    Script("reinforcement_learning/actor_critic.py", "", {}, _CART_POLE),
    Script(
        "regression/main.py",
        "",
        {},
        {
            "POLY_DEGREE = 4": 'torch.set_default_device("{device}"); POLY_DEGREE = 4',
            "torch.nn.Linear(W_target.size(0), 1)":
                'torch.nn.Linear(W_target.size(0), 1).to("{device}")',
        },
    ),
    Script("super_resolution/main.py", "--upscale_factor 3 --batchSize 4 --testBatchSize 4 "
           "--nEpochs 3 --lr 0.001 --threads 0 --accel", {"dataset": data.photographs_to_enlarge}),
    Script(
        "fast_neural_style/neural_style/neural_style.py",
        "train --dataset images --save-model-dir . --epochs 2 --image-size 64 --style-size 64 "
        "--style-image images/all/0_0.jpg --batch-size 2 --log-interval 1 --accel",
        {"images/all": data.photographs},
        {
            "weights=models.VGG16_Weights.IMAGENET1K_V1": "",
            "Image.ANTIALIAS": "Image.Resampling.LANCZOS",
        },
    ),
    Script(
        "gcn/main.py",
        "--epochs 100",
        _CORA,
        {"with requests.get(cora_url, stream=True) as tgz_file": "if False"},
    ),
    Script("gat/main.py", "--epochs 12 --hidden-dim 8 --num-heads 4", _CORA),
    Script(
        "imagenet/main.py",
        "--dummy --arch resnet18 --epochs 1 --lr 0.01 --batch-size 8 --print-freq 1 --seed 1 "
        "--workers 0",
        {},
        {"1281167": "96", "50000": "16"},
    ),
    Script("distributed/ddp/example.py", "", {}, _RANKS, _NO_RANKS, 2),
    *(
        Script("distributed/FSDP2/example.py", options, {}, {**_RANKS, **_RESET_LAYERS},
               _NO_RANKS, 2)
        for options in ("", "--mixed-precision", "--dcp-api --explicit-prefetching")
    ),
    Script("distributed/ddp-tutorial-series/multigpu_torchrun.py", "3 10", {}, _RANKS, _NO_RANKS,
           2),
    Script(
        "distributed/minGPT-ddp/mingpt/main.py",
        "data_config.path={folder}/data/input.txt data_config.truncate=0.01 "
        "data_config.block_size=32 gpt_config.n_layer=2 gpt_config.n_head=4 gpt_config.n_embd=64 "
        "trainer_config.max_epochs=1 trainer_config.use_amp=False trainer_config.batch_size=64",
        {},
        _RANKS,
        _NO_RANKS,
        2,
    ),
    Script(
        "distributed/tensor_parallelism/tensor_parallel_example.py", "", {}, _RANKS, _NO_RANKS, 2
    ),
    *(
        Script(f"examples/{file}", options, {".": data.sentence_pairs}, _SENTENCES)
        for file, options in (
            ("nlp_example.py", ""),
            ("nlp_example.py", "--mixed_precision bf16"),
            ("by_feature/gradient_accumulation.py", "--gradient_accumulation_steps 4"),
            ("by_feature/checkpointing.py", "--checkpointing_steps epoch --output_dir ."),
            ("by_feature/early_stopping.py", ""),
            ("by_feature/local_sgd.py", ""),
            ("by_feature/multi_process_metrics.py", ""),
        )
    ),
    Script(
        "examples/cv_example.py",
        "--data_dir photographs",
        {"photographs": lambda folder: data.photographs(folder, 40, 64)},
        {
            '"resnet50d", pretrained=True': '"resnet10t", pretrained=False',
            "224": "64",
            '"batch_size": 64': '"batch_size": 8',
        },
    ),
]  # fmt: skip
