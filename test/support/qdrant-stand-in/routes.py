"""The routes of `server.py`: what is asked for, as calls of Qdrant's local mode."""

from collections import Counter

from pydantic import TypeAdapter
from qdrant_client import models
from qdrant_client.local.payload_value_extractor import value_by_key


class Missing(Exception):
    pass


class Taken(Exception):
    pass


class Refused(Exception):
    pass


SELECTOR = TypeAdapter(models.PointsSelector)
VECTOR_NAME = TypeAdapter(models.VectorNameConfig)
VERSION_WITH_CORPUS = (1, 19)


def dump(value):
    if isinstance(value, list):
        return [dump(each) for each in value]
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


def existing(server, name):
    if name not in server.database.collections:
        raise Missing(f"Not found: Collection `{name}` doesn't exist!")
    return server.database


def indexed(server, name, key):
    if key not in server.indexes.get(name, {}):
        raise Refused(f"No appropriate index for `{key}` in collection {name}. Please create one.")


def create_collection(server, request, name):
    asked = models.CreateCollection.model_validate(request)
    if name in server.database.collections:
        raise Taken(f"Wrong input: Collection `{name}` already exists!")
    return server.database.create_collection(name, vectors_config=asked.vectors or {}, sparse_vectors_config=asked.sparse_vectors)


def update_collection(server, request, name):
    models.UpdateCollection.model_validate(request)
    existing(server, name)
    return True


def get_collection(server, _request, name):
    info = dump(existing(server, name).get_collection(name))
    info["payload_schema"] = {key: {"data_type": kind, "points": 0} for key, kind in server.indexes.get(name, {}).items()}
    return info


def delete_collection(server, _request, name):
    server.indexes.pop(name, None)
    return name in server.database.collections and server.database.delete_collection(name)


def collection_exists(server, _request, name):
    return {"exists": name in server.database.collections}


def list_collections(server, _request):
    return {"collections": [{"name": name} for name in server.database.collections]}


def create_index(server, request, name):
    asked = models.CreateFieldIndex.model_validate(request)
    done = existing(server, name).create_payload_index(name, asked.field_name, asked.field_schema)
    kind = dump(asked.field_schema)
    server.indexes.setdefault(name, {})[asked.field_name] = kind["type"] if isinstance(kind, dict) else kind
    return dump(done)


def create_vector(server, request, name, vector):
    return dump(existing(server, name).create_vector_name(name, vector, VECTOR_NAME.validate_python(request)))


def delete_vector(server, _request, name, vector):
    return dump(existing(server, name).delete_vector_name(name, vector))


def upsert(server, request, name):
    asked = models.PointsList.model_validate(request)
    return dump(existing(server, name).upsert(name, asked.points, update_filter=asked.update_filter, update_mode=asked.update_mode))


def set_payload(server, request, name):
    asked = models.SetPayload.model_validate(request)
    points = models.FilterSelector(filter=asked.filter) if asked.filter is not None else asked.points
    return dump(existing(server, name).set_payload(name, asked.payload, points, key=asked.key))


def update_vectors(server, request, name):
    asked = models.UpdateVectors.model_validate(request)
    return dump(existing(server, name).update_vectors(name, asked.points, update_filter=asked.update_filter))


def delete_points(server, request, name):
    return dump(existing(server, name).delete(name, SELECTOR.validate_python(request)))


def retrieve(server, request, name):
    asked = models.PointRequest.model_validate(request)
    return dump(existing(server, name).retrieve(name, asked.ids))


def scroll(server, request, name):
    asked = models.ScrollRequest.model_validate(request)
    if asked.order_by is not None:
        indexed(server, name, asked.order_by if isinstance(asked.order_by, str) else asked.order_by.key)
    points, offset = existing(server, name).scroll(
        name, asked.filter, asked.limit or 10, asked.order_by, asked.offset,
        with_payload=True if asked.with_payload is None else asked.with_payload, with_vectors=asked.with_vector or False,
    )
    return {"points": dump(points), "next_page_offset": offset}


def count(server, request, name):
    asked = models.CountRequest.model_validate(request)
    return dump(existing(server, name).count(name, asked.filter))


def facet(server, request, name):
    asked = models.FacetRequest.model_validate(request)
    indexed(server, name, asked.key)
    # Counted here: the local mode spells strings that look like a UUID anew.
    points, _ = existing(server, name).scroll(name, asked.filter, max(1, len(server.database.collections[name].ids)), with_payload=[asked.key])
    counts = Counter(value for point in points for value in set(value_by_key(point.payload, asked.key) or []))
    hits = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: asked.limit or 10]
    return {"hits": [{"value": value, "count": many} for value, many in hits]}


def without_corpus(server, query):
    """A server that does not know a parameter passes over it."""
    if tuple(int(part) for part in server.options.version.split(".")[:2]) < VERSION_WITH_CORPUS and query.params is not None:
        query.params.idf = None
    prefetches = query.prefetch if isinstance(query.prefetch, list) else [query.prefetch] if query.prefetch else []
    for each in prefetches:
        without_corpus(server, each)


def query_batch(server, request, name):
    asked = models.QueryRequestBatch.model_validate(request)
    database = existing(server, name)
    answers = []
    for query in asked.searches:
        without_corpus(server, query)
        [answer] = database.query_batch_points(name, [query])
        answers.append({"points": dump(answer.points)})
    return answers


ROUTES = {
    ("GET", "collections"): list_collections,
    ("PUT", "collections", "*"): create_collection,
    ("GET", "collections", "*"): get_collection,
    ("GET", "collections", "*", "exists"): collection_exists,
    ("PATCH", "collections", "*"): update_collection,
    ("DELETE", "collections", "*"): delete_collection,
    ("PUT", "collections", "*", "index"): create_index,
    ("PUT", "collections", "*", "vectors", "*"): create_vector,
    ("DELETE", "collections", "*", "vectors", "*"): delete_vector,
    ("PUT", "collections", "*", "points"): upsert,
    ("POST", "collections", "*", "points"): retrieve,
    ("POST", "collections", "*", "points", "payload"): set_payload,
    ("PUT", "collections", "*", "points", "vectors"): update_vectors,
    ("POST", "collections", "*", "points", "delete"): delete_points,
    ("POST", "collections", "*", "points", "scroll"): scroll,
    ("POST", "collections", "*", "points", "count"): count,
    ("POST", "collections", "*", "facet"): facet,
    ("POST", "collections", "*", "points", "query", "batch"): query_batch,
}


def find_route(method, parts):
    for (wanted, *pattern), call in ROUTES.items():
        if wanted == method and len(pattern) == len(parts) and all(p in ("*", part) for p, part in zip(pattern, parts)):
            names = [part for p, part in zip(pattern, parts) if p == "*"]
            return lambda server, request: call(server, request, *names)
    return None
