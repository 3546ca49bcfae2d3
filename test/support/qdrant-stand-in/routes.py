"""The routes of `server.py`. Each validates its request with the models of Qdrant's client and calls the database."""

from pydantic import TypeAdapter
from qdrant_client import models

from answers import Refused

SELECTOR = TypeAdapter(models.PointsSelector)
VECTOR_NAME = TypeAdapter(models.VectorNameConfig)


def filters_in(asked):
    """All filters of a request, its searches, and their prefetches."""
    if isinstance(asked, list):
        return [found for each in asked for found in filters_in(each)]
    if isinstance(asked, models.Filter):
        return [asked]
    inner = [getattr(asked, name, None) for name in ("filter", "update_filter", "searches", "prefetch")]
    return filters_in([each for each in inner if each is not None])


def checked(server, name, asked):
    """Refuses filters on fields without an index, like a server in strict mode and Qdrant's cloud by default."""
    indexed = server.database.indexed(name)
    for each in filters_in(asked):
        conditions = [condition for kind in (each.must, each.should, each.must_not) for condition in (kind if isinstance(kind, list) else [kind])]
        for condition in conditions:
            if isinstance(condition, models.FieldCondition) and condition.key not in indexed:
                raise Refused(f'Index required but not found for "{condition.key}". Help: Create an index for this key or use a different filter.')
    return asked


def create_collection(server, request, name):
    return server.database.create_collection(name, models.CreateCollection.model_validate(request))


def update_collection(server, request, name):
    return server.database.update_collection(name, models.UpdateCollection.model_validate(request))


def get_collection(server, _request, name):
    return server.database.info(name)


def delete_collection(server, _request, name):
    return server.database.delete_collection(name)


def collection_exists(server, _request, name):
    return {"exists": name in server.database.names()}


def list_collections(server, _request):
    return {"collections": [{"name": name} for name in server.database.names()]}


def create_index(server, request, name):
    asked = models.CreateFieldIndex.model_validate(request)
    return server.database.create_index(name, asked.field_name, asked.field_schema)


def create_vector(server, request, name, vector):
    return server.database.create_vector(name, vector, VECTOR_NAME.validate_python(request))


def delete_vector(server, _request, name, vector):
    return server.database.delete_vector(name, vector)


def upsert(server, request, name):
    return server.database.upsert(name, checked(server, name, models.PointsList.model_validate(request)))


def set_payload(server, request, name):
    return server.database.set_payload(name, checked(server, name, models.SetPayload.model_validate(request)))


def update_vectors(server, request, name):
    return server.database.update_vectors(name, checked(server, name, models.UpdateVectors.model_validate(request)))


def delete_vectors(server, request, name):
    return server.database.delete_vectors(name, checked(server, name, models.DeleteVectors.model_validate(request)))


def delete_points(server, request, name):
    return server.database.delete(name, checked(server, name, SELECTOR.validate_python(request)))


def retrieve(server, request, name):
    return server.database.retrieve(name, models.PointRequest.model_validate(request).ids)


def scroll(server, request, name):
    points, offset = server.database.scroll(name, checked(server, name, models.ScrollRequest.model_validate(request)))
    return {"points": points, "next_page_offset": offset}


def count(server, request, name):
    return {"count": server.database.count(name, checked(server, name, models.CountRequest.model_validate(request)))}


def facet(server, request, name):
    return {"hits": server.database.facet(name, checked(server, name, models.FacetRequest.model_validate(request)))}


def query_batch(server, request, name):
    asked = checked(server, name, models.QueryRequestBatch.model_validate(request))
    return [{"points": points} for points in server.database.query(name, asked.searches)]


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
    ("POST", "collections", "*", "points", "vectors", "delete"): delete_vectors,
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
