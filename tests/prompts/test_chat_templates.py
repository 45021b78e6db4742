"""Chat templates of models: the same text as transformers writes, within bounds."""

from __future__ import annotations

from typing import Any

import pytest
from jinja2 import TemplateError

from benchmarks.reliability import Options, hostile
from unslant.prompts.rendering import TemplateEnvironment

CHATS: list[list[dict[str, str]]] = [
    [{"role": "user", "content": "Which <b>?\n\nA. é €\nB. {{ x }} %s"}],
    [
        {"role": "system", "content": " Be good. "},
        {"role": "user", "content": "Q?"},
        {"role": "assistant", "content": "<think>a\n</think>\n\n A "},
        {"role": "user", "content": "And now?"},
    ],
]
MACROS = """{%- macro block(message, loud=false) -%}
{{ '<|im_start|>' + message.role + '\\n' }}{{ (message.content|upper if loud else message.content) | trim }}<|im_end|>
{% endmacro -%}
{%- set ns = namespace(last=-1, thinking=false) -%}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if message.role == "user" and ns.last < 0 %}{% set ns.last = index %}{% endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if loop.first and message.role != 'system' %}{{ block({'role': bos_token, 'content': 'hi'}) }}{% endif %}
    {%- if message.role == 'assistant' %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') if '</think>' in message.content %}
        {%- generation %}{{ content }}{{ eos_token }}{% endgeneration %}
        {%- continue %}
    {%- endif %}
    {{- block(message, loud=loop.index0 == ns.last) }}
    {%- if message.tool_calls is defined and message.tool_calls is iterable %}never{% endif %}
{%- endfor %}
{%- if tools %}{{ tools|tojson(indent=2) }}{% endif %}
{%- set found = messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|list -%}
{{ found|tojson }}{{ {'b': 1, 'a': [none, true, 'é<']}|tojson }}{{ "%s-%d"|format('x', 3) }}
{%- call(x) wrap() %}{{ x }}{% endcall %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""
TEMPLATES = [
    MACROS.replace("{%- call(x) wrap() %}{{ x }}{% endcall %}", ""),
    "{% macro wrap() %}[{{ caller(1) }}]{% endmacro %}{% call(x) wrap() %}{{ x }}{% endcall %}\n",
    "{% for m in messages recursive %}{{ m.role }}{% if m.children %}{{ loop(m.children) }}{% endif %}{% endfor %}",
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ messages[0].content }}\n\n",
    "{{ undefined_name }}{{ messages[9].content is defined }}{% for x in range(3) %}{{ x }}{% break %}{% endfor %}",
    "{{ messages|groupby('role')|length }}{{ dict(a=1)|items|list }}{{ 'a'.center(7) }}",
    "{{ messages|map('tojson')|join }}",
    "{{ '{}: {role!r:>9}{{}}'.format(messages[0].content, role=messages[0].role) }}{{ '{a}'.format_map({'a': 1}) }}",
]


def written(render: Any) -> str:
    try:
        return str(render())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("source", TEMPLATES, ids=range(len(TEMPLATES)))
@pytest.mark.parametrize("prompt", [True, False])
def test_the_text_is_that_of_transformers(source: str, prompt: bool) -> None:
    from transformers.utils.chat_template_utils import render_jinja_template

    named = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": prompt}
    for chat in CHATS:
        theirs = written(lambda chat=chat: render_jinja_template([chat], chat_template=source, **named)[0][0])
        messages = [dict(message) for message in chat]
        own = written(
            lambda messages=messages: (
                TemplateEnvironment().from_string(source).render(messages=messages, tools=None, documents=None, **named)
            )
        )
        assert own == theirs
        assert own


@pytest.mark.parametrize("number", [4, pytest.param(60, marks=pytest.mark.thorough)])
def test_templates_without_an_end_are_refused(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "TEMPLATES", number)
    (row,) = hostile.rows(Options(seed=3, only=("hostile/chat templates",)))
    assert (row.attempts, row.examples) == (number, [])


@pytest.mark.parametrize(
    "source",
    [
        "{% set ns = namespace() %}{% set ns._x = 1 %}", "{{ namespace(__class__=1) }}", "{{ ''.__class__.mro() }}",
        "{{ strftime_now('%99999999d') }}", "{% include 'x' %}", "{{ messages.append(1) }}",
        "{{ raise_exception('no') }}", "{{ '{:{}}'.format(1, '99999999') }}",
        "{{ '{:99999999}'.format(1) }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)  # fmt: skip
def test_the_sandbox_holds(source: str) -> None:
    with pytest.raises((TemplateError, TypeError)):
        TemplateEnvironment().from_string(source).render(messages=[{"role": "user", "content": "?"}])
