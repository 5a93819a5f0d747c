"""Stand-ins for the data that the scripts would download: of the same formats and shapes, small,
and with something in them to learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

TRAINING_DIGITS, TEST_DIGITS = 1920, 1000


def nothing(folder: Path) -> None:
    """A folder that a script expects to be there."""
    folder.mkdir(parents=True, exist_ok=True)


def digits(folder: Path) -> None:
    """MNIST's four files: ten patterns under noise."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    patterns = random.integers(0, 256, (10, 7, 7)).repeat(4, axis=1).repeat(4, axis=2)
    for name, count in (("train", TRAINING_DIGITS), ("t10k", TEST_DIGITS)):
        labels = random.integers(0, 10, count).astype(np.uint8)
        noise = random.integers(0, 256, (count, 28, 28))
        images = ((3 * patterns[labels] + noise) // 4).astype(np.uint8)
        for kind, array in (("images", images), ("labels", labels)):
            # The magic number's last bytes are the type (8: uint8) and the number of dimensions.
            header = np.array([8 << 8 | array.ndim, *array.shape], ">i4").tobytes()
            (raw / f"{name}-{kind}-idx{array.ndim}-ubyte").write_bytes(header + array.tobytes())


def photographs(folder: Path, count: int = 8, size: int = 256) -> None:
    """JPEG files of smooth colours."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for i in range(count):
        small = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8))
        small.resize((size, size), Image.Resampling.BICUBIC).save(folder / f"{i % 4}_{i}.jpg")


def photographs_to_enlarge(folder: Path) -> None:
    """BSDS300's folders."""
    for part in ("train", "test"):
        photographs(folder / "BSDS300" / "images" / part)


def text(folder: Path, vocabulary: int = 1000, words: int = 24000) -> None:
    """WikiText's three files: each word is often followed by the same few."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    successors = random.integers(0, vocabulary, (vocabulary, 4))
    for part, count in (("train", words), ("valid", words // 6), ("test", words // 6)):
        word, lines = 0, []
        for _ in range(count // 20):
            line = []
            for choice in random.integers(0, 4, 20):
                word = successors[word, choice]
                line.append(f"w{word}")
            lines.append(" ".join(line))
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n")


def citations(folder: Path, papers: int = 2000, classes: int = 7, words: int = 200) -> None:
    """Cora's two files: papers cite others of their class, with which they share words."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    of_class = random.integers(0, classes, papers)
    usual = random.random((classes, words)) < 0.1
    used = (usual[of_class] & (random.random((papers, words)) < 0.5)) | (
        random.random((papers, words)) < 0.01
    )
    used[:, 0] = True
    content = (
        f"{1000 + i}\t" + "\t".join(map(str, used[i].astype(int))) + f"\tClass_{of_class[i]}"
        for i in range(papers)
    )
    (folder / "cora.content").write_text("\n".join(content) + "\n")
    cites = []
    for i in range(papers):
        for j in random.choice(np.flatnonzero(of_class == of_class[i]), 2):
            cites.append(f"{1000 + j}\t{1000 + i}")
    (folder / "cora.cites").write_text("\n".join(cites) + "\n")


def waves(folder: Path) -> None:
    """What generate_sine_wave.py writes, shorter."""
    import torch

    random = np.random.default_rng(2)
    x = np.arange(200) + random.integers(-80, 80, (40, 1))
    torch.save(torch.from_numpy(np.sin(x / 20.0)), folder / "traindata.pt")


def sentence_pairs(folder: Path) -> None:
    """MRPC as ``datasets`` saves it, a small BERT with its tokenizer, and a metric: two sentences
    are equivalent if they share their second word."""
    import datasets
    import transformers

    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(200)]
    parts = {}
    for part, count in (("train", 320), ("validation", 64)):
        first, second = random.integers(0, 200, (2, count, 12))
        labels = random.integers(0, 2, count)
        second[:, 1] = np.where(labels, first[:, 1], (first[:, 1] + 1) % 200)
        lengths = random.integers(4, 13, (2, count))
        columns: dict[str, list] = {"idx": list(range(count)), "label": labels.tolist()}
        for name, sentences, of in (("1", first, lengths[0]), ("2", second, lengths[1])):
            columns[f"sentence{name}"] = [
                " ".join(words[w] for w in sentence[:length])
                for sentence, length in zip(sentences, of, strict=True)
            ]
        parts[part] = datasets.Dataset.from_dict(columns)
    datasets.DatasetDict(parts).save_to_disk(folder / "mrpc")

    bert = folder / "bert"
    bert.mkdir(exist_ok=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (bert / "vocab.txt").write_text("\n".join(special + words) + "\n")
    transformers.BertTokenizerFast(str(bert / "vocab.txt")).save_pretrained(bert)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.BertConfig(vocab_size=205, intermediate_size=128, **sizes)
    transformers.set_seed(0)
    transformers.BertForSequenceClassification(config).save_pretrained(bert)

    (folder / "accuracy.py").write_text(_ACCURACY)


_ACCURACY = """
import datasets
import evaluate


class Accuracy(evaluate.Metric):
    def _info(self):
        kinds = {name: datasets.Value("int64") for name in ("predictions", "references")}
        return evaluate.MetricInfo("", "", datasets.Features(kinds))

    def _compute(self, predictions, references):
        hits = [a == b for a, b in zip(predictions, references)]
        return {"accuracy": sum(hits) / len(hits)}
"""
