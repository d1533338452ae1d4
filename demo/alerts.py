"""The demo's warnings source: alerts after the manner of the Common Alerting Protocol 1.2.

One alert has a block of information for each language, each with several areas; everything is in
one namespace, as the default or with a prefix.  Texts are in several scripts.
"""

from __future__ import annotations

from random import Random

from demo.markup import block, document, element, text
from demo.words import CITY_OF_AREA, sentences, time_stamp

CAP = "urn:oasis:names:tc:emergency:cap:1.2"
# Event -> (category, text in each language).
EVENTS = {
    "Tsunami": ("Geo", {"en": "Leave the beaches now.", "ja": "海岸から離れてください。"}),
    "Coastal Flood": ("Met", {"en": "Water on low roads.", "es": "Agua en las calles bajas."}),
    "Earthquake": ("Geo", {"en": "Expect aftershocks.", "es": "Habrá réplicas."}),
    "Wildfire": ("Fire", {"en": "Be ready to leave.", "es": "Prepárese para salir."}),
    "Heat": ("Met", {"en": "Drink water; rest.", "de": "Viel trinken, Schatten suchen."}),
    "Gale": ("Met", {"en": "Ships stay in port.", "de": "Schiffe bleiben im Hafen."}),
    "Power Outage": ("Infra", {"en": "Crews are at work."}),
}
SEVERITIES = ("Extreme", "Severe", "Moderate", "Minor")
URGENCIES = ("Immediate", "Expected", "Future")


def alert_message(random: Random, index: int) -> bytes:
    """One message of the warnings source."""
    event = random.choice(tuple(EVENTS))
    prefix = random.choice(("", "", "cap:"))
    attributes = {f"xmlns:{prefix[:-1]}" if prefix else "xmlns": CAP}
    kind = random.choices(("Alert", "Update", "Cancel"), (6, 2, 1))[0]
    severity = random.choices(SEVERITIES, (1, 2, 4, 3))[0]
    head = {
        "identifier": f"demo-{index:04}",
        "sender": random.choice(("coast@demo.example", "weather@demo.example")),
        "sent": time_stamp(random),
        "status": random.choices(("Actual", "Exercise", "Test"), (8, 1, 1))[0],
        "msgType": kind,
        "scope": "Public",
    }
    children = [element(prefix + name, None, text(value)) for name, value in head.items()]
    if kind != "Alert":
        reference = f"coast@demo.example,demo-{max(index - 1, 0):04},{time_stamp(random)}"
        children.append(element(prefix + "references", None, reference))
    infos = [
        _info(random, prefix, event, severity, language, advice)
        for language, advice in EVENTS[event][1].items()
    ]
    return document(block(prefix + "alert", attributes, *children, *infos))


def _info(
    random: Random, prefix: str, event: str, severity: str, language: str, advice: str
) -> str:
    simple = {
        "language": language,
        "category": EVENTS[event][0],
        "event": event,
        "urgency": random.choice(URGENCIES),
        "severity": severity,
        "certainty": random.choice(("Observed", "Likely", "Possible")),
    }
    details = {
        "senderName": "Demo Coast Watch",
        "headline": f"{event}: {advice}",
        "description": sentences(random, random.choice((1, 2, 4, 12))),
        "instruction": advice,
    }
    parameters = {
        "magnitude": f"{random.uniform(3, 8):.1f}",
        "wind-kmh": str(random.randint(20, 160)),
        "stage": random.choice(("1", "2", "3", "unknown")),
    }
    chosen = random.sample(tuple(parameters), random.randint(1, 3))
    return block(
        prefix + "info",
        None,
        *[element(prefix + name, None, text(value)) for name, value in simple.items()],
        _pair(prefix, "eventCode", "DEMO", event[:3].upper()),
        *[element(prefix + name, None, text(value)) for name, value in details.items()],
        *[_pair(prefix, "parameter", name, parameters[name]) for name in chosen],
        *[
            _area(random, prefix, area)
            for area in random.sample(tuple(CITY_OF_AREA), random.choice((1, 1, 2, 3, 5)))
        ],
    )


def _pair(prefix: str, name: str, value_name: str, value: str) -> str:
    return block(
        prefix + name,
        None,
        element(prefix + "valueName", None, text(value_name)),
        element(prefix + "value", None, text(value)),
    )


def _area(random: Random, prefix: str, area: str) -> str:
    latitude, longitude = random.uniform(25, 48), random.uniform(-124, -71)
    corners = ((0.0, 0.0), (0.5, 0.0), (0.5, 0.5), (0.0, 0.0))
    polygon = " ".join(f"{latitude + dy:.2f},{longitude + dx:.2f}" for dy, dx in corners)
    altitude = element(prefix + "altitude", None, str(random.randint(0, 900)))
    return block(
        prefix + "area",
        None,
        element(prefix + "areaDesc", None, text(CITY_OF_AREA[area])),
        element(prefix + "polygon", None, polygon) if random.random() < 0.7 else "",
        _pair(prefix, "geocode", "AREA", area),
        altitude if random.random() < 0.4 else "",
    )
