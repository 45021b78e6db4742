"""Word a presentation as a prompt, and elicit its answer."""

from unslant.prompts.prompt import Cloze, Counterfactual, Decision, Elicitation, Message, Prompt, Writer
from unslant.prompts.templates import PromptTemplate, load_template, template_names, usual_template

__all__ = [
    "Cloze", "Counterfactual", "Decision", "Elicitation", "Message", "Prompt", "PromptTemplate", "Writer",
    "load_template", "template_names", "usual_template",
]  # fmt: skip
