"""Collections in the local mode of Qdrant's Python client, which does in Python what the engine does.

What it leaves out and a server insists on is checked here: ordering and facets need a payload index.
"""

from collections import Counter

from qdrant_client import models
from qdrant_client.local.payload_value_extractor import value_by_key
from qdrant_client.local.qdrant_local import QdrantLocal

import quick_filter
from answers import Missing, Refused, Taken, dump

LIMIT = 10


class LocalDatabase:
    def __init__(self):
        quick_filter.install()
        self.database = QdrantLocal(location=":memory:", force_disable_check_same_thread=True)
        self.indexes = {}

    def names(self):
        return list(self.database.collections)

    def create_collection(self, name, asked):
        if name in self.database.collections:
            raise Taken(f"Wrong input: Collection `{name}` already exists!")
        return self.database.create_collection(name, vectors_config=asked.vectors or {}, sparse_vectors_config=asked.sparse_vectors)

    def delete_collection(self, name):
        self.indexes.pop(name, None)
        return name in self.database.collections and self.database.delete_collection(name)

    def info(self, name):
        info = dump(self.existing(name).get_collection(name))
        info["payload_schema"] = {key: {"data_type": kind, "points": 0} for key, kind in self.indexes.get(name, {}).items()}
        return info

    def update_collection(self, name, _asked):
        """There is nothing to optimize."""
        self.existing(name)
        return True

    def indexed(self, name):
        self.existing(name)
        return self.indexes.get(name, {})

    def create_index(self, name, field, schema):
        done = self.existing(name).create_payload_index(name, field, schema)
        kind = dump(schema)
        self.indexes.setdefault(name, {})[field] = kind["type"] if isinstance(kind, dict) else kind
        return dump(done)

    def create_vector(self, name, vector, asked):
        return dump(self.existing(name).create_vector_name(name, vector, asked))

    def delete_vector(self, name, vector):
        return dump(self.existing(name).delete_vector_name(name, vector))

    def upsert(self, name, asked):
        return dump(self.existing(name).upsert(name, asked.points, update_filter=asked.update_filter, update_mode=asked.update_mode))

    def set_payload(self, name, asked):
        points = models.FilterSelector(filter=asked.filter) if asked.filter is not None else asked.points
        return dump(self.existing(name).set_payload(name, asked.payload, points, key=asked.key))

    def update_vectors(self, name, asked):
        return dump(self.existing(name).update_vectors(name, asked.points, update_filter=asked.update_filter))

    def delete_vectors(self, name, asked):
        points = models.FilterSelector(filter=asked.filter) if asked.filter is not None else asked.points
        return dump(self.existing(name).delete_vectors(name, asked.vector, points))

    def delete(self, name, asked):
        return dump(self.existing(name).delete(name, asked))

    def retrieve(self, name, ids):
        return dump(self.existing(name).retrieve(name, ids))

    def scroll(self, name, asked):
        if asked.order_by is not None:
            self.need_index(name, asked.order_by.key)
        payload = True if asked.with_payload is None else asked.with_payload
        points, offset = self.existing(name).scroll(name, asked.filter, asked.limit or LIMIT, asked.order_by, asked.offset, with_payload=payload)
        return dump(points), offset

    def count(self, name, asked):
        return self.existing(name).count(name, asked.filter).count

    def facet(self, name, asked):
        self.need_index(name, asked.key)
        # Counted here: the local mode spells strings that look like a UUID anew.
        points, _ = self.existing(name).scroll(name, asked.filter, max(1, len(self.database.collections[name].ids)), with_payload=[asked.key])
        counts = Counter(value for point in points for value in set(value_by_key(point.payload, asked.key) or []))
        hits = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: asked.limit or LIMIT]
        return [{"value": value, "count": many} for value, many in hits]

    def query(self, name, searches):
        database = self.existing(name)
        return [dump(database.query_batch_points(name, [search])[0].points) for search in searches]

    def existing(self, name):
        if name not in self.database.collections:
            raise Missing(f"Not found: Collection `{name}` doesn't exist!")
        return self.database

    def need_index(self, name, key):
        if key not in self.indexed(name):
            raise Refused(f"No appropriate index for `{key}` in collection {name}. Please create one.")
