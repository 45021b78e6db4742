"""Generating replies in inspect: one turn, or two with a follow-up; the instruction is polished on request."""

from __future__ import annotations

import anyio
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, Model, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from unslant.studies.instruction_boundary.instruction_settings import setting
from unslant.studies.instruction_boundary.prompts import POLISH_REQUEST, is_instruction


@solver
def generate_reply(polisher: str | Model | None = None) -> Solver:
    """Ask each sample under its setting.

    Args:
        polisher: model that rewrites the instruction under ``prompt-polishing``, once per run; by default the evaluated
            model. The text is stored in the sample's metadata; where it is not an instruction, the original is asked.
    """
    polished: dict[str, str] = {}
    lock: anyio.Lock | None = None

    async def polish(instruction: str) -> str:
        nonlocal lock
        lock = lock or anyio.Lock()
        async with lock:
            if instruction not in polished:
                model = get_model(polisher)
                reply = await model.generate(POLISH_REQUEST + instruction, config=GenerateConfig(temperature=0.0))
                text = reply.completion.strip()
                polished[instruction] = text if is_instruction(text, instruction) else instruction
        return polished[instruction]

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        chosen = setting(state.metadata["setting"])
        if chosen.polish:
            instruction = await polish(state.messages[0].text)
            state.messages[0] = ChatMessageSystem(content=instruction)
            state.metadata["polished"] = instruction
        state = await generate(state)
        if chosen.follow_up:
            state.messages.append(ChatMessageUser(content=chosen.follow_up))
            state = await generate(state)
        return state

    return solve
