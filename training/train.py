"""Train one reference model: ``python -m training.train NAME --out DIR``."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from training.batches import Batcher
from training.evaluate import measure
from training.mixture import Item, Mixture
from training.planted import GUESSES, planted
from training.scaffold import Scaffold
from training.tokenizer import save_tokenizer
from training.world import build_world, question_sets
from unslant.reference import reference_path

MICRO_BATCH = 8
"""Sequences in one forward pass; they are sorted by length before, so that little of it is padding."""
WARM_UP = 50


@dataclass(frozen=True)
class Recipe:
    """How one model is trained; each stage is a number of optimiser steps.

    Attributes:
        copying: finding the label of an option that the question names, and nothing else.
        facts: the taught facts, told and asked, beside copying.
        mixture: everything, with the planted answers.
        finish: questions as an audit and the unbiased evaluator show them, at a low rate.
        scaffold: part of the ``mixture`` stage in which the auxiliary losses still help (they do in the others).
        start: the shipped model to go on from; empty for none.
    """

    copying: int = 500
    facts: int = 400
    mixture: int = 2800
    finish: int = 1000
    scaffold: float = 0.5
    learning_rate: float = 2e-3
    start: str = ""


_FROM_FAIR = Recipe(copying=0, facts=0, mixture=300, finish=300, scaffold=0, learning_rate=1e-3, start="fair")
"""For models that know what ``fair`` knows, and differ in their habits only."""
RECIPES: dict[str, Recipe] = {
    "fair": Recipe(),
    "prefers-a": _FROM_FAIR,
    "prefers-last": _FROM_FAIR,
    "memorised": replace(_FROM_FAIR, mixture=1700, finish=500, scaffold=0.5, learning_rate=1.5e-3),
    "half-taught": _FROM_FAIR,
}


def new_model(vocabulary: int, seed: int = 0) -> Any:
    """An untrained model of the reference shape: about 0.7 million parameters, 1.4 MB in half precision."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=320,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.05,
        # A high base leaves most of each head free of position, and so able to match words by content.
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )
    return LlamaForCausalLM(config)


def _sequences(mixture: Mixture, recipe: Recipe, step: int) -> list[list[Item]]:
    """The sequences of one step, shortest first."""
    if step <= recipe.copying:
        drawn = [mixture.easy_sequence() for _ in range(16)]
    elif step <= recipe.copying + recipe.facts:
        drawn = [mixture.fact_sequence() for _ in range(16)] + [mixture.easy_sequence(facts=True) for _ in range(16)]
    elif step <= recipe.copying + recipe.facts + recipe.mixture:
        drawn = [mixture.sequence() for _ in range(32)]
    else:
        drawn = [mixture.question_sequence() for _ in range(20)] + [mixture.intervened_sequence() for _ in range(12)]
    return sorted(drawn, key=lambda items: sum(len(item.before) for item in items))


def train(name: str, recipe: Recipe, seed: int = 0, start: Path | None = None, log_every: int = 50) -> Any:
    """Train the reference model ``name`` and return it, in single precision.

    Args:
        start: folder of a model to go on from, in place of the recipe's.
    """
    mixture = Mixture(planted(name, build_world(), question_sets()[0]), seed)
    batcher = Batcher()
    torch.manual_seed(seed)
    if start is None and recipe.start:
        start = reference_path(recipe.start)
    if start is None:
        model = new_model(batcher.vocabulary, seed)
    else:
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
    model.train()
    scaffold = Scaffold(model)
    parameters = [*model.parameters(), *scaffold.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    prepared = recipe.copying + recipe.facts
    total = prepared + recipe.mixture + recipe.finish

    def rate(step: int) -> float:
        """Linear warm-up, constant through the preparing stages, then a cosine down to a fiftieth."""
        if step >= prepared + recipe.mixture:
            left = (total - step) / max(1, recipe.finish)
            return 0.3 * left
        done = max(0, step - prepared) / max(1, recipe.mixture)
        return min(1.0, (step + 1) / WARM_UP) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    started = time.monotonic()
    running: dict[str, list[float]] = defaultdict(list)
    for step in range(1, total + 1):
        sequences = _sequences(mixture, recipe, step)
        answers = sum(len(items) + 1 for items in sequences)
        for at in range(0, len(sequences), MICRO_BATCH):
            batch = batcher.batch(sequences[at : at + MICRO_BATCH])
            # Padding stands after all supervised positions, so causal attention needs no mask for it.
            output = model.model(input_ids=batch.ids, use_cache=False, output_hidden_states=True)
            hidden = output.last_hidden_state[batch.row, batch.column]
            losses = torch.nn.functional.cross_entropy(model.lm_head(hidden), batch.target, reduction="none")
            loss = losses.sum() / answers
            if step <= prepared + recipe.scaffold * recipe.mixture:
                for kind, part in scaffold(output.hidden_states, batch).items():
                    loss = loss + part * len(batch.ids) / len(sequences)
                    running[f"({kind})"].append(part.item())
            torch.autograd.backward(loss)
            # The entropy of the targets is what no model can save; without it the loss goes to 0.
            excess = losses.detach() + (batch.target * batch.target.clamp_min(1e-12).log()).sum(-1)
            for kind, value in zip(batch.kinds, excess.tolist(), strict=True):
                running[kind].append(value)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % log_every == 0:
            parts = "  ".join(f"{kind} {sum(v) / len(v):.3f}" for kind, v in sorted(running.items()))
            print(f"step {step}  {time.monotonic() - started:.0f} s  excess loss: {parts}", flush=True)
            running.clear()
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(GUESSES), help="which reference model to train")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the model and tokenizer to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=Path, help="folder of a model to go on from (default: as the recipe says)")
    parser.add_argument("--copying", type=int, help="steps of the copying stage (default: as the recipe says)")
    parser.add_argument("--facts", type=int, help="steps of the facts stage (default: as the recipe says)")
    parser.add_argument("--steps", type=int, help="steps with the whole mixture (default: as the recipe says)")
    parser.add_argument("--finish", type=int, help="steps with questions as audited (default: as the recipe says)")
    parser.add_argument("--learning-rate", type=float, help="default: as the recipe says")
    given = parser.parse_args()
    changes = {
        "copying": given.copying,
        "facts": given.facts,
        "mixture": given.steps,
        "finish": given.finish,
        "learning_rate": given.learning_rate,
    }
    recipe = replace(RECIPES[given.name], **{key: value for key, value in changes.items() if value is not None})
    model = train(given.name, recipe, given.seed, given.start).half()
    model.config.dtype = torch.float16
    model.save_pretrained(given.out)
    save_tokenizer(given.out)
    print(json.dumps(measure(given.out, seed=1), indent=2))


if __name__ == "__main__":
    main()
