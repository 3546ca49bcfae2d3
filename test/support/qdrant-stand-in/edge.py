"""Collections in Qdrant's own engine, version 1.18. Each collection is one shard of `qdrant-edge-py` in its own folder.

Translates requests from the models of Qdrant's client to those of the engine, and refuses types that Etude doesn't send. A shard has
segments, payload indexes, word statistics and optimizers like a server. Its optimizers run only when a collection is updated.
"""

import shutil
from pathlib import Path
from uuid import uuid4

import numpy as np
import qdrant_edge as edge
from qdrant_client import models

from answers import Missing, Refused, Taken, dump

DISTANCES = {"Cosine": edge.Distance.Cosine}
MODES = {"upsert": edge.UpdateMode.Upsert, "insert_only": edge.UpdateMode.InsertOnly, "update_only": edge.UpdateMode.UpdateOnly}
INDEXES = {"keyword": edge.KeywordIndexParams, "integer": edge.IntegerIndexParams, "float": edge.FloatIndexParams, "bool": edge.BoolIndexParams}
HNSW = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
MAX_SIM = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
LIMIT = 10


class EdgeDatabase:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.shards = {}
        self.created = {}
        self.indexes = {}

    def names(self):
        return list(self.shards)

    def create_collection(self, name, asked):
        if name in self.shards:
            raise Taken(f"Wrong input: Collection `{name}` already exists!")
        folder = self.folder / uuid4().hex
        folder.mkdir(parents=True)
        self.indexes[name] = set()
        self.created[name] = asked.model_copy(update={"vectors": dict(asked.vectors or {})})
        self.shards[name] = (edge.EdgeShard.create(str(folder), config_of(asked)), folder)
        return True

    def update_collection(self, name, asked):
        shard, folder = self.shard(name), self.shards[name][1]
        shard.close()
        shard = edge.EdgeShard.load(str(folder), config_of(self.created[name], asked.optimizers_config))
        self.shards[name] = (shard, folder)
        shard.optimize()
        return True

    def delete_collection(self, name):
        shard, folder = self.shards.pop(name, (None, None))
        self.created.pop(name, None)
        self.indexes.pop(name, None)
        if shard is None:
            return False
        shard.close()
        shutil.rmtree(folder)
        return True

    def info(self, name):
        info = self.shard(name).info()
        kinds = {key: {"data_type": str(each.data_type).split(".")[-1].lower(), "points": each.points} for key, each in info.payload_schema.items()}
        params = {"vectors": dump(self.created[name].vectors), "sparse_vectors": dump(self.created[name].sparse_vectors) or {}}
        counts = {"points_count": info.points_count, "segments_count": info.segments_count}
        return {"status": "green", "optimizer_status": "ok", **counts, "config": {"params": params}, "payload_schema": kinds}

    def create_index(self, name, field, schema):
        given = {"type": schema} if isinstance(schema, str) else dump(schema)
        kind = INDEXES[given.pop("type")]
        done = self.update(name, edge.UpdateOperation.create_field_index(field, kind(**given)))
        self.indexes[name].add(field)
        return done

    def indexed(self, name):
        self.shard(name)
        return self.indexes[name]

    def create_vector(self, name, vector, asked):
        several = MAX_SIM if asked.dense.multivector_config else None
        done = self.update(name, edge.UpdateOperation.create_dense_vector(vector, asked.dense.size, DISTANCES[asked.dense.distance], several))
        self.created[name].vectors[vector] = models.VectorParams(**dump(asked.dense))
        return done

    def delete_vector(self, name, vector):
        done = self.update(name, edge.UpdateOperation.delete_vector_name(vector))
        self.created[name].vectors.pop(vector, None)
        return done

    def upsert(self, name, asked):
        points = [edge.Point(point.id, vectors_of(point.vector), point.payload) for point in asked.points]
        mode = MODES[asked.update_mode or "upsert"]
        return self.update(name, edge.UpdateOperation.upsert_points(points, filter_of(asked.update_filter), mode))

    def set_payload(self, name, asked):
        if asked.filter is not None:
            return self.update(name, edge.UpdateOperation.set_payload_by_filter(filter_of(asked.filter), asked.payload, asked.key))
        return self.update(name, edge.UpdateOperation.set_payload(asked.points, asked.payload, asked.key))

    def update_vectors(self, name, asked):
        points = [edge.PointVectors(point.id, vectors_of(point.vector)) for point in asked.points]
        return self.update(name, edge.UpdateOperation.update_vectors(points, filter_of(asked.update_filter)))

    def delete_vectors(self, name, asked):
        return self.update(name, edge.UpdateOperation.delete_vectors_by_filter(filter_of(asked.filter), asked.vector))

    def delete(self, name, asked):
        if isinstance(asked, models.FilterSelector):
            return self.update(name, edge.UpdateOperation.delete_points_by_filter(filter_of(asked.filter)))
        return self.update(name, edge.UpdateOperation.delete_points(asked.points))

    def retrieve(self, name, ids):
        return [record(point) for point in self.shard(name).retrieve(ids, with_payload=True, with_vector=False)]

    def scroll(self, name, asked):
        order = edge.OrderBy(asked.order_by.key, direction_of(asked.order_by)) if asked.order_by else None
        request = edge.ScrollRequest(asked.offset, asked.limit or LIMIT, filter_of(asked.filter), selected(asked.with_payload, True), False, order)
        points, following = self.shard(name).scroll(request)
        return [record(point) for point in points], None if following is None else str(following)

    def count(self, name, asked):
        return self.shard(name).count(edge.CountRequest(asked.exact is not False, filter_of(asked.filter)))

    def facet(self, name, asked):
        request = edge.FacetRequest(asked.key, asked.limit or LIMIT, bool(asked.exact), filter_of(asked.filter))
        return [{"value": hit.value, "count": hit.count} for hit in self.shard(name).facet(request).hits]

    def query(self, name, searches):
        answers = [self.shard(name).query(query_of(search)) for search in searches]
        return [[record(point) | {"version": point.version, "score": point.score} for point in points] for points in answers]

    def shard(self, name):
        if name not in self.shards:
            raise Missing(f"Not found: Collection `{name}` doesn't exist!")
        return self.shards[name][0]

    def update(self, name, operation):
        self.shard(name).update(operation)
        return {"operation_id": 0, "status": "completed"}


def config_of(asked, optimizers=None):
    vectors = {
        name: edge.EdgeVectorParams(params.size, DISTANCES[params.distance], multivector_config=MAX_SIM if params.multivector_config else None)
        for name, params in (asked.vectors or {}).items()
    }
    idf = {name: edge.Modifier.Idf if params.modifier else None for name, params in (asked.sparse_vectors or {}).items()}
    words = {name: edge.EdgeSparseVectorParams(modifier=modifier) for name, modifier in idf.items()}
    # A shard needs at least one vector, unlike a server.
    words = words if vectors or words else {"none": edge.EdgeSparseVectorParams()}
    graph = edge.HnswIndexConfig(**{**HNSW, **(dump(asked.hnsw_config) or {})})
    return edge.EdgeConfig(vectors, words, hnsw_config=graph, optimizers=edge.EdgeOptimizersConfig(**(dump(optimizers) or {})))


def vectors_of(named):
    return {name: vector_of(vector) for name, vector in named.items()}


def vector_of(vector):
    return edge.SparseVector(vector.indices, vector.values) if isinstance(vector, models.SparseVector) else vector


def query_of(asked, kind=edge.QueryRequest, **more):
    """A query, or a prefetch of one."""
    prefetch = [asked.prefetch] if asked.prefetch else []
    if kind is edge.QueryRequest:
        more = {"with_payload": selected(asked.with_payload, False), "offset": 0, "with_vector": False}
    return kind(
        limit=asked.limit or LIMIT,
        query=edge.Query.Nearest(vector_of(asked.query), using=asked.using),
        prefetches=[query_of(each, edge.Prefetch) for each in prefetch],
        filter=filter_of(asked.filter),
        score_threshold=None,
        params=None,
        **more,
    )


def filter_of(asked):
    return None if asked is None else edge.Filter(**{name: conditions_of(getattr(asked, name)) for name in ("must", "should", "must_not")})


def conditions_of(asked):
    return None if asked is None else [condition_of(each) for each in (asked if isinstance(asked, list) else [asked])]


def condition_of(asked):
    if isinstance(asked, models.Filter):
        return filter_of(asked)
    if isinstance(asked, models.HasIdCondition):
        return edge.HasIdCondition(set(asked.has_id))
    if isinstance(asked, models.HasVectorCondition):
        return edge.HasVectorCondition(asked.has_vector)
    if isinstance(asked, models.FieldCondition) and isinstance(asked.range, models.Range):
        return edge.FieldCondition(asked.key, range=edge.RangeFloat(asked.range.gte, asked.range.gt, asked.range.lte, asked.range.lt))
    if isinstance(asked, models.FieldCondition) and isinstance(asked.match, models.MatchValue):
        return edge.FieldCondition(asked.key, match=edge.MatchValue(plain(asked.match.value)))
    if isinstance(asked, models.FieldCondition) and isinstance(asked.match, models.MatchAny):
        return edge.FieldCondition(asked.key, match=edge.MatchAny(list(asked.match.any)))
    raise Refused(f"the stand-in doesn't support the condition {asked!r}")


def plain(value):
    """Wraps booleans for the engine's package, which reads Python's True as the number 1."""
    return np.bool_(value) if isinstance(value, bool) else value


def direction_of(order):
    return edge.Direction.Desc if order.direction == models.Direction.DESC else edge.Direction.Asc


def selected(asked, otherwise):
    return otherwise if asked is None else asked


def record(point):
    return {"id": str(point.id), "payload": point.payload}
