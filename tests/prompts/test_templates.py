from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.errors import InputError
from unslant.presentations import ALPHABETS, NONE, present
from unslant.prompts import Cloze, Counterfactual, PromptTemplate, Writer, load_template, template_names
from unslant.questions.question import Question

Q = Question("q", "Which gas?", ("oxygen", "nitrogen", "argon"), frozenset({1}), context="Air is a mixture.")
FULL = replace(
    present(Q),
    hint="If no option is right, answer N.",
    distractor="Which metal?",
    none_label="N",
    answers=frozenset({NONE}),
)
SHIPPED = pytest.mark.parametrize("name", template_names())
MINIMAL = 'question = "{{ stem }} {% for o in options %}{{ o.label }} {{ o.text }} {% endfor %}"\n'


def texts(name: str, presentation) -> list[str]:
    """Everything that both elicitations show, as plain text and as a chat."""
    shown = []
    for chat in (False, True):
        writer = Writer(load_template(name), chat)
        for prompt in (*Cloze(writer).prompts(presentation), *Counterfactual(writer).prompts(presentation)):
            shown.append("\n".join([*(message.content for message in prompt.messages), prompt.text]))
    return shown


def file(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


@SHIPPED
def test_shipped_templates_show_everything_there_is(name):
    shot = present(Question("shot", "Which animal?", ("dog", "oak"), frozenset({0})))
    everything = (Q.stem, Q.context, *Q.options, FULL.hint, FULL.distractor, "Which animal?", "dog", "oak")
    for text in texts(name, FULL.with_shots([shot])):
        assert all(piece in text for piece in everything)
        assert text.index("Which animal?") < text.index("Which gas?")
        assert "{" not in text


@SHIPPED
def test_shipped_templates_leave_no_gaps_where_there_is_nothing_to_show(name):
    (prompt,) = Cloze(Writer(load_template(name))).prompts(present(replace(Q, context="")))
    gap = "\n\n\n" if name.startswith("judge") else "\n\n"  # answers have paragraphs, and blank lines between them
    assert gap not in prompt.text
    assert "  " not in prompt.text
    assert not prompt.text.startswith((" ", "\n"))


@SHIPPED
def test_no_white_space_before_what_is_scored(name):
    """Tokenizers join a space to the word after it: the space belongs to the continuation."""
    writer = Writer(load_template(name))
    for presentation in (present(Q), FULL):
        for prompt in (*Cloze(writer).prompts(presentation), *Counterfactual(writer).prompts(presentation)):
            assert prompt.text == prompt.text.rstrip()
            assert len(set(prompt.continuations)) == len(prompt.continuations)


@SHIPPED
def test_labels_stand_before_their_options(name):
    shown = present(Q, (2, 0, 1), ALPHABETS["1"])
    text = load_template(name).render_question(shown)
    ends = [text.index(option.text) for option in shown.shown]
    assert ends == sorted(ends)
    for option, end in zip(shown.shown, ends, strict=True):
        assert text[:end].endswith((f"{option.label}. ", f"({option.label}) ", f"Answer {option.label}:\n"))


@SHIPPED
def test_instructions_do_not_change_with_the_order_of_the_labels(name):
    template = load_template(name)
    assert template.render_instruction(present(Q)) == template.render_instruction(present(Q, labels=("C", "A", "B")))


def test_instruction_of_the_presentation_comes_before_the_templates():
    template = load_template("medmcqa")
    assert "(A, B, C)" in template.render_instruction(present(Q))
    assert template.render_instruction(replace(present(Q), instruction="Guess.")) == "Guess."


def test_the_base_rate_layout_is_that_of_the_paper():
    """P5, table 2, and the control prompt of section 3.1."""
    jovian = Question(
        "jovian",
        "What element is most common among the Jovian Planets?",
        ("Hydrogen", "Helium", "Carbon", "Oxygen"),
        frozenset({0}),
    )
    shared = (
        "What element is most common among the Jovian Planets? "
        "(A) Hydrogen (B) Helium (C) Carbon (D) Oxygen. Of the answer choices above,"
    )
    writer = Writer(load_template("base-rate"))
    (cloze,) = Cloze(writer).prompts(present(jovian))
    assert cloze.text == shared + " the best answer choice is ("
    assert cloze.continuations == ("A", "B", "C", "D")
    counterfactual = Counterfactual(writer).prompts(present(jovian))
    assert [prompt.text for prompt in counterfactual] == [f"{shared} answer choice {x} is the" for x in "ABCD"]
    assert {prompt.continuations for prompt in counterfactual} == {(" best",)}

    control = Question("control", "Select an answer choice", ("choice",) * 4, frozenset())
    (prompt,) = Cloze(writer).prompts(present(control, labels=("B", "A", "D", "C")))
    assert prompt.text == (
        "Select an answer choice (B) choice (A) choice (D) choice (C) choice. "
        "Of the answer choices above, the best answer choice is ("
    )


P1_LAYOUTS = {
    "arc": "Instruct: {question}\n{options}\nOutput: option",
    "medmcqa": "{instruction}\n{question}\n{options}\nOutput: option",
    "teleqna-phi": "{instruction}\n{question}\n{options}\nOutput: option",
    "teleqna": "{instruction}\n{question}\n{options}\nOutput: option",
    "qasc": "{instruction}\n{question}\ncontext: {context}\n{options}\n{question}\nOutput: option",
    "qasc-llama": "{instruction}\n{question}\ncontext: {context}\n{options}\nOutput:",
}


@pytest.mark.parametrize("name", P1_LAYOUTS)
def test_layouts_of_the_permutation_bias_paper(name):
    """P1, C.1: the parts and their order (the instructions are in our own words)."""
    template = load_template(name)
    layout = P1_LAYOUTS[name]
    shown = present(Q if "context" in layout else replace(Q, context=""), alphabet=ALPHABETS["1"])
    instruction = template.render_instruction(shown)
    assert instruction == "" or ("(1, 2, 3)" in instruction and instruction.startswith("Instruct: "))
    (prompt,) = Cloze(Writer(template)).prompts(shown)
    assert prompt.text == layout.format(
        instruction=instruction,
        question=Q.stem,
        options="1. oxygen\n2. nitrogen\n3. argon",
        context=Q.context,
    )
    assert prompt.continuations == (" 1", " 2", " 3")


HOSTILE = ["{{ 7*7 }}", "{% raw %}", "{% for x in y %}", "<script>alert(1)</script>", "{# gone #}", "{{ stem }}"]


@pytest.mark.thorough
@SHIPPED
@given(text=st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20)))
def test_texts_of_questions_are_shown_as_they_are(name, text):
    shown = replace(present(Question("q", text, (text, "b"), frozenset({1}), context=text)), hint=text, distractor=text)
    page = load_template(name).render_question(shown)
    # stem, first option, context, hint and second question; QASC's layout says the questions twice
    assert page.count(text) >= 5
    assert "49" not in page or "49" in text


def test_a_template_file_of_ones_own(tmp_path):
    template = load_template(
        file(
            tmp_path,
            """
description = "Bullets."
instruction = "One of {{ labels | join('/') }}."
question = '''
{{ stem }}
{% for option in options %}
* [{{ option.label }}] {{ option.text }}
{% endfor %}
'''
shot_separator = "\\n---\\n"
[cloze]
cue = "=> ["
continuation = "{{ label }}"
close = "]"
""",
        )
    )
    assert template.name == "mine"
    plain = replace(Q, context="")
    (prompt,) = Cloze(Writer(template)).prompts(present(plain).with_shots([present(plain, (1, 0, 2))]))
    assert prompt.text == (
        "One of A/B/C.\n---\n"
        "Which gas?\n* [A] nitrogen\n* [B] oxygen\n* [C] argon\n=> [A]\n---\n"
        "Which gas?\n* [A] oxygen\n* [B] nitrogen\n* [C] argon\n=> ["
    )
    assert prompt.continuations == ("A", "B", "C")
    assert Counterfactual(Writer(template)).prompts(present(plain))[0].continuations == (" best",)


def test_a_file_that_was_changed_is_read_again(tmp_path):
    shown = present(replace(Q, context=""))
    before = load_template(file(tmp_path, MINIMAL)).render_question(shown)
    after = load_template(file(tmp_path, MINIMAL[:-2] + ' more"')).render_question(shown)
    assert after == f"{before} more"


def test_windows_line_ends_and_byte_order_marks_change_nothing(tmp_path):
    text = "question = '''\n{{ stem }}\n{% for o in options %}\n{{ o.label }}: {{ o.text }}\n{% endfor %}\n'''\n"
    plain = load_template(file(tmp_path, text)).render_question(present(replace(Q, context="")))
    windows = load_template(file(tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    assert windows.render_question(present(replace(Q, context=""))) == plain


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ("question = ", None, "not valid TOML: "),
        (b"question = '\xff'", None, "not UTF-8 text"),
        ("", "question", "missing"),
        ("question = 3", "question", "must be a text in quotes, not 3"),
        (MINIMAL + "instruction = true", "instruction", "must be a text in quotes, not True"),
        (MINIMAL + "qestion = 'x'", "qestion", "unknown; allowed are cloze, counterfactual, description"),
        (MINIMAL + "cloze = 'Answer:'", "cloze", "must be a table with cue, continuation, close"),
        (MINIMAL + "[cloze]\ncu = 'x'", "cloze.cu", "unknown; allowed are close, continuation, cue"),
        (MINIMAL + "[cloze]\ncue = 3", "cloze.cue", "must be a text in quotes, not 3"),
        (MINIMAL + "[counterfactual]\nclose = ')'", "counterfactual.close", "unknown; allowed are continuation, cue"),
        ("question = '''{{ stem }}\n{% for o in options %}'''", "question", "line 2 of the text: "),
        (MINIMAL + "[cloze]\ncue = '{{ }}'", "cloze.cue", "line 1 of the text: "),
        ("question = '{{ stam }} {{ options }}'", "question", "unknown variable 'stam'; allowed here: context, "),
        (MINIMAL + "[cloze]\ncue = '{{ label }}'", "cloze.cue", "unknown variable 'label'; allowed here: none"),
        (MINIMAL + "instruction = '{{ stem }}'", "instruction", "allowed here: labels, none_label"),
        ("question = '{{ stem }}'", "question", "must use {{ options }}"),
        (MINIMAL + "[cloze]\ncontinuation = ' A'", "cloze.continuation", "must use {{ label }}"),
        (MINIMAL + "[counterfactual]\ncue = 'it is the'", "counterfactual.cue", "must use {{ label }}"),
        ("question = '{{ stem }} {{ options[0].txt }}'", "question", "no attribute 'txt'"),
        ("question = '{{ stem + 1 }} {{ options }}'", "question", "can only concatenate str"),
        ("question = '{{ stem }} {{ options }} {{ 1 / 0 }}'", "question", "division by zero"),
        ("question = '{{ stem }} {{ options }} {% if hint %}{{ 1 / 0 }}{% endif %}'", "question", "division by zero"),
        ("question = '{{ stem }} {{ options }} {% include \"/etc/passwd\" %}'", "question", "include is not allowed"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_that_names_file_and_field(tmp_path, text, field, reason):
    path = file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_template(path)
    message = str(caught.value)
    assert message.startswith(f'{path}, field "{field}": ' if field else path)
    assert reason in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "trick",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ stem.__class__.__base__.__subclasses__() }}",
        "{{ stem | attr('__class__') }}",
        "{{ stem['__class__'] }}",
        "{{ '{0.__class__}'.format(stem) }}",
        "{{ '{0.__class__}'.format_map({'0': stem}) }}",
        "{{ options[0].__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ self.__init__.__globals__ }}",
        "{{ (options | map(attribute='__class__') | list)[0].__name__ }}",
        "{% set x = {} %}{{ x.update({'a': 1}) }}",
        "{{ range(1000000000) | list }}",
    ],
)
def test_a_template_cannot_get_out_of_its_sandbox(tmp_path, trick):
    with pytest.raises(InputError) as caught:
        load_template(file(tmp_path, f'question = """{{{{ stem }}}} {{{{ options }}}} {trick}"""'))
    assert 'field "question": ' in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["context", "hint", "distractor"])
def test_what_a_template_has_no_place_for_is_not_dropped_in_silence(tmp_path, name):
    template = load_template(file(tmp_path, MINIMAL))
    shown = replace(present(replace(Q, context="")), **{name: "Something."})
    with pytest.raises(InputError, match=f"has no {{{{ {name} }}}}, but question 'q' has one") as caught:
        template.render_question(shown)
    assert str(tmp_path) in str(caught.value)
    on_purpose = load_template(file(tmp_path, MINIMAL[:-2] + f'{{% set _ = {name} %}}"'))
    assert "Something." not in on_purpose.render_question(shown)


def test_a_none_label_has_to_be_offered():
    shown = replace(present(Q), none_label="N")
    with pytest.raises(InputError, match="no hint or instruction offers 'N' to question 'q'"):
        load_template("plain").render_question(shown)
    for offered in (replace(shown, hint="Or N."), replace(shown, instruction="Or N.")):
        load_template("plain").render_question(offered)
    load_template("medmcqa").render_question(shown)


def test_unknown_templates_are_refused_with_the_known_ones(tmp_path):
    with pytest.raises(
        InputError,
        match=r"unknown template 'plane': did you mean 'plain'\? use one of arc, .* or the path of a \.toml file",
    ):
        load_template("plane")
    with pytest.raises(InputError, match="no such file"):
        load_template(str(tmp_path / "none.toml"))


def test_a_template_made_in_python_names_itself():
    template = PromptTemplate(name="own", question="{{ stem }} {{ oops }}")
    with pytest.raises(InputError, match="template 'own', field \"question\": 'oops' is undefined"):
        template.render_question(present(replace(Q, context="")))
    with pytest.raises(InputError, match="unknown variable 'oops'"):
        template.check()
