"""The page on the configuration has every key; `python -m tests.test_configuration_page` writes it from the schema."""

import json
import re
from pathlib import Path

from streamkernel.daemon.config.schema import Config

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "configuration.md"

INTRO = """# Configuration

The commands `streamkernel run`, `check`, `evaluate`, `serve`, `spark`, `replay` and `promote` take a YAML file.
`source` and `model` (or `models`) are required, and every other section is optional. `metrics: null` turns the HTTP
endpoint off. `${NAME}` in a value is an environment variable. If the key ends in `password`, `passphrase`, `secret` or
`token`, the value is never shown. Relative paths are relative to the working directory of the command, not to the
folder of the YAML file.

[The tutorial](../tutorial.md) writes a configuration step by step. [Operating the daemon](../operate/index.md) explains
limits and guarantees. An unknown key is an error.

"""

SCHEMA = Config.model_json_schema()
_TYPES = {
    "array": "list",
    "boolean": "`true`, `false`",
    "integer": "whole number",
    "null": "`null`",
    "number": "number",
    "object": "mapping",
    "string": "text",
}


def _definitions(schema):
    """Return the sections that a schema refers to, by the word that stands for their kind."""
    if "$ref" in schema:
        return [SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]]
    if isinstance(schema.get("additionalProperties"), dict):
        return _definitions(schema["additionalProperties"])
    if "$ref" in schema.get("items", {}):
        return _definitions(schema["items"])
    return [found for key in ("oneOf", "anyOf") for one in schema.get(key, []) for found in _definitions(one)]


def _values(schema):
    """Say which values a schema allows."""
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(_values, schema[several])))
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if words:
        return ", ".join(f"`{word}`" for word in words)
    text = _TYPES.get(schema.get("type"), "any")
    if schema.get("type") == "array":
        text += f" of {_values(schema['items'])}"
    return text


def _default(schema, required):
    """Say what a key is that is left out; a section that is left out is off, or has its defaults."""
    if required:
        return "required"
    if _definitions(schema) and schema.get("type") != "array":
        return "off" if "default" in schema and schema["default"] is None else "as below"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else "empty"


def _heading(path, definition):
    kind = definition["properties"].get("kind", {}).get("const")
    return f"{path or 'Top level'}{f' of kind {kind}' if kind else ''}"


def _section(path, definition, drawn):
    """Yield the lines on a section, and on those in it that were not drawn before."""
    yield f"## {_heading(path, definition)}\n"
    yield definition["description"] + "\n"
    inner, passed = [], []
    table = ["| key | values | default | meaning |", "| --- | --- | --- | --- |"]
    for name, schema in sorted(definition["properties"].items(), key=lambda item: item[0] != "kind"):
        sections = _definitions(schema)
        required = name in definition.get("required", [])
        text = schema.get("description") or (sections[0]["description"] if len(sections) == 1 else "")
        if sections and name != "model":
            inner.append((f"{path}.{name}".lstrip("."), sections))
            kinds = [f"`{one['properties']['kind']['const']}`" for one in sections if "kind" in one["properties"]]
            one = "list of names or sections" if schema.get("type") == "array" else "a section"
            values = f"a section of kind {', '.join(kinds)}" if kinds else one
            table.append(f"| `{name}` | {values} | {_default(schema, required)} | {text} |")
        elif text or required or name == "kind":
            table.append(f"| `{name}` | {_values(schema)} | {_default(schema, required)} | {text} |")
        else:
            passed.append(f"`{name}`")
    if len(table) > 2:
        yield "\n".join(table) + "\n"
    if passed:
        secure = [one for one in passed if one.startswith(("`sasl_", "`ssl_", "`security_"))]
        others = [one for one in passed if one not in secure]
        yield "The daemon passes these keys to the client unchanged. `null` is the client's own default.\n"
        yield f"- Security: {', '.join(secure)}\n- Others: {', '.join(others)}\n"
    for below, sections in inner:
        if (known := drawn.get(sections[0]["title"])) == below:
            continue
        if known is not None:
            others = " and the kinds after it" if len(sections) > 1 else ""
            yield f"`{below}` has the keys of [{known}](#{_anchor(known)}){others}.\n"
            continue
        drawn |= {section["title"]: _heading(below, section) for section in sections}
        for section in sections:
            yield from _section(below, section, drawn)


def _anchor(heading):
    return re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")


def page():
    """Return the page as it should be."""
    return INTRO + "\n".join(_section("", SCHEMA, {}))


def test_the_page_is_drawn_from_the_schema():
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
