"""A template may lay out a question and do nothing else: what takes long, swells or never ends is refused at once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from jinja2 import StrictUndefined, TemplateError

from unslant.prompts.rendering import TemplateEnvironment

VALUES = {
    "stem": "s" * 1000,
    "labels": ("A", "B"),
    "options": tuple(SimpleNamespace(label=label, text="x" * 1000) for label in "AB"),
}
ENVIRONMENT = TemplateEnvironment(undefined=StrictUndefined)


def test_what_does_too_much_is_refused(subtests: pytest.Subtests) -> None:
    for source in (
        "{{ 'a' * 10**9 }}",
        "{{ ([1] * 10**9) | length }}",
        "{{ (10**9) * 'a' }}",
        "{{ 10 ** (10 ** 10) }}",
        "{{ 2**9999 * 2**9999 }}",
        "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
        "{% for a in stem %}{% for b in stem %}{% for c in stem %}{% endfor %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set x = stem %}" + "{% set x = x + x %}" * 40,
        "{% set x = stem %}" + "{% set x = [x, x] %}" * 40 + "{{ x == x }}",
        "{% set x = stem %}" + "{% set x = {'a': x, 'b': x} %}" * 40 + "{{ x }}",
        "{% set x = stem %}" + "{% set x = dict(a=x, b=x) %}" * 40 + "{{ x }}",
        "{{ stem | center(10**9) }}",
        "{{ stem | indent(10**9) }}",
        "{{ stem | round(10**9, 'ceil') }}",
        "{{ (stem * 100) | replace('s', stem * 100) }}",
        "{{ (stem * 100).replace('s', stem * 100) }}",
        "{{ (stem * 100).join([stem] * 100000) }}",
        "{{ ([stem] * 100000) | join }}",
        "{{ ([options[0]] * 100000) | join(',', attribute='text') }}",
        "{{ ([[1] * 1000] * 1000) | tojson(999) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%*d' % (10**9, 1) }}",
        "{{ '%1000000000d' | format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:1000000000}'.format_map({}) }}",
        "{{ stem.ljust(10**9) }}",
        "{% for i in range(90000) %}{{ stem }}{% endfor %}",
        "{% set x %}{{ stem * 1000 }}{% endset %}" + "{{ x }}" * 90,
        "{% filter upper %}{{ stem * 90000 }}{% endfilter %}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{% block b %}{{ self.b() }}{{ self.b() }}{% endblock %}",
        "{% for x in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}",
        "{{ lipsum(10**6) }}",
        "{{ range(10**8) | list }}",
        "{{ " + "(" * 500 + "1" + ")" * 500 + " }}",
        "{{ 1" + " + 1" * 5000 + " }}",
        "{% if 1 %}" * 300 + "{% endif %}" * 300,
        "x" * 200_000,
    ):
        with subtests.test(source=source), pytest.raises((TemplateError, OverflowError, TypeError)):
            ENVIRONMENT.from_string(source).render(**VALUES)


def test_what_templates_need_is_there(subtests: pytest.Subtests) -> None:
    for source, text in (
        ("{% for o in options %}{{ o.label }}{{ ',' if not loop.last }}{% endfor %}", "A,B"),
        ("{% for i in range(options | length) %}{{ loop.index }}/{{ loop.length }} {% endfor %}", "1/2 2/2 "),
        ("{% for o in options if o.label != 'A' %}{{ o.label }}{% else %}none{% endfor %}", "B"),
        ("{% set j = joiner('; ') %}{% for l in labels %}{{ j() }}{{ loop.cycle('x', 'y') }}{% endfor %}", "x; y"),
        ("{% set ns = namespace(n=0) %}{% for l in labels %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "2"),
        (
            "{{ labels | join(', ') }}{{ '-'.join(labels) }} {{ options | map(attribute='label') | join }}",
            "A, BA-B AB",
        ),
        ("{{ '%s) %s' % (labels[0], 3) }} {{ '%s)' | format('x') }} {{ stem[:2] ~ 1 ~ 'y' }}", "A) 3 x) ss1y"),
        ("{{ stem[:3].upper() }}{{ stem[:3] | replace('s', 't') | title }}{{ 'ab' * 2 }}{{ 7 % 4 }}", "SSSTttabab3"),
        ("{{ {'a': 'x'}['a'] }}{% for k, v in {'b': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "xb1"),
        ("{% set a, b = labels %}{{ b }}{{ a }}{{ 'A' in labels }}{{ stem | truncate(5) }}", "BATruess..."),
    ):
        with subtests.test(source=source, text=text):
            assert ENVIRONMENT.from_string(source).render(**VALUES) == text
