"""Chat templates with a peculiarity each: labels are scored where an answer would be, or the chat is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.models.scoring import TOLERANCE
from tests.studies.small_models import random_model
from unslant import Question, audit, load_model
from unslant.errors import ModelError
from unslant.models import GenerateOptions
from unslant.models.chat import LocalChat
from unslant.models.hf.chats import answer_place
from unslant.models.hf.model import TransformersModel
from unslant.prompts import Message, Prompt
from unslant.questions import QuestionSet

TURNS = "{% for m in messages %}[{{ m.role }}]{THINK}{{ m.content }}[end]\n{% endfor %}"
OPEN = "{% if add_generation_prompt %}[assistant]{GENERATION}{% endif %}"
SWITCH = "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>{% endif %}"
ONCE = "{% if m.role == 'assistant' and loop.last %}{THOUGHT}{% endif %}"
PLACES = {
    "usual": ("", "", "[assistant]"),
    "space": ("{{ ' ' if m.role == 'assistant' }}", "", "[assistant] "),
    "layout": ("{{ '\n\n' if m.role == 'assistant' }}", "\n", "[assistant]\n"),
    "no-generation-prompt": ("", None, "[assistant]"),
    "empty-thought-in-the-last-turn": (ONCE.replace("{THOUGHT}", "<think>\n\n</think>\n\n"), "\n", None),
    "a-switch": ("", SWITCH, "[assistant]<think></think>"),
    "an-open-thought": ("", "<think>\n", "[assistant]"),
    "an-open-thought-in-words": ("", "Here are my reasoning steps:\n", "[assistant]"),
    "an-empty-thought": ("", "<think></think>", "[assistant]<think></think>"),
    "a-closed-thought": ("{{ '</think>' if m.role == 'assistant' }}", "<think>", "[assistant]</think>"),
    "a-channel": ("{{ '<|channel|>final<|message|>' if m.role == 'assistant' }}", "", None),
    "another-channel": ("{{ '<|TEXT|>' if m.role == 'assistant' }}", "<|THINK|></|THINK|>", "[assistant]<|TEXT|>"),
    "a-switch-elsewhere": ("{% if loop.first %}think: {{ enable_thinking|default(true) }}\n{% endif %}", "", None),
}
BEGUN = {
    "empty-thought-in-the-last-turn": "[assistant]<think>\n\n</think>\n\n",
    "a-channel": "[assistant]<|channel|>final<|message|>",
    "a-switch-elsewhere": "[assistant]",
}
SYSTEM, USER = Message("system", "Be brief."), Message("user", "Which?\nA. x\nB. y\nAnswer:")
SHOT = (Message("user", "Who?\nAnswer:"), Message("assistant", "B"))


def template(name: str) -> str:
    think, generation, _ = PLACES[name]
    opened = "" if generation is None else OPEN.replace("{GENERATION}", generation)
    return TURNS.replace("{THINK}", think) + opened


@pytest.fixture(scope="module")
def loaded() -> TransformersModel:
    return load_model("fair")


@pytest.fixture
def model(loaded: TransformersModel) -> Iterator[TransformersModel]:
    before = loaded.tokenizer.chat_template
    yield loaded
    loaded.tokenizer.chat_template = before


@pytest.mark.parametrize("messages", [(USER,), (SYSTEM, *SHOT, USER)], ids=["alone", "shots"])
@pytest.mark.parametrize("name", PLACES)
def test_labels_are_scored_where_the_template_writes_answers(
    model: TransformersModel, name: str, messages: tuple[Message, ...]
) -> None:
    tokenizer = model.tokenizer
    tokenizer.chat_template = template(name)
    turns = [{"role": message.role, "content": message.content} for message in messages]
    off = {"enable_thinking": False}
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=False, **off)
    text = text + (BEGUN.get(name) or PLACES[name][2])
    (scored,) = model.score([Prompt("", ("A", "B"), messages, "q")])
    ids = [tokenizer(text + label, add_special_tokens=False)["input_ids"] for label in "AB"]
    with torch.inference_mode():
        alone = [model.model(torch.tensor([one])).logits[0].log_softmax(-1)[-2, one[-1]].item() for one in ids]
    assert ids[0][:-1] == ids[1][:-1]
    assert scored.logprobs == pytest.approx(np.array(alone), abs=TOLERANCE)
    usual = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert bool(answer_place(tokenizer).notes) == (text != usual)
    # A free reply may think: its prompt is that of transformers.
    assert model.encoder.ids(Prompt("", (), messages)) == tokenizer(usual, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(
    ("source", "messages", "words"),
    [
        (TURNS + "[assistant]<think>", (USER,), "begins every answer with a thought"),
        ("{{ messages[-1].content }}", (*SHOT, USER), "leaves out or rewrites the user message"),
        ("{{ functions }}{{ nothing.at.all }}", (USER,), "refuses the conversation: 'nothing' is undefined; leave"),
    ],
    ids=["always-thinks", "drops-shots", "needs-more"],
)  # fmt: skip
def test_a_chat_that_would_not_be_scored_as_written_is_refused(
    model: TransformersModel, source: str, messages: tuple[Message, ...], words: str
) -> None:
    model.tokenizer.chat_template = source.replace("{THINK}", "{{ '<think>' if m.role == 'assistant' }}")
    with pytest.raises(ModelError, match=words):
        model.encoder.encode([Prompt("", ("A", "B"), messages, "q")])


REFUSES = "{% if messages[0].role == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
DROPS = "{% set messages = messages[1:] if messages[0].role == 'system' else messages %}"
ALTERNATES = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}"
    "{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("beginning", [REFUSES, DROPS, ALTERNATES], ids=["refuses", "drops", "alternates"])
def test_an_instruction_begins_the_users_words_where_there_is_no_system_message(
    model: TransformersModel, beginning: str
) -> None:
    """As in Gemma 2 and Mistral 7B, whose successors' templates write the same."""
    model.tokenizer.chat_template = beginning + template("a-switch-elsewhere")
    folded = Message("user", f"{SYSTEM.content}\n\n{SHOT[0].content}")
    apart, joined = (Prompt("", ("A", "B"), messages) for messages in ((SYSTEM, *SHOT, USER), (folded, SHOT[1], USER)))
    assert model.encoder.ids(apart) == model.encoder.ids(joined)
    spells = Message("user", f"{USER.content} {model.tokenizer.eos_token}")
    for last in (USER, spells):
        items = [replace(prompt, messages=(*prompt.messages[:-1], last)) for prompt in (apart, joined)]
        one, other = (item.context.tolist() for item in model.encoder.encode(items))
        assert one == other
    (note,) = LocalChat(model).describe().facts["chat_template"]
    assert note == model.info.facts["chat_template"][0]
    assert "takes no system message" in note
    model.tokenizer.chat_template = template("a-switch-elsewhere")
    assert LocalChat(model).describe().facts == {"chat_template": ()}


def test_replies_without_a_chat_say_nothing_of_its_template(model: TransformersModel) -> None:
    model.tokenizer.chat_template = REFUSES + template("a-switch-elsewhere")
    questions = [Question("q", "Which?", ("u", "v"), frozenset({0}))]
    for chat in (False, True):
        result = audit(LocalChat(model), questions, elicit="generate", chat=chat, orders="given")
        assert bool(result.run.chat_template) is chat


def test_a_template_that_refuses_a_final_answer_keeps_its_generation_prompt(model: TransformersModel) -> None:
    last = "{% if messages[-1].role == 'assistant' %}{{ raise_exception('user last') }}{% endif %}"
    model.tokenizer.chat_template = last + template("usual")
    (item,) = model.encoder.encode([Prompt("", ("A", "B"), (USER,), "q", to_end=True)])
    assert model.tokenizer.decode(item.context).endswith("[end]\n[assistant]")
    assert answer_place(model.tokenizer).notes == ()


def test_what_a_question_spells_is_text_after_the_place_of_an_answer_too(model: TransformersModel) -> None:
    channel = template("a-channel").replace("[end]", "{{ eos_token }}")
    model.tokenizer.chat_template = channel
    spelled = Message("user", f"Which ends it?\nA. {model.tokenizer.eos_token}\nB. y\nAnswer:")
    (item,) = model.encoder.encode([Prompt("", ("A", "B"), (spelled,), "q")])
    assert item.context.tolist().count(model.tokenizer.eos_token_id) == 1
    assert model.tokenizer.decode(item.context).endswith("final<|message|>")


def test_a_result_says_what_the_template_writes(model: TransformersModel, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = QuestionSet.of([Question(f"q{i}", "Which?", ("a", "b"), frozenset({0})) for i in range(3)])
    dated = "{{ strftime_now('%d %b %Y') }}\n"
    model.tokenizer.chat_template = dated + template("a-channel")
    prompt = Prompt("", ("A", "B"), (USER,), "q")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert model.tokenizer.decode(model.encoder.encode([prompt])[0].context).startswith("02 Jan 1970")
    result = audit(model, asked, orders="given", chat=True)
    place, date = result.run.chat_template
    assert "'[end]\\n[assistant]<|channel|>final<|message|>'" in place
    assert "SOURCE_DATE_EPOCH" in date
    assert place in result.page().notes
    assert audit(model, asked, orders="given").run.chat_template == ()


def test_a_reply_ends_where_the_template_ends_a_turn() -> None:
    """As in Gemma: the tokenizer's own end is that of a text, and the model writes another at the end of its turn."""
    prompt = Prompt("", (), (USER,))
    model = random_model()
    chat = LocalChat(model, GenerateOptions(max_tokens=8))
    asked = torch.tensor([model.encoder.ids(prompt)])
    ids = model.model.generate(asked, max_new_tokens=8, do_sample=False)[0, asked.shape[1] :].tolist()
    assert next(iter(chat.generate([prompt]))).cut
    model.model.generation_config.eos_token_id = [2, ids[3]]
    (reply,) = chat.generate([prompt])
    end = ids.index(ids[3])
    assert reply.text == model.tokenizer.decode(ids[:end], skip_special_tokens=True)
    assert (reply.cut, reply.output_tokens) == (False, end + 1)
    model.tokenizer.chat_template = template("usual").replace("[end]", "{{ bos_token }}")
    assert model.encoder.end_of_turn == [model.tokenizer.bos_token_id]
    model.tokenizer.chat_template = template("usual").replace("[end]", "")
    assert model.encoder.end_of_turn == []


def test_a_model_that_would_think_is_said_to_though_its_template_says_nothing() -> None:
    """As LFM2.5 and Seed-OSS: they learned to think first, and their templates write turns without thoughts."""
    model = random_model()
    model.tokenizer.chat_template = template("usual")
    model.tokenizer.add_tokens(["<think>"])
    causal = model.model
    causal.resize_token_embeddings(len(model.tokenizer))
    causal.config.tie_word_embeddings = False
    causal.lm_head.weight = torch.nn.Parameter(causal.lm_head.weight.detach().clone())
    (item,) = model.encode([Prompt("", ("A", "B"), (USER,), "q")])
    assert "chat_template" not in model.describe().facts
    with torch.inference_mode():
        hidden = causal.model(torch.from_numpy(item.context).long()[None]).last_hidden_state[0, -1]
    causal.lm_head.weight.data[-1] = 100 * hidden
    (note,) = model.describe().facts["chat_template"]
    assert "the model would begin '<think>'" in note
    list(model.encode([Prompt("Which?", (" A", " B"))]))
    assert "chat_template" not in model.describe().facts
