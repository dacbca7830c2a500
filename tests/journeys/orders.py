"""Orders as a shop exports them: ids, dates, postcodes, blanks, quotes, umlauts, what is nested, and mistakes."""

from __future__ import annotations

import csv
import io
import json
import random
from datetime import datetime, timedelta
from typing import Any

__all__ = ["as_csv", "as_json_lines", "orders"]


def orders(n: int, first: int = 0) -> list[dict[str, str]]:
    """Make n orders; late are those of a weekend, and dear ones."""
    draw = random.Random(7 + first)
    moment = datetime(2024, 1, 1)
    made = []
    for number in range(first, first + n):
        moment += timedelta(minutes=draw.randrange(5, 900))
        price = draw.expovariate(1 / 40)
        made.append(
            {
                "order id": f"A-{number:05}",
                "placed at": f"{moment:%d.%m.%Y %H:%M}",
                "zip": f"0{draw.randrange(1000, 1010)}",
                "city": draw.choice(["Köln", "Zürich", "São Paulo", ""]),
                "price": "n/a" if number % 9 == 4 else f"{price:.2f}",
                "comment": draw.choice(["", 'said "no"', "a, b", "ok"]),
                "late": "yes" if moment.weekday() >= 5 or price > 60 else "no",
            }
        )
    return made


def as_csv(rows: list[dict[str, str]], mistakes: dict[int, str] | None = None, encoding: str = "latin-1") -> bytes:
    """Write rows with a header, a blank line in between, and other lines in the places of some records."""
    lines = [_line([*rows[0]]), *(_line([*row.values()]) for row in rows)]
    for number, line in (mistakes or {}).items():
        lines[number + 1] = line
    lines.insert(3, "")
    return ("\n".join(lines) + "\n").encode(encoding)


def _line(fields: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()


def as_json_lines(rows: list[dict[str, str]]) -> str:
    """Write rows as an API gives them: the customer nested, nothing as null, the date in ISO 8601."""
    return "".join(json.dumps(_nested(row), ensure_ascii=False) + "\n" for row in rows)


def _nested(row: dict[str, str]) -> dict[str, Any]:
    return {
        "id": row["order id"],
        "at": datetime.strptime(row["placed at"], "%d.%m.%Y %H:%M").isoformat() + "Z",
        "customer": {"zip": row["zip"], "city": row["city"] or None, "tags": [row["comment"]]},
        "price": None if row["price"] == "n/a" else float(row["price"]),
        "late": row["late"] == "yes",
    }
