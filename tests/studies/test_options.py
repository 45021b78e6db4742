"""Settings of studies: given as an object, as keywords, or both."""

from __future__ import annotations

import pytest

import unslant
from tests.fakes import RuleModel
from unslant.auditing import AuditSettings
from unslant.flags import with_options


def test_keywords_and_an_object_make_the_same_settings() -> None:
    given = AuditSettings(orders="cyclic", limit=3)
    assert with_options(AuditSettings, None, {"orders": "cyclic", "limit": 3}) == given
    assert with_options(AuditSettings, given, {"limit": 4}) == AuditSettings(orders="cyclic", limit=4)


def test_an_unknown_keyword_is_named_with_what_it_may_have_meant() -> None:
    model = RuleModel(lambda stem, labels, texts: [1.0] * len(labels))
    with pytest.raises(unslant.InputError, match=r"no option 'ordres': did you mean 'orders'\? use one of across"):
        unslant.audit(model, ordres="all")
    with pytest.raises(TypeError):
        unslant.audit(model, ordres="all")
    assert model.seen == []


def test_a_wrong_settings_object_lists_the_options() -> None:
    with pytest.raises(unslant.InputError, match=r"settings=\['all'\]: give options by name: .*limit"):
        with_options(AuditSettings, ["all"], {})  # type: ignore[type-var]


def test_numbers_out_of_range_are_refused_by_name() -> None:
    with pytest.raises(unslant.InputError, match="shots=-1: give 0 or more"):
        AuditSettings(shots=-1)


def test_files_are_loaded_as_the_settings_say(tmp_path) -> None:
    (tmp_path / "q.csv").write_text('frage,A,B,answer\n"Which?",x,y,A\n"What?",x,y,nonsense\n"Who?",x,y,B\n')
    settings = AuditSettings(fields={"question": "frage"}, skip_bad=True)
    assert [q.stem for q in settings.load(tmp_path / "q.csv")] == ["Which?", "Who?"]
    assert settings.recorded() == {
        "template": "plain", "chat": False, "labels": "A", "to_end": False, "shots": 0, "orders": "auto", "seed": 0,
    }  # fmt: skip
