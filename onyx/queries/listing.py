"""All that a catalog has for a user, as rows: for onyx provider list, and the page of a gateway."""

from __future__ import annotations

from registration.queries.compatibility import Compatibility
from registration.queries.providers import Market


def listed(market: Market, may: Compatibility) -> dict[str, list[dict[str, object]]]:
    """Facts by kind; ``at``: the names of cycle providers where the user may have it."""

    def names(mask: int) -> list[str]:
        return [site.name for at, site in enumerate(may.sites) if mask >> at & 1]

    open_to_user = names(may.execute_mask)
    relations = sorted(market.relations.values(), key=lambda each: each.name)
    functions = sorted(market.functions.values(), key=lambda each: (each.name, each.uri))
    return {
        "cycle provider": [
            {
                "name": each.name,
                "address": f"{each.host}:{each.port}" if each.port else "",
                "memory": each.memory_megabytes,
                "cores": each.cores,
                "price_per_second": each.price_per_second,
                "usable": each.name in open_to_user,
            }
            for each in may.sites
        ],
        "relation": [
            {
                "name": each.name,
                "format": each.format,
                "columns": [f"{column.name} {column.type}" for column in each.columns],
                "rows": each.rows,
                "bytes": each.bytes,
                "read_at": names(may.read_mask(each.uri)),
                "rows_at": names(may.flow_mask(each.uri)),
            }
            for each in relations
        ],
        "function": [
            {
                "name": each.name,
                "provider": market.function_providers[each.provider].name,
                "kind": each.kind,
                "takes": [f"{name} {form}" for name, form in each.inputs],
                "gives": [f"{name} {form}".strip() for name, form in each.outputs],
                "at": names(may.function_mask(each.uri)),
                "certified": each.certificate is not None,
            }
            for each in functions
        ],
        "forbidden": [each._asdict() for each in may.denials()],
    }
