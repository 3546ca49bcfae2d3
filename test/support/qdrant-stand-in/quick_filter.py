"""Makes the local mode's filters bearable: it tries every condition on every point, one by one.

Points that miss a plain condition (a tenant, an id) are left out before; what is left is judged by the local mode itself.
"""

import numpy as np
from qdrant_client import models
from qdrant_client.local import local_collection

thorough = local_collection.calculate_payload_mask


def quick(payloads, payload_filter, ids_inv, deleted_per_vector):
    must = (payload_filter.must or []) if payload_filter is not None else []
    conditions = must if isinstance(must, list) else [must]
    plain = [
        (condition.key, condition.match.value)
        for condition in conditions
        if isinstance(condition, models.FieldCondition) and isinstance(condition.match, models.MatchValue) and "." not in condition.key and "[" not in condition.key
    ]
    ids = [set(map(str, condition.has_id)) for condition in conditions if isinstance(condition, models.HasIdCondition)]
    if not plain and not ids:
        return thorough(payloads, payload_filter, ids_inv, deleted_per_vector)

    def may_fit(i, payload):
        if any(str(ids_inv[i]) not in wanted for wanted in ids):
            return False
        return all(payload.get(key) == value or isinstance(payload.get(key), list) for key, value in plain)

    chosen = [i for i, payload in enumerate(payloads) if may_fit(i, payload or {})]
    mask = np.zeros(len(payloads), dtype=bool)
    if chosen:
        some = {name: deleted[chosen] for name, deleted in deleted_per_vector.items()}
        mask[chosen] = thorough([payloads[i] for i in chosen], payload_filter, [ids_inv[i] for i in chosen], some)
    return mask


def install():
    local_collection.calculate_payload_mask = quick
