"""Writes libs/model/graphs/all-minilm-l6-v2.onnx: the arithmetic of all-MiniLM-L6-v2 in 8 bits, with none of its weights.

    python write_graph.py FOLDER OUT.onnx

FOLDER holds the model's `model.safetensors` and `config.json`. Every weight in the graph is a place in `model.safetensors`
(file, offset, length), so the file that is fetched stays untouched and the graph that is committed stays small. Needs PyPI's
`onnx` (1.18 or newer). The same input always gives the same bytes.

In:  input_ids: int64 [1, tokens], one text. In a batch, the scale of its rounded values would depend on the other texts.
Out: sentence_embedding: float32 [1, 384], the mean over the tokens, of length 1.

The architecture is BERT's encoder (Devlin et al. 2018, arXiv:1810.04805) with the exact GELU; mean pooling as in Sentence-BERT
(Reimers and Gurevych 2019, arXiv:1908.10084).
"""

import json
import math
import struct
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = "model.safetensors"
OPSET = 18
IR_VERSION = 9
# Steps on either side of 0 to which weights are rounded. With 7 bits, a sum of two products fits into 16 bits. Processors without special
# instructions have only 16 bits for the sum, so every machine gives the same vectors.
STEPS = 64


class Weights:
    """The header of a safetensors file: eight bytes of length, then JSON with type, shape and place of every tensor."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            self._tensors = json.loads(file.read(length))
        self._data_at = 8 + length

    def reference(self, name: str) -> TensorProto:
        tensor = self._tensors[name]
        if tensor["dtype"] != "F32":
            raise SystemExit(f"{name} is {tensor['dtype']}; only F32 is written")
        begin, end = tensor["data_offsets"]
        proto = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=tensor["shape"])
        proto.data_location = TensorProto.EXTERNAL
        place = {"location": WEIGHTS, "offset": self._data_at + begin, "length": end - begin}
        for key, value in place.items():
            proto.external_data.add(key=key, value=str(value))
        return proto


class Graph:
    """Collects nodes in the order of their use. A node has the name of its output."""

    def __init__(self, weights: Weights, epsilon: float) -> None:
        self._weights = weights
        self._epsilon = epsilon
        self.nodes = []
        self.initializers = {}
        self._rounded = {}

    def node(self, kind: str, name: str, *inputs: str, **attributes) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def weight(self, name: str) -> str:
        self.initializers[name] = self._weights.reference(name)
        return name

    def number(self, name: str, value: float) -> str:
        return self._value(name, np.float32(value))

    def integers(self, name: str, *values: int) -> str:
        return self._value(name, np.array(values, np.int64))

    def _value(self, name: str, value) -> str:
        self.initializers[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def rounded(self, x: str) -> tuple[str, str, str]:
        """A layer's input in 8 bits, with its scale and its zero."""
        if x not in self._rounded:
            names = (f"{x}/rounded", f"{x}/scale", f"{x}/zero")
            self.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], list(names), name=names[0]))
            self._rounded[x] = names
        return self._rounded[x]

    def linear(self, name: str, x: str, layer: str) -> str:
        # The file has the weight as [out, in] in 32 bits. When the runtime loads the graph, it computes once what depends only on weights.
        weight = self.weight(f"{layer}.weight")
        size = self.node("Abs", f"{name}/size", weight)
        largest = self.node("ReduceMax", f"{name}/largest", size, self.integers("axis_1", 1), keepdims=0)
        scale = self.node("Div", f"{name}/step", largest, self.number("steps", STEPS))
        zero = self.node("Cast", f"{name}/zero", self.node("Sub", f"{name}/nothing", largest, largest), to=TensorProto.INT8)
        small = self.node("QuantizeLinear", f"{name}/small", weight, scale, zero, axis=0)
        turned = self.node("Transpose", f"{name}/weight", small, perm=[1, 0])
        value, value_scale, value_zero = self.rounded(x)
        product = self.node("MatMulInteger", f"{name}/product", value, turned, value_zero)
        scales = self.node("Mul", f"{name}/scales", value_scale, scale)
        real = self.node("Mul", f"{name}/real", self.node("Cast", f"{name}/sums", product, to=TensorProto.FLOAT), scales)
        return self.node("Add", name, real, self.weight(f"{layer}.bias"))

    def normalized(self, name: str, x: str, layer: str) -> str:
        scale, shift = self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")
        return self.node("LayerNormalization", name, x, scale, shift, axis=-1, epsilon=self._epsilon)


def embeddings(g: Graph) -> str:
    tokens = g.node("Shape", "tokens", "input_ids", start=1, end=2)
    words = g.node("Gather", "words", g.weight("embeddings.word_embeddings.weight"), "input_ids")
    places = g.weight("embeddings.position_embeddings.weight")
    positions = g.node("Slice", "positions", places, g.integers("first", 0), tokens, g.integers("axis_0", 0))
    # Every text is the first text of a pair, so all tokens have the same row.
    types = g.weight("embeddings.token_type_embeddings.weight")
    kind = g.node("Gather", "kind", types, g.integers("first_type", 0), axis=0)
    placed = g.node("Add", "words_at_places", words, positions)
    return g.normalized("embedded", g.node("Add", "words_of_kind", placed, kind), "embeddings.LayerNorm")


def attention(g: Graph, at: str, x: str, layer: str, heads: int) -> str:
    query, key, value = (g.linear(f"{at}/{part}", x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value"))
    seen = g.node("MultiHeadAttention", f"{at}/seen", query, key, value, num_heads=heads, domain="com.microsoft")
    return g.linear(f"{at}/attention", seen, f"{layer}.attention.output.dense")


def gelu(g: Graph, at: str, x: str) -> str:
    """x / 2 * (1 + erf(x / sqrt 2)), in the form that runtimes know how to fuse."""
    error = g.node("Erf", f"{at}/erf", g.node("Div", f"{at}/by_root_two", x, "root_two"))
    weighted = g.node("Mul", f"{at}/weighted", x, g.node("Add", f"{at}/erf_plus_one", error, "one"))
    return g.node("Mul", f"{at}/gelu", weighted, "half")


def encoder_layer(g: Graph, number: int, x: str, heads: int) -> str:
    at, layer = f"layer_{number}", f"encoder.layer.{number}"
    attended = g.node("Add", f"{at}/attended", attention(g, at, x, layer, heads), x)
    middle = g.normalized(f"{at}/middle", attended, f"{layer}.attention.output.LayerNorm")
    wide = gelu(g, at, g.linear(f"{at}/wide", middle, f"{layer}.intermediate.dense"))
    narrow = g.linear(f"{at}/narrow", wide, f"{layer}.output.dense")
    return g.normalized(at, g.node("Add", f"{at}/summed", narrow, middle), f"{layer}.output.LayerNorm")


def pooled(g: Graph, x: str) -> str:
    axis = g.integers("axis_1", 1)
    mean = g.node("ReduceMean", "mean", x, axis, keepdims=0)
    return g.node("Div", "sentence_embedding", mean, g.node("ReduceL2", "length", mean, axis, keepdims=1))


def write(folder: Path, out: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    g = Graph(Weights(folder / WEIGHTS), config["layer_norm_eps"])
    g.number("root_two", math.sqrt(2))
    g.number("one", 1)
    g.number("half", 0.5)
    x = embeddings(g)
    for number in range(config["num_hidden_layers"]):
        x = encoder_layer(g, number, x, heads)
    pooled(g, x)

    def value(name: str, kind: int, *shape) -> object:
        return helper.make_tensor_value_info(name, kind, list(shape))

    inputs = [value("input_ids", TensorProto.INT64, 1, "tokens")]
    outputs = [value("sentence_embedding", TensorProto.FLOAT, 1, hidden)]
    graph = helper.make_graph(g.nodes, "all-MiniLM-L6-v2", inputs, outputs, list(g.initializers.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)], ir_version=IR_VERSION)
    model.producer_name = "etude"
    model.producer_version = ""
    out.write_bytes(model.SerializeToString(deterministic=True))
    print(f"{out}: {out.stat().st_size} bytes, {len(g.nodes)} nodes")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    write(Path(sys.argv[1]), Path(sys.argv[2]))
