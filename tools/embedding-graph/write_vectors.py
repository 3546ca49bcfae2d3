"""Writes libs/model/test/sentence-vectors.json: vectors of all-MiniLM-L6-v2 for some texts, computed without its graph.

    python write_vectors.py FOLDER OUT.json

FOLDER holds `model.safetensors`, `config.json` and `tokenizer.json`. PyPI's `tokenizers` makes the tokens, and numpy computes in
float64. Etude's own runtime and tokenizer are not used. `vector` is rounded to 8 bits wherever the graph rounds; `exact` is never
rounded.
"""

import json
import math
import struct
import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

TOKENS_MAX = 128
WINDOWS_MAX = 8
STEPS = 64
START, END = 101, 102  # [CLS] and [SEP]
DIGITS = 6
TEXTS = [
    "Write a function that returns the sum of the even numbers in a list.",
    "x",
    "",
    "Ann moved to Lisbon in March and works from home on Fridays.",
    "naïve café ÅNGSTRÖM Straße 😀",
    "日本語のテキスト and русский текст",
    "def parse_csv(line):\n\treturn [cell.strip() for cell in line.split(',')]\n",
    "tab\tnew\r\nline\u00a0nbsp\u200bzero\u0007bell",
    "antidisestablishmentarianism " + "q" * 150,
    "word " * 200,
    "Read lines of CSV from standard input and print the average of the second column. " * 60,
]


def tensors(path: Path) -> dict[str, np.ndarray]:
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    data = memoryview(raw)[8 + length :]
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"]).astype(np.float64)
        for name, entry in header.items()
        if entry["dtype"] == "F32"
    }


def rounded_product(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x times the transposed weight. Weights have 7 bits and a sign, with a scale per row. x has 8 bits without a sign, and one scale."""
    row_steps = np.abs(weight).max(1) / STEPS
    small = np.round(weight / row_steps[:, None])
    low, high = min(0.0, x.min()), max(0.0, x.max())
    step = (high - low) / 255
    zero = np.round(-low / step)
    value = np.clip(np.round(x / step) + zero, 0, 255)
    return (value - zero) @ small.T * step * row_steps


def sentence_vector(ids: list[int], weights: dict[str, np.ndarray], config: dict, rounds: bool) -> np.ndarray:
    heads = config["num_attention_heads"]
    erf = np.vectorize(math.erf)

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        weight = weights[f"{name}.weight"]
        return (rounded_product(x, weight) if rounds else x @ weight.T) + weights[f"{name}.bias"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def split(x: np.ndarray) -> np.ndarray:
        return x.reshape(len(ids), heads, -1).transpose(1, 0, 2)

    x = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for number in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{number}"
        query, key, value = (split(linear(x, f"{at}.attention.self.{part}")) for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = (shares @ value).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(linear(mixed, f"{at}.attention.output.dense") + x, f"{at}.attention.output.LayerNorm")
        wide = linear(x, f"{at}.intermediate.dense")
        gelu = wide * (1 + erf(wide / math.sqrt(2))) / 2
        x = norm(linear(gelu, f"{at}.output.dense") + x, f"{at}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def text_vector(ids: list[int], weights: dict[str, np.ndarray], config: dict, rounds: bool) -> list[float]:
    """The vector of a text. For a text longer than the model takes: the mean over its first windows, weighted by their tokens."""
    room = TOKENS_MAX - 2
    starts = range(0, min(max(len(ids), 1), WINDOWS_MAX * room), room)
    windows = [[START, *ids[start : start + room], END] for start in starts]
    total = sum(len(window) * sentence_vector(window, weights, config, rounds) for window in windows)
    return [round(float(value), DIGITS) for value in total / np.linalg.norm(total)]


def write(folder: Path, out: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    weights = tensors(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    lines = []
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        vector, exact = (text_vector(ids, weights, config, rounds) for rounds in (True, False))
        lines.append(json.dumps({"text": text, "vector": vector, "exact": exact}))
    out.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{out}: {len(TEXTS)} texts")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    write(Path(sys.argv[1]), Path(sys.argv[2]))
