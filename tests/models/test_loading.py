"""Loading: what is found, and one clear line where something is not."""

from __future__ import annotations

import shutil
import socket
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, BertConfig, BertLMHeadModel
from transformers.models.llama.modeling_llama import LlamaMLP

from tests.models.samples import sample_prompts
from tests.models.scoring import tokenizer_of
from unslant.errors import InputError, ModelError
from unslant.models import ModelOptions, load_model
from unslant.models.hf import loading
from unslant.models.hf.model import TransformersModel
from unslant.prompts import Prompt


@pytest.fixture(autouse=True)
def no_hub(monkeypatch):
    """A Hub that refuses connections at once, and no leave to skip asking it."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def one_line(error: pytest.ExceptionInfo[BaseException]) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert "Traceback" not in message
    return message


def test_a_folder_loads_and_scores(zoo_model):
    model = load_model(str(zoo_model("qwen2")), token_budget=100)
    assert model.engine == "tree"
    assert model.dtype == torch.float32
    assert not model.model.training
    prompts = sample_prompts()[:3]
    assert sorted(scored.index for scored in model.score(prompts)) == [0, 1, 2]
    assert model.cost.prompts == 3


def test_dtype_is_the_one_asked_for(zoo_model):
    folder = str(zoo_model("llama", small=True))
    assert load_model(folder, dtype="bfloat16").dtype == torch.bfloat16
    assert load_model(folder, dtype=torch.bfloat16, device=torch.device("cpu")).dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["org/no-such-model", "no-such-model"])
def test_unknown_name_without_network(name, monkeypatch):
    tried = []

    def refuse(address, *_, **__):
        tried.append(address)
        raise OSError("no network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(ModelError, match="check the name and the network") as error:
        load_model(name)
    assert repr(name) in one_line(error)
    # The libraries retry each of several files for most of a minute; we look once whether the Hub is there.
    assert len(tried) <= 2


@pytest.mark.parametrize("name", ["ollama:llama", "fair ", "org/name@v1", "a--b/c", "a b", "x" * 300, "org/..", "a\0b"])
def test_a_name_that_no_model_can_have(name):
    with pytest.raises(ModelError, match="no such model; give a folder"):
        load_model(name)


@pytest.mark.parametrize("name", [5, None])
def test_a_name_of_another_type(name):
    with pytest.raises(InputError, match=f"name {name!r}: give the name or the folder of a model"):
        load_model(name)


def test_a_path_is_a_name(zoo_model):
    assert load_model(Path(zoo_model("qwen2"))).engine == "tree"


def test_missing_folder():
    with pytest.raises(ModelError, match="no such model") as error:
        load_model("./models/none-here")
    assert "./models/none-here" in one_line(error)


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        load_model(str(tmp_path))


def test_folder_without_tokenizer(zoo_model, tmp_path):
    folder = tmp_path / "bare"
    shutil.copytree(zoo_model("gpt2"), folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / file).unlink(missing_ok=True)
    with pytest.raises(ModelError, match="no tokenizer in it") as error:
        load_model(str(folder))
    assert "tokenizer.save_pretrained" in one_line(error)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_damaged_folder(zoo_model, tmp_path, file):
    folder = tmp_path / "damaged"
    shutil.copytree(zoo_model("gpt2"), folder)
    (folder / file).write_bytes(b"{")
    with pytest.raises(ModelError, match="cannot be loaded") as error:
        load_model(str(folder))
    assert str(folder) in one_line(error)


def test_folder_without_weights(zoo_model, tmp_path):
    folder = tmp_path / "empty"
    shutil.copytree(zoo_model("gpt2"), folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="the model cannot be loaded"):
        load_model(str(folder))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_cuda_asked_for_and_absent(zoo_model):
    with pytest.raises(ModelError, match=r"no CUDA device here: use device=.cpu."):
        load_model(str(zoo_model("gpt2")), device="cuda")


def test_unknown_dtype_and_device_are_refused_with_the_allowed_ones():
    with pytest.raises(InputError, match=r"dtype 'int8'.*bfloat16"):
        load_model("fair", dtype="int8")
    for device in ("tpu", "cpu:", "cpu:x", "auto:1", "cuda:0:1"):
        with pytest.raises(InputError, match=rf"unknown device '{device}'.*cuda"):
            load_model("fair", device=device)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert loading.place_of(ModelOptions(device="cuda:1")) == "cuda:1"
    with pytest.raises(ModelError, match=r"device=.cuda:2.: the GPUs of this machine are cuda:0 to cuda:1"):
        loading.place_of(ModelOptions(device="cuda:2"))


CODE = """
from transformers import LlamaConfig, LlamaForCausalLM
class OwnConfig(LlamaConfig):
    model_type = "own_code"
class OwnModel(LlamaForCausalLM):
    config_class = OwnConfig
"""


def test_code_next_to_the_weights_is_not_run_unless_asked(zoo_model, tmp_path, monkeypatch):
    folder = tmp_path / "with_code"
    shutil.copytree(zoo_model("llama", small=True), folder)
    (folder / "own.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w').close()\n" + CODE, "utf-8")
    config = (folder / "config.json").read_text("utf-8").replace('"model_type": "llama"', '"model_type": "own_code"')
    auto = '"auto_map": {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"},'
    (folder / "config.json").write_text(config.replace("{", "{" + auto, 1), "utf-8")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nobody is there to be asked"))
    with pytest.raises(ModelError) as error:
        load_model(str(folder))
    one_line(error)
    assert not (tmp_path / "was_run").exists()


def test_adapter_changes_scores_and_can_be_missing(zoo_model, tmp_path, monkeypatch):
    peft = pytest.importorskip("peft")
    folder = zoo_model("llama", small=True)
    torch.manual_seed(1)
    lora = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    peft.get_peft_model(AutoModelForCausalLM.from_pretrained(folder), lora).save_pretrained(tmp_path / "adapter")
    bare = load_model(str(folder))
    adapted = load_model(str(folder), adapter=str(tmp_path / "adapter"))
    assert adapted.engine == "tree"
    assert adapted.name == f"{folder} + adapter"
    prompts = sample_prompts()[:6]
    one = {scored.index: scored.logprobs for scored in bare.score(prompts)}
    other = {scored.index: scored.logprobs for scored in adapted.score(prompts)}
    assert max(abs(one[i] - other[i]).max() for i in one) > 0.01
    plain = load_model(str(folder), adapter=str(tmp_path / "adapter"), engine="plain")
    for scored in plain.score(prompts):
        assert other[scored.index] == pytest.approx(scored.logprobs, abs=1e-4)
    assert bare.identify().identity["weights"] != adapted.identify().identity["weights"]

    with pytest.raises(ModelError, match="the adapter cannot be loaded") as error:
        load_model(str(folder), adapter=str(tmp_path / "none"))
    one_line(error)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ModelError, match=r"pip install 'unslant\[local\]'"):
        load_model(str(folder), adapter=str(tmp_path / "adapter"))


def test_an_adapter_of_another_model_says_which(zoo_model, tmp_path):
    peft = pytest.importorskip("peft")
    own = zoo_model("llama", small=True)
    lora = peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
    adapter = tmp_path / "adapter"
    peft.get_peft_model(AutoModelForCausalLM.from_pretrained(own), lora).save_pretrained(adapter)
    with pytest.raises(ModelError) as error:
        load_model("fair", adapter=str(adapter))
    one_line(error)
    assert f"for it was made for {own}: size mismatch" in str(error.value)
    copied = tmp_path / "copied"
    shutil.copytree(own, copied)
    with pytest.warns(UserWarning, match=f"was made for {own}, and is put on {copied}"):
        load_model(str(copied), adapter=str(adapter))


@pytest.mark.thorough
def test_identity_follows_weights_and_engine(zoo_model):
    one, again = load_model(str(zoo_model("gpt2"))), load_model(str(zoo_model("gpt2")))
    plain = load_model(str(zoo_model("gpt2")), engine="plain")
    assert one.identify().identity == again.identify().identity
    assert plain.identify().identity["engine"] != one.identify().identity["engine"]
    with torch.no_grad():
        again.model.transformer.wte.weight[0, 0] += 1
    assert one.identify().identity["weights"] != again.identify().identity["weights"]


def test_the_hub_is_asked_when_it_answers(monkeypatch):
    import socket

    server = socket.create_server(("127.0.0.1", 0))
    with server:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        assert loading._here("org/model") == {"local_files_only": False}
    assert loading._here("org/model") == {"local_files_only": True}


def test_context_limit_is_read_from_every_spelling():
    from unslant.models.hf.model import context_limit

    def limit(kind: str, **sizes: int) -> int:
        with torch.device("meta"):
            return context_limit(AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes)))

    assert limit("gpt2", n_positions=77) == 77
    assert limit("llama", max_position_embeddings=99, num_hidden_layers=1) == 99
    assert limit("mamba", num_hidden_layers=1) > 1_000_000


def test_a_reward_model_counts_its_positions_as_roberta_does(zoo_model):
    from transformers import AutoTokenizer, RobertaConfig, RobertaForSequenceClassification

    from unslant.models.hf.reward import RewardModel

    tokenizer = AutoTokenizer.from_pretrained(zoo_model("llama"))
    tokenizer.chat_template = None
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=34, num_labels=1, pad_token_id=1, **sizes)
    model = RewardModel(RobertaForSequenceClassification(config).eval(), tokenizer, "judge")
    lengths = [len(model._ids("1" * n, "B")) for n in range(60)]
    for length, refused in ((32, False), (33, True)):
        prompt = Prompt("1" * lengths.index(length), ("B",), group="q")
        with pytest.raises(ModelError, match="33 tokens; its context has 32") if refused else nullcontext():
            assert next(model.score([prompt])).logprobs == [0.0]


def test_bfloat16_is_offered_once_where_the_processor_has_it_and_the_model_is_large(
    zoo_model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = str(zoo_model("llama", small=True))
    monkeypatch.setattr(loading, "LARGE", 1)

    def told(has: bool, **options: str) -> list[str]:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has}, raising=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_model(folder, **options)
        return [str(one.message) for one in caught if 'dtype="bfloat16"' in str(one.message)]

    monkeypatch.setenv("UNSLANT_HOME", str(tmp_path))
    loading._suggest_bfloat16.cache_clear()
    assert not told(False)
    assert not told(True, dtype="float32")
    assert len(told(True)) == 1
    assert not told(True)
    loading._suggest_bfloat16.cache_clear()  # as in the next command
    assert not told(True)
    monkeypatch.setenv("UNSLANT_HOME", str(tmp_path / "other"))
    loading._suggest_bfloat16.cache_clear()
    monkeypatch.setattr(loading, "LARGE", 1 << 40)
    assert not told(True)


@pytest.mark.parametrize("is_decoder", [False, True])
def test_a_model_that_reads_in_both_directions_is_refused(zoo_model, is_decoder):
    tokenizer = tokenizer_of(zoo_model("gpt2", small=True))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(tokenizer), initializer_range=0.2, is_decoder=is_decoder, **sizes)
    bert = BertLMHeadModel(config)
    if is_decoder:
        assert TransformersModel(bert, tokenizer, "bert").engine == "tree"
        return
    for engine in ("auto", "tree"):
        with pytest.raises(ModelError, match="bert: its score of a token depends on the tokens after it, as in BERT"):
            TransformersModel(bert, tokenizer, "bert", engine=engine)


def test_a_model_whose_code_fails_is_one_line(zoo_model, monkeypatch):
    folder = zoo_model("llama", small=True)
    monkeypatch.setattr(LlamaMLP, "forward", lambda *_: (_ for _ in ()).throw(IndexError("index 9 is out of range")))
    with pytest.raises(ModelError, match="llama: a pass through the model fails: index 9 is out of range"):
        load_model(str(folder))
